"""A registry reads as a whole or not at all. Source: protocol §2.7, §6.1, W-37."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.seesaw import FinishedScope, parse_seesaw

WHERE = "registry.json"
ROWS = st.fixed_dictionaries(
    {}, optional={"scope_id": st.text(max_size=3) | st.none(), "fixtures": st.lists(st.text(max_size=3))}
)
JSON = (
    st.none() | st.integers() | st.text() | st.lists(ROWS | st.integers() | st.lists(st.none(), max_size=2), max_size=3)
)


def test_the_scopes_stand_in_their_order() -> None:
    data = b'{"scopes": [{"scope_id": "b", "fixtures": ["x", "y"]}, {"scope_id": "a", "fixtures": []}, {"scope_id": "c"}], "more": 1}'
    assert parse_seesaw(data, WHERE).scopes == (
        FinishedScope("b", ("x", "y")),
        FinishedScope("a", ()),
        FinishedScope("c", ()),
    )


def test_an_empty_registry_is_one() -> None:
    assert parse_seesaw(b'{"scopes": []}', WHERE) == ((), None)


NO_REGISTRY = [b"", b"{", b"null", b"\xff", b'{"scope": []}']
NO_SCOPE = [
    b"1",
    b'{"scope_id": "../a", "fixtures": []}',
    b'{"scope_id": "a", "fixtures": [1]}',
    b'{"scope_id": "a", "fixtures": [""]}',
]


@pytest.mark.parametrize("data", [*NO_REGISTRY, *(b'{"scopes": [%s]}' % scope for scope in NO_SCOPE)])
def test_what_does_not_read_is_a_fault_and_no_scope(data: bytes) -> None:
    registry = parse_seesaw(data, WHERE)
    assert registry.scopes == ()
    assert registry.fault is not None
    assert registry.fault.fix


@given(JSON)
def test_any_json_is_a_registry_or_a_fault(value: object) -> None:
    registry = parse_seesaw(json.dumps({"scopes": value}).encode(), WHERE)
    assert (registry.fault is None) == (isinstance(value, list) and len(registry.scopes) == len(value))


@given(st.binary())
def test_no_bytes_raise(data: bytes) -> None:
    parse_seesaw(data, WHERE)
