"""Judges one result as it lies there now: half-written, refused, or reduced into changes; nothing is written here. Source: protocol §4.1, design §3."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from daemon.round_loop import RoundLoop
from daemon.run_state import RunState
from daemon.settled import Settled
from daemon.settling import Settling
from daemon.views import remove_rejection
from parsers.facts import ReadResult, ResultFact, read_result, sha256_of
from parsers.faults import Fault
from parsers.layout import stem_at
from parsers.tree import Unreadable
from reducers.ingest import reduce_result, refuse_result
from reducers.run import Attestation, Judgement, Run


class Landed(NamedTuple):
    """A judged result on its way to disk."""

    path: str
    settled: Settled
    judgement: Judgement


class Judging:
    """The results of one run. `results` holds how each stands, by path."""

    def __init__(
        self,
        state: RunState,
        settling: Settling,
        loop: RoundLoop,
        attestation: Attestation,
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._state = state
        self._settling = settling
        self._loop = loop
        self._attestation = attestation
        self._now = now
        self._monotonic = monotonic
        self.results: dict[str, Settled] = {}

    def judge(self, path: str, attestation: Attestation | None) -> Landed | None:
        """The result judged now; None when it is gone, half-written, or stands as it stood."""
        before = self.results.get(path)
        try:
            data, stamp = self._state.disk.read_stamped(path)
        except Unreadable as stop:
            return self._refuse_unreadable(path, stop.fault)
        if data is None:
            self.results.pop(path, None)
            self._settling.forget(path)
            remove_rejection(self._state, "result", path)
            return None
        if before and before.stamp == stamp and not before.is_wanting:
            return None  # a second event of one landing
        read = read_result(path, data)
        if read.faults and self._settling.is_half_written(path, stamp, read.faults[0], self._now(), self._monotonic()):
            return None
        self._settling.forget(path)
        judgement = self._judgement(path, data, read, attestation)
        settled = Settled(
            stamp, sha256_of(data), judgement.order_id, judgement.outcome, judgement.faults, judgement.summary
        )
        self.results[path] = settled
        if before is None and judgement.outcome == "duplicate":
            remove_rejection(self._state, "result", path)  # a death may have come between the commit and this
            return None  # settled before this daemon started
        if before and before.is_wanting and not judgement.changes and before._replace(stamp=stamp) == settled:
            return None  # judged again, stands as it stood
        return Landed(path, settled, judgement)

    def _judgement(self, path: str, data: bytes, read: ReadResult, attestation: Attestation | None) -> Judgement:
        run = self._state.run(attestation or self._attestation)
        if read.is_abandoned:
            return Judgement("abandoned", f"{self._state.slug}/{stem_at(path)}", run.run_id)
        if read.fact is None:
            return self._accept(refuse_result(run, path, sha256_of(data), read.faults, self._now()))
        judgement = self._ruled(run, read.fact, reduce_result(run, read.fact, self._now()))
        try:
            self._state.store.check(judgement.changes)
        except Unreadable as stop:
            order_id = read.fact.result.order_id
            judgement = refuse_result(run, path, read.fact.sha256, (stop.fault,), self._now(), order_id)
        return self._accept(judgement)

    def _ruled(self, run: Run, fact: ResultFact, judgement: Judgement) -> Judgement:
        """The judgement, or a refusal where the result leaves an invariant that denies. Source: protocol §9."""
        if judgement.outcome not in ("applied", "superseded"):
            return judgement
        order = run.orders.get(fact.stem)
        ruling = self._loop.rule_result(fact, order.order if order else None)
        if ruling.denied:
            return refuse_result(run, fact.path, fact.sha256, ruling.denied, self._now(), fact.result.order_id)
        return judgement._replace(warnings=(*judgement.warnings, *ruling.warned))

    def _accept(self, judgement: Judgement) -> Judgement:
        self._state.absorb(judgement.changes)
        return judgement

    def _refuse_unreadable(self, path: str, fault: Fault) -> Landed | None:
        """Something that is no file stands in a result's place. Source: ruling L2."""
        if fault.code == "E-SYMLINK":
            fault = fault._replace(code="E-NOT-A-FILE")
        run = self._state.run(self._attestation)
        judgement = self._accept(refuse_result(run, path, "", (fault,), self._now()))
        settled = Settled(None, "", judgement.order_id, judgement.outcome, judgement.faults, judgement.summary)
        before, self.results[path] = self.results.get(path), settled
        return None if before == settled and not judgement.changes else Landed(path, settled, judgement)
