"""Looking globs up finds what trying each of them finds. Source: targets 18-20, ruling E10."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from hooks.glob_index import FEW, GlobIndex
from parsers.globs import matches

PARTS = ["*", "**", "**/", "?", "/", "a", "b", "src/", "x.py", ".py"]
GLOBS = st.lists(st.sampled_from(PARTS), max_size=5).map("".join)
PATHS = st.lists(st.sampled_from(["/", "a", "b", "src/", "x.py", ".py", "*", "?"]), max_size=5).map("".join)


@settings(max_examples=int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "400")), deadline=None)
@given(st.lists(GLOBS, max_size=8), st.lists(PATHS, min_size=FEW + 2, max_size=FEW + 6))
def test_every_path_finds_the_globs_that_match_it_before_and_after_filing(globs: list[str], paths: list[str]) -> None:
    index = GlobIndex((glob, at) for at, glob in enumerate(globs))
    for path in paths:
        assert sorted(index.find(path)) == [at for at, glob in enumerate(globs) if matches(glob, path)]


def test_the_closest_glob_shares_the_deepest_folder() -> None:
    index = GlobIndex([("src/**", 1), ("src/ui/*.ts", 2), ("README.md", 3), ("docs/a/b.md", 4)])
    assert index.closest("src/ui/deep/x") == 2
    assert index.closest("src/api/x") == 1
    assert index.closest("docs/x") == 4
    assert index.closest("LICENSE") is None
    assert GlobIndex[int]([]).closest("a/b") is None
