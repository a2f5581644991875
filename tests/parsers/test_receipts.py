"""Receipts: whose run it is, and whether an order's worker was dispatched. Source: protocol §2.1 "Reading", §2.10."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.faults import CODES
from parsers.receipts import Attestation, RunConfig, attest, parse_dispatches, parse_receipt, run_id_of

RUN = "cart-20260301T101500Z-5f21f646"
INTAKE = "4736bc313525a831796b50cd96372e4144ff3f53466f535349e476230e730c17"


def ledger(*rows: dict[str, object], tail: bytes = b"") -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows) + tail


def row(**more: object) -> dict[str, object]:
    return {"at": "2026-03-01T10:00:00.000Z", "order_id": "s/a", "run_id": RUN, "skill_invoked": "coach"} | more


def why(data: bytes, compiled_at: str | None = "2026-03-01T09:00:00.000Z") -> str | None:
    return attest(parse_dispatches(data), "s/a", "coach", compiled_at).why_not


def test_a_receipts_own_run_id_is_taken_when_it_has_the_pattern() -> None:
    assert run_id_of({"run_id": RUN, "slug": "x", "started_at": "2026-03-01T10:15:00.000Z"}) == RUN


@pytest.mark.parametrize("own", [None, 7, "", "cart", RUN.upper(), RUN + "\n"])
def test_another_one_is_minted_anew(own: object) -> None:
    receipt = {"run_id": own, "slug": "cart", "started_at": "2026-03-01T10:15:00.000Z", "intake_sha256": INTAKE}
    assert run_id_of(receipt) == RUN


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"\xef\xbb\xbf{}", b"{}", b'{"slug":"a"}', b'{"slug":"_","started_at":"x"}']
)
def test_an_unreadable_receipt_has_no_run_id_and_is_no_error(data: bytes) -> None:
    assert parse_receipt(data, "receipt.json").run_id is None


def test_the_last_row_that_fits_attests() -> None:
    rows = [row(), row(at="2026-03-01T11:00:00.000Z"), row(at="2026-03-01T12:00:00.000Z", skill_invoked="orient")]
    data = ledger(*rows, tail=b'garbage\n\n[1]\n{"at": "tor')
    found = attest(parse_dispatches(data), "s/a", "coach", "2026-03-01T09:00:00.000Z")
    assert found == Attestation("2026-03-01T11:00:00.000Z", None)
    assert parse_dispatches(data).run_ids == {RUN}


def test_all_three_must_hold_on_one_row() -> None:
    rows = [row(skill_invoked="orient"), row(order_id="s/b"), row(at="2026-03-01T08:00:00.000Z")]
    assert why(ledger(*rows)) is not None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no dispatch receipts"),
        (ledger(row(order_id="s/b")), "no dispatch receipt names s/a"),
        (ledger(row(skill_invoked="orient"), row(skill_invoked=None)), "the receipts name nothing, orient"),
        (ledger(row(at="2026-03-01T08:59:59.999Z")), "older than the order"),
        (ledger(row(at="once")), "older than the order"),
    ],
)
def test_the_reason_names_what_is_missing(data: bytes, reason: str) -> None:
    assert reason in str(why(data))


def test_an_equal_time_passes_and_a_time_that_does_not_parse_is_skipped() -> None:
    assert why(ledger(row()), "2026-03-01T10:00:00.000Z") is None
    assert why(ledger(row(at="once")), "soon") is None
    assert why(ledger(row(at=None)), None) is None


def test_a_dispatch_that_failed_still_attests() -> None:
    """`dispatch_ok` is not consulted."""
    assert why(ledger(row(dispatch_ok=False))) is None


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["at", "order_id", "run_id", "skill_invoked"]), st.none() | st.integers() | st.text()
        )
    )
)
def test_no_row_makes_it_raise(rows: list[dict[str, object]]) -> None:
    read = parse_dispatches(ledger(*rows))
    attest(read, "s/a", "coach", "2026-03-01T10:00:00.000Z")
    assert sum(map(len, read.by_order.values())) == len(rows)


def test_a_hundred_thousand_receipts_of_one_order_are_read_in_linear_time() -> None:
    assert len(parse_dispatches(ledger(row()) * 100_000).by_order["s/a"]) == 100_000


def receipt(**config: object) -> bytes:
    value = {"slug": "cart", "run_id": RUN, "started_at": "2026-03-01T10:15:00.000Z", "config": config}
    return json.dumps(value).encode()


def test_what_the_breakers_read_of_a_receipt() -> None:
    data = receipt(
        wall_clock_budget_s=3600,
        max_rounds=2,
        attempt_budget=4,
        no_progress_k=0,
        auto_level="unattended",
        spec_folder="shapeup/cart/spec/",
        tiny_lane=True,
    )
    read = parse_receipt(data, "receipt.json")
    assert read.config == RunConfig(3600, 2, 4, 0, "unattended", "shapeup/cart/spec/", True)
    assert (read.run_id, read.slug, read.started_at) == (RUN, "cart", "2026-03-01T10:15:00.000Z")
    assert read.start == datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
    assert read.faults == ()


def test_what_a_config_does_not_say_has_its_default() -> None:
    assert parse_receipt(receipt(), "receipt.json").config == RunConfig(None, 3, 5)
    bare = parse_receipt(b'{"started_at":"2026-03-01T10:15:00.000Z"}', "receipt.json")
    assert (bare.config, bare.faults) == (RunConfig(), ())


@pytest.mark.parametrize("budget", [None, 0, 0.0])
def test_no_budget_switches_the_deadline_off_without_a_word(budget: object) -> None:
    read = parse_receipt(receipt(wall_clock_budget_s=budget), "receipt.json")
    assert (read.config.budget_s, read.faults) == (None, ())


@pytest.mark.parametrize("budget", [-1, -0.5, "90m", "3600", True, [], 1e12, 2**70, 1e-9, {"s": 1}])
def test_a_budget_that_cannot_be_meant_is_a_finding_and_never_a_trip(budget: object) -> None:
    data = json.dumps({"started_at": "2026-03-01T10:15:00.000Z", "config": {"wall_clock_budget_s": budget}})
    read = parse_receipt(data.encode(), "receipt.json")
    assert read.config.budget_s is None
    if budget != 2**70:  # no 64-bit number: then the whole receipt cannot be read
        assert [fault.where for fault in read.faults] == ["receipt.json:$.config.wall_clock_budget_s"]
    assert read.faults


@pytest.mark.parametrize(("key", "default"), [("max_rounds", 3), ("attempt_budget", 5)])
@pytest.mark.parametrize("value", [0, -1, "2", True, 1.5, []])
def test_a_count_that_is_none_is_a_finding_and_the_default_holds(key: str, default: int, value: object) -> None:
    read = parse_receipt(receipt(**{key: value}), "receipt.json")
    assert getattr(read.config, key) == default
    assert [fault.where for fault in read.faults] == [f"receipt.json:$.config.{key}"]


@pytest.mark.parametrize("started_at", [None, "", "soon", 7, "2026-13-01T00:00:00Z"])
def test_a_receipt_without_a_start_says_so(started_at: object) -> None:
    data = json.dumps({"slug": "cart", "started_at": started_at, "config": {"wall_clock_budget_s": 60}})
    read = parse_receipt(data.encode(), "receipt.json")
    assert read.start is None
    assert [fault.where for fault in read.faults] == ["receipt.json:$.started_at"]
    assert all(fault.code in CODES for fault in read.faults)


@given(st.recursive(st.none() | st.floats() | st.integers() | st.text(max_size=9), lambda x: st.lists(x, max_size=2)))
def test_no_config_makes_it_raise(value: object) -> None:
    for key in ("wall_clock_budget_s", "max_rounds", "attempt_budget", "no_progress_k", "auto_level", "tiny_lane"):
        read = parse_receipt(receipt(**{key: value}), "receipt.json")
        assert read.config.max_rounds >= 1
        assert read.config.budget_s is None or read.config.budget_s > 0
    parse_receipt(json.dumps({"config": value}).encode(), "receipt.json")
