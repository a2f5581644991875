"""The audit as the daemon's loop drives it: once a second, a batch each turn, and at once when a hook asks. Source: rulings E6, targets 14."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from daemon import clock
from daemon.commits.audit import Audit
from daemon.commits.past_policies import PastPolicies
from daemon.log import Log
from daemon.place import Place
from daemon.reconciler import Reconciler
from daemon.requests import Request
from daemon.sockets import Message
from reducers.live_contracts import RunOrders

LOOK_S = 1.0
NEXT_S = 0.02  # between two batches, so that results are settled meanwhile
SETTLING_S = 2.0  # a hook that asks waits that long for orders that are still being settled


class Auditing:
    """Outside git it does nothing. `runs` is what is known of the orders, by slug."""

    def __init__(
        self, place: Place, runs: Callable[[], Mapping[str, RunOrders]], log: Log, now: Callable[[], datetime]
    ) -> None:
        self._now = now
        self._audit = Audit(place, lambda: PastPolicies(place, runs()), log) if place.git_dir else None
        self._due_at = 0.0

    def due_s(self, at: float) -> float | None:
        """How long the loop may wait before the next turn; None: as long as it likes."""
        return None if self._audit is None else max(0.0, self._due_at - at)

    def turn(self, at: float) -> None:
        """Look, if it is time. Raises FsyncFailed."""
        if self._audit is None or at < self._due_at:
            return
        self._audit.look(self._now())
        self._due_at = at + (LOOK_S if self._audit.is_done else NEXT_S)

    def answer(self, reconciler: Reconciler, root: Path, request: Request) -> Message | None:
        """The answer to `audit`, once every commit made before it is recorded; None: not yet. Raises FsyncFailed."""
        if self._audit is None:
            return {"audited": False}
        waited_s = clock.monotonic() - request.since
        if not reconciler.has_settled(request.since) and waited_s < SETTLING_S:
            return None
        began_here = self._audit.is_done  # a pass that was under way may have begun before the request
        self._audit.look(self._now(), is_asked=True)
        if self._audit.trouble:
            return {"error": f"new commits are not audited: {self._audit.trouble}"}
        return {"audited": True} if began_here and self._audit.is_done else None

    def close(self) -> None:
        """Called as the daemon ends."""
        if self._audit is not None:
            self._audit.close()
