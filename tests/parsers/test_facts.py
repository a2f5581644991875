"""Envelope files as facts: shape, place and payload rights of an order; bytes and shape of a result. Source: rulings C1, C11, L1, L2."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.facts import ERRORS_SHOWN, ReadOrder, read_order, read_result
from parsers.faults import CODES

DATA = Path(__file__).parent.parent / "data" / "envelopes"
ORDER: dict[str, Any] = json.loads((DATA / "order.json").read_bytes())
RESULT: dict[str, Any] = json.loads((DATA / "result.json").read_bytes())
ORDER_PATH = ".shapeup/mail/orders/outbox-r1-a2.json"
RESULT_PATH = ".shapeup/mail/results/outbox-r1-a2.json"


def order(path: str = ORDER_PATH, **change: object) -> ReadOrder:
    return read_order(path, json.dumps(ORDER | change).encode())


def test_an_order_is_a_fact_with_the_hash_of_its_bytes() -> None:
    data = (DATA / "order.json").read_bytes()
    read = read_order(ORDER_PATH, data)
    assert read.fact is not None
    assert (read.fact.path, read.fact.stem, read.fact.sha256) == (
        ORDER_PATH,
        "outbox-r1-a2",
        hashlib.sha256(data).hexdigest(),
    )
    assert (read.faults, read.claimed) == ((), "mail/outbox-r1-a2")


def test_an_order_in_another_features_folder_is_refused() -> None:
    """Ruling C11."""
    read = order(ORDER_PATH.replace("mail", "cart"))
    assert (read.fact, [fault.code for fault in read.faults]) == (None, ["E-SLUG"])
    assert read.claimed == "mail/outbox-r1-a2"


def test_an_order_under_another_name_is_refused() -> None:
    """Ruling L2."""
    read = order(ORDER_PATH.replace("a2", "a3"))
    assert [fault.code for fault in read.faults] == ["E-STEM"]
    assert read.faults[0].fix.startswith("rename the file to outbox-r1-a2.json")


def test_an_order_id_too_long_for_a_file_name_is_refused() -> None:
    stem = "x" * 240
    read = order(f".shapeup/mail/orders/{stem}.json", order_id=f"mail/{stem}")
    assert [fault.code for fault in read.faults] == ["E-ID"]


@pytest.mark.parametrize("order_id", ["mail/../x", "Mail/x", "mail/x y", "mail", "/x", "mail/x\n"])
def test_an_order_id_outside_the_alphabet_is_refused(order_id: str) -> None:
    read = order(order_id=order_id)
    assert [fault.code for fault in read.faults] == ["E-SCHEMA"]


def test_an_order_that_cannot_be_read_still_says_which_one_it_claims_to_be() -> None:
    assert order(worker="nobody").claimed == "mail/outbox-r1-a2"
    assert order(order_id=7).claimed is None
    assert read_order(ORDER_PATH, b"{").claimed is None


def test_a_result_is_a_fact_with_the_json_behind_it() -> None:
    """Field rights tell an empty field from an absent one (W-06)."""
    data = json.dumps(RESULT | {"discoveries": []}).encode()
    read = read_result(RESULT_PATH, data)
    assert read.fact is not None
    assert (read.fact.stem, read.fact.sha256) == ("outbox-r1-a2", hashlib.sha256(data).hexdigest())
    assert read.fact.value["discoveries"] == []


def test_a_synthetic_marker_answers_nothing() -> None:
    """W-01."""
    marker = {"synthetic": True, "status": "abandoned", "order_id": "outbox-r1-a2", "reason": "x", "resolved_at": "t"}
    assert read_result(RESULT_PATH, json.dumps(marker).encode()) == (None, (), True)
    assert not read_result(RESULT_PATH, json.dumps(marker | {"synthetic": "true"}).encode()).is_abandoned


def test_a_byte_order_mark_is_refused_with_its_own_code() -> None:
    """Ruling L1."""
    for data in (b"\xef\xbb\xbf{}", '{"a":1}'.encode("utf-16"), '{"a":1}'.encode("utf-16-le")):
        (fault,) = read_result(RESULT_PATH, data).faults
        assert (fault.code, fault.fix) == ("E-ENCODING", "save the file as UTF-8 without BOM")


def test_at_most_twenty_faults_are_told() -> None:
    read = read_result(RESULT_PATH, json.dumps(RESULT | {"artifacts": [1] * 1000}).encode())
    assert len(read.faults) == ERRORS_SHOWN
    assert read.faults[0].where == f"{RESULT_PATH}:$.artifacts[0]"


@pytest.mark.parametrize(
    ("change", "at", "fix"),
    [
        ({"order_id": None}, "$.order_id", "make it a string"),
        ({"artifacts": 7}, "$.artifacts", "make it an array"),
        ({"status": "success"}, "$.status", "use one of done, partial, escalated, failed"),
        ({"status": "a not in enum [x]"}, "$.status", "use one of done, partial, escalated, failed"),
    ],
)
def test_the_fix_of_a_wrong_shape_says_what_to_write(change: dict[str, Any], at: str, fix: str) -> None:
    faults = read_result(RESULT_PATH, json.dumps(RESULT | change).encode()).faults
    assert [(fault.where, fault.fix) for fault in faults] == [(f"{RESULT_PATH}:{at}", fix)]


def test_a_missing_field_is_to_be_added_and_a_pattern_to_be_matched() -> None:
    lacking = {key: value for key, value in RESULT.items() if key != "status"}
    (fault,) = read_result(RESULT_PATH, json.dumps(lacking).encode()).faults
    assert fault.fix == f'add "status"; see `shapeupd validate {RESULT_PATH}`'
    (fault,) = order(order_id="Mail does not match pattern x").faults
    assert fault.fix.startswith("match the pattern ^")
    assert fault.why == "a malformed envelope changes nothing"


@given(st.binary(max_size=60) | st.text(st.sampled_from('{}[]":,1a\\u0eE.- ntrf'), max_size=40).map(str.encode))
def test_any_bytes_are_a_fact_or_a_fault_with_a_listed_code(data: bytes) -> None:
    for read in (read_order(ORDER_PATH, data), read_result(RESULT_PATH, data)):
        assert read.fact is None
        assert read.faults
        assert all(fault.code in CODES for fault in read.faults)
