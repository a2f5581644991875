"""What a committed scope contract breaks together with its neighbours, contract by contract. Source: ruling E9, protocol §5.2.

CONTRACT-UNREADABLE and TIER-DIRECTION are judged by the hooks themselves (hooks/specs.py): they need no other file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reducers.lint_spec.facts import ScopeFacts, SpecFacts
from reducers.lint_spec.findings import Finding
from reducers.lint_spec.scope_graph import lint_anchor, lint_covers, lint_dependencies, lint_partition
from reducers.lint_spec.substrates import Substrates, lint_overlaps

SHOWN = 20  # findings of one contract that are told one by one
COMMIT_RULES = ("DISJOINT", "SCOPE-PARTITION", "SCOPE-ANCHOR", "SCOPE-DEPS", "SCOPE-COVERS")


def scope_findings(facts: SpecFacts) -> dict[str, tuple[Finding, ...]]:
    """By the path of each contract, the reds that it has a part in; contracts without any are left out.

    A contract that could not be read as a file has its own finding elsewhere, and none here.
    """
    found: dict[str, list[Finding]] = {scope.path: [] for scope in facts.scopes if scope.fault is None}
    paths: dict[str, list[str]] = {}
    for scope in facts.scopes:
        paths.setdefault(scope.scope_id, []).append(scope.path)
    shared = (*lint_overlaps(facts.live_scopes, Substrates(facts.files)), *lint_partition(facts), *lint_covers(facts))
    for one in shared:
        for scope_id in (one.scope or "").split("+"):
            for path in paths.get(scope_id, ()):
                found.setdefault(path, []).append(one)
    known = {case.id for case in facts.use_cases}
    for scope in facts.scopes:
        found.setdefault(scope.path, []).extend((*lint_anchor(scope, known), *_dependencies(facts, scope)))
    reds = {path: tuple(one for one in rows if one.level == "red") for path, rows in found.items()}
    unread = {scope.path for scope in facts.scopes if scope.fault is not None}
    return {path: rows for path, rows in reds.items() if rows and path not in unread}


def _dependencies(facts: SpecFacts, scope: ScopeFacts) -> Iterator[Finding]:
    """The scope's own dependencies, and the circles that it lies on: a walk that begins with it meets them from it."""
    others = (other for other in facts.scopes if other.path != scope.path)
    return (one for one in lint_dependencies((scope, *others)) if one.scope == scope.scope_id)


def scopes_document(found: Mapping[str, Sequence[Finding]]) -> dict[str, list[dict[str, str]]]:
    """`check --print-scopes`: by contract path, rows {rule, what, why, fix}; `what` begins with the line where it is the
    contract's own. Of many, the first SHOWN and how many more."""
    return {path: _rows(path, rows) for path, rows in sorted(found.items())}


def _rows(path: str, found: Sequence[Finding]) -> list[dict[str, str]]:
    rows = [_row(path, one) for one in found[:SHOWN]]
    if len(found) > SHOWN:
        rows[-1]["what"] += f" (and {len(found) - SHOWN} more findings on this contract)"
    return rows


def _row(path: str, found: Finding) -> dict[str, str]:
    place, _, line = found.where.rpartition(":")
    what = f"line {line}: {found.what}" if place == path else found.what
    return {"rule": found.rule, "what": what, "why": found.why, "fix": found.fix}
