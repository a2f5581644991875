"""What stands at a path, and how it is put there: whole or not at all, never through a link. Source: targets 24, hazards C.

Light module: standard library only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

UNFINISHED = ".shapeupd-new"  # behind the name of a file that is being written


class File(NamedTuple):
    """A plain file: its bytes and its permission bits."""

    data: bytes
    mode: int


class Link(NamedTuple):
    """A symbolic link, as it is."""

    target: str


class Strange(NamedTuple):
    """Neither a file nor a link; `what` names it."""

    what: str


Node = File | Link | Strange | None


def read_node(path: str) -> Node:
    """What stands at the path now; None: nothing. A link is never followed, a pipe never waited for."""
    try:
        seen = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(seen.st_mode):
        return Link(os.readlink(path))
    if not stat.S_ISREG(seen.st_mode):
        return Strange("a folder" if stat.S_ISDIR(seen.st_mode) else "a pipe, a socket or a device")
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        return File(file.read(), stat.S_IMODE(seen.st_mode))


def put_node(path: str, node: Node, *, like: str | None = None) -> None:
    """Make the path hold the node. `like`: another path that may hold the same node already, whose very file is then used.

    Raises OSError; the path then holds what it held.
    """
    if node is None:
        _remove(path)
        return
    unfinished = path + UNFINISHED
    _remove(unfinished)
    if like is not None and read_node(like) == node:
        try:
            os.link(like, unfinished, follow_symlinks=False)
        except OSError:  # a file system without hard links
            _make(unfinished, node)
    else:
        _make(unfinished, node)
    os.replace(unfinished, path)
    if os.path.lexists(unfinished):  # rename of two names of one file does nothing
        os.unlink(unfinished)


def sync_folders(paths: Iterable[str]) -> None:
    """Make the names in the folders of these paths durable."""
    for folder in sorted({os.path.dirname(path) for path in paths}):
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _make(path: str, node: Node) -> None:
    match node:
        case Link(target):
            os.symlink(target, path)
        case File(data, mode):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(fd, mode)
                os.fsync(fd)
        case _:
            raise IsADirectoryError(f"{path}: only files and links are written")


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def first_link(path: str, below: str) -> str | None:
    """The first part of `path` under the folder `below` that is a symbolic link; None where none is."""
    walked = below
    for part in os.path.relpath(path, below).split(os.sep):
        walked = os.path.join(walked, part)
        if os.path.islink(walked):
            return walked
    return None
