"""Frozen and append-only sections of a markdown file. Source: W-09, W-12, ruling G6."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hooks.sections import is_growth, is_kept, only_grows, read_outline, spans_of

UC = b"""# UC-1

## Steps
1. open
2. pay

## Invariants
- INV-1 a total is never negative

## Test Surface
- TS-1 pay twice
"""


def kept(before: bytes | None, after: bytes | None, name: str = "Steps") -> bool:
    return is_kept(read_outline(before), read_outline(after), name)


def grown(before: bytes | None, after: bytes | None, *names: str, free: tuple[str, ...] = ()) -> bool:
    return is_growth(read_outline(before), read_outline(after), names or ("Invariants", "Test Surface"), free)


def section(text: bytes, name: str) -> list[str]:
    outline = read_outline(text)
    return ["".join(outline.lines[span.start : span.end]) for span in spans_of(outline, (name,))]


# --- what a section is -----------------------------------------------------------------------------------------------


def test_a_section_ends_at_a_heading_of_the_same_or_a_higher_level() -> None:
    text = b"## A\none\n### deeper\ntwo\n## B\nthree\n# C\n"
    assert section(text, "A") == ["## A\none\n### deeper\ntwo\n"]
    assert section(text, "B") == ["## B\nthree\n"]
    assert section(text, "C") == ["# C\n"]


def test_headings_inside_a_fence_are_no_headings() -> None:
    text = b"## A\n```md\n## B\n```\n~~~\n## A\n~~~~\n## B\nreal\n"
    assert section(text, "B") == ["## B\nreal\n"]
    assert section(text, "A") == ["## A\n```md\n## B\n```\n~~~\n## A\n~~~~\n"]


def test_a_heading_is_named_by_its_text_alone() -> None:
    for line in (b"# Steps", b"###### Steps", b"##   Steps  ", b"##\tSteps\t", b"## Steps\r", b"\xef\xbb\xbf## Steps"):
        assert len(section(line + b"\n1.\n", "Steps")) == 1, line
    for line in (b"#Steps", b"####### Steps", b" ## Steps", b"## Steps ##", b"## steps", b"Steps\n-----"):
        assert section(line + b"\n1.\n", "Steps") == [], line


def test_several_sections_of_one_name_are_all_meant() -> None:
    assert len(section(b"## A\n1\n## B\n## A\n2\n", "A")) == 2
    assert len(section(b"# A\n## A\n1\n# B\n", "A")) == 1  # one inside another is part of it


def test_an_absent_or_empty_file_has_no_section() -> None:
    assert spans_of(read_outline(None), ("A",)) == spans_of(read_outline(b""), ("A",)) == ()


# --- frozen ----------------------------------------------------------------------------------------------------------


def test_a_frozen_section_is_kept_while_others_change() -> None:
    assert kept(UC, UC.replace(b"TS-1", b"TS-9"))
    assert kept(UC, b"intro\n\n" + UC)
    assert kept(UC.replace(b"\n", b"\r\n"), UC.replace(b"\n", b"\r\n") + b"- more\r\n")


@pytest.mark.parametrize(
    "after",
    [
        UC.replace(b"2. pay", b"2. pay later"),
        UC.replace(b"2. pay\n", b"2. pay\n3. leave\n"),
        UC.replace(b"2. pay\n", b"2. pay \n"),
        UC.replace(b"2. pay\n", b"2. pay\n\n"),
        UC.replace(b"\n", b"\r\n"),
        UC.replace(b"## Steps", b"### Steps"),
        UC.replace(b"## Steps", b"## Steps "),
        UC.replace(b"## Invariants", b"### Invariants"),  # the section reaches further now
        UC.replace(b"# UC-1\n", b"# UC-1\n```\n"),  # the whole rest is code now
        UC.replace(b"## Steps\n1. open\n2. pay\n\n", b""),
        UC + b"\n## Steps\n1. something else\n",
        b"# UC-1\n",
        b"",
        None,
    ],
)
def test_a_frozen_section_is_not_kept(after: bytes | None) -> None:
    assert not kept(UC, after)


def test_a_frozen_section_that_is_not_there_may_not_appear() -> None:
    assert kept(None, b"# UC-1\n")
    assert not kept(None, UC)
    assert not kept(b"# UC-1\n", UC)


def test_something_may_be_put_behind_a_frozen_section_that_ended_the_file() -> None:
    for end in (b"", b"\n", b"\r\n"):
        alone = b"## Steps\n1. open" + end
        assert kept(alone, alone.rstrip() + (end or b"\n") + b"\n## Test Surface\n- TS-1\n")
        assert not kept(alone, alone.rstrip() + b" now\n\n## Test Surface\n- TS-1\n")
    assert not kept(b"## Steps\n1. open\n", b"## Steps\n1. open\n\n")  # nothing stands behind it


def test_bytes_that_are_not_utf_8_are_bytes() -> None:
    assert kept(b"## Steps\n\xff\n", b"## Steps\n\xff\n## B\n")
    assert not kept(b"## Steps\n\xff\n", b"## Steps\n\xfe\n")


# --- append-only -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "after",
    [
        UC,
        UC + b"- TS-2 pay never\n",
        UC + b"\n\n- TS-2\n",
        UC.replace(b"negative\n\n", b"negative\n- INV-2 more\n\n"),
        UC.replace(b"negative\n\n", b"negative\n\n- INV-2 more\n"),
        UC.replace(b"negative\n\n", b"negative\n- INV-2 more\n\n") + b"- TS-2\n",  # both at once
        UC.removesuffix(b"\n") + b"\n### deeper\n- TS-3\n",
    ],
)
def test_the_named_sections_may_grow(after: bytes) -> None:
    assert grown(UC, after)


@pytest.mark.parametrize(
    "after",
    [
        UC.replace(b"TS-1 pay twice", b"TS-1 pay once"),
        UC.replace(b"TS-1 pay twice", b"TS-1 pay twice and leave"),  # the old line is another line now
        UC.replace(b"- TS-1", b"- TS-0\n- TS-1"),  # grows in front
        UC.replace(b"1. open", b"1. look"),
        UC.replace(b"# UC-1\n", b"# UC-1\nhello\n"),
        UC + b"## Notes\n- a section that nobody named\n",
        UC.replace(b"# UC-1\n\n", b"# UC-1\n"),
        UC.replace(b"\n", b"\r\n"),
        UC.replace(b"## Test Surface", b"## Test surface"),
        UC[: UC.index(b"## Test")],
        UC.replace(b"## Steps", b"## Invariants\n- INV-0 false\n\n## Steps"),  # a second one in front of the first
        b"",
        None,
    ],
)
def test_anything_else_is_no_growth(after: bytes | None) -> None:
    assert not grown(UC, after)


def test_sections_that_change_places_are_no_growth() -> None:
    text = b"## A\n1\n## B\n2\n## C\n3\n"
    assert not grown(text, b"## B\n2\n## A\n1\n## C\n3\n", "A", "B")


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
@pytest.mark.parametrize("gap", [0, 1, 2])
def test_a_missing_section_may_be_created_anywhere(newline: bytes, gap: int) -> None:
    text = UC.replace(b"\n", newline)
    created = newline * gap + newline.join((b"## Cuts", b"- c", b""))
    assert grown(text, text + created, "Cuts")
    assert grown(text.removesuffix(newline), text + created, "Cuts")  # the last line gets its end
    spaced = created + newline
    assert grown(text, text.replace(b"## Invariants", spaced.removeprefix(newline * gap) + b"## Invariants"), "Cuts")
    assert grown(b"", created, "Cuts")
    assert grown(None, created, "Cuts")
    assert not grown(text, b"x" + text + created, "Cuts")
    assert not grown(text, text + b"x" + newline + created, "Cuts")
    assert not grown(text.removesuffix(newline), text.removesuffix(newline) + b"x" + newline + created, "Cuts")


def test_a_free_section_may_hold_anything_or_go() -> None:
    for steps in (b"", b"## Steps\n", b"## Steps\n9. fly\n\n"):
        after = UC.replace(b"## Steps\n1. open\n2. pay\n\n", steps)
        assert grown(UC, after, free=("Steps",))
        assert not grown(UC, after.replace(b"# UC-1", b"# UC-2"), free=("Steps",))
    both = UC.replace(b"1. open", b"1. look") + b"- TS-2\n"
    assert grown(UC, both, free=("Steps",))
    assert not grown(UC, both)


def test_a_whole_file_only_grows_by_bytes_at_its_end() -> None:
    assert only_grows(b"a\n", b"a\nb\n")
    assert only_grows(b"a", b"a")
    assert only_grows(None, b"a")
    assert not only_grows(b"a\n", b"b\na\n")
    assert not only_grows(b"a\n", b"a")
    assert not only_grows(b"a\n", None)


# --- laws ------------------------------------------------------------------------------------------------------------

LINES = st.sampled_from([b"# A", b"## A", b"## B", b"### C", b"text", b"```", b"~~~", b"", b" ", b"\xff", b"- x\r"])
TEXTS = st.builds(
    lambda lines, end: b"\n".join(lines) + end, st.lists(LINES, max_size=8), st.sampled_from([b"", b"\n"])
)


@settings(max_examples=int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "400")), deadline=None)
@given(TEXTS, TEXTS)
def test_growth_loses_no_line_and_what_is_kept_is_the_same(before: bytes, after: bytes) -> None:
    old, new = read_outline(before), read_outline(after)
    assert "".join(old.lines).encode("utf-8", "surrogateescape") == before
    assert is_kept(old, old, "A")
    assert is_growth(old, old, ("A",))
    if is_growth(old, new, ("A",)):
        left = iter(line.strip() for line in new.lines)
        assert all(line.strip() in left for line in old.lines if line.strip())  # in their order
        assert is_kept(old, new, "B") or any("A" in line for line in old.lines + new.lines)
    if is_kept(old, new, "A"):
        assert [text.strip() for text in section(before, "A")] == [text.strip() for text in section(after, "A")]


@settings(max_examples=int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "400")), deadline=None)
@given(TEXTS, st.lists(st.sampled_from([b"text", b"- x", b"### C", b""]), max_size=4))
def test_lines_added_at_the_end_of_a_last_section_are_growth(before: bytes, added: list[bytes]) -> None:
    text = before.removesuffix(b"\n") + b"\n"
    spans = spans_of(read_outline(text), ("A",))
    fences = text.count(b"```") + text.count(b"~~~")
    if spans and spans[-1].end == len(read_outline(text).lines) and not fences:
        assert is_growth(read_outline(text), read_outline(text + b"\n".join(added)), ("A",))


def test_a_large_file_of_sections_is_judged_in_one_walk() -> None:
    """Headings, blank lines, fences alone: where work grew with the square of the size, this would take hours."""
    whole, part = 1 << 20, 1 << 17
    units = [
        (b"## A\n" + b"- a line of text\n" * 50, whole),
        (b"\n", part),
        (b"```\n## A\n", part),
        (b"# B\n\n# A\n\n", part),
    ]
    for unit, size in units:
        text = unit * (size // len(unit))
        old, new = read_outline(text), read_outline(text + b"\n## A\n- y\n")
        assert len(old.lines) == text.count(b"\n")
        assert is_kept(old, old, "A")
        is_growth(old, new, ("A",))
        is_growth(read_outline(b""), new, ("A",))
