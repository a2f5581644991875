"""A run in memory: the routes, reducers and journal of a real one over a dict tree, so that a thousand runs cost a second."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from parsers.board import parse_index, render_index
from parsers.facts import OrderFact, read_order, read_result, sha256_of
from parsers.layout import classify, folder_of, path_of
from parsers.ledgers import IngestRow, LegRow, parse_ingest_rows, parse_legs
from parsers.markdown import decode, encode
from parsers.receipts import parse_dispatches, parse_receipt
from parsers.tasks import parse_task
from parsers.times import parse_time, render_time
from parsers.tree import DictTree
from reducers.board import derive_index
from reducers.changes import Append, Change, EditTask
from reducers.entries import (
    AppendEntry,
    Cause,
    EditEntry,
    Entry,
    Step,
    complete_appends,
    hash_of,
    parse_entry,
    render_entry,
    roll_forward,
)
from reducers.ingest import reduce_result, refuse_result
from reducers.routes import ROUTES, Judges
from reducers.run import Attestation, Judgement, Run
from reducers.task_index import TaskIndex

SLUG = "mail"
RUN_ID = "mail-20260405T060708Z-00ff00ff"
START = datetime(2026, 4, 5, 12, 0, 0, tzinfo=UTC)
WANTING = ("rejected", "tampered", "pending")


class Died(Exception):
    """The process ended between the journal and the last byte of a transaction."""


class RunInMemory:
    """One run. `land` writes a file and does what the routes say; `restart` forgets everything but the bytes."""

    def __init__(self, files: Mapping[str, bytes], attestation: Attestation = "auto") -> None:
        self.tree = DictTree(files)
        self.journal: list[bytes] = []
        self.now = START
        self._attestation: Attestation = attestation
        self._dies_after: int | None = None
        self.restart()

    def restart(self) -> None:
        """Roll the journal forward, read everything, and look at everything, as a start does."""
        self._dies_after = None
        recover(self.tree, [entry for line in self.journal if (entry := parse_entry(line.removesuffix(b"\n")))])
        self.outcomes: dict[str, Judgement] = {}
        self.tasks = TaskIndex.read(self.tree, SLUG)
        self.orders: dict[str, OrderFact] = {}
        self.claimed: dict[str, str] = {}
        self._read_ledgers()
        for kind in ("order", "result"):
            folder = folder_of(kind, SLUG)
            self._settle([f"{folder}/{name}" for name in self.tree.list(folder)])
        self._derive_board()

    def land(self, path: str, data: bytes) -> Judgement | None:
        """One file landed; what its own result came to, where it has one."""
        self.tree.files[path] = data
        self._settle([path])
        return self.outcomes.get(path)

    def land_together(self, files: Mapping[str, bytes]) -> None:
        """Several files landed before anyone looked."""
        self.tree.files.update(files)
        self._settle(list(files))

    def die_in_next_transaction(self, after_bytes: int) -> None:
        """The next transaction is journaled, and cut off after so many bytes of its files were written."""
        self._dies_after = after_bytes

    def run(self) -> Run:
        return Run(
            SLUG,
            self.tree,
            self.tasks,
            bool(self.tree.read(path_of("receipt", SLUG))),
            parse_receipt(self.tree.read(path_of("receipt", SLUG)) or b"", "receipt.json").run_id,
            parse_dispatches(self.tree.read(path_of("dispatch", SLUG)) or b""),
            self.orders,
            self.claimed,
            self.records,
            bool(self.records),
            self.legs,
            self._attestation,
        )

    def _read_ledgers(self) -> None:
        self.records: dict[str, tuple[IngestRow, ...]] = {}
        self.legs: dict[str, tuple[LegRow, ...]] = {}
        self._note(path_of("ingest-record", SLUG), self.tree.read(path_of("ingest-record", SLUG)) or b"")
        self._note(path_of("legs", SLUG), self.tree.read(path_of("legs", SLUG)) or b"")

    def _note(self, path: str, data: bytes) -> None:
        if path == path_of("ingest-record", SLUG):
            for row in parse_ingest_rows(data):
                self.records[row.order_id] = (*self.records.get(row.order_id, ()), row)
        elif path == path_of("legs", SLUG):
            for leg in parse_legs(data):
                self.legs[leg.order_id] = (*self.legs.get(leg.order_id, ()), leg)

    def _settle(self, paths: Iterable[str]) -> None:
        judged: set[str] = set()
        for path in paths:
            place = classify(path)
            if place is None or place.kind not in ROUTES:
                continue
            if place.kind == "task":
                self.tasks.look(self.tree, path)
            elif place.kind == "order":
                self._admit(path)
            elif place.kind in ("legs", "ingest-record"):
                self._read_ledgers()
            if ROUTES[place.kind].judges is Judges.STANDING:
                judged |= {result for result, told in self.outcomes.items() if told.outcome in WANTING}
            elif ROUTES[place.kind].judges is Judges.OWN:
                judged.add(path_of("result", SLUG, place.stem or ""))
        for path in sorted(judged, key=self._catch_up_key):
            if self.tree.read(path) is not None:
                self._judge(path)
        self._derive_board()

    def _catch_up_key(self, path: str) -> tuple[float, str]:
        order = self.orders.get(stem_of_path(path))
        compiled = parse_time(order.order.compiled_at) if order else None
        return (compiled.timestamp() if compiled else float("inf"), path)

    def _admit(self, path: str) -> None:
        stem = stem_of_path(path)
        read = read_order(path, self.tree.files[path])
        self.orders.pop(stem, None)
        self.claimed.pop(stem, None)
        if read.fact:
            self.orders[stem] = read.fact
        elif read.claimed is not None:
            self.claimed[stem] = read.claimed

    def _judge(self, path: str) -> None:
        self.now += timedelta(seconds=1)
        data = self.tree.files[path]
        read = read_result(path, data)
        if read.is_abandoned:
            return
        if read.fact is None:
            judged = refuse_result(self.run(), path, sha256_of(data), read.faults, self.now)
        else:
            judged = reduce_result(self.run(), read.fact, self.now)
        self.outcomes[path] = judged
        if judged.changes:
            self._commit(Cause(path, sha256_of(data), judged.order_id, judged.outcome), judged.changes)

    def _commit(self, cause: Cause, changes: Sequence[Change]) -> None:
        """The journal first, then each file; every `was` must still hold."""
        steps = tuple(self._step(change) for change in changes)
        self.journal.append(render_entry(Entry(len(self.journal) + 1, render_time(self.now), cause, steps)))
        for change, step in zip(changes, steps, strict=True):
            if isinstance(change, EditTask):
                assert self.tree.files[change.path] == change.was
                self._write(change.path, b"", change.content, is_whole=True)
                self.tasks.put(parse_task(change.path, change.content)[0])
            else:
                assert isinstance(step, AppendEntry)
                self._write(change.path, self.tree.read(change.path) or b"", encode(step.text), is_whole=False)
                self._note(change.path, encode(change.text))

    def _step(self, change: Change) -> Step:
        if isinstance(change, EditTask):
            return EditEntry(
                change.path, hash_of(change.was), hash_of(change.content), change.edits, decode(change.was)
            )
        assert isinstance(change, Append)
        before = self.tree.read(change.path)
        header = change.header if before is None else ""
        return AppendEntry(change.path, len(before or b""), header + change.text)

    def _write(self, path: str, before: bytes, added: bytes, *, is_whole: bool) -> None:
        """A task file is renamed into place as a whole; a ledger can be torn."""
        if self._dies_after is not None:
            if self._dies_after < len(added):
                if not is_whole and (before or self._dies_after):
                    self.tree.files[path] = before + added[: self._dies_after]
                raise Died
            self._dies_after -= len(added)
        self.tree.files[path] = before + added

    def _derive_board(self) -> None:
        path = path_of("board-index", SLUG)
        data = self.tree.read(path)
        if len(self.tasks) and (data is not None or self.records):
            index = derive_index(None if data is None else parse_index(data), SLUG, self.tasks, None)
            self.tree.files[path] = render_index(index)

    def rows(self, kind: str, stem: str = "") -> list[dict[str, Any]]:
        """The rows of a ledger."""
        return [json.loads(line) for line in (self.tree.read(path_of(kind, SLUG, stem)) or b"").splitlines()]

    def text(self, path: str) -> str:
        return self.tree.files[path].decode()


def recover(tree: DictTree, entries: Iterable[Entry]) -> None:
    """Bring every file to what the journal says."""
    edits: dict[str, list[EditEntry]] = {}
    appends: dict[str, list[AppendEntry]] = {}
    for entry in entries:
        for step in entry.steps:
            if isinstance(step, EditEntry):
                edits.setdefault(step.path, []).append(step)
            else:
                appends.setdefault(step.path, []).append(step)
    for path, made in edits.items():
        rolled = roll_forward(tree.read(path), made)
        assert rolled is not None
        tree.files[path] = rolled
    for path, added in appends.items():
        data = tree.read(path) or b""
        if missing := complete_appends(data, added):
            tree.files[path] = data[: missing[0]] + missing[1]


def stem_of_path(path: str) -> str:
    return path.rsplit("/", 1)[-1].removesuffix(".json")


# --- the facts of a small run ----------------------------------------------------------------------------------------


def task_path(task_id: str) -> str:
    return path_of("task", SLUG, task_id)


def task_file(
    task_id: str, *boxes: str, status: str = "ready", needs: Sequence[str] = (), newline: str = "\n"
) -> bytes:
    lines = [
        "---",
        f"id: {task_id}",
        f"title: {task_id}",
        f"status: {status}",
        f"depends_on: [{', '.join(needs)}]",
        "---",
        "",
    ]
    return newline.join([*lines, *(f"- [ ] {box}" for box in boxes), "end"]).encode()


def order_file(stem: str, worker: str = "task-executor", **more: object) -> tuple[str, bytes]:
    order = {
        "schema_version": 1,
        "order_id": f"{SLUG}/{stem}",
        "run_id": RUN_ID,
        "compiled_at": "2026-04-05T10:00:00.000Z",
        "worker": worker,
        "mode": "orchestrated",
        "payload": {},
    }
    return path_of("order", SLUG, stem), as_json(order | more)


def result_file(stem: str, **more: object) -> tuple[str, bytes]:
    result = {"schema_version": 1, "order_id": f"{SLUG}/{stem}", "status": "done"}
    return path_of("result", SLUG, stem), as_json(result | more)


def task_result(task_id: str, *passed: str, status: str = "done", **more: object) -> dict[str, Any]:
    return {"task_id": task_id, "status": status, "ac_results": [{"ac": ac, "result": "pass"} for ac in passed]} | more


def receipt_file() -> tuple[str, bytes]:
    return path_of("receipt", SLUG), as_json({"slug": SLUG, "run_id": RUN_ID, "started": True})


def dispatch_row(stem: str, skill: str = "task-executor", **more: object) -> bytes:
    row = {"at": "2026-04-05T11:00:00.000Z", "order_id": f"{SLUG}/{stem}", "run_id": RUN_ID, "skill_invoked": skill}
    return as_json(row | more) + b"\n"


def as_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
