"""Whether what grades an attempt is what graded it when its order was admitted. Source: ruling G5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from parsers.graders import GraderRow, hash_commands
from parsers.scope_contract import ScopeContract


def newest_row(rows: Iterable[GraderRow], order_id: str, order_sha256: str | None = None) -> GraderRow | None:
    """The newest row of the order, of these bytes of it where they are given; None: it was never admitted with graders."""
    found = [row for row in rows if row.order_id == order_id and order_sha256 in (None, row.order_sha256)]
    return found[-1] if found else None


def changed_graders(
    row: GraderRow, contract: ScopeContract, present: Mapping[str, str], is_granted: Callable[[str], bool]
) -> tuple[str, ...]:
    """The graders that are not what they were, those left out that the order lets its worker write.

    `present`: the hashes of what is named now, and of what the row names as far as it is still there. Commands that changed
    are named by the contract's own path: they decide what is graded at all.
    """
    changed = {path for path, known in row.files.items() if present.get(path) != known}
    if not row.left_out:
        changed |= present.keys() - row.files.keys()
    found = sorted(path for path in changed if not is_granted(path))
    return (contract.path, *found) if row.commands != hash_commands(contract.commands) else tuple(found)
