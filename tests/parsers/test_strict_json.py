"""Hostile JSON: each input one stable code, and the next good one parses. Source: targets 26 and hazards E, rulings C1, L1."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.faults import CODES
from parsers.strict_json import MAX_BYTES, MAX_CONTAINERS, MAX_DEPTH, parse_lenient, parse_strict

GOOD = '{"schema_version":1,"order_id":"mail/orient","text":"ä 😀 \\ud83d\\ude00","n":[-9223372036854775808,1.5,2e3]}'.encode()


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]", inside: bytes = b"1") -> bytes:
    return opening * depth + inside + closing * depth


def filled(unit: bytes) -> bytes:
    """An array of about 1 MiB that repeats the unit."""
    return b"[" + unit * ((MAX_BYTES - 4) // len(unit)) + b"0]"


HOSTILE = {
    # size
    "one byte over 1 MiB": (b'"' + b"a" * (MAX_BYTES - 1) + b'"', "E-TOO-LARGE"),
    "2 MiB of zero bytes": (bytes(2 * MAX_BYTES), "E-TOO-LARGE"),
    "a megabyte of empty arrays": (filled(b"[],"), "E-TOO-LARGE"),
    "a megabyte of empty objects": (filled(b"{},"), "E-TOO-LARGE"),
    "one container too many": (b"[" + b"[]," * (MAX_CONTAINERS - 1) + b"[]]", "E-TOO-LARGE"),
    # encoding
    "UTF-8 with a BOM": (b"\xef\xbb\xbf" + GOOD, "E-ENCODING"),
    "UTF-16 little endian with BOM": ("\ufeff{}".encode("utf-16-le"), "E-ENCODING"),
    "UTF-16 big endian with BOM": ("\ufeff{}".encode("utf-16-be"), "E-ENCODING"),
    "UTF-16 little endian without BOM": ('{"a":1}'.encode("utf-16-le"), "E-ENCODING"),
    "UTF-16 big endian without BOM": ('{"a":1}'.encode("utf-16-be"), "E-ENCODING"),
    "UTF-32": ('{"a":1}'.encode("utf-32-be"), "E-ENCODING"),
    "Latin-1": ('{"a":"é"}'.encode("latin-1"), "E-ENCODING"),
    "an overlong slash": (b'{"a":"\xc0\xaf"}', "E-ENCODING"),
    "a surrogate in UTF-8": (b'{"a":"\xed\xa0\x80"}', "E-ENCODING"),
    "a character cut in half": (b'{"a":"\xf0\x9f\x98', "E-ENCODING"),
    "a file of zero bytes": (bytes(64), "E-ENCODING"),
    # JSON
    "an empty file": (b"", "E-JSON"),
    "blanks only": (b" \n\t", "E-JSON"),
    "a truncated object": (b'{"a":1', "E-JSON"),
    "a truncated string": (b'{"a":"b', "E-JSON"),
    "a truncated escape": (b'"\\u12"', "E-JSON"),
    "a trailing comma": (b'{"a":1,}', "E-JSON"),
    "a comment": (b'{"a":1 /* no */}', "E-JSON"),
    "single quotes": (b"{'a':1}", "E-JSON"),
    "two documents": (b"{}{}", "E-JSON"),
    "a raw newline in a string": (b'"a\nb"', "E-JSON"),
    "a raw NUL in a string": (b'{"a":"\x00"}', "E-JSON"),
    "a leading zero": (b"[01]", "E-JSON"),
    "a bare decimal point": (b"[1.]", "E-JSON"),
    "a hexadecimal number": (b"[0x1]", "E-JSON"),
    "undefined": (b'{"a":undefined}', "E-JSON"),
    "a number key": (b"{1:2}", "E-JSON"),
    "a duplicate key before the text ends early": (b'{"a":1,"a":2', "E-JSON"),
    "closing brackets only": (b"]" * 200, "E-JSON"),
    "a non-breaking space": ("{\u00a0}".encode(), "E-JSON"),
    # depth
    "65 arrays": (nested(MAX_DEPTH + 1), "E-DEPTH"),
    "65 objects": (nested(MAX_DEPTH + 1, b'{"a":', b"}"), "E-DEPTH"),
    "65 levels behind a string of closing brackets": (b'["]]]]]]",' + nested(MAX_DEPTH) + b"]", "E-DEPTH"),
    "65 levels behind an escaped quote": (b'["\\"]]]]",' + nested(MAX_DEPTH) + b"]", "E-DEPTH"),
    "100,000 arrays": (nested(100_000), "E-DEPTH"),
    "a megabyte of opening brackets": (b"[" * MAX_BYTES, "E-DEPTH"),
    "a megabyte of opening objects": (b'{"a":' * (MAX_BYTES // 5), "E-DEPTH"),
    # duplicate keys
    "a key twice": (b'{"status":"done","status":"failed"}', "E-DUPLICATE-KEY"),
    "a key twice, once escaped": (b'{"a":1,"\\u0061":2}', "E-DUPLICATE-KEY"),
    "a key twice, deep inside": (b'{"a":[{"b":{"c":1,"c":1}}]}', "E-DUPLICATE-KEY"),
    "the empty key twice": (b'{"":1,"":2}', "E-DUPLICATE-KEY"),
    "50,000 keys, one of them twice": (
        b"{" + b",".join(b'"%d":0' % (i % 49_999) for i in range(50_000)) + b"}",
        "E-DUPLICATE-KEY",
    ),
    # numbers
    "NaN": (b'{"a":NaN}', "E-NUMBER"),
    "Infinity": (b"[Infinity]", "E-NUMBER"),
    "-Infinity": (b"[-Infinity]", "E-NUMBER"),
    "1e999": (b"[1e999]", "E-NUMBER"),
    "-1E+999": (b"[[-1E+999]]", "E-NUMBER"),
    "2^63": (b"[9223372036854775808]", "E-NUMBER"),
    "-2^63-1": (b'{"a":{"b":-9223372036854775809}}', "E-NUMBER"),
    "1e19": (b"[1e19]", "E-NUMBER"),
    "2^63 as a float": (b"[9223372036854775808.0]", "E-NUMBER"),
    "5,000 digits": (b"9" * 5_000, "E-NUMBER"),
    "a megabyte of digits": (b"9" * MAX_BYTES, "E-NUMBER"),
    "a fraction of 500,000 digits": (b"0." + b"1" * 500_000, "E-NUMBER"),
    # strings
    "a lone high surrogate": (b'"\\ud800"', "E-SURROGATE"),
    "a lone low surrogate": (b'{"a":"\\uDC00 tail"}', "E-SURROGATE"),
    "two halves in the wrong order": (b'["\\ude00\\ud83d"]', "E-SURROGATE"),
    "a lone surrogate as a key": (b'{"\\ud800":1}', "E-SURROGATE"),
    "a lone surrogate behind a pair": (b'"\\ud83d\\ude00\\ud83d"', "E-SURROGATE"),
    "an escaped NUL": (b'{"path":"a\\u0000b"}', "E-NUL"),
    "an escaped NUL behind an escaped backslash": (b'"\\\\\\u0000"', "E-NUL"),
    "an escaped NUL in a key": (b'{"\\u0000":1}', "E-NUL"),
}


@pytest.mark.parametrize(("data", "code"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_input_has_one_code_and_the_next_good_input_parses(data: bytes, code: str) -> None:
    parsed = parse_strict(data, "results/a.json")
    assert parsed.fault is not None
    assert parsed.fault.code == code
    assert code in CODES
    assert parsed.value is None
    assert parsed.fault.where.startswith("results/a.json")
    assert all(parsed.fault)
    assert len("".join(parsed.fault)) < 600
    good = parse_strict(GOOD, "results/a.json")
    assert good.fault is None
    assert good.value == json.loads(GOOD)


@pytest.mark.parametrize(("data", "code"), HOSTILE.values(), ids=HOSTILE.keys())
def test_the_lenient_reader_never_raises(data: bytes, code: str) -> None:
    parsed = parse_lenient(data, "a.json")
    assert parsed.fault is None or parsed.fault.code in {"E-JSON", "E-DEPTH"}


@pytest.mark.parametrize(
    ("data", "value"),
    [
        pytest.param(nested(MAX_DEPTH), None, id="64 levels"),
        pytest.param(b'["' + b"[" * 500 + b'"' + b",[]" * 70 + b"]", None, id="brackets in a string"),
        pytest.param(b'["\\\\",' + b"[]," * 70 + b'"]"]', None, id="a string that ends in a backslash"),
        pytest.param(b'"\\\\u0000"', "\\u0000", id="an escaped backslash before u0000"),
        pytest.param(b'"\\\\ud800"', "\\ud800", id="an escaped backslash before ud800"),
        pytest.param(
            b"[9223372036854775807,-9223372036854775808]", [2**63 - 1, -(2**63)], id="the last 64-bit integers"
        ),
        pytest.param(b'["99999999999999999999","1e999","NaN"]', ["9" * 20, "1e999", "NaN"], id="numbers in strings"),
        pytest.param(b'{"a":{"x":1},"b":{"x":1}}', {"a": {"x": 1}, "b": {"x": 1}}, id="one key in two objects"),
        pytest.param(b'\r\n{"a":1e0}\r\n', {"a": 1.0}, id="CRLF"),
        pytest.param(b'"' + b"7" * 5000 + b'"', "7" * 5000, id="5,000 digits in a string"),
    ],
)
def test_what_only_looks_hostile_parses(data: bytes, value: object) -> None:
    parsed = parse_strict(data, "a.json")
    assert parsed.fault is None
    assert parsed.value == (json.loads(data) if value is None else value)


def test_a_syntax_error_names_line_and_column() -> None:
    fault = parse_strict(b'{\n  "a": 1,\n}', "orders/x.json").fault
    assert fault is not None
    assert fault.where.startswith("orders/x.json:")
    line, column = fault.where.removeprefix("orders/x.json:").split(":")
    assert (int(line), int(column)) >= (2, 1)


def test_a_duplicate_key_is_named() -> None:
    fault = parse_strict(b'{"a":{"status":1,"b":2,"status":3}}', "x.json").fault
    assert fault is not None
    assert '"status"' in fault.what


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
        (b"[123456789012345678901234567890]", [123456789012345678901234567890.0]),
        (b"[9007199254740993]", [9007199254740993]),
        (b"[1e999]", [float("inf")]),
        (b'"\\ud800"', "\ud800"),
        (b'"\\u0000"', "\x00"),
        (b'"\xff"', "\ufffd"),
        (nested(300), json.loads(nested(300))),
        (b"9" * 5000, float("inf")),
    ],
)
def test_the_lenient_reader_accepts_what_json_parse_accepts(data: bytes, value: object) -> None:
    parsed = parse_lenient(data, "a.json")
    assert parsed.fault is None
    assert parsed.value == value


@pytest.mark.parametrize(
    "data", [b"NaN", b"[-Infinity]", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"[1,]", b"", b"'a'"]
)
def test_the_lenient_reader_refuses_what_json_parse_refuses(data: bytes) -> None:
    fault = parse_lenient(data, "a.json").fault
    assert fault is not None
    assert fault.code == "E-JSON"


def test_the_lenient_reader_survives_a_megabyte_of_depth() -> None:
    fault = parse_lenient(nested(500_000), "a.json").fault
    assert fault is not None
    assert fault.code == "E-DEPTH"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text().filter(lambda t: "\x00" not in t),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text().filter(lambda t: "\x00" not in t), inner, max_size=4)
    ),
    max_leaves=25,
)


@given(JSON_VALUES, st.booleans())
def test_any_value_within_the_limits_survives(value: object, escape: bool) -> None:
    data = json.dumps(value, ensure_ascii=escape).encode()
    assert parse_strict(data, "a.json") == (value, None)


@given(st.binary(max_size=60) | st.text(alphabet='[]{}",:\\u0dDeE19.-aNIty ', max_size=60).map(str.encode))
def test_any_bytes_yield_a_value_or_a_known_code(data: bytes) -> None:
    for parsed in (parse_strict(data, "a.json"), parse_lenient(data, "a.json")):
        assert parsed.fault is None or parsed.fault.code in CODES
