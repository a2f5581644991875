"""The round-loop invariants R-01 to R-47: what each says, its family and how grave it is. Source: protocol §9, ruling F9.

Integrity rules hold always, as the table says; a setting may only tighten them. Process rules are the discipline of a full run:
their `deny` applies under `rules.profile = "enforce"` and is a warning under `advise`. Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Family = Literal["integrity", "process"]
Severity = Literal["deny", "warn", "info"]


class Rule(NamedTuple):
    """One invariant. `statement` goes on after "because"; a finding may be graver or milder where §9 names two cases."""

    statement: str
    family: Family
    severity: Severity


def _integrity(statement: str, severity: Severity = "deny") -> Rule:
    return Rule(statement, "integrity", severity)


def _process(statement: str, severity: Severity = "deny") -> Rule:
    return Rule(statement, "process", severity)


RULES: Mapping[str, Rule] = {
    "R-01": _integrity("every result answers exactly one compiled order"),
    "R-02": _integrity("a result is its order's, and a dispatch receipt shows that the order's worker ran"),
    "R-03": _integrity("a malformed envelope changes nothing"),
    "R-04": _process("a round is evaluated on a finished board only: every task done or cut"),
    "R-05": _process("a round is evaluated exactly once"),
    "R-06": _process("the evaluator is never called while a round is being built, and never for one task"),
    "R-07": _process("from round 2 on only what carries a bug, or is not green yet, is built"),
    "R-08": _process("a fix round leaves alone what passed", "warn"),
    "R-09": _process("from round 2 on the test surface of every re-opened use case is run again", "warn"),
    "R-10": _process("the first PASS is followed by one QA hunt; a FAIL by none"),
    "R-11": _process("rounds count up by one, after a FAIL, and never beyond max_rounds"),
    "R-12": _process("`stop` at L3 ends the loop"),
    "R-13": _process("a scope that has used its attempts, or makes no progress, is tried no more"),
    "R-14": _integrity("after the deadline no build order is opened"),
    "R-15": _integrity("who judges does not build"),
    "R-16": _process("the judge never closes or opens a task"),
    "R-17": _integrity("a verdict is coherent: a PASS fails nothing, a FAIL names what fails"),
    "R-18": _integrity("a scoped verdict cites T0 artifacts that it has hashed again"),
    "R-19": _integrity("each file has one writer"),
    "R-20": _integrity("ledgers only grow", "warn"),
    "R-21": _integrity("T0 artifacts, applied results and receipts never change", "warn"),
    "R-22": _process("each trial row has its artifact, each artifact its row, and trials count up by one", "warn"),
    "R-23": _process("a reverted attempt leaves no trace", "warn"),
    "R-24": _process("green means a green artifact of this round and an applied result", "warn"),
    "R-25": _process("a task is done by an ingested result alone", "warn"),
    "R-26": _process("what others depend on is built first"),
    "R-27": _process("the phases follow each other: orient, analyze, wire, map-scopes, build"),
    "R-28": _process("nothing is built before the spec lint is clean and L1b is ok"),
    "R-29": _process("gates are crossed in order", "warn"),
    "R-30": _process("a decision is in the round ledger before the next order is compiled", "warn"),
    "R-31": _process("every decision reaches the later orders of its scope"),
    "R-32": _process("consent can be attributed to a person", "warn"),
    "R-33": _process("discovered work pauses the loop: it is reconciled and L1b is crossed again first"),
    "R-34": _integrity("QA findings are `~` and say how to reproduce them"),
    "R-35": _process("each attempt is made by a fresh agent", "warn"),
    "R-36": _integrity("a hill shard is derived, never written by hand"),
    "R-37": _integrity("nothing below .shapeup/ is committed, and committed files name nothing of it"),
    "R-38": _integrity("contracts are superseded, never deleted, and ids keep their texts"),
    "R-39": _process("an escalated result carries its one question", "warn"),
    "R-40": _process("a phase that left no artifact aborts the run"),
    "R-41": _process("`not-evaluated` never becomes a pass, and what was not evaluated is named", "warn"),
    "R-42": _process("shipped is not deployed: a deployment is the PO's decision", "warn"),
    "R-43": _process("no criterion is left open on a shipping board", "warn"),
    "R-44": _integrity("the harvest is one row for a run and copies facts only"),
    "R-45": _process("the report is frozen once L4 is crossed", "warn"),
    "R-46": _integrity("guards are not widened by those they guard", "warn"),
    "R-47": _process("progress is told by the hill, not by counting tasks", "info"),
}
