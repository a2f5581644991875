"""Writes a compiled order: under the run's lock, whole or not at all, and never over one that is live. Source: protocol §2.5, W-05, §7.3, rulings B1, B2, B4."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from daemon.boot_clock import read_clocks
from daemon.clock_on_disk import read_run_clock
from daemon.disk import DiskTree, open_folder
from daemon.gate_record import LOCK_PATIENCE_S, LOCK_POLL_S, Locked
from daemon.ingest_lock import IngestLock
from daemon.run_orders import landed_at, read_run_orders
from daemon.writes import create_file, replace_file, sync_file
from parsers.addresses import parse_address
from parsers.facts import OrderFact, read_order
from parsers.faults import Fault
from parsers.layout import folder_of, path_of
from parsers.ledgers import parse_legs
from parsers.times import parse_time
from parsers.tree import Unreadable
from reducers.after_trip import is_done, refusal_of, refusing_trip
from reducers.breakers import judge_deadline
from reducers.live_contracts import RunOrders


class LiveOrder(Exception):
    """An order of this stem is live; it was left as it is."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault


def write_order(root: Path, slug: str, fact: OrderFact, data: bytes, now: Callable[[], datetime]) -> bool:
    """Put the order on disk, in place of one of its stem that is done with; whether the active-order pointer names it now.

    Raises LiveOrder, Locked, Unreadable, OSError, FsyncFailed; in the first three nothing was written.
    """
    tree = DiskTree(root)
    with open_folder(root, folder_of("order", slug), create=True):
        pass
    with _locked(root, slug, now):
        if not create_file(root, fact.path, data):
            if fault := live_fault(tree, slug, fact):
                raise LiveOrder(fault)
            replace_file(root, fact.path, data, is_synced=True)
        sync_file(root, fact.path)
        return point_at(root, slug, fact.path)


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


def point_at(root: Path, slug: str, path: str) -> bool:
    """Make `active-order` name the order; False where it could not be made so. Readers of the agent hooks look at it alone (B3)."""
    pointer = path_of("active-order")
    document = {"slug": slug, "order_path": f"{root}/{path}"}
    data = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape")
    try:
        replace_file(root, pointer, data)
        return DiskTree(root).read(pointer) == data
    except (OSError, Unreadable):
        return False


# --- may it be written? ----------------------------------------------------------------------------------------------


def live_fault(tree: DiskTree, slug: str, fact: OrderFact) -> Fault | None:
    """Why the order that lies under this stem must stay; None where none lies there or it is done with. Source: ruling B2."""
    data = tree.read(fact.path)
    there = read_order(fact.path, data).fact if data is not None else None
    if there is None or not is_live(tree, slug, there):
        return None
    address = parse_address(fact.order.order_id)
    if address.attempt is None:
        fix = f"dispatch it as it is: {fact.path}; once its result is ingested it can be compiled again"
    else:
        fix = f"compile the next attempt: --attempt {address.attempt + 1}"
    what = f"{fact.order.order_id} is live: it was compiled {there.order.compiled_at or 'before'} and nobody has answered it"
    return Fault("E-LIVE-ORDER", fact.path, what, "an order in flight says what its worker may write", fix)


def is_live(tree: DiskTree, slug: str, there: OrderFact) -> bool:
    """Whether the order still constrains: admitted, of this open run, and unanswered. Source: rulings B1, B2, protocol §7.3, W-31."""
    run = read_run_orders(tree, slug)
    is_own = run.run_id is None or there.order.run_id in (None, run.run_id)
    if not is_own or not run.is_open() or there.stem not in run.orders:  # a breaker bars those that are left out
        return False
    if tree.stamp(path_of("rejection", slug, f"order-{there.stem}")) is not None:
        return False
    legs = parse_legs(_bytes(tree, path_of("legs", slug)))
    own = [leg for leg in legs if leg.order_id == there.order.order_id]
    return not is_done(there, run.records, own, run.run_id) and not _was_answered_before(tree, slug, run, there)


def _was_answered_before(tree: DiskTree, slug: str, run: RunOrders, there: OrderFact) -> bool:
    """Whether a result newer than the order lies there in a run that nobody keeps an ingest record of."""
    stamp = tree.stamp(path_of("result", slug, there.stem))
    compiled = parse_time(there.order.compiled_at)
    return not run.records and stamp is not None and (compiled is None or landed_at(stamp) > compiled)


def breaker_fault(tree: DiskTree, slug: str, fact: OrderFact) -> Fault | None:
    """Why a breaker that has tripped refuses the order; also where the deadline has passed and no row says so yet. Source: §7.3, L8."""
    if tree.stamp(path_of("receipt", slug)) is None:
        return None
    found = read_run_clock(tree, slug)
    trip = refusing_trip(fact.order, found.standing)
    elapsed = found.clock.elapsed(read_clocks()) if found.is_open else None
    if trip is None and elapsed is not None:
        timed = judge_deadline(found.clock.receipt.run_id, found.clock.budget(elapsed))
        trip = refusing_trip(fact.order, [timed] if timed else ())
    return refusal_of(fact, trip) if trip else None


def _bytes(tree: DiskTree, path: str) -> bytes:
    try:
        return tree.read(path) or b""
    except Unreadable:
        return b""
