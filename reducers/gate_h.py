"""The queue of GATE H: a proposal and a hammer order for each trip, and the census that people and the orchestrator read.
Source: protocol §7.4, §8.6, rulings B4, D-13, F7, F8, J, K "At a FAIL".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from parsers.addresses import MAX_ORDER_ID, scope_stem
from parsers.answers import GATES
from parsers.breaker_ledger import Proposal, Trip, proposal_row, trip_row
from parsers.domain import Verdict
from parsers.layout import SHARED_ROOT, path_of
from parsers.ledgers import escape_bytes, render_row
from parsers.trials import Trial
from reducers.after_trip import Allowance
from reducers.changes import Append
from reducers.gates import OpenGate, render_block

HAMMER = "scope-hammer"
_LINE = 400  # characters of a foreign text that a line of the view shows


# --- the hammer order ------------------------------------------------------------------------------------------------


def hammer_stem(trip: Trip, slug: str) -> str:
    """`hammer-<breaker>[-<scope>]-r<N>`; a run that has no round yet is in its first. Source: ruling B4.

    A scope name too long for an order id is cut and told apart by its hash.
    """
    tail = f"-r{trip.round or 1}"
    if trip.scope_id is None:
        return f"hammer-{trip.breaker}{tail}"
    head, scope = f"hammer-{trip.breaker}-", scope_stem(trip.scope_id)
    room = MAX_ORDER_ID - len(slug) - 1 - len(head) - len(tail)
    if len(scope) > room:
        scope = f"{scope[: max(room - 9, 0)]}-{hashlib.sha256(scope.encode()).hexdigest()[:8]}"
    return head + scope + tail


def hammer_path(trip: Trip, slug: str) -> str:
    """Where the trip's hammer order lies. An order that stands there already is never overwritten."""
    return path_of("order", slug, hammer_stem(trip, slug))


def hammer_order(trip: Trip, slug: str, compiled_at: str, baseline: str | None = None) -> dict[str, object]:
    """The WorkOrder that asks the hammer what to cut, as its template has it. Source: protocol §2.3, §2.9, §3.1, D-13.

    Data only: it constrains nothing until it is dispatched (B4). `trip` is a trip of outer, inner or deadline.
    """
    payload: dict[str, object] = {"feature": slug, "breaker": trip.breaker}
    payload |= {"scope_id": trip.scope_id} if trip.scope_id is not None else {}
    payload |= {"baseline": baseline} if baseline is not None else {}
    allowed = [f"{SHARED_ROOT}/{slug}/REPORT.md", path_of("reports", slug)]
    return {
        "schema_version": 1,
        "order_id": f"{slug}/{hammer_stem(trip, slug)}",
        **({"run_id": trip.run_id} if trip.run_id is not None else {}),
        "compiled_at": compiled_at,
        "worker": HAMMER,
        "mode": "orchestrated",
        "operation": "hammer",
        "interaction": {"pause_gates": False},
        "substrate": {"allowed": allowed},
        "payload": payload,
    }


def render_order(order: Mapping[str, object]) -> bytes:
    """The order file's bytes, laid out as compile writes them."""
    return (json.dumps(order, indent=2, ensure_ascii=False) + "\n").encode()


# --- rows ------------------------------------------------------------------------------------------------------------


def trip_append(trip: Trip, slug: str, at: str) -> Append:
    """The row of breakers.jsonl."""
    return Append(path_of("breakers", slug), render_row(trip_row(trip, at)))


def proposal_append(proposal: Proposal, slug: str) -> Append:
    """The row of gate-h.jsonl."""
    return Append(path_of("gate-h", slug), render_row(proposal_row(proposal)))


def propose(
    trip: Trip,
    slug: str,
    at: str,
    green_scopes: Sequence[str],
    open_orders: Sequence[str],
    done_orders: Sequence[str] = (),
) -> Proposal:
    """The trip's entry in the queue."""
    return Proposal(
        trip.run_id,
        trip.breaker,
        trip.scope_id,
        trip.round,
        trip.budget_s,
        trip.reason,
        tuple(green_scopes),
        tuple(open_orders),
        hammer_path(trip, slug),
        at,
        tuple(done_orders),
    )


def unproposed(trips: Iterable[Trip], proposals: Iterable[Proposal]) -> tuple[Trip, ...]:
    """The trips that no proposal stands for yet: what a crash between the rows left undone. Source: ruling F8."""
    known = {proposal.identity for proposal in proposals}
    return tuple(trip for trip in trips if trip.status == "trip" and trip.identity not in known)


# --- the census ------------------------------------------------------------------------------------------------------


def green_scopes(trials: Iterable[Trial], closed: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """The scopes whose newest surviving trial is kept and green, and whose result of that round was applied. Sorted.

    `closed` are the (scope as in stems, round) of closed build legs. Source: R-24, ruling G3.
    """
    newest: dict[str, Trial] = {}
    for trial in trials:
        if trial.status in ("kept", "rebased"):
            newest[scope_stem(trial.scope_id)] = trial
    answered = set(closed)
    return tuple(
        sorted(
            trial.scope_id
            for scope, trial in newest.items()
            if trial.is_kept_green and trial.round is not None and (scope, trial.round) in answered
        )
    )


def failed_criteria(verdict: Verdict) -> tuple[str, ...]:
    """What a FAIL names: task or scope and failed criterion of each bug, never its remedy. Source: rulings K, W-56."""
    named = []
    for bug in verdict.bugs:
        if isinstance(bug, dict):
            at = next((str(bug[key]) for key in ("task_id", "task", "scope_id") if bug.get(key)), "")
            what = next((str(bug[key]) for key in ("criterion", "ac_id", "id") if bug.get(key)), "a bug without a name")
            named.append(f"{at}: {what}" if at else what)
        elif isinstance(bug, str):
            named.append(bug)
    if not named:
        named = [criterion.criterion for criterion in verdict.criteria if criterion.verdict == "FAIL"]
    return tuple(dict.fromkeys(named))


class Scope(NamedTuple):
    """A scope that is not green, and why where that is known."""

    scope_id: str
    why: str = ""


class Census(NamedTuple):
    """What GATE H decides upon. The last five fields are filled by the work that brings their facts; empty: nothing to tell.

    `trips` are the standing ones, `proposals` those of this run, `residual` what the newest FAIL names.
    """

    slug: str
    run_id: str | None
    trips: tuple[Trip, ...]
    proposals: tuple[Proposal, ...]
    green_scopes: tuple[str, ...]
    open_orders: tuple[str, ...]
    allowances: tuple[Allowance, ...]
    rounds_used: int = 0
    max_rounds: int = 0
    open_gates: tuple[OpenGate, ...] = ()
    residual: tuple[str, ...] = ()
    not_green: tuple[Scope, ...] = ()
    stuck: tuple[Scope, ...] = ()
    is_open: bool = True
    advisor_flags: tuple[str, ...] = ()
    cuts: tuple[str, ...] = ()


def instruction(census: Census) -> str:
    """The sentence that the orchestrator must act on."""
    return _one_line(_instruction(census))


def _instruction(census: Census) -> str:
    if not census.is_open:
        return "The run is closed: nothing is to be done."
    run_wide = [trip for trip in census.trips if trip.scope_id is None]
    orders = [p.order_path for p in census.proposals if p.order_path and p.breaker in {t.breaker for t in census.trips}]
    hammer = f"dispatch {', '.join(dict.fromkeys(orders))} with the skill {HAMMER}" if orders else f"call {HAMMER}"
    if run_wide:
        breakers = " and ".join(dict.fromkeys(trip.breaker for trip in run_wide))
        ship = f"ship {', '.join(census.green_scopes)}" if census.green_scopes else "ship nothing, for nothing is green"
        wait = f"take the results of {len(census.open_orders)} open order(s), " if census.open_orders else ""
        return f"The {breakers} breaker has tripped: open no build order; {wait}{hammer}, cross GATE H, then {ship}."
    if census.trips:
        scopes = ", ".join(str(trip.scope_id) for trip in census.trips)
        return f"The inner breaker has tripped for {scopes}: order no more attempts there, go on with the other scopes, and {hammer} at GATE H."
    if census.open_gates:
        gates = ", ".join(gate.gate for gate in census.open_gates)
        return f"No breaker has tripped; the run waits for an answer at {gates}."
    return "No breaker has tripped: go on."


def render_census(census: Census) -> str:
    """gate-h.md: the block of GATE H, and below it what it is decided upon. Source: protocol §7.4, §8.6, ruling F8."""
    context = {
        "feature": census.slug,
        "run_id": census.run_id,
        "breakers": list(dict.fromkeys(trip.breaker for trip in census.trips)),
        "rounds": f"{census.rounds_used}/{census.max_rounds}",
        "residual": len(census.residual),
        "recommendation": _recommendation(census),
        "decision_owner": "PO",
    }
    lines = [escape_bytes(render_block(GATES["H"], context)), "", instruction(census)]
    dispatch = [
        f"{'yes' if line.is_allowed else 'no'}: {line.what}{f' ({line.note})' if line.note else ''}"
        for line in census.allowances
    ]
    lines += _section("Proposals", [_proposed(proposal) for proposal in census.proposals])
    lines += _section("Green scopes", census.green_scopes)
    lines += _section("Not green", [f"{s.scope_id}: {s.why}" if s.why else s.scope_id for s in census.not_green])
    lines += _section("Open orders", census.open_orders)
    lines += _section("What may still be dispatched", dispatch)
    for title, items in (
        ("Open gates", [_waiting(gate) for gate in census.open_gates]),
        ("What the last verdict found wanting", census.residual),
        ("To be split", [f"{scope.scope_id}: {scope.why}" for scope in census.stuck]),
        ("Flagged by the advisor", census.advisor_flags),
        ("Proposed cuts", census.cuts),
    ):
        lines += _section(title, items) if items else []
    return "\n".join(lines) + "\n"


def census_document(census: Census) -> dict[str, object]:
    """The same as one JSON document, after `schema`."""
    return {
        "slug": census.slug,
        "run_id": census.run_id,
        "instruction": instruction(census),
        "recommendation": _recommendation(census),
        "rounds_used": census.rounds_used,
        "max_rounds": census.max_rounds,
        "proposals": [proposal_row(proposal) for proposal in census.proposals],
        "green_scopes": list(census.green_scopes),
        "not_green": [scope._asdict() for scope in census.not_green],
        "open_orders": list(census.open_orders),
        "dispatch": [
            {"what": line.what, "allowed": line.is_allowed, "note": line.note or None} for line in census.allowances
        ],
        "open_gates": [gate._asdict() for gate in census.open_gates],
        "residual": list(census.residual),
        "to_split": [scope._asdict() for scope in census.stuck],
        "advisor_flags": list(census.advisor_flags),
        "cuts": list(census.cuts),
    }


def _recommendation(census: Census) -> str:
    """One of the three that the escalation block knows: cut, accept minor, extend with PO approval. Source: §7.4."""
    breakers = {trip.breaker for trip in census.trips}
    if not breakers:
        return "none"
    return "extend with PO approval" if not census.green_scopes and "deadline" in breakers else "cut"


def _proposed(proposal: Proposal) -> str:
    scope = f" {proposal.scope_id}" if proposal.scope_id else ""
    round_ = f", round {proposal.round}" if proposal.round is not None else ""
    order = f"; hammer order {proposal.order_path}" if proposal.order_path else ""
    return f"{proposal.breaker}{scope}{round_}: {proposal.reason}{order}"


def _waiting(gate: OpenGate) -> str:
    round_ = f", round {gate.round}" if gate.round is not None else ""
    return f"{gate.gate}{round_}: {gate.note}"


def _section(title: str, items: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *([f"- {_flat(item)}" for item in items] or ["none"])]


def _flat(text: str) -> str:
    """A foreign text on one line, so that it can forge no heading and no item (L7)."""
    line = _one_line(text)
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
