"""Holds what lands against the round-loop invariants, as the settings of each rule say. Source: protocol §9, cli §5 `rules.*`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from daemon.loop_facts import LoopFactsReader
from daemon.run_state import RunState
from parsers.envelopes import WorkOrder
from parsers.facts import OrderFact, ResultFact
from parsers.faults import Fault
from reducers.rules.findings import Finding, LevelOf, action_of, fault_of
from reducers.rules.orders import judge_order
from reducers.rules.results import asks_for_facts, judge_result


class Ruling(NamedTuple):
    """What the rules make of one order or result: why it is refused (empty: it is not), and what is merely told."""

    denied: tuple[Fault, ...] = ()
    warned: tuple[Fault, ...] = ()


class RoundLoop:
    """The invariants of one run. `level_of` is `Settings.rule` of the settings in force.

    Most runs do not keep all the records that the process rules ask for: the same warning is told once, not with every order.
    """

    def __init__(self, state: RunState, level_of: LevelOf) -> None:
        self._level_of = level_of
        self._warned: set[tuple[str, str]] = set()
        self._reader = LoopFactsReader(state)

    def rule_orders(self, landed: Iterable[tuple[OrderFact, datetime | None]]) -> tuple[Ruling, ...]:
        """One ruling for each order, all by the facts as they stand now."""
        facts = self._reader.facts()
        return tuple(self._ruling(judge_order(facts, fact, at)) for fact, at in landed)

    def rule_result(self, fact: ResultFact, order: WorkOrder | None) -> Ruling:
        """The ruling on a result that would be applied."""
        if not asks_for_facts(fact, order):
            return Ruling()
        facts = self._reader.facts_for(fact)
        return self._ruling(judge_result(facts, fact, order, self._reader.report(fact)))

    def _ruling(self, findings: Iterable[Finding]) -> Ruling:
        acts = [(action_of(found, self._level_of), fault_of(found)) for found in findings]
        warned = [fault for action, fault in acts if action == "warn" and (fault.code, fault.what) not in self._warned]
        self._warned |= {(fault.code, fault.what) for fault in warned}
        return Ruling(
            tuple(fault for action, fault in acts if action == "deny"),
            tuple(fault._replace(what=f"{fault.code} {fault.what}") for fault in warned),
        )
