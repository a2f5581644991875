"""Holds what we did against what was recorded, and names every difference by its rule. Source: issue 2, protocol §4.8, H1.

A difference counts as explained only when it is proven from both sides: the recorded tree is what the oracle gives without any
fix, and ours is what it gives with all of them. Its names are then the fixes that change that file on the way from one to the
other. A file that differed keeps its names as long as it differs, because the oracle runs over the whole sequence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.corpus.index_claims import index_complaints
from tests.corpus.logical_state import is_index, is_legs, logical_state
from tests.corpus.oracle import ALL, FIXES, Answer, Drop, Oracle, World
from tests.corpus.oracle_text import Fixes
from tests.corpus.replay_cases import Case, Files, Step, recorded_states

# What the reference says when it refuses, and the codes that mean the same with us.
SAID = (
    ("result rejected", {"E-SCHEMA"}),
    ("it answers order", {"E-ORDER-MISMATCH"}),
    ("result unreadable", {"E-JSON", "E-ENCODING"}),
    ("receipt", {"E-UNATTESTED"}),
)
APPLIED = frozenset({"applied", "duplicate", "superseded"})


class Outcome(NamedTuple):
    """How one drop ended with us; `codes` are the codes of its faults. Empty where nothing was dropped."""

    outcome: str
    codes: frozenset[str]


class Verdict(NamedTuple):
    """One step held against the record: the names of its differences (none: equal), and what no rule explains."""

    rules: frozenset[str]
    complaints: tuple[str, ...]


class Expected(NamedTuple):
    """The oracle over one case under one set of fixes: the answer and the tree after each step."""

    answers: Sequence[Answer]
    states: Sequence[dict[str, bytes]]


def leg_rows(case: Case) -> dict[int, bytes]:
    """The leg row that each recorded step appended, by step number."""
    rows: dict[int, bytes] = {}
    before: Files = case.before
    for step, after in zip(case.steps, recorded_states(case), strict=True):
        for path in filter(is_legs, step.changed):
            rows[step.number] = after[path][len(before.get(path, b"")) :] if path in after else b""
        before = after
    return rows


def expect(case: Case, steps: Sequence[Step], fixes: Fixes, world: World) -> Expected:
    """What these drops in this order come to under these fixes."""
    legs = leg_rows(case)
    oracle = Oracle(case.before, fixes, world)
    answers, states = [], []
    for step in steps:
        answer = Answer()
        if step.path in case.results:
            drop = Drop(step.path, case.results[step.path], legs.get(step.number, b""))
            answer = oracle.drop(drop, accepted=step.accepted)
        answers.append(answer)
        states.append(dict(oracle.files))
    return Expected(answers, states)


class Explainer:
    """The oracle's answers for one case and one sequence of steps."""

    def __init__(self, case: Case, steps: Sequence[Step], world: World) -> None:
        self.case, self.steps = case, steps
        sets = [frozenset(FIXES[:count]) for count in range(len(FIXES) + 1)]
        runs = [expect(case, steps, fixes, world) for fixes in sets]
        self.reference, self.fixed = runs[0], runs[-1]
        self._logical = [[logical_state(state) for state in run.states] for run in runs]
        assert sets[-1] == ALL

    def rules_for(self, at: int, path: str) -> frozenset[str]:
        """The fixes that change this file on the way from the reference to us, after the step at this position."""
        seen = [states[at].get(path) for states in self._logical]
        named = frozenset(rule for rule, (one, two) in zip(FIXES, pairwise(seen), strict=True) if one != two)
        return named or frozenset({"W-20"} if is_index(path) else ())  # an index is judged by claims, not by its bytes

    def judge_outcome(self, at: int, ours: Outcome) -> Verdict:
        """Whether we took or refused the step as recorded, or for a rule of our own."""
        step, answer = self.steps[at], self.fixed.answers[at]
        where = f"{self.case.name} step {step.number} ({step.stem}): {ours.outcome} {sorted(ours.codes)}"
        if step.path not in self.case.results:
            return Verdict(frozenset(), () if not step.accepted else (f"{where}: accepted without a file",))
        if not step.accepted:
            named = frozenset(re.findall(r"E-[A-Z-]+", step.said))  # our own cases name the code
            wanted = named or next((codes for token, codes in SAID if token in step.said), ours.codes)
            right = ours.outcome not in APPLIED and (ours.codes & wanted or not wanted)
            return Verdict(frozenset(), () if right else (f"{where}, recorded: {step.said[:120]!r}",))
        if not answer.rule:
            return Verdict(frozenset(), () if ours.outcome in APPLIED else (f"{where}, recorded as accepted",))
        right = ours.outcome not in APPLIED and (not answer.codes or bool(ours.codes & answer.codes))
        wrong = () if right else (f"{where}, but {answer.rule} wants {sorted(answer.codes)}",)
        return Verdict(frozenset({answer.rule}), wrong)

    def judge_state(self, at: int, ours: Files, recorded: Files) -> Verdict:
        """Whether our tree after the step is the recorded one, or differs from it exactly by rules."""
        mine, theirs = logical_state(ours), logical_state(recorded)
        rules: set[str] = set()
        complaints: list[str] = []
        for path in sorted(mine.keys() | theirs.keys()):
            is_same = mine.get(path) == theirs.get(path)
            complaints += self._complaints(at, path, mine, theirs, ours)
            if not is_same:
                named = self.rules_for(at, path)
                rules |= named
                if not named:
                    complaints.append(f"{self._where(at, path)}: differs, and no rule changes it")
        return Verdict(frozenset(rules), tuple(complaints))

    def _where(self, at: int, path: str) -> str:
        return f"{self.case.name} step {self.steps[at].number} {path}"

    def _complaints(
        self, at: int, path: str, mine: Mapping[str, object], theirs: Mapping[str, object], ours: Files
    ) -> Iterator[str]:
        reference, fixed = self._logical[0][at], self._logical[-1][at]
        is_same, is_modelled = mine.get(path) == theirs.get(path), theirs.get(path) == reference.get(path)
        if not is_same and not is_modelled:
            yield f"{self._where(at, path)}: the record is not what the protocol's own rules give"
        if is_index(path):
            for text in index_complaints(path, self.case.before, ours, must_exist=path in fixed):
                yield f"{self._where(at, path)}: {text}"
        elif mine.get(path) != fixed.get(path) and (not is_same or is_modelled):
            yield f"{self._where(at, path)}: ours is not what the fixes give\n{_differ(fixed.get(path), mine.get(path))}"


def _differ(wanted: object, got: object) -> str:
    import difflib

    texts = [value if isinstance(value, str) else json.dumps(value, default=repr, indent=0) for value in (wanted, got)]
    lines = difflib.unified_diff(*(text.splitlines() for text in texts), "wanted", "got", n=1, lineterm="")
    return "\n".join(f"    {line}" for _, line in zip(range(40), lines, strict=False))
