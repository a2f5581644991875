"""The run's receipt, with what the breakers read of it, and its dispatch receipts. Source: protocol §2.2, §2.10, ruling F3."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from parsers.addresses import RUN_ID, mint_run_id
from parsers.durations import MAX_DURATION_S
from parsers.faults import Fault
from parsers.ledgers import MAX_COUNT, parse_rows
from parsers.strict_json import parse_strict
from parsers.times import parse_time

MIN_BUDGET_S = 0.001
DEFAULT_MAX_ROUNDS = 3
DEFAULT_ATTEMPT_BUDGET = 5
DEFAULT_NO_PROGRESS_K = 2


class RunConfig(NamedTuple):
    """What the breakers read of `config`. `budget_s` None: the deadline breaker is off.

    `no_progress_k` None: the receipt does not say (scope contracts may, else it is 2); 0 and less: no stagnation.
    """

    budget_s: float | None = None
    max_rounds: int = DEFAULT_MAX_ROUNDS
    attempt_budget: int = DEFAULT_ATTEMPT_BUDGET
    no_progress_k: int | None = None
    auto_level: str | None = None
    spec_folder: str | None = None
    is_tiny: bool = False


class Receipt(NamedTuple):
    """The run that a folder belongs to. `run_id` is None where it can be neither read nor minted.

    `started_at` is the text as it stands, `start` the moment it means; None where it names none. `faults` say what of it
    reads as absent though it is there: none of them makes a run of a receipt less.
    """

    run_id: str | None
    slug: str | None = None
    started_at: str | None = None
    start: datetime | None = None
    config: RunConfig = RunConfig()
    faults: tuple[Fault, ...] = ()


class Dispatch(NamedTuple):
    """One row of receipts/dispatch.jsonl as far as attestation looks at it; None where the row says nothing usable."""

    at: str | None
    order_id: str | None
    run_id: str | None
    skill: str | None


def parse_receipt(data: bytes, path: str) -> Receipt:
    """The receipt; an unreadable one has no run_id, it is never an error. Source: protocol §2.1 "Reading"."""
    parsed = parse_strict(data, path)
    value = parsed.value
    if not isinstance(value, dict):
        fault = parsed.fault or _fault(path, "$", "it is no object", "open the run again with `shapeupd open`")
        return Receipt(None, faults=(fault,))
    started_at = _text(value, "started_at")
    start = parse_time(started_at)
    config, faults = _parse_config(value.get("config"), path)
    if start is None:
        told = "it is missing" if value.get("started_at") is None else f"{value['started_at']!r:.60} is no time"
        fix = "write the moment at which the run was opened, as 2026-03-01T09:00:00.000Z"
        faults = (_fault(path, "$.started_at", f"{told}; without it the deadline breaker is blind", fix), *faults)
    return Receipt(run_id_of(value), _text(value, "slug"), started_at, start, config, faults)


def _parse_config(value: object, path: str) -> tuple[RunConfig, tuple[Fault, ...]]:
    """The config, and a fault for each key whose value cannot be meant; such a key counts as not set."""
    if not isinstance(value, dict):
        told = _fault(path, "$.config", "it is no object", "take it out, or write one with the keys of the run")
        return RunConfig(), () if value is None else (told,)
    max_rounds, rounds_fault = _count(value, "max_rounds", DEFAULT_MAX_ROUNDS, path)
    attempt_budget, attempts_fault = _count(value, "attempt_budget", DEFAULT_ATTEMPT_BUDGET, path)
    budget_s, budget_fault = _budget(value.get("wall_clock_budget_s"), path)
    config = RunConfig(
        budget_s=budget_s,
        max_rounds=max_rounds,
        attempt_budget=attempt_budget,
        no_progress_k=whole_number(value.get("no_progress_k")),
        auto_level=_text(value, "auto_level"),
        spec_folder=_text(value, "spec_folder"),
        is_tiny=value.get("tiny_lane") is True,
    )
    return config, tuple(fault for fault in (budget_fault, rounds_fault, attempts_fault) if fault)


def _budget(value: object, path: str) -> tuple[float | None, Fault | None]:
    """Seconds, or None with the reason. 0 switches the breaker off as null does; less than that cannot be meant."""
    if value is None or (value == 0 and not isinstance(value, bool)):
        return None, None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and isinstance(value, int | float) and MIN_BUDGET_S <= value <= MAX_DURATION_S:
        return value, None
    told = f"{value!r:.60} is no budget in seconds; the deadline breaker is off"
    fix = "write a number of seconds (5400 for 90 minutes), at most ten years, or null"
    return None, _fault(path, "$.config.wall_clock_budget_s", told, fix)


def _count(config: Mapping[str, object], key: str, default: int, path: str) -> tuple[int, Fault | None]:
    value = config.get(key)
    number = whole_number(value)
    if value is None or (number is not None and number >= 1):
        return number or default, None
    return default, _fault(path, f"$.config.{key}", f"{value!r:.60} is no count; {default} holds", "write 1 or more")


def whole_number(value: object) -> int | None:
    """The whole number that a JSON value is: 2.0 is one, true is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) < MAX_COUNT else None


def _fault(path: str, at: str, what: str, fix: str) -> Fault:
    return Fault("E-SCHEMA", f"{path}:{at}", what, "budgets and breakers are read from the receipt", fix)


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
