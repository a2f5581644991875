"""Flips and stability, within a ledger and across rounds. Source: protocol §5.13, W-46, W-75."""

from __future__ import annotations

import json
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from parsers.verdict_ledger import VerdictLine
from reducers.verdict_history import (
    Reconciled,
    find_flips,
    flip_document,
    measure_stability,
    read_evaluations,
    reconcile,
    stability_document,
    summary_document,
)


def line(run: int, verdict: str, criterion: str = "A", dimension: str = "spec", round_: int = 0) -> VerdictLine:
    return VerdictLine(run, dimension, criterion, verdict, "high", round_)


def ledger(*verdicts: str) -> bytes:
    rows = (
        {"run": 1, "dimension": "spec", "criterion": criterion, "verdict": v}
        for criterion, v in zip("ABC", verdicts, strict=False)
    )
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_a_flip_makes_confidence_low_and_the_first_of_equal_runs_is_the_prior() -> None:
    before = [line(1, "FAIL"), line(2, "PASS"), line(2, "FAIL")]
    found = reconcile(before, [line(3, "FAIL"), line(3, "PASS"), line(3, "FAIL", "B")])
    assert found == (
        Reconciled(line(3, "FAIL")._replace(confidence="low"), True),
        Reconciled(line(3, "PASS"), False),
        Reconciled(line(3, "FAIL", "B"), False),
    )
    flips = [{"criterion": "A", "dimension": "spec", "to": "FAIL"}]
    assert summary_document(found) == {"total": 3, "flipped": 1, "stable": 2, "flips": flips}


def test_the_pair_is_the_subject() -> None:
    assert find_flips([line(1, "PASS", "A::B", "x"), line(2, "FAIL", "B", "x::A")]) == ()


def test_flips_across_rounds_are_seen_and_rounds_are_numbers() -> None:
    ledgers = {
        "evaluate-r10": ledger("FAIL", "PASS", "PASS"),
        "evaluate-r9": ledger("PASS", "PASS") + b"torn",
        "evaluate": ledger("FAIL"),
        "wire": ledger("FAIL", "FAIL", "FAIL"),
    }
    found = read_evaluations(ledgers)
    assert [told.round for told in found.lines] == [0, 9, 9, 10, 10, 10]
    assert found.skipped == 1
    assert [flip_document(flip) for flip in find_flips(found.lines)] == [
        {"criterion": "A", "dimension": "spec", "from": "FAIL", "to": "PASS", "runs": [1, 1], "rounds": [0, 9]},
        {"criterion": "A", "dimension": "spec", "from": "PASS", "to": "FAIL", "runs": [1, 1], "rounds": [9, 10]},
    ]
    assert stability_document(measure_stability(found.lines)) == {"runs": 3, "stable": 2, "total": 3, "ratio": 2 / 3}


def test_nothing_judged_is_stable() -> None:
    assert stability_document(measure_stability([])) == {"runs": 0, "stable": 0, "total": 0, "ratio": 1}


lines = st.lists(
    st.builds(line, st.integers(0, 3), st.sampled_from(["PASS", "FAIL"]), st.sampled_from("AB"), st.sampled_from("xy"))
)


@given(lines, lines)
def test_a_line_is_reconciled_with_the_newest_older_one_as_a_plain_search_finds_it(
    before: list[VerdictLine], current: list[VerdictLine]
) -> None:
    for found, now in zip(reconcile(before, current), current, strict=True):
        older = [one for one in before if one.subject == now.subject and one.run < now.run]
        newest = max(older, key=lambda one: one.run, default=now)
        assert found.flip == (newest.verdict != now.verdict)
        assert found.line == (now._replace(confidence="low") if found.flip else now)


@given(lines)
def test_flips_do_not_depend_on_the_order_of_different_judgements(told: list[VerdictLine]) -> None:
    ordered = [one for run in range(4) for one in told if one.run == run]
    subjects = {one.subject for one in told}
    by_subject = {subject: [one for one in find_flips(told) if one.after.subject == subject] for subject in subjects}
    assert all(by_subject[s] == [one for one in find_flips(ordered) if one.after.subject == s] for s in subjects)


@given(lines)
def test_stable_and_flipped_are_all(told: list[VerdictLine]) -> None:
    stability = measure_stability(told)
    assert 0 <= stability.stable <= stability.total
    assert 0 <= stability.ratio <= 1


def test_many_lines_of_one_subject_are_no_square() -> None:
    """Twenty thousand against twenty thousand: pair by pair it would be 4 * 10^8 looks."""
    before = [line(run, verdict) for run, verdict in product(range(10_000), ("PASS", "FAIL"))]
    assert sum(found.flip for found in reconcile(before, [line(20_000, "FAIL")] * 20_000)) == 20_000
