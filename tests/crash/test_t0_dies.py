"""An attempt that dies anywhere is made good by the next one: no artifact without its row, no row twice, no number left out.

Source: protocol §6.2, §6.4, R-22, W-54, targets 6.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from parsers.t0_verdict import parse_t0_verdict
from tests.crash.dying import refusal, run_until
from tests.daemon.t0.attempting import SLUG, artifacts, make_repository, note, rows, score
from tests.daemon.trees.repository import put

POINTS = 400 if os.environ.get("SHAPEUP_CRASH_FULL") else 20  # places of death that are tried

pytestmark = pytest.mark.skipif(refusal() is not None, reason=str(refusal()))


@pytest.fixture
def quick_root() -> Iterator[Path]:
    """A folder in memory where there is one: these deaths are killed processes, not lost power."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        yield Path(folder)


def entries(count: int) -> list[int]:
    return list(range(1, count + 1, max(count // POINTS, 1)))


def is_sound(root: Path) -> None:
    found = rows(root)
    assert [row["trial"] for row in found] == list(range(1, len(found) + 1))
    by_name = {row["artifact"]: row["sha256"] for row in found}
    assert len(by_name) == len(found)
    hashes = {f"t0/verdicts/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in artifacts(root)}
    assert by_name == hashes
    for path in artifacts(root):
        verdict = parse_t0_verdict(path.read_bytes(), f".shapeup/{SLUG}/t0/verdicts/{path.name}")
        assert verdict is not None
        assert verdict.trial == int(path.stem.rpartition("-t")[2])
    assert not note(root).exists()


@pytest.mark.parametrize("with_git", [False, True])
def test_whatever_was_half_done_is_whole_after_the_next_attempt(with_git: bool, quick_root: Path) -> None:
    root = make_repository(quick_root / "sample", with_git=with_git)
    count = run_until(lambda: score(root), 1 << 30)
    assert count is not None
    died = 0
    root = make_repository(quick_root / "repo", with_git=with_git)
    for entry in entries(count):
        before = len(rows(root))
        put(root, "src/a", f"good {entry}")
        died += run_until(lambda: score(root), entry) is None
        scored = score(root)
        assert scored.trial is not None
        assert scored.verdict.is_green
        is_sound(root)
        assert len(rows(root)) - before in (1, 2)
        if with_git:
            assert rows(root)[-1]["tree_ref"] == "refs/shapeup/cart/core/kept"
    assert died


def test_a_death_in_a_restore_leaves_a_whole_tree_behind_the_next_attempt(quick_root: Path) -> None:
    root = make_repository(quick_root)
    score(root)

    def worse() -> None:
        for name in ("a", "b", "c"):
            put(root, f"src/{name}", "bad")
        score(root, 2)

    count = run_until(worse, 1 << 30)
    assert count is not None
    for entry in entries(count):
        run_until(worse, entry)
        worse()
        assert sorted(path.name for path in (root / "src").iterdir()) == ["a"]
        assert (root / "src/a").read_text() == "good"
        is_sound(root)
