"""Admission of orders: an order that landed is admitted, or refused with a reason and grants nothing. Source: design §4, ruling L2."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from daemon.log import Log
from daemon.round_loop import RoundLoop
from daemon.run_orders import landed_at
from daemon.run_state import RunState
from daemon.scan import is_fact_path
from daemon.settling import Settling
from daemon.views import remove_rejection, write_rejection
from parsers.envelopes import WorkOrder
from parsers.facts import OrderFact, ReadOrder, read_order, sha256_of
from parsers.faults import Fault, render_fault
from parsers.layout import classify, folder_of, stem_at
from parsers.rule_table import RULES as LOOP_RULES
from parsers.tree import Unreadable
from reducers.after_trip import REFUSED
from reducers.live_contracts import is_answered


class Untold(NamedTuple):
    """An order that was admitted and not told of yet. `is_widened`: somebody changed what it opens, and did not compile it anew."""

    fact: OrderFact
    landed: datetime | None
    warnings: tuple[Fault, ...]
    is_widened: bool


class Admission:
    """The orders of one run. `refused` holds the faults of orders that stand refused, by path.

    `known_orders` were admitted by the daemon before this one: no rule refuses them now, and what one warns of was told. `bars` says why a sound order that landed then is not admitted all the same: a breaker has tripped.
    """

    def __init__(
        self, state: RunState, settling: Settling, loop: RoundLoop, log: Log, known_orders: frozenset[str]
    ) -> None:
        self._state = state
        self._settling = settling
        self._loop = loop
        self._log = log
        self._untold: dict[str, Untold] = {}
        self._is_news = False
        self._known = known_orders
        self.refused: dict[str, tuple[Fault, ...]] = {}
        self.bars: Callable[[OrderFact, datetime | None], Fault | None] = lambda fact, landed: None

    def take_news(self) -> bool:
        """Whether an order was admitted or refused since this was asked last."""
        is_news, self._is_news = self._is_news, False
        return is_news

    def look_all(self, now: datetime, monotonic: float) -> None:
        """Take in every order on disk that is not known yet."""
        folder = folder_of("order", self._state.slug)
        for name in self._state.disk.list(folder):
            path = f"{folder}/{name}"
            if is_fact_path(path) and classify(path) and name.removesuffix(".json") not in self._state.orders:
                self.look(path, now, monotonic)

    def look(self, path: str, now: datetime, monotonic: float) -> None:
        """Take in one order file as it stands now."""
        stem = stem_at(path)
        try:
            data, stamp = self._state.disk.read_stamped(path)
        except Unreadable as stop:
            fault = stop.fault._replace(code="E-NOT-A-FILE") if stop.fault.code == "E-SYMLINK" else stop.fault
            self._refuse(path, stem, "", ReadOrder(None, (fault,), (), None), now)
            return
        if data is None:
            self._forget(path, stem)
            return
        read = read_order(path, data)
        if read.faults and self._settling.is_half_written(path, stamp, read.faults[0], now, monotonic):
            return
        self._settling.forget(path)
        if read.fact is None:
            self._refuse(path, stem, sha256_of(data), read, now)
        else:
            landed = landed_at(stamp) if stamp is not None else None
            if barred := self._barred(read.fact, landed):
                self._refuse(
                    path, stem, read.fact.sha256, read._replace(faults=(barred,), claimed=read.fact.order.order_id), now
                )
                return
            if landed is not None:
                self._state.landed[stem] = landed
            self._admit(path, stem, read)

    def _barred(self, fact: OrderFact, landed: datetime | None) -> Fault | None:
        """Why the order is not admitted now; what was admitted already stays so."""
        known = self._state.orders.get(fact.stem)
        return None if known is not None and known.sha256 == fact.sha256 else self.bars(fact, landed)

    def _admit(self, path: str, stem: str, read: ReadOrder) -> None:
        assert read.fact is not None
        before = self._state.orders.get(stem)
        self._state.orders[stem] = read.fact
        self._state.claimed.pop(stem, None)
        if before is None or before.sha256 != read.fact.sha256:
            is_widened = before is not None and _is_rewritten(before.order, read.fact.order)
            untold = Untold(read.fact, self._state.landed.get(stem), read.warnings, is_widened)
            if is_answered(self._state.records, read.fact):
                self._settle(path)
                self._tell(untold, "debug")
            else:
                self._untold[path] = untold
        elif path not in self._untold:
            self._settle(path)

    def _settle(self, path: str) -> None:
        """The order is admitted for good: nothing speaks against it any more."""
        self._is_news = True
        self.refused.pop(path, None)
        remove_rejection(self._state, "order", path)

    def reconsider(self, now: datetime, monotonic: float) -> None:
        """Look again at the orders that a round-loop rule refused: what they lacked may have landed."""
        for path, faults in tuple(self.refused.items()):
            if faults[0].code in LOOP_RULES:
                self.look(path, now, monotonic)

    def conclude(self, now: datetime) -> tuple[OrderFact, ...]:
        """Hold the orders that were admitted since against the invariants, by the facts as they stand now, and tell of them.

        After the results that landed with them: an order is not to be blamed for a board that was about to be done. Those
        that stay admitted.
        """
        if not self._untold:
            return ()
        admitted = []
        waiting, self._untold = self._untold, {}
        rulings = self._loop.rule_orders((untold.fact, untold.landed) for untold in waiting.values())
        for (path, untold), ruling in zip(waiting.items(), rulings, strict=True):
            if ruling.denied and untold.fact.order.order_id not in self._known:
                read = ReadOrder(None, ruling.denied, (), untold.fact.order.order_id)
                self._refuse(path, untold.fact.stem, untold.fact.sha256, read, now)
            else:
                self._settle(path)
                is_known = untold.fact.order.order_id in self._known
                warnings = untold.warnings if is_known else (*untold.warnings, *ruling.warned)
                self._tell(untold._replace(warnings=warnings), "info")
                admitted.append(untold.fact)
        return tuple(admitted)

    def _tell(self, untold: Untold, level: str) -> None:
        order = untold.fact.order
        warnings = [fault.what for fault in untold.warnings]
        warnings += ["its substrate changed without a new compile"] if untold.is_widened else []
        fields: dict[str, Any] = {"warnings": warnings} if warnings else {}
        self._log.write(
            "order.admitted",
            level="warn" if untold.is_widened else level,
            slug=self._state.slug,
            subject=order.order_id,
            run_id=order.run_id,
            worker=order.worker,
            operation=order.operation,
            **fields,
        )

    def _refuse(self, path: str, stem: str, sha256: str, read: ReadOrder, now: datetime) -> None:
        self._is_news |= self._state.orders.pop(stem, None) is not None
        self._untold.pop(path, None)
        if read.claimed is None:
            self._state.claimed.pop(stem, None)
        else:
            self._state.claimed[stem] = read.claimed
        write_rejection(self._state, "order", path, sha256, read.faults, now)
        if self.refused.get(path) != read.faults:
            self.refused[path] = read.faults
            errors = [render_fault(fault) for fault in read.faults]
            fields: dict[str, Any] = {"code": read.faults[0].code, "error": errors[0], "errors": len(errors)}
            event = "order.refused" if read.faults[0].code == REFUSED else "order.rejected"
            self._log.write(event, level="warn", slug=self._state.slug, subject=path, **fields)

    def _forget(self, path: str, stem: str) -> None:
        gone = self._state.orders.pop(stem, None)
        if gone is not None and not is_answered(self._state.records, gone):
            note = "the order was removed before it was answered; its whitelist does not hold any more"
            order_id = gone.order.order_id
            self._log.write("artifact.tampered", level="warn", slug=self._state.slug, subject=order_id, note=note)
        self._state.claimed.pop(stem, None)
        self._untold.pop(path, None)
        self.refused.pop(path, None)
        self._settling.forget(path)
        remove_rejection(self._state, "order", path)


def _is_rewritten(before: WorkOrder, after: WorkOrder) -> bool:
    """Whether somebody changed what the order opens, and not by compiling it anew."""
    return before.compiled_at == after.compiled_at and before.substrate != after.substrate
