"""The proof that this service works, without which the service manager gets no ping. Source: targets 32, hazards A, design §6.

Asked from the loop alone, at the end of a turn in which nothing failed: a loop that is wedged, or that fails in every
turn, proves nothing, is ended by the manager and started again. Time is what the caller's turns say.
"""

from __future__ import annotations

from collections.abc import Callable

from daemon.log import Log
from daemon.notify import Party
from daemon.watcher import Watcher

LOOK_S = 1.0  # a proof that is under way is looked at this often; the event itself wakes the loop


class Liveness:
    """Pings at half the interval that the manager waits, each time upon a proof made for that ping.

    Proven are: every thread that watches, the timers (`is_timing`), and a round trip of a file event; where events cannot
    be trusted and the watcher polls, that it has looked at everything.
    """

    def __init__(self, watcher: Watcher, party: Party, log: Log, is_timing: Callable[[], bool] = lambda: True) -> None:
        self._watcher = watcher
        self._party = party
        self._log = log
        self._is_timing = is_timing
        self._next_at = float("inf")
        self._unheard: str | None = None
        self._came_back: Callable[[], bool] | None = None
        self._is_late = False

    def ready(self, now_monotonic: float, status: str) -> None:
        """Everything on disk is settled; the first ping is due at once. What is not heard is said again: a start waits for it."""
        self._unheard = None if self._party.ready(status) else status
        self._next_at = now_monotonic

    def stopping(self, reason: str) -> None:
        """The loop has ended; nothing is proven any more."""
        self._next_at = float("inf")
        self._party.stopping(reason)

    def due_s(self, now_monotonic: float) -> float | None:
        """Seconds until `turn` is wanted; None where nobody waits for anything."""
        if self._unheard is not None:
            return LOOK_S
        if self._party.ping_s is None:
            return None
        left_s = self._next_at - now_monotonic
        return left_s if left_s > 0 else min(LOOK_S, self._party.ping_s)

    def turn(self, now_monotonic: float) -> None:
        """Ping if it is time and everything is proven."""
        if self._unheard is not None and self._party.ready(self._unheard):
            self._unheard = None
        ping_s = self._party.ping_s
        if ping_s is None or now_monotonic < self._next_at:
            return
        if self._came_back is None:
            self._came_back = self._watcher.send_cookie()
        missing = self._missing(self._came_back)
        if missing is None and not self._party.alive():
            missing = "the service manager does not take messages"
        if missing is None:
            self._came_back, self._is_late = None, False
            self._next_at = now_monotonic + ping_s
        elif not self._is_late and now_monotonic >= self._next_at + ping_s / 2:
            self._is_late = True
            self._tell(missing)

    def _missing(self, came_back: Callable[[], bool]) -> str | None:
        """What is not proven; None: all of it is. A dead watch is no matter while the watcher polls instead."""
        if self._watcher.degraded is None and not self._watcher.alive:
            return "a thread that watches has ended"
        if not self._is_timing():
            return "the timers have stopped"
        if not came_back():
            return "no look at the disk has followed" if self._watcher.degraded else "a test file was not seen"
        return None

    def _tell(self, missing: str) -> None:
        """Say why before the manager acts, so that the restart can be understood."""
        self._party.status(f"no ping: {missing}")
        what = f"not proven alive: {missing}. fix: none is needed, the service manager starts shapeupd anew"
        self._log.write("daemon.error", level="warn", code="E-LIVENESS", error=what)
