"""Keeps the loop's time: when a run's clock asks for something, and the timers that wake the loop then. Source: design §5, targets 11, 31.

While a deadline is armed the loop looks at the clocks every second; a timer makes the very moment exact. The scheduler is
imported with the first deadline: most daemons watch runs that have none, and it costs 70 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from daemon import clock
from daemon.log import Log
from daemon.reconciler import Reconciler

if TYPE_CHECKING:
    from daemon.timers import Timers

LOOK_S = 1.0
NEAR_S = 0.005  # a timer that is this little off is left as it stands; the loop waits for the moment itself


class Timekeeping:
    """Used by the loop alone. `wake` is called from the timers' thread."""

    def __init__(self, reconciler: Reconciler, wake: Callable[[], None], log: Log) -> None:
        self._reconciler = reconciler
        self._wake = wake
        self._log = log
        self._timers: Timers | None = None
        self._moments: dict[str, float] = {}  # when each run's clock asks for something, monotonic
        self._armed: dict[str, float] = {}  # the same, as the timers stand
        self._look_at = 0.0

    def due_s(self, at: float) -> float | None:
        """Seconds until the clocks must be looked at; None while no deadline is armed."""
        if not self._moments:
            return None
        return max(0.0, min(self._look_at, *self._moments.values()) - at)

    def turn(self, at: float, *, has_settled: bool) -> None:
        """Look at the clocks, do what they ask for, and set the timers anew; also where facts were settled, for those may arm
        or move a deadline. Raises FsyncFailed."""
        is_time = bool(self._moments) and at >= min(self._look_at, *self._moments.values())
        if not (is_time or has_settled):
            return
        if is_time:
            self._reconciler.keep_time()
            self._look_at = at + LOOK_S
        waits = self._reconciler.time_due_s()
        self._moments = {slug: at + wait_s for slug, wait_s in waits.items()}
        if self._moments or self._timers:
            self._arm(at)

    def _arm(self, at: float) -> None:
        timers, now = self._living(), clock.now()
        for slug, moment in self._moments.items():
            if abs(self._armed.get(slug, 0.0) - moment) > NEAR_S:
                timers.arm(slug, now + timedelta(seconds=moment - at))
                self._armed[slug] = moment
        timers.keep_only(self._moments)
        self._armed = {slug: moment for slug, moment in self._armed.items() if slug in self._moments}

    def _living(self) -> Timers:
        """The timers; started with the first deadline, and again where their thread has ended."""
        if self._timers is None:
            from daemon.timers import Timers

            self._timers = Timers(self._wake)
        elif not self._timers.is_alive():
            self._timers.revive()
            self._log.write("daemon.recovered", level="warn", note="the timers' thread had ended; it was started again")
        return self._timers

    def is_alive(self) -> bool:
        """Whether what should ring still can: the proof for the watchdog."""
        return self._timers is None or self._timers.is_alive()

    def close(self) -> None:
        """Ring no more."""
        if self._timers is not None:
            self._timers.close()
