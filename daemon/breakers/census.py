"""What GATE H decides upon, read from a run's facts. Source: protocol §7.4, rulings F8, K "At a FAIL"."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from daemon.boot_clock import read_clocks
from daemon.breakers.run_facts import BreakerFacts
from daemon.clock_on_disk import read_run_clock
from daemon.hill_facts import read_hill_facts
from daemon.run_orders import read_run_orders
from daemon.run_state import RunState
from parsers.addresses import scope_stem
from parsers.breaker_ledger import Proposal, Trip, short_hash
from parsers.layout import folder_of
from reducers.after_trip import allowances
from reducers.breakers import FAIL, Stop, closed_builds, judge_deadline, scope_outcome
from reducers.gate_h import Census, Scope, failed_criteria, green_scopes
from reducers.gates import open_gates
from reducers.hill_trail import propose_splits
from reducers.live_contracts import is_answered, is_dispatched


def census_of(
    state: RunState,
    facts: BreakerFacts,
    proposals: Sequence[Proposal],
    standing: tuple[Trip, ...],
    stuck: tuple[Scope, ...] = (),
) -> Census:
    """The census of the run as it stands now. `proposals` are those of every run, `standing` the trips that bind."""
    legs = closed_builds((leg for rows in state.legs.values() for leg in rows), state.run_id)
    green = green_scopes(facts.trials, [(scope_stem(leg.name or ""), leg.round or 0) for leg in legs])
    evaluations = facts.evaluations()
    run = facts.of_run()
    return Census(
        slug=state.slug,
        run_id=state.run_id,
        trips=standing,
        proposals=tuple(proposal for proposal in proposals if proposal.run_id == state.run_id),
        green_scopes=green,
        open_orders=open_orders(state),
        allowances=allowances(standing),
        rounds_used=evaluations[-1].round if evaluations else 0,
        max_rounds=min(run.config.max_rounds, run.max_rounds or run.config.max_rounds),
        open_gates=open_gates(facts.gate_rows, state.run_id),
        residual=_residual(facts),
        not_green=_not_green(state, facts, green),
        stuck=stuck,
    )


def open_orders(state: RunState) -> tuple[str, ...]:
    """The orders of the run that somebody works on and nobody has answered yet."""
    return tuple(
        sorted(
            fact.order.order_id
            for fact in state.orders.values()
            if fact.order.run_id in (None, state.run_id)
            and is_dispatched(fact, state.dispatches.by_order)
            and not is_answered(state.records, fact)
        )
    )


def done_orders(state: RunState) -> tuple[str, ...]:
    """The orders that have their answer, as a proposal names them."""
    answered = (fact for fact in state.orders.values() if is_answered(state.records, fact))
    return tuple(sorted(short_hash(fact.sha256) for fact in answered))


def _residual(facts: BreakerFacts) -> tuple[str, ...]:
    """What the newest verdict found wanting; nothing where it passed, or its result is gone."""
    evaluations = facts.evaluations()
    if not evaluations or evaluations[-1].overall != FAIL:
        return ()
    for stem in (f"evaluate-r{evaluations[-1].round}", "evaluate"):
        fact = facts.result(stem)
        if fact and fact.result.verdict:
            return failed_criteria(fact.result.verdict)
    return ()


def _not_green(state: RunState, facts: BreakerFacts, green: Sequence[str]) -> tuple[Scope, ...]:
    """Every scope that has a contract, or was built, and is not green: with what the round says of it."""
    names = state.disk.list(folder_of("scope-contract", state.slug))
    scopes = {scope_stem(name.removesuffix(".md")): name.removesuffix(".md") for name in names if name.endswith(".md")}
    run = facts.of_run()
    scopes |= {scope_stem(leg.name or ""): leg.name or "" for leg in run.legs}
    scopes |= {scope_stem(trial.scope_id): trial.scope_id for trial in facts.trials}
    shown = {scope_stem(scope) for scope in green}
    return tuple(Scope(scopes[scope], _why(facts, scope)) for scope in sorted(scopes.keys() - shown))


def _why(facts: BreakerFacts, scope: str) -> str:
    if facts.round is None:
        return "nothing was built yet"
    outcome = scope_outcome(facts.of_run(((scope, facts.round),)), scope, facts.round)
    if isinstance(outcome, Stop):
        return {"stagnant": f"{outcome.streak} trials in a row brought no progress"}.get(
            outcome.cause, f"{outcome.attempts} attempts, none green"
        )
    tried = [trial for trial in facts.trials if scope_stem(trial.scope_id) == scope and trial.round == facts.round]
    return f"{len(tried)} trial(s) in round {facts.round}" if tried else f"no trial in round {facts.round}"


def read_census(root: Path, slug: str) -> Census:
    """The census of a run straight from the disk; nothing is written."""
    state = RunState.load(root, slug, lambda event, fields: None, recovers=False)
    state.orders.update(read_run_orders(state.disk, slug).orders)
    facts = BreakerFacts(state)
    facts.touch(set(state.orders) | {order_id.partition("/")[2] for order_id in state.legs})
    found = read_run_clock(state.disk, slug)
    standing = found.standing
    elapsed = found.clock.elapsed(read_clocks())
    if elapsed and found.is_open and not any(trip.breaker == "deadline" for trip in standing):
        deadline = judge_deadline(state.run_id, found.clock.budget(elapsed), facts.round)
        standing += (deadline,) if deadline and deadline.status == "trip" else ()  # no daemon has recorded it yet
    splits = propose_splits(read_hill_facts(state.disk, slug, state.run_orders()))
    state.store.close()
    stuck = tuple(Scope(split.scope_id, split.why) for split in splits)
    return census_of(state, facts, found.queue.proposals, standing, stuck)._replace(is_open=found.is_open)
