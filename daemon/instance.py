"""One daemon per repository, held by flock on a file that is never unlinked. Source: rulings L4, targets 10.

The kernel drops the lock with the process, so nothing the file says can keep a daemon out; its pid is for people.
"""

from __future__ import annotations

import fcntl
import json
import os
from datetime import datetime
from pathlib import Path

from daemon.clock import iso
from daemon.place import Place
from daemon.version import VERSION


class Held(Exception):
    """Another daemon holds this repository. `pid` is what its lock file says; None when it says nothing readable."""

    def __init__(self, lock: Path, pid: int | None) -> None:
        super().__init__(f"another daemon holds {lock} (pid {pid if pid is not None else 'unknown'})")
        self.lock = lock
        self.pid = pid


class Instance:
    """The held lock; `release` (or the end of the process) gives it up."""

    def __init__(self, descriptors: tuple[int, ...]) -> None:
        self._descriptors = descriptors

    def release(self) -> None:
        descriptors, self._descriptors = self._descriptors, ()
        for descriptor in descriptors:
            os.close(descriptor)

    def __enter__(self) -> Instance:
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()


def hold_instance(place: Place) -> Instance:
    """The lock of this repository, taken now. Raises Held where another process has it, OSError where no lock can be."""
    if place.git_dir is not None:
        return Instance((_lock_file(place.lock),))
    # Outside git the file lies in the tree that anyone may wipe, so the folder above it is locked as well.
    root = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _flock(root, place.lock)
        place.local.mkdir(exist_ok=True)
        return Instance((_lock_file(place.lock), root))
    except BaseException:
        os.close(root)
        raise


def _lock_file(lock: Path) -> int:
    """A descriptor of the locked file. The file may be swapped between open and lock, so it is looked at again."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        try:
            _flock(descriptor, lock)
            if _is_still(lock, descriptor):
                _write_pid(descriptor)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _write_pid(descriptor: int) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError:
        pass  # a full disk: the lock holds all the same, the pid is only for people


def _flock(descriptor: int, lock: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Held(lock, read_pid(lock)) from None


def _is_still(lock: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(lock), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def read_pid(lock: Path) -> int | None:
    """The pid that the lock file names; None when it is missing, empty or garbage. Informational only."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        text = os.read(descriptor, 32).strip()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return int(text) if text.isdigit() and len(text) <= 10 else None


def render_daemon_json(socket: Path, started_at: datetime) -> bytes:
    """The bytes of `.shapeup/daemon.json`: {schema, pid, version, socket, started_at}. Source: cli §4."""
    document = {
        "schema": 1,
        "pid": os.getpid(),
        "version": VERSION,
        "socket": os.fspath(socket),
        "started_at": iso(started_at),
    }
    return (json.dumps(document, indent=2) + "\n").encode("ascii")
