"""The disk as a batch of transactions will leave it: later results of one batch see what earlier ones did. Source: design §3."""

from __future__ import annotations

from daemon.disk import DiskTree
from parsers.markdown import encode
from reducers.changes import Append, Change, EditTask


class OverlayTree:
    """A Tree over the disk with the changes of the batch in hand on top."""

    def __init__(self, disk: DiskTree) -> None:
        self._disk = disk
        self._content: dict[str, bytes] = {}
        self._added: dict[str, list[Append]] = {}

    def read(self, path: str) -> bytes | None:
        """The file's bytes as they will be. Raises Unreadable as the disk does."""
        if path in self._content:
            return self._content[path]
        data = self._disk.read(path)
        for change in self._added.get(path, ()):
            data = encode(change.header) if data is None else data
            data += encode(change.text)
        return data

    def list(self, folder: str) -> tuple[str, ...]:
        """Names on disk: a transaction makes no file that anyone lists."""
        return self._disk.list(folder)

    def put(self, change: Change) -> None:
        """Take in one change."""
        if isinstance(change, EditTask):
            self._content[change.path] = change.content
        else:
            self._added.setdefault(change.path, []).append(change)

    def clear(self) -> None:
        """Forget the batch: it is on disk now."""
        self._content.clear()
        self._added.clear()
