"""When a round may be judged: on a finished board, once, and not while it is being built. Source: protocol §9 R-04 to R-06."""

from __future__ import annotations

from collections.abc import Iterator

from parsers.addresses import Address, parse_address, scope_stem
from parsers.tasks import Task
from parsers.times import parse_time
from reducers.board import Scope, tasks_for_scope
from reducers.rules.arrivals import OrderArrival
from reducers.rules.findings import Finding, finding
from reducers.rules.history import status_then
from reducers.rules.loop_facts import BUILDER, EVALUATE, LoopFacts, order_path, queued_scopes

FINISHED = frozenset({"done", "cut"})
_SHOWN = 5


def evaluation_needs_a_finished_board(arrival: OrderArrival) -> Iterator[Finding]:
    """R-04. Tasks of scopes that wait for GATE H do not hold it up. Interactively L2 decides: then it is a warning."""
    if not arrival.is_evaluation:
        return
    facts = arrival.facts
    unfinished = [task for task in facts.tasks if status_then(arrival, task) not in FINISHED]
    if unfinished and (queued := queued_scopes(facts)):
        waiting = {task.path for task in _tasks_of(facts, queued)}
        unfinished = [task for task in unfinished if task.path not in waiting]
    if not unfinished:
        return
    told = f"{len(unfinished)} of {len(facts.tasks)} tasks are not finished: {listed([task.id for task in unfinished])}"
    rows = facts.gates_of("L2", arrival.round, arrival.in_time)
    is_interactive = facts.config.auto_level in (None, "interactive")
    is_waved = is_interactive and any(row.get("decision") == "proceed" for row in rows)
    fix = "finish or cut these tasks first" + (", or cross L2 with `proceed`" if is_interactive else "")
    yield arrival.finds("R-04", told, fix, "warn" if is_waved else None)


def a_round_is_evaluated_once(arrival: OrderArrival) -> Iterator[Finding]:
    """R-05. After an applied verdict no further order of that round; one after a failed or escalated answer is legal."""
    order_id = arrival.order.order_id
    if not arrival.is_evaluation or arrival.address.round is None:
        return
    judged = [
        row
        for row in arrival.facts.applied(order_id)
        if row.verdict and row.order_sha256 != arrival.fact.sha256 and arrival.stood(arrival.facts.answered_at(row))
    ]
    if judged:
        told = f"round {arrival.address.round} was judged {judged[-1].verdict} already, and this order asks again"
        yield arrival.finds("R-05", told, "take the order back, or go on to the next round")


def evaluation_is_not_part_of_building(arrival: OrderArrival) -> Iterator[Finding]:
    """R-06. A build order whose scope waits for GATE H holds nothing up, nor one that a later attempt has superseded."""
    if not arrival.is_evaluation:
        return
    if (told := _judges_a_part(arrival.address)) is not None:
        yield arrival.finds("R-06", told, f"evaluate the whole round, as {EVALUATE}-r<N>")
        return
    building = _live_builds(arrival, arrival.round)
    if building:
        told = f"round {arrival.round} is still being built: {listed(building)}"
        yield arrival.finds("R-06", told, "wait for these results, or take their orders back")


def a_judged_round_is_not_dispatched_again(facts: LoopFacts) -> Iterator[Finding]:
    """R-05, of the whole run: a dispatch of an evaluate order after its verdict was applied."""
    for row in facts.dispatches:
        address = parse_address(row.order_id)
        at = parse_time(row.at)
        if address.name != EVALUATE or address.round is None or at is None or not facts.is_own(row.run_id):
            continue
        moments = (facts.answered_at(verdict) for verdict in facts.applied(row.order_id) if verdict.verdict)
        if any(moment and moment < at for moment in moments):
            told = f"it was dispatched again at {row.at}, after its round had been judged"
            path = order_path(facts, row.order_id)
            yield finding("R-05", row.order_id, path, told, "do not dispatch it; go on to the next round")


def _judges_a_part(address: Address) -> str | None:
    """What of the address says that one task, scope or attempt is judged; None where it is a whole round."""
    if address.attempt is not None:
        return f"it judges attempt {address.attempt} of {address.name or 'a round'}, not the round"
    if address.name and address.name.startswith(f"{EVALUATE}-"):
        return f"it judges {address.name.removeprefix(EVALUATE + '-')} alone"
    return None


def _live_builds(arrival: OrderArrival, round_: int | None) -> list[str]:
    """The build orders of the round that were there and are not answered, as order ids."""
    facts, queued = arrival.facts, queued_scopes(arrival.facts)
    newest: dict[str, tuple[int, str]] = {}
    for fact in facts.own_orders():
        address = parse_address(fact.order.order_id)
        if fact.order.worker != BUILDER or address.round != round_ or not arrival.stood(fact.order.compiled_at):
            continue
        scope = scope_stem(address.name or "")
        is_answered = facts.is_answered(fact, arrival.in_time)
        attempt = (address.attempt or 0, "" if is_answered else fact.order.order_id)
        newest[scope] = max(newest.get(scope, attempt), attempt)
    return sorted(order_id for scope, (_, order_id) in newest.items() if order_id and scope not in queued)


def _tasks_of(facts: LoopFacts, scopes: frozenset[str]) -> Iterator[Task]:
    """The tasks of these scopes. Source: protocol §10.6."""
    use_cases = {scope_stem(scope.scope_id): scope.use_cases for scope in facts.scopes}
    names = {scope_stem(task.scope_id): task.scope_id for task in facts.tasks if task.scope_id}
    tasks = tuple(facts.tasks)
    for scope in scopes:
        yield from tasks_for_scope(tasks, Scope(names.get(scope, scope), use_cases.get(scope, ()), False, False))


def listed(names: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
