"""What the board says of itself: keys, edges, anchors. Source: protocol §5.2, §1.7."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from parsers.js_text import js_json
from reducers.board import derive_unlocks, use_case_id
from reducers.lint_spec.facts import BoardTask, SpecFacts
from reducers.lint_spec.findings import Finding, finding

UNANCHORED = frozenset({"spike", "chore", "docs", "migration"})  # types of task that need no use case


def lint_board(facts: SpecFacts) -> Iterator[Finding]:
    """Task by task: its keys, its edges, its anchor."""
    ids = {one.task.id for one in facts.tasks}
    cases = {case.id for case in facts.use_cases}
    unlocks = derive_unlocks([one.task for one in facts.tasks])
    for one in facts.tasks:
        yield from lint_keys(one, ids)
        yield from lint_edges(one, unlocks[one.task.id])
        yield from lint_task_anchor(one, cases)


def lint_keys(one: BoardTask, ids: Collection[str]) -> Iterator[Finding]:
    """TASK: no status, or a dependency on a task that is not there."""
    task = one.task
    if not task.status:
        what, fix = f"{task.path} has no status", "write `status: ready` (or in-progress, blocked, done, cut)"
        yield finding("TASK", "red", task.path, what, fix)
    for need in task.depends_on:
        if need not in ids:
            what, fix = f"{task.id} depends on {need}, which does not exist", "correct `depends_on:`"
            yield finding("TASK", "red", one.at("depends_on"), what, fix)


def lint_edges(one: BoardTask, derived: Sequence[str]) -> Iterator[Finding]:
    """EDGE-SYMMETRY: `unlocks` is not the inverse of `depends_on`."""
    task = one.task
    if sorted(task.unlocks) != list(derived):
        what = f"{task.id} unlocks {js_json(list(task.unlocks))}, and depends_on of the others gives {js_json(list(derived))}"
        fix = f"write `unlocks: [{', '.join(derived)}]`"
        yield finding("EDGE-SYMMETRY", "red", one.at("unlocks"), what, fix)


def lint_task_anchor(one: BoardTask, cases: Collection[str]) -> Iterator[Finding]:
    """UC-ANCHOR: a task that names no use case, or one that has no file."""
    task = one.task
    if one.type in UNANCHORED:
        return
    if not task.use_case_refs:
        what, fix = f"{task.id} names no use case: use_case_refs is empty", "write `use_case_refs: [UC-…]`"
        yield finding("UC-ANCHOR", "red", one.at("use_case_refs"), what, fix)
    for ref in task.use_case_refs:
        if use_case_id(ref) not in cases:
            what = f'{task.id} names use case "{ref}", which does not exist'
            fix = f"add spec/usecases/{use_case_id(ref)}.md or correct `use_case_refs:`"
            yield finding("UC-ANCHOR", "red", one.at("use_case_refs"), what, fix)
