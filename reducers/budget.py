"""How much of its time a run has used, by which clock, and what the deadline breaker says to it. Source: protocol §7.2, W-67, rulings F2-F4, J."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from parsers.breaker_ledger import Extension
from parsers.clock_anchor import Anchor, Clocks
from parsers.receipts import Receipt

Status = Literal["off", "ok", "warn", "trip"]
Clock = Literal["boot", "wall", "given"]

WARN_FRACTION = 0.75
DISAGREEMENT_S = 5.0
_MOST = 1e12  # a budget of next to nothing is used up more often than can be counted

_ADVICE: dict[Status, str] = {
    "off": "No wall-clock budget: the deadline breaker is off. Rounds and attempts are still counted.",
    "ok": "{remaining} s of {budget} s remain. Proceed.",
    "warn": (
        "{remaining} s of {budget} s remain ({percent} % used). Finish and measure the scope in flight; "
        "open no scope and no build round."
    ),
    "trip": (
        "The deadline breaker trips: the budget of {budget} s is used up. Start no build round and no scope; "
        "go to GATE H and ship what is green."
    ),
}


class Budget(NamedTuple):
    """Where a run stands against its deadline. Seconds are unrounded; `budget_s` None: there is no deadline."""

    status: Status
    elapsed_s: float
    budget_s: float | None

    @property
    def remaining_s(self) -> float | None:
        """Below 0 after the deadline; None where there is none."""
        return None if self.budget_s is None else self.budget_s - self.elapsed_s


def evaluate_budget(elapsed_s: float, budget_s: float | None) -> Budget:
    """The status of so many seconds against this budget; none, 0 and less switch it off. Source: §7.2, W-67."""
    elapsed_s = max(0.0, elapsed_s)
    if budget_s is None or budget_s <= 0:
        return Budget("off", elapsed_s, None)
    if elapsed_s >= budget_s:
        return Budget("trip", elapsed_s, budget_s)
    return Budget("warn" if elapsed_s >= WARN_FRACTION * budget_s else "ok", elapsed_s, budget_s)


def seconds_to_change(budget: Budget) -> float | None:
    """How long until the status changes by itself; None where it will not. What a timer is set to."""
    match budget.status:
        case "ok" if budget.budget_s is not None:
            return WARN_FRACTION * budget.budget_s - budget.elapsed_s
        case "warn":
            return budget.remaining_s
        case _:
            return None


def effective_budget(
    receipt_s: float | None, armed_s: float | None, extensions: Iterable[Extension], run_id: str | None
) -> float | None:
    """The budget in force: the receipt's own and every recorded extension of this run. Source: ruling F3.

    `armed_s` is the receipt's budget when its deadline was first armed (None: it had none then, or nobody saw it). A receipt
    that was edited since cannot win time: the stricter of the two counts.
    """
    known = [value for value in (receipt_s, armed_s) if value is not None]
    if not known:
        return None
    return min(known) + sum(grant.added_s for grant in extensions if grant.run_id == run_id)


def is_loosened(receipt_s: float | None, armed_s: float | None) -> bool:
    """Whether the receipt now grants more time than when its deadline was armed: somebody edited it. Source: ruling F3."""
    return armed_s is not None and (receipt_s is None or receipt_s > armed_s)


class Elapsed(NamedTuple):
    """The time since the start of a run. `seconds` is what counts, by `clock`; below 0 where the clock reads before the start.

    `boot_s` is None without an anchor of this boot. `finding` is a sentence where the clocks disagree, else None.
    """

    seconds: float
    clock: Clock
    wall_s: float
    boot_s: float | None = None
    finding: str | None = None


def elapsed_at(start: datetime, at: datetime) -> Elapsed:
    """The time at a given moment instead of now."""
    seconds = (at - start).total_seconds()
    return Elapsed(seconds, "given", seconds)


def elapsed_since(start: datetime, clocks: Clocks, anchor: Anchor | None) -> Elapsed:
    """The time since the start, always computed anew. Source: ruling F4.

    In the boot in which the deadline was armed the boot clock counts: no step of the wall clock moves it, and it runs on
    through a suspend. In another boot there is the wall clock alone.
    """
    wall_s = (clocks.wall - start).total_seconds()
    boot_s = _by_boot_clock(start, clocks, anchor)
    if boot_s is not None:
        apart = wall_s - boot_s
        finding = None
        if abs(apart) > DISAGREEMENT_S:
            side = "ahead of" if apart > 0 else "behind"
            finding = f"the wall clock is {abs(apart):.0f} s {side} the boot clock since the run was armed; the boot clock counts"
        elif boot_s < -DISAGREEMENT_S:
            finding = f"the run's start lies {-boot_s:.0f} s ahead; until then no time is counted"
        return Elapsed(boot_s, "boot", wall_s, boot_s, finding)
    if wall_s < -DISAGREEMENT_S:
        return Elapsed(wall_s, "wall", wall_s, None, f"the wall clock reads {-wall_s:.0f} s before the run's start")
    if anchor is not None and (back_s := (anchor.wall - clocks.wall).total_seconds()) > DISAGREEMENT_S:
        told = f"the wall clock reads {back_s:.0f} s before the moment at which the deadline was armed"
        return Elapsed(wall_s, "wall", wall_s, None, told)
    return Elapsed(wall_s, "wall", wall_s)


def _by_boot_clock(start: datetime, clocks: Clocks, anchor: Anchor | None) -> float | None:
    if anchor is None or clocks.boottime_s is None or clocks.boot_id != anchor.boot_id:
        return None
    since_armed_s = clocks.boottime_s - anchor.boottime_s
    return (anchor.wall - start).total_seconds() + since_armed_s if since_armed_s >= 0 else None


def evaluated_document(budget: Budget) -> dict[str, object]:
    """The reference's keys for a status: {status, elapsed_s, budget_s, remaining_s, used_fraction, action}. Source: §7.2.

    Only what is printed is rounded: whole seconds, which add up to the budget, and the fraction to three decimals.
    """
    elapsed_s = _rounded(budget.elapsed_s)
    shown: dict[str, object] = {"status": budget.status, "elapsed_s": elapsed_s}
    if budget.budget_s is None:
        none = {"budget_s": None, "remaining_s": None, "used_fraction": None}
        return {**shown, **none, "action": _ADVICE["off"]}
    remaining_s = _rounded(budget.budget_s - elapsed_s)
    used = _rounded(min(elapsed_s / budget.budget_s, _MOST) * 1000) / 1000
    percent = math.floor(min(budget.elapsed_s / budget.budget_s, _MOST) * 100)
    numbers = {"remaining": remaining_s, "budget": f"{plain(budget.budget_s)}", "percent": percent}
    return {
        **shown,
        "budget_s": plain(budget.budget_s),
        "remaining_s": remaining_s,
        "used_fraction": plain(used),
        "action": _ADVICE[budget.status].format(**numbers),
    }


def budget_document(
    slug: str,
    receipt: Receipt,
    budget: Budget,
    elapsed: Elapsed,
    *,
    is_open: bool,
    extensions: Iterable[Extension] = (),
) -> dict[str, object]:
    """What `budget` prints of one run, after `schema`: §7.2, then both clocks, and what was granted. Source: rulings F4, J."""
    return {
        "slug": slug,
        "started_at": receipt.started_at,
        **evaluated_document(budget),
        "boot_elapsed_s": None if elapsed.boot_s is None else _rounded(elapsed.boot_s),
        "wall_elapsed_s": _rounded(elapsed.wall_s),
        "clock": elapsed.clock,
        "run_id": receipt.run_id,
        "open": is_open,
        "extensions": [
            {"at": grant.at, "by": grant.by, "added_s": plain(grant.added_s)}
            for grant in extensions
            if grant.run_id == receipt.run_id
        ],
    }


def _rounded(number: float) -> int:
    """To the nearest whole number, halves up, as JavaScript rounds."""
    return math.floor(number + 0.5)


def plain(number: float) -> float:
    """An integer where the number is one: 3600, not 3600.0."""
    return int(number) if number == int(number) else number
