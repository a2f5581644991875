"""What the reducers of one run may look at, and what they answer. Source: design §2 "every pass has one signature"."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from parsers.facts import OrderFact
from parsers.faults import Fault
from parsers.ledgers import IngestRow, LegRow
from parsers.receipts import DispatchLedger
from parsers.tree import Tree
from reducers.changes import Change
from reducers.task_index import TaskIndex

Attestation = Literal["auto", "require", "warn", "off"]
Outcome = Literal["applied", "superseded", "adopted", "duplicate", "rejected", "tampered", "pending", "abandoned"]


class Run(NamedTuple):
    """One run as its facts stand. `has_receipt` False: standalone orders, no run was opened."""

    slug: str
    tree: Tree
    tasks: TaskIndex
    has_receipt: bool
    run_id: str | None
    dispatches: DispatchLedger
    orders: Mapping[str, OrderFact]  # admitted orders by stem
    claimed: Mapping[str, str]  # order_id by stem of orders that were refused but can be read
    records: Mapping[str, tuple[IngestRow, ...]]  # receipts/ingest.jsonl by order_id
    has_records: bool  # receipts/ingest.jsonl had rows when the run was first looked at
    legs: Mapping[str, tuple[LegRow, ...]]  # legs.jsonl by order_id
    attestation: Attestation
    records_since: datetime | None = None  # when the first row of receipts/ingest.jsonl was written


class Summary(NamedTuple):
    """What one ingest did, in the protocol's terms. Source: protocol §4.1 step 12, rulings J."""

    tasks_updated: tuple[str, ...] = ()
    acs_ticked: int = 0
    unblocked: tuple[str, ...] = ()
    discoveries_appended: int = 0
    verdict_lines: int = 0
    refuted_unticked: int = 0
    misses: tuple[str, ...] = ()


class Judgement(NamedTuple):
    """The answer on one result. `faults` say why it was refused; `warnings` go with any outcome."""

    outcome: Outcome
    order_id: str
    run_id: str | None
    changes: tuple[Change, ...] = ()
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    summary: Summary = Summary()

    @property
    def code(self) -> str | None:
        """The code of the first fault: the one a refusal is known by."""
        return self.faults[0].code if self.faults else None
