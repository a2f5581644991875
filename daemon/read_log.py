"""Reads the log back: across its rotated files, filtered, and following it whatever happens to the file. Source: ruling L6, cli §2.

Standard library only and no daemon needed: this is what one reads when the daemon is down.
"""

from __future__ import annotations

import json
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, NamedTuple

from daemon.log import NAME, Row

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BLOCK_BYTES = 1 << 16
_GUARD_BYTES = 64


class Wanted(NamedTuple):
    """Which rows to show; None means every one. `since` is an aware time, `event` a glob such as `result.*`."""

    event: str | None = None
    slug: str | None = None
    since: datetime | None = None

    def matches(self, row: Row) -> bool:
        if self.event is not None and not fnmatchcase(str(row.get("event")), self.event):
            return False
        if self.slug is not None and row.get("slug") != self.slug:
            return False
        return self.since is None or not self._is_older(row)

    def _is_older(self, row: Row) -> bool:
        """Whether the row is known to lie before `since`."""
        try:
            at = datetime.fromisoformat(str(row.get("at")))
            return self.since is not None and at < self.since
        except (ValueError, TypeError):
            return True


def parse_since(text: str, now: datetime) -> datetime:
    """An aware time from `90s`, `10m`, `2h`, `1d`, `1w` (ago) or an ISO time, local where it names no zone."""
    unit = _UNITS_S.get(text[-1:])
    if unit is not None and text[:-1].isdecimal():
        return now - timedelta(seconds=int(text[:-1]) * unit)
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC)


def read_log(folder: Path, wanted: Wanted, last: int | None = None, end: int | None = None) -> tuple[Row, ...]:
    """The matching rows of all log files in the order they were written; only the `last` ones where that is given.

    `end` is where to stop in the current file, in bytes; None reads all of it.
    """
    found: deque[Row] = deque()
    for number, path in enumerate(log_files(folder)):
        for line in _lines_backwards(path, end if number == 0 else None):
            if last is not None and len(found) >= last:
                return tuple(found)
            row = _parse(line)
            if row is not None and wanted.matches(row):
                found.appendleft(row)
    return tuple(found)


def log_files(folder: Path) -> tuple[Path, ...]:
    """The log's files, newest first: shapeupd.log, .1, .2 …"""
    numbered = []
    for path in folder.glob(NAME + ".*"):
        suffix = path.name.removeprefix(NAME + ".")
        if suffix.isdecimal() and path.is_file():
            numbered.append((int(suffix), path))
    return (folder / NAME, *(path for _, path in sorted(numbered)))


def follow_log(folder: Path, wanted: Wanted, wait: Callable[[float], bool], last: int = 10) -> Iterator[Row]:
    """The `last` matching rows, then each new one as it lands, until `wait(seconds)` returns true.

    Follows rotation (the rest of the old file first) and truncation or replacement by anyone.
    """
    tail = _Tail(folder)
    try:
        yield from read_log(folder, wanted, last, end=tail.offset)
        while True:
            for line in tail.read():
                row = _parse(line)
                if row is not None and wanted.matches(row):
                    yield row
            if wait(0.1):
                return
    finally:
        tail.close()


class _Tail:
    """What was appended since the last look. Starts at the present end of the log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self.offset = 0
        self._seen = b""  # the last bytes consumed; when they are no longer there, the file was rewritten
        self._rest = b""
        self._open(folder / NAME, at_end=True)

    def read(self) -> Iterator[bytes]:
        """The complete lines that are new."""
        yield from self._drain()
        for path in self._newer_files():
            self._open(path, at_end=False)
            yield from self._drain()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _newer_files(self) -> list[Path]:
        """The files written after the one we hold, oldest first; empty while ours is the current one."""
        if self._file is None:
            return [self._folder / NAME]
        held = os.fstat(self._file.fileno())
        newer: list[Path] = []
        for path in log_files(self._folder):
            try:
                if os.path.samestat(held, path.stat()):
                    return newer[::-1]
            except FileNotFoundError:
                continue
            newer.append(path)
        current = self._folder / NAME  # ours is gone altogether: go on with the current one, once there is one
        return [current] if current in newer else []

    def _open(self, path: Path, *, at_end: bool) -> None:
        self.close()
        self._file = _open_plain(path)
        if self._file is None:
            return
        self.offset, self._seen, self._rest = 0, b"", b""
        if at_end:
            self.offset = os.fstat(self._file.fileno()).st_size
            self._seen = self._before(self.offset)

    def _before(self, offset: int) -> bytes:
        assert self._file is not None
        start = max(0, offset - _GUARD_BYTES)
        return os.pread(self._file.fileno(), offset - start, start)

    def _drain(self) -> Iterator[bytes]:
        if self._file is None:
            return
        size = os.fstat(self._file.fileno()).st_size
        if size < self.offset or self._before(self.offset)[-len(self._seen) :] != self._seen:
            self.offset, self._rest = 0, b""
        while block := os.pread(self._file.fileno(), _BLOCK_BYTES, self.offset):
            self.offset += len(block)
            *lines, self._rest = (self._rest + block).split(b"\n")
            yield from lines
        self._seen = self._before(self.offset)


def _open_plain(path: Path) -> BinaryIO | None:
    """The file, opened; None where none is or where something else stands (a pipe would hold the reader for ever)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb", buffering=0)


def _lines_backwards(path: Path, end: int | None) -> Iterator[bytes]:
    """The lines of the file, last first, read in blocks so that `-n 10` of a large log stays cheap."""
    file = _open_plain(path)
    if file is None:
        return
    with file:
        size = os.fstat(file.fileno()).st_size
        position = size if end is None else min(end, size)
        rest = b""
        while position > 0:
            start = max(0, position - _BLOCK_BYTES)
            first, *lines = (os.pread(file.fileno(), position - start, start) + rest).split(b"\n")
            yield from reversed(lines)
            position, rest = start, first
        yield rest


def _parse(line: bytes) -> Row | None:
    """The row; None for what is no event: a torn line, or something a person wrote into the file."""
    if not line.strip():
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and "event" in row else None
