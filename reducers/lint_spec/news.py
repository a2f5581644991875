"""What a change of the committed specs brings and takes away: findings compared without their line numbers. Source: issue 6 item 4, cli §3.

Only what the specs break by themselves is compared: findings that follow from the board come and go with every task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reducers.lint_spec.lint import SpecReport
from reducers.lint_trace.lint import TraceReport

OF_BOARD = frozenset({"TASK", "EDGE-SYMMETRY", "UC-ANCHOR", "SCOPE-PARTITION", "REQ-UNCOVERED", "COVERS-DANGLING"})


class Told(NamedTuple):
    """A finding of either lint as the log tells it. `where`: a path, with `:line` behind it where one is known."""

    rule: str
    level: str
    where: str
    what: str
    fix: str
    scope: str | None = None

    @property
    def key(self) -> tuple[str, str, str | None, str]:
        """What it is about, wherever it stands in its file: an edit above it makes it no news."""
        path, _, line = self.where.rpartition(":")
        return self.rule, path if line.isdecimal() else self.where, self.scope, self.what


class News(NamedTuple):
    """Findings that were not there before, and findings that are gone."""

    found: tuple[Told, ...]
    cleared: tuple[Told, ...]


def tell_specs(spec: SpecReport, trace: TraceReport) -> tuple[Told, ...]:
    """The findings of both lints that follow from the committed specs alone."""
    told = [Told(one.rule, one.level, one.where, one.what, one.fix, one.scope) for one in spec.findings]
    told += [Told(one.code, one.severity, one.where, one.what, one.fix) for one in trace.findings]
    return tuple(one for one in told if one.rule not in OF_BOARD)


def compare(before: Sequence[Told], after: Sequence[Told]) -> News:
    """What `after` has more of, and what it has less of."""
    return News(tuple(_more(after, before)), tuple(_more(before, after)))


def _more(these: Iterable[Told], than: Iterable[Told]) -> Iterator[Told]:
    known = Counter(one.key for one in than)
    for one in these:
        if known[one.key] > 0:
            known[one.key] -= 1
        else:
            yield one
