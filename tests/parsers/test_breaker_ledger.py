"""breakers.jsonl and gate-h.jsonl: what is written is read back, and each thing is one. Source: rulings J, F3, F8."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.breaker_ledger import (
    BREAKERS,
    Extension,
    Proposal,
    Trip,
    extension_row,
    parse_breakers,
    parse_proposals,
    proposal_row,
    trip_row,
)
from parsers.ledgers import render_row

RUN = "cart-20260301T090000Z-0a1b2c3d"
AT = "2026-03-01T10:00:00.000Z"
TRIP = Trip(RUN, "deadline", "trip", None, 2, 3600.25, 3600, "deadline", "the time is used", "go to GATE H")
PROPOSAL = Proposal(RUN, "inner", "core", 2, None, "stagnant", ("cart",), ("cart/core-r2-a2",), "o.json", AT)


def lines(*rows: dict[str, Any]) -> bytes:
    return "".join(map(render_row, rows)).encode()


def test_a_trip_is_read_back_and_its_row_has_the_keys_of_rulings_j() -> None:
    row = trip_row(TRIP, AT)
    assert parse_breakers(lines(row)).trips == (TRIP,)
    told = "at run_id breaker status scope_id round elapsed_s budget_s reason action cause".split()
    assert list(row) == told


def test_an_extension_is_a_row_of_the_same_ledger_and_no_trip() -> None:
    grant = Extension(AT, RUN, "ada", 1800)
    ledger = parse_breakers(lines(trip_row(TRIP, AT), extension_row(grant, 3700, 5400)))
    assert (ledger.trips, ledger.extensions) == ((TRIP,), (grant,))


@pytest.mark.parametrize(
    "more",
    [{"added_s": 0}, {"added_s": -60}, {"added_s": "1h"}, {"added_s": True}, {"by": ""}, {"by": None}, {"at": 1}],
)
def test_an_extension_without_an_amount_a_time_and_a_name_grants_nothing(more: dict[str, Any]) -> None:
    row = extension_row(Extension(AT, RUN, "ada", 1800), 3700, 5400)
    assert parse_breakers(lines(row | more)).extensions == ()


def test_a_row_that_stands_twice_counts_once() -> None:
    grant = extension_row(Extension(AT, RUN, "ada", 1800), 3700, 5400)
    ledger = parse_breakers(lines(grant, trip_row(TRIP, AT), grant, trip_row(TRIP, AT)))
    assert (len(ledger.trips), len(ledger.extensions)) == (1, 1)
    assert parse_proposals(lines(proposal_row(PROPOSAL), proposal_row(PROPOSAL))) == (PROPOSAL,)


def test_a_proposal_is_read_back_and_names_its_trip() -> None:
    row = proposal_row(PROPOSAL)
    assert parse_proposals(lines(row)) == (PROPOSAL,)
    told = "at run_id breaker scope_id round reason green_scopes open_orders order_path budget_s done_orders".split()
    assert list(row) == told
    assert PROPOSAL.identity == Trip(RUN, "inner", "trip", "core", 2).identity


@pytest.mark.parametrize(
    ("left", "right", "is_one"),
    [
        (TRIP, TRIP._replace(round=3, elapsed_s=9999), True),  # a deadline is known by its budget
        (TRIP, TRIP._replace(budget_s=3600.0), True),
        (TRIP, TRIP._replace(budget_s=5400), False),
        (TRIP, TRIP._replace(status="warn"), False),
        (TRIP, TRIP._replace(run_id="other"), False),
        (Trip(RUN, "outer", "trip", None, 2), Trip(RUN, "outer", "trip", None, 3), False),
        (Trip(RUN, "inner", "trip", "Core", 2), Trip(RUN, "inner", "trip", "core", 2), True),
        (Trip(RUN, "inner", "trip", "core", 2), Trip(RUN, "inner", "trip", None, 2), False),
    ],
)
def test_what_makes_a_trip_one(left: Trip, right: Trip, is_one: bool) -> None:
    assert (left.identity == right.identity) is is_one


KEYS = st.sampled_from([*trip_row(TRIP, AT), "added_s", "by", "green_scopes", "open_orders", "order_path"])
VALUES = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4) | st.lists(st.text(max_size=3))


@given(st.dictionaries(KEYS, VALUES | st.sampled_from([*BREAKERS, "trip", "warn", "extend"])))
def test_no_row_makes_it_raise(row: dict[str, Any]) -> None:
    data = json.dumps(row).encode()
    for trip in parse_breakers(data).trips:
        assert trip.identity
    for proposal in parse_proposals(data):
        assert proposal.identity


def test_a_number_of_a_thousand_digits_is_none() -> None:
    assert parse_breakers(b'{"breaker":"deadline","status":"trip","budget_s":1' + b"0" * 1000 + b"}").trips == (
        Trip(None, "deadline", "trip"),
    )
