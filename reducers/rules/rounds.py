"""What a round may build, when a new one may begin, and when QA hunts. Source: protocol §9 R-07, R-10 to R-12, R-26, R-33, ruling F9."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from parsers.addresses import parse_address, scope_stem
from parsers.ledgers import IngestRow
from parsers.times import parse_time
from reducers.board import Scope, tasks_for_scope
from reducers.breakers import FAIL, PASS, stopped_rounds
from reducers.bugs import ScopeArea, is_fix
from reducers.rules.arrivals import OrderArrival, ResultArrival
from reducers.rules.evaluation import FINISHED, listed
from reducers.rules.findings import Finding
from reducers.rules.history import status_then
from reducers.rules.loop_facts import HUNTER, LoopFacts, is_green, newest_artifact, newest_overall, overall_of

_PROMOTED = re.compile(r"\bpromot(?:e|ed|ion|ing)\b", re.IGNORECASE)
HUNT = "hunt"
_RECONCILE = "reconcile"


def a_fix_round_builds_bugs_only(arrival: OrderArrival) -> Iterator[Finding]:
    """R-07, D-5. A scope that is not green yet may be built on in any round."""
    round_ = arrival.round
    if not arrival.is_build or round_ is None or round_ < 2 or is_fix(arrival.order):
        return
    newest = newest_artifact(arrival.facts, arrival.scope, arrival.stood, range(round_))
    if newest is not None and is_green(newest):
        told = f"scope {arrival.scope} is green by {newest.path}, and the order carries no bug"
        yield arrival.finds("R-07", told, "leave the scope out of this round, or compile the order with its bugs")


def qa_hunts_once_after_a_pass(arrival: OrderArrival) -> Iterator[Finding]:
    """R-10, D-8: not before a PASS, not after a FAIL, and once in a run."""
    if not arrival.is_hunt:
        return
    facts = arrival.facts
    overall = newest_overall(facts, arrival.in_time)
    if overall != PASS:
        told = "the newest verdict is a FAIL" if overall == FAIL else "nothing was evaluated yet"
        yield arrival.finds("R-10", f"{told}; QA hunts after a PASS", "wait for the PASS")
    others = [
        row.order_id
        for row in _hunts(facts)
        if row.order_sha256 != arrival.fact.sha256 and arrival.stood(facts.answered_at(row))
    ]
    if others:
        yield arrival.finds("R-10", f"this run was hunted already, by {others[0]}", "take the order back")


def a_run_is_hunted_once(arrival: ResultArrival) -> Iterator[Finding]:
    """R-10 for the answer: another hunt of the run was applied before."""
    if arrival.worker != HUNTER:
        return
    others = [row for row in _hunts(arrival.facts) if row.sha256 != arrival.fact.sha256]
    if others:
        told = f"this run was hunted already, by {others[0].order_id}"
        yield arrival.finds("R-10", told, "keep the findings of the first hunt")


def rounds_count_up_after_a_fail(arrival: OrderArrival) -> Iterator[Finding]:
    """R-11, F9: a promotion at L4 opens a round after a PASS as well. The round ledger says so in a row that speaks of one."""
    round_ = arrival.round
    if not arrival.is_of_loop or round_ is None or round_ < 2:
        return
    facts = arrival.facts
    if round_ > facts.max_rounds:
        told = f"round {round_} is beyond the {facts.max_rounds} rounds that the run has"
        yield arrival.finds("R-11", told, "go to GATE H with what is green")
    if arrival.is_evaluation and arrival.address.round is None:
        return  # the plain `evaluate` goes with whatever was built
    before = overall_of(facts, round_ - 1, arrival.in_time)
    if before is None:
        told = f"round {round_ - 1} has no verdict yet"
        yield arrival.finds("R-11", told, f"evaluate round {round_ - 1} first")
    elif before == PASS and not _is_promoted(facts, round_):
        told = f"round {round_ - 1} passed, and the round ledger promotes nothing into round {round_}"
        yield arrival.finds("R-11", told, "go on to QA and GATE H, or record what L4 promoted")


def stop_ends_the_loop(arrival: OrderArrival) -> Iterator[Finding]:
    """R-12. A later answer at L3 takes a `stop` back."""
    round_ = arrival.round
    if not arrival.is_of_loop or round_ is None:
        return
    rows = (row for row in arrival.facts.gates if arrival.stood(_at(row)))
    stopped = [stop for stop in stopped_rounds(rows, arrival.facts.run_id) if stop is not None and stop < round_]
    if stopped:
        told = f"L3 was answered `stop` in round {max(stopped)}"
        yield arrival.finds("R-12", told, "go to GATE H, or have L3 answered `loop`")


def dependencies_are_built_first(arrival: OrderArrival) -> Iterator[Finding]:
    """R-26. Tasks of the same order do not wait for each other; a fix repairs what was built in order once."""
    if not arrival.is_build or is_fix(arrival.order):
        return
    facts, payload = arrival.facts, arrival.order.payload
    own = {task.id for task in payload.tasks}
    needs: dict[str, None] = {}
    for task in payload.tasks:
        found = facts.tasks.find(task.id)
        needs |= dict.fromkeys(found[0].depends_on if len(found) == 1 else task.depends_on)
    undone = [need for need in needs if need not in own and not _is_finished(arrival, need)]
    if undone:
        told = f"its tasks depend on {listed(undone)}, not done yet"
        yield arrival.finds("R-26", told, "build these first")
    areas = {scope_stem(area.scope_id): area for area in facts.scopes}
    depends_on = payload.scope_contract.depends_on if payload.scope_contract else ()
    waiting = [
        need
        for need in depends_on
        if (area := areas.get(scope_stem(need))) and scope_stem(need) != arrival.scope and not _is_built(arrival, area)
    ]
    if waiting:
        told = f"scope {arrival.scope} depends on {listed(waiting)}, neither green nor finished yet"
        yield arrival.finds("R-26", told, "build these scopes first")


def discoveries_pause_the_loop(arrival: OrderArrival) -> Iterator[Finding]:
    """R-33, F9. What build rounds before this one discovered (`+`) is reconciled, or looked at again at L1b, before it begins."""
    round_ = arrival.round
    if not arrival.is_build or round_ is None or not arrival.facts.discovered:
        return
    moments = [(moment, order_id) for moment, order_id in _discoveries(arrival.facts, round_) if arrival.stood(moment)]
    open_ = sorted(order_id for moment, order_id in moments if not _is_taken_up(arrival, moment))
    if open_:
        told = f"what {listed(open_)} discovered was neither reconciled nor put to L1b since"
        yield arrival.finds("R-33", told, "compile a reconcile order, and cross L1b again")


def _hunts(facts: LoopFacts) -> Iterator[IngestRow]:
    """The applied results of QA hunts in this run."""
    for order_id in sorted(facts.records):
        order = facts.order_of(order_id)
        is_hunt = order.worker == HUNTER if order else parse_address(order_id).name == HUNT
        yield from facts.applied(order_id) if is_hunt else ()


def _discoveries(facts: LoopFacts, round_: int) -> Iterator[tuple[datetime | None, str]]:
    """The build orders of earlier rounds whose results discovered something, with when that was applied."""
    for order_id in facts.discovered:
        address = parse_address(order_id)
        if address.attempt is None or address.round is None or address.round >= round_:
            continue
        yield from ((facts.answered_at(row), order_id) for row in facts.applied(order_id)[-1:])


def _is_taken_up(arrival: OrderArrival, since: datetime | None) -> bool:
    """Whether a reconcile order was compiled, or L1b crossed, at that moment or after it."""
    reconciled = (
        parse_time(fact.order.compiled_at)
        for stem, fact in arrival.facts.orders.items()
        if (fact.order.operation == _RECONCILE or stem.startswith(_RECONCILE))
        and arrival.in_time(fact.order.compiled_at)
    )
    crossed = (parse_time(_at(row)) for row in arrival.facts.gates_of("L1b", None, arrival.in_time))
    return any(since is None or moment is None or moment >= since for moment in (*reconciled, *crossed))


def _is_finished(arrival: OrderArrival, task_id: str) -> bool:
    return any(status_then(arrival, task) in FINISHED for task in arrival.facts.tasks.find(task_id))


def _is_built(arrival: OrderArrival, area: ScopeArea) -> bool:
    """Whether a scope is green, or every task that it has is finished."""
    if is_green(newest_artifact(arrival.facts, scope_stem(area.scope_id), arrival.in_time)):
        return True
    tasks = tasks_for_scope(tuple(arrival.facts.tasks), Scope(area.scope_id, area.use_cases, False, False))
    return bool(tasks) and all(status_then(arrival, task) in FINISHED for task in tasks)


def _is_promoted(facts: LoopFacts, round_: int) -> bool:
    rounds = {str(round_), str(round_ - 1), "", "—"}
    return any(
        decision.round.strip() in rounds and _PROMOTED.search(f"{decision.question} {decision.answer}")
        for decision in facts.decisions
    )


def _at(row: object) -> str | None:
    at = row.get("at") if isinstance(row, dict) else None
    return at if isinstance(at, str) else None
