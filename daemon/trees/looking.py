"""Looks at the files of a worktree as git would store them, and stores them: links are never followed, no filter runs. Source: protocol §6.5, W-51, targets 29."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from itertools import groupby
from typing import NamedTuple

from daemon.disk import open_folder
from daemon.trees.objects import FILE, LINK, PROGRAM, Entry, hasher
from daemon.trees.site import Site, TreeFailed
from daemon.trees.store import PIECE, STORES, Moving, ObjectStore, Tip, clear_ref
from hooks.git import GitFailed
from parsers.tree import Unreadable

BIG_BYTES = 8 * PIECE  # a file that large is never held in memory
MANY = 1000  # new files from which on one pack costs less than a file of its own for each
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Odd(Exception):
    """Something stands there that git stores nothing of; the text says what."""


class Found(NamedTuple):
    """What stands at some paths. `odd`: the paths where something stands that no tree can hold, and what."""

    entries: dict[str, Entry]
    odd: dict[str, str]


class Looker:
    """Reads files and links; stores what it reads where it is given a store. `known`: blobs that are stored already."""

    def __init__(self, id_length: int, objects: ObjectStore | None = None, known: Iterable[str] = ()) -> None:
        self._id_length = id_length
        self._objects = objects
        self._stored = set(known)

    def look(self, fd: int, name: str) -> Entry | None:
        """What stands under the name in the folder; None for nothing and for a folder. Raises Odd, Moving, OSError, GitFailed."""
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                return Entry(LINK, self._take(os.fsencode(os.readlink(name, dir_fd=fd))))
            if stat.S_ISDIR(status.st_mode):
                return None
            if not stat.S_ISREG(status.st_mode):
                raise Odd("a pipe, a socket or a device stands there")
            with os.fdopen(os.open(name, _OPEN, dir_fd=fd), "rb", buffering=0) as file:
                return self._look_into(file)
        except FileNotFoundError:
            return None

    def _look_into(self, file: FileIO) -> Entry:
        status = os.fstat(file.fileno())
        mode = PROGRAM if status.st_mode & 0o100 else FILE
        if status.st_size <= BIG_BYTES:
            return Entry(mode, self._take(file.read()))
        take, read, blob = hasher(self._id_length, status.st_size), 0, ""
        while piece := file.read(PIECE):
            blob, read = take(piece), read + len(piece)
        if read != status.st_size:
            raise Moving
        if self._objects is not None and blob not in self._stored:
            file.seek(0)
            self._objects.add_file(file, read, blob)
            self._stored.add(blob)
        return Entry(mode, blob)

    def _take(self, data: bytes) -> str:
        blob = hasher(self._id_length, len(data))(data)
        if self._objects is not None and blob not in self._stored:
            self._objects.add(data, blob)
            self._stored.add(blob)
        return blob


@contextmanager
def folder_of(site: Site, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder in which the path lies, and the name there. Raises FileNotFoundError, Unreadable."""
    folder, _, name = path.rpartition("/")
    with open_folder(site.top, folder, create=create) as fd:
        yield fd, name


def look_at(site: Site, path: str, id_length: int) -> Entry | None:
    """What stands at the path; None for nothing, a folder, or what lies behind a link. Raises Odd, Moving, OSError."""
    try:
        with folder_of(site, path) as (fd, name):
            return Looker(id_length).look(fd, name)
    except (FileNotFoundError, Unreadable):
        return None


def store_files(site: Site, paths: Iterable[str], known: Iterable[str], id_length: int, tip: Tip) -> tuple[Found, str]:
    """Store what stands at the paths as one commit: what was found, and the commit.

    Raises TreeFailed: then nothing is under the ref that was not there before.
    """
    wanted, stored = sorted(paths, key=lambda path: path.rpartition("/")[::2]), frozenset(known)
    failure = ""
    clear_ref(site, tip.ref)
    for make in STORES if len(wanted) - len(stored) < MANY else reversed(STORES):
        try:
            objects = make(site)
            try:
                found = _look_at_all(site, wanted, Looker(id_length, objects, stored))
                return found, objects.commit(found.entries, tip)
            finally:
                objects.close()
        except TreeFailed:
            raise
        except Exception as error:  # whatever the first stumbles over, the second may know
            failure = str(error) if isinstance(error, GitFailed) else f"{type(error).__name__}: {error}"
    raise TreeFailed(f"the files could not be stored: {failure}")


def _look_at_all(site: Site, paths: Iterable[str], looker: Looker) -> Found:
    found = Found({}, {})
    for folder, group in groupby(paths, key=lambda path: path.rpartition("/")[0]):
        try:
            with open_folder(site.top, folder) as fd:
                for path in group:
                    _look_into(fd, path, looker, found.entries, found.odd)
        except (FileNotFoundError, Unreadable):
            continue  # nothing of ours lies behind a link
        except PermissionError as error:
            raise TreeFailed(f"{folder} cannot be read: {error.strerror}") from error
    return found


def _look_into(fd: int, path: str, looker: Looker, entries: dict[str, Entry], odd: dict[str, str]) -> None:
    try:
        entry = looker.look(fd, path.rpartition("/")[2])
    except Odd as error:
        odd[path] = str(error)
    except Moving:
        raise TreeFailed(f"{path} changes while it is read: wait until its writer is done") from None
    except PermissionError as error:
        raise TreeFailed(f"{path} cannot be read: {error.strerror}") from error
    else:
        if entry is not None:
            entries[path] = entry
