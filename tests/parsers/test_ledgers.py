"""Ledgers: what cannot be read is skipped, what is written can be read again. Source: protocol §4.6-4.7, §12.4, rulings J, C11."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.ledgers import (
    MAX_LINE_BYTES,
    IngestRow,
    discovered_orders,
    ingest_row_of,
    logged_orders,
    newest_run,
    parse_ingest_rows,
    parse_legs,
    parse_rows,
    render_row,
)
from parsers.markdown import decode, encode

JSON_ROWS = st.dictionaries(
    st.text(max_size=5), st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12), max_size=4
)


@given(st.lists(JSON_ROWS, max_size=5))
def test_rows_that_were_written_are_read_back(rows: list[dict[str, object]]) -> None:
    assert list(parse_rows("".join(map(render_row, rows)).encode())) == rows


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_a_row_survives_any_lines_around_it(before: bytes, after: bytes) -> None:
    rows = parse_rows(before + b"\n" + render_row({"order_id": "s/a"}).encode() + after)
    assert {"order_id": "s/a"} in rows


def test_a_torn_last_line_and_lines_that_are_no_objects_are_skipped() -> None:
    data = (
        b'{"a":1}\n\n[1]\n"x"\nnull\nNaN\n{"b":\xff}\n\x00\n'
        + b"[" * 5000
        + b"\n"
        + b"9" * 5000
        + b'\n{"a":2}\r\n{"a":'
    )
    assert [row["a"] for row in parse_rows(data)] == [1, 2]


def test_a_line_of_more_than_a_megabyte_is_skipped() -> None:
    """Ruling C12: ledgers are capped per line only."""
    long = json.dumps({"a": "x" * MAX_LINE_BYTES}).encode()
    assert [row["a"] for row in parse_rows(long + b'\n{"a":1}\n')] == [1]


@given(st.binary(max_size=12))
def test_a_row_that_names_a_file_is_utf8_whatever_the_files_name_and_names_it_exactly(name: bytes) -> None:
    """A record that nobody can read again would be written again at each start."""
    line = encode(render_row({"result": decode(name)}))
    line.decode("utf-8")
    assert parse_rows(line) == ({"result": decode(name)},)


def test_a_row_is_compact_and_not_escaped() -> None:
    assert render_row({"é": ["\u2028", 1], "b": None}) == '{"é":["\u2028",1],"b":null}\n'


# --- the ingest record, legs, verdicts -------------------------------------------------------------------------------


def test_an_ingest_row_needs_an_order_a_hash_and_an_outcome() -> None:
    whole: dict[str, object] = {"order_id": "s/a", "sha256": "x", "outcome": "applied"}
    assert ingest_row_of(whole) == IngestRow(None, "s/a", None, "x", "applied", None)
    assert ingest_row_of(whole | {"verdict": "PASS", "code": 7}) == IngestRow(
        None, "s/a", None, "x", "applied", None, "PASS"
    )
    for key in whole:
        assert ingest_row_of(whole | {key: None}) is None
        assert parse_ingest_rows(render_row(whole | {key: 1}).encode()) == ()


def test_legs_without_an_order_are_skipped() -> None:
    rows = [
        {"order_id": "s/a", "run_id": "r", "ingested_at": "t"},
        {"run_id": "r"},
        {"order_id": 7},
        {"order_id": "s/b"},
    ]
    legs = parse_legs("".join(map(render_row, rows)).encode())
    assert [(leg.order_id, leg.run_id, leg.ingested_at) for leg in legs] == [("s/a", "r", "t"), ("s/b", None, None)]


@pytest.mark.parametrize(
    ("runs", "newest"),
    [
        ([], 0),
        ([1, 3, 2], 3),
        ([True, "9", 4.0, None, [5]], 0),
        ([-3], 0),
        ([2, 2**53], 2),
        ([2, 10**4200], 2),  # one more digit, and no row could say it
    ],
)
def test_the_newest_run_counts_integers_only(runs: list[object], newest: int) -> None:
    """Ruling C11."""
    assert newest_run("".join(render_row({"run": run}) for run in runs).encode()) == newest


# --- headings --------------------------------------------------------------------------------------------------------


def test_headings_tell_which_orders_were_applied() -> None:
    """W-17, ruling D3."""
    text = "## Discovered — s/a (2026-01-01)\r\n + x\n ## Discovered — s/b (2026-01-01)\nx ## Discovered — s/c (x)\n"
    assert discovered_orders(text) == {"s/a"}
    text = "\n## Execution Log — 2026-01-01 (s/a)\r\n- x\n## Execution Log — s/b\n    ## Execution Log — d (s/c)\n"
    assert logged_orders(text) == {"s/a"}


@pytest.mark.parametrize(
    "line", ["(" * 1_000_000, "x" * 1_000_000, ") " * 500_000, "(" + " " * 1_000_000, "(a)" * 300_000 + "x"]
)
def test_a_megabyte_of_heading_is_read_in_linear_time(line: str) -> None:
    assert logged_orders(f"## Execution Log — {line}x") == frozenset()
    assert discovered_orders(f"## Discovered — {line}x") == frozenset()
