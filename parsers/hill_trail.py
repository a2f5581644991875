"""hill.jsonl: one row for every change of a scope's hill phase, LOCAL and append-only. Source: ruling G4, protocol §12.4.

Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from parsers.hill_shards import PHASES
from parsers.ledgers import parse_rows, render_row
from parsers.trials import SCOPE_ID


class HillRow(NamedTuple):
    """One change. `from_phase` None: the scope was seen for the first time. `at` None where the row names no time."""

    at: str | None
    scope_id: str
    from_phase: str | None
    to_phase: str
    why: str = ""


def parse_hill_trail(data: bytes) -> tuple[HillRow, ...]:
    """The rows in file order; a row without a scope id (ruling B6) or a known phase to go to is skipped."""
    return tuple(row for raw in parse_rows(data) if (row := _row(raw)))


def render_hill_row(row: HillRow) -> str:
    """One line with its line feed; keys at, scope_id, from, to, why."""
    return render_row(hill_row(row))


def hill_row(row: HillRow) -> dict[str, object]:
    """The row as the file and `hill --json` show it."""
    return {"at": row.at, "scope_id": row.scope_id, "from": row.from_phase, "to": row.to_phase, "why": row.why}


def _row(raw: Mapping[str, object]) -> HillRow | None:
    at, scope_id, before, after, why = (raw.get(key) for key in ("at", "scope_id", "from", "to", "why"))
    if not (isinstance(scope_id, str) and SCOPE_ID.match(scope_id) and isinstance(after, str) and after in PHASES):
        return None
    return HillRow(
        at if isinstance(at, str) else None,
        scope_id,
        before if isinstance(before, str) and before in PHASES else None,
        after,
        why if isinstance(why, str) else "",
    )
