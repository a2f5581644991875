"""The store: the one writer of the two trees. A transaction is committed by the journal, then carried out. Source: design §3.

Committed means: the journal holds it on disk. What follows (temp + rename for task files, appends at a recorded offset for
ledgers) can be interrupted anywhere: the next start rolls it forward to the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from daemon.disk import DiskTree
from daemon.journal import Journal
from daemon.writes import (
    LedgerEnd,
    append_at,
    cut_and_append,
    ledger_end,
    remove_file,
    replace_file,
    short_name,
    sync_file,
)
from parsers.faults import Fault
from parsers.layout import path_of
from parsers.markdown import decode, encode
from parsers.times import render_time
from parsers.tree import Unreadable
from reducers.changes import Append, Change, EditTask
from reducers.entries import (
    AppendEntry,
    Cause,
    EditEntry,
    Entry,
    Step,
    complete_appends,
    hash_of,
    resume,
    roll_forward,
)

Work = TypeVar("Work")

Notice = Callable[[str, dict[str, Any]], None]


class Transaction(NamedTuple):
    """One fact's changes, with the cause they are booked under."""

    cause: Cause
    changes: tuple[Change, ...]


class Store:
    """The writer of one run. `notice` hears of conflicts and recoveries."""

    def __init__(self, root: Path, slug: str, notice: Notice) -> None:
        self._root = root
        self._slug = slug
        self._notice = notice
        self.tree = DiskTree(root)
        self.journal = Journal(root, slug)
        self._ends: dict[str, LedgerEnd] = {}
        self._last: dict[str, str] = {}  # path → hash of the newest journaled state of a task file
        self._unsynced: set[str] = set()
        self._checkpoint = 0

    def recover(self) -> tuple[Entry, ...]:
        """Roll everything forward that the journal holds past its checkpoint; returns all entries of the run."""
        entries = self.journal.entries()
        self._checkpoint = self._standing_checkpoint()
        self._last = {s.path: s.now for entry in entries for s in entry.steps if isinstance(s, EditEntry)}
        replayed = self._replay(entries)
        if replayed or self.journal.healed_bytes:
            tail = sum(entry.seq > self._checkpoint for entry in entries)
            fields = {"entries": tail, "files": sorted(replayed), "healed_bytes": self.journal.healed_bytes}
            self._notice("daemon.recovered", {"subject": self._slug, **fields})
        return entries

    def _standing_checkpoint(self) -> int:
        """The checkpoint, unless it speaks of entries that are gone: new ones under their numbers must not count as done."""
        seq = self.journal.checkpoint_seq()
        if seq < self.journal.next_seq:
            return seq
        remove_file(self._root, self.journal.checkpoint_path)
        return 0

    def _replay(self, entries: Iterable[Entry]) -> set[str]:
        """Bring every file that an entry past the checkpoint speaks of to its end; returns those that were not there yet."""
        edits: dict[str, list[EditEntry]] = {}
        durable: dict[str, int] = {}
        appends: dict[str, list[AppendEntry]] = {}
        for entry in entries:
            is_durable = entry.seq <= self._checkpoint
            for step in entry.steps:
                if isinstance(step, EditEntry):
                    edits.setdefault(step.path, []).append(step)
                    durable[step.path] = durable.get(step.path, 0) + is_durable
                elif not is_durable:
                    appends.setdefault(step.path, []).append(step)
        rolls = {path: partial(self._roll, done=durable[path]) for path in edits if durable[path] < len(edits[path])}
        done = {path for path, roll in rolls.items() if self._guarded(roll, path, edits[path])}
        return done | {path for path, adds in appends.items() if self._guarded(self._complete, path, adds)}

    def _roll(self, path: str, steps: Sequence[EditEntry], *, done: int) -> bool:
        data = self.tree.read(path)
        wanted = resume(data, steps, done)
        self._unsynced.add(path)
        if wanted is None:
            self._conflict(path, "\n".join(str(edit) for step in steps[done:] for edit in step.edits).encode())
            return False
        if wanted == data:
            return False
        replace_file(self._root, path, wanted)
        return True

    def _complete(self, path: str, steps: Sequence[AppendEntry]) -> bool:
        self._unsynced.add(path)
        missing = complete_appends(self.tree.read(path) or b"", steps)
        if missing is None:
            return False
        cut_and_append(self._root, path, missing[1], missing[0])
        return True

    def check(self, changes: Iterable[Change]) -> None:
        """Raises Unreadable where a ledger that would be appended to is no plain file; keeps its end for `commit`."""
        for change in changes:
            if isinstance(change, Append) and change.path not in self._ends:
                self._ends[change.path] = ledger_end(self._root, change.path)

    def commit(self, transactions: Sequence[Transaction], now: datetime) -> None:
        """Commit the transactions and carry them out. Raises Unreadable or OSError with nothing committed, or FsyncFailed."""
        entries = self._entries(transactions, now)
        self._ends.clear()
        self.journal.append(entries)
        edits: dict[str, list[EditTask]] = {}
        appends: dict[str, list[AppendEntry]] = {}
        for transaction, entry in zip(transactions, entries, strict=True):
            for change in transaction.changes:
                if isinstance(change, EditTask):
                    edits.setdefault(change.path, []).append(change)
            for step in entry.steps:
                if isinstance(step, AppendEntry):
                    appends.setdefault(step.path, []).append(step)
        for path, made in edits.items():
            self._guarded(self._carry_edits, path, made)
        for path, steps in appends.items():
            self._guarded(self._complete_or_add, path, steps)
        self._unsynced |= edits.keys() | appends.keys()

    def _entries(self, transactions: Sequence[Transaction], now: datetime) -> list[Entry]:
        sizes: dict[str, int] = {}
        seq = self.journal.next_seq
        return [
            Entry(seq + n, render_time(now), t.cause, tuple(self._step(change, sizes) for change in t.changes))
            for n, t in enumerate(transactions)
        ]

    def _step(self, change: Change, sizes: dict[str, int]) -> Step:
        if isinstance(change, EditTask):
            was = hash_of(change.was)
            base = None if self._last.get(change.path) == was else decode(change.was)
            self._last[change.path] = hash_of(change.content)
            return EditEntry(change.path, was, self._last[change.path], change.edits, base)
        return self._append_step(change, sizes)

    def _append_step(self, change: Append, sizes: dict[str, int]) -> AppendEntry:
        text = change.text
        if change.path not in sizes:
            size, is_whole = self._ends.get(change.path) or ledger_end(self._root, change.path)
            sizes[change.path] = size
            text = (change.header if size == 0 else "" if is_whole else "\n") + text
        offset = sizes[change.path]
        sizes[change.path] += len(encode(text))
        return AppendEntry(change.path, offset, text)

    def _carry_edits(self, path: str, made: Sequence[EditTask]) -> bool:
        """Write the last content, unless someone wrote the file since it was read: then the edits go on top of that."""
        data = self.tree.read(path)
        content: bytes | None = made[-1].content
        if data != made[0].was:
            steps = [EditEntry(path, hash_of(m.was), hash_of(m.content), m.edits, decode(m.was)) for m in made]
            content = roll_forward(data, steps)
        if content is not None and content != data:
            replace_file(self._root, path, content)
        return True

    def _complete_or_add(self, path: str, steps: Sequence[AppendEntry]) -> bool:
        added = b"".join(encode(step.text) for step in steps)
        return append_at(self._root, path, added, steps[0].offset) or self._complete(path, steps)

    def _guarded(self, act: Callable[[str, Sequence[Work]], bool], path: str, steps: Sequence[Work]) -> bool:
        """Carry out one file's part of a committed transaction; what cannot be done is kept aside and said loudly."""
        try:
            return act(path, steps)
        except Unreadable as stop:
            self._conflict(path, stop.fault.what.encode())
            return False

    def _conflict(self, path: str, content: bytes) -> None:
        kept = path_of("conflict", self._slug, short_name(path.replace("/", "__")))
        try:
            replace_file(self._root, kept, content + b"\n")
        except Unreadable as stop:
            kept = stop.fault.what  # somebody bars that place as well: saying it loudly is what is left
        fault = Fault(
            "E-CONFLICT",
            path,
            "a committed change could not be carried out here",
            "something else stands in the file's place, or it is gone and no earlier text of it is known",
            f"see {kept}; put the file back and run `shapeupd rebuild`",
        )
        self._notice("daemon.error", {"subject": path, "code": fault.code, "error": fault})

    def write_view(self, path: str, content: bytes, *, is_synced: bool = False) -> None:
        """Replace a view as a whole; `is_synced` where it also holds text that the journal does not know.

        Raises Unreadable where a link stands in its place.
        """
        replace_file(self._root, path, content, is_synced=is_synced)
        self._unsynced.add(path)

    def tell_barred(self, stop: Unreadable) -> None:
        """Say that something else stands in a view's place, or in its folder's."""
        self._notice("daemon.error", {"subject": stop.fault.where, "code": stop.fault.code, "error": stop.fault})

    def remove_view(self, path: str) -> None:
        """Remove a view; fine when it is gone already."""
        remove_file(self._root, path)

    def checkpoint(self) -> None:
        """Put every file written since the last checkpoint on disk, then note how far the journal need not be replayed."""
        last = self.journal.next_seq - 1
        if last <= self._checkpoint:
            return
        for path in sorted(self._unsynced):
            sync_file(self._root, path)
        self._unsynced.clear()
        replace_file(self._root, self.journal.checkpoint_path, json.dumps({"seq": last}).encode(), is_synced=True)
        sync_file(self._root, self.journal.checkpoint_path)
        self._checkpoint = last
        self.journal.rotate()

    def close(self) -> None:
        """Let go of the journal."""
        self.journal.close()
