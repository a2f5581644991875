"""The glob language against a naive matcher. Source: protocol §3.2, §12.3, W-08, rulings C11, E10."""

from __future__ import annotations

import os
import unicodedata
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.globs import folded, literal_prefix, literal_tail, matches, may_meet


def naive(glob: str, path: str) -> bool:
    """The table of §3.2 read aloud: try every way to spend each token."""

    @cache
    def fits(g: int, p: int) -> bool:
        rest, left = glob[g:], path[p:]
        if not rest:
            return not left
        if rest.startswith("**/"):
            return fits(g + 3, p) or any(
                fits(g + 3, p + end + 1)
                for end, char in enumerate(left)
                if char == "/" and is_segments(left[: end + 1])
            )
        if rest.startswith("**"):
            return any(fits(g + 2, p + n) for n in range(len(left) + 1) if "\n" not in left[:n])
        if rest[0] == "*":
            return any(fits(g + 1, p + n) for n in range(len(left) + 1) if "/" not in left[:n])
        if not left or (rest[0] == "?" and left[0] == "/"):
            return False
        return (rest[0] == "?" or rest[0] == left[0]) and fits(g + 1, p + 1)

    return fits(0, 0)


def is_segments(text: str) -> bool:
    """Whole path segments: each has a character, none holds a newline."""
    return "\n" not in text and all(text.split("/")[:-1])


GLOBS = st.lists(st.sampled_from(["*", "**", "**/", "?", "/", "a", "b", ".", "[", "\\", "ä", "\n"]), max_size=9).map(
    "".join
)
PATHS = st.lists(st.sampled_from(["/", "a", "b", "ab", ".", "[", "\\", "ä", "\n"]), max_size=9).map("".join)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[str, str]:
    """A glob and a path; half of the paths are made from the glob, so that matches are not rare."""
    glob = draw(GLOBS)
    if draw(st.booleans()):
        return glob, draw(PATHS)
    path = ""
    at = 0
    while at < len(glob):
        token = next(token for token in ("**/", "**", "*", glob[at]) if glob.startswith(token, at))
        path += draw(st.sampled_from(SPENT.get(token, (token,))))
        at += len(token)
    return glob, path


SPENT = {"**/": ("", "a/", "b/ab/", "/"), "**": ("", "a", "a/b"), "*": ("", "a", ".b", "/"), "?": ("a", "ä", "/", "")}


@settings(max_examples=int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "2500")), deadline=None)
@given(pairs())
def test_the_matcher_agrees_with_the_naive_one(pair: tuple[str, str]) -> None:
    """W-08: one matcher."""
    glob, path = pair
    assert matches(glob, path) == naive(glob, path)


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("src/**", "src/a", True),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("**/*.ts", "a.ts", True),
        ("**/*.ts", "x/y/a.ts", True),
        ("a/**/b.js", "a/b.js", True),
        ("a/**/b.js", "a/xb.js", False),  # W-08: the reference's guard says yes
        ("*.py", "a/b.py", False),
        ("a**b", "a/x/b", True),
        ("src/?.py", "src/é.py", True),
        ("{a,b}", "a", False),
        ("{a,b}", "{a,b}", True),
        ("[ab]", "a", False),
        ("A", "a", False),
        ("*", ".hidden", True),
        ("**", "a\nb", False),
        ("*", "a\nb", True),
    ],
)
def test_a_glob_means_what_the_table_says(glob: str, path: str, expected: bool) -> None:
    assert matches(glob, path) is expected
    assert naive(glob, path) is expected


def test_a_glob_of_many_stars_is_no_burden_whatever_the_path() -> None:
    """A backtracking matcher takes minutes over this; an order can hold such a glob, and a worker choose such a path."""
    assert not matches("**a" * 30 + "b", "a" * 2000)
    assert matches("**a" * 30, "a" * 2000)


def test_two_stars_are_no_burden_over_a_long_path() -> None:
    assert not matches("**a**b", "a" * 4000)
    assert matches("**a**", "a" * 4000)


@settings(max_examples=int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "500")), deadline=None)
@given(pairs())
def test_a_long_path_is_matched_as_a_short_one_is(pair: tuple[str, str]) -> None:
    """From a certain length on another matcher walks over the path."""
    glob, path = pair
    lead = "x" * 600
    assert matches(lead + glob, lead + path) == naive(glob, path)


@settings(max_examples=int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "500")), deadline=None)
@given(pairs())
def test_what_matches_begins_and_ends_as_the_glob_does(pair: tuple[str, str]) -> None:
    glob, path = pair
    if matches(glob, path):
        assert path.startswith(literal_prefix(glob))
        assert path.endswith(literal_tail(glob))


# --- whether two globs meet ------------------------------------------------------------------------------------------

SMALL = st.lists(st.sampled_from(["*", "**", "**/", "?", "/", "a", "b"]), max_size=3).map("".join)
TEXTS = ["".join(chars) for length in range(8) for chars in product("ab/", repeat=length)]


@settings(max_examples=int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "200")), deadline=None)
@given(SMALL, SMALL)
def test_two_globs_meet_where_some_text_matches_both(glob: str, other: str) -> None:
    """Three tokens each need no witness of more than seven characters, so trying them all is exact."""
    shared = any(matches(glob, text) and matches(other, text) for text in TEXTS)
    assert may_meet(glob, other) is shared
    assert may_meet(other, glob) is shared
    assert not shared or may_meet(glob, other, is_loose=True)


@pytest.mark.parametrize(
    ("glob", "other", "meet"),
    [
        ("src/**", "src/core.py", True),
        ("src/**", "src", False),
        ("src/*.py", "src/a/b.py", False),
        ("**/*.lock", "src/**", True),
        ("src/**/test.py", "src/*", True),
        ("a/**", "**/b", True),
        ("a*", "*b", True),
        ("a*c", "ab", False),
        ("", "", True),
        ("", "**", True),
        ("", "?", False),
        ("*", "a/b", False),
        ("docs/é*", "docs/?", True),
        ("*\n*", "a**", False),
    ],
)
def test_globs_that_meet(glob: str, other: str, meet: bool) -> None:
    assert may_meet(glob, other) is may_meet(other, glob) is meet


def test_globs_of_many_stars_are_compared_at_once() -> None:
    assert not may_meet("**a" * 30 + "b", "**c" * 30 + "d*e")
    assert may_meet("**a" * 30 + "**", "**c" * 30 + "**")


# --- folding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A/B", "a/b"),
        ("\u00e9", "e\u0301"),
        ("\u00c9", "e\u0301"),
        ("Stra\u00dfe", "STRASSE"),
        ("\ufb01x", "FIX"),
        ("\u0130", "i\u0307"),
        ("\u03a3\u03c2", "\u03c3\u03c3"),
        ("\ud55c\uae00", unicodedata.normalize("NFD", "\ud55c\uae00")),
        ("\u212b", "\u00e5"),
        ("\u1e9b\u0323", "\u1e69"),
        ("a\u200cb\ufeff", "ab"),
        ("\u0345", "\u0399"),
    ],
)
def test_names_that_differ_in_case_or_composition_fold_to_the_same(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.parametrize(
    ("one", "other"), [("\u0131", "i"), ("\u0130", "i"), ("\u00e9", "e"), ("\u0430", "a"), ("a", "b")]
)
def test_names_that_differ_otherwise_do_not(one: str, other: str) -> None:
    assert not set(folded(one)) & set(folded(other))


@settings(max_examples=int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "500")), deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=6))
def test_folding_keeps_wildcards_and_slashes_and_is_blind_to_composition(text: str) -> None:
    for form in folded(text):
        assert [c for c in form if c in "*?/#\n"] == [c for c in text if c in "*?/#\n"]
    assert folded(unicodedata.normalize("NFD", text)) == folded(text)
    assert folded(unicodedata.normalize("NFC", text)) == folded(text)


def test_bytes_that_are_no_text_fold_to_themselves() -> None:
    assert folded("A\udcff\u00c9")[0] == "a\udcff\u00e9"
