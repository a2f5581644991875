"""What may still be dispatched after a breaker has tripped: protocol §7.3 as one table. Source: protocol §7.3, rulings F1, F3, R-13, R-14.

Asked of an order that lands; what was admitted before the trip keeps its whitelist, and its result is still ingested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from parsers.addresses import parse_address, scope_stem, slug_of
from parsers.breaker_ledger import Proposal, Trip, short_hash
from parsers.envelopes import WorkOrder
from parsers.facts import OrderFact
from parsers.faults import Fault
from parsers.layout import path_of
from parsers.ledgers import IngestRow, LegRow
from parsers.times import parse_time
from reducers.live_contracts import is_answered

BUILDER = "task-executor"
ALWAYS = ("spec-evaluator", "scope-hammer", "qa-edge-hunter")
PHASES = frozenset({"orient", "analyze", "wire", "map-scopes"})
REOPENING = "reconcile"
REFUSED = "E-BREAKER"

_PHASE_OF: Mapping[str, str] = {
    "orient": "orient",
    "ba-pitch-analyzer": "analyze",
    "solution-architect": "wire",
    "scope-architect": "map-scopes",
}


def may_dispatch(order: WorkOrder, trips: Iterable[Trip], *, is_reopened: bool = False) -> bool:
    """Whether an order that lands now may be admitted. `trips` are the standing ones (`breakers.standing`).

    `is_reopened`: the PO has reopened the run after an outer trip; then the plan may be reconciled.
    """
    return refusing_trip(order, trips, is_reopened=is_reopened) is None


def refusing_trip(order: WorkOrder, trips: Iterable[Trip], *, is_reopened: bool = False) -> Trip | None:
    """The first trip that forbids the order; None where none does."""
    return next((trip for trip in trips if _forbids(trip, order, is_reopened)), None)


def barring_trip(fact: OrderFact, trips: Iterable[Trip], proposals: Iterable[Proposal]) -> Trip | None:
    """The first trip that forbids the order, unless the order was in flight when it tripped, or done. Source: §7.3, issue 4 item 2.

    Both stand in the trip's proposal: no clock is asked, so a restart gives the same answer. What is in flight is known by
    its id, what is done by its bytes: under an old id a new order may land.
    """
    made = {proposal.identity: proposal for proposal in proposals}
    return refusing_trip(fact.order, [trip for trip in trips if not _was_there(fact, made.get(trip.identity))])


def _was_there(fact: OrderFact, proposal: Proposal | None) -> bool:
    if proposal is None:
        return False
    return fact.order.order_id in proposal.open_orders or short_hash(fact.sha256) in proposal.done_orders


def is_done(
    fact: OrderFact, records: Mapping[str, tuple[IngestRow, ...]], legs: Iterable[LegRow], run_id: str | None
) -> bool:
    """Whether the order is no new dispatch: these bytes of it were answered, or a leg closed it since it was compiled. Source: B2, D3."""
    if is_answered(records, fact):
        return True
    compiled = parse_time(fact.order.compiled_at)
    closed = [parse_time(leg.ingested_at) for leg in legs if leg.run_id in (None, run_id)]
    return compiled is not None and any(at is not None and at >= compiled for at in closed)


def _forbids(trip: Trip, order: WorkOrder, is_reopened: bool) -> bool:
    if trip.status != "trip" or order.worker in ALWAYS:
        return False
    is_build = order.worker == BUILDER
    match trip.breaker:
        case "deadline":
            return is_build or operation_of(order) in PHASES
        case "outer":
            operation = operation_of(order)
            return is_build or operation in PHASES or (operation == REOPENING and not is_reopened)
        case "inner":
            return is_build and _is_of_round(order, trip) and _is_of_scope(order, trip)
        case "silence":
            return False


def operation_of(order: WorkOrder) -> str:
    """The operation of an order; one that names none has the first that its stem or its worker stands for."""
    name = parse_address(order.order_id).name or ""
    return order.operation or (name if name in PHASES or name == REOPENING else _PHASE_OF.get(order.worker, ""))


def _is_of_round(order: WorkOrder, trip: Trip) -> bool:
    """The round that tripped or one before it; the next one starts anew (W-55). An order without a round is of this one."""
    round_ = parse_address(order.order_id).round
    return round_ is None or trip.round is None or round_ <= trip.round


def _is_of_scope(order: WorkOrder, trip: Trip) -> bool:
    return trip.scope_id is None or scope_stem(trip.scope_id) in scopes_of(order)


def scopes_of(order: WorkOrder) -> frozenset[str]:
    """The scopes an order works for, as they stand in stems: by its contract, its tasks and its own stem."""
    payload = order.payload
    named = [payload.scope_id, payload.scope_contract.scope_id if payload.scope_contract else None]
    named += [task.scope_id for task in payload.tasks]
    name = parse_address(order.order_id).name
    if name:
        named += [name, name.removeprefix(f"{order.operation}-") if order.operation else name]
    return frozenset(scope_stem(scope) for scope in named if scope)


def refusal_of(fact: OrderFact, trip: Trip) -> Fault:
    """Why the order is not admitted, and the way forward."""
    slug = slug_of(fact.order.order_id)
    where = f"scope {trip.scope_id}" if trip.scope_id else "the run"
    return Fault(
        REFUSED,
        fact.path,
        f"the {trip.breaker} breaker of {where} has tripped: {trip.reason}",
        f"after that no order of {fact.order.worker} is opened; evaluation, hunt and hammer are",
        _way_forward(trip, slug),
    )


def _way_forward(trip: Trip, slug: str) -> str:
    queue = path_of("gate-h-view", slug)
    if trip.breaker == "deadline":
        return f"go to GATE H (see {queue}), or grant time: `shapeupd budget {slug} --extend 30m --by NAME`"
    return f"go to GATE H (see {queue}); take this order back"


class Allowance(NamedTuple):
    """One line of what may still be dispatched. `is_allowed` False: no new order of it is admitted."""

    what: str
    is_allowed: bool
    note: str = ""


def allowances(trips: Iterable[Trip], *, is_reopened: bool = False) -> tuple[Allowance, ...]:
    """What may still be dispatched under these standing trips, for people. It says what `may_dispatch` does."""
    tripped = [trip for trip in trips if trip.status == "trip"]
    kinds = {trip.breaker for trip in tripped}
    inner = [trip for trip in tripped if trip.breaker == "inner"]
    lines = []
    if kinds & {"deadline", "outer"}:
        lines.append(Allowance(BUILDER, False))
        lines.append(Allowance(", ".join(sorted(PHASES)), False, "no new phase"))
    elif inner:
        rounds = [f"round {trip.round}" for trip in inner if trip.scope_id is None]
        scopes = [f"{trip.scope_id} in round {trip.round}" for trip in inner if trip.scope_id is not None]
        lines.append(Allowance(BUILDER, False, f"for {', '.join(rounds or scopes)}"))
        lines.append(Allowance(BUILDER, True, "for later rounds" if rounds else "for every other scope"))
    else:
        lines.append(Allowance(BUILDER, True))
    if "outer" in kinds:
        lines.append(Allowance(REOPENING, is_reopened, "only after the PO has reopened the run"))
    lines += [Allowance(worker, True) for worker in ALWAYS]
    return tuple(lines)
