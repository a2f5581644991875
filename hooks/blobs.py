"""Where the bytes of a change come from: git's objects, or what lies in a working tree. Source: targets 17, 23, design §4.

A blob that is not in this clone is never fetched: a check talks to no network. It is an error and not an absent file,
because a rule that takes it for absent would permit too much. Light module: standard library only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import NamedTuple

from hooks.git import GitFailed
from hooks.objects import Objects
from hooks.path_change import ABSENT_MODE, GITLINK_MODE, PathChange


class Blobs:
    """The Content of a commit or an index: both sides are blobs, read by one `git cat-file` that starts with the first
    question. `git_dir` None: the repository of the working folder."""

    def __init__(self, git_dir: str | None = None) -> None:
        self._at = () if git_dir is None else ("--git-dir", git_dir)
        self._objects: Objects | None = None

    def before(self, change: PathChange) -> bytes | None:
        """The file's bytes before, a symlink's target for a symlink. Raises GitFailed where the blob is not here."""
        return self._read(change.path, change.old_mode, change.old_blob)

    def after(self, change: PathChange) -> bytes | None:
        """The file's bytes after. Raises GitFailed where the blob is not here."""
        return self._read(change.path, change.new_mode, change.new_blob)

    def close(self) -> None:
        """End git; the next question starts it anew."""
        if self._objects is not None:
            self._objects.close()
            self._objects = None

    def __del__(self) -> None:
        self.close()

    def _read(self, path: bytes, mode: str, blob: str) -> bytes | None:
        if mode in (ABSENT_MODE, GITLINK_MODE):
            return None
        if self._objects is None:
            self._objects = Objects(self._at)
        try:
            data = self._objects.blob(blob)
        except GitFailed:
            self.close()
            data = None
        if data is None:
            raise GitFailed(f"{os.fsdecode(path)!a} is not in this clone; `git cat-file -e {blob}` fetches it")
        return data


class WorkingTree:
    """The Content of what lies in a working tree: the old side is a blob, the new side the file's own bytes, as no filter or
    line-end conversion has seen them. `top`: the worktree's top; no symlink on the way below it is followed."""

    def __init__(self, top: str, blobs: Blobs) -> None:
        self._top = top
        self._blobs = blobs

    def before(self, change: PathChange) -> bytes | None:
        """As Blobs.before."""
        return self._blobs.before(change)

    def after(self, change: PathChange) -> bytes | None:
        """The bytes that lie there now, a symlink's target; None where nothing lies there, or no file."""
        return None if change.new_mode in (ABSENT_MODE, GITLINK_MODE) else read_beneath(self._top, change.path)


class Given(NamedTuple):
    """A Content that is told its bytes, by path."""

    old: Mapping[bytes, bytes] = {}
    new: Mapping[bytes, bytes] = {}

    def before(self, change: PathChange) -> bytes | None:
        """The given bytes."""
        return self.old.get(change.path)

    def after(self, change: PathChange) -> bytes | None:
        """The given bytes."""
        return self.new.get(change.path)


def read_beneath(top: str, path: bytes) -> bytes | None:
    """The bytes of a regular file below `top`, or a symlink's target; None for anything else, or where a folder on the way is a
    symlink: git would store no such path, and what lies behind it may be outside the repository."""
    *folders, name = path.split(b"/")
    folder = -1
    try:
        folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for step in folders:
            inner = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        return _read_in(folder, name)
    except OSError:
        return None
    finally:
        if folder >= 0:
            os.close(folder)


def _read_in(folder: int, name: bytes) -> bytes | None:
    if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
        return os.readlink(name, dir_fd=folder)
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        chunks = []
        while chunk := os.read(file, 1 << 20):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(file)
