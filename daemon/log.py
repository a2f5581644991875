"""Writes the daemon log: JSON lines in `.shapeup/shapeupd.log`, rotated, and the same events on stderr. Source: cli §3, ruling L6.

Anyone may delete, truncate or rotate the file under us, and several processes may write it; a log that
cannot be written never stops the work it tells about.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TextIO

from daemon.clock import iso
from daemon.events import EVENTS
from daemon.render_log import render_row

LEVELS = ("debug", "info", "warn", "error")
NAME = "shapeupd.log"
MEGABYTE = 10**6

Row = dict[str, object]


class Console:
    """Prints events for a person or, as JSON, for a collector."""

    def __init__(self, stream: TextIO, *, as_json: bool, color: bool) -> None:
        self.stream = stream
        self.as_json = as_json
        self.color = color

    def show(self, row: Row, line: str) -> None:
        text = line if self.as_json else render_row(row, color=self.color) + "\n"
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            pass  # the terminal went away; the file still has it


def console_for(log_format: str, stream: TextIO | None = None) -> Console:
    """The console of `--log-format auto|console|json`; auto means console on a terminal and in the journal, else json."""
    out = stream if stream is not None else sys.stderr
    on_terminal = out.isatty()
    as_json = log_format == "json" or (log_format == "auto" and not on_terminal and "JOURNAL_STREAM" not in os.environ)
    color = (on_terminal and "NO_COLOR" not in os.environ) or os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0")
    return Console(out, as_json=as_json, color=color)


class Log:
    """Appends events; safe to call from any thread. `counters` counts every event by name, shown or not.

    `folder` is the LOCAL root of the repository (`.shapeup`); it is created when it is missing. `clock`
    gives the time of an event. Rows below `level` are counted and not written. `max_bytes` is where the
    file is rotated, `keep` how many old ones stay (0: the full file is dropped).
    """

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], datetime],
        *,
        level: str = "info",
        max_bytes: int = 20 * MEGABYTE,
        keep: int = 5,
        console: Console | None = None,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.lost = 0  # rows that could not be written to the file
        self._folder = folder
        self._clock = clock
        self._threshold = LEVELS.index(level)
        self._max_bytes = max_bytes
        self._keep = keep
        self._console = console
        self._descriptor = -1
        self._torn = False
        self._guard = threading.RLock()

    def write(
        self,
        event: str,
        *,
        level: str = "info",
        slug: str | None = None,
        subject: str | None = None,
        run_id: str | None = None,
        ms: float | None = None,
        **fields: object,
    ) -> Row:
        """The row that was logged. `ms` is milliseconds from landing to durable; own fields follow the common ones."""
        if event not in EVENTS:
            raise ValueError(f"{event!r} is not in the vocabulary of daemon/events.py")
        row: Row = {"at": iso(self._clock()), "level": level, "event": event}
        row |= {"slug": slug, "subject": subject, "run_id": run_id}
        if ms is not None:
            row["ms"] = round(ms, 3)
        row |= {key: value for key, value in fields.items() if key not in row}
        with self._guard:
            self.counters[event] += 1
            if LEVELS.index(level) >= self._threshold:
                line = render_line(row)
                self._append(line.encode("ascii"))
                if self._console is not None:
                    self._console.show(row, line)
        return row

    def close(self) -> None:
        with self._guard:
            self._drop()

    def _drop(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _append(self, data: bytes) -> None:
        """One write(2) per row, so that rows of several processes never mix."""
        try:
            self._open_current()
            if os.fstat(self._descriptor).st_size + len(data) > self._max_bytes:
                self._rotate(len(data))
            if self._torn:
                data = b"\n" + data
            self._torn = os.write(self._descriptor, data) != len(data)
        except OSError:
            self.lost += 1

    def _open_current(self) -> None:
        """Opens the file unless the one we hold is still the one that carries the name."""
        if self._descriptor >= 0:
            if self._is_current():
                return
            self._drop()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._descriptor = _open_plain(self._folder, NAME)
        size = os.fstat(self._descriptor).st_size
        self._torn = size > 0 and os.pread(self._descriptor, 1, size - 1) != b"\n"

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.lstat(self._folder / NAME))
        except FileNotFoundError:
            return False

    def _rotate(self, incoming: int) -> None:
        """shapeupd.log -> .1 -> … -> .N, once, however many processes want it. An empty file is never rotated."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        held = os.fstat(self._descriptor)
        if self._is_current() and held.st_size > 0 and held.st_size + incoming > self._max_bytes:
            folder = _open_folder(self._folder)
            try:
                self._shift(folder)
            finally:
                os.close(folder)
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self._open_current()

    def _shift(self, folder: int) -> None:
        if self._keep == 0:
            os.unlink(NAME, dir_fd=folder)
            return
        for number in range(self._keep - 1, -1, -1):
            source = f"{NAME}.{number}" if number else NAME
            try:
                os.rename(source, f"{NAME}.{number + 1}", src_dir_fd=folder, dst_dir_fd=folder)
            except FileNotFoundError:
                pass


def render_line(row: Row) -> str:
    """The row as one line of ASCII JSON: no value can end the line or speak to a terminal."""
    try:
        return json.dumps(row, default=str, separators=(",", ":")) + "\n"
    except (ValueError, TypeError, RecursionError):
        plain = {key: value if isinstance(value, str | int | None) else repr(value) for key, value in row.items()}
        return json.dumps(plain, separators=(",", ":")) + "\n"


def _open_folder(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _open_plain(folder: Path, name: str) -> int:
    """A descriptor of a regular file in a real folder; agents can write there, so links and pipes are refused."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    parent = _open_folder(folder)
    try:
        descriptor = os.open(name, flags, 0o644, dir_fd=parent)
    finally:
        os.close(parent)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{name} is not a plain file")
    return descriptor
