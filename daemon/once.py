"""Settles what is on disk without watching: `run --once`, `rebuild`, the tests. Source: cli §2, rulings C10, C11."""

from __future__ import annotations

import threading
from pathlib import Path

from daemon.exits import DONE, WANTING
from daemon.log import Log
from daemon.place import Place
from daemon.policy_writer import PolicyWriter
from daemon.reconciler import LOCK_PATIENCE_S, Reconciler
from daemon.scan import scan
from daemon.settled import Tally
from parsers.settings import Settings


def settle_once(place: Place, settings: Settings, log: Log) -> int:
    """Reconcile everything on disk, the hooks' policy included; 1 when anything stands rejected or pending.

    Raises FsyncFailed.
    """
    reconciler = Reconciler(place.root, settings, log)
    reconciler.policy = PolicyWriter(place, reconciler.run_orders, log)
    try:
        tally = settle_all(reconciler, place.root)
        reconciler.policy.write()
        reconciler.checkpoint()
    finally:
        reconciler.close()
    print(_sentence(tally) if tally else "not settled: see the log")
    return DONE if tally is not None and tally.is_clean else WANTING


def settle_all(reconciler: Reconciler, root: Path) -> Tally | None:
    """Mark every file and settle until nothing is left to do; None when a run stays locked or cannot be written."""
    reconciler.mark(scan(root))
    pause = threading.Event()
    while (wait_s := reconciler.due_s()) is not None:
        pause.wait(wait_s)
        reconciler.settle()
        if reconciler.troubled_s() > LOCK_PATIENCE_S:
            return None
    return reconciler.tally()


def _sentence(tally: Tally) -> str:
    parts = [f"{tally.settled} settled"]
    parts += [f"{tally.rejected} rejected"] if tally.rejected else []
    parts += [f"{tally.pending} pending"] if tally.pending else []
    parts += [f"{tally.orders} orders refused"] if tally.orders else []
    return ", ".join(parts)
