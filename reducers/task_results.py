"""Task results: ticks, status, execution log, un-ticks and unblocking of task files. Source: protocol §4.4, §4.5, §4.7."""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from parsers.domain import RefutedAc, TaskResult
from parsers.facts import ResultFact
from parsers.markdown import decode
from parsers.tasks import (
    Edit,
    SetKey,
    Task,
    apply_edits,
    block_edit,
    box_edits,
    match_boxes,
    parse_boxes,
    parse_task,
)
from parsers.times import render_date
from reducers.changes import EditTask
from reducers.run import Run

AMBIGUOUS = "two task files answer to this id"
_STATUS = {"done": "done", "partial": "in-progress", "failed": "in-progress"}
_FORGED_HEADING = re.compile(r"(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]) {0,3}(?=#)")


class TaskOutcome(NamedTuple):
    """What the task part of a result did to the board. `is_known`: at least one task that it speaks of exists."""

    is_known: bool
    edits: tuple[EditTask, ...]
    updated: tuple[str, ...]
    ticked: int
    unblocked: tuple[str, ...]
    unticked: int
    misses: tuple[str, ...]


class Drafts:
    """Task files as this reduction has edited them so far: later entries see what earlier ones did."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._was: dict[str, bytes] = {}
        self._now: dict[str, bytes] = {}
        self._edits: dict[str, list[Edit]] = {}

    def text(self, path: str) -> str:
        """The file as drafted. Raises Unreadable for a link or a pipe in its place."""
        if path not in self._now:
            data = self._run.tree.read(path) or b""
            self._was[path] = self._now[path] = data
        return decode(self._now[path])

    def edit(self, path: str, *edits: Edit) -> None:
        """Carry out edits on the draft."""
        self.text(path)
        self._now[path] = apply_edits(self._now[path], edits)
        self._edits.setdefault(path, []).extend(edits)

    def statuses(self) -> dict[str, str]:
        """The drafted status of every task edited so far, by path."""
        return {path: parse_task(path, self._now[path])[0].status for path in self._edits}

    def changes(self) -> tuple[EditTask, ...]:
        """The drafts that differ from the files, in the order they were first edited."""
        return tuple(
            EditTask(path, tuple(edits), self._was[path], self._now[path])
            for path, edits in self._edits.items()
            if self._now[path] != self._was[path]
        )


def reduce_tasks(run: Run, fact: ResultFact, now: datetime) -> TaskOutcome:
    """The edits of a result's task entries, of its refutations, and of the tasks they unblock."""
    drafts = Drafts(run)
    updated: list[str] = []
    misses: list[str] = []
    ticked = 0
    for entry in fact.result.task_results or ():
        task = _only(run, entry.task_id, misses)
        if task:
            ticked += _book(drafts, task, entry, fact, now, misses)
            updated.append(entry.task_id)
    refuted = fact.result.verdict.refuted if fact.result.verdict else None
    unblocked = _unblock(run, drafts)
    unticked = sum(_refute(run, drafts, item, now, misses) for item in refuted or ())
    is_known = bool(updated) or any(len(run.tasks.find(item.task_id)) == 1 for item in refuted or ())
    return TaskOutcome(is_known, drafts.changes(), tuple(updated), ticked, unblocked, unticked, tuple(misses))


def _only(run: Run, task_id: str, misses: list[str]) -> Task | None:
    found = run.tasks.find(task_id)
    if len(found) == 1:
        return found[0]
    misses.append(f"{task_id}: {AMBIGUOUS if found else 'no such task'}")
    return None


def _book(drafts: Drafts, task: Task, entry: TaskResult, fact: ResultFact, now: datetime, misses: list[str]) -> int:
    """Tick, set the status, add the log block; returns how many criteria found their box."""
    boxes = parse_boxes(drafts.text(task.path))
    criteria = entry.ac_results or ()
    places = match_boxes(boxes, [ac.ac for ac in criteria])
    hits = [place for ac, place in zip(criteria, places, strict=True) if ac.result == "pass" and place is not None]
    misses.extend(
        f"{entry.task_id}: no box for {ac.ac!r}"
        for ac, place in zip(criteria, places, strict=True)
        if ac.result == "pass" and place is None
    )
    edits: list[Edit] = [*box_edits(boxes, [place for place in hits if not boxes[place].ticked], True)]
    status = _STATUS.get(entry.status)
    if status:
        edits.append(SetKey("status", status))
    if status == "done":
        edits.append(SetKey("completed_at", render_date(now)))
    drafts.edit(task.path, *edits)
    drafts.edit(task.path, block_edit(drafts.text(task.path), log_block(entry, fact, now)))
    return len(hits)


def log_block(entry: TaskResult, fact: ResultFact, now: datetime) -> str:
    """The Execution Log block of one task entry. Source: protocol §4.4 step 3, ruling L7."""
    lines = [f"- {ac.ac}: {ac.result}" + (f" ({ac.evidence})" if ac.evidence else "") for ac in entry.ac_results or ()]
    notes = f"\n- notes: {entry.notes}" if entry.notes else ""
    body = [
        f"- executor: {fact.result.worker or 'task-executor'} via ingest-result",
        f"- status: {entry.status}",
        "\n".join(lines) + notes,
    ]
    heading = f"## Execution Log — {render_date(now)} ({fact.result.order_id})"
    return f"\n\n{heading}\n{inert(chr(10).join(body))}\n"


def inert(text: str) -> str:
    """Text from a result in which no line but ours can start a heading: a leading `#` is indented. Source: ruling L7.

    A line begins wherever any reader of the file may see one: LF, CR, and the rarer ends that other languages split on.
    """
    return _FORGED_HEADING.sub("    ", text)


def _unblock(run: Run, drafts: Drafts) -> tuple[str, ...]:
    unblocked = run.tasks.unblocked_by(drafts.statuses())
    for task in unblocked:
        drafts.edit(task.path, SetKey("status", "ready"))
    return tuple(task.id for task in unblocked)


def _refute(run: Run, drafts: Drafts, item: RefutedAc, now: datetime, misses: list[str]) -> int:
    """Un-tick one refuted criterion and mark the task; its status stays: the judge neither opens nor closes a task."""
    task = _only(run, item.task_id, misses)
    if task is None:
        return 0
    boxes = parse_boxes(drafts.text(task.path))
    (place,) = match_boxes(boxes, [item.ac], prefer_ticked=True)
    edits: list[Edit] = [] if place is None else [*box_edits(boxes, [place], False)]
    if place is None:
        misses.append(f"{item.task_id}: no box for refuted {item.ac!r}")
    drafts.edit(task.path, *edits, SetKey("eval_verdict", "fail"), SetKey("eval_at", render_date(now)))
    return 0 if place is None else 1
