"""Judges an order as it is admitted. Source: protocol §9."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from parsers.facts import OrderFact
from reducers.rules.arrivals import OrderArrival
from reducers.rules.decisions import decisions_reach_later_orders
from reducers.rules.evaluation import (
    a_round_is_evaluated_once,
    evaluation_is_not_part_of_building,
    evaluation_needs_a_finished_board,
)
from reducers.rules.findings import Finding
from reducers.rules.gate_order import gates_are_crossed_in_order, nothing_is_built_before_l1b
from reducers.rules.loop_facts import LoopFacts, always
from reducers.rules.phases import phases_follow_each_other
from reducers.rules.rounds import (
    a_fix_round_builds_bugs_only,
    dependencies_are_built_first,
    discoveries_pause_the_loop,
    qa_hunts_once_after_a_pass,
    rounds_count_up_after_a_fail,
    stop_ends_the_loop,
)

ORDER_RULES: tuple[Callable[[OrderArrival], Iterator[Finding]], ...] = (
    evaluation_needs_a_finished_board,
    a_round_is_evaluated_once,
    evaluation_is_not_part_of_building,
    a_fix_round_builds_bugs_only,
    qa_hunts_once_after_a_pass,
    rounds_count_up_after_a_fail,
    stop_ends_the_loop,
    dependencies_are_built_first,
    phases_follow_each_other,
    nothing_is_built_before_l1b,
    gates_are_crossed_in_order,
    decisions_reach_later_orders,
    discoveries_pause_the_loop,
)


def judge_order(facts: LoopFacts, fact: OrderFact, at: datetime | None = None) -> tuple[Finding, ...]:
    """What the order leaves of the invariants; nothing of one that is answered, standalone, of another run, or without a run.

    `at`: when it landed, where that was not just now. `facts` may hold the order already. What breakers refuse (R-13, R-14) is
    told by `after_trip`.
    """
    if facts.is_answered(fact, always):
        return ()
    return _judge(OrderArrival(facts, fact, at))


def judge_past_order(facts: LoopFacts, fact: OrderFact, at: datetime | None) -> tuple[Finding, ...]:
    """The same of an order that was given in the past, by what was on record then. `at` None: nobody knows when."""
    return _judge(OrderArrival(facts, fact, at, is_past=True))


def _judge(arrival: OrderArrival) -> tuple[Finding, ...]:
    order, facts = arrival.order, arrival.facts
    if not facts.has_receipt or order.mode != "orchestrated" or not facts.is_own(order.run_id):
        return ()
    return tuple(found for rule in ORDER_RULES for found in rule(arrival))
