"""The deadline: status, numbers and clocks. Source: protocol §7.2, W-67, rulings F3, F4."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.breaker_ledger import Extension
from parsers.clock_anchor import Anchor, Clocks
from parsers.receipts import Receipt
from reducers.budget import (
    budget_document,
    effective_budget,
    elapsed_at,
    elapsed_since,
    evaluate_budget,
    evaluated_document,
    is_loosened,
    seconds_to_change,
)

RUN = "cart-20260301T090000Z-0a1b2c3d"
START = datetime(2026, 3, 1, 9, tzinfo=UTC)
ANCHOR = Anchor(RUN, "boot-1", 1000.0, START + timedelta(seconds=10), 3600)
SECONDS = st.floats(-1e9, 1e9, allow_nan=False)
BUDGETS = st.none() | st.floats(-10, 1e9, allow_nan=False)


def clocks(wall_s: float, boottime_s: float | None = None, boot_id: str | None = "boot-1") -> Clocks:
    return Clocks(START + timedelta(seconds=wall_s), boot_id, boottime_s)


@pytest.mark.parametrize(
    ("elapsed_s", "budget_s", "status"),
    [
        (0, 3600, "ok"),
        (2699.999, 3600, "ok"),
        (2700, 3600, "warn"),
        (3599.999, 3600, "warn"),
        (3600, 3600, "trip"),
        (1e9, 1, "trip"),
        (-5, 3600, "ok"),
        (10, None, "off"),
        (10, 0, "off"),
        (10, -1, "off"),
    ],
)
def test_the_status_compares_unrounded_seconds(elapsed_s: float, budget_s: float | None, status: str) -> None:
    assert evaluate_budget(elapsed_s, budget_s).status == status


@given(SECONDS, BUDGETS)
def test_every_budget_has_a_document_that_adds_up(elapsed_s: float, budget_s: float | None) -> None:
    budget = evaluate_budget(elapsed_s, budget_s)
    document = evaluated_document(budget)
    assert list(document) == "status elapsed_s budget_s remaining_s used_fraction action".split()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["action"]
    numbers = [document[key] for key in ("elapsed_s", "budget_s", "remaining_s", "used_fraction")]
    if budget.status == "off":
        assert numbers[1:] == [None, None, None]
    else:
        assert all(isinstance(number, int | float) for number in numbers)


@given(SECONDS, SECONDS, BUDGETS)
def test_time_never_takes_a_status_back(one: float, other: float, budget_s: float | None) -> None:
    ranks = {"off": 0, "ok": 1, "warn": 2, "trip": 3}
    early, late = sorted((one, other))
    assert ranks[evaluate_budget(early, budget_s).status] <= ranks[evaluate_budget(late, budget_s).status]


def test_whole_numbers_are_printed_as_such() -> None:
    assert json.dumps(evaluated_document(evaluate_budget(3600.0, 3600.0))).startswith(
        '{"status": "trip", "elapsed_s": 3600, "budget_s": 3600, "remaining_s": 0, "used_fraction": 1, '
    )


@pytest.mark.parametrize(
    ("elapsed_s", "budget_s", "until"), [(0, 100, 75), (75, 100, 25), (100, 100, None), (5, None, None)]
)
def test_a_timer_is_set_to_the_next_change(elapsed_s: float, budget_s: float | None, until: float | None) -> None:
    assert seconds_to_change(evaluate_budget(elapsed_s, budget_s)) == until


@given(st.floats(0, 1e6), st.floats(1, 1e6))
def test_at_the_next_change_the_status_has_changed(elapsed_s: float, budget_s: float) -> None:
    budget = evaluate_budget(elapsed_s, budget_s)
    until = seconds_to_change(budget)
    if until is not None:
        assert evaluate_budget(elapsed_s + until + 1e-6 * budget_s, budget_s).status != budget.status


# --- which budget holds (F3) -----------------------------------------------------------------------------------------


def grant(added_s: float, run_id: str | None = RUN) -> Extension:
    return Extension("2026-03-01T10:00:00.000Z", run_id, "ada", added_s)


@pytest.mark.parametrize(
    ("receipt_s", "armed_s", "extensions", "holds"),
    [
        (3600, None, (), 3600),
        (3600, 3600, (), 3600),
        (7200, 3600, (), 3600),  # raised by hand
        (None, 3600, (), 3600),  # taken out by hand
        (1800, 3600, (), 1800),  # lowered by hand: the stricter value holds
        (3600, 3600, (grant(600), grant(60)), 4260),
        (9999, 3600, (grant(600),), 4200),
        (3600, 3600, (grant(600, "other"), grant(600, None)), 3600),
        (None, None, (grant(600),), None),
    ],
)
def test_a_budget_grows_by_recorded_extensions_alone(
    receipt_s: float | None, armed_s: float | None, extensions: tuple[Extension, ...], holds: float | None
) -> None:
    assert effective_budget(receipt_s, armed_s, extensions, RUN) == holds


@pytest.mark.parametrize(
    ("receipt_s", "armed_s", "says"), [(7200, 3600, True), (None, 3600, True), (1800, 3600, False), (3600, None, False)]
)
def test_a_receipt_that_was_raised_since_is_told(receipt_s: float | None, armed_s: float | None, says: bool) -> None:
    assert is_loosened(receipt_s, armed_s) is says


# --- which clock counts (F4) -----------------------------------------------------------------------------------------


def test_in_the_same_boot_the_boot_clock_counts() -> None:
    found = elapsed_since(START, clocks(110, 1100.0), ANCHOR)
    assert (found.seconds, found.clock, found.wall_s, found.boot_s, found.finding) == (110, "boot", 110, 110, None)


@pytest.mark.parametrize("step_s", [3600.0, -3600.0, 5.5, -5.5])
def test_a_step_of_the_wall_clock_moves_nothing_and_is_told(step_s: float) -> None:
    found = elapsed_since(START, clocks(110 + step_s, 1100.0), ANCHOR)
    assert (found.seconds, found.clock, found.wall_s) == (110, "boot", 110 + step_s)
    assert found.finding is not None
    assert ("ahead" if step_s > 0 else "behind") in found.finding


def test_five_seconds_apart_is_no_finding() -> None:
    assert elapsed_since(START, clocks(115, 1100.0), ANCHOR).finding is None


def test_a_suspend_counts_as_time() -> None:
    """Both clocks run on through it."""
    found = elapsed_since(START, clocks(8 * 3600 + 110, 8 * 3600 + 1100.0), ANCHOR)
    assert (found.seconds, found.finding) == (8 * 3600 + 110, None)


@pytest.mark.parametrize(
    ("now", "anchor"),
    [
        (clocks(110, 20.0, "boot-2"), ANCHOR),
        (clocks(110, None), ANCHOR),
        (clocks(110, 1100.0, None), ANCHOR),
        (clocks(110, 1100.0), None),
        (clocks(110, 900.0), ANCHOR),  # a boot clock that went back is none
    ],
)
def test_elsewhere_the_wall_clock_counts(now: Clocks, anchor: Anchor | None) -> None:
    found = elapsed_since(START, now, anchor)
    assert (found.seconds, found.clock, found.boot_s, found.finding) == (110, "wall", None, None)


@pytest.mark.parametrize(
    ("wall_s", "anchor", "says"), [(-3600, None, "before the run's start"), (4, ANCHOR, "before the moment")]
)
def test_a_wall_clock_that_reads_before_what_is_known_is_told_and_trips_nothing(
    wall_s: float, anchor: Anchor | None, says: str
) -> None:
    found = elapsed_since(START, clocks(wall_s, 5.0, "boot-2"), anchor)
    assert found.finding is not None
    assert says in found.finding
    assert evaluate_budget(found.seconds, 60).status == "ok"


def test_at_a_given_moment_no_clock_is_asked() -> None:
    found = elapsed_at(START, START + timedelta(hours=1))
    assert (found.seconds, found.clock, found.boot_s, found.finding) == (3600, "given", None, None)


def test_the_document_has_the_reference_keys_first_and_both_clocks() -> None:
    receipt = Receipt(RUN, "cart", "2026-03-01T09:00:00.000Z", START)
    elapsed = elapsed_since(START, clocks(3710, 1100.4), ANCHOR)
    document = budget_document(
        "cart", receipt, evaluate_budget(elapsed.seconds, 3600), elapsed, is_open=True, extensions=(grant(60),)
    )
    keys = "slug started_at status elapsed_s budget_s remaining_s used_fraction action boot_elapsed_s wall_elapsed_s"
    assert list(document)[:10] == keys.split()
    assert (document["elapsed_s"], document["boot_elapsed_s"], document["wall_elapsed_s"]) == (110, 110, 3710)
    assert document["extensions"] == [{"at": "2026-03-01T10:00:00.000Z", "by": "ada", "added_s": 60}]
