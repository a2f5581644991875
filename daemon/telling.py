"""What the log says of a judged result. Source: cli §3."""

from __future__ import annotations

from typing import Any

from daemon.log import Log
from parsers.faults import render_fault
from parsers.layout import path_of
from reducers.changes import EditTask
from reducers.run import Judgement
from reducers.task_index import TaskIndex

_EVENTS = {
    "applied": ("result.applied", "info"),
    "superseded": ("result.superseded", "info"),
    "adopted": ("result.adopted", "info"),
    "duplicate": ("result.duplicate", "info"),
    "rejected": ("result.rejected", "warn"),
    "tampered": ("artifact.tampered", "warn"),
    "pending": ("result.pending", "warn"),
}


def tell_judgement(log: Log, slug: str, path: str, judged: Judgement, ms: float | None) -> None:
    """One event for the result, then one for each thing it moved."""
    if judged.outcome == "abandoned":
        return
    event, level = _EVENTS[judged.outcome]
    fields: dict[str, Any] = {"path": path}
    if judged.faults:
        fields |= {"code": judged.code, "error": render_fault(judged.faults[0]), "errors": len(judged.faults)}
    if judged.warnings:
        fields["warnings"] = [fault.what for fault in judged.warnings]
    if judged.changes and not judged.faults:
        fields |= {key: value for key, value in judged.summary._asdict().items() if value}
    log.write(event, level=level, slug=slug, subject=judged.order_id, run_id=judged.run_id, ms=ms, **fields)
    if judged.outcome in ("applied", "superseded"):
        _tell_moves(log, slug, judged)


def _tell_moves(log: Log, slug: str, judged: Judgement) -> None:
    common: dict[str, Any] = {"slug": slug, "run_id": judged.run_id}
    summary = judged.summary
    if any(change.path == path_of("legs", slug) for change in judged.changes):
        log.write("order.answered", subject=judged.order_id, **common)
    for change in judged.changes:
        if isinstance(change, EditTask):
            log.write("task.updated", level="debug", subject=change.path, **common)
    for task_id in summary.unblocked:
        log.write("task.unblocked", subject=task_id, **common)
    if summary.discoveries_appended:
        log.write("discovery.recorded", subject=judged.order_id, count=summary.discoveries_appended, **common)
    if summary.verdict_lines:
        log.write("verdict.recorded", subject=judged.order_id, rows=summary.verdict_lines, **common)
    if summary.refuted_unticked:
        log.write("ac.unticked", subject=judged.order_id, count=summary.refuted_unticked, **common)


def tell_board(log: Log, slug: str, tasks: TaskIndex) -> None:
    """The board index was rewritten."""
    log.write("board.written", slug=slug, subject=slug, done=tasks.done, total=len(tasks))
