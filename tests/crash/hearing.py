"""Hears what a daemon logs, even where its log file cannot be written, and runs one in a thread."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from daemon.log import Console, Log
from daemon.place import Place
from daemon.reconciler import Reconciler
from daemon.service import Service
from parsers.settings import Settings
from tests.crash.small_run import NOW

PATIENCE_S = 30.0


class Hearing(io.TextIOBase):
    """A console that collects the rows of the log."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.rows: list[dict[str, Any]] = []

    def write(self, text: str) -> int:
        with self.changed:
            self.rows.append(json.loads(text))
            self.changed.notify_all()
        return len(text)

    def log(self, root: Path) -> Log:
        """A log that is heard here."""
        return Log(root / ".shapeup", lambda: NOW, console=Console(self, as_json=True, color=False))

    def of(self, event: str, code: str | None = None) -> list[dict[str, Any]]:
        """The rows of one event (and code) so far."""
        with self.changed:
            return [row for row in self.rows if row["event"] == event and code in (None, row.get("code"))]

    def wait_for(self, event: str, *, count: int = 1, code: str | None = None) -> list[dict[str, Any]]:
        """The rows of one event (and code), once there are that many."""
        with self.changed:
            there = self.changed.wait_for(lambda: len(self.of(event, code)) >= count, PATIENCE_S)
            assert there, (
                f"no {count} x {event} {code}: {[(r['event'], r.get('code'), r.get('error')) for r in self.rows]}"
            )
            return self.of(event, code)


class Living:
    """A service in a thread. `status` is None while it runs."""

    def __init__(self, root: Path, hearing: Hearing) -> None:
        self.hearing = hearing
        self.status: int | None = None
        self.service = Service(Place(root, None), Settings(), hearing.log(root), now=lambda: NOW)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.status = self.service.run()

    def end(self) -> int | None:
        """Ask it to stop; its exit status, None where it raised instead."""
        self.service.stop()
        return self.wait()

    def wait(self) -> int | None:
        """Wait until it ends by itself."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self.status


@contextmanager
def living(root: Path) -> Iterator[Living]:
    """A service that has said `daemon.ready`, stopped in the end."""
    daemon = Living(root, Hearing())
    try:
        daemon.hearing.wait_for("daemon.ready")
        yield daemon
    finally:
        daemon.end()


def stepping(seconds: float = 10.0) -> Callable[[], float]:
    """A monotonic clock on which that much passes between any two looks, so that no pause is waited for."""
    at = [0.0]

    def look() -> float:
        at[0] += seconds
        return at[0]

    return look


def settle_for_a_while(reconciler: Reconciler, turns: int = 12) -> None:
    """As many turns as it takes while something can be done, and a few when nothing can."""
    for _ in range(turns):
        if reconciler.is_quiet():
            return
        reconciler.settle()
