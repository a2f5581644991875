"""What the socket may ask of the loop, and the answers. Source: cli §2, rulings H8, J."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from statistics import quantiles

from daemon import clock
from daemon.gate_record import Locked
from daemon.rebuilding import rebuild_document
from daemon.reconciler import LOCK_PATIENCE_S, Reconciler
from daemon.runs_on_disk import runs_on_disk
from daemon.settled import Settled
from daemon.sockets import Message
from daemon.version import VERSION
from daemon.watcher import Watcher
from parsers.faults import render_fault
from parsers.tree import Unreadable

WANTING_SHOWN = 100


class Request:
    """One request on its way from a socket thread to the loop and back."""

    def __init__(self, message: Message, since: float) -> None:
        self.message = message
        self.since = since
        self._done = threading.Event()
        self._answer: Message = {}

    @property
    def verb(self) -> object:
        """What is asked for."""
        return self.message.get("verb")

    def answer(self, message: Message) -> None:
        """Called by the loop."""
        self._answer = message
        self._done.set()

    def wait(self) -> Message:
        """Called by the socket thread."""
        self._done.wait()
        return self._answer


def answer_status(
    root: Path, started_at: datetime, watcher: Watcher, reconciler: Reconciler, counters: Mapping[str, int]
) -> Message:
    """The `status` document. Source: rulings J."""
    uptime_s = round((clock.now() - started_at).total_seconds(), 1)
    daemon = {"pid": os.getpid(), "version": VERSION, "started_at": clock.iso(started_at), "uptime_s": uptime_s}
    return {
        "schema": 1,
        "daemon": {**daemon, "degraded": watcher.degraded},
        "runs": _runs(root, reconciler),
        "queue": reconciler.queued(),
        "latency": _latency(reconciler.latencies_ms),
        "counters": {**counters, **{f"watch.{name}": n for name, n in watcher.counters.items()}},
    }


def _runs(root: Path, reconciler: Reconciler) -> list[dict[str, object]]:
    """The runs on disk, with what the daemon knows better: which orders are live, what stands refused or waits."""
    known = {run.slug: run for run in reconciler.runs()}
    found = []
    for row in runs_on_disk(root):
        run = known.get(str(row["slug"]))
        if run:
            tally = run.tally()
            row = {
                **row,
                "live_orders": run.live_orders(),
                "wanting": run.wanting_results(),
                "rejected": tally.rejected + tally.orders,
                "pending": tally.pending,
                **run.breakers.document(),
            }
        found.append(row)
    return found


def _latency(samples: list[float]) -> dict[str, object]:
    if len(samples) < 2:
        only = round(samples[0], 3) if samples else None
        return {"p50_ms": only, "p99_ms": only, "n": len(samples)}
    cuts = quantiles(samples, n=100)
    return {"p50_ms": round(cuts[49], 3), "p99_ms": round(cuts[98], 3), "n": len(samples)}


def answer_sync(reconciler: Reconciler, root: Path, request: Request) -> Message | None:
    """How everything stands, once all that landed before the request is settled. Source: ruling H8."""
    if not reconciler.has_settled(request.since):
        return None
    tally = reconciler.tally()
    wanting = [row for run in reconciler.runs() for row in run.wanting_results()]
    counts = {"settled": tally.settled, "rejected": tally.rejected + tally.orders, "pending": tally.pending}
    return {**counts, "wanting": wanting[:WANTING_SHOWN]}


def answer_ingest(reconciler: Reconciler, root: Path, request: Request) -> Message | None:
    """The outcome of one result; None while it is half-written, or another reducer holds the lock, and there is time."""
    path = request.message.get("path")
    if not isinstance(path, str):
        return {"error": "ingest needs the path of a result"}
    try:
        settled = reconciler.ingest(path, None if request.message.get("receipt_check", True) else "off")
    except FileNotFoundError:
        return {"error": f"{path} does not exist; the worker has not answered yet"}
    except ValueError:
        return {"error": f"{path} is no result of this repository"}
    except (OSError, Unreadable) as error:
        return {"error": f"{path} cannot be settled now: {error}; the daemon goes on trying, see `shapeupd log`"}
    return _locked(request) if settled is None else outcome_document(settled)


def answer_rebuild(reconciler: Reconciler, root: Path, request: Request) -> Message | None:
    """The files that differ from what the journal says, repaired unless only a look is asked for; None: not yet."""
    if not reconciler.is_quiet():
        return None
    try:
        repairs = None if request.message.get("verify") else reconciler.rebuild()
    except Unreadable as stop:
        return {"error": render_fault(stop.fault)}
    except OSError as error:
        return {"error": f"the disk refuses: {error.strerror}; what was repaired stands, run it again"}
    if repairs is None and not request.message.get("verify"):
        return _locked(request)
    return rebuild_document(root, repairs, write_index=reconciler.writes_index)


def answer_extend(reconciler: Reconciler, root: Path, request: Request) -> Message | None:
    """Whether the run got more time; None while another reducer holds its lock, and there is time. Source: F3."""
    slug, added_s, by = (request.message.get(key) for key in ("slug", "added_s", "by"))
    if not isinstance(slug, str) or not isinstance(added_s, int | float) or not isinstance(by, str):
        return {"error": "extend needs a slug, added_s and by"}
    try:
        refusal = reconciler.extend(slug, added_s, by)
    except Locked:
        return _locked(request)
    except (OSError, Unreadable) as error:
        return {"error": f"run {slug} cannot be extended now: {error}; see `shapeupd log`"}
    return {"error": refusal} if refusal else {"slug": slug, "added_s": added_s, "by": by}


def _locked(request: Request) -> Message | None:
    """Patience first, then an error. Source: protocol §4.2."""
    if clock.monotonic() - request.since <= LOCK_PATIENCE_S:
        return None
    return {"error": f"another reducer holds the run's lock for {LOCK_PATIENCE_S:g} s"}


WAITING: dict[str, Callable[[Reconciler, Path, Request], Message | None]] = {
    "sync": answer_sync,
    "ingest": answer_ingest,
    "rebuild": answer_rebuild,
    "extend": answer_extend,
}


def outcome_document(settled: Settled) -> Message:
    """How a result stands, with the protocol's summary fields. Source: rulings J `ingest`."""
    return {
        "order_id": settled.order_id,
        "outcome": settled.outcome,
        **settled.summary._asdict(),
        "code": settled.faults[0].code if settled.faults else None,
        "errors": [render_fault(fault) for fault in settled.faults],
    }
