"""A real watcher under a test's eye: what it marked, what it said, and a loop that ticks it as the daemon does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon.watcher import Watcher

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE_S = 30.0
MAX_QUEUED = Path("/proc/sys/fs/inotify/max_queued_events")

SLEEPER = """
import json, sys, threading, time
from pathlib import Path
from daemon.watcher import Watcher

root, wanted, awaited = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
changed, marks, wakes, notices = threading.Condition(), set(), [0], []

def mark(paths):
    with changed:
        marks.update(paths)
        changed.notify_all()

def wake():
    with changed:
        wakes[0] += 1
        changed.notify_all()

watcher = Watcher(root, mark, lambda event, fields: notices.append([event, fields]), wake=wake)
watcher.start()
print("ready", flush=True)
answered, until = 0, time.monotonic() + 60
while (len(marks) < wanted or awaited not in dict(notices)) and time.monotonic() < until:
    watcher.tick(time.monotonic())
    with changed:
        changed.wait_for(lambda: wakes[0] > answered, watcher.due_s(time.monotonic()))
        answered = wakes[0]
watcher.tick(time.monotonic())
print(json.dumps({"marks": len(marks), "notices": notices, "counters": watcher.counters, "degraded": watcher.degraded,
                  "rescanned": len(watcher.rescan() - marks)}), flush=True)
watcher.stop()
"""


class Recorder:
    """Collects what the watcher says, and lets a test wait for it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.marks: set[str] = set()
        self.batches: list[set[str]] = []
        self.notices: list[tuple[str, dict[str, object]]] = []
        self.wakes = 0
        self.fail: BaseException | None = None

    def mark(self, paths: Iterable[str]) -> None:
        with self.changed:
            failure, self.fail = self.fail, None
            if failure is not None:
                self.changed.notify_all()
                raise failure
            self.batches.append(set(paths))
            self.marks |= self.batches[-1]
            self.changed.notify_all()

    def notice(self, event: str, fields: dict[str, object]) -> None:
        with self.changed:
            self.notices.append((event, fields))
            self.changed.notify_all()

    def wake(self) -> None:
        with self.changed:
            self.wakes += 1
            self.changed.notify_all()

    def clear(self) -> None:
        with self.changed:
            self.marks, self.batches = set(), []

    def wait(self, claim: Callable[[], bool], what: object = "the claim") -> None:
        with self.changed:
            assert self.changed.wait_for(claim, PATIENCE_S), f"waited {PATIENCE_S} s for {what}"

    def wait_for(self, paths: Iterable[str]) -> None:
        wanted = set(paths)
        with self.changed:
            held = self.changed.wait_for(lambda: wanted <= self.marks, PATIENCE_S)
            assert held, f"{len(wanted - self.marks)} of {len(wanted)} never marked: {sorted(wanted - self.marks)[:5]}"

    def named(self, event: str) -> list[dict[str, object]]:
        return [fields for name, fields in self.notices if name == event]


@contextmanager
def watching(root: Path, **settings: Any) -> Iterator[tuple[Watcher, Recorder]]:
    """A started watcher that nobody ticks: what gets marked was marked by events alone."""
    recorder = Recorder()
    watcher = Watcher(root, recorder.mark, recorder.notice, wake=recorder.wake, **settings)
    watcher.start()
    try:
        yield watcher, recorder
    finally:
        watcher.stop()


@contextmanager
def ticking(root: Path, **settings: Any) -> Iterator[tuple[Watcher, Recorder]]:
    """A watcher that is ticked the way the daemon's loop does it."""
    with watching(root, **settings) as (watcher, recorder):
        done, woken = threading.Event(), threading.Event()
        watcher._wake = woken.set

        def loop() -> None:
            while not done.is_set():
                watcher.tick(time.monotonic())
                woken.wait(watcher.due_s(time.monotonic()))
                woken.clear()

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            yield watcher, recorder
        finally:
            done.set()
            woken.set()
            thread.join()


def write(root: Path, path: str, text: str = "x") -> str:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return path


def make_repo(root: Path) -> Path:
    (root / ".shapeup/checkout/results").mkdir(parents=True)
    (root / "shapeup/checkout").mkdir(parents=True)
    return root
