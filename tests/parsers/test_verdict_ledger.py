"""Verdict ledgers: bad lines are skipped and counted, and stems name rounds. Source: protocol §5.13, W-46, ruling C11."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.verdict_ledger import VerdictLine, evaluate_round, parse_verdict_ledger


def test_bad_lines_are_skipped_and_counted_and_blank_ones_are_not() -> None:
    data = b'{"run":1,"criterion":"A","verdict":"PASS"}\n\n  \r\nnot json\n[1]\n{"run":"2"}\n{"run":true}\n{"run":2,"criter'
    ledger = parse_verdict_ledger(data, 3)
    assert ledger.lines == (VerdictLine(1, "", "A", "PASS", "", 3),)
    assert ledger.skipped == 5


def test_a_line_past_the_cap_is_skipped() -> None:
    assert parse_verdict_ledger(b'{"run":1,"criterion":"' + b"a" * (1 << 20) + b'"}') == ((), 1)


@given(st.binary())
def test_no_bytes_make_it_raise_and_no_line_is_lost_silently(data: bytes) -> None:
    ledger = parse_verdict_ledger(data)
    assert len(ledger.lines) + ledger.skipped == sum(bool(line.strip()) for line in data.split(b"\n"))


@pytest.mark.parametrize(
    ("stem", "round_"),
    [
        ("evaluate", 0),
        ("evaluate-r1", 1),
        ("evaluate-r12", 12),
        ("wire", None),
        ("evaluate-x-r1", None),
        ("evaluate-r1-a2", None),
    ],
)
def test_the_round_of_an_evaluate_order_stands_in_its_stem(stem: str, round_: int | None) -> None:
    assert evaluate_round(stem) == round_
