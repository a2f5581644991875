"""install and uninstall killed at any system call: the next run ends as a calm one would. Source: targets 24, design §6.

The suite dies at a sample of the calls; SHAPEUP_CRASH_FULL=1 (`make crash`) at every one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash import dying
from tests.hooks.installing import PLAIN, PRE_COMMIT, Place, stub

SAMPLES = 15
_REFUSAL = dying.refusal()

pytestmark = pytest.mark.skipif(_REFUSAL is not None, reason=str(_REFUSAL))


def _fresh(root: Path) -> Place:
    place = Place(root)
    place.hook("pre-commit", PRE_COMMIT, 0o750)
    place.hook("pre-push", PLAIN, 0o700)
    return place


def _installed(root: Path) -> Place:
    place = _fresh(root)
    place.install(strict=True, given=stub("/old/python"))
    return place


def _displaced(root: Path) -> Place:
    place = Place(root)
    place.hook("pre-commit", PLAIN)
    place.install()
    os.rename(place.hooks / "pre-commit", place.hooks / "pre-commit.legacy")
    place.hook("pre-commit", PRE_COMMIT)
    return place


def _install(place: Place) -> None:
    place.install()


def _uninstall(place: Place) -> None:
    place.uninstall()


@pytest.mark.parametrize(
    ("prepare", "act"),
    [
        (_fresh, _install),
        (_installed, _install),
        (_installed, _uninstall),
        (_displaced, _install),
        (_displaced, _uninstall),
    ],
)
def test_a_run_that_died_is_finished_or_undone_by_the_next(
    tmp_path: Path, prepare: Callable[[Path], Place], act: Callable[[Place], None]
) -> None:
    root = tmp_path / "repo"  # always the same path, so that pictures can be compared
    finished = _after(root, prepare, act)
    undone = _after(root, prepare, _uninstall)
    calls = dying.run_until(lambda: act(_again(root, prepare)), 1 << 30)
    assert calls is not None
    step = 1 if os.environ.get("SHAPEUP_CRASH_FULL") else max(1, calls // SAMPLES)
    for entry in range(1, calls, step):
        for then, wanted in ((act, finished), (_uninstall, undone)):
            place = _again(root, prepare)
            dying.run_until(lambda place=place: act(place), entry)  # type: ignore[misc]
            then(place)
            assert place.picture() == wanted, (entry, then.__name__)


def test_no_death_leaves_a_moment_without_the_hook_that_was_there(tmp_path: Path) -> None:
    """Whatever call is the last one, git finds a hook: theirs, or ours with theirs behind it."""
    root = tmp_path / "repo"
    calls = dying.run_until(lambda: _again(root, _fresh).install(), 1 << 30)
    assert calls is not None
    step = 1 if os.environ.get("SHAPEUP_CRASH_FULL") else max(1, calls // SAMPLES)
    for entry in range(1, calls, step):
        place = _again(root, _fresh)
        dying.run_until(lambda place=place: place.install(), entry)  # type: ignore[misc]
        for hook, theirs in (("pre-commit", PRE_COMMIT), ("pre-push", PLAIN)):
            now = (place.hooks / hook).read_bytes()
            assert now == theirs or (place.hooks / f"{hook}.shapeupd-saved").read_bytes() == theirs


def _again(root: Path, prepare: Callable[[Path], Place]) -> Place:
    shutil.rmtree(root, ignore_errors=True)
    return prepare(root)


def _after(root: Path, prepare: Callable[[Path], Place], act: Callable[[Place], None]) -> dict[str, tuple[str, str]]:
    place = _again(root, prepare)
    act(place)
    return place.picture()
