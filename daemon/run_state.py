"""One run's facts as the daemon knows them: read once, then kept in step file by file. Source: design §3.

Everything here can be dropped and read again at any time; the truth is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from daemon.overlay import OverlayTree
from daemon.scan import Fingerprint
from daemon.store import Notice, Store
from parsers.facts import OrderFact
from parsers.harness_run import HarnessRun, parse_harness_run
from parsers.layout import folder_of, path_of
from parsers.ledgers import IngestRow, LegRow, parse_ingest_rows, parse_legs
from parsers.markdown import encode
from parsers.receipts import Receipt, parse_dispatches, parse_receipt
from parsers.tasks import parse_task
from parsers.times import parse_time
from parsers.tree import Unreadable
from reducers.changes import Change, EditTask
from reducers.entries import AppendEntry, Entry
from reducers.identity import APPLIED
from reducers.live_contracts import RunOrders
from reducers.run import Attestation, Run
from reducers.task_index import TaskIndex, is_task_name


class RunState:
    """The run of one slug. Made by `load`, which first rolls the journal forward."""

    def __init__(self, root: Path, slug: str, notice: Notice) -> None:
        self.slug = slug
        self.store = Store(root, slug, notice)
        self.disk = self.store.tree
        self.overlay = OverlayTree(self.disk)
        self.orders: dict[str, OrderFact] = {}
        self.landed: dict[str, datetime] = {}  # when each order file was written last
        self.claimed: dict[str, str] = {}
        self.records: dict[str, tuple[IngestRow, ...]] = {}
        self.records_since: str | None = None
        self.has_applied = False  # a result moved this board: from then on an index is made where none stands
        self.had_records = False  # before this daemon began: what is older may be another reducer's work
        self.legs: dict[str, tuple[LegRow, ...]] = {}
        self.rejections: set[str] = set()
        self.own: dict[str, Fingerprint] = {}  # files as our last read or write left them
        self.tasks = TaskIndex()
        self.has_receipt = False
        self.receipt = Receipt(None)
        self.harness: HarnessRun | None = None
        self.dispatches = parse_dispatches(b"")
        self.journaled: dict[str, bytearray] = {}  # what we ever appended to the ledgers that others must not write

    @classmethod
    def load(cls, root: Path, slug: str, notice: Notice, *, recovers: bool = True) -> RunState:
        """The run as it stands on disk, after the journal's tail has been replayed. Raises OSError, FsyncFailed.

        `recovers` False only looks: nothing is written, and the journal's tail counts as far as its records say.
        """
        state = cls(root, slug, notice)
        entries = state.store.recover() if recovers else state.store.journal.entries(heal=False)
        state.journaled = journaled(entries, [path_of(kind, slug) for kind in _REMEMBERED])
        state.read_tasks()
        state.read_receipt()
        state.read_harness_run()
        state.read_dispatches()
        state.read_legs()
        state.read_records()
        state.had_records = bool(state.records)
        folder = folder_of("rejection", slug)
        state.rejections = {f"{folder}/{name}" for name in state.disk.list(folder)}
        return state

    def _bytes(self, path: str) -> bytes:
        try:
            return self.disk.read(path) or b""
        except Unreadable:
            return b""

    def read_tasks(self) -> None:
        """Take in every task file. Its stamp is taken first: a file that changes meanwhile is read again when its mark comes."""
        folder = folder_of("task", self.slug)
        for name in filter(is_task_name, self.disk.list(folder)):
            self.remember_own(f"{folder}/{name}")
            self.tasks.look(self.disk, f"{folder}/{name}")

    def read_receipt(self) -> None:
        """Take in receipt.json."""
        path = path_of("receipt", self.slug)
        data = self._bytes(path)
        self.has_receipt = bool(data)
        self.receipt = parse_receipt(data, path) if data else Receipt(None)

    @property
    def run_id(self) -> str | None:
        """The run that the folder belongs to."""
        return self.receipt.run_id

    def read_harness_run(self) -> None:
        """Take in harness-run.md."""
        path = path_of("harness-run", self.slug)
        is_there = self.disk.stamp(path) is not None
        self.harness = parse_harness_run(self._bytes(path), path) if is_there else None

    def read_dispatches(self) -> None:
        """Take in receipts/dispatch.jsonl."""
        self.dispatches = parse_dispatches(self._bytes(path_of("dispatch", self.slug)))

    def read_legs(self) -> None:
        """Take in legs.jsonl."""
        self.legs = {}
        for row in parse_legs(self._bytes(path_of("legs", self.slug))):
            self._add_leg(row)

    def read_records(self) -> None:
        """Take in receipts/ingest.jsonl; what it lost meanwhile, the journal still knows."""
        self.records, self.records_since = {}, None
        record = path_of("ingest-record", self.slug)
        for data in (self._bytes(record), bytes(self.journaled.get(record, b""))):
            for row in parse_ingest_rows(data):
                self._add_record(row)

    def _add_leg(self, row: LegRow) -> None:
        self.legs[row.order_id] = (*self.legs.get(row.order_id, ()), row)

    def _add_record(self, row: IngestRow) -> None:
        rows = self.records.get(row.order_id, ())
        self.has_applied |= row.outcome in APPLIED
        if row not in rows:
            self.records[row.order_id] = (*rows, row)
        if row.at is not None and (self.records_since is None or row.at < self.records_since):
            self.records_since = row.at

    def absorb(self, changes: tuple[Change, ...]) -> None:
        """Take in what a transaction will do, so that the next judgement of the batch sees it."""
        for change in changes:
            self.overlay.put(change)
            if isinstance(change, EditTask):
                self.tasks.put(parse_task(change.path, change.content)[0])
                continue
            if change.path in self.journaled:
                self.journaled[change.path] += encode(change.text)
            if change.path == path_of("ingest-record", self.slug):
                for record in parse_ingest_rows(encode(change.text)):
                    self._add_record(record)
            elif change.path == path_of("legs", self.slug):
                for leg in parse_legs(encode(change.text)):
                    self._add_leg(leg)

    def remember_own(self, path: str) -> None:
        """Note how our own write left a file, so that its event is known for our own."""
        stamp = self.disk.stamp(path)
        if stamp:
            self.own[path] = stamp

    def run_orders(self) -> RunOrders:
        """What decides which of the run's orders are live."""
        return RunOrders(
            orders=self.orders,
            records=self.records,
            has_receipt=self.has_receipt,
            run_id=self.run_id,
            harness=self.harness,
            dispatched=self.dispatches.by_order,
            landed=self.landed,
        )

    def run(self, attestation: Attestation) -> Run:
        """What the reducers look at."""
        return Run(
            slug=self.slug,
            tree=self.overlay,
            tasks=self.tasks,
            has_receipt=self.has_receipt,
            run_id=self.run_id,
            dispatches=self.dispatches,
            orders=self.orders,
            claimed=self.claimed,
            records=self.records,
            has_records=self.had_records,
            legs=self.legs,
            attestation=attestation,
            records_since=parse_time(self.records_since),
        )


READERS: dict[str, Callable[[RunState], None]] = {
    "receipt": RunState.read_receipt,
    "harness-run": RunState.read_harness_run,
    "dispatch": RunState.read_dispatches,
    "legs": RunState.read_legs,
    "ingest-record": RunState.read_records,
}


_REMEMBERED = ("ingest-record", "breakers", "gate-h")


def journaled(entries: Iterable[Entry], ledgers: Iterable[str]) -> dict[str, bytearray]:
    """By ledger, everything that these entries ever appended to it."""
    texts: dict[str, list[str]] = {path: [] for path in ledgers}
    for entry in entries:
        for step in entry.steps:
            if isinstance(step, AppendEntry) and step.path in texts:
                texts[step.path].append(step.text)
    return {path: bytearray(encode("".join(told))) for path, told in texts.items()}
