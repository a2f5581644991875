"""A finding of the spec lint, and why each of its rules is there. Source: protocol §5.2, cli §1."""

from __future__ import annotations

from typing import Literal, NamedTuple

from parsers.faults import Fault

Level = Literal["red", "warn"]

WHY: dict[str, str] = {
    "CONTRACT-UNREADABLE": "what does not read counts as absent, and orders, T0 and the gate would go on without it",
    "NEAR-HEADING": "a table is found by its exact heading, so under any other spelling its rows count as absent",
    "PA1": "a scope is a flow through the layers; a folder of its own is a layer, and nobody can show it working",
    "PA2": "a scope that may write so many files is no slice: nobody can tell when it is done",
    "T0-UNVERIFIABLE": "an absence is never a pass: without a command that passes, the scope stays red",
    "T0-UNPASSABLE": "T0 passes a command only when it ends with 0, so the scope can never go green",
    "DISJOINT": "two scopes that write one file undo each other's work unless both say that they share it",
    "SHARED-CONCURRENT": "an edit reads, changes and writes back: the later writer drops what the earlier one wrote",
    "SCOPE-PARTITION": "a task that two scopes claim is built twice or by nobody",
    "SCOPE-ANCHOR": "without a use case nobody can say which tasks, requirements or affordances a scope answers for",
    "SCOPE-DEPS": "no build order satisfies it, so the scope is built before what it needs, or never",
    "SCOPE-COVERS": "a scope can only answer for requirements that are registered",
    "TIER-DIRECTION": "board ids and local files differ on every machine; whoever clones this cannot follow them",
    "STRUCTURE": "planners, builders and evaluators look for these parts by name",
    "INV-FLOOR": "what the pitch rules out must be an invariant somewhere, or nothing ever checks it",
    "WIKILINK": "a link that leads nowhere hides what it was meant to show",
    "TASK": "the board, waves and ticks follow from these keys",
    "EDGE-SYMMETRY": "both ends of an edge are written down, and readers of either must see the same graph",
    "UC-ANCHOR": "a task is joined to its scope and its requirements through its use case",
}


class Finding(NamedTuple):
    """One place where a spec breaks a rule. `where`: a path, with `:line` behind it where one is known.

    `what` names the ids, files and lines that the rule must name; `scope` None where no scope is concerned, `a+b` for several.
    """

    rule: str
    level: Level
    where: str
    what: str
    why: str
    fix: str
    scope: str | None = None


def finding(rule: str, level: Level, where: str, what: str, fix: str, scope: str | None = None) -> Finding:
    """A finding whose `why` is the rule's."""
    return Finding(rule, level, where, what, WHY[rule], fix, scope)


def fault_of(found: Finding) -> Fault:
    """The finding in the error form: its code is the rule."""
    return Fault(found.rule, found.where, found.what, found.why, found.fix)


def finding_row(found: Finding) -> dict[str, object]:
    """The finding as JSON: {rule, level, scope, where, what, why, fix}."""
    keys = ("rule", "level", "scope", "where", "what", "why", "fix")
    values: dict[str, object] = found._asdict()
    return {key: values[key] for key in keys}
