"""Trial rows as the breakers read them. Source: protocol §6.4, §12.4, rulings B6, W-49."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.trials import Score, Trial, parse_trials

RUN = "cart-20260301T090000Z-0a1b2c3d"
GREEN = {"regressions": 0, "fixtures_passed": 2, "fixtures_total": 2, "db_probe": None}


def rows(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def row(**more: Any) -> dict[str, Any]:
    return {"scope_id": "core", "status": "kept", "round": 1, "attempt": 1, "trial": 1, "score": GREEN} | more


def test_a_row_is_read_whole() -> None:
    (trial,) = parse_trials(rows(row(run_id=RUN, at="2026-03-01T10:00:00.000Z", artifact="t0/verdicts/r1-a1-t1.json")))
    assert trial == Trial(
        "core", "kept", 1, 1, 1, RUN, Score(0, 2, 2), "2026-03-01T10:00:00.000Z", "t0/verdicts/r1-a1-t1.json"
    )
    assert trial.is_kept_green


@pytest.mark.parametrize("scope_id", [None, "", 7, "../x", "a b", "-a", "é", "\ud800", "a\n"])
def test_a_row_without_a_scope_id_is_skipped(scope_id: object) -> None:
    assert parse_trials(rows(row(scope_id=scope_id))) == ()


def test_torn_lines_and_other_values_are_skipped_and_the_order_stays() -> None:
    data = rows(row(trial=1), [1], None) + b"{torn\n" + rows(row(trial=2)) + b'{"scope_id":"core"'
    assert [trial.trial for trial in parse_trials(data)] == [1, 2]


@pytest.mark.parametrize("value", ["1", True, 1.5, -1, None, [], 2**60, 1e300, float("inf")])
def test_a_number_that_is_none_reads_as_absent(value: object) -> None:
    (trial,) = parse_trials(rows(row(round=value, attempt=value, score={**GREEN, "fixtures_passed": value})))
    assert (trial.round, trial.attempt, trial.score, trial.is_kept_green) == (None, None, None, False)


def test_rows_of_other_runs_are_left_out_and_rows_of_no_run_count() -> None:
    data = rows(row(trial=1, run_id=RUN), row(trial=2, run_id="other"), row(trial=3))
    assert [trial.trial for trial in parse_trials(data, RUN)] == [1, 3]
    assert len(parse_trials(data)) == 3


@pytest.mark.parametrize(
    ("score", "is_green"),
    [
        (Score(0, 2, 2), True),
        (Score(0, 2, 2, 1), True),
        (Score(0, 2, 2, 0), False),
        (Score(1, 2, 2), False),
        (Score(0, 1, 2), False),
        (Score(0, 0, 0), False),
    ],
)
def test_green_needs_every_fixture_one_at_least_and_a_probe_that_did_not_fail(score: Score, is_green: bool) -> None:
    assert score.is_green is is_green
    assert Trial("core", "reverted", score=score).is_kept_green is False


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(sorted(row(run_id=1, at=1))), VALUES))
def test_no_row_makes_it_raise(value: dict[str, Any]) -> None:
    for trial in parse_trials(rows(value)):
        assert trial.scope_id.isascii()
