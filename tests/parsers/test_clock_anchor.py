"""clock.json: read back as written, or not at all. Source: ruling F10."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.clock_anchor import Anchor, anchor_document, parse_anchor

RUN = "cart-20260301T090000Z-0a1b2c3d"
ANCHOR = Anchor(
    RUN, "b00t", 1234.5, datetime(2026, 3, 1, 9, 0, 1, tzinfo=UTC), 3600, datetime(2026, 3, 1, 9, tzinfo=UTC)
)
DOCUMENT = {
    "run_id": RUN,
    "boot_id": "b00t",
    "boottime_s": 1234.5,
    "wall": "2026-03-01T09:00:01.000Z",
    "budget_s": 3600,
    "started_at": "2026-03-01T09:00:00.000Z",
}


def test_an_anchor_is_read_back() -> None:
    assert anchor_document(ANCHOR) == DOCUMENT
    assert parse_anchor(json.dumps(DOCUMENT).encode(), "clock.json", RUN) == ANCHOR


@pytest.mark.parametrize("key", ["budget_s", "started_at"])
def test_an_anchor_that_does_not_say_what_the_receipt_said_is_one(key: str) -> None:
    document = {name: value for name, value in DOCUMENT.items() if name != key}
    assert parse_anchor(json.dumps(document).encode(), "clock.json", RUN) == ANCHOR._replace(**{key: None})


@pytest.mark.parametrize("run_id", [None, "other"])
def test_another_runs_anchor_is_none(run_id: str | None) -> None:
    assert parse_anchor(json.dumps(DOCUMENT).encode(), "clock.json", run_id) is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"null", b'{"run_id":1}'])
def test_what_cannot_be_read_is_no_anchor(data: bytes) -> None:
    assert parse_anchor(data, "clock.json", RUN) is None


@given(
    st.sampled_from(["boot_id", "boottime_s", "wall"]),
    st.none() | st.booleans() | st.lists(st.integers(), max_size=1) | st.just("soon") | st.just({}),
)
def test_a_field_that_cannot_be_meant_makes_it_none(key: str, value: object) -> None:
    found = parse_anchor(json.dumps(DOCUMENT | {key: value}).encode(), "clock.json", RUN)
    assert found is None or (key, value) == ("boot_id", "soon")
