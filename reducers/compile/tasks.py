"""The tasks an order carries: one by id, the next that is ready, or those of a scope. Source: protocol §2.5, §2.7 TaskRef, §10.6, rulings B6, C9."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from parsers.addresses import scope_stem
from parsers.tasks import Box, Task
from reducers.board import Scope, tasks_for_scope, use_case_id
from reducers.bugs import ScopeArea
from reducers.compile.request import Contract

DONE, CUT, READY = "done", "cut", "ready"


def next_task(tasks: Iterable[Task]) -> Task | None:
    """The ready task of the lowest priority number whose every dependency is done; ties go by path. An unknown dependency is none that is done."""
    known = [task for task in tasks if task.has_frontmatter]
    done = {task.id for task in known if task.status == DONE}
    ready = (task for task in known if task.status == READY and set(task.depends_on) <= done)
    return min(ready, key=lambda task: (task.priority, task.path), default=None)


def scope_tasks(tasks: Sequence[Task], contract: Contract) -> tuple[Task, ...]:
    """The scope's tasks but those that were cut.

    A contract that names no use case, and whose scope no task is stamped with, takes the tasks that it lists itself (recorded
    runs do, H2); one that lists none takes every task that is open.
    """
    area = contract.area
    stamped = [task._replace(scope_id=_spelled_as(task.scope_id, area.scope_id)) for task in tasks]
    found = tasks_for_scope(stamped, Scope(area.scope_id, area.use_cases, False, False))
    if not found and not area.use_cases:
        listed = contract.tasks
        found = tuple(task for task in tasks if (task.id in listed if listed else task.status != DONE))
    return tuple(task for task in found if task.status != CUT)


def _spelled_as(named: str | None, scope_id: str) -> str | None:
    return scope_id if named and scope_stem(named) == scope_stem(scope_id) else named


def owners_of(task: Task, contracts: Iterable[Contract], *, is_stamped: bool) -> tuple[str, ...]:
    """The scopes that the task belongs to: the one it is stamped with, else those that share a use case with it or list it. Sorted.

    `is_stamped`: some task of the board is.
    """
    if is_stamped and task.scope_id:
        own = (one.area.scope_id for one in contracts)
        return tuple(scope for scope in own if scope_stem(scope) == scope_stem(task.scope_id or ""))
    refs = {use_case_id(ref) for ref in task.use_case_refs}
    return tuple(
        sorted(
            one.area.scope_id
            for one in contracts
            if refs & {use_case_id(ref) for ref in one.area.use_cases}
            or (not one.area.use_cases and task.id in one.tasks)
        )
    )


def partition_conflicts(tasks: Sequence[Task], areas: Sequence[ScopeArea]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Tasks that several scopes claim, with those scopes in their order: two orders would build the same task. Source: corpus scopePartitionConflicts."""
    claims: dict[str, list[str]] = {}
    for area in areas:
        for task in tasks_for_scope(tasks, Scope(area.scope_id, area.use_cases, False, False)):
            claims.setdefault(task.id, []).append(area.scope_id)
    return tuple((task.id, tuple(claims[task.id])) for task in tasks if len(claims.get(task.id, ())) > 1)


def task_rows(tasks: Iterable[Task], criteria: Mapping[str, Sequence[Box]], root: str) -> list[dict[str, object]]:
    """The tasks as orders carry them, keys in the order of the record."""
    return [task_row(task, criteria.get(task.path, ()), root) for task in tasks]


def task_row(task: Task, boxes: Sequence[Box], root: str) -> dict[str, object]:
    """One TaskRef. `body_path` is absolute; a criterion that covers requirements is {text, covers}, any other its text."""
    return {
        "id": task.id,
        "title": task.title,
        "status": task.status,
        "priority": task.priority,
        "depends_on": list(task.depends_on),
        "use_case_refs": list(task.use_case_refs),
        **({"scope_id": task.scope_id} if task.scope_id else {}),
        "body_path": f"{root}/{task.path}",
        "acceptance_criteria": [
            {"text": box.text, "covers": list(box.covers)} if box.covers else box.text for box in boxes
        ],
    }
