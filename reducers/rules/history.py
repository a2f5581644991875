"""What the board said at an earlier moment, as far as the results tell. Source: protocol §4.4."""

from __future__ import annotations

from datetime import datetime

from parsers.tasks import Task
from reducers.rules.arrivals import OrderArrival
from reducers.rules.loop_facts import LoopFacts

_BECOMES = {"done": "done", "partial": "in-progress", "failed": "in-progress"}


def status_then(arrival: OrderArrival, task: Task) -> str:
    """The task's status when the order landed: now, or in a look back what the results before it had made of it.

    A task that no result speaks of is as it stands; one that only later results speak of was not begun.
    """
    if not arrival.is_past or task.status == "cut":
        return task.status
    told = arrival.facts.statuses.get(task.id, ())
    before = [status for moment, status in told if arrival.stood(moment)]
    return before[-1] if before else ("ready" if told else task.status)


def statuses_told(facts: LoopFacts) -> dict[str, tuple[tuple[datetime | None, str], ...]]:
    """By task id what each applied result made of it and when, oldest first."""
    rows = []
    for order_id in facts.records:
        fact = facts.results.get(order_id.partition("/")[2])
        for row in facts.applied(order_id):
            if fact is not None and fact.sha256 == row.sha256:
                rows.append((str(row.at or ""), facts.answered_at(row), fact))
    told: dict[str, list[tuple[datetime | None, str]]] = {}
    for _, moment, fact in sorted(rows, key=lambda row: row[0]):
        for entry in fact.result.task_results:
            if entry.status in _BECOMES:
                told.setdefault(entry.task_id, []).append((moment, _BECOMES[entry.status]))
    return {task_id: tuple(entries) for task_id, entries in told.items()}
