"""The record of verdicts, `.shapeup/commits.jsonl`: what was said of each commit, once. Source: design §4, rulings E5, E6.

Row: {at, commit, verdict, order_id, rules[], reason}. Agents can write the file, so what is read is checked and no more of
it than the newest rows is kept in memory.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from daemon.disk import open_folder
from daemon.scan import fingerprint
from daemon.writes import append_at, cut_and_append, ledger_end, sync_file
from parsers.layout import path_of
from parsers.ledgers import parse_rows, render_row
from parsers.tree import Unreadable
from reducers.commit_verdicts import VERDICTS, Verdict

REMEMBERED = 10_000  # commits
READ_BYTES = 4 * 1024 * 1024  # of the end of the file: more than REMEMBERED rows
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class CommitRow(NamedTuple):
    """One verdict. `order_id` None: the commit names no order; `reason` empty: there is nothing to add."""

    at: str
    commit: str
    verdict: Verdict
    order_id: str | None
    rules: tuple[str, ...] = ()
    reason: str = ""


class CommitRecord:
    """The verdicts on this repository's commits, the newest of them in memory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = path_of("commits")
        self._rows: OrderedDict[str, CommitRow] = OrderedDict()
        self._is_unsynced = False
        self.read()

    def read(self) -> None:
        """Take in what the file says now."""
        self._rows.clear()
        for raw in parse_rows(_tail(self._root, self._path)):
            if row := commit_row_of(raw):
                self._remember(row)

    def of(self, commit: str) -> CommitRow | None:
        """The last verdict on a commit; None where there is none among the newest rows."""
        return self._rows.get(commit)

    def add(self, row: CommitRow) -> None:
        """Append a row. Raises Unreadable, OSError."""
        data = render_row(row._asdict() | {"reason": row.reason or None}).encode()
        end = ledger_end(self._root, self._path)
        if end.is_whole:
            if not append_at(self._root, self._path, data, end.size):
                raise OSError(f"{self._path} grew while a row was added to it")
        else:
            cut_and_append(self._root, self._path, b"\n" + data, end.size)  # a torn row stays, alone on its line
        self._remember(row)
        self._is_unsynced = True

    def sync(self) -> None:
        """Put added rows on disk. Raises FsyncFailed."""
        if self._is_unsynced:
            sync_file(self._root, self._path)
        self._is_unsynced = False

    def is_gone(self) -> bool:
        """Whether rows were read or written and their file is no longer there."""
        return bool(self._rows) and fingerprint(os.path.join(self._root, self._path)) is None

    def _remember(self, row: CommitRow) -> None:
        self._rows[row.commit] = row
        self._rows.move_to_end(row.commit)
        if len(self._rows) > REMEMBERED:
            self._rows.popitem(last=False)


def commit_row_of(raw: Mapping[str, object]) -> CommitRow | None:
    """The row; None where commit or verdict is missing or unknown."""
    commit, verdict, rules = raw.get("commit"), raw.get("verdict"), raw.get("rules")
    if not isinstance(commit, str) or verdict not in VERDICTS:
        return None
    return CommitRow(
        _text(raw, "at") or "",
        commit,
        cast(Verdict, verdict),
        _text(raw, "order_id"),
        tuple(rule for rule in rules if isinstance(rule, str)) if isinstance(rules, list) else (),
        _text(raw, "reason") or "",
    )


def _text(raw: Mapping[str, object], key: str) -> str | None:
    value = raw.get(key)
    return value if isinstance(value, str) else None


def _tail(root: Path, path: str) -> bytes:
    """The last READ_BYTES of a file, from the start of a line on; empty where no file is."""
    folder, _, name = path.rpartition("/")
    try:
        size = ledger_end(root, path).size  # refuses links and pipes
        with open_folder(root, folder) as fd:
            file = os.open(name, _LOOK, dir_fd=fd)
    except (OSError, Unreadable):
        return b""
    try:
        start = max(0, size - READ_BYTES)
        data = os.pread(file, READ_BYTES, start)
    finally:
        os.close(file)
    return data if start == 0 else data.partition(b"\n")[2]
