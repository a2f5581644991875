"""Durations as people write them. Source: issue 4 "Timers"."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.durations import MAX_DURATION_S, parse_duration, render_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", 5400),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1h30m15s", 5415),
        ("1d", 86400),
        ("2d4h", 187200),
        ("45s", 45),
        ("5400", 5400),
        ("0.5", 0.5),
        (" 90m\n", 5400),
        ("007", 7),
    ],
)
def test_each_form_gives_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no duration"),
        ("soon", "no duration"),
        ("m", "no duration"),
        ("30m1h", "in this order"),
        ("1h1h", "no duration"),
        ("1h 30m", "no duration"),
        ("90M", "no duration"),
        ("1.5h", "no duration"),
        ("٣m", "no duration"),
        ("1e3", "no duration"),
        ("nan", "no duration"),
        ("inf", "no duration"),
        ("-5", "negative"),
        ("-5m", "negative"),
        ("0", "no time at all"),
        ("0m", "no time at all"),
        ("99999d", "ten years"),
        ("9" * 12, "ten years"),
        ("9" * 500, "no duration"),
    ],
)
def test_what_is_none_is_refused_with_the_forms_that_are_taken(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        parse_duration(text)
    assert "90m, 2h, 1h30m" in str(caught.value)
    assert len(str(caught.value)) < 200


@given(st.integers(1, MAX_DURATION_S))
def test_what_is_told_is_read_back(seconds: int) -> None:
    assert parse_duration(render_duration(seconds)) == seconds


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return
    assert 0 < seconds <= MAX_DURATION_S


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0s"), (0.4, "0s"), (-0.4, "0s"), (59.5, "1m"), (-90, "-1m30s"), (90061, "1d1h1m1s")]
)
def test_it_is_told_in_whole_seconds(seconds: float, told: str) -> None:
    assert render_duration(seconds) == told
