"""A failed fsync: nothing more is promised, nothing is tried again, and the next start applies each fact once. Source: targets 9."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from daemon.exits import BUG
from daemon.journal import FsyncFailed
from tests.crash import small_run as small
from tests.crash.hearing import Hearing, Living, living


class BadDisk:
    """Every flush from the `good`-th on fails, as a disk that lost a write keeps failing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, good: int) -> None:
        self.calls = 0
        self._good = good
        self._real = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", self._flush)
        monkeypatch.setattr(os, "fsync", self._flush)

    def _flush(self, fd: int) -> None:
        self.calls += 1
        if self.calls > self._good:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._real(fd)


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """Three results that just landed."""
    root = tmp_path / "template"
    root.mkdir()
    small.make_run(root)
    small.put_batch(root)
    return root


def _wanted(template: Path, work: Path) -> dict[str, bytes]:
    root = small.copy_tree(template, work)
    small.settle(root)
    return small.tree_bytes(root)


def test_whichever_flush_fails_the_next_start_applies_each_result_once(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = _wanted(template, tmp_path / "calm")
    good = 0
    while True:
        root = small.copy_tree(template, tmp_path / "root")
        with monkeypatch.context() as patched:
            disk = BadDisk(patched, good)
            try:
                small.settle(root)
                break
            except FsyncFailed:
                assert disk.calls == good + 1, "a failed flush was tried again"
        small.settle(root)
        found = small.tree_bytes(root)
        assert not small.difference(found, wanted), f"flush {good + 1} failed:\n{small.difference(found, wanted)}"
        good += 1
    print(f"failed fsync: each of {good} flushes, all recovered")
    assert good > 5


@pytest.mark.parametrize("good", [0, 1, 2])
def test_a_daemon_whose_commit_is_not_confirmed_ends_and_its_successor_applies_once(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: int
) -> None:
    wanted = _wanted(template, tmp_path / "calm")
    root = small.copy_tree(template, tmp_path / "root")
    with monkeypatch.context() as patched:
        disk = BadDisk(patched, good)
        daemon = Living(root, Hearing())
        assert daemon.wait() == BUG
        assert disk.calls == good + 1
    assert daemon.hearing.of("daemon.error", "E-FSYNC")
    assert not daemon.hearing.of("result.applied")
    with living(root):
        pass
    assert small.tree_bytes(root) == wanted


def test_a_daemon_whose_last_checkpoint_is_not_confirmed_ends_as_failed(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = _wanted(template, tmp_path / "calm")
    root = small.copy_tree(template, tmp_path / "root")
    with monkeypatch.context() as patched:
        disk = BadDisk(patched, 4)
        daemon = Living(root, Hearing())
        daemon.hearing.wait_for("daemon.ready")
        assert daemon.end() == BUG
        assert disk.calls == 5
    assert daemon.hearing.of("daemon.error", "E-FSYNC")
    with living(root):
        pass
    assert small.tree_bytes(root) == wanted


def _flushes(root: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many flushes it takes until what just landed is committed and carried out."""
    with monkeypatch.context() as patched:
        disk = BadDisk(patched, good=1 << 30)
        small.settle(root, checkpoints=False)
        return disk.calls


def test_a_commit_takes_the_same_flushes_for_one_result_and_for_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Source: targets 8: at most 3 on one result's way to the commit point, at most 0.2 per result of a burst."""
    small.make_run(tmp_path)
    counts = []
    for size in (1, 1, 500):
        stems = [f"b{size}-r{len(counts)}-a{number}" for number in range(size)]
        for stem in stems:
            small.put_order(tmp_path, stem)
            small.put_result(tmp_path, stem, small.build_result(stem, [1]))
        counts.append(_flushes(tmp_path, monkeypatch))
    first, later, burst = counts
    print(
        f"flushes: {first} for a run's first result, {later} for a later one, {burst / 500:.3f} per result in a burst"
    )
    assert first <= 4, "three to the commit point, one for the planner's index"
    assert later == 1, "the commit point; the index says what it said"
    assert burst <= 0.2 * 500
