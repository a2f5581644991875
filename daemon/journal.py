"""The run's journal: one durable append is the commit point of a batch of transactions. Source: design §3, targets 5-9, ruling D1.

Segments `journal/000001.jsonl`, … hold every entry of the run, the newest one is appended to. `journal/checkpoint.json` says
up to which entry all other files are known to be on disk; only what follows it is replayed at a start.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from daemon.disk import not_a_file, open_folder
from parsers.faults import Fault
from parsers.layout import path_of
from parsers.tree import Unreadable
from reducers.entries import Entry, parse_entry, render_entry

SEGMENT_BYTES = 8 * 1024 * 1024
CHECKPOINT = "checkpoint.json"
_SEGMENT = re.compile(r"[0-9]{6}\.jsonl\Z")


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
        self._newest: tuple[str, os.stat_result] | None = None  # the segment that was last read or opened
        self.next_seq = 1
        self.healed_bytes = 0
        self.faults: tuple[Fault, ...] = ()  # what `entries` could not read, though good entries follow it

    def entries(self, *, heal: bool = True) -> tuple[Entry, ...]:
        """Every entry in order. A torn tail is cut off into a side file first, so that the next append stands alone.

        `heal` False only looks: the torn tail stays where it is.
        """
        found: list[Entry] = []
        self.faults = ()
        for name in self._segments():
            found += self._read_segment(name, heal)
        self.faults += tuple(
            _lost(self._folder, f"the entries between {left.seq} and {right.seq} are missing")
            for left, right in pairwise(found)
            if right.seq != left.seq + 1
        )
        self.next_seq = found[-1].seq + 1 if found else 1
        return tuple(found)

    def _segments(self) -> tuple[str, ...]:
        try:
            with open_folder(self._root, self._folder) as fd:
                names = sorted(filter(_SEGMENT.match, os.listdir(fd)))
        except FileNotFoundError:
            return ()
        self._segment = int(names[-1].split(".")[0]) if names else 1
        return tuple(names)

    def _read_segment(self, name: str, heal: bool) -> list[Entry]:
        """The entries of one segment. A line that is none of ours is passed over; the last of them is a torn tail."""
        with open_folder(self._root, self._folder) as folder:
            fd = self._open_at(folder, name, os.O_RDWR if heal else os.O_RDONLY)
            try:
                self._newest = name, os.fstat(fd)
                data = _read_all(fd)
                found: list[Entry] = []
                at = end = number = 0
                bad: list[int] = []
                while (stop := data.find(b"\n", at)) >= 0:
                    number += 1
                    if entry := parse_entry(data[at:stop]):
                        found.append(entry)
                        end = stop + 1
                        self.faults += tuple(
                            _lost(f"{self._folder}/{name}:{line}", "the entry is damaged") for line in bad
                        )
                        bad = []
                    else:
                        bad.append(number)
                    at = stop + 1
                if end < len(data) and heal:
                    self._set_aside(folder, name, fd, data[end:], end)
                return found
            finally:
                os.close(fd)

    def _open_at(self, folder: int, name: str, flags: int) -> int:
        """A descriptor of a plain file of the journal. Raises Unreadable for a link, a pipe or a folder in its place."""
        path = f"{self._folder}/{name}"
        try:
            fd = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise not_a_file(path, "a symbolic link") from error
            if error.errno in (errno.EISDIR, errno.ENXIO):
                raise not_a_file(path, "a folder, a pipe or a device") from error
            raise
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise not_a_file(path, "a folder, a pipe or a device")
        return fd

    def _set_aside(self, folder: int, name: str, fd: int, tail: bytes, end: int) -> None:
        """Keep the bytes of a torn tail in a side file and cut them off. Source: targets 7."""
        side = self._open_at(folder, f"{name}.torn", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            _write_all(side, tail + b"\n")
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
            self._fd = self._open_at(folder, name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            self._newest = name, os.fstat(self._fd)
            self._size = self._newest[1].st_size
            if self._size == 0:
                fsync(folder, "journal folder")
        if self._size == 0:
            with open_folder(self._root, self._folder.rpartition("/")[0]) as run:
                fsync(run, "run folder")

    def is_gone(self) -> bool:
        """Whether the segment read or opened last is no longer in the tree: somebody removed or replaced it. Source: L4."""
        if self._newest is None:
            return False
        name, status = self._newest
        try:
            return not os.path.samestat(os.lstat(self._root / self._folder / name), status)
        except (FileNotFoundError, NotADirectoryError):
            return True

    def checkpoint_seq(self) -> int:
        """The number of the last entry whose files are all on disk; 0 when there is none."""
        try:
            with open_folder(self._root, self._folder) as folder:
                fd = self._open_at(folder, CHECKPOINT, os.O_RDONLY)
                try:
                    seq = json.loads(_read_all(fd))["seq"]
                finally:
                    os.close(fd)
        except (OSError, Unreadable, ValueError, KeyError, TypeError):
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


def _lost(where: str, what: str) -> Fault:
    why = "a rebuild takes what it knows from the journal; what this part said, it cannot bring back"
    fix = "put the journal back from a backup, or check by hand what the results of that time did"
    return Fault("E-JOURNAL", where, what, why, fix)


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
