"""Puts evidence on disk: rows at the end of a ledger, and files that never were there before. Source: protocol §6.2, §6.4, targets 5-9."""

from __future__ import annotations

import os
from pathlib import Path

from daemon.disk import open_folder
from daemon.journal import fsync
from daemon.writes import append_at, ledger_end, sync_file
from parsers.markdown import encode


def append_row(root: Path, path: str, text: str) -> None:
    """Append one row; a torn last line stands alone. On disk when this returns. Raises Unreadable, OSError, FsyncFailed."""
    end = ledger_end(root, path)
    while not append_at(root, path, encode(text if end.is_whole else "\n" + text), end.size):
        end = ledger_end(root, path)
    sync_deep(root, path)


def create_file(root: Path, path: str, data: bytes, temp: str) -> bool:
    """Put a whole new file under a name that nobody has; False, and nothing done, where somebody has it.

    It takes its name only when all of it is on disk: a reader never meets half of it. `temp`: its name until then, nobody else's;
    what lies there was left by a death. Raises Unreadable, OSError, FsyncFailed.
    """
    folder, _, name = path.rpartition("/")
    with open_folder(root, folder, create=True) as fd:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            os.unlink(temp, dir_fd=fd)
        except FileNotFoundError:
            pass
        try:
            with os.fdopen(os.open(temp, flags, 0o644, dir_fd=fd), "wb", buffering=0) as file:
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                fsync(file.fileno(), path)
            os.link(temp, name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
        except FileExistsError:
            return False
        finally:
            try:
                os.unlink(temp, dir_fd=fd)
            except FileNotFoundError:
                pass
    sync_deep(root, path)
    return True


def sync_deep(root: Path, path: str) -> None:
    """Put the file on disk with every folder that leads to it; some may be new."""
    sync_file(root, path)
    folder = path.rpartition("/")[0]
    while folder:
        folder = folder.rpartition("/")[0]
        with open_folder(root, folder) as fd:
            fsync(fd, folder or "the repository")
