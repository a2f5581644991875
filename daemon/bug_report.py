"""Writes what a bug leaves behind: one event with a ready report in the log. Source: cli §1 (exit 70)."""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from pathlib import Path

from daemon.clock import now
from daemon.log import Log, render_line
from daemon.place import find_place
from daemon.version import VERSION


def report_bug(log: Log, bug: BaseException, doing: str) -> None:
    """Logs a bug that one part of the daemon survives. `doing` says at what, as in `settling run checkout`."""
    log.write("daemon.error", level="error", detail=doing, error=_headline(bug), code="E-BUG", report=_report(bug))


def write_report(bug: BaseException, words: list[str], start: Path | None) -> str:
    """The path of the file that holds the report: the repository's log, else a fresh file in the temporary folder."""
    report = {"command": ["shapeupd", *words], **_report(bug)}
    return _into_log(bug, report, start) or _into_temporary_file({"error": _headline(bug), **report})


def _headline(bug: BaseException) -> str:
    return f"{type(bug).__name__}: {bug}"


def _report(bug: BaseException) -> dict[str, object]:
    return {
        "version": VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "traceback": "".join(traceback.format_exception(bug)),
    }


def _into_log(bug: BaseException, report: dict[str, object], start: Path | None) -> str | None:
    try:
        place = find_place(start)
    except OSError:
        return None
    if place.git_dir is None and not place.local.is_dir():
        return None  # no repository of ours: leave no tree in a stranger's folder
    log = Log(place.local, now)
    log.write("daemon.error", level="error", error=_headline(bug), code="E-BUG", report=report)
    log.close()
    return None if log.lost else os.fspath(place.log)


def _into_temporary_file(report: dict[str, object]) -> str:
    try:
        descriptor, path = tempfile.mkstemp(prefix="shapeupd-bug-", suffix=".json")
        with os.fdopen(descriptor, "w") as file:
            file.write(render_line(report))
    except OSError as error:
        return f"no file ({error.strerror}); set TMPDIR and run it again"
    return path
