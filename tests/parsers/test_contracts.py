"""The contract dialect: each rule of §10 on a small text, our own files, and texts that nobody meant to write. Source: protocol §10, W-63, W-73, W-74, G6."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.contracts import TABLE_FIELDS, contract_object, parse_contract, unreadable_reason
from parsers.frontmatter import MAX_FRONTMATTER_BYTES
from parsers.markdown import decode

DATA = Path(__file__).parents[1] / "data" / "contracts"
CASES: dict[str, dict[str, Any]] = json.loads((DATA / "cases.json").read_text())
EXAMPLES = int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "150"))
AFFORDANCES = "## Affordances\n\n| test_id | role |\n|---|---|\n| a | button |\n"


def scope(text: str) -> dict[str, object]:
    return contract_object(parse_contract("scope-contract", text))


@pytest.mark.parametrize("name", CASES)
def test_our_own_contracts_read_as_written_down_beside_them(name: str) -> None:
    case = CASES[name]
    contract = parse_contract(case["kind"], decode((DATA / name).read_bytes()))
    assert contract_object(contract) == case["parsed"]
    assert list(contract_object(contract)) == list(case["parsed"])
    assert [part.line for part in contract.unreadable] == case.get("lines", [])
    assert (unreadable_reason(contract) is None) == ("lines" not in case)


@pytest.mark.parametrize("name", CASES)
def test_a_file_with_crlf_reads_the_same(name: str) -> None:
    text = decode((DATA / name).read_bytes())
    kind = CASES[name]["kind"]
    assert parse_contract(kind, text.replace("\n", "\r\n")) == parse_contract(kind, text)


def test_every_key_and_the_table_tell_their_line() -> None:
    lines = parse_contract("scope-contract", f"---\na: 1\n\nb: 2\n---\n\n{AFFORDANCES}").lines
    assert lines == {"a": 2, "b": 4, "affordance_manifest": 7}


def test_a_byte_order_mark_hides_the_frontmatter_and_only_that() -> None:
    """The block begins at byte 0: recorded so, and no W speaks of contracts (H2). The gate refuses such a file."""
    contract = parse_contract("scope-contract", f"\ufeff---\na: 1\n---\n{AFFORDANCES}")
    assert not contract.has_frontmatter
    assert list(contract_object(contract)) == ["affordance_manifest"]


@pytest.mark.parametrize(
    "text", ["", "---\na: 1\n", "---\ra: 1\r---\r", "a: 1\n", "\n---\na: 1\n---\n", "---\na: 1\n...\n"]
)
def test_a_text_without_a_block_is_all_body(text: str) -> None:
    contract = parse_contract("project-profile", text)
    assert (contract.has_frontmatter, contract.keys, contract.unreadable) == (False, {}, ())


def test_frontmatter_beyond_its_limit_is_a_fault_and_nothing_of_it_counts() -> None:
    contract = parse_contract("scope-contract", f"---\na: 1\nb: {'x' * MAX_FRONTMATTER_BYTES}\n---\n", "c.md")
    assert contract.keys == {}
    assert contract.fault is not None
    assert contract.fault.code == "E-FRONTMATTER"


def test_a_key_written_twice_counts_once_and_is_told() -> None:
    contract = parse_contract("scope-contract", "---\na: 1\na:\n  - 2\n---\n")
    assert (contract.keys, contract.doubled, contract.unreadable) == ({"a": 1}, (("a", 3),), ())


def test_items_that_are_not_indented_are_lines_below_an_inline_value_too() -> None:
    """W-73, the other way round: what the list form would have swallowed is not dropped in silence."""
    (part,) = parse_contract("scope-contract", "---\nuse_cases: [UC-1]\n- UC-2\n---\n").unreadable
    assert (part.case, part.field, part.rows, part.line) == ("both", "use_cases", 1, 2)


@pytest.mark.parametrize("ending", ["\n", "\n\n", ""])
def test_a_heading_in_a_fence_is_no_heading_and_a_table_in_one_no_table(ending: str) -> None:
    fenced = f"```\n## db_probe\n{AFFORDANCES}```\n"
    assert scope(f"{fenced}{AFFORDANCES}{fenced}{ending}") == {
        "affordance_manifest": [{"test_id": "a", "role": "button"}]
    }


@pytest.mark.parametrize(
    ("rows", "read"),
    [
        ("| test_id | role |\n|---|---|\n| a | b |\n", [{"test_id": "a", "role": "b"}]),
        (
            "| test_id | role |\n| :-: | --- |\n| a | b |\n",
            [{"test_id": ":-:", "role": "---"}, {"test_id": "a", "role": "b"}],
        ),
        ("| test_id | role\n|---|---\n| a | b\n", [{"test_id": "a"}]),
        ("| test_id | role |\n|---|---|\n| a |\n| ~ | null |\n|  | b | c |\n", [{"test_id": "a"}, {}, {"role": "b"}]),
        ("| Test  ID | role |\n\n| a | b |\n", None),
        ("| test_id | role |\n|---|---|\n", None),
    ],
)
def test_cells_rows_and_separators(rows: str, read: list[dict[str, object]] | None) -> None:
    assert scope(f"# Affordances\n{rows}").get("affordance_manifest") == read


def test_a_row_before_any_heading_is_nobodys() -> None:
    assert scope("| test_id | role |\n|---|---|\n| a | b |\n") == {}


def test_the_table_counts_before_a_key_of_its_name_and_stands_behind_the_other_keys() -> None:
    contract = parse_contract("scope-contract", f"---\naffordance_manifest: [x]\nb: 1\n---\n{AFFORDANCES}")
    assert contract_object(contract)["affordance_manifest"] == [{"test_id": "a", "role": "button"}]
    assert contract.values["affordance_manifest"] == ({"test_id": "a", "role": "button"},)


def test_only_the_first_misplaced_table_is_told_and_only_while_the_field_is_absent() -> None:
    misplaced = AFFORDANCES.replace("Affordances", "One") + AFFORDANCES.replace("Affordances", "Two")
    assert [part.found_under for part in parse_contract("scope-contract", misplaced).unreadable] == ["One"]
    assert parse_contract("scope-contract", misplaced + AFFORDANCES).unreadable == ()
    assert parse_contract("scope-contract", f"---\naffordance_manifest: [x]\n---\n{misplaced}").unreadable == ()


@pytest.mark.parametrize(
    ("heading", "is_near"),
    [("affordances", True), ("Affordances:", True), ("AFFORDANCES ##", True), ("Manifest", False)],
)
def test_a_heading_that_misses_by_its_spelling_is_told_apart(heading: str, is_near: bool) -> None:
    """W-63."""
    contract = parse_contract("scope-contract", f"\n## {heading}\n")
    assert contract.near_miss == ((heading, 2) if is_near else None)
    assert parse_contract("scope-contract", f"## {heading}\n{AFFORDANCES}").near_miss is None


@pytest.mark.parametrize("name", ["db_probe", "e2e_verification_fixtures", "a_1"])
def test_a_level_two_heading_that_is_a_field_name_is_an_absent_field(name: str) -> None:
    assert [part.field for part in parse_contract("project-profile", f"## {name}  \n## {name}\n").unreadable] == [name]
    for other in (f"# {name}", f"### {name}", f"## {name} x", f"## {name.title()}", f"## `{name}`", f"##{name}"):
        assert parse_contract("project-profile", other).unreadable == ()
    assert parse_contract("project-profile", f"---\n{name}:\n---\n## {name}\n").unreadable == ()


def test_a_list_field_gives_texts_whatever_was_written() -> None:
    contract = parse_contract("scope-contract", f"---\na: [x, 1]\nb: src/**\nc: ~\nd: 7\n---\n{AFFORDANCES}")
    assert [contract.texts(key) for key in ("a", "b", "c", "d", "absent", "affordance_manifest")] == [
        ("x", "1"),
        ("src/**",),
        (),
        (),
        (),
        (),
    ]


def test_every_unreadable_part_has_a_clause_that_names_it() -> None:
    contract = parse_contract("scope-contract", (DATA / "scope-unread.md").read_text())
    reason = unreadable_reason(contract) or ""
    assert all(f"`{part.field}`" in reason for part in contract.unreadable)
    assert reason.count("ABSENT") == 3  # the inline value beside the block was kept


_WORDS = """---
a: 1
a:
  - x
- y
  stray
k: [a, b
## Affordances
## Wiring
### UC-1
## db_probe
```
~~~
| test_id | role |
|---|---|
| use_case | engine |
| Field | Value |
| engine | \\| |
|
||
| a"""
_LINE = st.sampled_from([*_WORDS.split("\n"), "", "\r", "\ufeff"]) | st.text(max_size=12)
_TEXT = st.lists(_LINE, max_size=25).map("\n".join) | st.binary(max_size=200).map(decode)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.sampled_from(sorted(TABLE_FIELDS)), _TEXT)
def test_any_text_is_a_contract_that_can_be_printed(kind: str, text: str) -> None:
    contract = parse_contract(kind, text)
    assert json.loads(json.dumps(contract_object(contract))) == contract_object(contract)
    assert (unreadable_reason(contract) is None) == (not contract.unreadable)
    total = text.count("\n") + 1
    assert all(1 <= part.line <= total for part in contract.unreadable)
    assert all(1 <= line <= total for line in contract.lines.values())
    table = TABLE_FIELDS[kind]
    assert set(contract.lines) == set(contract.keys) | ({table.field} if table and contract.rows else set())


@pytest.mark.parametrize(
    "build",
    [
        lambda n: "## a\n" * n,
        lambda n: "".join(f"## a_{i}\n" for i in range(n)),
        lambda n: "### UC-1\n" * n,
        lambda n: "# UC-1\n| Field | Value |\n| a | b |\n" * n,
        lambda n: "# Affordances\n" + "|" * 8 * n,
        lambda n: "# Affordances\n" + "| a | b |\n" * n,
        lambda n: "# Affordances\n| " + "\\|" * 4 * n + " |\n" * 3,
        lambda n: "# Affordances\n" + f"|{'-' * n}x|\n" * 3,
        lambda n: f"---\na: [{chr(34)}{chr(39)}" + "\\\"'" * n + "\n---\n",
        lambda n: "---\na: " + "`" * n + "\n---\n",
        lambda n: "---\n" + "a:\n- b\n" * n + "---\n",
        lambda n: "```\n~~~\n" * n,
        lambda n: "#" * 8 * n,
        lambda n: "## " + "a_" * 4 * n + "\n",
    ],
)
def test_hostile_texts_cost_work_in_proportion_to_their_length(build: Callable[[int], str]) -> None:
    """Counted in calls, not in time: four times the text may not be more than about four times the work."""
    small, large = (calls_of(build(n)) for n in (500, 2000))
    assert large <= 4.5 * small + 2000


def calls_of(text: str) -> int:
    """How many lines of Python it takes to read the text as each kind."""
    count = 0

    def trace(_frame: object, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for kind in TABLE_FIELDS:
            parse_contract(kind, text)
    finally:
        sys.settrace(before)
    return count
