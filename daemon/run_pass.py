"""One pass over one run: read what changed, judge the results it touches, commit them together, derive the views. Source: design §3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from daemon.admission import Admission
from daemon.boot_clock import read_clocks
from daemon.breakers.breakers import Breakers
from daemon.breakers.notify import Notifier
from daemon.breakers.telling import BreakerTelling
from daemon.disk import not_a_file
from daemon.evidence_watch import EvidenceWatch
from daemon.gate_record import Locked, complete_gate
from daemon.hill_keeper import HillKeeper
from daemon.ingest_lock import IngestLock
from daemon.judging import Judging, Landed
from daemon.log import Log
from daemon.policy_on_disk import written_policy
from daemon.round_loop import RoundLoop
from daemon.run_state import READERS, RunState
from daemon.scan import is_fact_path
from daemon.settled import Settled, Tally
from daemon.settling import Settling
from daemon.spec_keeper import SpecKeeper
from daemon.store import Transaction
from daemon.t0.graders import record_graders
from daemon.telling import tell_board, tell_judgement
from daemon.views import BoardView, remove_rejection, write_rejection
from parsers.clock_anchor import Clocks
from parsers.faults import Fault, render_fault
from parsers.layout import classify, folder_of, path_of, stem_at
from parsers.settings import Settings
from parsers.tasks import Task
from parsers.times import parse_time
from parsers.tree import Unreadable
from reducers.changes import EditTask
from reducers.entries import Cause
from reducers.live_contracts import is_answered
from reducers.rebuild import Repair, rebuild_run
from reducers.routes import ROUTES, Judges
from reducers.run import Attestation
from reducers.task_index import is_task_name

EVIDENCE = frozenset({"t0-verdict", "trials"})
BATCH = 256  # results that share one fsync; more would delay the first of them


class RunPass:
    """One run, settled pass by pass. Used by the loop alone."""

    def __init__(
        self,
        root: Path,
        slug: str,
        settings: Settings,
        log: Log,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
        latencies_ms: list[float],
        clocks: Callable[[], Clocks] = read_clocks,
    ) -> None:
        self.slug = slug
        self._settings = settings
        self._log = log
        self._now = now
        self._monotonic = monotonic
        self._latencies_ms = latencies_ms
        self._lock = IngestLock(root, slug, now)
        self.state = RunState.load(root, slug, self._notice)
        self._board = BoardView()
        self._tell_links(root)
        for fault in self.state.store.journal.faults:
            self._notice("daemon.error", {"subject": fault.where, "code": fault.code, "error": fault})
        self._settling = Settling()
        loop = RoundLoop(self.state, settings.rule)
        written = written_policy(self.state.disk)
        known = frozenset(contract.order_id for contract in written.contracts) if written else frozenset()
        self.admission = Admission(self.state, self._settling, loop, log, known)
        telling = BreakerTelling(log, slug, Notifier(settings.breakers_notify, log))
        self.breakers = Breakers(self.state, settings, telling, now, self._admit, clocks)
        self.admission.bars = self.breakers.refusal
        self._hill = HillKeeper(self.state, settings, log, now)
        self._specs = SpecKeeper(self.state.disk, slug, log)
        self._evidence = EvidenceWatch(self.state, log)
        self._judging = Judging(self.state, self._settling, loop, settings.ingest_attestation, now, monotonic)
        self._has_derived = False  # the first pass brings the whole board in step

    @property
    def results(self) -> dict[str, Settled]:
        """How each result stands, by path."""
        return self._judging.results

    def _notice(self, event: str, fields: dict[str, Any]) -> None:
        error = fields.get("error")
        if isinstance(error, Fault):
            fields = fields | {"error": render_fault(error)}
        level = "error" if event == "daemon.error" else "info"
        self._log.write(event, level=level, slug=self.slug, subject=str(fields.pop("subject", self.slug)), **fields)

    def _tell_links(self, root: Path) -> None:
        """A folder that is a link is never followed; without a word its facts would just not count."""
        for kind in ("order", "result", "board-index", "dispatch", "discovery-ledger", "verdict-ledger", "journal"):
            folder = folder_of(kind, self.slug)
            if (root / folder).is_symlink():
                self.state.store.tell_barred(not_a_file(folder, "a symbolic link, and links are never followed"))

    def paths_on_disk(self) -> list[str]:
        """Every order and result of the run, and those a rejection speaks of."""
        folders = [folder_of(kind, self.slug) for kind in ("order", "result")]
        paths = {f"{folder}/{name}" for folder in folders for name in self.state.disk.list(folder)}
        for rejection in self.state.rejections:
            kind, _, stem = stem_at(rejection).partition("-")
            paths.add(path_of(kind, self.slug, stem) if kind in ("order", "result") else rejection)
        return [path for path in sorted(paths) if is_fact(path)]

    def is_gone(self) -> bool:
        """Whether the run's journal was removed under us."""
        return self.state.store.journal.is_gone()

    @property
    def due_at(self) -> float | None:
        """When a file that could not be read, or is gone, must be looked at again."""
        return self._settling.due_at

    def waits_since(self, before: float) -> bool:
        """Whether a file that was half-written or gone at that moment still is."""
        return self._settling.waits_since(before)

    def settle(self, dirty: Mapping[str, float]) -> bool:
        """Do what these paths (and files due to settle) ask for; False where another reducer holds the lock."""
        marked = self._ready(dirty)
        if not marked and self._has_derived and not self.breakers.is_due():
            return True
        if not self._lock.take():
            return False
        try:
            if not self._has_derived:
                self._complete_gate()
            self._settle(marked)
            if not self._has_derived:
                self._derive_board(None)
                self._has_derived = True
        finally:
            self._lock.release()
        return True

    def _complete_gate(self) -> None:
        """Make good what a gate command that died left half done."""
        try:
            complete_gate(self.state.disk.root, self.slug)
        except Unreadable as stop:
            self.state.store.tell_barred(stop)

    def _conclude(self) -> None:
        """Tell of the orders that were admitted, and write down what will grade them, before their workers can touch it. Source: G5."""
        for fact in self.admission.conclude(self._now()):
            try:
                record_graders(self.state.disk.root, fact, self._now())
            except Unreadable as stop:
                self.state.store.tell_barred(stop)

    def _admit(self, path: str) -> None:
        self.admission.look(path, self._now(), self._monotonic())

    def _ready(self, dirty: Mapping[str, float]) -> dict[str, float]:
        """The marked paths to act on now. Our own writes are no news; a file that is gone counts as gone once that has
        lasted: whoever removes one may be removing the folder, and nothing of ours may get in the way."""
        at = self._monotonic()
        ready = dict.fromkeys(self._settling.due(at), at)
        for path, since in dirty.items():
            if path not in ready and self.state.disk.stamp(path) is None:
                self._settling.note_absent(path, at)
            elif not self._is_own(path):
                ready[path] = since
        return ready

    def _is_own(self, path: str) -> bool:
        """Whether the file is as we last read or wrote it."""
        own = self.state.own.get(path)
        return own is not None and own == self.state.disk.stamp(path)

    def _settle(self, marked: Mapping[str, float]) -> None:
        judged: set[str] = set()
        tasks: set[str] = set()
        derives_board = False
        for path in marked:
            place = classify(path)
            assert place is not None  # the reconciler marks routed paths only
            route = ROUTES[place.kind]
            derives_board |= route.derives_board
            if place.kind not in ("order", "result"):
                self._settling.forget(path)
            if place.kind == "task":
                self.state.tasks.look(self.state.disk, path)
                tasks.add(path)
            elif place.kind == "order":
                self.admission.look(path, self._now(), self._monotonic())
            elif reread := READERS.get(place.kind):
                reread(self.state)
            self.breakers.note(place.kind)
            if route.judges is Judges.STANDING:
                judged |= {result for result, settled in self.results.items() if settled.is_wanting}
            elif route.judges is Judges.OWN and place.stem:
                judged.add(path_of("result", self.slug, place.stem))
        known = [path for path in judged if path in marked or path in self.results]
        if derives_board:
            self._derive_board(None if path_of("board-index", self.slug) in marked else tasks)
        self.breakers.keep_time()  # after the orders that landed before it, before any result is told
        has_applied = self._judge_all(sorted(known, key=self._catch_up_key), marked, None)
        self.admission.reconsider(self._now(), self._monotonic())
        self._conclude()
        if not self._has_derived or any(place.kind in EVIDENCE for path in marked if (place := classify(path))):
            self._evidence.look(self.breakers.facts.trials)
        self._hill.keep(marked, has_applied=has_applied)
        self.breakers.keep({stem_at(path) for path in (*judged, *marked)}, self._hill.stuck)
        self._conclude()  # a trip brings a hammer order
        self._specs.keep(marked)

    def _catch_up_key(self, path: str) -> tuple[float, str]:
        """Results that wait together are applied in the order their orders were compiled, then by stem. Source: C10."""
        order = self.state.orders.get(stem_at(path))
        compiled = parse_time(order.order.compiled_at) if order else None
        return (compiled.timestamp() if compiled else float("inf"), stem_at(path))

    def _judge_all(self, paths: list[str], marked: Mapping[str, float], attestation: Attestation | None) -> bool:
        """Judge the results and carry them out, batch by batch; what is told afterwards is durable, the board included.

        Whether anything was committed.
        """
        has_committed = False
        for first in range(0, len(paths), BATCH):
            landed = [item for path in paths[first : first + BATCH] if (item := self._judging.judge(path, attestation))]
            changed = self._commit(landed)
            if changed is not None:
                has_committed = True
                self._derive_board(changed)
            at = self._monotonic()
            for item in landed:
                since = marked.get(item.path)
                self._tell(item, (at - since) * 1000 if since is not None else None)
        return has_committed

    def _commit(self, landed: Iterable[Landed]) -> set[str] | None:
        """Commit a batch with one fsync; returns the task files that changed, None where there was nothing to commit.

        Raises OSError, FsyncFailed.
        """
        transactions = [
            Transaction(
                Cause(item.path, item.settled.sha256, item.judgement.order_id, item.judgement.outcome),
                item.judgement.changes,
            )
            for item in landed
            if item.judgement.changes
        ]
        if not transactions:
            return None
        self.state.store.commit(transactions, self._now())
        self.state.overlay.clear()
        written = {change.path for t in transactions for change in t.changes}
        for path in written:
            self.state.remember_own(path)
        return {change.path for t in transactions for change in t.changes if isinstance(change, EditTask)}

    def _tell(self, item: Landed, ms: float | None) -> None:
        """The rejection file and the log of one judged result."""
        if item.settled.is_wanting and item.settled.outcome != "pending":
            faults = item.settled.faults
            write_rejection(self.state, "result", item.path, item.settled.sha256, faults, self._now())
        else:
            remove_rejection(self.state, "result", item.path)
        if ms is not None and item.judgement.changes:
            self._latencies_ms.append(ms)
            del self._latencies_ms[:-10_000]
        tell_judgement(self._log, self.slug, item.path, item.judgement, ms)

    def _derive_board(self, paths: set[str] | None) -> None:
        if not self._settings.board_write_index:
            return
        tasks: list[Task] | None = None
        if paths is not None:
            tasks = [task for path in paths if (task := self.state.tasks.get(path))]
        try:
            written = self._board.derive(self.state, tasks, create=self.state.has_applied)
        except Unreadable as stop:
            self._notice("daemon.error", {"subject": stop.fault.where, "code": stop.fault.code, "error": stop.fault})
            return
        if written:
            tell_board(self._log, self.slug, self.state.tasks)

    def ingest(self, path: str, attestation: Attestation | None) -> Settled | None:
        """Judge one result now; None where another reducer holds the lock, or the file may still be being written.

        Raises FileNotFoundError where there is none.
        """
        if self.state.disk.stamp(path) is None:
            raise FileNotFoundError(path)
        if not self._lock.take():
            return None
        try:
            self.admission.look_all(self._now(), self._monotonic())
            if path in self.results:
                self.results[path] = self.results[path]._replace(stamp=None)  # asked for: looked at again
            has_applied = self._judge_all([path], {path: self._monotonic()}, attestation)
            self._hill.keep((), has_applied=has_applied)
            self.breakers.keep({stem_at(path)}, self._hill.stuck)
            self._conclude()
            return None if self._settling.is_waiting(path) else self.results.get(path)
        finally:
            self._lock.release()

    def extend(self, added_s: float, by: str) -> str | None:
        """Grant the run more time and look at the refused orders again; why not, where it cannot be. Source: F3.

        Raises Locked where another reducer holds the run.
        """
        if not self._lock.take():
            raise Locked(f"another reducer holds run {self.slug}")
        try:
            refusal = self.breakers.extend(added_s, by)
            if refusal is None:
                self.admission.look_all(self._now(), self._monotonic())
                self._conclude()
                self.breakers.write_view()
            return refusal
        finally:
            self._lock.release()

    def rebuild(self) -> tuple[Repair, ...] | None:
        """Bring task files, ledgers and index to what the journal says; None where another reducer holds the lock."""
        if not self._lock.take():
            return None
        try:
            entries = self.state.store.journal.entries()
            write_index = self._settings.board_write_index
            repairs = rebuild_run(self.state.disk, self.slug, entries, write_index=write_index)
            for repair in repairs:
                self.state.store.write_view(repair.path, repair.now)
                if is_task_name(repair.path.rsplit("/", 1)[-1]):
                    self.state.tasks.look(self.state.disk, repair.path)
            return repairs
        finally:
            self._lock.release()

    def tally(self) -> Tally:
        """How the run's results stand."""
        outcomes = [settled.outcome for settled in self.results.values()]
        pending = outcomes.count("pending")
        rejected = outcomes.count("rejected") + outcomes.count("tampered")
        return Tally(len(outcomes) - pending - rejected, rejected, pending, len(self.admission.refused))

    def live_orders(self) -> list[str]:
        """Admitted orders whose bytes no ingest has answered and whose result does not stand refused. Sources: B2, W-31."""
        if not self.state.run_orders().is_open():
            return []
        stood = {stem_at(path) for path, settled in self.results.items() if settled.is_wanting}
        return sorted(
            fact.order.order_id
            for stem, fact in self.state.orders.items()
            if stem not in stood and not is_answered(self.state.records, fact)
        )

    def wanting_results(self) -> list[dict[str, str | None]]:
        """Results that stand refused or wait, with the code of the reason: their orders are neither live nor done. Source: W-31."""
        return [
            {
                "path": path,
                "order_id": settled.order_id,
                "outcome": settled.outcome,
                "code": settled.faults[0].code if settled.faults else None,
            }
            for path, settled in sorted(self.results.items())
            if settled.is_wanting
        ]

    def checkpoint(self) -> None:
        """Put the run's files on disk."""
        self.state.store.checkpoint()

    def close(self) -> None:
        """Let go of the journal."""
        self.state.store.close()


def is_fact(path: str) -> bool:
    """Whether the path is an order's or a result's, and no temporary or hidden file."""
    place = classify(path) if is_fact_path(path) else None
    return place is not None and place.kind in ("order", "result")
