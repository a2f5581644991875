"""The queue of GATE H: hammer orders, proposals and the census. Source: protocol §7.4, §8.6, rulings B4, D-13, F7, F8, J, K, L7."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.addresses import MAX_ORDER_ID, Address, parse_address
from parsers.breaker_ledger import Proposal, Trip, parse_breakers, parse_proposals
from parsers.envelopes import PAYLOAD_RIGHTS, parse_result
from parsers.facts import read_order
from parsers.layout import path_of
from parsers.trials import Score, Trial
from reducers.after_trip import allowances
from reducers.gate_h import (
    Census,
    Scope,
    census_document,
    failed_criteria,
    green_scopes,
    hammer_order,
    hammer_path,
    hammer_stem,
    instruction,
    proposal_append,
    propose,
    render_census,
    render_order,
    trip_append,
    unproposed,
)
from reducers.gates import OpenGate
from reducers.live_contracts import RunOrders, live_contracts

RUN = "cart-20260301T090000Z-0a1b2c3d"
AT = "2026-03-01T10:00:00.000Z"
DEADLINE = Trip(RUN, "deadline", "trip", None, 2, 3600, 3600, "deadline", "3600 s of 3600 s are used")
OUTER = Trip(RUN, "outer", "trip", None, 2, cause="max-rounds", reason="no round is left")
INNER = Trip(RUN, "inner", "trip", "Core.X", 1, cause="stagnant", reason="no progress")
TRIPS = (DEADLINE, OUTER, INNER)


@pytest.mark.parametrize(
    ("trip", "stem"),
    [
        (DEADLINE, "hammer-deadline-r2"),
        (OUTER, "hammer-outer-r2"),
        (INNER, "hammer-inner-core.x-r1"),
        (DEADLINE._replace(round=None), "hammer-deadline-r1"),
    ],
)
def test_the_stem_names_breaker_scope_and_round(trip: Trip, stem: str) -> None:
    assert hammer_stem(trip, "cart") == stem
    assert parse_address(f"cart/{stem}").round == (trip.round or 1)


@pytest.mark.parametrize("trip", TRIPS, ids=lambda trip: trip.breaker)
def test_the_hammer_order_is_admissible_as_it_stands(trip: Trip) -> None:
    read = read_order(hammer_path(trip, "cart"), render_order(hammer_order(trip, "cart", AT)))
    assert (read.faults, read.warnings) == ((), ())
    assert read.fact is not None
    order = read.fact.order
    assert (order.worker, order.operation, order.run_id) == ("scope-hammer", "hammer", RUN)
    assert (order.payload.breaker, order.payload.scope_id) == (trip.breaker, trip.scope_id)
    assert order.substrate is not None
    assert order.substrate.allowed == ("shapeup/cart/REPORT.md", ".shapeup/cart/reports/**")


@pytest.mark.parametrize("trip", TRIPS, ids=lambda trip: trip.breaker)
def test_it_constrains_nothing_until_it_is_dispatched(trip: Trip) -> None:
    fact = read_order(hammer_path(trip, "cart"), render_order(hammer_order(trip, "cart", AT))).fact
    assert fact is not None
    run = RunOrders({fact.stem: fact}, {}, has_receipt=True, run_id=RUN, harness=None)
    assert live_contracts(run) == ()
    assert len(live_contracts(run._replace(dispatched=(fact.order.order_id,)))) == 1


def test_it_carries_the_fields_of_its_worker_alone() -> None:
    payload = hammer_order(INNER, "cart", AT, baseline="the old way")["payload"]
    assert isinstance(payload, dict)
    assert payload.keys() == PAYLOAD_RIGHTS["scope-hammer"]


def test_a_run_without_an_id_gives_an_order_without_one() -> None:
    order = hammer_order(OUTER._replace(run_id=None), "cart", AT)
    assert "run_id" not in order
    assert read_order(hammer_path(OUTER, "cart"), render_order(order)).fact is not None


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,250}", fullmatch=True), st.integers(1, 10**8))
def test_every_scope_gets_an_order_id_that_fits(scope_id: str, round_: int) -> None:
    trip = INNER._replace(scope_id=scope_id, round=round_)
    read = read_order(hammer_path(trip, "cart"), render_order(hammer_order(trip, "cart", AT)))
    assert read.fact is not None, read.faults
    assert len(read.fact.order.order_id) <= MAX_ORDER_ID
    assert parse_address(read.fact.order.order_id) == Address(
        hammer_stem(trip, "cart").rpartition("-r")[0], round_, None
    )


def test_two_long_scopes_keep_two_orders() -> None:
    one, other = (INNER._replace(scope_id="a" * 250 + end) for end in "xy")
    assert hammer_stem(one, "cart") != hammer_stem(other, "cart")


def test_rows_go_to_their_ledgers_and_are_read_back() -> None:
    row = trip_append(INNER, "cart", AT)
    assert (row.path, parse_breakers(row.text.encode()).trips) == (path_of("breakers", "cart"), (INNER,))
    proposal = propose(INNER, "cart", AT, ["cart"], ["cart/core-r1-a3"])
    added = proposal_append(proposal, "cart")
    assert (added.path, parse_proposals(added.text.encode())) == (path_of("gate-h", "cart"), (proposal,))
    assert proposal.order_path == ".shapeup/cart/orders/hammer-inner-core.x-r1.json"


def test_a_crash_between_the_rows_leaves_the_proposal_owed() -> None:
    made = propose(OUTER, "cart", AT, (), ())
    warning = DEADLINE._replace(status="warn")
    assert unproposed([warning, *TRIPS], [made]) == (DEADLINE, INNER)
    extended = DEADLINE._replace(budget_s=7200)
    assert unproposed([DEADLINE, extended], [propose(DEADLINE, "cart", AT, (), ())]) == (extended,)


# --- what the census counts ------------------------------------------------------------------------------------------

GREEN, RED = Score(0, 1, 1), Score(0, 0, 1)


@pytest.mark.parametrize(
    ("trials", "closed", "green"),
    [
        ([Trial("Core", "kept", 1, score=GREEN)], [("core", 1)], ("Core",)),
        ([Trial("Core", "kept", 1, score=GREEN)], [], ()),  # no applied result
        ([Trial("Core", "kept", 1, score=GREEN)], [("core", 2)], ()),
        ([Trial("Core", "kept", 1, score=RED)], [("core", 1)], ()),
        ([Trial("Core", "kept", 1, score=GREEN), Trial("core", "reverted", 1, score=RED)], [("core", 1)], ("Core",)),
        ([Trial("Core", "kept", 1, score=GREEN), Trial("core", "rebased", 2, score=RED)], [("core", 1)], ()),
        ([Trial("Core", "kept", None, score=GREEN)], [("core", 1)], ()),
    ],
)
def test_a_scope_is_green_while_its_newest_surviving_trial_is(
    trials: list[Trial], closed: list[tuple[str, int]], green: tuple[str, ...]
) -> None:
    assert green_scopes(trials, closed) == green


def verdict(**more: Any) -> Any:
    value = {
        "schema_version": 1,
        "order_id": "cart/evaluate-r1",
        "status": "done",
        "verdict": {"overall": "FAIL"} | more,
    }
    return parse_result(value).verdict


def test_a_fail_names_task_and_criterion_and_never_a_remedy() -> None:
    bugs = [
        {"id": "B1", "scope_id": "core", "criterion": "adds an item", "fix_hint": "use a lock", "repro": "run it"},
        {"id": "B2", "task_id": "TASK-2"},
        "the list is empty",
        {},
        7,
    ]
    assert failed_criteria(verdict(bugs=bugs)) == (
        "core: adds an item",
        "TASK-2: B2",
        "the list is empty",
        "a bug without a name",
    )
    criteria = [
        {"criterion": "adds an item", "verdict": "FAIL", "evidence": "a.py:1"},
        {"criterion": "removes one", "verdict": "PASS"},
    ]
    assert failed_criteria(verdict(criteria=criteria)) == ("adds an item",)


# --- the view --------------------------------------------------------------------------------------------------------


def census(*trips: Trip, **more: Any) -> Census:
    proposals = tuple(propose(trip, "cart", AT, ("cart",), ()) for trip in trips)
    filled = {"rounds_used": 2, "max_rounds": 2} | more
    return Census("cart", RUN, trips, proposals, ("cart",), ("cart/core-r2-a2",), allowances(trips), **filled)


def test_the_view_begins_with_the_block_and_tells_all_of_it() -> None:
    text = render_census(census(DEADLINE, not_green=(Scope("core", "no progress"),)))
    lines = text.splitlines()
    assert lines[0] == "⏸ GATE H — Decide When to Stop"
    assert 'breakers: ["deadline"]' in lines
    assert 'rounds: "2/2"' in lines
    assert 'decision_owner: "PO"' in lines
    for told in (
        "- cart",
        "- core: no progress",
        "- cart/core-r2-a2",
        "- no: task-executor",
        "- yes: spec-evaluator",
        "- yes: scope-hammer",
        "- yes: qa-edge-hunter",
    ):
        assert told in lines
    assert text.count(".shapeup/cart/orders/hammer-deadline-r2.json") == 2
    assert text.endswith("\n")


def test_the_sentence_says_what_to_do() -> None:
    told = instruction(census(DEADLINE))
    assert told.startswith("The deadline breaker has tripped: open no build order;")
    assert "scope-hammer" in told
    assert "GATE H" in told
    assert "ship cart" in told
    told = instruction(census(INNER))
    assert "Core.X" in told
    assert "go on with the other scopes" in told
    assert "nothing is green" in instruction(census(OUTER)._replace(green_scopes=()))


def test_without_a_trip_there_is_nothing_to_do_but_answer_open_gates() -> None:
    assert instruction(census()) == "No breaker has tripped: go on."
    waiting = census(open_gates=(OpenGate("L1b", 1, "preset:guarded", "look at the board", AT),))
    assert "L1b" in instruction(waiting)
    assert "- L1b, round 1: look at the board" in render_census(waiting).splitlines()
    assert "## Proposals\n\nnone\n" in render_census(census())


def test_the_document_holds_the_same_and_is_json() -> None:
    one = census(OUTER, residual=("core: adds an item",), cuts=("the export",), advisor_flags=("ESC-01",))
    document = json.loads(json.dumps(census_document(one)))
    assert document["instruction"] == instruction(one)
    assert document["proposals"][0]["breaker"] == "outer"
    assert (document["residual"], document["cuts"]) == (["core: adds an item"], ["the export"])
    assert {"what": "task-executor", "allowed": False, "note": None} in document["dispatch"]
    for told in ("- core: adds an item", "- the export", "- ESC-01"):
        assert told in render_census(one).splitlines()


HOSTILE = st.text(max_size=30) | st.just("x\n## Green scopes\n\n- forged") | st.just("\u2028# a\ud800\x1b[31m")


@given(HOSTILE, HOSTILE)
def test_no_foreign_text_forges_a_heading_or_an_item(one: str, other: str) -> None:
    proposal = Proposal(RUN, "inner", other, 1, None, one, (), (), one, AT)
    view = census(INNER)._replace(
        proposals=(proposal,),
        green_scopes=(one,),
        open_orders=(other,),
        residual=(one,),
        open_gates=(OpenGate("L1b", 1, "", one, AT),),
    )
    text = render_census(view)
    assert text.encode().decode() == text
    lines = text.split("\n")
    assert sum(line.startswith("## ") for line in lines) == 7
    assert sum(line.startswith("- ") for line in lines) == 5 + len(view.allowances)
    assert text.splitlines() == lines[:-1]
