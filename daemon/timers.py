"""Timers that wake the loop at a moment: APScheduler in a thread of ours. Source: design §5, targets 11, 31.

A timer decides nothing. It rings, and the loop looks at the clocks; so one that rings early, late or twice (a stepped clock, a
suspended machine) does no harm, and the loop looks once a second anyway while a deadline is armed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from apscheduler.executors.debug import DebugExecutor
from apscheduler.schedulers.blocking import BlockingScheduler
from apscheduler.triggers.date import DateTrigger

CLOSE_PATIENCE_S = 5.0

logging.getLogger("apscheduler").setLevel(logging.CRITICAL)  # what there is to say, the loop says


class Timers:
    """One timer for each name. Every method is called by the loop; `ring` is called in the timers' own thread."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._set: dict[str, datetime] = {}
        self._start()

    def _start(self) -> None:
        # A job runs in the scheduler's own thread, for all it does is ring; whatever was missed while nobody ran rings once.
        self._scheduler = BlockingScheduler(
            timezone=UTC,
            executors={"default": DebugExecutor()},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )
        self._thread = threading.Thread(target=self._scheduler.start, name="timers", daemon=True)
        self._thread.start()

    def arm(self, name: str, at: datetime | None) -> None:
        """Ring at that moment (UTC), and not at the one that was set before; None: not at all."""
        if self._set.get(name) == at:
            return
        if at is None:
            del self._set[name]
            if self._scheduler.get_job(name):
                self._scheduler.remove_job(name)
            return
        self._set[name] = at
        self._scheduler.add_job(self._ring, DateTrigger(at), id=name, replace_existing=True)

    def keep_only(self, names: Collection[str]) -> None:
        """Forget the timers of all other names."""
        for name in self._set.keys() - set(names):
            self.arm(name, None)

    def is_alive(self) -> bool:
        """Whether the thread that rings still runs."""
        return self._thread.is_alive()

    def revive(self) -> None:
        """Start again where the thread has ended; every timer is set as it was."""
        self._start()
        standing, self._set = self._set, {}
        for name, at in standing.items():
            self.arm(name, at)

    def close(self) -> None:
        """Ring no more."""
        if self._thread.is_alive():
            self._scheduler.shutdown(wait=False)
            self._thread.join(CLOSE_PATIENCE_S)
