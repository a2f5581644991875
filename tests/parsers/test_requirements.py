"""Which ids a spec defines, and by which text; layout, markup and line breaks are no part of it. Source: protocol §5.3, W-32, R-38."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parsers.requirements import parse_invariants, parse_requirements

TABLE = """# Requirements

| REQ-ID | Clause | Source | Status | Note |
|---|---|---|---|---|
| REQ-1 | adds an item | pitch | covered | |
| **REQ-2** | ~~removes   one~~ | pitch | CUT | late |
| see REQ-A-7 | x \\| y | p | | |

REQ-5 is prose. | REQ-6 | is no row |
"""


def requirements(text: str) -> list[tuple[str, str, int]]:
    return [tuple(one) for one in parse_requirements(text)]  # type: ignore[misc]


def invariants(text: str) -> list[tuple[str, str, int]]:
    return [tuple(one) for one in parse_invariants(text)]  # type: ignore[misc]


def test_a_row_is_a_requirement_when_its_first_cell_holds_an_id() -> None:
    assert requirements(TABLE) == [("REQ-1", "adds an item", 5), ("REQ-2", "removes one", 6), ("REQ-A-7", "x \\| y", 7)]


def test_the_clause_is_found_by_its_column_else_it_is_the_second_cell() -> None:
    assert requirements("| id | status | text |\n|---|---|---|\n| REQ-1 | CUT | adds |\n") == [("REQ-1", "adds", 3)]
    assert requirements("| id | what |\n|---|---|\n| REQ-1 | adds |\n| REQ-2 |\n") == [
        ("REQ-1", "adds", 3),
        ("REQ-2", "", 4),
    ]


def test_a_file_without_rows_defines_by_list_items_and_headings() -> None:
    text = "# Requirements\n\n- **REQ-1**: adds\n  an item\n- see REQ-9\n\n### REQ-2 — removes\n\n1. REQ-3 lists\n"
    assert requirements(text) == [("REQ-1", "adds an item", 3), ("REQ-2", "removes", 7), ("REQ-3", "lists", 9)]


def test_a_table_in_a_fence_defines_nothing() -> None:
    assert requirements(f"```\n{TABLE}```\n") == []


def test_invariants_are_list_items_with_the_lines_that_continue_them() -> None:
    text = """## Invariants

- [INV-01] A failed `add` never
  mutates the store.
- **[INV-2]** second
* INV-3: third
- about [INV-4]

| TS-INV-01 | process | D1: INV-01 |
"""
    assert invariants(text) == [
        ("INV-01", "A failed add never mutates the store.", 3),
        ("INV-2", "second", 5),
        ("INV-3", "third", 6),
    ]
    rewrapped = text.replace("never\n  mutates", "never mutates").replace("- **[", "-  **[")
    assert [one[:2] for one in invariants(rewrapped)] == [one[:2] for one in invariants(text)]


def test_rows_define_invariants_below_a_heading_that_says_so_and_nowhere_else() -> None:
    table = "| id | text |\n|---|---|\n| [INV-1] | holds |\n"
    assert invariants(f"## Invariants\n\n{table}") == [("INV-1", "holds", 5)]
    assert invariants(f"## Invariants\n\n## Test Surface\n\n{table}") == []


_TEXT = st.lists(
    st.sampled_from(
        [
            "- [INV-1] a",
            "| REQ-1 | b |",
            "|---|---|",
            "| REQ-id | Clause |",
            "  more",
            "",
            "```",
            "# REQ-2",
            "# Invariants",
            "\ufeff",
        ]
    )
    | st.text(max_size=10)
).map("\n".join)


@given(_TEXT)
def test_any_text_can_be_read_and_every_line_exists(text: str) -> None:
    for found in (*parse_requirements(text), *parse_invariants(text)):
        assert 1 <= found.line <= text.count("\n") + 1
        assert found.text == " ".join(found.text.split())
