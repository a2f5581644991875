"""Times: what parses, and the one form they are written in. Source: protocol "General byte rules"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.times import parse_time, render_date, render_time

MOMENTS = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9))])).filter(
    lambda moment: 1 < moment.year < 9999
)


@given(MOMENTS)
def test_what_is_written_reads_back_to_the_millisecond(moment: datetime) -> None:
    read = parse_time(render_time(moment))
    assert read is not None
    assert timedelta(0) <= moment - read < timedelta(milliseconds=1)


@given(st.text(max_size=30))
def test_no_text_makes_it_raise(text: str) -> None:
    moment = parse_time(text)
    assert moment is None or moment.tzinfo is not None


def test_a_time_is_written_in_utc_with_milliseconds_and_z() -> None:
    late = datetime(2026, 3, 1, 23, 30, 5, 999_999, tzinfo=timezone(timedelta(hours=-2)))
    assert render_time(late) == "2026-03-02T01:30:05.999Z"
    assert render_date(late) == "2026-03-02"


def test_a_time_without_a_zone_reads_as_utc_and_cannot_be_written() -> None:
    assert parse_time("2026-03-01T12:00:00") == datetime(2026, 3, 1, 12, tzinfo=UTC)
    late = datetime(2026, 3, 1, tzinfo=UTC)
    for render in (render_time, render_date):
        with pytest.raises(ValueError):
            render(late.replace(tzinfo=None))


@pytest.mark.parametrize("text", [None, "", "yesterday", "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_none(text: str | None) -> None:
    assert parse_time(text) is None
