"""Lines, fences, headings and tables with exact positions. Source: ruling G6, protocol §10.4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.markdown import decode, encode, newline_of, parse_heading, parse_tables, scan_lines, split_cells

TEXTS = st.lists(
    st.sampled_from(["```", "~~~", "````", "# a", "| a | b |", "|---|---|", "text", "", "\ufeff", " ", "\r", "\\|"])
).map("\n".join)


def fenced(text: str) -> str:
    return "".join("x" if line.fenced else "." for line in scan_lines(text.split("\n")))


@given(st.binary())
def test_any_bytes_come_back(data: bytes) -> None:
    assert encode(decode(data)) == data


@given(TEXTS)
def test_every_line_is_told_once_and_in_order(text: str) -> None:
    lines = text.split("\n")
    seen = list(scan_lines(lines))
    assert [line.at for line in seen] == list(range(len(lines)))
    assert all(line.text in lines[line.at] for line in seen)


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("a\n```\nb\n```\nc", ".xxx."),
        ("```\na", "xx"),  # a fence that nobody closes goes on to the end
        ("````\n```\n````\na", "xxx."),  # a shorter one does not close it
        ("```\n~~~\n```\na", "xxx."),
        ("```py\na\n``` \nb", "xxx."),
        ("```\n``` x\n```\na", "xxx."),  # a closing fence carries no text
        ("``` a`b\nc", ".."),  # backticks behind a backtick fence: inline code
        ("    ```\na", ".."),  # indented by four: code, no fence
        ("   ```\r\na\r\n```\r\nb", "xxx."),
        ("\ufeff```\na\n```\nb", "xxx."),  # L1
    ],
)
def test_fences_are_seen_where_commonmark_sees_them(text: str, marks: str) -> None:
    assert fenced(text) == marks


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# a", (1, "a")),
        ("######  a b \t", (6, "a b")),
        ("####### a", None),
        ("#a", None),
        (" # a", None),
        ("# ", (1, "")),
        ("#", None),
        ("", None),
    ],
)
def test_a_heading_has_a_level_and_a_text(line: str, heading: tuple[int, str] | None) -> None:
    assert parse_heading(line) == heading


@pytest.mark.parametrize("line", ["# a" + " " * 1_000_000 + "b", "#" * 1_000_000, "# " + "\t" * 1_000_000])
def test_a_megabyte_in_one_line_is_read_in_linear_time(line: str) -> None:
    parse_heading(line)
    parse_tables([f"| {line} |"])
    assert len(list(scan_lines([line]))) == 1


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("| a | b |", (" a ", " b ")),
        ("  | a | b", (" a ", " b")),
        (r"| a \| b | c |", (r" a \| b ", " c ")),
        ("|", ("",)),
        ("||", ("",)),
        ("a | b", None),
        ("", None),
    ],
)
def test_a_row_is_split_at_its_own_pipes(line: str, cells: tuple[str, ...] | None) -> None:
    assert split_cells(line) == cells


def test_tables_end_at_any_other_line_and_fences_hide_them() -> None:
    text = "| ID | B |\n|----|:--:|\n| 1 | 2 |\n\n| C |\r\n|---|\r\n| 3 |\r\n```\n| D |\n| 4 |\n```"
    first, second = parse_tables(text.split("\n"))
    assert (first.header, first.header_line) == (("id", "b"), 0)
    assert [(row.line, row.cells) for row in first.rows] == [(2, (" 1 ", " 2 "))]
    assert (second.header, [row.line for row in second.rows]) == (("c",), [6])


@given(TEXTS)
def test_no_text_makes_the_table_reader_raise(text: str) -> None:
    lines = text.split("\n")
    for table in parse_tables(lines):
        assert all(lines[row.line].removeprefix("\ufeff").lstrip().startswith("|") for row in table.rows)


@pytest.mark.parametrize(
    ("text", "newline"),
    [("a\r\nb\n", "\r\n"), ("a\nb\r\n", "\n"), ("", "\n"), ("\n", "\n"), ("\r\n", "\r\n"), ("a\r", "\n")],
)
def test_the_newline_style_is_that_of_the_first_line(text: str, newline: str) -> None:
    """W-24."""
    assert newline_of(text) == newline
