"""What the log, and the notification command, say of a run's breakers; each thing once. Source: cli §3, §5 "breakers.notify"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from daemon.breakers.ledger import Queue
from daemon.log import Log
from parsers.breaker_ledger import Extension, Proposal, Trip
from parsers.faults import Fault, render_fault
from parsers.layout import path_of
from parsers.receipts import Receipt

Row = dict[str, Any]


class BreakerTelling:
    """Speaks for one run. `notify` is called with the event of each trip and of each warning."""

    def __init__(self, log: Log, slug: str, notify: Callable[[Row], None] = lambda row: None) -> None:
        self._log = log
        self._slug = slug
        self._notify = notify
        self._said: dict[str, object] = {}
        self._gates = 0  # rows of gates.jsonl that are told

    def _write(self, event: str, level: str, subject: str, run_id: str | None = None, **fields: Any) -> Row:
        return self._log.write(event, level=level, slug=self._slug, subject=subject, run_id=run_id, **fields)

    def _is_news(self, what: str, state: object) -> bool:
        """Whether this was not the last thing said of it."""
        is_news = self._said.get(what) != state
        self._said[what] = state
        return is_news

    def tell_trip(self, trip: Trip) -> None:
        """A breaker warns or trips; the notification command hears of it too."""
        event = "breaker.tripped" if trip.status == "trip" else "breaker.warned"
        shown = {key: value for key, value in trip._asdict().items() if value not in (None, "") and key not in _COMMON}
        row = self._write(event, "warn", trip.scope_id or self._slug, trip.run_id, **shown)
        self._notify(row)

    def tell_proposal(self, proposal: Proposal) -> None:
        """A proposal waits at GATE H."""
        fields = {"breaker": proposal.breaker, "order": proposal.order_path, "green": list(proposal.green_scopes)}
        view = path_of("gate-h-view", self._slug)
        self._write("gate_h.queued", "warn", proposal.scope_id or self._slug, proposal.run_id, view=view, **fields)

    def tell_extension(self, grant: Extension, budget_s: float) -> None:
        """Somebody granted time: told on the same event as the warning it answers."""
        fields = {"breaker": "deadline", "added_s": grant.added_s, "by": grant.by}
        self._write("breaker.extended", "info", self._slug, grant.run_id, **fields, budget_s=budget_s)

    def tell_gates(self, rows: Sequence[Mapping[str, object]]) -> None:
        """What was asked, crossed or aborted at gates since the last look."""
        told, self._gates = self._gates, len(rows)
        for row in rows[told:]:
            event = {"ask": "gate.asked", "ok": "gate.crossed", "abort": "gate.aborted"}.get(str(row.get("status")))
            if event and isinstance(row.get("gate"), str):
                fields: dict[str, Any] = {key: row.get(key) for key in ("decision", "round", "source", "note")}
                self._write(event, "warn" if event == "gate.asked" else "info", str(row["gate"]), **fields)

    def skip_gates(self, rows: Sequence[Mapping[str, object]]) -> None:
        """What stood there when we began is no news."""
        self._gates = len(rows)

    def tell_clock(self, finding: str | None) -> None:
        """Two clocks disagree; said when that begins, not while it lasts."""
        kind = None if finding is None else finding.partition(" s ")[2]  # the seconds change, the matter does not
        if self._is_news("clock", kind) and finding is not None:
            self._write("clock.disagrees", "warn", self._slug, note=finding)

    def tell_receipt(self, receipt: Receipt, tampering: str | None) -> None:
        """What of the receipt cannot be meant, and what somebody changed in it."""
        if self._is_news("receipt", receipt.faults):
            for fault in receipt.faults:
                self._tell_fault(fault)
        if self._is_news("tampering", tampering) and tampering is not None:
            path = path_of("receipt", self._slug)
            self._write("artifact.tampered", "warn", path, receipt.run_id, note=tampering.removeprefix(f"{path}: "))

    def tell_receipt_gone(self, receipt: Receipt) -> None:
        """Somebody removed the receipt of a run."""
        note = "the receipt was removed; without it the run has no budgets, and its breakers are blind. Put it back"
        self._write("artifact.tampered", "warn", path_of("receipt", self._slug), receipt.run_id, note=note)

    def tell_clock_file(self, path: str) -> None:
        """Somebody changed or removed clock.json."""
        note = "it was changed by hand; what this daemon knows of the run's clock counts"
        self._write("artifact.tampered", "warn", path, note=note)

    def tell_foreign(self, queue: Queue) -> None:
        """Rows of the breakers' ledgers that we did not write, or that are gone."""
        if not self._is_news("queue", queue.strayed):
            return
        for kind, foreign, lost in queue.strayed:
            parts = [f"{foreign} row(s) that shapeupd did not write, and that grant nothing"] if foreign else []
            parts += (
                [f"{lost} row(s) of ours are gone; they count all the same, `shapeupd rebuild` puts them back"]
                if lost
                else []
            )
            self._write("artifact.tampered", "warn", path_of(kind, self._slug), note="; ".join(parts))

    def _tell_fault(self, fault: Fault) -> None:
        self._write("daemon.error", "warn", fault.where, code=fault.code, error=render_fault(fault))


_COMMON = frozenset({"run_id", "scope_id", "status"})  # the event says it already
