"""The daemon under a service manager: when it is ready, alive, wedged, and ended. Source: targets 32, 11, design §6."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import living
from tests.e2e.living import SLUG, Daemon, SmallRun
from tests.e2e.manager import service_manager

WATCHDOG_S = 1.5

# A daemon whose loop stands still once the file is there, while every other thread of it goes on.
WEDGED = """
import os, sys, threading
from daemon.service import Service

turn = Service._turn

def wedge(self):
    if os.path.exists({path!r}):
        threading.Event().wait()
    turn(self)

Service._turn = wedge
from daemon.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def run(tmp_path: Path) -> SmallRun:
    return SmallRun(tmp_path / "repo", with_receipt=True)


def land(run: SmallRun, number: int) -> str:
    """One order with its result; the order's stem."""
    stem = f"core{number}-r1-a1"
    run.order(stem)
    run.result(stem, "TASK-1", criteria=("adds an item",))
    return stem


def test_ready_is_said_after_the_first_full_reconcile_and_stopping_before_the_end(
    run: SmallRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    stems = [land(run, number) for number in range(5)]
    with service_manager(monkeypatch, WATCHDOG_S) as manager:
        daemon = Daemon(run.root)
        try:
            manager.wait_for("READY=1")
            applied = {row["order_id"] for row in run.rows("receipts/ingest.jsonl") if row["outcome"] == "applied"}
            assert applied == {f"{SLUG}/{stem}" for stem in stems}
            manager.wait_for("WATCHDOG=1", count=3)
            assert daemon.stop(signal.SIGTERM) == 0
            manager.wait_for("STOPPING=1")
        finally:
            daemon.stop(signal.SIGKILL)
    assert manager.said.count("READY=1") == 1
    assert manager.said[0] == "READY=1"
    assert "STATUS=stopping: SIGTERM" in manager.said


def test_two_repositories_in_one_process_are_ready_once(run: SmallRun, monkeypatch: pytest.MonkeyPatch) -> None:
    other = SmallRun(run.root.parent / "other")
    with service_manager(monkeypatch, WATCHDOG_S) as manager:
        daemon = Daemon(run.root, other.root)
        try:
            manager.wait_for("READY=1")
            assert len(daemon.events("daemon.ready")) == 2 or daemon.wait_for("daemon.ready", count=2)
            manager.wait_for("WATCHDOG=1", count=2)
        finally:
            daemon.stop(signal.SIGKILL)
    assert manager.said.count("READY=1") == 1


def test_without_a_manager_nothing_is_different(run: SmallRun) -> None:
    with living.daemon(run.root) as daemon:
        assert daemon.sync()["rejected"] == 0
        assert daemon.stop() == 0


def test_no_child_of_the_daemon_may_speak_to_the_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git, found first on the PATH, writes down what it was given."""
    from tests.hooks.history import History

    repo = History(tmp_path / "repo")
    repo.commit("one", a="1\n")
    run = SmallRun(repo.root, with_receipt=True)
    folder, noted = tmp_path / "bin", tmp_path / "given-by"
    folder.mkdir()
    path = os.environ["PATH"]
    (folder / "git").write_text(f'#!/bin/sh\nenv >>"{noted}.$PPID"\nPATH="{path}" exec git "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{path}")
    with service_manager(monkeypatch, WATCHDOG_S) as manager:
        daemon = Daemon(repo.root)
        try:
            manager.wait_for("READY=1")
            run.order("core-r1-a1", substrate={"allowed": ["src/**"], "shared": [], "append_only": [], "frozen": []})
            daemon.sync()
            repo.commit("two", b="2\n")
            daemon.wait_for("commit.bypassed")
        finally:
            daemon.stop(signal.SIGKILL)
    given = Path(f"{noted}.{daemon.process.pid}").read_text()
    names = {line.partition("=")[0] for line in given.splitlines()}
    assert "PATH" in names
    assert not names & {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}


def stop_process(daemon: Daemon, wedge: Path) -> None:
    daemon.process.send_signal(signal.SIGSTOP)


def block_loop(daemon: Daemon, wedge: Path) -> None:
    wedge.touch()


def end_wedged(daemon: Daemon) -> int:
    """What systemd does when the watchdog's time has run out: SIGABRT, and SIGCONT so that a stopped process gets it."""
    assert daemon.process.poll() is None, "it was to be wedged, not dead"
    daemon.process.send_signal(signal.SIGABRT)
    daemon.process.send_signal(signal.SIGCONT)
    return daemon.process.wait(living.PATIENCE_S)


@pytest.mark.parametrize("wedge", [stop_process, block_loop])
def test_a_wedged_loop_is_ended_and_nothing_that_landed_is_lost_or_done_twice(
    run: SmallRun, wedge: Callable[[Daemon, Path], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "wedge"
    monkeypatch.setattr(living, "COMMAND", (sys.executable, "-I", "-c", WEDGED.format(path=os.fspath(file))))
    stems = [land(run, 0)]
    with service_manager(monkeypatch, WATCHDOG_S) as manager:
        daemon = Daemon(run.root)
        try:
            manager.wait_for("READY=1")
            stems.append(land(run, 1))
            daemon.wait_for("result.applied", f"{SLUG}/{stems[1]}")
            manager.wait_for("WATCHDOG=1", count=2)
            wedge(daemon, file)
            manager.wait_for_silence()
            stems += [land(run, number) for number in range(2, 12)]
            assert len(run.rows("receipts/ingest.jsonl")) == 2
            assert end_wedged(daemon) == -signal.SIGABRT
        finally:
            daemon.stop(signal.SIGKILL)
        file.unlink(missing_ok=True)
        again = Daemon(run.root)
        try:
            manager.wait_for("READY=1")
            again.sync()
            manager.wait_for("WATCHDOG=1", count=2)
            assert again.stop() == 0
        finally:
            again.stop(signal.SIGKILL)
    rows = [(row["order_id"], row["outcome"]) for row in run.rows("receipts/ingest.jsonl")]
    assert sorted(rows) == sorted((f"{SLUG}/{stem}", "applied") for stem in stems)
    text = run.text("tasks/TASK-1.md")
    assert [text.count(f"({SLUG}/{stem})") for stem in stems] == [1] * len(stems)
    assert sorted(leg["order_id"] for leg in run.rows("legs.jsonl")) == sorted(f"{SLUG}/{stem}" for stem in stems)
