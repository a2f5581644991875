"""The run's journal: one durable append is the commit point of a batch of transactions. Source: design §3, targets 5-9, ruling D1.

Segments `journal/000001.jsonl`, … hold every entry of the run, the newest one is appended to. `journal/checkpoint.json` says
up to which entry all other files are known to be on disk; only what follows it is replayed at a start.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from daemon.disk import open_folder
from parsers.layout import path_of
from reducers.entries import Entry, parse_entry, render_entry

SEGMENT_BYTES = 8 * 1024 * 1024
CHECKPOINT = "checkpoint.json"


class FsyncFailed(Exception):
    """The disk did not confirm a write: what reached it is unknown, so nothing more may be promised. Source: targets 9."""


def fsync(fd: int, what: str) -> None:
    """Flush a file's data or raise FsyncFailed; never retried."""
    try:
        os.fdatasync(fd)
    except OSError as error:
        raise FsyncFailed(f"{what}: {error.strerror}") from error


class Journal:
    """The journal of one run. One writer: the daemon's loop."""

    def __init__(self, root: Path, slug: str) -> None:
        self._root = root
        self._folder = path_of("journal", slug, "x").rsplit("/", 1)[0]
        self._fd = -1
        self._size = 0
        self._segment = 1
        self.next_seq = 1
        self.healed_bytes = 0

    def entries(self, *, heal: bool = True) -> tuple[Entry, ...]:
        """Every entry in order. A torn tail is cut off into a side file first, so that the next append stands alone.

        `heal` False only looks: the torn tail stays where it is.
        """
        found: list[Entry] = []
        for name in self._segments():
            found += self._read_segment(name, heal)
        self.next_seq = found[-1].seq + 1 if found else 1
        return tuple(found)

    def _segments(self) -> tuple[str, ...]:
        try:
            with open_folder(self._root, self._folder) as fd:
                names = sorted(name for name in os.listdir(fd) if name.endswith(".jsonl"))
        except FileNotFoundError:
            return ()
        self._segment = int(names[-1].split(".")[0]) if names else 1
        return tuple(names)

    def _read_segment(self, name: str, heal: bool) -> Iterator[Entry]:
        with open_folder(self._root, self._folder) as folder:
            fd = os.open(name, (os.O_RDWR if heal else os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                data = _read_all(fd)
                end = 0
                while (stop := data.find(b"\n", end)) >= 0:
                    entry = parse_entry(data[end:stop])
                    if entry is None:
                        break
                    yield entry
                    end = stop + 1
                if end < len(data) and heal:
                    self._set_aside(folder, name, fd, data[end:], end)
            finally:
                os.close(fd)

    def _set_aside(self, folder: int, name: str, fd: int, tail: bytes, end: int) -> None:
        """Keep the bytes of a torn tail in a side file and cut them off. Source: targets 7."""
        side = os.open(
            f"{name}.torn", os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder
        )
        try:
            os.write(side, tail + b"\n")
            fsync(side, "journal side file")
        finally:
            os.close(side)
        os.ftruncate(fd, end)
        fsync(fd, "journal")
        self.healed_bytes += len(tail)

    def append(self, entries: Sequence[Entry]) -> None:
        """Commit the entries: one write and one fdatasync. Raises OSError (nothing committed) or FsyncFailed."""
        data = b"".join(map(render_entry, entries))
        if self._fd < 0:
            self._open()
        try:
            _write_all(self._fd, data)
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        fsync(self._fd, "journal")
        self._size += len(data)
        self.next_seq = entries[-1].seq + 1

    def _open(self) -> None:
        with open_folder(self._root, self._folder, create=True) as folder:
            name = f"{self._segment:06d}.jsonl"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(name, flags, 0o644, dir_fd=folder)
            self._size = os.fstat(self._fd).st_size
            if self._size == 0:
                fsync(folder, "journal folder")

    def is_gone(self) -> bool:
        """Whether the open segment is no longer in the tree: somebody removed or replaced it. Source: ruling L4."""
        if self._fd < 0:
            return False
        try:
            there = os.lstat(self._root / self._folder / f"{self._segment:06d}.jsonl")
        except (FileNotFoundError, NotADirectoryError):
            return True
        return not os.path.samestat(there, os.fstat(self._fd))

    def checkpoint_seq(self) -> int:
        """The number of the last entry whose files are all on disk; 0 when there is none."""
        try:
            with open_folder(self._root, self._folder) as folder:
                fd = os.open(CHECKPOINT, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    seq = json.loads(_read_all(fd))["seq"]
                finally:
                    os.close(fd)
        except (OSError, ValueError, KeyError, TypeError):
            return 0  # unreadable: replay everything, which changes nothing that already holds
        return seq if isinstance(seq, int) else 0

    def rotate(self) -> None:
        """Go on in a new segment once this one has grown large."""
        if self._size > SEGMENT_BYTES:
            self.close()
            self._segment += 1

    @property
    def checkpoint_path(self) -> str:
        """Where the checkpoint stands."""
        return f"{self._folder}/{CHECKPOINT}"

    def close(self) -> None:
        """Let go of the open segment."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._size = -1, 0


def _read_all(fd: int) -> bytes:
    chunks = []
    while chunk := os.read(fd, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)


def _write_all(fd: int, data: bytes) -> None:
    """One write(2) in every ordinary case; a short one (a full disk) is pushed until the error shows."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def is_full(error: OSError) -> bool:
    """Whether an error says that no space is left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
