"""What the ledgers of trials come to: for a worker, and for people. Source: protocol §5.7, §6.9, W-41."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from parsers.aegis import AegisTriple
from parsers.domain import TrialRow
from parsers.ledgers import render_row
from parsers.trials import Score, Trial, parse_trials, trial_row
from reducers.ratchet_stats import ratchet_report, report_document
from reducers.trial_history import select_trial_history


def row(scope: str, trial: int, status: str, passed: int = 1, round_: int = 1) -> Trial:
    return Trial(scope, status, round_, trial, trial, score=Score(0, passed, 2))


def test_scopes_of_equal_id_in_two_features_stay_apart() -> None:
    rows = [("a", row("core", 1, "kept")), ("b", row("core", 1, "kept", 2))]
    report = ratchet_report(rows)
    assert (report.scopes, report.scopes_multi_trial, report.mean_trials_to_green) == (2, 0, 1)
    assert [scope["slug"] for scope in report_document(report, with_slug=True)["per_scope"]] == ["a", "b"]  # type: ignore[attr-defined]


def test_rates_and_sawteeth() -> None:
    statuses = ("kept", "reverted", "kept", "rebased", "crash", "kept", "reverted")
    rows = [row("core", n, status, passed=2 if n == 4 else 1) for n, status in enumerate(statuses, start=1)]
    report = ratchet_report(("a", trial) for trial in reversed(rows))
    assert (report.improvement_rate, report.monotone_rate, report.sawtooth_count) == (0.33, 0, 2)
    assert (report.per_scope[0].reached_green_at_trial, report.per_scope[0].monotone) == (4, False)
    assert report.status_histogram == {"reverted": 2, "kept": 3, "crash": 1, "rebased": 1}


def test_no_trial_is_a_report_of_zeros() -> None:
    document = report_document(ratchet_report(()))
    assert json.dumps(document).startswith('{"trials": 0, "scopes": 0, "scopes_multi_trial": 0, "improvement_rate": 0,')
    assert document["mean_trials_to_green"] is None


TRIPLE = AegisTriple("a.py", 1, "boom", "stack-frame")
FULL = Trial(
    "core", "reverted", 2, 1, 3, "cart-20260301T090000Z-0a1b2c3d", Score(1, 2, 3, 0), "2026-03-01T10:00:00.000Z",
    "t0/verdicts/r2-a1-t1.json", "0" * 64, "refs/shapeup/cart/core/kept", 2, "+1 regression", (TRIPLE,) * 4,
)  # fmt: skip


def test_a_row_has_the_order_of_the_registry_and_reads_back() -> None:
    data = render_row(trial_row(FULL))
    assert list(json.loads(data)) == [
        "schema_version", "trial", "run_id", "round", "attempt", "scope_id", "at", "artifact", "sha256", "score", "status",
        "baseline_trial", "delta", "tree_ref", "digest",
    ]  # fmt: skip
    assert parse_trials(data.encode()) == (FULL,)
    assert "run_id" not in trial_row(FULL._replace(run_id=None))
    TrialRow.model_validate(json.loads(data))


def test_a_worker_is_told_the_last_eight_of_two_rounds_with_three_errors_each() -> None:
    rows = [FULL._replace(trial=n, round=1 + n // 5, attempt=n) for n in range(1, 16)]
    history = select_trial_history([*rows, FULL._replace(scope_id="ui")], "core", 3)
    assert [told["trial"] for told in history] == [7, 8, 9, 10, 11, 12, 13, 14]
    assert history[0] == {
        "schema_version": 1,
        "trial": 7,
        "round": 2,
        "attempt": 7,
        "scope_id": "core",
        "score": {"regressions": 1, "fixtures_passed": 2, "fixtures_total": 3, "db_probe": 0},
        "status": "reverted",
        "delta": "+1 regression",
        "digest": [TRIPLE._asdict()] * 3,
    }


maybe = st.none() | st.integers(0, 3)
trials = st.builds(
    Trial,
    st.sampled_from(["core", "ui"]),
    st.sampled_from(["kept", "reverted", "rebased", "crash", "", "odd"]),
    st.integers(1, 3),
    st.integers(1, 3),
    maybe,
    score=st.none() | st.builds(Score, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)),
)


@given(st.lists(trials, max_size=20))
def test_every_row_in_a_history_validates_in_an_order(rows: list[Trial]) -> None:
    for told in select_trial_history(rows):
        TrialRow.model_validate(told)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), trials), max_size=20))
def test_a_report_counts_every_row_once(rows: list[tuple[str, Trial]]) -> None:
    report = ratchet_report(rows)
    assert sum(scope.trials for scope in report.per_scope) == report.trials == sum(report.status_histogram.values())
    assert 0 <= report.improvement_rate <= 1
    assert 0 <= report.monotone_rate <= 1
