"""Judges a run as a whole, by everything on record: what stands against it now. Source: protocol §9 (P4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from parsers.facts import OrderFact
from parsers.times import parse_time
from reducers.rules.decisions import answers_are_promoted_in_time, consent_has_a_name
from reducers.rules.evaluation import a_judged_round_is_not_dispatched_again
from reducers.rules.evidence import (
    a_restored_tree_is_named,
    green_was_measured_and_answered,
    trials_and_artifacts_correspond,
)
from reducers.rules.findings import Finding
from reducers.rules.gate_order import h_comes_before_l4
from reducers.rules.history import statuses_told
from reducers.rules.loop_facts import LoopFacts
from reducers.rules.orders import judge_past_order
from reducers.rules.phases import a_phase_leaves_its_artifact
from reducers.rules.results import judge_result
from reducers.rules.shipping import (
    a_deployment_was_decided,
    a_pass_was_judged,
    a_shipping_board_is_ticked,
    done_comes_from_a_result,
)
from reducers.rules.workers import each_attempt_has_a_fresh_agent, judges_and_builders_are_two

RUN_RULES: tuple[Callable[[LoopFacts], Iterator[Finding]], ...] = (
    a_judged_round_is_not_dispatched_again,
    judges_and_builders_are_two,
    trials_and_artifacts_correspond,
    a_restored_tree_is_named,
    green_was_measured_and_answered,
    done_comes_from_a_result,
    h_comes_before_l4,
    answers_are_promoted_in_time,
    consent_has_a_name,
    each_attempt_has_a_fresh_agent,
    a_phase_leaves_its_artifact,
    a_pass_was_judged,
    a_deployment_was_decided,
    a_shipping_board_is_ticked,
)


def judge_run_loop(facts: LoopFacts, reports: Mapping[str, str] = MappingProxyType({})) -> tuple[Finding, ...]:
    """The standing findings of a run, sorted by rule: of its orders as they were given, of its applied results, of the whole.

    `reports`: the texts of evaluation reports, by the stem of the result that names them.
    """
    facts = facts._replace(statuses=statuses_told(facts))
    found = [*_of_orders(facts), *_of_results(facts, reports), *(one for rule in RUN_RULES for one in rule(facts))]
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.rule, one.path, one.subject)))


def _of_orders(facts: LoopFacts) -> Iterator[Finding]:
    for fact in sorted(facts.orders.values(), key=compiled_order):
        yield from judge_past_order(facts, fact, parse_time(fact.order.compiled_at) or facts.landed.get(fact.stem))


def compiled_order(fact: OrderFact) -> tuple[str, str]:
    """The order in which a run's orders were given."""
    return fact.order.compiled_at or "", fact.stem


def _of_results(facts: LoopFacts, reports: Mapping[str, str]) -> Iterator[Finding]:
    for stem, fact in facts.results.items():
        if any(row.sha256 == fact.sha256 for row in facts.applied(fact.result.order_id)):
            found = judge_result(facts, fact, facts.order_of(fact.result.order_id), reports.get(stem, ""))
            yield from (one for one in found if one.rule != "R-15")  # told once, of the run
