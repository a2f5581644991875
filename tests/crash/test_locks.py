"""The run's `.ingest.lock`, honoured both ways: no two reducers write at once, and only the dead lose theirs. Source: protocol §4.2, targets 10."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from daemon.ingest_lock import THIS_PROCESS, IngestLock
from daemon.reconciler import Reconciler
from daemon.scan import scan
from daemon.store import Store
from parsers.settings import Settings
from tests.crash import small_run as small
from tests.crash.hearing import Hearing, living, settle_for_a_while, stepping

LOCK = f"{small.RUN}/.ingest.lock"
YOUNG, OLD = timedelta(milliseconds=29_900), timedelta(milliseconds=30_100)
SLEEPER = "import sys; print(flush=True); sys.stdin.read()"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run with one result to apply."""
    small.make_run(tmp_path)
    small.put_order(tmp_path, "outbox-r1-a1")
    small.put_result(tmp_path, "outbox-r1-a1", small.build_result("outbox-r1-a1", [1]))
    return tmp_path


@pytest.fixture
def living_pid() -> Iterator[int]:
    """A process of somebody else that lives."""
    with subprocess.Popen([sys.executable, "-c", SLEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


@pytest.fixture
def dead_pid() -> int:
    """The pid of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def _lock(root: Path, owner: object, age: timedelta) -> Path:
    """A lock as another reducer makes it; `owner` as JSON, as bytes, or None for none."""
    lock = root / LOCK
    lock.mkdir()
    if owner is not None:
        (lock / "owner.json").write_bytes(owner if isinstance(owner, bytes) else json.dumps(owner).encode())
    since = (small.NOW - age).timestamp()
    os.utime(lock, (since, since))
    return lock


def _take(root: Path) -> bool:
    return IngestLock(root, small.SLUG, lambda: small.NOW).take()


def test_a_lock_of_the_living_is_never_broken_however_old(root: Path, living_pid: int) -> None:
    _lock(root, {"pid": living_pid, "at": "2001-01-01T00:00:00Z"}, timedelta(days=400))
    assert not _take(root)


def test_a_lock_of_the_dead_is_broken_once_it_is_older_than_half_a_minute(root: Path, dead_pid: int) -> None:
    lock = _lock(root, {"pid": dead_pid}, YOUNG)
    assert not _take(root)
    since = (small.NOW - OLD).timestamp()
    os.utime(lock, (since, since))
    assert _take(root)
    assert json.loads((lock / "owner.json").read_bytes())["pid"] == os.getpid()


@pytest.mark.parametrize("owner", [None, b"", b"garbage", b"[]", {"pid": "x"}, {"pid": -1}, {"pid": True}, {"pid": 0}])
def test_a_lock_that_names_nobody_is_broken_by_age_alone(root: Path, owner: object) -> None:
    _lock(root, owner, OLD)
    assert _take(root)


def test_a_young_lock_that_names_nobody_stands(root: Path) -> None:
    _lock(root, None, YOUNG)
    assert not _take(root)


def test_a_lock_of_another_host_is_never_broken(root: Path, dead_pid: int) -> None:
    _lock(root, {"pid": dead_pid, "host": f"not-{socket.gethostname()}"}, timedelta(days=400))
    assert not _take(root)


def test_a_process_that_we_may_not_signal_counts_as_alive(
    root: Path, dead_pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int, signal: int) -> None:
        raise PermissionError

    _lock(root, {"pid": dead_pid}, OLD)
    monkeypatch.setattr(os, "kill", refuse)
    assert not _take(root)


def test_a_lock_that_changed_hands_while_it_was_judged_stands(
    root: Path, dead_pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = _lock(root, {"pid": dead_pid}, OLD)
    real = os.kill

    def look(pid: int, signal: int) -> None:
        (lock / "owner.json").write_text(json.dumps({"pid": os.getpid(), "at": "now"}))
        real(pid, signal)

    monkeypatch.setattr(os, "kill", look)
    assert not _take(root)
    assert lock.exists()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_folder_in_the_place_of_the_lock_stands_and_is_not_followed(root: Path, kind: str) -> None:
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "owner.json").write_text("{}")
    if kind == "link":
        (root / LOCK).symlink_to(elsewhere)
    else:
        (root / LOCK).write_text("mine")
    os.utime(root / LOCK, (1, 1), follow_symlinks=False)
    assert not _take(root)
    assert (elsewhere / "owner.json").exists()


def test_nothing_is_written_while_another_holds_the_lock_and_all_is_once_it_lets_go(
    root: Path, living_pid: int
) -> None:
    lock = _lock(root, {"pid": living_pid}, YOUNG)
    before = small.tree_bytes(root)
    hearing = Hearing()
    reconciler = Reconciler(root, Settings(), hearing.log(root), now=lambda: small.NOW, monotonic=stepping())
    reconciler.mark(scan(root))
    settle_for_a_while(reconciler)
    assert small.tree_bytes(root) == before
    assert hearing.of("daemon.error", "E-LOCKED")
    (lock / "owner.json").unlink()
    lock.rmdir()
    settle_for_a_while(reconciler)
    reconciler.close()
    assert hearing.of("result.applied")
    assert not lock.exists()


def test_a_daemon_waits_for_a_lock_and_goes_on_when_it_is_gone(root: Path, living_pid: int) -> None:
    lock = _lock(root, {"pid": living_pid}, YOUNG)
    with living(root) as daemon:
        assert not daemon.hearing.of("result.applied")
        (lock / "owner.json").unlink()
        lock.rmdir()
        daemon.hearing.wait_for("result.applied")


def test_while_we_write_nobody_else_gets_the_lock(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Store.commit
    seen: list[object] = []

    def commit(self: Store, *args: object) -> None:
        with pytest.raises(FileExistsError):
            (root / LOCK).mkdir()
        seen.append(json.loads((root / LOCK / "owner.json").read_bytes()))
        real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "commit", commit)
    small.settle(root)
    (owner,) = seen
    own = {"pid": os.getpid(), "at": "2036-04-05T06:07:08.090Z", "host": socket.gethostname(), "by": THIS_PROCESS}
    assert owner == own
    assert not (root / LOCK).exists()


def test_a_lock_that_a_killed_shapeupd_left_on_this_host_holds_nobody_up(root: Path) -> None:
    """It is minutes young and its pid may live again, in a container as ours; but whoever holds the repository is alone."""
    (root / LOCK).mkdir()
    left = {"pid": os.getpid(), "at": "2036-04-05T06:07:08.090Z", "host": socket.gethostname(), "by": "shapeupd-00"}
    (root / LOCK / "owner.json").write_text(json.dumps(left))
    small.settle(root)
    assert not (root / LOCK).exists()


def test_the_lock_is_given_back_whatever_goes_wrong(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Store, *args: object) -> None:
        raise OSError(5, "no")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "commit", fail)
        reconciler = Reconciler(root, Settings(), Hearing().log(root), now=lambda: small.NOW, monotonic=stepping())
        reconciler.mark(scan(root))
        reconciler.settle()
    assert not (root / LOCK).exists()
    reconciler.close()
