"""Gates before what they guard. Source: protocol §8.1, §9 R-28, R-29.

A tiny run crosses L0 and L4 only. The other half of R-28, a clean spec lint, comes with the lint.
"""

from __future__ import annotations

from collections.abc import Iterator

from parsers.layout import path_of
from parsers.rule_table import Severity
from parsers.times import parse_time
from reducers.rules.arrivals import OrderArrival
from reducers.rules.findings import Finding, finding
from reducers.rules.loop_facts import LoopFacts

UNATTENDED = "unattended"


def nothing_is_built_before_l1b(arrival: OrderArrival) -> Iterator[Finding]:
    """R-28, and with it what R-29 asks of a build order of the first round."""
    facts = arrival.facts
    if arrival.is_build and not facts.config.is_tiny and not any(facts.gates_of("L1b", None, arrival.in_time)):
        told = "it builds, and no row says that L1b was crossed"
        yield arrival.finds("R-28", told, f"cross it: `shapeupd gate resolve L1b --slug {facts.slug}`")


def gates_are_crossed_in_order(arrival: OrderArrival) -> Iterator[Finding]:
    """R-29: a round is judged after L2, and round r + 1 begins after L3 of round r. Nobody watches an unattended run."""
    facts, round_ = arrival.facts, arrival.round
    if facts.config.is_tiny or not arrival.is_of_loop or round_ is None:
        return
    needed = [("L2", round_)] if arrival.is_evaluation else []
    needed += [("L3", round_ - 1)] if round_ > 1 else []
    for gate, of_round in needed:
        if not any(facts.gates_of(gate, of_round, arrival.in_time)):
            told = f"no row says that {gate} was crossed for round {of_round}"
            fix = f"cross it: `shapeupd gate resolve {gate} --slug {facts.slug} --round {of_round}`"
            yield arrival.finds("R-29", told, fix, _gravity(facts))


def h_comes_before_l4(facts: LoopFacts) -> Iterator[Finding]:
    """R-29, of the whole run: it was shipped, and H was not crossed before."""
    if facts.config.is_tiny or not facts.is_shipped:
        return
    shipped = [parse_time(str(row.get("at"))) for row in facts.gates_of("L4") if row.get("decision") == "ship"]
    first = min((moment for moment in shipped if moment), default=None)
    crossed = [parse_time(str(row.get("at"))) for row in facts.gates_of("H")]
    if not any(moment is None or first is None or moment <= first for moment in crossed):
        path = path_of("gates", facts.slug)
        told = "the run was shipped, and no row says that H was crossed before"
        yield finding("R-29", "H", path, told, "cross H before L4", _gravity(facts))


def _gravity(facts: LoopFacts) -> Severity | None:
    return "deny" if facts.config.auto_level == UNATTENDED else None
