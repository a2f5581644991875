"""Lines that point into the local tier: by kind, by line, once each, and only the new ones. Source: protocol §5.2, ruling E9."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.tier_direction import added_breaks, tier_breaks


def found(data: bytes, *, is_spec: bool = False) -> list[tuple[int, str, bytes]]:
    return [(one.line, one.kind, one.named) for one in tier_breaks(data, is_spec=is_spec)]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"see TASK-003.", b"TASK-003."),
        (b"(TASK-a_b-1)", b"TASK-a_b-1"),
        (b"x.TASK-1", b"TASK-1"),
        (b"TASK- 1", None),
        (b"TASK-", None),
        (b"SUBTASK-1", None),
        (b"_TASK-1", None),
        (b"task-1", None),
        (b"TASK--1", None),
        ("éTASK-1".encode(), b"TASK-1"),  # \b is ASCII
        (b"TASK-\xc3\xa9", None),
    ],
)
def test_board_ids(line: bytes, named: bytes | None) -> None:
    assert found(line) == ([(1, "board-id", named)] if named else [])


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"`.shapeup/cart/orders/x.json`,", b".shapeup/cart/orders/x.json"),
        (b"a.shapeup/x", b".shapeup/x"),
        (b"in .shapeup/ there", None),
        (b"in .shapeup/", None),
        (b".shapeup/\r", None),
        (b"`.shapeup/`", b".shapeup/`"),
        (b"shapeup/cart/spec", None),
        (b".shapeup", None),
    ],
)
def test_paths_of_the_local_tier(line: bytes, named: bytes | None) -> None:
    assert found(line) == ([(1, "local-path", named)] if named else [])


def test_links_to_tasks_count_in_spec_documents_alone() -> None:
    data = b"x\n[[tasks/T1#a|b]] [[usecases/UC-1]]\n"
    assert found(data) == []
    assert found(data, is_spec=True) == [(2, "task-link", b"[[tasks/T1")]


def test_a_line_is_found_once_for_each_kind() -> None:
    data = b"a\r\n[[tasks/TASK-1]] TASK-2 .shapeup/x .shapeup/y\r\nTASK-3"
    assert found(data, is_spec=True) == [
        (2, "board-id", b"TASK-1"),
        (3, "board-id", b"TASK-3"),
        (2, "local-path", b".shapeup/x"),
        (2, "task-link", b"[[tasks/TASK-1"),
    ]


def added(before: bytes, after: bytes) -> list[int]:
    return [one.line for one in added_breaks(tier_breaks(after), tier_breaks(before))]


def test_only_lines_that_are_new_are_told() -> None:
    old = b"TASK-1 a\nTASK-2 b\n"
    assert added(old, old) == []
    assert added(old, b"x\nTASK-2 b\nTASK-1 a\r\n") == []  # moved, and with another line end
    assert added(old, old + b"TASK-2 b\n") == [3]  # once more is once too much
    assert added(old, b"TASK-1 A\nTASK-2 b\n") == [1]
    assert added(b"", old) == [1, 2]
    assert added(old, b"") == []


_TEXT = st.lists(
    st.sampled_from(
        [b"TASK-1", b"TASK-", b".shapeup/", b".shapeup/a", b"[[tasks/b]]", b"\n", b"\r\n", b" ", b"a", b"\xff"]
    )
).map(b"".join)


@given(_TEXT, st.booleans())
def test_it_finds_what_a_line_by_line_reading_finds(data: bytes, is_spec: bool) -> None:
    patterns = {"board-id": rb"\bTASK-[A-Za-z0-9]", "local-path": rb"\.shapeup/\S"} | (
        {"task-link": rb"\[\[tasks/"} if is_spec else {}
    )
    lines = data.split(b"\n")
    wanted = {(at + 1, kind) for at, line in enumerate(lines) for kind in patterns if re.search(patterns[kind], line)}
    ours = list(tier_breaks(data, is_spec=is_spec))
    assert sorted((one.line, one.kind) for one in ours) == sorted(wanted)
    assert all(one.text == lines[one.line - 1].rstrip(b"\r") and one.named in one.text for one in ours)


@given(_TEXT, _TEXT)
def test_what_was_there_and_what_is_added_make_up_what_is_there(before: bytes, after: bytes) -> None:
    new = list(added_breaks(tier_breaks(after), tier_breaks(before)))
    assert {(one.kind, one.text) for one in tier_breaks(after)} <= {
        (one.kind, one.text) for one in (*tier_breaks(before), *new)
    }
