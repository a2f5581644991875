"""Keeps the hill of one run on disk: shards, chart, seesaw registry, and the trail of what moved. Source: protocol §5.4, W-36, rulings G3, G4.

All but the trail are views, written only where their bytes would differ. A move is one journaled row of hill.jsonl: it is what the
trail does not say yet, so no death and no restart tells it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from daemon.hill_facts import Memory, read_hill_facts
from daemon.log import Log
from daemon.run_state import RunState
from daemon.store import Transaction
from parsers.hill_trail import render_hill_row
from parsers.layout import classify, folder_of, path_of
from parsers.settings import Settings
from parsers.times import render_time
from parsers.tree import Unreadable
from reducers.changes import Append
from reducers.entries import Cause
from reducers.gate_h import Scope
from reducers.hill_trail import HillMove
from reducers.hill_views import HillViews, derive

# What a phase follows from; a result counts once it was applied.
KINDS = frozenset(
    "scope-contract t0-verdict trials orient hill-shard hill-chart seesaw order receipt ingest-record discovery-ledger".split()
)


class HillKeeper:
    """Used by the loop alone, under the run's lock. `stuck`: the scopes that three rounds of work did not move."""

    def __init__(self, state: RunState, settings: Settings, log: Log, now: Callable[[], datetime]) -> None:
        self._state = state
        self._writes_shared = settings.hill_write
        self._log = log
        self._now = now
        self._memory: Memory = {}
        self._has_looked = False
        self.stuck: tuple[Scope, ...] = ()

    def keep(self, marked: Collection[str], *, has_applied: bool) -> None:
        """Bring the hill in step with these files, which somebody else wrote, and with results that were applied. Raises FsyncFailed."""
        is_first, self._has_looked = not self._has_looked, True
        kinds = {place.kind for path in marked if (place := classify(path))}
        if not (is_first or has_applied or KINDS & kinds) or not self._has_hill():
            return
        facts = read_hill_facts(self._state.disk, self._state.slug, self._state.run_orders(), self._memory)
        views = derive(facts, writes_shared=self._writes_shared)
        self.stuck = tuple(Scope(split.scope_id, split.why) for split in views.splits)
        self._record(views.moves)
        for path, content in self._wanted(views).items():
            if self._write(path, content) and path in marked:
                self._tell_foreign(path)
        for move in views.moves:
            self._tell(move)

    def _has_hill(self) -> bool:
        """Whether there is anything that could stand on it: most of what lands belongs to runs without a contract."""
        disk, slug = self._state.disk, self._state.slug
        return any(disk.stamp(folder_of(kind, slug)) is not None for kind in ("scope-contract", "orient", "hill-shard"))

    def _wanted(self, views: HillViews) -> dict[str, bytes]:
        slug = self._state.slug
        wanted = dict(views.shards)
        if views.chart is not None:
            wanted[path_of("hill-chart", slug)] = views.chart
        if views.registry is not None:
            wanted[path_of("seesaw", slug)] = views.registry
        return wanted

    def _record(self, moves: Collection[HillMove]) -> None:
        if not moves:
            return
        state, at = self._state, render_time(self._now())
        path = path_of("hill-trail", state.slug)
        change = Append(path, "".join(render_hill_row(move.row(at)) for move in moves))
        state.store.check((change,))
        state.store.commit([Transaction(Cause(path, "", "", "moved"), (change,))], self._now())
        state.remember_own(path)

    def _write(self, path: str, content: bytes) -> bool:
        """Whether the view was rewritten."""
        state = self._state
        try:
            if state.disk.read(path) == content:
                return False
            state.store.write_view(path, content)
        except Unreadable as stop:
            state.store.tell_barred(stop)
            return False
        state.remember_own(path)
        return True

    def _tell(self, move: HillMove) -> None:
        fields: dict[str, Any] = {"from": move.from_phase, "to": move.to_phase, "why": move.why}
        run_id = self._state.run_id
        self._log.write("hill.moved", slug=self._state.slug, subject=move.scope_id, run_id=run_id, **fields)

    def _tell_foreign(self, path: str) -> None:
        note = "it follows from facts and was written anew; a checkout of another branch changes it as well"
        self._log.write("writer.foreign", level="warn", slug=self._state.slug, subject=path, note=note)
