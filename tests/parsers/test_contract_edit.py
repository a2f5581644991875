"""Contracts are written so that they read back, and one edit touches one place. Source: protocol §10.2-10.4, G6."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.contract_edit import render_contract, set_contract_key, set_contract_row, spell_value
from parsers.contracts import TABLE_FIELDS, parse_contract
from parsers.frontmatter import Value, parse_scalar
from parsers.markdown import decode

DATA = Path(__file__).parents[1] / "data" / "contracts"
EXAMPLES = int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "150"))
SCOPE = """---
scope_id: cart   # kept
use_cases:
  - UC-1
  - UC-2

covers: [REQ-1]
---

# Cart

Prose stays.

## Affordances

Some words first.

| test_id | role | required_states |
|:--|---|---|
|  add-btn |button| [idle] |
| qty | spin |
still the table
| last | x | [a, b] |

## Why
| test_id | role |
|---|---|
| other | z |
"""


def lines_changed(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that only one of the two has, common start and end taken off."""
    old, new = before.split("\n"), after.split("\n")
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return old, new


def edited(text: str | None) -> str:
    assert text is not None
    return text


def test_a_key_is_set_and_nothing_else_moves() -> None:
    after = edited(set_contract_key(SCOPE, "covers", ("REQ-1", "a, b")))
    assert lines_changed(SCOPE, after) == (["covers: [REQ-1]"], ['covers: [REQ-1, "a, b"]'])


def test_the_items_of_a_block_go_with_the_value_they_were() -> None:
    after = edited(set_contract_key(SCOPE, "use_cases", ("UC-3",)))
    assert lines_changed(SCOPE, after) == (["use_cases:", "  - UC-1", "  - UC-2"], ["use_cases: [UC-3]"])
    assert not parse_contract("scope-contract", after).unreadable


def test_a_new_key_stands_last() -> None:
    after = edited(set_contract_key(SCOPE, "grader_files", ("tests/x.py",)))
    assert lines_changed(SCOPE, after) == ([], ["grader_files: [tests/x.py]"])


def test_an_item_of_two_lines_makes_a_block() -> None:
    after = edited(set_contract_key(SCOPE, "covers", ("a\nb",)))
    assert lines_changed(SCOPE, after)[1] == ["covers:", '  - "a\\nb"']


@pytest.mark.parametrize("value", ["true", "12", "", "~", "null", "false"])
def test_a_text_that_always_reads_as_something_else_is_not_written(value: str) -> None:
    assert spell_value(value) is None
    assert set_contract_key(SCOPE, "covers", value) is None


@pytest.mark.parametrize(
    "value", ["[a, b]", "`a`", '"a"', "'", " a ", "a\nb", "it's", True, None, 7, (), ("it's", "[")]
)
def test_a_text_that_looks_like_something_else_is_quoted(value: Value) -> None:
    spelled = spell_value(value)
    assert spelled is not None
    assert parse_scalar(spelled) == value


def test_a_contract_without_frontmatter_takes_no_key() -> None:
    assert set_contract_key("# Cart\n", "a", "b") is None
    assert set_contract_key(f"\ufeff{SCOPE}", "a", "b") is None


def test_a_cell_is_set_and_its_neighbours_keep_their_blanks() -> None:
    after = edited(set_contract_row("scope-contract", SCOPE, {"test_id": "add-btn", "role": "a|b"}))
    assert lines_changed(SCOPE, after) == (["|  add-btn |button| [idle] |"], ["|  add-btn |a\\|b| [idle] |"])


def test_a_cell_that_was_missing_is_added() -> None:
    after = edited(set_contract_row("scope-contract", SCOPE, {"test_id": "qty", "required_states": ("on",)}))
    assert lines_changed(SCOPE, after) == (["| qty | spin |"], ["| qty | spin | [on] |"])


def test_a_new_row_stands_behind_the_last_of_the_own_table() -> None:
    after = edited(set_contract_row("scope-contract", SCOPE, {"test_id": "new", "role": "r"}))
    assert lines_changed(SCOPE, after) == ([], ["| new | r |  |"])
    assert [row["test_id"] for row in parse_contract("scope-contract", after).rows] == ["add-btn", "qty", "last", "new"]


def test_a_contract_without_its_table_gets_one() -> None:
    after = edited(set_contract_row("wiring-map", "---\na: 1\n---\n\nprose", {"use_case": "UC-1", "engine": "e"}))
    assert after == "---\na: 1\n---\n\nprose\n\n## Wiring\n\n| use_case | engine |\n|---|---|\n| UC-1 | e |\n"


def test_a_table_with_a_header_alone_takes_its_first_row_below_the_rule() -> None:
    text = "## Wiring\n\n| use_case | engine |\n|---|---|"
    assert edited(set_contract_row("wiring-map", text, {"use_case": "U", "engine": "e"})) == f"{text}\n| U | e |"


@pytest.mark.parametrize("row", [{"test_id": "qty", "colour": "x"}, {"role": "x"}, {"test_id": "n", "role": "true"}])
def test_a_row_that_does_not_fit_changes_nothing(row: dict[str, Value]) -> None:
    assert set_contract_row("scope-contract", SCOPE, row) is None


def test_crlf_stays_crlf() -> None:
    text = SCOPE.replace("\n", "\r\n")
    for after in (
        set_contract_key(text, "use_cases", ("UC-3",)),
        set_contract_key(text, "new", "x"),
        set_contract_row("scope-contract", text, {"test_id": "new"}),
        set_contract_row("scope-contract", text, {"test_id": "qty", "role": "r"}),
    ):
        assert "\n" not in edited(after).replace("\r\n", "")
        assert parse_contract("scope-contract", edited(after)).rows


@pytest.mark.parametrize("path", sorted(DATA.glob("*.md")), ids=lambda path: path.name)
@pytest.mark.parametrize("kind", sorted(TABLE_FIELDS))
def test_our_own_contracts_read_the_same_written_back(path: Path, kind: str) -> None:
    contract = parse_contract(kind, decode(path.read_bytes()))
    again = parse_contract(kind, edited(render_contract(contract)))
    assert again.values == contract.values
    assert again.unreadable == ()


DIALECT = ["---\n", "a: ", "b:\n", "  - x\n", "- y\n", "[p, q]", "true", "12", "~", '"a\\nb"\n', "\n", "\r\n"]
SIGNS = ['"', "'", "`", ",", "|", "\\", "é", "\udc80", " ", ":", "#", "\\n"]
TABLE = ["## Affordances\n", "| test_id | role |\n", "|---|---|\n", "| a | b |\n"]
PIECES = st.sampled_from([*DIALECT, *SIGNS, *TABLE])
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@given(TEXTS.map(lambda text: f"---\n{text}"), st.sampled_from(sorted(TABLE_FIELDS)))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_text_reads_the_same_written_back(text: str, kind: str) -> None:
    contract = parse_contract(kind, text)
    assert parse_contract(kind, edited(render_contract(contract))).values == contract.values


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-999, 999), TEXTS, st.lists(TEXTS, max_size=3).map(tuple))


@given(TEXTS.map(lambda text: f"---\n{text}\n---\n"), st.sampled_from(["a", "b", "new"]), VALUES)
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_key_set_in_any_text_changes_that_key_alone(text: str, key: str, value: Value) -> None:
    after = set_contract_key(text, key, value)
    before = parse_contract("scope-contract", text)
    if after is None:
        return
    contract = parse_contract("scope-contract", after)
    assert contract.keys == {**before.keys, key: value}
    assert contract.rows == before.rows
    assert {part.field for part in contract.unreadable} <= {part.field for part in before.unreadable} - {key}
    kept = [line for line in text.split("\n") if line.startswith(("##", "|"))]
    assert [line for line in after.split("\n") if line.startswith(("##", "|"))] == kept


@given(TEXTS, st.fixed_dictionaries({"test_id": st.sampled_from(["a", "n"])}, optional={"role": VALUES}))
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_row_set_in_any_text_changes_one_line(text: str, row: dict[str, Value]) -> None:
    after = set_contract_row("scope-contract", f"## Affordances\n\n| test_id | role |\n|---|---|\n{text}", row)
    if after is not None:
        assert any(one.get("test_id") == row["test_id"] for one in parse_contract("scope-contract", after).rows)
