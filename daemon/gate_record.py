"""Records what became of a gate: a row in gates.jsonl and, where it was crossed, one in the committed round ledger. Source: protocol §8.6, F7, advisor P5.

Both rows are on disk before anybody is told. What is meant is written down first (`journal/gate.json`): a death between the
two files is made good by the next command, and one that asks the same again adds no second row. (Who dies with both rows
whole, before anybody is told, has crossed: asking again is a crossing of its own, as it is for any gate.) The run's own
journal does not fit: it has one writer, the holder of the repository, and a gate must be answered beside a daemon as well as without
one; its appends go to a file's end, while a decision belongs behind the last row of a table; and `rebuild` would put rows
into the ledger of whatever branch is checked out.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from daemon.disk import DiskTree, open_folder
from daemon.ingest_lock import IngestLock
from daemon.journal import fsync
from daemon.writes import append_at, cut_and_append, ledger_end, remove_file, replace_file, sync_file
from parsers.faults import Fault
from parsers.layout import folder_of, path_of
from parsers.ledgers import parse_rows, render_row
from parsers.markdown import encode
from parsers.round_ledger import Decision, append_decisions, parse_round_ledger, plain_decision
from parsers.tree import Unreadable
from reducers.entries import AppendEntry, complete_appends

LOCK_POLL_S = 0.02
LOCK_PATIENCE_S = 30.0  # protocol §4.2
INTENT = "gate.json"

Row = Mapping[str, object]


class Locked(Exception):
    """Another reducer held the run's lock for as long as one waits."""


class Intent(NamedTuple):
    """One gate on its way to disk. `standing`: how many rows like this decision the round ledger held before."""

    offset: int
    text: str
    decision: Decision
    standing: int


def record_gate(root: Path, slug: str, row: Row, decision: Decision | None, now: Callable[[], datetime]) -> None:
    """Put the row into gates.jsonl and the decision, if there is one, into the round ledger; both are on disk when this returns.

    Raises Locked, Unreadable, OSError, FsyncFailed: then nothing may be told, and the same call again makes it good.
    """
    with open_folder(root, folder_of("gates", slug), create=True):
        pass
    with _locked(root, slug, now):
        made_good = complete_gate(root, slug)
        if made_good is not None and _is_same(made_good, row):
            return
        if decision is None:
            _append_row(root, path_of("gates", slug), render_row(row))
            return
        intent = _intent(root, slug, row, plain_decision(decision))
        _write_down(root, slug, intent)
        _carry_out(root, slug, intent)


def complete_gate(root: Path, slug: str) -> Row | None:
    """Make good what a death left half done; its row, None where nothing was. The caller holds the run's lock."""
    path = _intent_path(slug)
    data = DiskTree(root).read(path)
    if data is None:
        return None
    intent = _parse_intent(data, path)
    _carry_out(root, slug, intent)
    return next(iter(parse_rows(encode(intent.text))), None)


@contextmanager
def _locked(root: Path, slug: str, now: Callable[[], datetime]) -> Iterator[None]:
    lock = IngestLock(root, slug, now, holds_repository=False)
    pause = threading.Event()
    for _ in range(int(LOCK_PATIENCE_S / LOCK_POLL_S)):
        if lock.take():
            break
        pause.wait(LOCK_POLL_S)
    else:
        raise Locked(f"another reducer holds {folder_of('ingest-lock', slug)} for {LOCK_PATIENCE_S:g} s")
    try:
        yield
    finally:
        lock.release()


def _intent(root: Path, slug: str, row: Row, decision: Decision) -> Intent:
    end = ledger_end(root, path_of("gates", slug))
    standing = _standing(DiskTree(root).read(path_of("round-ledger", slug)), decision)
    return Intent(end.size, ("" if end.is_whole else "\n") + render_row(row), decision, standing)


def _standing(ledger: bytes | None, decision: Decision) -> int:
    rows = parse_round_ledger(ledger or b"").rows
    return sum(decision == row.decision or (row.decision is None and row.cells == decision) for row in rows)


def _write_down(root: Path, slug: str, intent: Intent) -> None:
    """The commit point."""
    path = _intent_path(slug)
    replace_file(root, path, json.dumps({"schema": 1, **intent._asdict()}).encode(), is_synced=True)
    _sync(root, path)


def _carry_out(root: Path, slug: str, intent: Intent) -> None:
    gates = path_of("gates", slug)
    missing = complete_appends(DiskTree(root).read(gates) or b"", (AppendEntry(gates, intent.offset, intent.text),))
    if missing is not None:
        cut_and_append(root, gates, missing[1], missing[0])
    _sync(root, gates)
    _add_decision(root, slug, intent)
    remove_file(root, _intent_path(slug))


def _add_decision(root: Path, slug: str, intent: Intent) -> None:
    """Put the row into the round ledger, unless it is there; somebody may be editing the file, so it is looked at again."""
    path = path_of("round-ledger", slug)
    tree = DiskTree(root)
    while True:
        before, stamp = tree.read_stamped(path)
        if _standing(before, intent.decision) > intent.standing:
            break
        after = append_decisions(before, slug, (intent.decision,))
        if tree.stamp(path) == stamp:
            replace_file(root, path, after, is_synced=True)
            break
    _sync(root, path)


def _append_row(root: Path, path: str, text: str) -> None:
    end = ledger_end(root, path)
    while not append_at(root, path, encode(text if end.is_whole else "\n" + text), end.size):
        end = ledger_end(root, path)
    _sync(root, path)


def _sync(root: Path, path: str) -> None:
    """Put the file on disk with every folder that leads to it; some may be new."""
    sync_file(root, path)
    folder = path.rpartition("/")[0]
    while folder:
        folder = folder.rpartition("/")[0]
        with open_folder(root, folder) as fd:
            fsync(fd, folder or "the repository")


def _intent_path(slug: str) -> str:
    return path_of("journal", slug, INTENT)


def _parse_intent(data: bytes, path: str) -> Intent:
    """The intent; it takes its name as a whole, so one that cannot be read was damaged, or is none of ours. Raises Unreadable."""
    try:
        value = json.loads(data)
        decision = Decision(*map(str, value["decision"]))
        return Intent(int(value["offset"]), str(value["text"]), decision, int(value["standing"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        why = "it says what a gate command that died was writing, and this text says nothing"
        fix = "look at the last rows of gates.jsonl and of the round ledger, then remove the file"
        raise Unreadable(Fault("E-JOURNAL", path, "the note of a gate is damaged", why, fix)) from None


def _is_same(made_good: Row, row: Row) -> bool:
    """Whether the two rows say the same, whenever they were written."""
    return {**made_good, "at": None} == {**row, "at": None}
