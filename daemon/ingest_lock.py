"""The run's write lock `.ingest.lock/`, the protocol's own: the node kernel and shapeupd never write at once. Source: protocol §4.2."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from daemon.disk import open_folder
from parsers.layout import path_of
from parsers.times import render_time

STALE_MS = 30_000
OWNER = "owner.json"
OURS = "shapeupd-"
THIS_PROCESS = OURS + os.urandom(8).hex()  # a pid comes again, in a container at every start


class IngestLock:
    """One run's lock. `take` never waits: the caller comes back, so that one locked run delays no other.

    `holds_repository` False: a command that does not hold the repository's own lock, so a daemon may live beside it.
    """

    def __init__(self, root: Path, slug: str, now: Callable[[], datetime], *, holds_repository: bool = True) -> None:
        self._root = root
        self._parent, _, self._name = path_of("ingest-lock", slug).rpartition("/")[0].rpartition("/")
        self._now = now
        self._holds_repository = holds_repository

    def take(self) -> bool:
        """Whether the lock is ours now; a stale one of a dead process on this host is broken first."""
        with open_folder(self._root, self._parent) as run:
            if not _make(run, self._name) and not (self._break_stale(run) and _make(run, self._name)):
                return False
            owner = {
                "pid": os.getpid(),
                "at": render_time(self._now()),
                "host": socket.gethostname(),
            }
            if self._holds_repository:
                owner["by"] = THIS_PROCESS  # whoever holds the repository next knows that we are dead
            try:
                self._write_owner(run, json.dumps(owner).encode())
            except OSError:
                pass  # best effort: the folder is the lock, the owner only tells whom to ask
            return True

    def _write_owner(self, run: int, data: bytes) -> None:
        with _opened(self._name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, run) as lock:
            with _opened(OWNER, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, lock) as file:
                os.write(file, data)

    def release(self) -> None:
        """Give the lock back."""
        try:
            with open_folder(self._root, self._parent) as run:
                with _opened(self._name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, run) as lock:
                    try:
                        os.unlink(OWNER, dir_fd=lock)
                    except FileNotFoundError:
                        pass
                os.rmdir(self._name, dir_fd=run)
        except FileNotFoundError:
            pass  # somebody wiped the run's folder meanwhile

    def _owner_at(self, run: int) -> dict[str, object]:
        try:
            with _opened(self._name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, run) as lock:
                with _opened(OWNER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, lock) as file:
                    value = json.loads(os.read(file, 4096))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def _break_stale(self, run: int) -> bool:
        """Break a lock only when it is old AND its owner is dead, on this host, and still the one that was judged.

        One that shapeupd itself left on this host is dead at once for whoever holds the repository: no other shapeupd
        lives that could be writing. A command beside a daemon asks for the process as well.
        """
        try:
            status = os.stat(self._name, dir_fd=run, follow_symlinks=False)
        except FileNotFoundError:
            return True
        owner = self._owner_at(run)
        age_ms = self._now().timestamp() * 1000 - status.st_mtime * 1000
        host = owner.get("host")
        by = str(owner.get("by"))
        is_left_by_us = by.startswith(OURS) and by != THIS_PROCESS
        if not self._holds_repository:
            is_left_by_us = is_left_by_us and not _is_alive(owner.get("pid"))
        if host not in (None, socket.gethostname()):
            return False
        if not is_left_by_us and (age_ms <= STALE_MS or _is_alive(owner.get("pid"))):
            return False
        if self._owner_at(run) != owner:
            return False
        shutil.rmtree(self._name, ignore_errors=True, dir_fd=run)
        return True


def _make(run: int, name: str) -> bool:
    try:
        os.mkdir(name, dir_fd=run)
    except FileExistsError:
        return False
    return True


@contextmanager
def _opened(name: str, flags: int, folder: int) -> Iterator[int]:
    fd = os.open(name, flags | os.O_CLOEXEC, 0o644, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def _is_alive(pid: object) -> bool:
    """Whether a process with this pid lives; one that we may not signal counts as alive."""
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
