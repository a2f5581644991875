"""The glob language against a naive matcher. Source: protocol §3.2, §12.3, W-08, rulings C11, E10."""

from __future__ import annotations

import os
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.globs import matches


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
