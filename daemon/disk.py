"""The disk as a Tree: reads that never follow a link, never block on a pipe and never take in more than a cap. Source: targets 26, 29."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daemon.scan import Fingerprint, fingerprint, fingerprint_of
from parsers.faults import Fault
from parsers.layout import classify
from parsers.tree import Unreadable

MAX_DOCUMENT_BYTES = 1024 * 1024
MAX_LEDGER_BYTES = 256 * 1024 * 1024  # ledgers and views are capped per line only (ruling C12); this bounds memory

_DOCUMENTS = frozenset({"order", "result", "receipt", "task"})
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def not_a_file(path: str, what: str) -> Unreadable:
    """Something else stands where a file should."""
    code = "E-SYMLINK" if "link" in what else "E-NOT-A-FILE"
    why = "shapeupd reads and writes plain files only, so nothing outside the tree is ever touched"
    return Unreadable(Fault(code, path, f"it is {what}", why, "put a plain file in its place"))


@contextmanager
def open_folder(root: Path, folder: str, *, create: bool = False) -> Iterator[int]:
    """A descriptor of a folder below the root, reached without following any link. Raises FileNotFoundError, Unreadable."""
    first, _, rest = folder.partition("/")
    fd = _open_or_make(None, os.path.join(root, _inside(first, folder)), folder, create) if folder else _open_root(root)
    try:
        for part in rest.split("/") if rest else ():
            below = _open_or_make(fd, _inside(part, folder), folder, create)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _open_root(root: Path) -> int:
    return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _inside(part: str, folder: str) -> str:
    if part in ("", ".", ".."):
        raise not_a_file(folder, "no path inside the tree")
    return part


def _open_or_make(fd: int | None, part: str, folder: str, create: bool) -> int:
    """The folder `part` below `fd`; `fd` None: an absolute path, whose own last part is not followed either."""
    try:
        return os.open(part, _FOLDER, dir_fd=fd)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise not_a_file(folder, "a link or a file where a folder should be") from error
        raise
    try:
        os.mkdir(part, 0o777, dir_fd=fd)
    except FileExistsError:
        pass  # someone made it meanwhile; what it is, the next look tells
    return _open_or_make(fd, part, folder, create=False)


class DiskTree:
    """The repository's files on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> bytes | None:
        """The file's bytes; None when nothing is there. Raises Unreadable for a link, a pipe, a folder or 1 MiB and more."""
        return self.read_stamped(path)[0]

    def read_stamped(self, path: str) -> tuple[bytes | None, Fingerprint | None]:
        """The bytes with the stamp of the very file they came from."""
        folder, _, name = path.rpartition("/")
        try:
            with open_folder(self.root, folder) as fd:
                return _read_at(fd, name, path)
        except FileNotFoundError:
            return None, None

    def list(self, folder: str) -> tuple[str, ...]:
        """Names in the folder, sorted; empty when there is none or a link stands there."""
        try:
            with open_folder(self.root, folder) as fd:
                return tuple(sorted(os.listdir(fd)))
        except (FileNotFoundError, Unreadable):
            return ()

    def stamp(self, path: str) -> Fingerprint | None:
        """What lstat says of the path; None when nothing is there."""
        return fingerprint(f"{self.root}/{path}")


def _read_at(fd: int, name: str, path: str) -> tuple[bytes, Fingerprint]:
    try:
        file = os.open(name, _FILE, dir_fd=fd)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise not_a_file(path, "a symbolic link") from error
        if error.errno in (errno.ENXIO, errno.ENODEV):
            raise not_a_file(path, "a socket or a device") from error
        raise
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise not_a_file(path, "a folder, a pipe or a device")
        _check_size(path, status.st_size)
        chunks = []
        while chunk := os.read(file, max(status.st_size + 1, 65536)):
            chunks.append(chunk)
        return b"".join(chunks), fingerprint_of(status)
    finally:
        os.close(file)


def _check_size(path: str, size: int) -> None:
    place = classify(path)
    cap = MAX_DOCUMENT_BYTES if place and place.kind in _DOCUMENTS else MAX_LEDGER_BYTES
    if size > cap:
        what = f"it has {size} bytes, more than {cap}"
        why = "an envelope or a task is a few kilobytes; a file that large would stall every other fact"
        raise Unreadable(Fault("E-TOO-LARGE", path, what, why, "move bulk data out of it and name its path instead"))
