"""From what a run's time is counted: its receipt, the clocks when its deadline was armed, and what was granted since. Source: rulings F3, F4, F10."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from parsers.breaker_ledger import Extension
from parsers.clock_anchor import Anchor, Clocks
from parsers.layout import path_of
from parsers.receipts import Receipt
from reducers.budget import Budget, Elapsed, effective_budget, elapsed_since, evaluate_budget, is_loosened


class RunClock(NamedTuple):
    """The clock of one run. `anchor` None: no deadline of this run was armed yet, or its note is gone."""

    receipt: Receipt
    anchor: Anchor | None = None
    extensions: tuple[Extension, ...] = ()

    @property
    def start(self) -> datetime | None:
        """When the run began; a receipt that was edited since cannot move it to later, nor take it away. Source: F3."""
        armed = self.anchor.started_at if self.anchor else None
        return min((start for start in (self.receipt.start, armed) if start is not None), default=None)

    @property
    def budget_s(self) -> float | None:
        """The budget in force; None where there is no deadline."""
        return effective_budget(self.receipt.config.budget_s, self._armed_s, self.extensions, self.receipt.run_id)

    @property
    def _armed_s(self) -> float | None:
        return self.anchor.budget_s if self.anchor else None

    def elapsed(self, clocks: Clocks) -> Elapsed | None:
        """The time since the start; None where the receipt names none, for then nothing can be counted."""
        return None if self.start is None else elapsed_since(self.start, clocks, self.anchor)

    def budget(self, elapsed: Elapsed) -> Budget:
        """Where the run stands against its deadline."""
        return evaluate_budget(elapsed.seconds, self.budget_s)

    def tampering(self) -> str | None:
        """What somebody changed in the receipt since the deadline was armed, as a sentence; it changes nothing. Source: F3."""
        path = path_of("receipt", self.receipt.slug or "<slug>")
        if self.anchor is None:
            return None
        if is_loosened(self.receipt.config.budget_s, self.anchor.budget_s):
            return f"{path}: the budget was raised by hand; what it was when the deadline was armed counts"
        armed = self.anchor.started_at
        if armed is not None and (self.receipt.start is None or self.receipt.start > armed):
            return f"{path}: the start was moved by hand; what it was when the deadline was armed counts"
        return None


def arm(clock: RunClock, clocks: Clocks) -> Anchor | None:
    """The note to keep where a deadline is armed for the first time; None where none is to be written. Source: F10."""
    receipt = clock.receipt
    if clock.anchor is not None or receipt.run_id is None or receipt.start is None or receipt.config.budget_s is None:
        return None
    if clocks.boot_id is None or clocks.boottime_s is None:
        return None
    return Anchor(
        receipt.run_id, clocks.boot_id, clocks.boottime_s, clocks.wall, receipt.config.budget_s, receipt.start
    )
