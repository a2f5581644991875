"""A run's clock and its recorded trips straight from the disk, for commands; nothing is written. Source: rulings F3, F4, F10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from daemon.breakers.ledger import Queue, read_queue
from daemon.disk import DiskTree
from parsers.breaker_ledger import BreakerLedger, Trip
from parsers.clock_anchor import Clocks, parse_anchor
from parsers.harness_run import parse_harness_run
from parsers.layout import path_of
from parsers.ledgers import parse_rows
from parsers.receipts import parse_receipt
from parsers.tree import Unreadable
from reducers.budget import evaluated_document
from reducers.gates import open_gates
from reducers.recorded_trips import standing
from reducers.run_clock import RunClock


class ClockOnDisk(NamedTuple):
    """One run's clock, what its breakers have said, what waits at GATE H, and whether the run goes on."""

    clock: RunClock
    queue: Queue
    is_open: bool

    @property
    def standing(self) -> tuple[Trip, ...]:
        """The trips that bind the run."""
        return standing(self.queue.ledger.trips, self.clock.receipt.run_id, self.clock.budget_s)


def read_run_clock(tree: DiskTree, slug: str) -> ClockOnDisk:
    """The clock of a run that has a receipt. Raises Unreadable where that is no plain file."""
    path = path_of("receipt", slug)
    receipt = parse_receipt(tree.read(path) or b"", path)
    where = path_of("clock", slug)
    queue = read_breakers(tree, slug)
    clock = RunClock(receipt, parse_anchor(_bytes(tree, where), where, receipt.run_id), queue.ledger.extensions)
    return ClockOnDisk(clock, queue, is_run_open(tree, slug))


def read_breakers(tree: DiskTree, slug: str) -> Queue:
    """The breakers' ledgers. What grants something counts where the journal says that we wrote it; without any row it is not read."""
    paths = [path_of(kind, slug) for kind in ("breakers", "gate-h")]
    found = [_bytes(tree, path) for path in paths]
    if not any(found):
        return Queue(BreakerLedger(), ())
    from daemon.journal import Journal
    from daemon.run_state import journaled

    own = journaled(Journal(tree.root, slug).entries(heal=False), paths)
    return read_queue(*found, *(bytes(own[path]) for path in paths))


def is_run_open(tree: DiskTree, slug: str) -> bool:
    """Whether the run goes on. Source: ruling B1."""
    path = path_of("harness-run", slug)
    if tree.stamp(path) is None:
        return True
    return parse_harness_run(_bytes(tree, path), path).is_open


def run_document(tree: DiskTree, slug: str, clocks: Clocks) -> dict[str, object]:
    """What `status` tells of a run's clock, trips and open gates. Source: rulings J."""
    try:
        found = read_run_clock(tree, slug) if tree.stamp(path_of("receipt", slug)) is not None else None
    except Unreadable:
        found = None
    if found is None:
        return breaker_document(None, ())
    gates = parse_rows(_bytes(tree, path_of("gates", slug)))
    return breaker_document(found.clock, found.standing, gates, clocks, is_open=found.is_open)


def breaker_document(
    clock: RunClock | None,
    trips: tuple[Trip, ...],
    gate_rows: tuple[Mapping[str, object], ...] = (),
    clocks: Clocks | None = None,
    *,
    is_open: bool = True,
) -> dict[str, object]:
    """{clock, trips, open_gates, findings}; `clock` is null where no time can be counted, or nobody counts it any more."""
    elapsed = clock.elapsed(clocks) if clock and clocks and is_open else None
    run_id = clock.receipt.run_id if clock else None
    findings = [f"{fault.where}: {fault.what}" for fault in clock.receipt.faults] if clock and is_open else []
    findings += [
        told for told in (clock.tampering() if clock and is_open else None, elapsed and elapsed.finding) if told
    ]
    return {
        "clock": evaluated_document(clock.budget(elapsed)) if clock and elapsed else None,
        "trips": [
            {"breaker": trip.breaker, "scope_id": trip.scope_id, "round": trip.round, "reason": trip.reason}
            for trip in (trips if is_open else ())
        ],
        "findings": findings,
        "open_gates": [
            {"gate": gate.gate, "round": gate.round, "note": gate.note, "at": gate.at}
            for gate in (open_gates(gate_rows, run_id) if is_open else ())
        ],
    }


def _bytes(tree: DiskTree, path: str) -> bytes:
    try:
        return tree.read(path) or b""
    except Unreadable:
        return b""
