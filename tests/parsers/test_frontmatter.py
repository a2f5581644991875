"""The frontmatter dialect: values as §10 says, and one key set without touching another byte. Source: protocol §10.1-10.3, targets 27."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from parsers.frontmatter import MAX_FRONTMATTER_BYTES, Unread, Value, parse_frontmatter, parse_scalar, set_key
from parsers.markdown import encode


def values(text: str) -> dict[str, Value]:
    block, fault = parse_frontmatter(text, "t.md")
    assert fault is None
    return block.values if block else {}


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("`src/**`", "src/**"),
        ("``a b``", "a b"),
        ("`a`b`", "`a`b`"),
        ('"a, b"', "a, b"),
        ("007", 7),
        ("-7", -7),
        ("1.5", "1.5"),
        ("~", None),
        ("null", None),
        ("", None),
        ('""', None),
        ("true", True),
        ('"true"', True),
        ("'a'", "a"),
        ('"a\\u00e9"', "aé"),
        ('"bad \\q"', "bad \\q"),
        ('"', '"'),
        ("\"a'", "\"a'"),
        ("[]", ()),
        ("[a, \"b, c\", 'd', ]", ("a", "b, c", "d")),
        ("[1, ~, true]", ("1", "~", "true")),
        (r'["a\"b", \x]', ('a"b', r"\x")),
        ("`[a, b]`", ("a", "b")),
        ("9" * 5000, "9" * 5000),  # int() refuses to read these; no reader could hold them
    ],
)
def test_a_scalar_reads_as_the_dialect_says(raw: str, value: Value) -> None:
    assert parse_scalar(raw) == value
    assert type(parse_scalar(raw)) is type(value)


def test_an_escaped_half_surrogate_is_left_as_it_stands() -> None:
    """It is no character: a board row that held it could not be written as UTF-8."""
    assert parse_scalar(r'"\ud800"') == r"\ud800"
    assert parse_scalar(r'"\ud83d\ude00"') == "😀"


@given(st.text(max_size=40))
def test_whatever_a_scalar_holds_can_be_written_down(raw: str) -> None:
    assume(not any("\ud800" <= char <= "\udfff" for char in raw))
    for text in (raw, f'"{raw}"', f"[{raw}]", f'"\\u{raw}"', f'"\\ud8{raw}"'):
        value = parse_scalar(text)
        encode(value if isinstance(value, str) else "".join(value) if isinstance(value, tuple) else "")


def test_block_lists_are_lists_and_their_items_are_text() -> None:
    """W-28: one parser, so a block list is a dependency everywhere; W-73: it need not be indented."""
    text = "---\na:\n  - x\n  -\n\n  - ~\n  - [p, q]\n  - 7\nb:\n- y\n- z\nc:\n---\n"
    assert values(text) == {"a": ("x", "null", "null", "p,q", "7"), "b": ("y", "z"), "c": None}


def test_an_inline_value_wins_over_what_is_indented_below_it() -> None:
    assert values("---\na: 1\n  - x\n  stray\nb:\n  stray\n---\n") == {"a": 1, "b": None}


def test_what_cannot_be_taken_in_is_told_with_its_key_and_line() -> None:
    """§10.1, rows 2 and 4; stray lines beside block items are ignored (row 3)."""
    text = "---\na: 1\n  - x\n  stray\nb:\n  stray\nc:\n  - x\n  stray\nd: 2\n- y\ne:\n\na: 3\n  stray\n---\n"
    block, _ = parse_frontmatter(text, "t.md")
    assert block is not None
    assert block.unread == (Unread("a", True, 2, 1), Unread("b", False, 1, 4), Unread("d", True, 1, 9))
    assert block.lines == {"a": 1, "b": 4, "c": 6, "d": 9, "e": 11}
    assert block.doubled == (("a", 13),)
    assert block.values == {"a": 1, "b": None, "c": ("x",), "d": 2, "e": None}


@pytest.mark.parametrize(
    "text", ["", "a: 1\n", "---\na: 1\n", " ---\na: 1\n---\n", "--- \na: 1\n---\n", "\n---\na: 1\n---\n"]
)
def test_a_text_without_a_block_has_no_values_and_is_never_edited(text: str) -> None:
    assert parse_frontmatter(text, "t.md") == (None, None)
    assert set_key(text, "a", "2") == text


@pytest.mark.parametrize(
    "text", ["---\r\na: 1\r\n---\r\nbody", "\ufeff---\na: 1\n---\n", "---\na: 1\n---", "---\na: 1\n---more\n"]
)
def test_a_block_is_read_whatever_its_newlines_and_mark(text: str) -> None:
    """W-76, ruling L1; text behind the closing dashes is body, as recorded (H2)."""
    assert values(text) == {"a": 1}


def test_yaml_means_nothing_here() -> None:
    """Targets 27: no anchors, aliases, merge keys or tags, so no bomb."""
    text = "---\na: &x [1]\nb: *x\n<<: *x\nc: !!python/object:os.system x\n---\n"
    assert values(text) == {"a": "&x [1]", "b": "*x", "<<": "*x", "c": "!!python/object:os.system x"}


@pytest.mark.parametrize(
    "line", ["a: " + "x" * MAX_FRONTMATTER_BYTES, "é" * (MAX_FRONTMATTER_BYTES // 2 + 1), "\n" * 70_000]
)
def test_a_block_of_more_than_64_kib_is_a_fault(line: str) -> None:
    block, fault = parse_frontmatter(f"---\n{line}\n---\n", "t.md")
    assert block is None
    assert fault is not None
    assert (fault.code, fault.where) == ("E-FRONTMATTER", "t.md")


# --- setting a key ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("---\nid: T\nstatus: ready\n---\nx", "---\nid: T\nstatus: done\n---\nx"),
        ("---\nid: T\n---\nx", "---\nid: T\nstatus: done\n---\nx"),
        ("---\r\nid: T\r\nstatus: ready\r\n---\r\nx", "---\r\nid: T\r\nstatus: done\r\n---\r\nx"),
        ("---\r\nid: T\r\n---\r\nx", "---\r\nid: T\r\nstatus: done\r\n---\r\nx"),
        ("\ufeff---\nid: T\n---\n", "\ufeff---\nid: T\nstatus: done\n---\n"),
        ("---\nmy_status: q\nstatus: a\n---\n", "---\nmy_status: q\nstatus: done\n---\n"),
        ("---\nstatus:\n---\n", "---\nstatus: done\n---\n"),
        ("---\nstatus: a\nstatus: b\n---\n", "---\nstatus: done\nstatus: b\n---\n"),
        ("---\nx:\n  status: a\n---\n", "---\nx:\n  status: a\nstatus: done\n---\n"),
        ("---\nstatus : a\n---\n", "---\nstatus: done\n---\n"),
        ("---\ntitle: a $' $& \\1 $$x b\nstatus: r\n---\n", "---\ntitle: a $' $& \\1 $$x b\nstatus: done\n---\n"),
        ("---\na: 1\n---\nstatus: body\n", "---\na: 1\nstatus: done\n---\nstatus: body\n"),
    ],
)
def test_one_line_is_set_and_no_other_byte_moves(before: str, after: str) -> None:
    """W-23, W-24."""
    assert set_key(before, "status", "done") == after


@pytest.mark.parametrize("value", ["$&", r"\1", "$1", "$$", r"\g<0>", "$`", "$'", r"\n"])
def test_nothing_in_a_value_is_special(value: str) -> None:
    """W-23."""
    assert set_key("---\na: 1\nb: 2\n---\n$&", "a", value) == f"---\na: {value}\nb: 2\n---\n$&"


LINES = st.one_of(
    st.sampled_from(
        ["status: a", "status:b", "status : c", "  status: d", "- status: e", "x: [1, 2]", "", "# c", "---", "k:"]
    ),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12),
)


@given(st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\ufeff"]))
def test_a_key_that_was_set_is_read_back_and_all_other_lines_stay(lines: list[str], newline: str, mark: str) -> None:
    text = mark + newline.join(["---", *lines, "---", "body"])
    after = set_key(text, "status", "done")
    assert values(after)["status"] == "done"
    assert set_key(after, "status", "done") == after
    kept, now = text.split("\n"), after.split("\n")
    assert len(now) - len(kept) in (0, 1)
    differs = [at for at, line in enumerate(now) if line.rstrip("\r") == "status: done"]
    assert any(
        now[:at] + now[at + 1 :] == (kept if len(now) > len(kept) else kept[:at] + kept[at + 1 :]) for at in differs
    )
