"""The ratchet: whether an attempt is better than the last one that was kept, and what becomes of its tree.
Source: protocol §6.3, §6.4, W-49, rulings G1, G9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from parsers.t0_verdict import CommandResult, Seesaw, parse_artifact_name
from parsers.trials import Score, Trial

Status = Literal["kept", "reverted", "rebased", "crash"]
Action = Literal["keep", "restore"]
KEPT_STATUSES = frozenset({"kept", "rebased"})


class Decision(NamedTuple):
    """What an attempt's row says, and what is done with its tree."""

    status: Status
    action: Action


class Outcome(NamedTuple):
    """An attempt against its scope's history.

    `number` is that of its TrialRow. `baseline` None: there was nothing to compare with, and nothing to restore (ruling G9).
    """

    decision: Decision
    number: int
    baseline: Trial | None
    delta: str

    @property
    def restores(self) -> bool:
        """Whether the kept tree of the baseline has to be put back."""
        return self.decision.action == "restore" and self.baseline is not None


def score_of(fixtures: Sequence[CommandResult], db_probe: CommandResult | None, seesaw: Seesaw | None) -> Score:
    """The attempt's score; scopes that fail count only where the seesaw really ran."""
    return Score(
        regressions=len(seesaw.failing) if seesaw is not None and seesaw.ran else 0,
        fixtures_passed=sum(fixture.passed for fixture in fixtures),
        fixtures_total=len(fixtures),
        db_probe=None if db_probe is None else int(db_probe.passed),
    )


def better(score: Score, baseline: Score | None) -> bool | None:
    """Whether the score beats the baseline's; None: another number of fixtures, so the two cannot be compared.

    A tie is better where it is green and not where it is red. A failing probe is not green (W-49), and neither a failing one
    instead of none nor none instead of a failing one is better.
    """
    if baseline is None:
        return True
    if score.fixtures_total != baseline.fixtures_total:
        return None
    if score.regressions != baseline.regressions:
        return score.regressions < baseline.regressions
    if score.fixtures_passed != baseline.fixtures_passed:
        return score.fixtures_passed > baseline.fixtures_passed
    if score.db_probe != baseline.db_probe:
        return (score.db_probe or 0) > (baseline.db_probe or 0)
    return score.is_green


def decide(is_better: bool | None, crashed: bool) -> Decision:
    """Status and tree action. A crash measured nothing, whatever the numbers say."""
    if crashed:
        return Decision("crash", "restore")
    if is_better is None:
        return Decision("rebased", "keep")
    return Decision("kept", "keep") if is_better else Decision("reverted", "restore")


def describe_delta(score: Score, baseline: Score | None) -> str:
    """The difference in words: `baseline`, `denominator 5 → 6`, `+1 fixture, -1 db_probe` or `no change`."""
    if baseline is None:
        return "baseline"
    if score.fixtures_total != baseline.fixtures_total:
        return f"denominator {baseline.fixtures_total} → {score.fixtures_total}"
    parts = (
        _part(score.regressions - baseline.regressions, "regression", "regressions"),
        _part(score.fixtures_passed - baseline.fixtures_passed, "fixture", "fixtures"),
        _part((score.db_probe or 0) - (baseline.db_probe or 0), "db_probe", "db_probe"),
    )
    return ", ".join(filter(None, parts)) or "no change"


def _part(difference: int, one: str, many: str) -> str:
    return f"{difference:+d} {one if abs(difference) == 1 else many}" if difference else ""


def baseline_of(trials: Iterable[Trial], scope_id: str) -> Trial | None:
    """The newest row of the scope, of any round, whose tree was kept; `trials` in file order."""
    kept = [trial for trial in trials if trial.scope_id == scope_id and trial.status in KEPT_STATUSES]
    return kept[-1] if kept else None


def next_trial_number(trials: Iterable[Trial], scope_id: str) -> int:
    """The number of the scope's next row: one more than it has rows, and more than any of them names.

    Ledgers of older kernels count over all scopes; a smaller number behind theirs would sort before them.
    """
    numbers = [trial.trial or 0 for trial in trials if trial.scope_id == scope_id]
    return 1 + max([len(numbers), *numbers])


def next_artifact_number(stems: Iterable[str], round_: int, attempt: int) -> int:
    """The T of the next artifact of this round and attempt, whichever scope the others are of. Source: §6.2, W-48."""
    named = [name for stem in stems if (name := parse_artifact_name(stem)) and name[:2] == (round_, attempt)]
    return 1 + max((trial or 0 for *_, trial in named), default=0)


def judge_trial(
    trials: Sequence[Trial], scope_id: str, score: Score, *, crashed: bool = False, is_void: bool = False
) -> Outcome:
    """What becomes of the scope's new attempt. `trials`: all rows of the ledger, in file order.

    A void measurement (ruling G5) is never kept, not even as the first one: its tree holds the changed grader. A baseline
    whose score cannot be read is not comparable, like one with another number of fixtures.
    """
    baseline = baseline_of(trials, scope_id)
    number = next_trial_number(trials, scope_id)
    if baseline is not None and baseline.score is None:
        is_better, delta = None, f"denominator ? → {score.fixtures_total}"
    else:
        base = baseline.score if baseline is not None else None
        is_better, delta = better(score, base), describe_delta(score, base)
    return Outcome(decide(False if is_void else is_better, crashed), number, baseline, delta)
