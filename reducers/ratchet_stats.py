"""How the ratchet did over a run's trials: `stats --ratchet`. Source: protocol §5.7, W-41."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from parsers.trials import Score, Trial, score_row

SETBACKS = frozenset({"reverted", "crash"})


class ScopeStats(NamedTuple):
    """One scope of one feature. `monotone` None: it has a single trial. Scores are None where the row says none.

    `reached_green_at_trial` counts its trials from 1; None: none was green.
    """

    slug: str
    scope_id: str
    trials: int
    first_score: Score | None
    last_score: Score | None
    monotone: bool | None
    reached_green_at_trial: int | None


class RatchetReport(NamedTuple):
    """Rates are rounded to two decimals, half up, and 0 where there is nothing to divide by; the mean is None then.

    `status_histogram` in the order in which the statuses first appear, `per_scope` by scope id, then feature.
    """

    trials: int
    scopes: int
    scopes_multi_trial: int
    improvement_rate: float
    monotone_rate: float
    sawtooth_count: int
    mean_trials_to_green: float | None
    status_histogram: dict[str, int]
    per_scope: tuple[ScopeStats, ...]


def ratchet_report(trials: Iterable[tuple[str, Trial]]) -> RatchetReport:
    """The report over (slug, row) in file order. A scope is a pair of feature and id: equal ids of two features stay apart (W-41)."""
    rows = list(trials)
    groups: dict[tuple[str, str], list[Trial]] = {}
    for slug, trial in rows:
        groups.setdefault((slug, trial.scope_id), []).append(trial)
    for group in groups.values():
        group.sort(key=lambda trial: trial.trial or 0)
    per_scope = tuple(_scope_stats(slug, scope_id, group) for (slug, scope_id), group in groups.items())
    later = [trial.status for group in groups.values() for trial in group[1:]]
    several = [scope for scope in per_scope if scope.trials > 1]
    greens = [scope.reached_green_at_trial for scope in per_scope if scope.reached_green_at_trial is not None]
    return RatchetReport(
        trials=len(rows),
        scopes=len(per_scope),
        scopes_multi_trial=len(several),
        improvement_rate=_rate(later.count("kept"), len(later)),
        monotone_rate=_rate(sum(scope.monotone is True for scope in several), len(several)),
        sawtooth_count=sum(map(_sawteeth, groups.values())),
        mean_trials_to_green=_rate(sum(greens), len(greens)) if greens else None,
        status_histogram=dict(Counter(trial.status for _, trial in rows)),
        per_scope=tuple(sorted(per_scope, key=_as_people_sort)),
    )


def _scope_stats(slug: str, scope_id: str, group: Sequence[Trial]) -> ScopeStats:
    greens = (number for number, trial in enumerate(group, start=1) if trial.score and _all_passed(trial.score))
    return ScopeStats(
        slug,
        scope_id,
        len(group),
        group[0].score,
        group[-1].score,
        None if len(group) == 1 else SETBACKS.isdisjoint(trial.status for trial in group[1:]),
        next(greens, None),
    )


def _all_passed(score: Score) -> bool:
    """Green as §5.7 counts it: the probe is not asked."""
    return score._replace(db_probe=None).is_green


def _sawteeth(group: Sequence[Trial]) -> int:
    return sum((a.status, b.status) == ("kept", "reverted") for a, b in pairwise(group))


def _rate(part: int, whole: int) -> float:
    """Two decimals, half up, as the reference rounds; a whole number stays one."""
    value = math.floor(part / whole * 100 + 0.5) / 100 if whole else 0
    return int(value) if value == int(value) else value


def _as_people_sort(scope: ScopeStats) -> tuple[str, str, str]:
    """Letters before their case, `_` before `-`: as the reference's locale sorts."""
    return scope.scope_id.casefold().replace("_", " "), scope.scope_id.swapcase(), scope.slug


def report_document(report: RatchetReport, *, with_slug: bool = False) -> dict[str, object]:
    """The report as the reference prints it; with `slug` first in each scope where features have to be told apart."""
    return {**report._asdict(), "per_scope": [_scope_document(scope, with_slug) for scope in report.per_scope]}


def _scope_document(scope: ScopeStats, with_slug: bool) -> dict[str, object]:
    scores = {key: score_row(score) if score else None for key, score in _scores(scope)}
    document = {**scope._asdict(), **scores}
    if not with_slug:
        del document["slug"]
    return document


def _scores(scope: ScopeStats) -> tuple[tuple[str, Score | None], ...]:
    return ("first_score", scope.first_score), ("last_score", scope.last_score)
