"""A cheap stamp of a repository's branches and HEADs: unchanged, nothing moved and no git need be asked. Source: rulings E6.

git replaces every file here by a rename, whatever the format of its refs, so a folder's own change time tells that one of
its files was replaced. What writes into a file in place is found too: at once among a few hundred loose refs, later among more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

FILES = 250  # loose refs that every stamp looks at; with more of them, each is looked at now and then

Row = tuple[str, int, int, int]


class RefStamp(NamedTuple):
    """`mark` differs when any ref was written; `newest_ns` is when the last one was, on the file system's clock."""

    mark: int
    newest_ns: int


class RefStamps:
    """Stamps of the repository with this common git dir."""

    def __init__(self, common_dir: str | os.PathLike[str]) -> None:
        self._common = os.fspath(common_dir)
        self._folders: tuple[str, ...] = ()
        self._outline: list[Row] = []
        self._stamp = RefStamp(0, 0)
        self._spared = 0  # stamps that may still be taken without a look at every file

    def take(self) -> RefStamp:
        """The stamp now."""
        outline = self._heads() + _rows(self._folders)
        if outline != self._outline or self._spared == 0:
            files = self._files()
            self._outline = self._heads() + _rows(self._folders)
            rows = sorted(self._heads() + _rows(files))
            self._stamp = RefStamp(hash(tuple(rows)), max((row[3] for row in rows), default=0))
            self._spared = len(files) // FILES + 1
        self._spared -= 1
        return self._stamp

    def _heads(self) -> list[Row]:
        names = ["HEAD", "packed-refs", "reftable/tables.list"]
        for worktree in _names(f"{self._common}/worktrees"):
            names += [f"worktrees/{worktree}/HEAD", f"worktrees/{worktree}/reftable/tables.list"]
        return _rows(f"{self._common}/{name}" for name in names)

    def _files(self) -> list[str]:
        """Every loose branch, at any depth, and with them the folders; lock files come and go without meaning."""
        folders, files = [f"{self._common}/refs/heads"], []
        for folder in folders:  # grows as it goes
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        elif not entry.name.endswith(".lock"):
                            files.append(entry.path)
            except OSError:
                continue  # git removes empty folders
        self._folders = tuple(folders)
        return files


def _rows(paths: Iterable[str]) -> list[Row]:
    rows = []
    for path in paths:
        try:
            found = os.lstat(path)
        except OSError:
            continue  # not there, or gone meanwhile
        rows.append((path, found.st_ino, found.st_size, found.st_mtime_ns))
    return rows


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
