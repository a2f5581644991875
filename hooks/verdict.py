"""What every wall answers: violations with one way forward each, as text and as rows. Source: cli §1, rulings E19, J `check`.

Light module: standard library only.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SHOWN = 20  # paths a refusal lists


class Violation(NamedTuple):
    """One rule that one path breaks. `path` is empty where the whole commit breaks it; `order_id` None where no order is
    concerned. `what` is the claim, `why` the reason, `fix` one way forward that works."""

    rule: str
    path: bytes
    order_id: str | None
    what: str
    why: str
    fix: str


RULES: dict[str, str] = {
    "OUTSIDE": "no live order lets anybody write this path",
    "FROZEN": "a live order freezes this path or section",
    "APPEND-ONLY": "the path or section may only grow",
    "COLLISION": "on a file system that folds case or accents this is a frozen path",
    "SYMLINK": "a symbolic link leads out of the repository",
    "NO-LIVE-ORDER": "in an open run a commit needs a live order (gate.no_live_order)",
    "TRAILER-UNKNOWN": "the Shapeup-Order trailer names no order that can be found",
    "TRAILER-MISSING": "on this ref every commit must name its order (gate.require_trailer)",
    "OVERRIDE": "an override is not accepted here",
    "BYPASSED": "the commit was made past the hooks and breaks the policy of its time",
    "CONTRACT-UNREADABLE": "a committed contract does not parse as a whole",
    "TIER-DIRECTION": "a committed file names a board id or a path of the local tier",
    "DISJOINT": "two scopes may write one file, and not both declare it shared",
    "SCOPE-PARTITION": "a task is claimed by more than one scope",
    "SCOPE-ANCHOR": "a scope names no use case, or one that does not exist",
    "SCOPE-DEPS": "a scope depends on itself, on an unknown scope, or in a circle",
    "SCOPE-COVERS": "a scope covers a requirement that is not registered",
    "R-19": "the file has another sole writer",
    "R-20": "a ledger may only grow",
    "R-36": "a hill shard is derived, never written by hand",
    "R-37": "nothing under .shapeup/ is ever committed",
    "R-38": "contracts are superseded, never deleted",
}


def quote_path(path: bytes) -> str:
    """A path for people: as it is where it is printable UTF-8, else with C escapes, so that it can forge nothing."""
    text = path.decode("utf-8", "surrogateescape")
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    shown = "".join(_escape(char) for char in text)
    return f'"{shown}"'


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")


def render_violation(violation: Violation) -> str:
    """The three-line form of cli §1."""
    where = quote_path(violation.path) if violation.path else "commit"
    return f"{where}: {violation.rule} {violation.what}\n  why: {violation.why}\n  fix: {violation.fix}"


def render_refusal(violations: Sequence[Violation], all_with: str) -> str:
    """The refusal that a hook prints: at most SHOWN violations, then how many more and the command that lists all."""
    lines = [render_violation(violation) for violation in violations[:SHOWN]]
    if len(violations) > SHOWN:
        lines.append(f"… and {len(violations) - SHOWN} more; all of them: {all_with}")
    return "\n".join(lines)


def violation_row(violation: Violation) -> dict[str, object]:
    """The violation in `check --json`; `path_bytes` (base64) where the name is not UTF-8. Source: rulings E19, J."""
    try:
        path, raw = violation.path.decode("utf-8"), None
    except UnicodeDecodeError:
        path, raw = violation.path.decode("utf-8", "replace"), base64.b64encode(violation.path).decode("ascii")
    row: dict[str, object] = {"rule": violation.rule, "path": path}
    if raw is not None:
        row["path_bytes"] = raw
    return row | {"order_id": violation.order_id, "what": violation.what, "why": violation.why, "fix": violation.fix}


def verdict_document(violations: Iterable[Violation]) -> dict[str, object]:
    """The `check` document. Source: rulings J."""
    rows = [violation_row(violation) for violation in violations]
    return {"schema": 1, "verdict": "deny" if rows else "allow", "violations": rows}
