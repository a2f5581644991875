"""No ping without a proof: each part that dies keeps the next ping from being sent. Source: targets 32, hazards A."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from daemon import clock
from daemon.liveness import Liveness
from daemon.log import Log
from daemon.notify import Manager
from daemon.watcher import Watcher
from tests.daemon.watching import Recorder, make_repo, watching

PING_S = 10.0


class Ear(Manager):
    """A manager that writes down what it hears."""

    def __init__(self) -> None:
        super().__init__(None, PING_S)
        self.said: list[str] = []
        self.is_deaf = False

    def tell(self, *lines: str) -> bool:
        self.said += lines
        return not self.is_deaf

    @property
    def pings(self) -> int:
        return self.said.count("WATCHDOG=1")


class Looked:
    """A liveness whose service is ready, and the time it is told."""

    def __init__(self, root: Path, watcher: Watcher, recorder: Recorder) -> None:
        self.watcher, self.recorder = watcher, recorder
        self.ear = Ear()
        self.is_timing = True
        self.log = Log(root / ".shapeup", clock.now)
        self.liveness = Liveness(watcher, self.ear.join(), self.log, lambda: self.is_timing)
        self.liveness.ready(0.0, "ready")

    def turn(self, now: float) -> int:
        """A turn at this time, and a second one when the cookie is back; how many pings were sent so far."""
        before = self.recorder.wakes
        self.liveness.turn(now)
        if self.liveness._came_back is not None and self.watcher._listener and self.watcher.alive:
            self.recorder.wait(lambda: self.recorder.wakes > before, "the cookie")
            self.liveness.turn(now)
        return self.ear.pings


@contextmanager
def looked(root: Path, **settings: Any) -> Iterator[Looked]:
    with watching(make_repo(root), **settings) as (watcher, recorder):
        recorder.wait(watcher.send_cookie(), "the self-test")
        held = Looked(root, watcher, recorder)
        yield held
        held.log.close()


def test_it_pings_at_once_and_then_at_the_interval(tmp_path: Path) -> None:
    with looked(tmp_path) as living:
        assert living.liveness.due_s(-1.0) == 1.0
        assert living.turn(0.0) == 1
        assert living.liveness.due_s(4.0) == 6.0
        assert living.turn(PING_S - 0.1) == 1
        assert living.turn(PING_S) == 2
        assert living.turn(PING_S * 2 + 5) == 3
        assert living.turn(PING_S * 3) == 3


def kill_emitter(living: Looked) -> None:
    listener = living.watcher._listener
    assert listener is not None
    emitter = listener._threads[2]
    emitter.stop()  # type: ignore[attr-defined]
    emitter.join(30)


def stop_timers(living: Looked) -> None:
    living.is_timing = False


def lose_cookie(living: Looked) -> None:
    living.watcher._canary = ".shapeup/.elsewhere/cookie"  # nothing can be made there, and no look has followed


@pytest.mark.parametrize("breaks", [kill_emitter, stop_timers, lose_cookie])
def test_each_dead_part_keeps_the_ping_back_and_is_named_once(tmp_path: Path, breaks: Callable[[Looked], None]) -> None:
    with looked(tmp_path) as living:
        assert living.turn(0.0) == 1
        breaks(living)
        for now in (10.0, 12.0, 15.0, 18.0, 30.0):
            living.liveness.turn(now)
        assert living.ear.pings == 1
        named = [line for line in living.ear.said if line.startswith("STATUS=no ping")]
        assert len(named) == 1
        assert living.log.counters["daemon.error"] == 1
        assert living.liveness.due_s(30.0) == 1.0


def test_a_watch_that_is_armed_anew_proves_itself_again(tmp_path: Path) -> None:
    with looked(tmp_path) as living:
        kill_emitter(living)
        assert living.turn(0.0) == 0
        living.watcher.tick(time.monotonic())
        living.recorder.wait(lambda: living.turn(1.0) == 1, "a ping")


def test_while_it_polls_a_look_at_everything_is_the_proof(tmp_path: Path) -> None:
    with watching(make_repo(tmp_path), poll="on") as (watcher, recorder):
        living = Looked(tmp_path, watcher, recorder)
        assert living.turn(0.0) == 0
        watcher.rescan()
        assert living.turn(0.5) == 1
        assert living.turn(PING_S + 0.5) == 1
        living.log.close()


def test_events_that_stop_coming_are_replaced_by_polling_and_no_death(tmp_path: Path) -> None:
    """The kernel goes silent (as on some mounts): a restart would not help, so it must not be wished for."""
    with looked(tmp_path) as living:
        listener = living.watcher._listener
        assert listener is not None
        listener._hear = lambda _: None
        living.liveness.turn(0.0)
        living.watcher.tick(100.0)
        living.liveness.turn(100.0)
        assert living.ear.pings == 0
        living.watcher.tick(103.0)
        assert living.watcher.degraded
        living.watcher.rescan()
        assert living.turn(104.0) == 1


def test_a_manager_that_takes_no_message_is_told_again(tmp_path: Path) -> None:
    with looked(tmp_path) as living:
        living.ear.is_deaf = True
        living.turn(0.0)
        living.ear.is_deaf = False
        before = living.ear.pings
        assert living.turn(1.0) == before + 1
        assert living.turn(2.0) == before + 1


def test_ready_is_said_until_it_is_heard(tmp_path: Path) -> None:
    with looked(tmp_path) as living:
        living.ear.said.clear()
        living.ear.ping_s, living.ear.is_deaf = None, True
        living.liveness.ready(0.0, "ready")
        assert living.liveness.due_s(0.0) == 1.0
        living.liveness.turn(1.0)
        living.ear.is_deaf = False
        living.liveness.turn(2.0)
        living.liveness.turn(3.0)
        assert living.ear.said.count("READY=1") == 3
        assert living.liveness.due_s(3.0) is None


def test_nobody_who_waits_means_no_cookie_and_no_wakeup(tmp_path: Path) -> None:
    with looked(tmp_path) as living:
        silent = Liveness(living.watcher, Manager(None, None).join(), living.log)
        silent.ready(0.0, "ready")
        assert silent.due_s(0.0) is None
        silent.turn(100.0)
        assert silent._came_back is None


def test_after_the_end_nothing_is_proven(tmp_path: Path) -> None:
    with looked(tmp_path) as living:
        living.liveness.stopping("SIGTERM")
        assert living.turn(1000.0) == 0
        assert living.ear.said[-2:] == ["STOPPING=1", "STATUS=stopping: SIGTERM"]
