"""An order or a result that arrives, held against the facts of its run: what each rule is asked about. Source: protocol §9.

Two kinds of facts. What speaks against an arrival counts only if it stood when the arrival came: what happened later is no fault of
its. What speaks for it counts as things stand now, for a daemon may learn of it late; only a look back at the past (`is_past`)
asks whether it was there in time.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from parsers.addresses import Address, parse_address, scope_stem
from parsers.envelopes import WorkOrder, WorkResult
from parsers.facts import OrderFact, ResultFact
from parsers.rule_table import Severity
from parsers.times import parse_time
from reducers.rules.findings import Finding, finding
from reducers.rules.loop_facts import (
    BUILDER,
    EVALUATE,
    EVALUATOR,
    HUNTER,
    LoopFacts,
    When,
    newest_build_round,
)


class OrderArrival(NamedTuple):
    """An order that lands. `at` None: it is just landing. `is_past`: it is judged afterwards, by what is on record."""

    facts: LoopFacts
    fact: OrderFact
    at: datetime | None = None
    is_past: bool = False

    @property
    def order(self) -> WorkOrder:
        return self.fact.order

    @property
    def address(self) -> Address:
        return parse_address(self.order.order_id)

    @property
    def is_build(self) -> bool:
        return self.order.worker == BUILDER

    @property
    def is_evaluation(self) -> bool:
        return self.order.worker == EVALUATOR

    @property
    def is_hunt(self) -> bool:
        return self.order.worker == HUNTER

    @property
    def is_of_loop(self) -> bool:
        """Whether it belongs to the rounds: built or judged."""
        return self.is_build or self.is_evaluation

    @property
    def round(self) -> int | None:
        """Its round; that of a plain `evaluate` is the newest build round's (F2)."""
        address = self.address
        if address.round is None and address.name == EVALUATE and self.is_evaluation:
            return newest_build_round(self.facts, self.in_time)
        return address.round

    @property
    def scope(self) -> str:
        """Its scope as in stems; empty where it has none."""
        payload = self.order.payload
        named = payload.scope_contract.scope_id if payload.scope_contract else payload.scope_id
        name = self.address.name if self.address.attempt is not None else None
        return scope_stem(named or name or "")

    def stood(self, moment: When) -> bool:
        """Whether something was there when the order landed."""
        then = parse_time(moment) if isinstance(moment, str) else moment
        return self.at is None or then is None or then <= self.at

    def in_time(self, moment: When) -> bool:
        """Whether something counts in the order's favour."""
        return not self.is_past or self.stood(moment)

    def finds(self, rule: str, what: str, fix: str, severity: Severity | None = None) -> Finding:
        """A finding about this order."""
        return finding(rule, self.order.order_id, self.fact.path, what, fix, severity)


class ResultArrival(NamedTuple):
    """A result that lands, with the order it answers; None where no order stands there.

    `report`: the text of its evaluation report, empty where there is none.
    """

    facts: LoopFacts
    fact: ResultFact
    order: WorkOrder | None
    report: str = ""

    @property
    def result(self) -> WorkResult:
        return self.fact.result

    @property
    def worker(self) -> str:
        """Who answered: the order's worker, else the one that the result names."""
        return (self.order.worker if self.order else self.result.worker) or ""

    @property
    def round(self) -> int | None:
        """Its round; that of a plain `evaluate` is the newest build round's (F2)."""
        address = parse_address(self.result.order_id)
        if address.round is None and address.name == EVALUATE and self.result.verdict:
            return newest_build_round(self.facts)
        return address.round

    def finds(self, rule: str, what: str, fix: str, at: str = "", *, is_mild: bool = False) -> Finding:
        """A finding about this result, at a JSON path of it; `is_mild`: a warning, whatever the table says."""
        path = f"{self.fact.path}:{at}" if at else self.fact.path
        return finding(rule, self.result.order_id, path, what, fix, "warn" if is_mild else None)
