"""What breakers.jsonl makes of what the breakers say: told once, and binding until time was granted. Source: rulings F1, F3."""

from __future__ import annotations

from collections.abc import Iterable

from parsers.breaker_ledger import Trip


def unrecorded(found: Iterable[Trip], recorded: Iterable[Trip]) -> tuple[Trip, ...]:
    """Those that stand in no row yet; a warning whose trip is already there comes too late. Source: ruling F3."""
    known = {trip.identity for trip in recorded}
    known |= {trip._replace(status="warn").identity for trip in recorded}
    new: dict[object, Trip] = {}
    for trip in found:
        if trip.identity not in known:
            new.setdefault(trip.identity, trip)
    return tuple(new.values())


def standing(recorded: Iterable[Trip], run_id: str | None, budget_s: float | None) -> tuple[Trip, ...]:
    """The recorded trips that bind this run: a deadline that was extended since binds no more. Source: rulings F1, F3.

    `budget_s` is the budget in force. A clock that steps back lifts nothing.
    """
    return tuple(
        trip
        for trip in recorded
        if trip.status == "trip"
        and trip.run_id == run_id
        and not (trip.breaker == "deadline" and _is_extended(trip.budget_s, budget_s))
    )


def _is_extended(tripped_s: float | None, budget_s: float | None) -> bool:
    return tripped_s is not None and budget_s is not None and tripped_s < budget_s
