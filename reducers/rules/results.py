"""Judges a result as it is ingested. Source: protocol §9.

Whose it is and whether its fields are its worker's to return (R-01, R-02, R-03, the first half of R-15) is settled before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from parsers.addresses import parse_address
from parsers.envelopes import WorkOrder
from parsers.facts import ResultFact
from reducers.rules.arrivals import ResultArrival
from reducers.rules.evidence import a_verdict_cites_what_was_measured
from reducers.rules.findings import Finding
from reducers.rules.loop_facts import BUILDER, LoopFacts
from reducers.rules.rounds import a_run_is_hunted_once
from reducers.rules.verdicts import a_verdict_is_coherent, reopened_use_cases_are_run_again, what_passed_is_left_alone
from reducers.rules.workers import an_escalation_asks_something, qa_findings_can_be_reproduced, the_judge_has_not_built

RESULT_RULES: tuple[Callable[[ResultArrival], Iterator[Finding]], ...] = (
    what_passed_is_left_alone,
    reopened_use_cases_are_run_again,
    a_run_is_hunted_once,
    the_judge_has_not_built,
    a_verdict_is_coherent,
    a_verdict_cites_what_was_measured,
    qa_findings_can_be_reproduced,
    an_escalation_asks_something,
)


def asks_for_facts(fact: ResultFact, order: WorkOrder | None) -> bool:
    """False for the plain answer of a first-round build: no rule speaks of it, whatever the run's facts are."""
    result = fact.result
    round_ = parse_address(result.order_id).round
    is_plain = order is not None and order.worker == BUILDER and round_ is not None and round_ < 2
    return not is_plain or result.verdict is not None or result.status == "escalated"


def judge_result(facts: LoopFacts, fact: ResultFact, order: WorkOrder | None, report: str = "") -> tuple[Finding, ...]:
    """What the result leaves of the invariants. `order` None: no order of it stands there.

    `facts.artifacts` must be read afresh for a result with a verdict. `report`: the text at `verdict.report_path`, where it is an
    evaluation report of this run.
    """
    arrival = ResultArrival(facts, fact, order, report)
    return tuple(found for rule in RESULT_RULES for found in rule(arrival))
