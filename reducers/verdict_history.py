"""Which verdicts flipped from one judgement to the next, and how stable they are. Source: protocol §5.13, W-46.

A subject is a pair of dimension and criterion. Lines of one ledger are ordered by `run`; over the ledgers of several evaluate
orders by (round, run).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from parsers.verdict_ledger import VerdictLedger, VerdictLine, evaluate_round, parse_verdict_ledger


class Reconciled(NamedTuple):
    """A line against what was said before. A line that flips has `confidence` low, whatever it claims."""

    line: VerdictLine
    flip: bool


class Flip(NamedTuple):
    """Two judgements of one subject, one directly after the other, that differ."""

    before: VerdictLine
    after: VerdictLine


class Stability(NamedTuple):
    """How many verdicts of the newest judgement are those of the one before. `runs`: the newest run, summed over the rounds."""

    runs: int
    stable: int
    total: int

    @property
    def ratio(self) -> float:
        """Stable ones of all, from 0 to 1; 1 where nothing was judged."""
        return 1 if self.stable == self.total else self.stable / self.total


def read_evaluations(ledgers: Mapping[str, bytes]) -> VerdictLedger:
    """The ledgers of all evaluate orders, by stem, as one in the order of (round, run); other orders' are left out."""
    lines: list[VerdictLine] = []
    skipped = 0
    for stem, data in ledgers.items():
        if (round_ := evaluate_round(stem)) is not None:
            ledger = parse_verdict_ledger(data, round_)
            lines += ledger.lines
            skipped += ledger.skipped
    return VerdictLedger(tuple(sorted(lines, key=lambda line: line.order)), skipped)


def reconcile(before: Iterable[VerdictLine], current: Iterable[VerdictLine]) -> tuple[Reconciled, ...]:
    """Each current line against the newest older one of its subject in `before`."""
    told = {subject: _firsts(group) for subject, group in _by_subject(before).items()}
    return tuple(_reconciled(line, _prior(line, told.get(line.subject, []))) for line in current)


def _reconciled(line: VerdictLine, prior: VerdictLine | None) -> Reconciled:
    flip = prior is not None and prior.verdict != line.verdict
    return Reconciled(line._replace(confidence="low") if flip else line, flip)


def find_flips(lines: Iterable[VerdictLine]) -> tuple[Flip, ...]:
    """Each change from one judgement to the next, subject by subject in the order in which they first appear."""
    told = _by_subject(sorted(lines, key=lambda line: line.order))
    return tuple(Flip(a, b) for group in told.values() for a, b in pairwise(group) if a.verdict != b.verdict)


def measure_stability(lines: Sequence[VerdictLine]) -> Stability:
    """The newest judgement's lines against the newest older one of their subject; a subject without one is stable."""
    newest = max((line.order for line in lines), default=None)
    current = [line for line in lines if line.order == newest]
    runs: dict[int, int] = {}
    for line in lines:
        runs[line.round] = max(line.run, runs.get(line.round, 0))
    stable = sum(not found.flip for found in reconcile(lines, current))
    return Stability(sum(runs.values()), stable, len(current))


def _firsts(group: Iterable[VerdictLine]) -> list[VerdictLine]:
    """The first line of each judgement, oldest first."""
    firsts: dict[tuple[int, int], VerdictLine] = {}
    for line in group:
        firsts.setdefault(line.order, line)
    return sorted(firsts.values(), key=lambda line: line.order)


def _prior(line: VerdictLine, firsts: list[VerdictLine]) -> VerdictLine | None:
    """The newest line below this one."""
    older = bisect_left(firsts, line.order, key=lambda other: other.order)
    return firsts[older - 1] if older else None


def _by_subject(lines: Iterable[VerdictLine]) -> dict[tuple[str, str], list[VerdictLine]]:
    groups: dict[tuple[str, str], list[VerdictLine]] = {}
    for line in lines:
        groups.setdefault(line.subject, []).append(line)
    return groups


def summary_document(found: Sequence[Reconciled]) -> dict[str, object]:
    """{total, flipped, stable, flips[{criterion, dimension, to}]} of reconciled lines."""
    flips = [
        {"criterion": one.line.criterion, "dimension": one.line.dimension, "to": one.line.verdict}
        for one in found
        if one.flip
    ]
    return {"total": len(found), "flipped": len(flips), "stable": len(found) - len(flips), "flips": flips}


def flip_document(flip: Flip) -> dict[str, object]:
    """{criterion, dimension, from, to, runs}; `rounds` where the two are of different rounds."""
    document: dict[str, object] = {"criterion": flip.after.criterion, "dimension": flip.after.dimension}
    document |= {"from": flip.before.verdict, "to": flip.after.verdict, "runs": [flip.before.run, flip.after.run]}
    if flip.before.round != flip.after.round:
        document["rounds"] = [flip.before.round, flip.after.round]
    return document


def stability_document(stability: Stability) -> dict[str, object]:
    """{runs, stable, total, ratio}."""
    return {**stability._asdict(), "ratio": stability.ratio or 0}
