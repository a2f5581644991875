"""Leftovers of a change. Source: protocol §5.9."""

from __future__ import annotations

import pytest

from reducers.ship.leftovers import Addition, find_leftovers, parse_added


def told(*lines: str) -> list[str]:
    return [found.text for found in find_leftovers([Addition("a.js", (lines,))])]


@pytest.mark.parametrize(
    ("line", "marker"),
    [
        ("x() // TODO later", "TODO"),
        ("# FIXME", "FIXME"),
        ("XXX", "XXX"),
        ("a HACK b", "HACK"),
        ("  console.log (x)", "console.log"),
        ("console.debug(1)", "console.debug"),
        ("\tdebugger;", "debugger"),
        ("TODOS", None),
        ("autodoTODO", None),
        ("console.error(x)", None),
        ("const debugger_ = 1", None),
        ("x; debugger", None),
    ],
)
def test_a_marker_is_a_word_of_its_own(line: str, marker: str | None) -> None:
    assert told(line) == ([f"a.js: {marker} ×1"] if marker else [])


def test_four_comment_lines_of_code_in_a_row_are_dead_code() -> None:
    code = ("// a();", "# b = 1", "  // {", "// }")
    assert told(*code) == ["a.js: commented-out code block"]
    assert told(*code[:3], "// prose", code[3]) == []
    assert find_leftovers([Addition("a.js", (code[:2], code[2:]))]) == ()


def test_a_file_with_more_than_400_added_lines_is_told() -> None:
    assert told(*["x"] * 400) == []
    assert told(*["x"] * 401, "TODO") == ["a.js: TODO ×1, +402 lines in one file"]


def test_only_added_lines_of_hunks_count_and_a_removal_parts_them() -> None:
    diff = (
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-old\n+one\n+++two\n\\ No newline\n@@ -9 +9 @@\n+three\n"
    )
    assert parse_added(diff) == (("one", "++two"), ("three",))
    assert parse_added("Binary files a/x and b/x differ\n+no hunk\n") == ()
