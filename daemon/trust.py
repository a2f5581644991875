"""Which contracts this machine runs by itself, by the hash of their bytes. Source: rulings A2, A4, cli §2.

The list lies outside every repository: no branch and no file of a pull can put itself on it. It is believed only where it is ours
alone to write; where it is not, nothing is trusted. A contract is trusted for the repository it was trusted in: the
same bytes in a stranger's clone run a stranger's code.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from daemon.journal import fsync
from parsers.facts import sha256_of
from parsers.ledgers import parse_rows, render_row
from parsers.markdown import encode
from parsers.times import render_time

LIST = "trusted.jsonl"
_LOCK = "trusted.lock"
_MAX_BYTES = 16 << 20
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class NotOurs(Exception):
    """The list, or its folder, is not ours alone to write; the text says what is wrong and what to do."""


class Trusted(NamedTuple):
    """One contract as it was trusted: when, in which repository (its main worktree), at which path, with which bytes."""

    at: str
    root: str
    path: str
    sha256: str


def state_folder() -> Path:
    """`$XDG_STATE_HOME/shapeupd`; a relative value counts as none, as the specification of these folders says."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return Path(base if os.path.isabs(base) else os.path.expanduser("~/.local/state")) / "shapeupd"


def is_trusted(root: Path, data: bytes) -> bool:
    """Whether a contract of these bytes may run by itself in this repository. False where the list cannot be believed."""
    try:
        rows = read_trusted(root)
    except (NotOurs, OSError):
        return False
    return any((row.root, row.sha256) == (os.fspath(root), sha256_of(data)) for row in rows)


def read_trusted(root: Path | None = None) -> tuple[Trusted, ...]:
    """The list, oldest first; empty where there is none. `root`: a repository that must not hold it. Raises NotOurs, OSError."""
    try:
        with _folder(root) as fd:
            return _read(fd)
    except FileNotFoundError:
        return ()


def trust(root: Path, contracts: Mapping[str, bytes], now: datetime) -> tuple[Trusted, ...]:
    """Put the contracts (path to bytes) on the list; the rows for them, old ones as they stand. Raises NotOurs, OSError, FsyncFailed."""
    wanted = [Trusted(render_time(now), os.fspath(root), path, sha256_of(data)) for path, data in contracts.items()]

    def add(rows: tuple[Trusted, ...]) -> tuple[Trusted, ...]:
        known = {row[1:] for row in rows}
        return (*rows, *(row for row in wanted if row[1:] not in known))

    rows = _change(root, add)
    names = {row[1:] for row in wanted}
    return tuple(row for row in rows if row[1:] in names)


def distrust(root: Path, words: Iterable[str]) -> tuple[Trusted, ...]:
    """Take off what the words name: a contract's path in this repository, or the start of a hash. Raises NotOurs, OSError, FsyncFailed."""
    named = tuple(words)
    gone: list[Trusted] = []

    def drop(rows: tuple[Trusted, ...]) -> tuple[Trusted, ...]:
        gone.extend(row for row in rows if any(_is_named(row, root, word) for word in named))
        return tuple(row for row in rows if row not in gone)

    _change(root, drop)
    return tuple(gone)


def _is_named(row: Trusted, root: Path, word: str) -> bool:
    is_path = row.root == os.fspath(root) and row.path == word
    return is_path or (len(word) >= 8 and row.sha256.startswith(word))


def _change(root: Path, edit: Callable[[tuple[Trusted, ...]], tuple[Trusted, ...]]) -> tuple[Trusted, ...]:
    """Edit the list under its lock; it is replaced as a whole."""
    folder = state_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    with _folder(root) as fd:
        lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = _read(fd)
            after = edit(before)
            if after != before:
                _write(fd, after)
        finally:
            os.close(lock)
    return after


@contextmanager
def _folder(root: Path | None) -> Iterator[int]:
    """The state folder, open. Raises NotOurs, FileNotFoundError."""
    folder = state_folder()
    real = Path(os.path.realpath(folder))
    if root is not None and real.is_relative_to(os.path.realpath(root)):
        raise NotOurs(f"{folder} lies in the repository itself\n  fix: set XDG_STATE_HOME to a folder outside of it")
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except NotADirectoryError:
        raise NotOurs(f"{folder} is a link or a file\n  fix: put a folder of your own there") from None
    try:
        _check(os.fstat(fd), folder)
        yield fd
    finally:
        os.close(fd)


def _check(status: os.stat_result, path: Path) -> None:
    if status.st_uid != os.geteuid():
        raise NotOurs(f"{path} belongs to another user\n  fix: remove it, or make it yours")
    if status.st_mode & _OTHERS_WRITE:
        raise NotOurs(f"{path} may be written by others\n  fix: look at what it holds, then: chmod go-w {path}")


def _read(fd: int) -> tuple[Trusted, ...]:
    path = state_folder() / LIST
    try:
        file = os.open(LIST, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise NotOurs(f"{path} cannot be read: {error.strerror}\n  fix: remove it, and trust again") from None
    with os.fdopen(file, "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            raise NotOurs(f"{path} is no plain file of this list\n  fix: remove it, and trust again")
        _check(status, path)
        return tuple(row for raw in parse_rows(stream.read()) if (row := _row(raw)))


def _row(raw: Mapping[str, object]) -> Trusted | None:
    values = [raw.get(key) for key in Trusted._fields]
    return Trusted(*map(str, values)) if all(isinstance(value, str) for value in values) else None


def _write(fd: int, rows: Iterable[Trusted]) -> None:
    temp = f".{LIST}.new"
    try:
        os.unlink(temp, dir_fd=fd)
    except FileNotFoundError:
        pass
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temp, flags, 0o600, dir_fd=fd), "wb") as stream:
        stream.write(b"".join(encode(render_row(row._asdict())) for row in rows))
        stream.flush()
        fsync(stream.fileno(), LIST)
    os.rename(temp, LIST, src_dir_fd=fd, dst_dir_fd=fd)
    fsync(fd, "the state folder")
