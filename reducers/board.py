"""The board as a view: index rows that follow the task files, and the board document people and scripts read. Source: protocol §5.1, §10.6, D-7.

Pure functions of the tasks; the daemon writes the index only where its bytes would differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from parsers.board import (
    BoardIndex,
    add_rows,
    create_index,
    is_created,
    parse_index,
    planners_text,
    row_of,
    set_statuses,
)
from parsers.tasks import Task
from reducers.task_index import TaskIndex

if TYPE_CHECKING:
    from parsers.envelopes import WorkOrder


def derive_index(index: BoardIndex | None, slug: str, tasks: TaskIndex, changed: Iterable[Task] | None) -> BoardIndex:
    """The index that tells what the task files say; `index` None: none stands there, so one is made.

    `changed` None looks at every task. The same object comes back where nothing differs.
    """
    if index is None:
        return parse_index(create_index(slug, tasks))
    # Where two files claim one id, both are looked at, so that the row does not depend on which of them changed last.
    looked_at = tuple(tasks) if changed is None else tuple(twin for task in changed for twin in tasks.find(task.id))
    missing = [task for task in looked_at if row_of(index, task) is None]
    if missing:
        index = add_rows(index, missing)
    return set_statuses(index, looked_at, tasks.done, len(tasks))


INDEX_BASE = "index-base.md"  # in the journal folder: the planner's index as it was before our first row


def standing_index(data: bytes | None, base: bytes | None) -> bytes | None:
    """The index to go on from: what stands there, else the kept one where it is gone or a power cut left nothing of it."""
    return data if data is not None and data.strip(b"\0\r\n\t ") else base if base is not None else data


def needs_base(data: bytes, base: bytes | None) -> bool:
    """Whether the planner's text in this index is not kept yet; an index that we made holds none."""
    return not is_created(data) and (base is None or planners_text(base) != planners_text(data))


class Scope(NamedTuple):
    """A scope as far as the board needs it. `has_result`: an order that carried its contract was answered."""

    scope_id: str
    use_cases: tuple[str, ...]
    is_finished: bool
    has_result: bool


def scopes_of(orders: Mapping[str, WorkOrder], answered: frozenset[str], finished: frozenset[str]) -> tuple[Scope, ...]:
    """The scopes that the orders' contracts name, by id. `answered` are stems with a result, `finished` scope ids whose
    hill shard says FINISHED."""
    found: dict[str, Scope] = {}
    for stem in sorted(orders):
        contract = orders[stem].payload.scope_contract
        if contract is None:
            continue
        before = found.get(contract.scope_id)
        has_result = stem in answered or bool(before and before.has_result)
        is_finished = contract.scope_id in finished
        found[contract.scope_id] = Scope(contract.scope_id, tuple(contract.use_cases), is_finished, has_result)
    return tuple(found[scope_id] for scope_id in sorted(found))


def use_case_id(text: str) -> str:
    """A use case's id however it is linked: `[[usecases/UC-A.md]]` is `UC-A`. Source: protocol §10.6."""
    bare = text.strip().removeprefix("[[").removesuffix("]]")
    return bare.removeprefix("usecases/").removesuffix(".md")


def tasks_for_scope(tasks: Sequence[Task], scope: Scope) -> tuple[Task, ...]:
    """The tasks of a scope: by their own stamp first, then unstamped ones that share a use case. Source: protocol §10.6."""
    wanted = {use_case_id(ref) for ref in scope.use_cases}
    shares = [task for task in tasks if wanted & {use_case_id(ref) for ref in task.use_case_refs}]
    if not scope.scope_id or not any(task.scope_id for task in tasks):
        return tuple(shares)
    stamped = [task for task in tasks if task.scope_id == scope.scope_id]
    return (*stamped, *(task for task in shares if not task.scope_id))


def derive_unlocks(tasks: Sequence[Task]) -> dict[str, list[str]]:
    """The inverse of depends_on over known ids, each list sorted. Source: protocol §5.1."""
    unlocks: dict[str, list[str]] = {task.id: [] for task in tasks}
    for task in tasks:
        for need in task.depends_on:
            if need in unlocks and task.id not in unlocks[need]:
                unlocks[need].append(task.id)
    return {task_id: sorted(ids) for task_id, ids in unlocks.items()}


class CriticalPath(NamedTuple):
    """The longest chain of work: its hours and its task ids in order; (0, ()) when no task states hours."""

    hours: float
    chain: tuple[str, ...]


def critical_path(tasks: Sequence[Task]) -> CriticalPath:
    """The longest sum of estimated_hours along depends_on; a cycle counts as 0, ties keep the first. Source: protocol §5.1."""
    by_id: dict[str, Task] = {}
    for task in tasks:
        by_id.setdefault(task.id, task)
    longest: dict[str, tuple[float, str | None]] = {}  # id → hours up to it, and the task before it on the way
    for start in by_id:
        _walk(start, by_id, longest)
    best = max(longest, key=lambda task_id: longest[task_id][0], default=None)
    if best is None or longest[best][0] <= 0:
        return CriticalPath(0, ())
    chain: list[str] = []
    at: str | None = best
    while at is not None:
        chain.append(at)
        at = longest[at][1]
    return CriticalPath(longest[best][0], tuple(reversed(chain)))


def _walk(start: str, by_id: Mapping[str, Task], longest: dict[str, tuple[float, str | None]]) -> None:
    """Post-order without recursion: a board can be a chain of ten thousand tasks."""
    stack = [start]
    open_: set[str] = set()
    while stack:
        task_id = stack[-1]
        needs = [need for need in by_id[task_id].depends_on if need in by_id]
        waiting = [need for need in needs if need not in longest and need not in open_]
        if task_id not in longest and waiting and task_id not in open_:
            open_.add(task_id)
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        open_.discard(task_id)
        if task_id not in longest:
            known = [(longest[need][0], need) for need in needs if need in longest]
            most = max(known, key=lambda pair: pair[0], default=(0.0, None))
            before = most[1] if most[0] > 0 else None
            longest[task_id] = (by_id[task_id].estimated_hours + most[0], before)


def derive_waves(tasks: Sequence[Task]) -> dict[str, int]:
    """The wave each task can be built in, from 1: one more than the latest of its dependencies; 0 inside a cycle."""
    ids = {task.id for task in tasks}
    waves: dict[str, int] = {}
    left = {task.id: {need for need in task.depends_on if need in ids} for task in tasks}
    wave = 1
    while ready := [task_id for task_id, needs in left.items() if not needs]:
        for task_id in ready:
            waves[task_id] = wave
            del left[task_id]
        done = set(ready)
        for needs in left.values():
            needs -= done
        wave += 1
    return waves | dict.fromkeys(left, 0)


def reduce_board(
    slug: str, tasks: Sequence[Task], acs: Mapping[str, tuple[int, int]], scopes: Sequence[Scope]
) -> dict[str, object]:
    """The `board --json` document. `acs` is (done, total) by task path. Source: rulings J, protocol §5.1."""
    unlocks, waves, path = derive_unlocks(tasks), derive_waves(tasks), critical_path(tasks)
    return {
        "schema": 1,
        "slug": slug,
        "tasks": [
            {
                "id": task.id,
                "title": task.title,
                "status": task.status,
                "scope_id": task.scope_id,
                "wave": waves[task.id],
                "acs": dict(zip(("done", "total"), acs.get(task.path, (0, 0)), strict=True)),
                "depends_on": list(task.depends_on),
                "unlocks": unlocks[task.id],
            }
            for task in tasks
        ],
        "critical_path": {"hours": path.hours, "chain": list(path.chain)},
        "drift": [
            {"scope_id": scope.scope_id, "task_id": task.id, "status": task.status}
            for scope in scopes
            if scope.is_finished
            for task in tasks_for_scope(tasks, scope)
            if task.status != "done"
        ],
        "undispatched": _undispatched(tasks, scopes),
        "stuck": _stuck(tasks, waves),
        "unmet": _unmet(tasks, acs),
    }


def _undispatched(tasks: Sequence[Task], scopes: Sequence[Scope]) -> list[dict[str, str]]:
    """Scopes with a done task and no answered order: someone closed it by hand (BOARD-UNDISPATCHED)."""
    return [
        {"rule": "BOARD-UNDISPATCHED", "scope_id": scope.scope_id}
        for scope in scopes
        if not scope.has_result and any(task.status == "done" for task in tasks_for_scope(tasks, scope))
    ]


def _unmet(tasks: Sequence[Task], acs: Mapping[str, tuple[int, int]]) -> list[dict[str, object]]:
    """Done tasks with criteria that nobody reported as passed: the worker said done, not the boxes. Source: R-43."""
    return [
        {"task_id": task.id, "open": total - done}
        for task in tasks
        for done, total in (acs.get(task.path, (0, 0)),)
        if task.status == "done" and done < total
    ]


def _stuck(tasks: Sequence[Task], waves: Mapping[str, int]) -> list[dict[str, str]]:
    """Blocked tasks that nothing will ever unblock. Source: W-29."""
    ids = {task.id for task in tasks}
    found = []
    for task in tasks:
        if task.status != "blocked":
            continue
        unknown = [need for need in task.depends_on if need not in ids]
        if not task.depends_on:
            found.append({"task_id": task.id, "why": "blocked, but depends on nothing"})
        elif waves[task.id] == 0:
            found.append({"task_id": task.id, "why": "waits on a cycle of dependencies"})
        elif unknown:
            found.append({"task_id": task.id, "why": f"waits on unknown {', '.join(unknown)}"})
    return found


_SHARD = re.compile(r"^phase:[ \t]*FINISHED[ \t]*\r?$", re.MULTILINE)


def is_finished(shard: str) -> bool:
    """Whether a hill shard says FINISHED."""
    return _SHARD.search(shard) is not None
