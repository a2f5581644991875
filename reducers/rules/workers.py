"""Who did what: judge and builder are two, attempts are fresh, and answers have the form of their worker. Source: protocol §2.6, §9 R-15, R-34, R-35, R-39."""

from __future__ import annotations

from collections.abc import Iterator

from parsers.layout import path_of
from reducers.rules.arrivals import ResultArrival
from reducers.rules.findings import Finding, finding
from reducers.rules.loop_facts import BUILDER, EVALUATOR, HUNTER, LoopFacts


def the_judge_has_not_built(arrival: ResultArrival) -> Iterator[Finding]:
    """R-15: one agent is named by the dispatch receipts of this order and of one on the other side. Rights over fields are W-06's."""
    facts = arrival.facts
    other = {EVALUATOR: BUILDER, BUILDER: EVALUATOR}.get(arrival.worker)
    own = {row.agent_id for row in facts.dispatches if row.order_id == arrival.result.order_id and row.agent_id}
    if other is None or not own:
        return
    for row in facts.dispatches:
        order = facts.order_of(row.order_id)
        if row.agent_id in own and order is not None and order.worker == other and facts.is_own(row.run_id):
            told = f"agent {row.agent_id} also answered {row.order_id}, as {other}"
            yield arrival.finds("R-15", told, "have another agent answer this order")
            return


def qa_findings_can_be_reproduced(arrival: ResultArrival) -> Iterator[Finding]:
    """R-34. One finding for each discovery that is not `~` or has no repro."""
    if arrival.worker != HUNTER:
        return
    for at, discovery in enumerate(arrival.result.discoveries):
        place = f"$.discoveries[{at}]"
        if discovery.marker != "~":
            told = f"a QA finding has the marker `{discovery.marker}`"
            yield arrival.finds("R-34", told, "mark it `~`: what becomes of it is decided at L4", f"{place}.marker")
        elif not (discovery.repro or "").strip():
            told = "a QA finding says not how to reproduce it"
            yield arrival.finds("R-34", told, "write the steps into `repro`", f"{place}.repro")


def an_escalation_asks_something(arrival: ResultArrival) -> Iterator[Finding]:
    """R-39: its question is the first of `deviations`."""
    if arrival.result.status == "escalated" and not any(text.strip() for text in arrival.result.deviations[:1]):
        told = "it escalates and asks nothing"
        yield arrival.finds("R-39", told, "write the one question as the first of `deviations`", "$.deviations")


def each_attempt_has_a_fresh_agent(facts: LoopFacts) -> Iterator[Finding]:
    """R-35, of the whole run: one agent on the receipts of two build orders."""
    first: dict[str, str] = {}
    told: set[tuple[str, str]] = set()
    for row in facts.dispatches:
        order = facts.order_of(row.order_id)
        if not row.agent_id or order is None or order.worker != BUILDER or not facts.is_own(row.run_id):
            continue
        earlier = first.setdefault(row.agent_id, row.order_id)
        if earlier != row.order_id and (row.agent_id, row.order_id) not in told:
            told.add((row.agent_id, row.order_id))
            what = f"agent {row.agent_id} was dispatched for {earlier} before"
            path = path_of("dispatch", facts.slug)
            yield finding("R-35", row.order_id, path, what, "dispatch every attempt to a new agent")


def judges_and_builders_are_two(facts: LoopFacts) -> Iterator[Finding]:
    """R-15, of the whole run: one agent on the receipts of a build and of an evaluation."""
    built: dict[str, str] = {}
    judged: dict[str, str] = {}
    for row in facts.dispatches:
        order = facts.order_of(row.order_id)
        sides = {BUILDER: built, EVALUATOR: judged}
        if row.agent_id and order is not None and order.worker in sides and facts.is_own(row.run_id):
            sides[order.worker].setdefault(row.agent_id, row.order_id)
    for agent in sorted(built.keys() & judged.keys()):
        what = f"agent {agent} built {built[agent]} and judged {judged[agent]}"
        yield finding(
            "R-15", judged[agent], path_of("dispatch", facts.slug), what, "have another agent judge the round"
        )
