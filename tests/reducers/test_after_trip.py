"""The table of §7.3, cell by cell, and that what people are told is what is done. Source: protocol §7.3, rulings F1, F3, R-13, R-14."""

from __future__ import annotations

import json
from typing import Any

import pytest

from parsers.breaker_ledger import Trip
from parsers.envelopes import WorkOrder
from parsers.facts import OrderFact, read_order
from reducers.after_trip import (
    BUILDER,
    PHASES,
    allowances,
    may_dispatch,
    operation_of,
    refusal_of,
    refusing_trip,
    scopes_of,
)

RUN = "cart-20260301T090000Z-0a1b2c3d"
DEADLINE = Trip(RUN, "deadline", "trip", None, 2, 3600, 3600, "deadline", "3600 s of 3600 s are used")
OUTER = Trip(RUN, "outer", "trip", None, 2, cause="max-rounds", reason="no round is left")
INNER = Trip(RUN, "inner", "trip", "Core", 2, cause="stagnant", reason="no progress")
WHOLE = Trip(RUN, "inner", "trip", None, 2, cause="no-green", reason="no scope is green")
WORKERS = {
    "execute": "task-executor",
    "fix": "task-executor",
    "spike": "task-executor",
    "evaluate": "spec-evaluator",
    "hammer": "scope-hammer",
    "hunt": "qa-edge-hunter",
    "orient": "orient",
    "analyze": "ba-pitch-analyzer",
    "reconcile": "ba-pitch-analyzer",
    "retrofit-surface": "ba-pitch-analyzer",
    "coverage": "ba-pitch-analyzer",
    "map-scopes": "scope-architect",
    "wire": "solution-architect",
    "translate": "translator",
    "coach": "coach",
    "adjudicate": "advisor-protocol",
}


def fact(stem: str, operation: str | None, worker: str | None = None, **payload: Any) -> OrderFact:
    value = {
        "schema_version": 1,
        "order_id": f"cart/{stem}",
        "worker": worker or WORKERS[operation or ""],
        "mode": "orchestrated",
        "payload": payload,
    } | ({"operation": operation} if operation else {})
    read = read_order(f".shapeup/cart/orders/{stem}.json", json.dumps(value).encode())
    assert read.fact is not None, read.faults
    return read.fact


def order(stem: str, operation: str | None, worker: str | None = None, **payload: Any) -> WorkOrder:
    return fact(stem, operation, worker, **payload).order


BUILD = order("core-r2-a3", "execute")
BUILDS = ("execute", "fix", "spike")
CLOSED = {
    "deadline": {*BUILDS, *PHASES},
    "outer": {*BUILDS, *PHASES, "reconcile"},
    "inner": set(BUILDS),
}


@pytest.mark.parametrize("trip", [DEADLINE, OUTER, WHOLE], ids=lambda trip: trip.breaker)
@pytest.mark.parametrize("operation", sorted(WORKERS))
def test_each_cell_of_the_table(trip: Trip, operation: str) -> None:
    stem = "core-r2-a3" if operation in BUILDS else operation
    assert may_dispatch(order(stem, operation), [trip]) is (operation not in CLOSED[trip.breaker])


def test_without_a_trip_everything_may_go() -> None:
    warning = DEADLINE._replace(status="warn")
    silence = Trip(RUN, "silence", "warn", None, None, 600, 600)
    for operation in WORKERS:
        one = order("core-r1-a1" if operation in BUILDS else operation, operation)
        assert may_dispatch(one, [])
        assert may_dispatch(one, [warning, silence])


def test_a_plan_may_be_reconciled_once_the_po_has_reopened_the_run() -> None:
    reconcile = order("reconcile-r2", "reconcile")
    assert not may_dispatch(reconcile, [OUTER])
    assert may_dispatch(reconcile, [OUTER], is_reopened=True)
    assert not may_dispatch(BUILD, [OUTER], is_reopened=True)


@pytest.mark.parametrize(
    ("stem", "payload", "allowed"),
    [
        ("core-r2-a3", {}, False),
        ("core-r2-a1", {}, False),
        ("core-r1-a9", {}, False),
        ("core-r3-a1", {}, True),  # W-55: the next round begins anew
        ("cart-r2-a1", {}, True),
        ("core-two-r2-a1", {}, True),
        ("execute-core-r2", {}, False),
        ("execute-core", {}, False),
        ("execute-task-003", {"tasks": [{"id": "TASK-3", "scope_id": "Core"}]}, False),
        ("execute-task-003", {"tasks": [{"id": "TASK-3", "scope_id": "cart"}]}, True),
        ("x-r2-a1", {"scope_contract": {"scope_id": "CORE"}}, False),
        ("r2-a1", {}, True),
    ],
)
def test_an_inner_trip_closes_its_scope_in_its_round(stem: str, payload: dict[str, Any], allowed: bool) -> None:
    assert may_dispatch(order(stem, "execute", **payload), [INNER]) is allowed


def test_an_order_that_names_no_operation_is_judged_by_its_stem_and_worker() -> None:
    assert operation_of(order("wire", None, "solution-architect")) == "wire"
    assert operation_of(order("reconcile-r2", None, "ba-pitch-analyzer")) == "reconcile"
    assert operation_of(order("anything", None, "ba-pitch-analyzer")) == "analyze"
    assert not may_dispatch(order("anything", None, "ba-pitch-analyzer"), [DEADLINE])
    assert may_dispatch(order("coach", None, "coach"), [DEADLINE])


def test_the_scopes_of_an_order() -> None:
    assert scopes_of(order("fix-core-r2", "fix", tasks=[{"id": "T", "scope_id": "A.b"}])) == {
        "fix-core",
        "core",
        "a.b",
    }
    assert scopes_of(order("r1-a1", "execute")) == frozenset()


def test_a_refusal_says_what_why_and_a_way_forward() -> None:
    late = fact("core-r2-a3", "execute")
    fault = refusal_of(late, DEADLINE)
    assert (fault.where, fault.code) == (late.path, "E-BREAKER")
    assert "deadline" in fault.what
    assert "--extend" in fault.fix
    assert "--extend" not in refusal_of(late, OUTER).fix
    assert "scope Core" in refusal_of(late, INNER).what


@pytest.mark.parametrize(
    "trips", [(), (DEADLINE,), (OUTER,), (INNER,), (WHOLE,), (INNER, DEADLINE)], ids=lambda trips: str(len(trips))
)
def test_what_people_are_told_is_what_is_done(trips: tuple[Trip, ...]) -> None:
    for line in allowances(trips):
        for name in line.what.split(", "):
            operations = [name] if name in WORKERS else [o for o, worker in WORKERS.items() if worker == name]
            for operation in operations:
                if line.note.startswith("for every other scope"):
                    stem = "cart-r2-a1"
                elif line.note.startswith("for later rounds"):
                    stem = "core-r3-a1"
                else:
                    stem = "core-r2-a3" if operation in BUILDS else operation
                assert may_dispatch(order(stem, operation), trips) is line.is_allowed, (line, operation)
    assert any(line.what == BUILDER for line in allowances(trips))


def test_the_first_trip_that_forbids_is_named() -> None:
    assert refusing_trip(BUILD, [INNER, DEADLINE]) == INNER
    assert refusing_trip(order("cart-r2-a1", "execute"), [INNER, DEADLINE]) == DEADLINE
