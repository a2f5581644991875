"""The breakers, each by itself and all together. Source: protocol §6.6-6.7, §7, rulings F1-F6, gauntlet N, W-55."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.addresses import Address
from parsers.breaker_ledger import Trip, parse_breakers, trip_row
from parsers.facts import ResultFact, read_result
from parsers.ledgers import LegRow, ingest_row_of, render_row
from parsers.receipts import RunConfig
from parsers.trials import Score, Trial
from reducers.breakers import (
    Attempt,
    Evaluation,
    Funding,
    Green,
    RunFacts,
    Stagnation,
    Stop,
    build_addresses,
    closed_builds,
    current_round,
    evaluations_of,
    judge_attempts,
    judge_deadline,
    judge_inner,
    judge_outer,
    judge_run,
    judge_silence,
    no_progress_k_of,
    scope_outcome,
    stagnation,
    stopped_rounds,
)
from reducers.budget import evaluate_budget
from reducers.recorded_trips import standing, unrecorded

RUN = "cart-20260301T090000Z-0a1b2c3d"
RED, GREEN = Score(0, 1, 2), Score(0, 2, 2)
VECTORS = Path(__file__).resolve().parents[3] / "shared" / "spec" / "gauntlet-vectors.json"


def trial(word: str, round_: int | None = 1, attempt: int | None = None, scope_id: str = "core") -> Trial:
    """`kept-green`, `kept-red`, `reverted`, `rebased` or `crash`."""
    status, _, colour = word.partition("-")
    return Trial(scope_id, status, round_, attempt, score=GREEN if colour == "green" else RED)


def trials(*words: str, round_: int = 1, scope_id: str = "core") -> tuple[Trial, ...]:
    return tuple(trial(word, round_, attempt, scope_id) for attempt, word in enumerate(words, start=1))


def judged(*words: str, budget: int = 5, k: int = 2, funding: Funding | None = None) -> Green | Attempt | Stop:
    return judge_attempts(trials(*words), len(words), budget, k, funding)


def facts(*, config: RunConfig | None = None, **more: Any) -> RunFacts:
    return RunFacts(RUN, config or RunConfig(max_rounds=2, attempt_budget=3), **more)


# --- outer -----------------------------------------------------------------------------------------------------------


def record(stem: str, verdict: str | None = None, outcome: str = "applied", **more: object) -> dict[str, object]:
    row = {"run_id": RUN, "order_id": f"cart/{stem}", "sha256": "f" * 64, "outcome": outcome}
    return row | ({"verdict": verdict} if verdict else {}) | more


def evaluations(*rows: Mapping[str, object], results: Mapping[str, ResultFact] | None = None) -> tuple[Evaluation, ...]:
    return evaluations_of([row for raw in rows if (row := ingest_row_of(raw))], results or {}, RUN)


def test_rounds_come_from_applied_results_alone() -> None:
    rows = [
        record("evaluate-r1", "FAIL"),
        record("evaluate-r2", "FAIL", outcome="rejected"),
        record("evaluate-r3"),  # a result without a verdict finished no evaluation
        record("evaluate-r4", "FAIL", run_id="other"),
        record("core-r5-a1"),
        record("evaluate-core-r6", "FAIL"),  # a per-task evaluation is no round's
        record("evaluate-r7", "MAYBE"),
    ]
    assert evaluations(*rows) == (Evaluation(1, "FAIL"),)


@pytest.mark.parametrize("outcome", ["applied", "superseded", "adopted"])
def test_the_newest_applied_verdict_of_a_round_counts(outcome: str) -> None:
    rows = record("evaluate-r1", "FAIL"), record("evaluate-r1", "PASS", outcome=outcome)
    assert evaluations(*rows) == (Evaluation(1, "PASS"),)


def test_a_bare_evaluate_speaks_of_the_newest_applied_build_round() -> None:
    rows = [record("evaluate", "FAIL"), record("core-r1-a1"), record("core-r2-a1"), record("evaluate", "FAIL")]
    assert evaluations(*rows) == (Evaluation(1, "FAIL"), Evaluation(2, "FAIL"))


def result(stem: str, overall: str, **more: object) -> ResultFact | None:
    value = {"schema_version": 1, "order_id": f"cart/{stem}", "status": "done", "verdict": {"overall": overall}}
    return read_result(f".shapeup/cart/results/{stem}.json", json.dumps(value | more).encode()).fact


def test_an_adopted_verdict_is_read_from_its_result_while_the_bytes_are_the_same() -> None:
    fact = result("evaluate-r2", "FAIL")
    assert fact is not None
    row = record("evaluate-r2", outcome="adopted", sha256=fact.sha256)
    assert evaluations(row, results={"evaluate-r2": fact}) == (Evaluation(2, "FAIL"),)
    assert evaluations(row | {"sha256": "0" * 64}, results={"evaluate-r2": fact}) == ()


def test_a_synthetic_marker_is_no_result() -> None:
    assert result("evaluate-r2", "FAIL", synthetic=True) is None


@pytest.mark.parametrize(
    ("told", "max_rounds", "tripped"),
    [
        ((), 2, None),
        (((1, "FAIL"),), 2, None),
        (((1, "FAIL"), (2, "FAIL")), 2, 2),
        (((1, "FAIL"), (2, "PASS")), 2, None),
        (((1, "PASS"), (2, "FAIL")), 2, 2),
        (((3, "FAIL"),), 2, 3),
        (((1, "FAIL"),), 1, 1),
    ],
)
def test_outer_trips_on_a_fail_with_no_round_left(
    told: tuple[tuple[int, str], ...], max_rounds: int, tripped: int | None
) -> None:
    trip = judge_outer(RUN, [Evaluation(*one) for one in told], max_rounds)
    assert (trip.round if trip else None) == tripped
    if trip:
        assert (trip.breaker, trip.status, trip.scope_id, trip.cause) == ("outer", "trip", None, "max-rounds")


def gate_row(round_: object, decision: str, **more: object) -> dict[str, object]:
    return {"gate": "L3", "status": "ok", "decision": decision, "round": round_, "run_id": RUN} | more


@pytest.mark.parametrize(
    ("rows", "stops"),
    [
        ([gate_row(1, "stop")], {1}),
        ([gate_row(1, "stop"), gate_row(1, "loop")], set()),
        ([gate_row(1, "loop"), gate_row(2, "stop")], {2}),
        ([gate_row(None, "stop")], {None}),
        ([gate_row(None, "stop"), gate_row(2, "loop")], set()),
        (
            [gate_row(1, "stop", run_id="other"), gate_row(1, "stop", gate="L2"), gate_row(1, "stop", status="ask")],
            set(),
        ),
    ],
)
def test_a_round_is_stopped_by_its_newest_answer_at_l3(rows: list[dict[str, object]], stops: set[int | None]) -> None:
    assert stopped_rounds(rows, RUN) == stops


def test_a_stop_trips_the_round_that_failed_and_a_pass_is_left_alone() -> None:
    failed, passed = [Evaluation(1, "FAIL")], [Evaluation(1, "PASS")]
    trip = judge_outer(RUN, failed, 3, {1})
    assert trip is not None
    assert (trip.cause, trip.round) == ("stopped", 1)
    assert judge_outer(RUN, failed, 3, {None}) is not None
    assert judge_outer(RUN, failed, 3, {2}) is None
    assert judge_outer(RUN, passed, 3, {1, None}) is None


def test_gate_l3_may_only_lower_the_rounds() -> None:
    one = facts(evaluations=(Evaluation(1, "FAIL"),))
    assert judge_run(one, None) == ()
    assert [trip.breaker for trip in judge_run(one._replace(max_rounds=1), None)] == ["outer"]
    two = facts(evaluations=(Evaluation(2, "FAIL"),), max_rounds=9)
    assert [trip.breaker for trip in judge_run(two, None)] == ["outer"]


# --- inner -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ((), Attempt(1)),
        (("kept-red",), Attempt(2)),
        (("kept-red", "kept-green"), Green()),
        (("kept-red", "reverted", "reverted"), Stop("stagnant", 3, 2)),
        (("kept-red", "reverted", "crash"), Stop("stagnant", 3, 2)),
        (("reverted", "rebased", "reverted"), Stop("stagnant", 3, 2)),  # F5: it neither counts …
        (("rebased", "rebased", "rebased"), Attempt(4)),  # … nor is it one
        (("reverted", "kept-red", "reverted"), Attempt(4)),
        (("kept-red",) * 5, Stop("attempt-budget", 5, 0)),
        (("reverted", "reverted", "kept-green"), Stop("stagnant", 3, 2)),  # N8: the walk ends at the first
        (("kept-green", "reverted", "reverted"), Green()),
        (("kept-red",) * 5 + ("crash",), Stop("funded-error", 6, 1)),
        (("strange", "strange"), Stop("stagnant", 2, 2)),
    ],
)
def test_what_becomes_of_a_scope(words: tuple[str, ...], outcome: Green | Attempt | Stop) -> None:
    assert judged(*words) == outcome


@pytest.mark.parametrize("k", [0, -1])
def test_k_of_nothing_switches_stagnation_off(k: int) -> None:
    assert judged("reverted", "reverted", "reverted", k=k) == Attempt(4)


@pytest.mark.parametrize(
    ("funding", "outcome"),
    [
        (None, Stop("attempt-budget", 2, 0)),
        (Funding(0, 0), Stop("attempt-budget", 2, 0)),
        (Funding(2, 0), Attempt(3, 1)),
        (Funding(2, 1), Attempt(3, 2)),
        (Funding(2, 2), Stop("funding-exhausted", 2, 0)),
    ],
)
def test_funded_rounds_follow_the_ordinary_ones(funding: Funding | None, outcome: Attempt | Stop) -> None:
    assert judged("kept-red", "kept-red", budget=2, funding=funding) == outcome
    assert judged("reverted", "reverted", budget=2, funding=funding) == Stop("stagnant", 2, 2)


@pytest.mark.vectors
@pytest.mark.skipif(not VECTORS.is_file(), reason="no gauntlet vectors beside the specs")
def test_the_vectors_of_the_inner_breaker() -> None:
    vectors = [v for v in json.loads(VECTORS.read_bytes())["vectors"] if v["op"] == "inner-breaker"]
    for vector in vectors:
        given_, wanted = vector["given"], vector["expect"]
        found = judged(
            *given_["trials"],
            budget=given_["attempt_budget"],
            k=given_["no_progress_k"],
            funding=Funding(given_["N"], given_["spent"]),
        )
        match found:
            case Stop(cause=cause):
                told: dict[str, object] = {"action": "hammer-proposal", "reason": cause}
            case Attempt(number=number, funded_round=funded):
                told = {"action": "attempt", "attempt": number, "funded": funded is not None, "round": funded}
            case Green():
                told = {"action": "green"}
        assert {key: told.get(key) for key in wanted} == wanted, vector["id"]


@pytest.mark.parametrize(
    ("contract", "payload", "config", "k"),
    [(None, None, None, 2), (3, 4, 5, 3), (None, 4, 5, 4), ("3", None, 5, 5), (0, 4, None, 0), (True, None, None, 2)],
)
def test_k_is_what_the_contract_says_before_all_else(
    contract: object, payload: object, config: int | None, k: int
) -> None:
    assert no_progress_k_of(contract, payload, config) == k


def test_the_scope_stands_once_with_its_reason() -> None:
    (trip,) = judge_inner(facts(trials=trials("reverted", "reverted")))
    assert (trip.breaker, trip.status, trip.scope_id, trip.round) == ("inner", "trip", "core", 1)
    assert (trip.cause, trip.budget_s, trip.elapsed_s) == ("stagnant", None, None)
    assert "core" in trip.reason


def test_a_new_round_begins_anew() -> None:
    """W-55: two reverted attempts of round 1 and one of round 2 are no three in a row."""
    both = (*trials("reverted", "reverted"), *trials("reverted", round_=2))
    assert current_round(facts(trials=both)) == 2
    assert judge_inner(facts(trials=both)) == ()
    assert stagnation(both) == Stagnation(True, 3, 2)


def test_an_order_of_the_next_round_ends_the_judging_of_the_last() -> None:
    stuck = trials("reverted", "reverted")
    assert judge_inner(facts(trials=stuck, builds=(Address("core", 2, 1),))) == ()


def test_scopes_are_judged_one_by_one_and_joined_by_their_stem() -> None:
    both = (*trials("kept-red", scope_id="Core.X"), *trials("reverted", "reverted", scope_id="cart"))
    legs = tuple(Address("core.x", 1, attempt) for attempt in (1, 2, 3))
    found = judge_inner(facts(trials=both, legs=legs))
    assert [(trip.scope_id, trip.cause) for trip in found] == [("cart", "stagnant"), ("Core.X", "attempt-budget")]


def legs_of(*attempts: int, round_: int = 1) -> tuple[Address, ...]:
    return tuple(Address("core", round_, attempt) for attempt in attempts)


def test_attempts_are_the_larger_of_trials_and_closed_legs() -> None:
    assert scope_outcome(facts(legs=legs_of(1, 2, 3)), "core", 1) == Stop("attempt-budget", 3, 0)
    assert scope_outcome(facts(trials=trials("kept-red"), legs=legs_of(1, 2, 3)), "core", 1).__class__ is Stop
    assert scope_outcome(facts(trials=trials(*["kept-red"] * 3)), "core", 1) == Stop("attempt-budget", 3, 0)
    assert scope_outcome(facts(legs=legs_of(1, 2)), "core", 1) == Attempt(3)


def test_the_last_attempt_waits_for_its_measurement() -> None:
    """Its result lands first. A trip between result and trial would stand for ever, green or not."""
    two, three = trials("kept-red", "kept-red"), legs_of(1, 2, 3)
    waiting = facts(trials=two, legs=three, builds=three)
    assert judge_inner(waiting) == ()
    assert judge_inner(waiting._replace(trials=(*two, trial("kept-green", attempt=3)))) == ()
    (trip,) = judge_inner(waiting._replace(trials=(*two, trial("kept-red", attempt=3))))
    assert trip.cause == "attempt-budget"


def test_an_attempt_that_was_never_measured_counts_once_the_next_is_ordered() -> None:
    two = trials("kept-red", "kept-red")
    (trip,) = judge_inner(facts(trials=two, legs=legs_of(1, 2, 3), builds=legs_of(1, 2, 3, 4)))
    assert trip.cause == "attempt-budget"


def test_a_leg_counts_once_however_often_its_result_was_applied_and_only_in_its_run() -> None:
    at = "2026-03-01T10:00:00.000Z"
    rows = [
        LegRow(RUN, "cart/core-r1-a1", at),
        LegRow(RUN, "cart/core-r1-a1", at),
        LegRow("other", "cart/core-r1-a2", at),
        LegRow(RUN, "cart/core-r1-a3", None),
        LegRow(None, "cart/core-r1-a4", at),
        LegRow(RUN, "cart/evaluate-r1", at),
        LegRow(RUN, "cart/c\ud800re-r1-a1", at),
    ]
    assert closed_builds(rows, RUN) == (Address("core", 1, 1), Address("core", 1, 4))
    assert build_addresses(["cart/orient", "cart/core-r2-a1"]) == (Address("core", 2, 1),)


def test_a_round_in_which_every_planned_scope_has_tripped_trips_as_a_whole() -> None:
    stuck = (*trials("reverted", "reverted"), *trials("crash", "crash", scope_id="cart"))
    planned = facts(trials=stuck, planned=frozenset({"core", "cart"}))
    found = judge_inner(planned)
    assert [(trip.scope_id, trip.cause) for trip in found] == [
        ("cart", "stagnant"),
        ("core", "stagnant"),
        (None, "no-green"),
    ]
    assert len(judge_inner(planned._replace(planned=frozenset()))) == 2
    assert len(judge_inner(planned._replace(planned=frozenset({"core", "cart", "later"})))) == 2
    green = (*stuck, *trials("kept-green", scope_id="done"))
    assert len(judge_inner(planned._replace(trials=green, planned=frozenset({"core", "cart", "done"})))) == 2


# --- stagnation as the kernel answers it -----------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["kept", "reverted", "rebased", "crash"])), st.integers(-1, 4))
def test_the_streak_is_the_tail_without_a_kept_trial(words: list[str], k: int) -> None:
    found = stagnation([Trial("core", word) for word in words], k)
    tail = words[len(words) - found.streak :]
    assert "kept" not in tail
    assert found.streak == len(words) or words[len(words) - found.streak - 1] == "kept"
    assert found.stagnant is (k > 0 and found.streak >= k)


# --- deadline, silence, and all together -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("elapsed_s", "status"), [(0, None), (74.9, None), (75, "warn"), (99.9, "warn"), (100, "trip")]
)
def test_the_deadline_warns_then_trips(elapsed_s: float, status: str | None) -> None:
    trip = judge_deadline(RUN, evaluate_budget(elapsed_s, 100), 2)
    assert (trip.status if trip else None) == status
    if trip:
        assert (trip.elapsed_s, trip.budget_s, trip.round, trip.scope_id) == (elapsed_s, 100, 2, None)


def test_a_run_without_a_budget_has_no_deadline() -> None:
    assert judge_deadline(RUN, evaluate_budget(1e9, None)) is None


@pytest.mark.parametrize(("idle_s", "silence_min", "warns"), [(59, 1, False), (60, 1, True), (1e9, 0, False)])
def test_silence_warns_and_never_trips(idle_s: float, silence_min: float, warns: bool) -> None:
    trip = judge_silence(RUN, idle_s, silence_min)
    assert (trip is not None) is warns
    assert trip is None or (trip.status, trip.budget_s) == ("warn", 60)


def test_all_three_share_one_path_and_a_closed_run_never_trips() -> None:
    run = facts(evaluations=(Evaluation(2, "FAIL"),), trials=trials("reverted", "reverted"))
    late = evaluate_budget(100, 100)
    assert [trip.breaker for trip in judge_run(run, late)] == ["deadline", "outer", "inner"]
    assert judge_run(run._replace(is_open=False), late) == ()


# --- once, and for how long ------------------------------------------------------------------------------------------


def recorded(*trips: Trip) -> tuple[Trip, ...]:
    """As they stand in the ledger."""
    rows = "".join(render_row(trip_row(trip, "2026-03-01T10:00:00.000Z")) for trip in trips)
    return parse_breakers(rows.encode()).trips


def test_what_is_recorded_is_not_told_again_whatever_restarts() -> None:
    run = facts(evaluations=(Evaluation(2, "FAIL"),), trials=trials("reverted", "reverted"))
    found = judge_run(run, evaluate_budget(100, 100))
    assert unrecorded(found, ()) == found
    assert unrecorded(judge_run(run, evaluate_budget(250, 100)), recorded(*found)) == ()


def test_a_warning_comes_before_its_trip_or_not_at_all() -> None:
    warning, trip = (judge_deadline(RUN, evaluate_budget(elapsed_s, 100)) for elapsed_s in (80, 120))
    assert warning is not None
    assert trip is not None
    assert unrecorded([trip], recorded(warning)) == (trip,)
    assert unrecorded([warning], recorded(trip)) == ()


def test_an_extended_deadline_binds_no_more_and_trips_again() -> None:
    first, second = (judge_deadline(RUN, evaluate_budget(200, budget_s)) for budget_s in (100, 150))
    assert first is not None
    assert second is not None
    assert standing(recorded(first), RUN, 100) == (first,)
    assert standing(recorded(first), RUN, 150) == ()
    assert standing(recorded(first), RUN, 50) == (first,)
    assert standing(recorded(first), RUN, None) == (first,)
    assert unrecorded([second], recorded(first)) == (second,)


def test_warnings_and_trips_of_other_runs_bind_nobody() -> None:
    warning = judge_deadline(RUN, evaluate_budget(80, 100))
    other = Trip("other", "outer", "trip", None, 2)
    assert warning is not None
    assert standing(recorded(warning, other), RUN, 100) == ()


WORDS = st.sampled_from(["kept-green", "kept-red", "reverted", "rebased", "crash"])


@given(st.lists(WORDS, max_size=8), st.integers(1, 5), st.integers(0, 3))
def test_a_stop_stays_a_stop_while_trials_go_on(words: list[str], budget: int, k: int) -> None:
    """A daemon that watched and one that came later tell the same, but for a scope that turned green at its last attempt."""
    walked = [judged(*words[:end], budget=budget, k=k) for end in range(len(words) + 1)]
    for before, after in pairwise(walked):
        if isinstance(before, Green) or (isinstance(before, Stop) and before.cause != "attempt-budget"):
            assert type(after) is type(before)
