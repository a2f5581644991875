"""The ratchet's arithmetic, its vectors and its laws. Source: protocol §6.3, §6.4, §12.3, W-49, rulings G5, G9."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.t0_verdict import CommandResult, FailingScope, Seesaw
from parsers.trials import Score, Trial
from reducers.ratchet import (
    KEPT_STATUSES,
    Decision,
    baseline_of,
    better,
    decide,
    describe_delta,
    judge_trial,
    next_artifact_number,
    next_trial_number,
    score_of,
)


def s(regressions: int, passed: int, total: int, db_probe: int | None = None) -> Score:
    return Score(regressions, passed, total, db_probe)


@pytest.mark.parametrize(
    ("new", "base", "expected"),
    [
        (s(0, 0, 5), None, True),
        (s(0, 2, 5), s(0, 2, 5), False),
        (s(0, 5, 5), s(0, 5, 5), True),
        (s(1, 5, 5), s(0, 4, 5), False),
        (s(0, 5, 6), s(0, 5, 5), None),
        (s(0, 5, 5, 1), s(0, 5, 5), True),
        (s(0, 5, 5, 0), s(0, 5, 5), False),
        (s(0, 5, 5), s(0, 5, 5, 0), False),
        (s(0, 0, 0), s(0, 0, 0), False),
        (s(0, 5, 5, 0), s(0, 5, 5, 0), False),
        (s(0, 5, 5, 1), s(0, 5, 5, 1), True),
    ],
)
def test_the_vectors_of_the_protocol_and_the_red_tie_of_a_failing_probe(
    new: Score, base: Score | None, expected: bool | None
) -> None:
    assert better(new, base) is expected


def test_scopes_that_fail_count_only_where_the_seesaw_ran() -> None:
    failing = (FailingScope("a"), FailingScope("b"))
    assert score_of((), None, Seesaw(True, False, failing=failing)) == s(2, 0, 0)
    assert score_of((), None, Seesaw(False, True, failing=failing)) == s(0, 0, 0)
    assert score_of((), CommandResult("db", 1, False), None) == s(0, 0, 0, 0)


scores = st.builds(Score, st.integers(0, 2), st.integers(0, 3), st.integers(0, 3), st.sampled_from([None, 0, 1]))


@given(scores, scores)
def test_of_two_different_scores_at_most_one_is_better(one: Score, other: Score) -> None:
    if one != other:
        assert not (better(one, other) and better(other, one))


@given(scores, scores)
def test_scores_are_comparable_both_ways_or_not_at_all(one: Score, other: Score) -> None:
    assert (better(one, other) is None) == (better(other, one) is None) == (one.fixtures_total != other.fixtures_total)


@given(scores)
def test_a_tie_is_kept_exactly_where_it_is_green(score: Score) -> None:
    assert better(score, score) is score.is_green


@given(scores, scores, scores)
def test_better_is_transitive(one: Score, two: Score, three: Score) -> None:
    if better(one, two) and better(two, three):
        assert better(one, three)


@given(scores, scores)
def test_a_green_baseline_is_never_replaced_by_a_red_attempt(score: Score, base: Score) -> None:
    if base.is_green and better(score, base):
        assert score.is_green


@given(scores, scores)
def test_no_change_is_told_only_where_nothing_changed(one: Score, other: Score) -> None:
    same = one._replace(db_probe=one.db_probe or 0) == other._replace(db_probe=other.db_probe or 0)
    if one.fixtures_total == other.fixtures_total:
        assert (describe_delta(one, other) == "no change") is same


@pytest.mark.parametrize(
    ("new", "base", "delta"),
    [
        (s(0, 0, 5), None, "baseline"),
        (s(2, 3, 5, 0), s(0, 5, 5, 1), "+2 regressions, -2 fixtures, -1 db_probe"),
        (s(0, 3, 5), s(1, 2, 5), "-1 regression, +1 fixture"),
        (s(0, 5, 6), s(0, 5, 5), "denominator 5 → 6"),
        (s(0, 5, 5, 0), s(0, 5, 5), "no change"),
    ],
)
def test_differences_in_words(new: Score, base: Score | None, delta: str) -> None:
    assert describe_delta(new, base) == delta


@pytest.mark.parametrize(
    ("is_better", "crashed", "status", "action"),
    [
        (True, True, "crash", "restore"),
        (None, True, "crash", "restore"),
        (None, False, "rebased", "keep"),
        (True, False, "kept", "keep"),
        (False, False, "reverted", "restore"),
    ],
)
def test_the_table_of_decisions(is_better: bool | None, crashed: bool, status: str, action: str) -> None:
    assert decide(is_better, crashed) == (status, action)


HALF = s(0, 1, 2)


def row(scope: str, status: str, trial: int | None = None, score: Score | None = HALF) -> Trial:
    return Trial(scope, status, 1, 1, trial, score=score)


def test_the_baseline_is_the_newest_kept_row_of_the_scope_alone() -> None:
    rows = [row("core", "kept", 1), row("core", "rebased", 2), row("core", "reverted", 3), row("ui", "kept", 1)]
    assert baseline_of(rows, "core") == rows[1]
    assert baseline_of(rows[2:], "core") is None


def test_trials_are_counted_per_scope() -> None:
    rows = [row("core", "kept", 1), row("ui", "kept", 1), row("core", "reverted", 2)]
    assert [next_trial_number(rows, scope) for scope in ("core", "ui", "new")] == [3, 2, 1]


def test_a_number_behind_those_of_an_older_kernel_is_higher_than_theirs() -> None:
    assert next_trial_number([row("core", "kept", 4), row("core", "kept", 9), row("core", "kept")], "core") == 10


def test_artifacts_are_counted_per_round_and_attempt_over_all_scopes() -> None:
    stems = ["r1-a1-t1", "r1-a1-t12", "r1-a2-t3", "r11-a1-t50", "r2-a1", "notes", "r1-a1-tx"]
    assert [next_artifact_number(stems, *where) for where in ((1, 1), (1, 2), (2, 1), (3, 1))] == [13, 4, 1, 1]


def test_the_first_attempt_is_kept_though_nothing_passes() -> None:
    outcome = judge_trial([], "core", s(0, 0, 3))
    assert (outcome.decision, outcome.number, outcome.delta) == (Decision("kept", "keep"), 1, "baseline")


def test_a_first_attempt_that_crashes_restores_nothing() -> None:
    outcome = judge_trial([], "core", s(0, 0, 3), crashed=True)
    assert outcome.decision == ("crash", "restore")
    assert not outcome.restores


def test_a_void_attempt_is_never_kept() -> None:
    kept = [row("core", "kept", 1)]
    for history, score in (([], s(0, 0, 2)), (kept, s(0, 0, 2)), (kept, s(0, 0, 3))):
        assert judge_trial(history, "core", score, is_void=True).decision == ("reverted", "restore")


def test_a_baseline_that_says_no_score_cannot_be_compared_with() -> None:
    outcome = judge_trial([row("core", "kept", 1, None)], "core", s(0, 1, 2))
    assert (outcome.decision.status, outcome.delta) == ("rebased", "denominator ? → 2")


attempts = st.lists(st.tuples(st.sampled_from(["core", "ui"]), scores, st.booleans(), st.booleans()), max_size=30)


@given(attempts)
def test_over_any_attempts_a_scope_only_ever_gets_better_and_scopes_do_not_meet(
    told: list[tuple[str, Score, bool, bool]],
) -> None:
    rows: list[Trial] = []
    for scope, score, crashed, is_void in told:
        outcome = judge_trial(rows, scope, score, crashed=crashed, is_void=is_void)
        before = baseline_of(rows, scope)
        assert outcome.number == 1 + sum(one.scope_id == scope for one in rows)
        rows.append(row(scope, outcome.decision.status, outcome.number, score))
        after = baseline_of(rows, scope)
        assert outcome.baseline == before
        if outcome.decision.status not in KEPT_STATUSES:
            assert after == before
            assert outcome.restores == (before is not None)
        elif before is not None and before.score is not None and before.score.fixtures_total == score.fixtures_total:
            assert better(score, before.score)
