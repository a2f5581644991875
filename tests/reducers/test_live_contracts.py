"""Which orders are live, and what each lets be written. Source: rulings B1-B4, E2, L8, W-15."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from parsers.facts import OrderFact, read_order
from parsers.harness_run import parse_harness_run
from parsers.ledgers import IngestRow
from parsers.policy_file import Contract
from reducers.live_contracts import RunOrders, live_contracts

RUN = "cart-20260301T090000Z-0a1b2c3d"


def order(stem: str, at: str = "2026-03-01T10:00:00.000Z", /, **more: Any) -> OrderFact:
    value = {
        "schema_version": 1,
        "order_id": f"cart/{stem}",
        "compiled_at": at,
        "worker": "task-executor",
        "mode": "orchestrated",
        "operation": "execute",
        "substrate": {"allowed": [f"src/{stem}/**"], "frozen": ["spec/**"]},
        "payload": {},
    }
    fact = read_order(f".shapeup/cart/orders/{stem}.json", json.dumps(value | more).encode()).fact
    assert fact is not None
    return fact


def answer(fact: OrderFact, at: str = "2026-03-01T11:00:00.000Z", outcome: str = "applied") -> IngestRow:
    return IngestRow(None, fact.order.order_id, fact.sha256, "f" * 64, outcome, None, None, at)


def run_of(*orders: OrderFact, answers: tuple[IngestRow, ...] = (), **more: Any) -> RunOrders:
    records: dict[str, tuple[IngestRow, ...]] = {}
    for row in answers:
        records[row.order_id] = (*records.get(row.order_id, ()), row)
    return RunOrders(
        {fact.stem: fact for fact in orders}, records, **({"has_receipt": True, "run_id": RUN, "harness": None} | more)
    )


def harness(status: str, closed_at: str = "~") -> Any:
    text = f"---\ntype: harness-run\nstatus: {status}\nclosed_at: {closed_at}\n---\n"
    return parse_harness_run(text.encode(), "harness-run.md")


def states(contracts: tuple[Contract, ...]) -> dict[str, str]:
    told = {}
    for contract in contracts:
        words = ["answered"] * contract.answered + ["superseded"] * contract.superseded
        told[contract.order_id.removeprefix("cart/")] = " ".join(words) or "live"
    return told


def test_an_admitted_order_is_live_and_carries_its_substrate() -> None:
    (contract,) = live_contracts(run_of(order("core-r1-a1")))
    assert contract == Contract("cart/core-r1-a1", "execute", ("src/core-r1-a1/**",), frozen=("spec/**",))
    assert contract.is_constraining


def test_an_order_without_substrate_or_with_four_empty_lists_constrains_nothing() -> None:
    for substrate in (None, {}, {"allowed": []}):
        more = {} if substrate is None else {"substrate": substrate}
        fact = order("core-r1-a1", **more) if more else order("core-r1-a1", substrate={})
        assert not live_contracts(run_of(fact))[0].is_constraining


def test_an_answered_order_permits_until_a_newer_attempt_and_freezes_no_more() -> None:
    first, second = order("core-r1-a1"), order("core-r1-a2")
    (contract,) = live_contracts(run_of(first, answers=(answer(first),)))
    assert (contract.answered, contract.permits, contract.freezes) == (True, True, False)
    assert states(live_contracts(run_of(first, second, answers=(answer(first),)))) == {"core-r1-a2": "live"}


def test_an_order_that_died_is_superseded_by_the_next_attempt_and_still_freezes() -> None:
    contracts = live_contracts(run_of(order("core-r1-a1"), order("core-r1-a2"), order("other-r1-a1")))
    assert states(contracts) == {"core-r1-a1": "superseded", "core-r1-a2": "live", "other-r1-a1": "live"}
    assert (contracts[0].permits, contracts[0].freezes) == (False, True)


def test_a_newer_round_supersedes_and_another_scope_does_not() -> None:
    told = states(live_contracts(run_of(order("core-r1-a3"), order("core-r2-a1"), order("core-two-r1-a1"))))
    assert told == {"core-r1-a3": "superseded", "core-r2-a1": "live", "core-two-r1-a1": "live"}


def test_without_a_receipt_nothing_is_superseded() -> None:
    run = run_of(order("core-r1-a1"), order("core-r1-a2"), has_receipt=False, run_id=None)
    assert states(live_contracts(run)) == {"core-r1-a1": "live", "core-r1-a2": "live"}


def test_a_recompiled_order_is_live_again_although_its_old_result_was_applied() -> None:
    old, new = order("orient"), order("orient", "2026-03-02T10:00:00.000Z")
    assert states(live_contracts(run_of(new, answers=(answer(old),)))) == {"orient": "live"}


def test_a_refused_result_answers_nothing() -> None:
    fact = order("core-r1-a1")
    assert states(live_contracts(run_of(fact, answers=(answer(fact, outcome="rejected"),)))) == {"core-r1-a1": "live"}


def test_a_closed_run_has_no_live_order_and_a_running_one_has() -> None:
    for status in ("orienting", "mapping", "building", "evaluating"):
        assert live_contracts(run_of(order("core-r1-a1"), harness=harness(status)))
    for closed in (
        harness("shipped"),
        harness("escalated"),
        harness("building", "2026-03-01T12:00:00Z"),
        harness("odd"),
    ):
        assert not live_contracts(run_of(order("core-r1-a1"), harness=closed))


def test_standalone_orders_stay_open_whatever_harness_run_says() -> None:
    assert live_contracts(run_of(order("core-r1-a1"), has_receipt=False, run_id=None, harness=harness("shipped")))


def test_an_order_of_another_run_is_not_live() -> None:
    other = order("core-r1-a1", run_id="cart-20260201T090000Z-ffffffff")
    assert not live_contracts(run_of(other))
    assert live_contracts(run_of(order("core-r1-a1", run_id=RUN)))


def test_a_hammer_order_that_a_breaker_compiled_counts_once_it_is_dispatched() -> None:
    fact = order("hammer-deadline-r1", worker="scope-hammer", operation="hammer")
    assert not live_contracts(run_of(fact))
    assert live_contracts(run_of(fact, dispatched={"cart/hammer-deadline-r1"}))
    assert live_contracts(run_of(order("hammer", worker="scope-hammer", operation="hammer")))


def test_the_past_is_told_by_compile_and_ingest_times() -> None:
    first = order("core-r1-a1", "2026-03-01T10:00:00Z")
    second = order("core-r1-a2", "2026-03-01T12:00:00Z")
    run = run_of(
        first,
        second,
        answers=(answer(first, "2026-03-01T11:00:00Z"),),
        harness=harness("shipped", "2026-03-01T14:00:00Z"),
    )

    def at(hour: int) -> dict[str, str]:
        return states(live_contracts(run, datetime(2026, 3, 1, hour, 30, tzinfo=UTC)))

    assert at(9) == {}
    assert at(10) == {"core-r1-a1": "live"}
    assert at(11) == {"core-r1-a1": "answered"}
    assert at(12) == {"core-r1-a2": "live"}
    assert at(15) == {}


def test_an_order_that_names_no_operation_is_known_by_its_stem() -> None:
    def operation(stem: str) -> str:
        raw = {
            "schema_version": 1,
            "order_id": f"cart/{stem}",
            "worker": "task-executor",
            "mode": "standalone",
            "payload": {},
        }
        fact = read_order(f".shapeup/cart/orders/{stem}.json", json.dumps(raw).encode()).fact
        assert fact is not None
        return live_contracts(run_of(fact, has_receipt=False, run_id=None))[0].operation

    assert operation("core-r1-a1") == "execute"
    assert operation("map-scopes") == "map-scopes"
    assert operation("analyze-r2") == "analyze"
    assert operation("odd") == ""


def test_an_order_counts_from_its_landing_however_early_it_was_compiled() -> None:
    landed = {"core-r1-a1": datetime(2026, 3, 2, tzinfo=UTC)}
    run = run_of(order("core-r1-a1", "2026-03-01T10:00:00Z"), landed=landed)
    assert live_contracts(run, datetime(2026, 3, 1, 12, tzinfo=UTC)) == ()
    assert states(live_contracts(run, datetime(2026, 3, 2, 12, tzinfo=UTC))) == {"core-r1-a1": "live"}
    assert states(live_contracts(run)) == {"core-r1-a1": "live"}
