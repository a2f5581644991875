"""breakers.jsonl and gate-h.jsonl: warnings, trips and extensions of a run, and the proposals that wait at GATE H. Source: rulings J, F3, F8.

An extension of the budget is a row of breakers.jsonl too, `status: "extend"`: one ledger tells in order what tripped, what
was granted after it, and by whom. Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from parsers.addresses import scope_stem
from parsers.ledgers import parse_rows

Breaker = Literal["outer", "inner", "deadline", "silence"]
Status = Literal["warn", "trip"]
EXTEND = "extend"
_LARGEST = 2.0**53  # what every JSON reader counts up to exactly

BREAKERS: tuple[Breaker, ...] = get_args(Breaker)

Identity = tuple[str | None, str, str, str | None, float | str | None]


class Trip(NamedTuple):
    """What a breaker says of a run: it warns, or it tripped. `scope_id` None: the whole run, or a whole round of it.

    `cause` is a token (`attempt-budget`, `stagnant`, `max-rounds` …), `reason` and `action` are sentences. `elapsed_s` and
    `budget_s` are the breaker's own: seconds of the deadline and of the silence, None for the others. `since` is when the
    last fact before a silence landed.
    """

    run_id: str | None
    breaker: Breaker
    status: Status
    scope_id: str | None = None
    round: int | None = None
    elapsed_s: float | None = None
    budget_s: float | None = None
    cause: str = ""
    reason: str = ""
    action: str = ""
    since: str | None = None

    @property
    def identity(self) -> Identity:
        """What makes it one: it is recorded once, whatever restarts. Source: ruling F3."""
        scope = None if self.scope_id is None else scope_stem(self.scope_id)
        return self.run_id, self.breaker, self.status, scope, self._key

    @property
    def _key(self) -> float | str | None:
        match self.breaker:
            case "deadline":
                return self.budget_s
            case "silence":
                return self.since
            case "outer" | "inner":
                return self.round


class Extension(NamedTuple):
    """A recorded grant of more time. `added_s` is what was added, `by` who did it. Source: ruling F3."""

    at: str
    run_id: str | None
    by: str
    added_s: float


class Proposal(NamedTuple):
    """One breaker's entry in the queue of GATE H. `order_path` is its hammer order, None where there is none.

    `done_orders` are the orders that had their answer by then, by the start of their sha256 (`short_hash`).
    """

    run_id: str | None
    breaker: Breaker
    scope_id: str | None
    round: int | None
    budget_s: float | None
    reason: str
    green_scopes: tuple[str, ...] = ()
    open_orders: tuple[str, ...] = ()
    order_path: str | None = None
    at: str | None = None
    done_orders: tuple[str, ...] = ()

    @property
    def identity(self) -> Identity:
        """The identity of the trip that it was made for."""
        return Trip(self.run_id, self.breaker, "trip", self.scope_id, self.round, None, self.budget_s).identity


class BreakerLedger(NamedTuple):
    """breakers.jsonl in file order: warnings and trips, and the extensions."""

    trips: tuple[Trip, ...] = ()
    extensions: tuple[Extension, ...] = ()


def parse_breakers(data: bytes) -> BreakerLedger:
    """The ledger; rows of unknown breakers or statuses are skipped, and a row that stands twice counts once."""
    rows = parse_rows(data)
    trips = dict.fromkeys(trip for row in rows if (trip := _trip(row)))
    extensions = dict.fromkeys(grant for row in rows if (grant := _extension(row)))
    return BreakerLedger(tuple(trips), tuple(extensions))


def _trip(row: Mapping[str, object]) -> Trip | None:
    breaker, status = _breaker(row), row.get("status")
    if breaker is None or status not in get_args(Status):
        return None
    return Trip(
        _text(row, "run_id"),
        breaker,
        "trip" if status == "trip" else "warn",
        _text(row, "scope_id"),
        _whole(row, "round"),
        number_of(row.get("elapsed_s")),
        number_of(row.get("budget_s")),
        _text(row, "cause") or "",
        _text(row, "reason") or "",
        _text(row, "action") or "",
        _text(row, "since"),
    )


def _extension(row: Mapping[str, object]) -> Extension | None:
    added_s, at, by = number_of(row.get("added_s")), _text(row, "at"), _text(row, "by")
    is_one = row.get("breaker") == "deadline" and row.get("status") == EXTEND
    if not is_one or added_s is None or added_s <= 0 or not at or not by:
        return None
    return Extension(at, _text(row, "run_id"), by, added_s)


def parse_proposals(data: bytes) -> tuple[Proposal, ...]:
    """The queue in file order; a proposal that stands twice counts once."""
    found: dict[Identity, Proposal] = {}
    for row in parse_rows(data):
        breaker = _breaker(row)
        if breaker is not None:
            proposal = Proposal(
                _text(row, "run_id"),
                breaker,
                _text(row, "scope_id"),
                _whole(row, "round"),
                number_of(row.get("budget_s")),
                _text(row, "reason") or "",
                _texts(row, "green_scopes"),
                _texts(row, "open_orders"),
                _text(row, "order_path"),
                _text(row, "at"),
                _texts(row, "done_orders"),
            )
            found.setdefault(proposal.identity, proposal)
    return tuple(found.values())


def trip_row(trip: Trip, at: str) -> dict[str, object]:
    """The row of breakers.jsonl; `cause`, and a silence's `since`, are ours beside the keys of rulings J."""
    return {
        "at": at,
        "run_id": trip.run_id,
        "breaker": trip.breaker,
        "status": trip.status,
        "scope_id": trip.scope_id,
        "round": trip.round,
        "elapsed_s": trip.elapsed_s,
        "budget_s": trip.budget_s,
        "reason": trip.reason,
        "action": trip.action,
        "cause": trip.cause,
        **({"since": trip.since} if trip.since is not None else {}),
    }


def extension_row(grant: Extension, elapsed_s: float, budget_s: float) -> dict[str, object]:
    """The row of an extension; `budget_s` is the new whole budget, `added_s` what was granted."""
    return {
        "at": grant.at,
        "run_id": grant.run_id,
        "breaker": "deadline",
        "status": EXTEND,
        "scope_id": None,
        "round": None,
        "elapsed_s": elapsed_s,
        "budget_s": budget_s,
        "reason": f"{grant.by} granted {grant.added_s} s more",
        "action": "the run goes on until the new deadline",
        "added_s": grant.added_s,
        "by": grant.by,
    }


def proposal_row(proposal: Proposal) -> dict[str, object]:
    """The row of gate-h.jsonl; `budget_s` and `done_orders` are ours: with the first a proposal names its trip."""
    return {
        "at": proposal.at,
        "run_id": proposal.run_id,
        "breaker": proposal.breaker,
        "scope_id": proposal.scope_id,
        "round": proposal.round,
        "reason": proposal.reason,
        "green_scopes": list(proposal.green_scopes),
        "open_orders": list(proposal.open_orders),
        "order_path": proposal.order_path,
        "budget_s": proposal.budget_s,
        "done_orders": list(proposal.done_orders),
    }


def short_hash(sha256: str) -> str:
    """The start of a hash, as `done_orders` name an order by."""
    return sha256[:16]


def _breaker(row: Mapping[str, object]) -> Breaker | None:
    return next((breaker for breaker in BREAKERS if breaker == row.get("breaker")), None)


def number_of(value: object) -> float | None:
    """A finite number as JSON has them (an integer stays one); None for everything else, true and false among them."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -_LARGEST < value < _LARGEST else None


def _whole(row: Mapping[str, object], key: str) -> int | None:
    value = number_of(row.get(key))
    return int(value) if value is not None and value == int(value) else None


def _text(row: Mapping[str, object], key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) else None


def _texts(row: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = row.get(key)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
