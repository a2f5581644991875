"""kill -9 of a real `shapeupd run`, again and again, while results land: the state of a calm run, each fact once. Source: targets 6, 10."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from daemon.journal import Journal
from daemon.place import Place
from tests.crash import small_run as small

REPOSITORY = Path(__file__).resolve().parents[2]
KILLS = 500 if small.IS_FULL else 15
STARTING_S = 0.4  # a start takes about that long
WORKING_S = 0.02  # and a landing less than that
_TIMES = re.compile(rb'"(?:at|ingested_at)":"[^"]*"|"duration_ms":-?\d+|20\d\d-\d\d-\d\d')


def _masked(root: Path) -> dict[str, bytes]:
    """The trees without what tells the time, and without the journal, which hashes what tells the time."""
    skipped = ("/journal/", "/.ingest.lock/", "daemon.lock", "daemon.json")
    trees = small.tree_bytes(root).items()
    return {path: _TIMES.sub(b"-", data) for path, data in trees if not any(part in path for part in skipped)}


@contextmanager
def _started(root: Path) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "daemon", "--repo", str(root), "run", "--log-format", "json"]
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(root.parent), "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(words, cwd=root, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _wait_for(process: subprocess.Popen[str], event: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        row = json.loads(line)
        assert row.get("code") != "E-BUG", row
        if row["event"] == event:
            return
    raise AssertionError(f"it ended without {event}")


def _live_on(process: subprocess.Popen[str], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return
    raise AssertionError("it ended by itself")


class Landings:
    """Results that land one by one, in the order their orders were compiled."""

    def __init__(self, root: Path, count: int) -> None:
        self._root = root
        self._left = iter([f"b{number}-r1-a1" for number in range(count)])
        for number in range(count):
            small.put_order(root, f"b{number}-r1-a1", minute=number)

    def land(self, count: int) -> None:
        """The next ones, each written beside and renamed into place."""
        for stem in islice(self._left, count):
            number = int(stem[1:].split("-")[0])
            tasks = [number % 3 + 1, (number + 1) % 3 + 1]
            small.land_result(self._root, stem, small.build_result(stem, tasks, discoveries=number % 2))


def _age_lock(root: Path) -> None:
    """As if half a minute had passed: only then may the lock that a dead process left be broken."""
    lock = root / small.RUN / ".ingest.lock"
    if lock.exists():
        os.utime(lock, (1, 1))


def test_kills_while_results_land_end_in_the_state_of_a_calm_run_with_each_fact_once(tmp_path: Path) -> None:
    root, calm = tmp_path / "root", tmp_path / "calm"
    chance = random.Random(11)
    for tree in (root, calm):
        tree.mkdir()
        small.make_run(tree)
    count = KILLS * 2
    landings = Landings(root, count)
    Landings(calm, count).land(count)
    small.settle(calm)
    for _ in range(KILLS):
        _age_lock(root)
        with _started(root) as process:
            if chance.random() < 0.25:
                _live_on(process, chance.uniform(0, STARTING_S))
            else:
                _wait_for(process, "daemon.ready")
                landings.land(chance.randint(1, 3))
                _live_on(process, chance.uniform(0, WORKING_S))
            process.send_signal(signal.SIGKILL)
    landings.land(count)
    _age_lock(root)
    with _started(root) as process:
        _wait_for(process, "daemon.ready")
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    found, wanted = _masked(root), _masked(calm)
    assert not small.difference(found, wanted), small.difference(found, wanted)
    _assert_once(root, count)
    print(f"kill -9: {KILLS} kills of a real daemon, {count} results, each applied once")


def _assert_once(root: Path, count: int) -> None:
    for path in (small.RECORD, small.LEGS):
        orders = Counter(json.loads(line)["order_id"] for line in (root / path).read_bytes().splitlines())
        assert len(orders) == count
        assert set(orders.values()) == {1}
    causes = Counter(entry.cause.order_id for entry in Journal(root, small.SLUG).entries(heal=False))
    assert len(causes) == count
    assert set(causes.values()) == {1}


def test_the_start_after_a_kill_is_not_kept_out_and_a_second_daemon_is(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    small.make_run(root)
    with _started(root) as first:
        _wait_for(first, "daemon.ready")
        first.send_signal(signal.SIGKILL)
    with _started(root) as second:
        _wait_for(second, "daemon.ready")
        with _started(root) as third:
            assert third.wait() == 7
    assert Place(root, None).lock.exists()
