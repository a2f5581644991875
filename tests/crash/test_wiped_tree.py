"""A wiped `.shapeup/` under a live daemon: it starts from nothing, says so, and what lands then is new. Source: ruling L4."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from daemon import journal
from daemon.once import settle_all
from tests.crash import small_run as small
from tests.crash.hearing import Living, living

STEM = "outbox-r1-a1"


def _make(root: Path) -> None:
    """A run into which one result is renamed last."""
    small.make_run(root)
    small.put_order(root, STEM)
    small.land_result(root, STEM, small.build_result(STEM, [1, 2], discoveries=1))


def _wipe(root: Path, folder: str = ".shapeup") -> None:
    """Gone at once, as `git stash -u` and `rm -rf` never are: so no half-wiped tree is put to the test by chance."""
    os.rename(root / folder, root.parent / "wiped")
    shutil.rmtree(root.parent / "wiped")


def _facts(root: Path) -> dict[str, bytes]:
    return {path: data for path, data in small.tree_bytes(root).items() if "daemon." not in path}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty place."""
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def wanted(tmp_path: Path) -> dict[str, bytes]:
    """What a calm first run makes of it."""
    calm = tmp_path / "calm"
    calm.mkdir()
    _make(calm)
    small.settle(calm)
    return small.tree_bytes(calm)


def _assert_starts_anew(daemon: Living, root: Path, wanted: dict[str, bytes], applied: int) -> None:
    rows = daemon.hearing.wait_for("result.applied", count=applied)
    assert rows[-1]["subject"] == f"{small.SLUG}/{STEM}"
    assert daemon.end() == 0
    assert not small.difference(_facts(root), wanted)
    assert any("nothing" in row.get("note", "") for row in daemon.hearing.of("daemon.recovered"))
    assert [row["error"] for row in daemon.hearing.of("daemon.error")] == []


@pytest.mark.parametrize("folder", [".shapeup", small.RUN])
def test_results_put_again_after_a_wipe_are_applied_again(folder: str, root: Path, wanted: dict[str, bytes]) -> None:
    _make(root)
    with living(root) as daemon:
        _wipe(root, folder)
        _make(root)
        _assert_starts_anew(daemon, root, wanted, applied=2)


def test_a_daemon_that_had_only_read_the_journal_starts_anew_as_well(root: Path, wanted: dict[str, bytes]) -> None:
    _make(root)
    small.settle(root)
    with living(root) as daemon:
        assert not daemon.hearing.of("result.applied")
        _wipe(root)
        _make(root)
        _assert_starts_anew(daemon, root, wanted, applied=1)


def test_a_wipe_between_two_segments_of_the_journal_is_seen(
    root: Path, wanted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 100)
    _make(root)
    reconciler = small.reconciler_of(root)
    settle_all(reconciler, root)
    reconciler.checkpoint()
    _wipe(root)
    _make(root)
    settle_all(reconciler, root)
    reconciler.checkpoint()
    reconciler.close()
    assert not small.difference(_facts(root), wanted)


def test_a_wipe_that_nothing_follows_is_no_error(root: Path) -> None:
    _make(root)
    with living(root) as daemon:
        _wipe(root)
        daemon.service.watcher.rescan()
        daemon.service.stop()
        assert daemon.wait() == 0
        assert [row["error"] for row in daemon.hearing.of("daemon.error")] == []


def test_a_journal_that_alone_is_removed_makes_nothing_happen_twice(root: Path) -> None:
    _make(root)
    with living(root) as daemon:
        before = {path: data for path, data in _facts(root).items() if "/journal/" not in path}
        _wipe(root, f"{small.RUN}/journal")
        small.put_order(root, "later-r1-a1", minute=20)
        small.land_result(root, "later-r1-a1", {"schema_version": 1})
        daemon.hearing.wait_for("result.rejected")
        assert daemon.end() == 0
        found = _facts(root)
        assert len(daemon.hearing.of("result.applied")) == 1
    for path in (small.DISCOVERIES, small.LEGS, small.BOARD, small.task_path(1), small.task_path(2)):
        assert found[path] == before[path]
