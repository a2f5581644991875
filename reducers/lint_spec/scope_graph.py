"""How scopes hang together: tasks, use cases, dependencies, requirements. Source: protocol §5.2, §10.6, W-32."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from parsers.frontmatter import scalar_text
from parsers.tasks import Task
from reducers.board import Scope, tasks_for_scope, use_case_id
from reducers.lint_spec.facts import BoardTask, ScopeFacts, SpecFacts
from reducers.lint_spec.findings import Finding, finding

_REQUIREMENT = re.compile(r"REQ-[A-Z0-9-]+")
_REGISTERED = re.compile(r"\bREQ-[A-Z0-9-]+", re.ASCII)


def partition_conflicts(tasks: Sequence[Task], scopes: Sequence[Scope]) -> dict[str, tuple[str, ...]]:
    """By task id, the scopes that claim it, where there are several."""
    claims: dict[str, list[str]] = {}
    for scope in scopes:
        for task in tasks_for_scope(tasks, scope):
            claims.setdefault(task.id, []).append(scope.scope_id)
    return {task_id: tuple(ids) for task_id, ids in claims.items() if len(ids) > 1}


def lint_partition(facts: SpecFacts) -> Iterator[Finding]:
    """SCOPE-PARTITION: a task that several scopes claim."""
    scopes = [Scope(scope.scope_id, scope.use_cases, False, False) for scope in facts.live_scopes]
    by_id: dict[str, BoardTask] = {one.task.id: one for one in reversed(facts.tasks)}
    for task_id, ids in partition_conflicts([one.task for one in facts.tasks], scopes).items():
        what = f"{task_id} is claimed by {len(ids)} scopes ({', '.join(ids)})"
        fix = "write `scope_id:` into the task, or let each scope have its own use cases"
        yield finding("SCOPE-PARTITION", "red", by_id[task_id].at("use_case_refs"), what, fix, "+".join(ids))


def lint_anchors(facts: SpecFacts) -> Iterator[Finding]:
    """TIER-DIRECTION for a `tasks` key, SCOPE-ANCHOR, scope by scope."""
    known = {case.id for case in facts.use_cases}
    for scope in facts.scopes:
        yield from lint_tasks_key(scope)
        yield from lint_anchor(scope, known)


def lint_tasks_key(scope: ScopeFacts) -> Iterator[Finding]:
    """TIER-DIRECTION: a contract that lists tasks."""
    if tasks := scope.contract.keys.get("tasks"):
        what = (
            f"the key `tasks` lists board ids: {', '.join(tasks) if isinstance(tasks, tuple) else scalar_text(tasks)}"
        )
        fix = "drop the key: name use cases, and tasks find their scope by them or by scope_id"
        yield finding("TIER-DIRECTION", "red", scope.at("tasks"), what, fix, scope.scope_id)


def lint_anchor(scope: ScopeFacts, known: Collection[str]) -> Iterator[Finding]:
    """SCOPE-ANCHOR: no use case, or one that has no file."""
    if not scope.use_cases:
        what = f"scope {scope.scope_id} names no use case: `use_cases` is empty"
        fix = "write `use_cases: [UC-…]`, each one a file below spec/usecases/"
        yield finding("SCOPE-ANCHOR", "red", scope.at("use_cases"), what, fix, scope.scope_id)
    for written in scope.use_cases:
        if (case := use_case_id(written)) not in known:
            what = f'use case "{case}" of scope {scope.scope_id} does not exist'
            fix = f"add spec/usecases/{case}.md or correct `use_cases:`"
            yield finding("SCOPE-ANCHOR", "red", scope.at("use_cases"), what, fix, scope.scope_id)


def lint_dependencies(scopes: Sequence[ScopeFacts]) -> Iterator[Finding]:
    """SCOPE-DEPS: a scope that waits for itself, for one that is not there, or in a circle."""
    by_id = {scope.scope_id: scope for scope in reversed(scopes)}
    for scope in scopes:
        for need in scope.contract.texts("depends_on"):
            if need == scope.scope_id:
                what = f"depends_on names the scope itself, {need}"
            elif need not in by_id:
                what = f'depends_on names "{need}", and no scope has that id'
            else:
                continue
            yield finding("SCOPE-DEPS", "red", scope.at("depends_on"), what, "correct `depends_on:`", scope.scope_id)
    edges = {
        scope_id: [n for n in scope.contract.texts("depends_on") if n in by_id] for scope_id, scope in by_id.items()
    }
    for cycle in cycles_of([scope.scope_id for scope in scopes], edges):
        what = f"depends_on runs in a circle: {' → '.join((*cycle, cycle[0]))}"
        fix = "take one of these dependencies away, or make the scopes one"
        yield finding("SCOPE-DEPS", "red", by_id[cycle[0]].at("depends_on"), what, fix, cycle[0])


def cycles_of(nodes: Sequence[str], edges: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """The cycles that one walk in this order meets, each once, from the member that was met first. No recursion."""
    done: set[str] = set()
    told: set[frozenset[str]] = set()
    for start in nodes:
        path: list[str] = []
        stack = [(start, iter(edges[start]))] if start not in done else []
        place = {start: 0}
        path += [start] if stack else []
        while stack:
            need = next(stack[-1][1], None)
            if need is None:
                done.add(path.pop())
                del place[stack.pop()[0]]
            elif need in place:
                cycle = tuple(path[place[need] :])
                if frozenset(cycle) not in told:
                    told.add(frozenset(cycle))
                    yield cycle
            elif need not in done:
                place[need] = len(path)
                path.append(need)
                stack.append((need, iter(edges[need])))


def lint_covers(facts: SpecFacts) -> Iterator[Finding]:
    """SCOPE-COVERS: what is no requirement id, or an id that is not registered."""
    registered = None if facts.requirements is None else frozenset(_REGISTERED.findall(facts.requirements))
    for scope in facts.scopes:
        for written in scope.contract.texts("covers"):
            item = written.upper()
            if not _REQUIREMENT.fullmatch(item):
                what, fix = f'covers names "{written}", which is no requirement id', "write ids such as REQ-1"
                yield finding("SCOPE-COVERS", "warn", scope.at("covers"), what, fix, scope.scope_id)
            elif registered is not None and item not in registered:
                what = f'covers names "{written}", and requirements.md has no such id'
                fix = "register the requirement, or correct `covers:`"
                yield finding("SCOPE-COVERS", "red", scope.at("covers"), what, fix, scope.scope_id)
