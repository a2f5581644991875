"""Ledger rows as the protocol words them. Source: protocol §2.11, §4.6-4.7, rulings J, C11."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from parsers.facts import read_order
from parsers.faults import Fault
from parsers.layout import path_of
from parsers.ledgers import parse_ingest_rows, parse_rows
from reducers.records import ingest_row, leg_row
from reducers.run import Judgement, Summary
from tests.reducers.run_in_memory import RUN_ID, SLUG, START, RunInMemory, order_file, receipt_file, result_file

RESULT_PATH = path_of("result", SLUG, "a-r1-a1")
REFUSAL = Fault("E-SCHEMA", f"{RESULT_PATH}:$.status", "what", "why", "fix")


def leg(stem: str, dispatched_at: str | None = None, **more: object) -> dict[str, object]:
    fact = read_order(*order_file(stem, **more)).fact  # type: ignore[arg-type]
    assert fact is not None
    change = leg_row(RunInMemory(dict([receipt_file()])).run(), fact, dispatched_at, START)
    assert (change.path, change.header, change.text[-1]) == (path_of("legs", SLUG), "", "\n")
    (row,) = parse_rows(change.text.encode())
    return row


@pytest.mark.parametrize(
    ("stem", "address"),
    [
        ("core-r1-a2", ("core", 1, 2)),
        ("r1-a2", (None, 1, 2)),
        ("evaluate-r3", ("evaluate", 3, None)),
        ("orient", ("orient", None, None)),
    ],
)
def test_a_leg_says_where_its_order_stands(stem: str, address: tuple[object, ...]) -> None:
    row = leg(stem)
    assert (row["scope_id"], row["round"], row["attempt"]) == address


@pytest.mark.parametrize(
    ("more", "dispatched_at", "started_from", "duration_ms"),
    [
        ({}, "2026-04-05T11:59:59.750Z", "dispatch-receipt", 250),
        ({}, None, "compiled_at", 7_200_000),
        ({"compiled_at": "soon"}, None, "compiled_at", None),
        ({}, "2026-04-05T12:00:01.000Z", "dispatch-receipt", -1000),
    ],
)
def test_a_legs_duration_counts_from_its_start(
    more: dict[str, object], dispatched_at: str | None, started_from: str, duration_ms: int | None
) -> None:
    row = leg("a-r1-a1", dispatched_at, **more)
    assert (row["started_from"], row["duration_ms"], row["attested"]) == (
        started_from,
        duration_ms,
        dispatched_at is not None,
    )


def test_a_leg_of_an_order_without_a_run_takes_the_receipts() -> None:
    assert leg("a-r1-a1")["run_id"] == RUN_ID
    fact = read_order(*order_file("a-r1-a1")).fact
    assert fact is not None
    bare = fact._replace(order=fact.order.model_copy(update={"run_id": None, "compiled_at": None}))
    (row,) = parse_rows(leg_row(RunInMemory(dict([receipt_file()])).run(), bare, None, START).text.encode())
    assert (row["run_id"], row["started_from"], row["duration_ms"]) == (RUN_ID, None, None)


def test_an_ingest_row_has_the_keys_of_rulings_j() -> None:
    judged = Judgement("applied", "mail/a-r1-a1", RUN_ID, summary=Summary(misses=("x",)))
    (row,) = parse_rows(ingest_row(judged, RESULT_PATH, "ff", None, "PASS", START).text.encode())
    assert row == {
        "at": "2026-04-05T12:00:00.000Z",
        "run_id": RUN_ID,
        "order_id": "mail/a-r1-a1",
        "order_sha256": None,
        "result": RESULT_PATH,
        "sha256": "ff",
        "outcome": "applied",
        "misses": ["x"],
        "verdict": "PASS",
    }


def test_a_refusal_is_recorded_with_its_code_and_errors() -> None:
    judged = Judgement("rejected", "mail/a-r1-a1", None, faults=(REFUSAL,))
    data = ingest_row(judged, RESULT_PATH, "ff", None, None, START).text.encode()
    (row,) = parse_rows(data)
    assert row["code"] == "E-SCHEMA"
    assert row["errors"] == [{"where": REFUSAL.where, "what": "what", "why": "why", "fix": "fix"}]
    assert [read.code for read in parse_ingest_rows(data)] == ["E-SCHEMA"]


def test_dates_and_times_are_utc_whatever_zone_the_clock_has() -> None:
    run = RunInMemory(dict([receipt_file()]))
    run.now = START.replace(hour=23).astimezone(timezone(timedelta(hours=9)))
    run.land(*order_file("hunt", "qa-edge-hunter"))
    run.land(*result_file("hunt", discoveries=[{"marker": "~", "line": "x"}]))
    assert "(2026-04-05)" in run.text(path_of("discovery-ledger", SLUG))
    assert run.rows("legs")[0]["ingested_at"] == "2026-04-05T23:00:01.000Z"


@pytest.mark.parametrize(
    "line", [b'{"run": "7"}', b'{"run": true}', b'{"run": 1e3}', b"{", b'{"run": ' + b"9" * 4300 + b"}"]
)
def test_a_verdict_ledger_that_was_scribbled_on_starts_at_one(line: bytes) -> None:
    """Ruling C11: integers only count."""
    path = path_of("verdict-ledger", SLUG, "evaluate-r1")
    run = RunInMemory({path: line + b"\n", **dict([receipt_file(), order_file("evaluate-r1", "spec-evaluator")])})
    run.land(*result_file("evaluate-r1", verdict={"criteria": [{"criterion": "c", "verdict": "PASS"}]}))
    assert [row["run"] for row in parse_rows(run.tree.files[path]) if "criterion" in row] == [1]
