"""The phases before the rounds: each needs what the one before it left. Source: protocol §5.5, §9 R-27, R-40."""

from __future__ import annotations

from collections.abc import Iterator

from parsers.layout import path_of
from reducers.after_trip import operation_of
from reducers.rules.arrivals import OrderArrival
from reducers.rules.findings import Finding, finding
from reducers.rules.loop_facts import LoopFacts, order_path

PHASES = ("orient", "analyze", "wire", "map-scopes")
BUILD = "build"

_LEAVES = {
    "orient": "orient/ with code-surface.md, discovered-seed.md, hill-signal.md and a spike-<area>.md",
    "analyze": "a use case below the spec's usecases/",
    "wire": "wiring-map.md",
    "map-scopes": "a contract below scopes/",
}


def phases_follow_each_other(arrival: OrderArrival) -> Iterator[Finding]:
    """R-27. A tiny run has no phases; `wire` needs the project profile as well."""
    facts = arrival.facts
    phase = BUILD if arrival.is_build else operation_of(arrival.order)
    if facts.config.is_tiny or phase not in (*PHASES, BUILD):
        return
    before = PHASES[: PHASES.index(phase)] if phase != BUILD else PHASES
    missing = next((earlier for earlier in before if earlier not in facts.phases), None)
    if missing is not None:
        told = f"{phase} before {missing} has left {_LEAVES[missing]}"
        yield arrival.finds("R-27", told, f"run {missing} first")
    elif phase == "wire" and not facts.has_profile:
        profile = path_of("project-profile", facts.slug)
        yield arrival.finds("R-27", f"wire without {profile}", f"write {profile} first")


def a_phase_leaves_its_artifact(facts: LoopFacts) -> Iterator[Finding]:
    """R-40, of the whole run: the result of a phase was applied, and what it should have left is not there."""
    for phase in PHASES:
        order_id = f"{facts.slug}/{phase}"
        if facts.applied(order_id) and phase not in facts.phases:
            told = f"{phase} was answered, but {_LEAVES[phase]} is missing"
            yield finding("R-40", order_id, order_path(facts, order_id), told, f"abort the run, or run {phase} again")
