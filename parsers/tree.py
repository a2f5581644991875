"""Tree: a read-only view of repository files; the same rule runs on disk, index, commit or dict. Source: design §2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from parsers.faults import Fault


class Unreadable(Exception):
    """A path holds something that is not a plain file of bounded size (a link, a pipe, 1 MiB and more)."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.what)
        self.fault = fault


class Tree(Protocol):
    """Read-only files by repository-relative POSIX path."""

    def read(self, path: str) -> bytes | None:
        """The file's bytes; None when nothing is there. Raises Unreadable for what is no plain file."""

    def list(self, folder: str) -> tuple[str, ...]:
        """Names in the folder, sorted; empty when there is no such folder."""


class DictTree:
    """A tree in memory: path to bytes. Used by tests and as the result of a dry run."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def list(self, folder: str) -> tuple[str, ...]:
        prefix = folder.rstrip("/") + "/"
        return tuple(sorted({p[len(prefix) :].split("/", 1)[0] for p in self.files if p.startswith(prefix)}))
