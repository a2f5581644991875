"""The breakers of one run in the daemon: a trip is recorded once, then carried out and told. Source: design §5, protocol §7, rulings F1-F10.

One journal entry holds the rows of breakers.jsonl and gate-h.jsonl together, so no death parts a trip from its proposal. What
follows from them (the hammer order, the page of GATE H) is derived: where a death left it out, the next start makes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta

from daemon.breakers.census import census_of, done_orders, open_orders
from daemon.breakers.ledger import Queue, read_queue
from daemon.breakers.run_facts import BreakerFacts, ScopeRound
from daemon.breakers.telling import BreakerTelling
from daemon.clock_on_disk import breaker_document
from daemon.run_state import RunState
from daemon.store import Transaction
from daemon.writes import create_file
from parsers.breaker_ledger import BreakerLedger, Extension, Proposal, Trip, extension_row
from parsers.clock_anchor import Clocks, anchor_document, parse_anchor
from parsers.facts import OrderFact
from parsers.faults import Fault
from parsers.layout import path_of, stem_at
from parsers.ledgers import render_row
from parsers.settings import Settings
from parsers.times import render_time
from parsers.tree import Unreadable
from reducers.after_trip import barring_trip, is_done, refusal_of, refusing_trip
from reducers.breakers import judge_deadline, judge_run, judge_silence
from reducers.budget import plain, seconds_to_change
from reducers.changes import Append, Change
from reducers.entries import Cause
from reducers.gate_h import (
    Scope,
    hammer_order,
    proposal_append,
    propose,
    render_census,
    render_order,
    trip_append,
    unproposed,
)
from reducers.gates import open_gates
from reducers.recorded_trips import standing, unrecorded
from reducers.run_clock import RunClock, arm


class Breakers:
    """Used by the loop alone; what writes is called under the run's lock. `admit` takes in an order file that was made here."""

    def __init__(
        self,
        state: RunState,
        settings: Settings,
        telling: BreakerTelling,
        now: Callable[[], datetime],
        admit: Callable[[str], None],
        clocks: Callable[[], Clocks],
    ) -> None:
        self._state = state
        self._silence_min = settings.breakers_silence_min
        self._telling = telling
        self._now = now
        self._admit = admit
        self._clocks = clocks
        self.facts = BreakerFacts(state)
        self.clock = RunClock(state.receipt)
        self._queue = Queue(BreakerLedger(), ())
        self._heard_boot_s: float | None = None  # the boot clock when a fact landed last, in this daemon's life
        self._is_noted = True  # clock.json says what we know
        self._has_looked = False  # the first look judges everything
        self._stuck: tuple[Scope, ...] = ()
        self._is_counted = False  # trials or gates changed: more than the orders of this pass may be at their end
        self.read_queue()
        self.read_clock()
        self._telling.skip_gates(self.facts.gate_rows)

    # --- reading ------------------------------------------------------------------------------------------------------

    def read_queue(self) -> None:
        """Take in breakers.jsonl and gate-h.jsonl, and say what of them is not ours."""
        paths = [path_of(kind, self._state.slug) for kind in ("breakers", "gate-h")]
        written = [bytes(self._state.journaled.get(path, b"")) for path in paths]
        self._queue = read_queue(*(self._read(path) for path in paths), *written)
        self._telling.tell_foreign(self._queue)
        self.clock = self.clock._replace(extensions=self._queue.ledger.extensions)

    def read_clock(self) -> None:
        """Take in the receipt and clock.json; a note of this life is worth more than what lies there now."""
        before, receipt = self.clock.anchor, self._state.receipt
        path = path_of("clock", self._state.slug)
        found = parse_anchor(self._read(path), path, receipt.run_id)
        is_same_run = before is not None and before.run_id == receipt.run_id
        self.clock = RunClock(receipt, before if is_same_run else found, self._queue.ledger.extensions)
        if is_same_run and found != before:
            self._telling.tell_clock_file(path)
            self._is_noted = False
        self._telling.tell_receipt(receipt, self.clock.tampering())

    def note(self, kind: str) -> None:
        """A file of this kind was changed, and not by us."""
        match kind:
            case "receipt":
                if self.clock.receipt.run_id and not self._state.has_receipt:
                    self._telling.tell_receipt_gone(self.clock.receipt)
                self.read_clock()
                self.facts.read_all()
                self._has_looked = False
            case "trials":
                self.facts.read_trials()
                self._is_counted = True
            case "gates":
                self.facts.read_gates()
                self._telling.tell_gates(self.facts.gate_rows)
                self._is_counted = True
            case "gate-h-view":
                self._is_counted = True
            case "breakers" | "gate-h":
                self.read_queue()
            case "clock":
                self.read_clock()

    def _stems(self) -> set[str]:
        return set(self._state.orders) | {order_id.partition("/")[2] for order_id in self._state.legs}

    def _read(self, path: str) -> bytes:
        try:
            return self._state.disk.read(path) or b""
        except Unreadable:
            return b""

    # --- judging ------------------------------------------------------------------------------------------------------

    def standing(self) -> tuple[Trip, ...]:
        """The trips that bind this run now."""
        return standing(self._queue.ledger.trips, self._state.run_id, self.clock.budget_s)

    @property
    def recorded(self) -> tuple[Trip, ...]:
        """Every warning and trip of this run, in the order in which they were recorded."""
        return tuple(trip for trip in self._queue.ledger.trips if trip.run_id == self._state.run_id)

    def refusal(self, fact: OrderFact, landed: datetime | None) -> Fault | None:
        """Why an order that landed then is not admitted; None where no breaker says no. Source: §7.3."""
        state, order = self._state, fact.order
        is_done_with = is_done(fact, state.records, state.legs.get(order.order_id, ()), state.run_id)
        if is_done_with or order.run_id not in (None, state.run_id):
            return None
        trip = barring_trip(fact, self.standing(), self._queue.proposals)
        if trip is None and self._is_after_deadline(landed):
            trip = refusing_trip(fact.order, self.timed(self._clocks()))  # it has passed and is not recorded yet
        return refusal_of(fact, trip) if trip else None

    def _is_after_deadline(self, landed: datetime | None) -> bool:
        start, budget_s = self.clock.start, self.clock.budget_s
        if landed is None or start is None or budget_s is None:
            return False
        return landed >= start + timedelta(seconds=budget_s)

    def timed(self, clocks: Clocks) -> tuple[Trip, ...]:
        """What the clock alone says and no row holds yet."""
        if not self.facts.is_open:
            return ()
        found = []
        elapsed = self.clock.elapsed(clocks)
        if elapsed:
            self._telling.tell_clock(elapsed.finding)
            found.append(judge_deadline(self._state.run_id, self.clock.budget(elapsed), self.facts.round))
        if self._silence_min:
            since = self.facts.last_landed()
            found.append(
                judge_silence(
                    self._state.run_id,
                    self._idle_s(clocks, since),
                    self._silence_min,
                    self.facts.round,
                    render_time(since) if since else None,
                )
            )
        return unrecorded([trip for trip in found if trip], self._queue.ledger.trips)

    def _idle_s(self, clocks: Clocks, since: datetime | None) -> float:
        """How long nothing landed; by the boot clock where this daemon heard the last of it, so no stepped clock tells a silence."""
        if self._heard_boot_s is not None and clocks.boottime_s is not None:
            return clocks.boottime_s - self._heard_boot_s
        return (clocks.wall - since).total_seconds() if since else 0.0

    def is_due(self) -> bool:
        """Whether the clock alone asks for something to be done."""
        return bool(self.timed(self._clocks()))

    def due_s(self, clocks: Clocks) -> float | None:
        """Seconds until the clock alone changes something, 0 where it has; None where it does not."""
        if not self.facts.is_open:
            return None
        if self.timed(clocks):
            return 0.0
        elapsed = self.clock.elapsed(clocks)
        waits = [seconds_to_change(self.clock.budget(elapsed))] if elapsed else []
        if self._silence_min:
            waits.append(self._silence_min * 60 - self._idle_s(clocks, self.facts.last_landed()))
        return min((wait for wait in waits if wait is not None and wait > 0), default=None)

    # --- acting, under the run's lock ---------------------------------------------------------------------------------

    def keep_time(self) -> None:
        """Record and carry out what the clock says."""
        self._arm()
        self._keep(self.timed(self._clocks()))

    def keep(self, stems: Collection[str], stuck: tuple[Scope, ...] = ()) -> None:
        """Record and carry out what follows from these orders and their results; at the first look, from all there are.

        `stuck`: the scopes that should be split, for the page of GATE H.
        """
        self._stuck = stuck
        is_first, self._has_looked = not self._has_looked, True
        if not (is_first or stems or self._is_counted):
            return
        touched = self.facts.touch(self._stems() if is_first else stems)
        self._heard_boot_s = None if is_first else self._clocks().boottime_s
        self._keep(self._judged(None if is_first or self._is_counted else touched))
        self._is_counted = False
        if is_first:
            self._make_orders(self._own_proposals())
        self.write_view()

    def _judged(self, scopes: Iterable[ScopeRound] | None) -> tuple[Trip, ...]:
        found = judge_run(self.facts.of_run(scopes), None)
        if scopes is not None and any(trip.breaker == "inner" for trip in found):
            found = judge_run(self.facts.of_run(), None)  # a scope is at its end: perhaps the whole round is
        return unrecorded(found, self._queue.ledger.trips)

    def _keep(self, trips: tuple[Trip, ...]) -> None:
        owed = unproposed((*self.standing(), *trips), self._own_proposals())
        if not trips and not owed:
            return
        at = render_time(self._now())
        slug, in_flight, done = self._state.slug, open_orders(self._state), done_orders(self._state)
        green = census_of(self._state, self.facts, self._queue.proposals, self.standing()).green_scopes
        proposals = tuple(propose(trip, slug, at, green, in_flight, done) for trip in owed)
        changes = tuple(trip_append(trip, slug, at) for trip in trips)
        self._commit("tripped", (*changes, *(proposal_append(proposal, slug) for proposal in proposals)))
        for trip in trips:
            self._telling.tell_trip(trip)
        self._make_orders(proposals)
        self.write_view()
        for proposal in proposals:
            self._telling.tell_proposal(proposal)

    def _commit(self, outcome: str, changes: tuple[Change, ...]) -> None:
        state = self._state
        cause = Cause(path_of("breakers", state.slug), "", "", outcome)
        state.store.check(changes)
        state.store.commit([Transaction(cause, changes)], self._now())
        state.absorb(changes)
        state.overlay.clear()
        for path in {change.path for change in changes}:
            state.remember_own(path)
        self.read_queue()

    def _own_proposals(self) -> tuple[Proposal, ...]:
        return tuple(proposal for proposal in self._queue.proposals if proposal.run_id == self._state.run_id)

    def _make_orders(self, proposals: Iterable[Proposal]) -> None:
        """The hammer order of each proposal; one that stands there already is left as it is. Source: B4."""
        trips = {trip.identity: trip for trip in self.recorded}
        for proposal in proposals:
            trip, path = trips.get(proposal.identity), proposal.order_path
            if trip is None or path != path_of("order", self._state.slug, stem_at(path or "")):
                continue
            order = hammer_order(trip, self._state.slug, proposal.at or render_time(self._now()))
            try:
                if create_file(self._state.disk.root, path, render_order(order)):
                    self._state.remember_own(path)
                    self._admit(path)
            except Unreadable as stop:
                self._state.store.tell_barred(stop)

    def _arm(self) -> None:
        """Note both clocks when a deadline is armed for the first time. Source: F10."""
        anchor = arm(self.clock, self._clocks()) or (None if self._is_noted else self.clock.anchor)
        if anchor is None:
            return
        path, text = path_of("clock", self._state.slug), _render(anchor_document(anchor))
        try:
            self._state.store.write_view(path, text, is_synced=True)
        except Unreadable as stop:
            self._state.store.tell_barred(stop)
            return
        self._state.remember_own(path)
        self._is_noted = True
        self.clock = self.clock._replace(anchor=parse_anchor(text, path, anchor.run_id))  # as it will be read

    def write_view(self) -> None:
        """gate-h.md, where there is something to decide, or was; written only where its bytes would differ."""
        path = path_of("gate-h-view", self._state.slug)
        gates = open_gates(self.facts.gate_rows, self._state.run_id)
        if not (self._own_proposals() or gates or self._stuck or self._read(path)):
            return
        census = census_of(self._state, self.facts, self._queue.proposals, self.standing(), self._stuck)
        text = render_census(census).encode()
        if self._read(path) == text:
            return
        try:
            self._state.store.write_view(path, text)
        except Unreadable as stop:
            self._state.store.tell_barred(stop)

    def extend(self, added_s: float, by: str) -> str | None:
        """Grant the run more time; why not, where it cannot be. Source: F3.

        The caller looks at the refused orders again, then writes the view.
        """
        elapsed, budget_s = self.clock.elapsed(self._clocks()), self.clock.budget_s
        if not self.facts.is_open:
            return "the run is closed; its budget counts no more"
        if budget_s is None or elapsed is None:
            return "the run has no wall-clock budget (or its receipt names no start), so there is nothing to extend"
        grant = Extension(render_time(self._now()), self._state.run_id, by, plain(added_s))
        row = extension_row(grant, plain(round(elapsed.seconds, 3)), plain(budget_s + added_s))
        self._commit("extended", (Append(path_of("breakers", self._state.slug), render_row(row)),))
        self._telling.tell_extension(grant, plain(budget_s + added_s))
        return None

    # --- telling ------------------------------------------------------------------------------------------------------

    def document(self) -> dict[str, object]:
        """What `status` tells of the run's clock, trips and open gates. Source: rulings J."""
        facts = self.facts
        return breaker_document(self.clock, self.standing(), facts.gate_rows, self._clocks(), is_open=facts.is_open)


def _render(document: dict[str, object]) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode()
