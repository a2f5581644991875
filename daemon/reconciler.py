"""The reconciler: compares what is on disk with what has been recorded, and does what is missing. Source: design §3.

Level-triggered: an event only marks a path dirty, a pass reads the present state. One run after another is settled, each
under its own lock; a run that is locked, broken or short of disk space delays no other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from daemon import clock
from daemon.boot_clock import read_clocks
from daemon.bug_report import report_bug
from daemon.journal import FsyncFailed, is_full
from daemon.log import Log
from daemon.policy_writer import PolicyWriter
from daemon.run_pass import RunPass
from daemon.scan import is_fact_path
from daemon.settled import Settled, Tally
from daemon.settling import SETTLE_S
from daemon.t0.auto import Due
from parsers.clock_anchor import Clocks
from parsers.faults import Fault, render_fault
from parsers.layout import classify, folder_of, path_of
from parsers.settings import Settings
from parsers.tree import Unreadable
from reducers.live_contracts import RunOrders
from reducers.rebuild import Repair
from reducers.routes import ROUTES
from reducers.run import Attestation

LOCK_POLL_S = 0.02
LOCK_PATIENCE_S = 30.0
RETRY_S = (0.1, 5.0)
POLICY_KINDS = frozenset({"order", "receipt", "harness-run", "dispatch", "ingest-record"})


class Backoff(NamedTuple):
    """When a troubled run is tried again, how long it waits next time, and since when it has been in trouble."""

    at: float
    pause_s: float
    since: float


class Reconciler:
    """All runs of one repository. `mark` may be called from any thread; everything else from the loop alone."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        log: Log,
        *,
        now: Callable[[], datetime] = clock.now,
        monotonic: Callable[[], float] = clock.monotonic,
        wake: Callable[[], None] = lambda: None,
        clocks: Callable[[], Clocks] = read_clocks,
    ) -> None:
        self._root = root
        self._settings = settings
        self._log = log
        self._now = now
        self._monotonic = monotonic
        self._wake = wake
        self._clocks = clocks
        self._guard = threading.Lock()
        self._dirty: dict[str, dict[str, float]] = {}  # slug → path → when marked
        self._passes: dict[str, RunPass] = {}
        self._backoff: dict[str, Backoff] = {}
        self._unsaved: set[str] = set()  # runs whose last checkpoint could not be noted
        self.latencies_ms: list[float] = []
        self.policy: PolicyWriter | None = None  # who wants to know when the live orders may have changed

    def mark(self, paths: Iterable[str]) -> None:
        """Note paths that may have changed; paths no reducer looks at are dropped here."""
        at = self._monotonic()
        kept = [(slug, path) for path in paths if (slug := route_slug(path))]
        if not kept:
            return
        with self._guard:
            for slug, path in kept:
                self._dirty.setdefault(slug, {}).setdefault(path, at)
        self._wake()

    def settle(self) -> None:
        """One pass over every run that has something to do and is not waiting. Raises FsyncFailed."""
        at = self._monotonic()
        for slug in self._due(at):
            with self._guard:
                dirty = self._dirty.pop(slug, {})
            self._note(dirty, at)
            self._settle_run(slug, dirty)

    def _note(self, dirty: Mapping[str, float], at: float) -> None:
        """Tell the policy before the files are read; a pass without marks looks again at what was half-written."""
        if self.policy is None:
            return
        kinds = {place.kind for path in dirty if (place := classify(path))}
        if not dirty or kinds & POLICY_KINDS:
            self.policy.note_orders()
        elif "result" in kinds:
            self.policy.note_answers(at)

    def run_orders(self) -> dict[str, RunOrders]:
        """What decides which orders are live, run by run."""
        return {slug: run.state.run_orders() for slug, run in self._passes.items()}

    def _due(self, at: float) -> list[str]:
        with self._guard:
            wanted = set(self._dirty)
        wanted |= {slug for slug, run in self._passes.items() if run.due_at is not None and run.due_at <= at}
        return sorted(slug for slug in wanted if slug not in self._backoff or self._backoff[slug].at <= at)

    def _settle_run(self, slug: str, dirty: dict[str, float]) -> None:
        if not os.path.lexists(self._root / folder_of("receipt", slug)):
            self._forget(slug)
            return
        known = self._passes.get(slug)
        if known and known.is_gone():
            self._let_wipe(slug, dirty)
            return
        try:
            run = self._pass_of(slug, dirty)
            is_settled = run.settle(dirty)
            if self.policy and run.admission.take_news():
                self.policy.note_admissions()
            if is_settled:
                self._backoff.pop(slug, None)
            else:
                self._wait_for_lock(slug, dirty)
        except (OSError, Unreadable) as error:
            self._stumble(slug, dirty, error)
        except FsyncFailed:
            raise
        except Exception as bug:  # one run's trouble must not stop the others; the report says where to look
            report_bug(self._log, bug, f"settling run {slug}")
            self._stumble(slug, dirty, OSError(0, f"a bug: {bug!r}"))

    def _pass_of(self, slug: str, dirty: dict[str, float]) -> RunPass:
        """The run's pass; read anew where its files were wiped under us, with everything marked."""
        run = self._passes.get(slug)
        if run and run.is_gone():
            self._forget(slug)
            run = None
        if run is None:
            run = RunPass(
                self._root,
                slug,
                self._settings,
                self._log,
                self._now,
                self._monotonic,
                self.latencies_ms,
                self._clocks,
            )
            self._passes[slug] = run
            for path in run.paths_on_disk():
                dirty.setdefault(path, self._monotonic())
        return run

    def _let_wipe(self, slug: str, dirty: dict[str, float]) -> None:
        """Somebody is removing the run's files: keep out of the way for a moment, then look at what is there."""
        self._forget(slug)
        at = self._monotonic()
        self._backoff[slug] = Backoff(at + SETTLE_S, SETTLE_S, at)
        self._put_back(slug, dirty)

    def _forget(self, slug: str) -> None:
        """Let go of a run whose files were wiped under us; what lands there from now on is new. Source: ruling L4."""
        self._backoff.pop(slug, None)
        run = self._passes.pop(slug, None)
        if run:
            run.close()
            self._say_wiped(slug)
        if self.policy:
            self.policy.note_orders()

    def _say_wiped(self, slug: str) -> None:
        note = "its files were removed; starting from nothing"
        self._log.write("daemon.recovered", slug=slug, level="warn", note=note)

    def _wait_for_lock(self, slug: str, dirty: dict[str, float]) -> None:
        """Another reducer holds the run's lock: come back soon, and say so when it takes long. Source: protocol §4.2."""
        at = self._monotonic()
        since = self._backoff[slug].since if slug in self._backoff else at
        pause_s = LOCK_POLL_S
        if at - since > LOCK_PATIENCE_S:
            self._error(
                slug,
                "E-LOCKED",
                folder_of("receipt", slug),
                ".ingest.lock is held",
                "another reducer is writing, or died without a trace",
                f"let it finish, or remove .shapeup/{slug}/.ingest.lock if nothing runs",
            )
            since, pause_s = at, RETRY_S[1]
        self._backoff[slug] = Backoff(at + pause_s, pause_s, since)
        self._put_back(slug, dirty)

    def _stumble(self, slug: str, dirty: dict[str, float], error: OSError | Unreadable) -> None:
        """Nothing is lost when the disk says no, or a link bars the way: the run is read and tried again. Source: L5."""
        at = self._monotonic()
        before = self._backoff.get(slug)
        pause_s = min(RETRY_S[1], before.pause_s * 2) if before else RETRY_S[0]
        self._backoff[slug] = Backoff(at + pause_s, pause_s, before.since if before else at)
        if before is None:
            self._say(slug, error)
        run = self._passes.pop(slug, None)
        if run:
            run.close()
        self._put_back(slug, dirty)

    def _say(self, slug: str, error: OSError | Unreadable) -> None:
        if isinstance(error, Unreadable):
            self._error(slug, *error.fault)
            return
        if isinstance(error, FileNotFoundError):  # every file is opened in its folder: only a wipe takes that away
            self._say_wiped(slug)
            return
        code = "E-NOSPACE" if is_full(error) else "E-IO"
        fix = "free some space" if is_full(error) else "look at the disk; shapeupd goes on trying"
        why = "the run's files cannot be written; what the journal holds is carried out as soon as they can"
        self._error(slug, code, folder_of("receipt", slug), error.strerror or str(error), why, fix)

    def _put_back(self, slug: str, dirty: dict[str, float]) -> None:
        with self._guard:
            waiting = self._dirty.setdefault(slug, {})
            for path, since in dirty.items():
                waiting[path] = since

    def _error(self, slug: str, code: str, where: str, what: str, why: str, fix: str) -> None:
        fault = Fault(code, where, what, why, fix)
        self._log.write("daemon.error", level="error", slug=slug, code=code, error=render_fault(fault))

    def ingest(self, path: str, attestation: Attestation | None) -> Settled | None:
        """Judge one result now, under this attestation; None where another reducer holds the run's lock."""
        place = classify(path)
        if place is None or place.kind != "result" or place.slug is None:
            raise ValueError(path)
        try:
            return self._pass_of(place.slug, {}).ingest(path, attestation)
        except FileNotFoundError:
            raise
        except (OSError, Unreadable) as error:
            self._stumble(place.slug, {}, error)  # what the pass took for done is not
            raise

    def keep_time(self) -> None:
        """Settle every run of which the clock alone asks something; one that is locked or troubled keeps its turn."""
        for slug, run in tuple(self._passes.items()):
            if slug not in self._backoff and run.breakers.is_due():
                self._settle_run(slug, {})

    def unmeasured(self) -> tuple[Due, ...]:
        """The attempts of open runs that were answered and not measured."""
        return tuple(
            Due(slug, address)
            for slug, run in self._passes.items()
            if run.breakers.facts.is_open
            for address in run.breakers.facts.unmeasured()
        )

    def time_due_s(self) -> dict[str, float]:
        """By run, the seconds until the clock alone changes something; a run of which it asks nothing, or which is tried again
        anyway, is not named."""
        clocks = self._clocks()
        waits = {slug: run.breakers.due_s(clocks) for slug, run in self._passes.items() if slug not in self._backoff}
        return {slug: wait for slug, wait in waits.items() if wait is not None}

    def extend(self, slug: str, added_s: float, by: str) -> str | None:
        """Grant a run more time; why not, where it cannot be. Raises Locked, OSError, Unreadable, FsyncFailed."""
        if not os.path.lexists(self._root / path_of("receipt", slug)):
            return f"there is no run {slug}: {path_of('receipt', slug)} does not exist"
        try:
            refusal = self._pass_of(slug, {}).extend(added_s, by)
            if self.policy:
                self.policy.note_admissions()  # what was refused may be live now
            return refusal
        except (OSError, Unreadable) as error:
            self._stumble(slug, {}, error)
            raise

    def rebuild(self) -> tuple[Repair, ...] | None:
        """Rebuild every run; None where one stays locked by another reducer."""
        repairs: list[Repair] = []
        for run in self.runs():
            made = run.rebuild()
            if made is None:
                return None
            repairs += made
        return tuple(repairs)

    @property
    def writes_index(self) -> bool:
        """Whether the board index is kept on disk."""
        return self._settings.board_write_index

    def checkpoint(self) -> None:
        """Put every run's files on disk; where that cannot be noted, the next call tries again. Raises FsyncFailed."""
        for slug, run in self._passes.items():
            try:
                run.checkpoint()
            except (OSError, Unreadable) as error:
                if slug not in self._unsaved:
                    self._say(slug, error)
                self._unsaved.add(slug)
            else:
                self._unsaved.discard(slug)

    def due_s(self) -> float | None:
        """Seconds until something must be looked at again; None when nothing waits."""
        at = self._monotonic()
        with self._guard:
            times = [self._backoff[slug].at if slug in self._backoff else at for slug in self._dirty]
        times += [run.due_at for run in self._passes.values() if run.due_at is not None]
        return max(0.0, min(times) - at) if times else None

    def queued(self) -> int:
        """How many marked paths wait."""
        with self._guard:
            return sum(map(len, self._dirty.values()))

    def troubled_s(self) -> float:
        """For how long the run in the longest trouble has been in it; 0 when none is."""
        at = self._monotonic()
        return max((at - backoff.since for backoff in self._backoff.values()), default=0.0)

    def is_quiet(self) -> bool:
        """Whether everything that was marked is settled (not counting what stands rejected or pending)."""
        return self.due_s() is None

    def has_settled(self, before: float) -> bool:
        """Whether everything marked before that moment is settled, whatever has landed since."""
        with self._guard:
            waiting = any(since <= before for paths in self._dirty.values() for since in paths.values())
        return not waiting and not any(run.waits_since(before) for run in self._passes.values())

    def tally(self) -> Tally:
        """How many results stand settled, rejected and pending over all runs."""
        tally = Tally()
        for run in self._passes.values():
            tally = tally.plus(run.tally())
        return tally

    def runs(self) -> tuple[RunPass, ...]:
        """The runs looked at so far, by slug."""
        return tuple(self._passes[slug] for slug in sorted(self._passes))

    def close(self) -> None:
        """Let go of every run's journal."""
        for run in self._passes.values():
            run.close()
        self._passes.clear()


def is_routed(path: str) -> bool:
    """Whether any reducer looks at the path."""
    return route_slug(path) is not None


def route_slug(path: str) -> str | None:
    """The slug of the run that a path belongs to; None when no reducer looks at it."""
    place = classify(path) if is_fact_path(path) else None
    return place.slug if place and place.kind in ROUTES else None
