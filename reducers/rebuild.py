"""Rebuild: the shared state a run's journal and task files call for, and where the disk differs. Source: ruling D2, targets 5."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from parsers.board import parse_index, render_index
from parsers.layout import path_of
from parsers.tree import DictTree, Tree
from reducers.board import INDEX_BASE, derive_index, standing_index
from reducers.entries import AppendEntry, EditEntry, Entry, complete_appends, roll_forward
from reducers.identity import APPLIED
from reducers.task_index import TaskIndex


class Repair(NamedTuple):
    """A file that would change: what it is now (None: it is missing) and what it should be."""

    path: str
    was: bytes | None
    now: bytes


def rebuild_run(tree: Tree, slug: str, entries: Iterable[Entry], *, write_index: bool = True) -> tuple[Repair, ...]:
    """The repairs that make task files, ledgers and the board index what the journal says; empty when they are.

    A task file takes the edits since the newest text the journal knows of it, each where it is absent; ledgers take each
    row they lack; the index follows the task files.
    """
    edits: dict[str, list[EditEntry]] = {}
    appends: dict[str, list[AppendEntry]] = {}
    has_applied = False
    for entry in entries:
        has_applied |= entry.cause.outcome in APPLIED
        for step in entry.steps:
            if isinstance(step, EditEntry):
                edits.setdefault(step.path, []).append(step)
            else:
                appends.setdefault(step.path, []).append(step)
    wanted = {path: roll_forward(tree.read(path), _since_base(steps)) for path, steps in edits.items()}
    for path, adds in appends.items():
        wanted[path] = _completed(tree.read(path) or b"", adds)
    repairs = [Repair(path, tree.read(path), now) for path, now in wanted.items() if now is not None]
    if write_index:
        repairs += _index_repair(tree, slug, wanted, has_applied=has_applied)
    return tuple(repair for repair in repairs if repair.was != repair.now)


def _since_base(steps: Sequence[EditEntry]) -> Sequence[EditEntry]:
    last = max((at for at, step in enumerate(steps) if step.base is not None), default=0)
    return steps[last:]


def _completed(data: bytes, steps: Sequence[AppendEntry]) -> bytes:
    missing = complete_appends(data, steps, is_whole=True)
    return data if missing is None else data[: missing[0]] + missing[1]


def _index_repair(tree: Tree, slug: str, wanted: dict[str, bytes | None], *, has_applied: bool) -> list[Repair]:
    path = path_of("board-index", slug)
    tasks = TaskIndex.read(tree, slug)
    changed = DictTree({path: data for path, data in wanted.items() if data is not None})
    for task_path in changed.files:
        if tasks.get(task_path) or task_path.startswith(path.rsplit("/", 1)[0] + "/"):
            tasks.look(changed, task_path)
    data = tree.read(path)
    if not len(tasks) or (data is None and not has_applied):
        return []
    text = standing_index(data, tree.read(path_of("journal", slug, INDEX_BASE)))
    index = derive_index(None if text is None else parse_index(text), slug, tasks, None)
    return [Repair(path, data, render_index(index))]
