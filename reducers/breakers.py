"""The breakers of a run: what each says of the facts, and what may still be dispatched once one has tripped. Source: protocol §6.6-6.7, §7, rulings F1-F6.

A breaker answers with a Trip (its `status` tells a warning from a trip) or None. It is asked again with every fact; what it
said before stands in breakers.jsonl, and reducers/recorded_trips.py leaves that out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from parsers.addresses import ORDER_ID, Address, parse_address, scope_stem
from parsers.breaker_ledger import Trip
from parsers.facts import ResultFact
from parsers.ledgers import IngestRow, LegRow
from parsers.receipts import DEFAULT_NO_PROGRESS_K, RunConfig, whole_number
from parsers.trials import Trial
from reducers.budget import Budget, plain
from reducers.identity import APPLIED

PASS, FAIL = "PASS", "FAIL"


# --- outer: rounds (§7.1) --------------------------------------------------------------------------------------------


class Evaluation(NamedTuple):
    """The applied verdict of one round. `overall` is PASS or FAIL."""

    round: int
    overall: str


def evaluations_of(
    rows: Iterable[IngestRow], results: Mapping[str, ResultFact], run_id: str | None
) -> tuple[Evaluation, ...]:
    """The rounds that an applied result evaluated, by round. Source: ruling F2.

    `rows` are those of receipts/ingest.jsonl, in file order; `results` the result files by stem, which tell the verdict of
    an adopted result. A marker that `init run --force` left is no result and has no row. A bare `evaluate` speaks of
    the newest build round applied before it.
    """
    found: dict[int, str] = {}
    newest_build = 1
    for row in rows:
        if row.outcome not in APPLIED or row.run_id not in (None, run_id):
            continue
        address = parse_address(row.order_id)
        if address.attempt is not None and address.round is not None:
            newest_build = max(newest_build, address.round)
        elif address.name == "evaluate" and (overall := _overall(row, results)):
            found[newest_build if address.round is None else address.round] = overall
    return tuple(Evaluation(round_, found[round_]) for round_ in sorted(found))


def _overall(row: IngestRow, results: Mapping[str, ResultFact]) -> str | None:
    overall = row.verdict
    if overall is None:
        fact = results.get(row.order_id.partition("/")[2])
        is_same = fact is not None and fact.sha256 == row.sha256 and fact.result.verdict is not None
        overall = fact.result.verdict.overall if is_same and fact and fact.result.verdict else None
    return overall if overall in (PASS, FAIL) else None


def stopped_rounds(gate_rows: Iterable[Mapping[str, object]], run_id: str | None) -> frozenset[int | None]:
    """The rounds whose newest answer at L3 is `stop`; None stands for an answer without a round, while none is newer."""
    newest: dict[int | None, object] = {}
    for row in gate_rows:
        if row.get("gate") == "L3" and row.get("status") == "ok" and row.get("run_id") in (None, run_id):
            newest.pop(None, None)
            newest[whole_number(row.get("round"))] = row.get("decision")
    return frozenset(round_ for round_, decision in newest.items() if decision == "stop")


def granted_rounds(gate_rows: Iterable[Mapping[str, object]], run_id: str | None) -> int | None:
    """The rounds that the newest crossing of L3 leaves to the run; None where none names a number. Source: W-60."""
    crossings = (
        whole_number(row.get("max_rounds"))
        for row in gate_rows
        if row.get("gate") == "L3" and row.get("status") == "ok" and row.get("run_id") in (None, run_id)
    )
    return next(reversed([rounds for rounds in crossings if rounds is not None]), None)


def judge_outer(
    run_id: str | None,
    evaluations: Sequence[Evaluation],
    max_rounds: int,
    stopped: Collection[int | None] = frozenset(),
) -> Trip | None:
    """A trip where the newest verdict is FAIL and no round is left, or L3 was answered `stop`. Source: §7.1, R-11, R-12."""
    newest = evaluations[-1] if evaluations else None
    if newest is None or newest.overall == PASS:
        return None
    act = "Start no build round; go to GATE H with what is green."
    if newest.round >= max_rounds:
        told = f"round {newest.round} of {max_rounds} was judged FAIL, and no round is left"
        return Trip(run_id, "outer", "trip", None, newest.round, cause="max-rounds", reason=told, action=act)
    if newest.round in stopped or None in stopped:
        told = f"round {newest.round} was judged FAIL, and L3 was answered `stop`"
        return Trip(run_id, "outer", "trip", None, newest.round, cause="stopped", reason=told, action=act)
    return None


# --- inner: attempts and progress of one scope in one round (§6.6, §6.7, gauntlet N) ---------------------------------


class Stagnation(NamedTuple):
    """How many of the newest trials were not kept, against k. Source: §6.6, as `stats` and the kernel's verbs answer."""

    stagnant: bool
    streak: int
    k: int


def stagnation(trials: Iterable[Trial], k: int = DEFAULT_NO_PROGRESS_K) -> Stagnation:
    """Over all trials given, whatever their round: the trailing ones that are not `kept`, `rebased` among them."""
    streak = 0
    for trial in trials:
        streak = 0 if trial.status == "kept" else streak + 1
    return Stagnation(k > 0 and streak >= k, streak, k)


class Funding(NamedTuple):
    """Rounds that a grant pays for after the attempts are used up: how many, and what the most-spent owner has spent."""

    rounds: int = 0
    spent: int = 0


class Green(NamedTuple):
    """A trial of the round was kept and green: the scope is done."""


class Attempt(NamedTuple):
    """The scope may be tried again. `funded_round` None: an ordinary attempt."""

    number: int
    funded_round: int | None = None


class Stop(NamedTuple):
    """The scope has used what it had. `cause`: `stagnant`, `attempt-budget`, `funded-error` or `funding-exhausted`."""

    cause: Literal["stagnant", "attempt-budget", "funded-error", "funding-exhausted"]
    attempts: int
    streak: int


def judge_attempts(
    trials: Sequence[Trial], attempts: int, attempt_budget: int, k: int, funding: Funding | None = None
) -> Green | Attempt | Stop:
    """What becomes of a scope after these trials of one round, oldest first. Source: gauntlet N0-N8, rulings F5, F6.

    `attempts` is the count of F6, at least the number of trials. `rebased` neither counts as a trial without progress nor
    ends a run of them; k of 0 and less switches that off.
    """
    streak = 0
    for number, trial in enumerate(trials, start=1):
        if trial.is_kept_green:
            return Green()
        if number > attempt_budget and trial.status == "crash":
            return Stop("funded-error", attempts, streak + 1)
        if trial.status == "kept":
            streak = 0
        elif trial.status != "rebased":
            streak += 1
        if 0 < k <= streak:
            return Stop("stagnant", attempts, streak)
    if attempts < attempt_budget:
        return Attempt(attempts + 1)
    granted = funding or Funding()
    if granted.rounds <= 0:
        return Stop("attempt-budget", attempts, streak)
    if granted.spent >= granted.rounds:
        return Stop("funding-exhausted", attempts, streak)
    return Attempt(attempts + 1, granted.spent + 1)


def no_progress_k_of(contract: object, payload: object, config: int | None) -> int:
    """The k of a scope: what its contract says, else the order's payload, else the receipt, else 2. Source: §6.6."""
    said = (whole_number(contract), whole_number(payload), config)
    return next((value for value in said if value is not None), DEFAULT_NO_PROGRESS_K)


class RunFacts(NamedTuple):
    """What the inner and outer breakers look at, of one run alone (trials, legs and orders of other runs are left out).

    `builds` are the addresses of its admitted build orders, `legs` those of its closed ones. `planned` are the scopes that
    the current round is to build; empty: nobody knows, and the round as a whole is not judged. `no_progress_k` and
    `funding` go by scope, as it stands in stems; a scope that they do not name has the receipt's k, and no funding.
    """

    run_id: str | None
    config: RunConfig
    is_open: bool = True
    max_rounds: int | None = None  # what GATE L3 leaves of the receipt's (W-60); None: nothing was said there
    evaluations: tuple[Evaluation, ...] = ()
    stopped: frozenset[int | None] = frozenset()
    trials: tuple[Trial, ...] = ()
    builds: tuple[Address, ...] = ()
    legs: tuple[Address, ...] = ()
    round: int | None = None  # the current one, where the addresses given are not all there are
    planned: frozenset[str] = frozenset()
    no_progress_k: Mapping[str, int] = MappingProxyType({})
    funding: Mapping[str, Funding] = MappingProxyType({})


def build_addresses(order_ids: Iterable[str]) -> tuple[Address, ...]:
    """The addresses among these order ids that name a round and an attempt, each once: those of build orders."""
    addresses = (parse_address(order_id) for order_id in order_ids if ORDER_ID.match(order_id))
    return tuple(dict.fromkeys(a for a in addresses if a.round is not None and a.attempt is not None))


def closed_builds(legs: Iterable[LegRow], run_id: str | None) -> tuple[Address, ...]:
    """The build orders of the run that a leg closed, each once however often its result was applied. Source: ruling F6."""
    return build_addresses(leg.order_id for leg in legs if leg.ingested_at and leg.run_id in (None, run_id))


def current_round(facts: RunFacts) -> int | None:
    """The newest round that a build order, a leg or a trial names; None before the first."""
    if facts.round is not None:
        return facts.round
    named = [address.round for address in (*facts.builds, *facts.legs)] + [trial.round for trial in facts.trials]
    return max((round_ for round_ in named if round_ is not None), default=None)


def scope_outcome(facts: RunFacts, scope: str, round_: int) -> Green | Attempt | Stop:
    """What becomes of a scope (as it stands in stems) in a round."""
    trials = [trial for trial in facts.trials if trial.round == round_ and scope_stem(trial.scope_id) == scope]
    k = facts.no_progress_k.get(scope, no_progress_k_of(None, None, facts.config.no_progress_k))
    attempts = max(len(trials), _closed(facts, scope, round_, trials))
    return judge_attempts(trials, attempts, facts.config.attempt_budget, k, facts.funding.get(scope))


def _closed(facts: RunFacts, scope: str, round_: int, trials: Sequence[Trial]) -> int:
    """The closed legs that count. The newest does not while its own measurement may still come: each result lands before
    its trial, and a trip between the two would be for ever. It counts once the next attempt is ordered without one."""
    closed = {address.attempt for address in facts.legs if _is_of(address, scope, round_)}
    newest = max((attempt for attempt in closed if attempt is not None), default=0)
    ordered = max((a.attempt or 0 for a in facts.builds if _is_of(a, scope, round_)), default=0)
    is_due = bool(facts.trials) and len(closed) == len(trials) + 1 and ordered <= newest
    return len(closed) - (is_due and newest not in {trial.attempt for trial in trials})


def _is_of(address: Address, scope: str, round_: int) -> bool:
    return address.round == round_ and scope_stem(address.name or "") == scope


def judge_inner(facts: RunFacts) -> tuple[Trip, ...]:
    """A trip for each scope of the current round that has used what it had, and one for the round where that is all of them."""
    round_ = current_round(facts)
    if round_ is None:
        return ()
    names = {scope_stem(address.name or ""): address.name or "" for address in facts.legs if address.round == round_}
    names |= {scope_stem(trial.scope_id): trial.scope_id for trial in facts.trials if trial.round == round_}
    outcomes = {scope: scope_outcome(facts, scope, round_) for scope in sorted(names.keys() | facts.planned)}
    trips = [
        _inner_trip(facts, names.get(scope, scope), round_, outcome)
        for scope, outcome in outcomes.items()
        if isinstance(outcome, Stop)
    ]
    if trips and facts.planned and all(isinstance(outcomes[scope], Stop) for scope in facts.planned):
        told = f"no scope of round {round_} is green, and none of them may be tried again"
        act = "Evaluate nothing; go to GATE H."
        trips.append(Trip(facts.run_id, "inner", "trip", None, round_, cause="no-green", reason=told, action=act))
    return tuple(trips)


def _inner_trip(facts: RunFacts, scope_id: str, round_: int, stop: Stop) -> Trip:
    match stop.cause:
        case "stagnant":
            told = f"{stop.streak} trials in a row brought no progress"
        case "attempt-budget":
            told = f"{stop.attempts} of {facts.config.attempt_budget} attempts are used and none is green"
        case "funded-error":
            told = "an attempt beyond the budget crashed"
        case "funding-exhausted":
            told = "the funded rounds are used up as well"
    act = "Queue this scope for GATE H and go on with the next one."
    reason = f"scope {scope_id}, round {round_}: {told}"
    return Trip(facts.run_id, "inner", "trip", scope_id, round_, cause=stop.cause, reason=reason, action=act)


# --- deadline and silence --------------------------------------------------------------------------------------------


def judge_deadline(run_id: str | None, budget: Budget, round_: int | None = None) -> Trip | None:
    """A warning from three quarters of the time on, a trip at its end. Source: §7.2."""
    if budget.budget_s is None or budget.status not in ("warn", "trip"):
        return None
    elapsed_s = plain(round(budget.elapsed_s, 3))
    used = f"{elapsed_s} s of {plain(budget.budget_s)} s are used"
    if budget.status == "warn":
        act = "Finish and measure the scope in flight; open no scope and no build round."
        return Trip(run_id, "deadline", "warn", None, round_, elapsed_s, budget.budget_s, "deadline-near", used, act)
    act = "Start no build round and no scope; go to GATE H and ship what is green."
    return Trip(run_id, "deadline", "trip", None, round_, elapsed_s, budget.budget_s, "deadline", used, act)


def judge_silence(
    run_id: str | None, idle_s: float, silence_min: float, round_: int | None = None, since: str | None = None
) -> Trip | None:
    """A warning where nothing landed for so many minutes; 0 switches it off. It never trips. Source: issue 4 "Timers".

    `since` is when the last fact landed: each silence is told once.
    """
    limit_s = silence_min * 60
    if limit_s <= 0 or idle_s < limit_s:
        return None
    idle_s = plain(round(idle_s, 3))
    told = f"nothing has landed for {idle_s} s"
    act = "Look whether the orchestrator still runs; the run stays open."
    return Trip(run_id, "silence", "warn", None, round_, idle_s, plain(limit_s), "silence", told, act, since)


# --- all of them -----------------------------------------------------------------------------------------------------


def judge_run(facts: RunFacts, budget: Budget | None) -> tuple[Trip, ...]:
    """Everything the breakers say of a run now; nothing of a closed one (F2). `budget` None: its time is not known."""
    if not facts.is_open:
        return ()
    max_rounds = min(facts.config.max_rounds, facts.max_rounds or facts.config.max_rounds)
    outer = judge_outer(facts.run_id, facts.evaluations, max_rounds, facts.stopped)
    deadline = judge_deadline(facts.run_id, budget, current_round(facts)) if budget else None
    return tuple(trip for trip in (deadline, outer, *judge_inner(facts)) if trip)
