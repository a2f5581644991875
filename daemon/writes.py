"""How one file is written: beside it and renamed over, or appended to; never through a link. Source: design §3, targets 29, ruling D1.

The store decides what is written into the two trees; this is only how.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple

from daemon.disk import not_a_file, open_folder
from daemon.journal import fsync
from parsers.tree import Unreadable
from reducers.entries import hash_of

TEMP_SUFFIX = ".shapeupd-tmp"
MAX_NAME_BYTES = 200  # a file system takes 255
_WRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LedgerEnd(NamedTuple):
    """Where a ledger ends: its size, and whether its last line is whole."""

    size: int
    is_whole: bool


def replace_file(
    root: Path, path: str, content: bytes, *, is_synced: bool = False, mtime_ns: int | None = None
) -> None:
    """Write beside the file, then rename over it, in a folder reached without following links.

    `is_synced`: the content is on disk before it takes the name. `mtime_ns`: the change time it bears instead of now.
    Raises Unreadable, OSError, FsyncFailed.
    """
    folder, _, name = path.rpartition("/")
    with open_folder(root, folder, create=True) as fd:
        mode = _mode_of(fd, name, path)
        temp = f".{short_name(name)}{TEMP_SUFFIX}"
        file = _open_new(fd, temp, path)
        try:
            if mode is not None:
                os.fchmod(file, mode)
            _write(file, content)
            if mtime_ns is not None:
                os.utime(file, ns=(mtime_ns, mtime_ns))
            if is_synced:
                fsync(file, path)
        except OSError:
            os.unlink(temp, dir_fd=fd)
            raise
        finally:
            os.close(file)
        os.rename(temp, name, src_dir_fd=fd, dst_dir_fd=fd)


def create_file(root: Path, path: str, content: bytes) -> bool:
    """Write a file that is not there yet, whole at once; False, and nothing done, where something stands in its place.

    Raises Unreadable, OSError.
    """
    folder, _, name = path.rpartition("/")
    with open_folder(root, folder, create=True) as fd:
        temp = f".{short_name(name)}{TEMP_SUFFIX}"
        file = _open_new(fd, temp, path)
        try:
            _write(file, content)
        finally:
            os.close(file)
        try:
            os.link(temp, name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
        except FileExistsError:
            return False
        finally:
            os.unlink(temp, dir_fd=fd)
    return True


def short_name(name: str) -> str:
    """The name, or its start and hash where it would be too long with something added to it."""
    data = os.fsencode(name)
    return name if len(data) <= MAX_NAME_BYTES else f"{name[:40]}-{hash_of(data)[:16]}"


def remove_file(root: Path, path: str) -> None:
    """Remove a file that need not be there."""
    folder, _, name = path.rpartition("/")
    try:
        with open_folder(root, folder) as fd:
            os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        pass


def _mode_of(fd: int, name: str, path: str) -> int | None:
    """The permissions that a file in this place has; None where there is none yet. Raises Unreadable."""
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise not_a_file(path, "a symbolic link")
    if not stat.S_ISREG(status.st_mode):
        raise not_a_file(path, "a folder, a pipe or a device")
    return stat.S_IMODE(status.st_mode)


def _open_new(fd: int, temp: str, path: str) -> int:
    """A new file under the temporary name. What lies there was left by a crash, or planted: either way not followed."""
    flags = _WRITE | os.O_CREAT | os.O_EXCL
    try:
        return os.open(temp, flags, 0o644, dir_fd=fd)
    except FileExistsError:
        try:
            os.unlink(temp, dir_fd=fd)
        except IsADirectoryError:
            raise not_a_file(path.rpartition("/")[0] + f"/{temp}", "a folder") from None
        return os.open(temp, flags, 0o644, dir_fd=fd)


def ledger_end(root: Path, path: str) -> LedgerEnd:
    """Where a ledger ends now; a markdown ledger's last line need not be whole. Raises Unreadable."""
    folder, _, name = path.rpartition("/")
    try:
        with open_folder(root, folder) as fd:
            file = os.open(name, _LOOK, dir_fd=fd)
    except FileNotFoundError:
        return LedgerEnd(0, True)
    except OSError as error:
        raise _barred(path, error) from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise not_a_file(path, "a folder, a pipe or a device")
        size = status.st_size
        return LedgerEnd(size, not path.endswith(".jsonl") or size == 0 or os.pread(file, 1, size - 1) == b"\n")
    finally:
        os.close(file)


def append_at(root: Path, path: str, data: bytes, offset: int) -> bool:
    """Append where the ledger ends at this offset; False, and nothing done, where it ends elsewhere. Raises Unreadable, OSError."""
    return _append(root, path, data, offset, cuts=False)


def cut_and_append(root: Path, path: str, data: bytes, offset: int) -> None:
    """Cut what follows the offset (a torn end), then append. Raises Unreadable, OSError."""
    _append(root, path, data, offset, cuts=True)


def _append(root: Path, path: str, data: bytes, offset: int, *, cuts: bool) -> bool:
    folder, _, name = path.rpartition("/")
    with open_folder(root, folder, create=True) as fd:
        try:
            file = os.open(name, _WRITE | os.O_NONBLOCK | os.O_CREAT | os.O_APPEND, 0o644, dir_fd=fd)
        except OSError as error:
            raise _barred(path, error) from error
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise not_a_file(path, "a folder, a pipe or a device")
            if status.st_size != offset and not cuts:
                return False
            if status.st_size > offset:
                os.ftruncate(file, offset)
            _write_or_take_back(file, data, offset)
        finally:
            os.close(file)
    return True


def sync_file(root: Path, path: str) -> None:
    """Put a file and its folder on disk; what is gone or replaced since holds nothing of ours. Raises FsyncFailed."""
    folder, _, name = path.rpartition("/")
    try:
        with open_folder(root, folder) as fd:
            file = os.open(name, _LOOK, dir_fd=fd)
            try:
                if stat.S_ISREG(os.fstat(file).st_mode):
                    fsync(file, path)
            finally:
                os.close(file)
            fsync(fd, folder)
    except (FileNotFoundError, Unreadable):
        pass
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise


def _barred(path: str, error: OSError) -> OSError | Unreadable:
    """The error to raise where a file could not be opened: something that is no file says what it is."""
    if error.errno == errno.ELOOP:
        return not_a_file(path, "a symbolic link")
    return not_a_file(path, "a pipe or a folder") if error.errno in (errno.ENXIO, errno.EISDIR) else error


def _write_or_take_back(file: int, data: bytes, size: int) -> None:
    """All of it or, on a full disk, none of it: whoever reads the ledger meanwhile sees whole rows."""
    try:
        _write(file, data)
    except OSError:
        os.ftruncate(file, size)
        raise


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
