"""Which orders of a run are live, and what each lets be written: the contracts the gate judges by. Source: rulings B1-B4, E2, L8."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from parsers.addresses import Address, parse_address
from parsers.facts import OrderFact
from parsers.harness_run import HarnessRun
from parsers.ledgers import IngestRow
from parsers.policy_file import Contract
from parsers.times import parse_time
from reducers.identity import APPLIED

BREAKERS = ("outer", "inner", "deadline", "silence")
OPERATIONS = frozenset(
    "execute fix spike analyze reconcile retrofit-surface coverage map-scopes wire evaluate orient hunt translate hammer coach".split()
)


class RunOrders(NamedTuple):
    """What decides which orders of one run are live."""

    orders: Mapping[str, OrderFact]  # admitted, by stem
    records: Mapping[str, tuple[IngestRow, ...]]  # what became of results, by order_id
    has_receipt: bool
    run_id: str | None
    harness: HarnessRun | None  # None: no harness-run.md stands there
    dispatched: Collection[str] = ()  # order ids that a dispatch receipt names
    landed: Mapping[str, datetime] = MappingProxyType({})  # when each order file was written last, by stem

    def is_open(self, at: datetime | None = None) -> bool:
        """Whether the run is open, now or then. Orders without a receipt belong to an open run (B1)."""
        if not self.has_receipt or self.harness is None or self.harness.is_open:
            return True
        return at is not None and self.harness.closed_at is not None and at < self.harness.closed_at


def live_contracts(run: RunOrders, at: datetime | None = None) -> tuple[Contract, ...]:
    """The contracts of live orders, and of answered ones until they are superseded (E2); none of a closed run.

    `at`: as they stood then, as far as compile and ingest times tell; None: now. Sorted by order id.
    """
    if not run.is_open(at):
        return ()
    facts = [fact for fact in run.orders.values() if _counts(run, fact, at)]
    newest = _newest_attempts(facts) if run.has_receipt else {}
    contracts = []
    for fact in facts:
        address = parse_address(fact.order.order_id)
        superseded = newest.get(address.name, _attempt(address)) > _attempt(address)
        answered = is_answered(run.records, fact, at)
        if not (superseded and answered):
            contracts.append(contract_of(fact, answered=answered, superseded=superseded))
    return tuple(sorted(contracts))


def contract_of(fact: OrderFact, *, answered: bool = False, superseded: bool = False) -> Contract:
    """What the order's substrate says, as a contract."""
    order, substrate = fact.order, fact.order.substrate
    operation = order.operation or _operation_of(parse_address(order.order_id))
    contract = Contract(order.order_id, operation, answered=answered, superseded=superseded)
    if substrate is None:
        return contract
    return contract._replace(
        allowed=tuple(substrate.allowed),
        shared=tuple(substrate.shared),
        append_only=tuple(substrate.append_only),
        frozen=tuple(substrate.frozen),
    )


def is_answered(records: Mapping[str, tuple[IngestRow, ...]], fact: OrderFact, at: datetime | None = None) -> bool:
    """Whether an ingest has answered these very bytes of the order; a recompiled order is live again. Source: ruling B2."""
    rows = records.get(fact.order.order_id, ())
    return any(row.order_sha256 == fact.sha256 and row.outcome in APPLIED and _by(row.at, at) for row in rows)


def _by(moment: str | None, at: datetime | None) -> bool:
    """Whether something had happened by then; what bears no readable time always had."""
    when = parse_time(moment)
    return at is None or when is None or when <= at


def _counts(run: RunOrders, fact: OrderFact, at: datetime | None) -> bool:
    """Whether the order belongs to the open run and constrains: one that shapeupd compiled by itself does once dispatched (B4)."""
    order = fact.order
    is_other_run = run.run_id is not None and order.run_id not in (None, run.run_id)
    landed = run.landed.get(fact.stem)
    has_landed = at is None or landed is None or landed <= at  # an order may be compiled long before it is there
    return not is_other_run and has_landed and _by(order.compiled_at, at) and is_dispatched(fact, run.dispatched)


def is_dispatched(fact: OrderFact, dispatched: Collection[str]) -> bool:
    """Whether somebody works on the order, as far as that can be told: of those that shapeupd compiled, by a dispatch receipt (B4)."""
    is_own = fact.stem.startswith(tuple(f"hammer-{breaker}" for breaker in BREAKERS))
    return not is_own or fact.order.order_id in dispatched


def _newest_attempts(facts: list[OrderFact]) -> dict[str | None, tuple[int, int]]:
    """The newest round and attempt of each scope or operation. Source: W-15."""
    newest: dict[str | None, tuple[int, int]] = {}
    for fact in facts:
        address = parse_address(fact.order.order_id)
        newest[address.name] = max(newest.get(address.name, (0, 0)), _attempt(address))
    return newest


def _attempt(address: Address) -> tuple[int, int]:
    return (address.round or 0, address.attempt or 0)


def _operation_of(address: Address) -> str:
    """The operation an order's stem speaks of, where the order itself names none."""
    if address.attempt is not None:
        return "execute"
    return address.name if address.name in OPERATIONS else ""
