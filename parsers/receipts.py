"""The run's receipt and its dispatch receipts. Source: protocol §2.2, §2.10."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from parsers.addresses import RUN_ID, mint_run_id
from parsers.ledgers import parse_rows
from parsers.strict_json import parse_strict
from parsers.times import parse_time


class Receipt(NamedTuple):
    """The run that a folder belongs to. `run_id` is None where it can be neither read nor minted."""

    run_id: str | None


class Dispatch(NamedTuple):
    """One row of receipts/dispatch.jsonl as far as attestation looks at it; None where the row says nothing usable."""

    at: str | None
    order_id: str | None
    run_id: str | None
    skill: str | None


def parse_receipt(data: bytes, path: str) -> Receipt:
    """The receipt; an unreadable one has no run_id, it is never an error. Source: protocol §2.1 "Reading"."""
    value = parse_strict(data, path).value
    return Receipt(run_id_of(value) if isinstance(value, dict) else None)


def run_id_of(receipt: Mapping[str, object]) -> str | None:
    """The receipt's own run_id when it has the pattern, else the one minted from slug, start and intake."""
    own = receipt.get("run_id")
    if isinstance(own, str) and RUN_ID.match(own):
        return own
    slug, started_at, intake = receipt.get("slug"), receipt.get("started_at"), receipt.get("intake_sha256")
    if not isinstance(slug, str) or not isinstance(started_at, str):
        return None
    return mint_run_id(slug, started_at, intake if isinstance(intake, str) else None)


class DispatchLedger(NamedTuple):
    """The dispatch receipts of a folder: rows by order_id in file order, and the runs they name."""

    by_order: Mapping[str, tuple[Dispatch, ...]]
    run_ids: frozenset[str]


def parse_dispatches(data: bytes) -> DispatchLedger:
    """The dispatch receipts; lines that do not parse are skipped."""
    by_order: dict[str, list[Dispatch]] = {}
    run_ids: set[str] = set()
    for raw in parse_rows(data):
        row = Dispatch(_text(raw, "at"), _text(raw, "order_id"), _text(raw, "run_id"), _text(raw, "skill_invoked"))
        by_order.setdefault(row.order_id or "", []).append(row)
        if row.run_id:
            run_ids.add(row.run_id)
    return DispatchLedger({order_id: tuple(rows) for order_id, rows in by_order.items()}, frozenset(run_ids))


def _text(row: Mapping[str, object], key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) else None


class Attestation(NamedTuple):
    """Whether an order is attested: by which receipt's time, else why not."""

    dispatched_at: str | None
    why_not: str | None


def attest(ledger: DispatchLedger, order_id: str, worker: str, compiled_at: str | None) -> Attestation:
    """The last row that names this order, its worker, and is not older than the order. Source: protocol §2.10."""
    own = ledger.by_order.get(order_id, ())
    skilled = [row for row in own if row.skill == worker]
    compiled = parse_time(compiled_at)
    fresh = [row for row in skilled if compiled is None or _not_before(row.at, compiled)]
    if fresh:
        return Attestation(fresh[-1].at, None)
    if not ledger.by_order:
        return Attestation(None, "the run has no dispatch receipts")
    if not own:
        return Attestation(None, f"no dispatch receipt names {order_id}")
    if not skilled:
        ran = ", ".join(sorted({row.skill or "nothing" for row in own}))
        return Attestation(None, f"the order names worker {worker}, the receipts name {ran}")
    return Attestation(None, f"every receipt is older than the order, compiled {compiled_at}")


def _not_before(at: str | None, compiled: datetime) -> bool:
    moment = parse_time(at)
    return moment is not None and moment >= compiled
