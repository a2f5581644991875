"""How one result stands, and how many stand how. Source: cli §2 `sync`, `run --once`; rulings C11, H8."""

from __future__ import annotations

from typing import NamedTuple

from daemon.scan import Fingerprint
from parsers.faults import Fault
from reducers.run import Outcome, Summary

WANTING: frozenset[str] = frozenset({"rejected", "tampered", "pending"})


class Settled(NamedTuple):
    """One result file as last judged. `stamp` None: it must be read again before anyone relies on this."""

    stamp: Fingerprint | None
    sha256: str
    order_id: str
    outcome: Outcome
    faults: tuple[Fault, ...]
    summary: Summary

    @property
    def is_wanting(self) -> bool:
        """Whether it stands refused or waits: a later fact may change that."""
        return self.outcome in WANTING


class Tally(NamedTuple):
    """Results by how they stand; `orders` counts orders that stand refused."""

    settled: int = 0
    rejected: int = 0
    pending: int = 0
    orders: int = 0

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def is_clean(self) -> bool:
        """Whether nothing stands rejected or pending."""
        return not (self.rejected or self.pending or self.orders)
