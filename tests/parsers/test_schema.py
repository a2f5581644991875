"""The validator subset, on small models of its own. Source: protocol §2.15, §12.4."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.js_text import js_json, js_number
from parsers.schema import Many, Matches, Maybe, One, Record, Unlisted, Whole, node_of, shape_errors, typed


class Leaf(Record):
    name: str


class Sample(Record):
    version: One
    count: Whole
    kind: Annotated[Literal["a", "b", "late"], Unlisted("late")]
    note: Maybe[str] = None
    link: str | None = None
    line: Whole | None = None
    code: Maybe[Annotated[str, Matches("^x[0-9]+$")]] = None
    leaves: Many[Leaf] = ()
    either: Many[str | Leaf] = ()
    anything: Any = None
    table: Maybe[dict[str, Any]] = None
    rate: float | None = None


GOOD: dict[str, Any] = {"version": 1, "count": 2, "kind": "a"}


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({}, ()),
        ({"version": 1.0, "count": 2e0, "line": 3.0}, ()),
        ({"kind": "late"}, ()),
        ({"kind": "c"}, ('$.kind: value "c" not in enum [a, b]',)),
        ({"count": True}, ("$.count: expected integer, got boolean",)),
        ({"count": 2.5}, ("$.count: expected integer, got number",)),
        ({"count": float("inf")}, ("$.count: expected integer, got number",)),
        ({"note": None}, ("$.note: expected string, got null",)),
        ({"link": None, "line": None, "anything": None}, ()),
        ({"line": "1"}, ("$.line: expected integer|null, got string",)),
        ({"rate": 1}, ()),
        ({"rate": "1"}, ("$.rate: expected number|null, got string",)),
        ({"code": "x1\n"}, ('$.code: "x1\n" does not match pattern ^x[0-9]+$',)),
        ({"code": "x٣"}, ('$.code: "x٣" does not match pattern ^x[0-9]+$',)),
        ({"code": "x12"}, ()),
        ({"leaves": [{"name": 1}, {}, "s"]}, (
            "$.leaves[0].name: expected string, got integer",
            '$.leaves[1]: missing required field "name"',
            "$.leaves[2]: expected object, got string",
        )),
        ({"either": ["s", {"name": "n"}, {"nome": 1.0}, None]}, (
            '$.either[2]: {"nome":1} matches none of the 2 allowed shapes (anyOf)',
            "$.either[3]: null matches none of the 2 allowed shapes (anyOf)",
        )),
        ({"table": []}, ("$.table: expected object, got array",)),
        ({"unknown": {"deep": [1]}}, ()),
    ],
)  # fmt: skip
def test_each_kind_of_error_has_its_text(change: dict[str, Any], errors: tuple[str, ...]) -> None:
    value = {**GOOD, **change}
    assert shape_errors(Sample, value) == errors
    if not errors:
        typed(Sample, value)


def test_required_names_come_first_then_properties_as_declared() -> None:
    assert shape_errors(Sample, {"leaves": 1, "note": 2, "kind": "a"}) == (
        '$: missing required field "version"',
        '$: missing required field "count"',
        "$.note: expected string, got integer",
        "$.leaves: expected array, got integer",
    )


def test_a_type_error_stops_its_node() -> None:
    assert shape_errors(Sample, []) == ("$: expected object, got array",)


def test_a_limit_cuts_the_list_of_errors() -> None:
    value = {**GOOD, "leaves": [1] * 1000}
    assert len(shape_errors(Sample, value)) == 1000
    assert shape_errors(Sample, value, limit=2) == shape_errors(Sample, value)[:2]


def test_pydantic_types_what_passed() -> None:
    sample = typed(Sample, {**GOOD, "count": 2.0, "leaves": [{"name": "n", "more": 1}], "either": ["s", {"name": "m"}]})
    assert sample.count == 2
    assert type(sample.count) is int
    assert sample.leaves == (Leaf(name="n"),)
    assert sample.either == ("s", Leaf(name="m"))
    assert sample.note is None


def test_nodes_are_derived_once() -> None:
    assert node_of(Sample) is node_of(Sample)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"), (-0.0, "0"), (7, "7"), (-7.0, "-7"), (0.1, "0.1"), (-1.5, "-1.5"), (100.0, "100"), (1234.5, "1234.5"),
        (1e20, "100000000000000000000"), (1e21, "1e+21"), (1.5e21, "1.5e+21"), (123456789012345680000.0, "123456789012345680000"),
        (1e-6, "0.000001"), (1e-7, "1e-7"), (1.25e-7, "1.25e-7"), (0.00012, "0.00012"), (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"), (2**53, "9007199254740992"), (2**53 + 1, "9007199254740992"),
        (123456789012345678901234567890, "1.2345678901234568e+29"), (10**400, "null"), (float("inf"), "null"), (float("nan"), "null"),
    ],
)  # fmt: skip
def test_numbers_are_printed_as_javascript_prints_them(number: float, text: str) -> None:
    assert js_number(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_reads_back(number: float) -> None:
    assert float(js_number(number)) == number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, None, True], "a": {}}, '{"b":[1,null,true],"a":{}}'),
        ({"b": 1, "2": 1, "10": 1, "01": 1, "-1": 1}, '{"2":1,"10":1,"b":1,"01":1,"-1":1}'),
        ("é\u2028\x7f\n\x01", '"é\u2028\x7f\\n\\u0001"'),
        ("a\ud83d", '"a\\ud83d"'),
        ("😀", '"😀"'),
    ],
)
def test_json_is_printed_as_javascript_prints_it(value: object, text: str) -> None:
    assert js_json(value) == text


def test_a_value_deeper_than_the_stack_is_told_briefly() -> None:
    deep: object = 1
    for _ in range(sys.getrecursionlimit() * 2):
        deep = [deep]
    assert js_json(deep) == "…"
