"""The deadline under clocks that step, stop and start anew; the timers under what happens to threads. Source: targets 11, 31, rulings F4, F10."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from daemon.log import Log
from daemon.reconciler import Reconciler
from daemon.timekeeping import Timekeeping
from daemon.timers import Timers
from parsers.clock_anchor import Clocks
from parsers.settings import Settings

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
HOUR_S = 3600.0
PATIENCE_S = 30.0


class Machine:
    """A machine's clocks, moved by hand."""

    def __init__(self) -> None:
        self.wall, self.boot_s, self.monotonic_s, self.boot_id = START, 1000.0, 500.0, "boot-1"

    def clocks(self) -> Clocks:
        return Clocks(self.wall, self.boot_id, self.boot_s)

    def passes(self, seconds: float) -> None:
        """Time goes by."""
        self.wall += timedelta(seconds=seconds)
        self.boot_s += seconds
        self.monotonic_s += seconds

    def sleeps(self, seconds: float) -> None:
        """The machine is suspended: the monotonic clock stands still."""
        self.passes(seconds)
        self.monotonic_s -= seconds

    def steps(self, seconds: float) -> None:
        """Somebody sets the wall clock."""
        self.wall += timedelta(seconds=seconds)

    def boots(self, seconds: float) -> None:
        """The machine is off for so long, and starts."""
        self.passes(seconds)
        self.boot_id, self.boot_s, self.monotonic_s = "boot-2", 10.0, 10.0


class Watched(NamedTuple):
    """A run, the machine it is watched on, and what the log said."""

    root: Path
    machine: Machine
    start: Callable[[], Reconciler]

    def rows(self, name: str) -> list[dict[str, Any]]:
        path = self.root / ".shapeup/cart" / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def statuses(self) -> list[str]:
        return [row["status"] for row in self.rows("breakers.jsonl")]

    def events(self, name: str) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in (self.root / ".shapeup/shapeupd.log").read_text().splitlines()]
        return [row for row in rows if row["event"] == name]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    machine, living = Machine(), []
    folder = tmp_path / ".shapeup/cart"
    folder.mkdir(parents=True)
    receipt = {"slug": "cart", "started_at": "2026-03-01T09:00:00.000Z", "config": {"wall_clock_budget_s": 2 * HOUR_S}}
    (folder / "receipt.json").write_text(json.dumps(receipt))
    log = Log(tmp_path / ".shapeup", lambda: machine.wall)

    def start() -> Reconciler:
        reconciler = Reconciler(
            tmp_path,
            Settings(),
            log,
            now=lambda: machine.wall,
            monotonic=lambda: machine.monotonic_s,
            clocks=machine.clocks,
        )
        living.append(reconciler)
        reconciler.mark([".shapeup/cart/receipt.json"])
        reconciler.settle()
        return reconciler

    yield Watched(tmp_path, machine, start)
    for reconciler in living:
        reconciler.close()
    log.close()


def test_the_deadline_is_kept_in_utc_with_both_clocks_beside_it(watched: Watched) -> None:
    watched.start()
    (anchor,) = [json.loads((watched.root / ".shapeup/cart/clock.json").read_text())]
    assert (anchor["boot_id"], anchor["boottime_s"], anchor["wall"]) == ("boot-1", 1000.0, "2026-03-01T09:00:00.000Z")
    assert (anchor["budget_s"], anchor["started_at"]) == (2 * HOUR_S, "2026-03-01T09:00:00.000Z")


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S, 30 * 365 * 86400.0])
def test_a_wall_clock_that_steps_trips_nothing_early_and_nothing_late(watched: Watched, step_s: float) -> None:
    reconciler = watched.start()
    watched.machine.passes(600)
    watched.machine.steps(step_s)
    reconciler.keep_time()
    assert watched.statuses() == []
    assert len(watched.events("clock.disagrees")) == 1
    watched.machine.passes(2 * HOUR_S - 600 - 1)
    reconciler.keep_time()
    assert watched.statuses() == ["warn"]
    watched.machine.passes(1)
    reconciler.keep_time()
    assert watched.statuses() == ["warn", "trip"]
    assert len(watched.events("clock.disagrees")) == 1  # said when it began


def test_a_clock_that_steps_back_lifts_no_trip(watched: Watched) -> None:
    reconciler = watched.start()
    watched.machine.passes(2 * HOUR_S)
    reconciler.keep_time()
    watched.machine.steps(-HOUR_S)
    watched.start()
    reconciler.keep_time()
    assert watched.statuses() == ["trip"]
    assert reconciler.runs()[0].breakers.standing()


def test_a_suspended_machine_trips_within_the_first_look_after_it_wakes(watched: Watched) -> None:
    reconciler = watched.start()
    watched.machine.sleeps(8 * HOUR_S)
    reconciler.keep_time()
    assert watched.statuses() == ["trip"]
    reconciler.keep_time()
    assert watched.statuses() == ["trip"]


def test_after_a_reboot_the_wall_clock_counts_and_a_clock_before_the_start_trips_nothing(watched: Watched) -> None:
    watched.start()
    watched.machine.boots(HOUR_S)
    reconciler = watched.start()
    assert watched.statuses() == []
    assert reconciler.time_due_s() == {"cart": 0.5 * HOUR_S}
    watched.machine.steps(-2 * HOUR_S)  # no battery: the clock starts long ago
    watched.start().keep_time()
    assert watched.statuses() == []
    assert "before the run's start" in watched.events("clock.disagrees")[-1]["note"]
    watched.machine.steps(3 * HOUR_S)  # and is set right
    reconciler.keep_time()
    assert watched.statuses() == ["trip"]


@pytest.mark.parametrize("edit", ["{", "{}", '{"run_id": "other"}', None])
def test_a_changed_note_of_the_clocks_changes_nothing_while_we_live(watched: Watched, edit: str | None) -> None:
    reconciler = watched.start()
    path = watched.root / ".shapeup/cart/clock.json"
    before = path.read_bytes()
    if edit is None:
        path.unlink()
    else:
        path.write_text(edit)
    reconciler.mark([".shapeup/cart/clock.json"])
    reconciler.settle()
    watched.machine.monotonic_s += 1  # a file that is gone counts once that has lasted
    reconciler.settle()
    assert path.read_bytes() == before
    assert watched.events("artifact.tampered")
    watched.machine.steps(HOUR_S)
    watched.machine.passes(2 * HOUR_S - 1)
    reconciler.keep_time()
    assert watched.statuses() == ["warn"]


def test_a_start_that_is_moved_to_later_counts_from_where_it_was(watched: Watched) -> None:
    reconciler = watched.start()
    path = watched.root / ".shapeup/cart/receipt.json"
    run_id = reconciler.runs()[0].state.run_id
    receipt = json.loads(path.read_text())
    path.write_text(json.dumps({**receipt, "run_id": run_id, "started_at": "2026-03-01T10:30:00.000Z"}))
    reconciler.mark([".shapeup/cart/receipt.json"])
    reconciler.settle()
    watched.machine.passes(2 * HOUR_S)
    reconciler.keep_time()
    assert watched.statuses() == ["trip"]
    assert "moved by hand" in watched.events("artifact.tampered")[0]["note"]


def test_a_run_that_another_reducer_holds_trips_as_soon_as_it_lets_go(watched: Watched) -> None:
    reconciler = watched.start()
    lock = watched.root / ".shapeup/cart/.ingest.lock"
    lock.mkdir()
    (lock / "owner.json").write_text(json.dumps({"pid": 1, "at": "2026-03-01T11:00:00.000Z", "host": "another"}))
    watched.machine.passes(2 * HOUR_S)
    reconciler.keep_time()
    assert watched.statuses() == []
    assert reconciler.time_due_s() == {}  # nothing spins meanwhile
    assert reconciler.due_s() is not None
    (lock / "owner.json").unlink()
    lock.rmdir()
    watched.machine.passes(0.02)
    reconciler.settle()
    assert watched.statuses() == ["trip"]


# --- timers ----------------------------------------------------------------------------------------------------------


def moment(ms: float) -> datetime:
    from daemon import clock

    return clock.now() + timedelta(milliseconds=ms)


def test_a_timer_rings_and_one_that_was_taken_back_does_not() -> None:
    rang = threading.Event()
    timers = Timers(rang.set)
    timers.arm("a", moment(10))
    timers.arm("a", None)
    timers.arm("b", moment(30))
    timers.keep_only({"c"})
    timers.arm("c", moment(20))
    assert rang.wait(PATIENCE_S)
    timers.close()
    assert not timers.is_alive()


def test_a_moment_long_past_rings_at_once() -> None:
    rang = threading.Event()
    timers = Timers(rang.set)
    timers.arm("a", moment(-86_400_000))
    assert rang.wait(PATIENCE_S)
    timers.close()


def test_a_dead_scheduler_is_found_at_the_next_look_and_its_timers_ring(tmp_path: Path, watched: Watched) -> None:
    rang = threading.Event()
    log = Log(tmp_path / "log", lambda: START)
    keeping = Timekeeping(watched.start(), rang.set, log)
    keeping.turn(0.0, has_settled=True)
    assert keeping.is_alive()
    keeping._timers._scheduler.shutdown(wait=False)  # type: ignore[union-attr]
    keeping._timers._thread.join(PATIENCE_S)  # type: ignore[union-attr]
    assert not keeping.is_alive()
    due_s = keeping.due_s(0.5)
    assert due_s is not None and due_s <= 1.0  # noqa: PT018
    keeping.turn(1.0, has_settled=False)
    assert keeping.is_alive()
    assert log.counters["daemon.recovered"] == 1
    keeping.close()
    log.close()


def test_a_scheduler_that_dies_again_and_again_misses_no_deadline() -> None:
    rang: list[int] = []
    heard = threading.Condition()
    timers = Timers(lambda: None)
    for number in range(25):

        def ring(number: int = number) -> None:
            with heard:
                rang.append(number)
                heard.notify_all()

        timers._ring = ring
        timers.arm("a", moment(15 if number % 2 else -5))
        timers._scheduler.shutdown(wait=False)
        timers._thread.join(PATIENCE_S)
        timers.revive()
        with heard:
            assert heard.wait_for(lambda number=number: number in rang, PATIENCE_S)  # type: ignore[misc]
        timers.arm("a", None)
    timers.close()


def test_nobody_is_woken_for_runs_without_a_deadline(tmp_path: Path) -> None:
    log = Log(tmp_path / ".shapeup", lambda: START)
    reconciler = Reconciler(tmp_path, Settings(), log)
    keeping = Timekeeping(reconciler, lambda: None, log)
    keeping.turn(0.0, has_settled=True)
    assert keeping.due_s(0.0) is None
    assert keeping._timers is None
    reconciler.close()
    log.close()
