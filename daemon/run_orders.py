"""Reads what decides which orders of a run are live, straight from the disk; nothing is written. Source: rulings B1, B2, E1."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from daemon.clock_on_disk import read_breakers, read_run_clock
from daemon.disk import DiskTree
from daemon.runs_on_disk import slugs_on_disk
from daemon.scan import Fingerprint, is_fact_path
from parsers.facts import OrderFact, read_order
from parsers.harness_run import parse_harness_run
from parsers.layout import classify, folder_of, path_of
from parsers.ledgers import IngestRow, parse_ingest_rows, parse_legs
from parsers.receipts import parse_dispatches, parse_receipt
from parsers.strict_json import parse_strict
from parsers.tree import Tree, Unreadable
from reducers.after_trip import barring_trip, is_done
from reducers.live_contracts import RunOrders


def read_run_orders(tree: DiskTree, slug: str) -> RunOrders:
    """One run's orders and what became of them. An order that cannot be admitted grants nothing."""
    receipt = _bytes(tree, path_of("receipt", slug))
    harness = _bytes(tree, path_of("harness-run", slug))
    records: dict[str, list[IngestRow]] = {}
    for row in parse_ingest_rows(_bytes(tree, path_of("ingest-record", slug)) or b""):
        records.setdefault(row.order_id, []).append(row)
    barred = _barred(tree, slug, records)
    orders = {
        fact.stem: fact for fact in _orders(tree, slug) if not (barred(fact) or _stands_refused(tree, slug, fact))
    }
    stamps = {stem: tree.stamp(fact.path) for stem, fact in orders.items()}
    return RunOrders(
        orders=orders,
        records={order_id: tuple(rows) for order_id, rows in records.items()},
        has_receipt=receipt is not None,
        run_id=parse_receipt(receipt, path_of("receipt", slug)).run_id if receipt else None,
        harness=None if harness is None else parse_harness_run(harness, path_of("harness-run", slug)),
        landed={stem: landed_at(stamp) for stem, stamp in stamps.items() if stamp},
        dispatched=frozenset(parse_dispatches(_bytes(tree, path_of("dispatch", slug)) or b"").by_order),
    )


def _barred(tree: DiskTree, slug: str, records: Mapping[str, Sequence[IngestRow]]) -> Callable[[OrderFact], bool]:
    """Whether a breaker that has tripped refuses an order; one that was answered, or was in flight then, stays. Source: §7.3."""
    queue = read_breakers(tree, slug)
    if not queue.ledger.trips:
        return lambda fact: False
    clock = read_run_clock(tree, slug)
    rows = {order_id: tuple(found) for order_id, found in records.items()}
    legs = parse_legs(_bytes(tree, path_of("legs", slug)) or b"")

    def is_barred(fact: OrderFact) -> bool:
        own = [leg for leg in legs if leg.order_id == fact.order.order_id]
        is_done_with = is_done(fact, rows, own, clock.clock.receipt.run_id)
        return not is_done_with and barring_trip(fact, clock.standing, queue.proposals) is not None

    return is_barred


def _stands_refused(tree: Tree, slug: str, fact: OrderFact) -> bool:
    """Whether the daemon refused these very bytes, for a rule or a breaker: what only a look at the whole run can tell."""
    path = path_of("rejection", slug, f"order-{fact.stem}")
    value = parse_strict(_bytes(tree, path) or b"", path).value
    return isinstance(value, dict) and value.get("sha256") == fact.sha256


def _orders(tree: Tree, slug: str) -> Iterator[OrderFact]:
    folder = folder_of("order", slug)
    for name in tree.list(folder):
        path = f"{folder}/{name}"
        place = classify(path) if is_fact_path(path) else None
        data = _bytes(tree, path) if place and place.kind == "order" else None
        if data is not None and (fact := read_order(path, data).fact):
            yield fact


def _bytes(tree: Tree, path: str) -> bytes | None:
    try:
        return tree.read(path)
    except Unreadable:
        return None


def landed_at(stamp: Fingerprint) -> datetime:
    """When the file was written last."""
    return datetime.fromtimestamp(stamp.mtime_ns / 1e9, UTC)


def newest_input_ns(root: Path) -> int:
    """The newest change time among the files that a policy depends on: the hooks take a policy older than that for stale.

    These are, for each feature, the folder of orders, every order in it, the receipt and harness-run.md.
    """
    newest = 0
    for slug in slugs_on_disk(DiskTree(root)):
        orders = root / folder_of("order", slug)
        newest = max(
            newest, *map(_mtime_ns, (orders, root / path_of("receipt", slug), root / path_of("harness-run", slug)))
        )
        try:
            with os.scandir(orders) as entries:
                newest = max([newest, *(_mtime_ns(entry.path) for entry in entries if entry.name.endswith(".json"))])
        except OSError:
            continue
    return newest


def orders_folders_ns(root: Path) -> int:
    """The newest change time among the folders of orders alone: a cheap look for names that came or went."""
    slugs = slugs_on_disk(DiskTree(root))
    return max((_mtime_ns(root / folder_of("order", slug)) for slug in slugs), default=0)


def _mtime_ns(path: Path | str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
