"""Where scopes stand: from evidence alone, backwards too, and the same whenever it is asked. Source: protocol §5.4, W-34 .. W-37, rulings G3, G4."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from parsers.hill_shards import PHASES, HillShard
from parsers.seesaw import FinishedScope, Registry, parse_seesaw
from parsers.t0_verdict import Seesaw, T0Verdict
from parsers.trials import Score, Trial
from reducers.breakers import Evaluation
from reducers.hill import HillFacts, HillScope, Unknowns, derive_hill, standing_hill
from reducers.hill_evidence import Artifact, kept_green, measure
from reducers.hill_trail import derive_moves, propose_splits
from reducers.hill_views import derive, is_derived
from reducers.seesaw import derive_registry
from tests.reducers.hill_world import DOWNHILL, FINISHED, SOLVED, UNKNOWN, checkout, measured

PASSED = (Evaluation(1, "PASS"),)


def facts(*artifacts, **more):
    return HillFacts("cart", scopes=(HillScope("core", ("run core",)),), measured=artifacts, **more)


def phase_of(known, scope="core"):
    return next(one.phase for one in derive_hill(known) if one.scope_id == scope)


# --- one scope -------------------------------------------------------------------------------------------------------


def test_a_scope_without_evidence_is_solved_uphill_until_an_unknown_is_found():
    assert phase_of(facts()) == SOLVED
    assert phase_of(facts(unknowns=(Unknowns("core", 1, 1),))) == UNKNOWN
    assert phase_of(facts(unknowns=(Unknowns("core-2", 1, 1),))) == SOLVED


def test_green_evidence_carries_it_over_the_crest_whatever_is_unknown():
    assert phase_of(facts(measured("core", "r1-a1-t1"), unknowns=(Unknowns("core", 1, 3),))) == DOWNHILL


def test_finished_takes_a_green_t0_a_seesaw_that_ran_and_a_passed_evaluation():
    green = measured("core", "r1-a1-t1")
    assert phase_of(facts(green, evaluations=PASSED)) == FINISHED
    assert phase_of(facts(green)) == DOWNHILL
    assert phase_of(facts(measured("core", "r1-a1-t1", seesaw=False), evaluations=PASSED)) == DOWNHILL
    assert phase_of(facts(measured("core", "r1-a1-t1", green=False), evaluations=PASSED)) == SOLVED


def test_the_newest_evaluation_decides():
    green = measured("core", "r1-a1-t1")
    assert phase_of(facts(green, evaluations=(Evaluation(2, "PASS"), Evaluation(10, "FAIL")))) == DOWNHILL
    assert phase_of(facts(green, evaluations=(Evaluation(2, "FAIL"), Evaluation(10, "PASS")))) == FINISHED


def test_a_later_red_takes_an_old_green_back():
    green = measured("core", "r1-a9-t1")
    for later in ("r2-a1-t1", "r1-a10-t1", "r1-a9-t2"):
        assert phase_of(facts(green, measured("core", later, green=False), evaluations=PASSED)) == SOLVED
    assert phase_of(facts(measured("core", "r1-a1-t1", green=False), green, evaluations=PASSED)) == FINISHED


def test_the_sentence_names_the_evidence():
    (one,) = derive_hill(facts(measured("core", "r1-a2-t1", seesaw=False), evaluations=(Evaluation(1, "FAIL"),)))
    assert one.why == "T0 r1-a2-t1 is green, but its seesaw did not run and the evaluation of round 1 says FAIL"


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.booleans(), st.booleans()), max_size=8),
    st.permutations(range(8)),
    st.sampled_from(("", "PASS", "FAIL")),
    st.integers(0, 2),
)
def test_the_phase_is_a_function_of_the_facts_and_no_order_of_theirs(runs, order, verdict, unknowns):
    artifacts = {
        (round_, attempt): measured("core", f"r{round_}-a{attempt}-t1", green=green, seesaw=seesaw)
        for round_, attempt, green, seesaw in runs
    }
    more = {
        "evaluations": (Evaluation(1, verdict),) if verdict else (),
        "unknowns": (Unknowns("core", 1, unknowns),) if unknowns else (),
    }
    told = tuple(artifacts.values())
    shuffled = tuple(told[at] for at in order if at < len(told))
    newest = artifacts[max(artifacts)] if artifacts else None
    expected = SOLVED if not unknowns else UNKNOWN
    if newest and newest.is_green:
        expected = FINISHED if verdict == "PASS" and newest.has_seesaw_passed else DOWNHILL
    for one in (facts(*told, **more), facts(*shuffled, **more)):
        assert phase_of(one) == expected
        assert derive_hill(one) == derive_hill(facts(*told, **more))
        # what was recorded or stands on disk moves nothing
        claimed = one._replace(shards=(HillShard("core", FINISHED),))
        assert derive(claimed).shards == derive(one).shards


# --- evidence --------------------------------------------------------------------------------------------------------

GREEN, RED = Score(0, 2, 2), Score(0, 1, 2)


def artifact(scope="core", *, green=True, round_=1, attempt=1, trial=1, run_id="run", sha="s"):
    seesaw = Seesaw(True, True)
    overall = "green" if green else "red"
    verdict = T0Verdict(
        2, round_, attempt, trial, None, run_id, scope, (), None, seesaw, green, None, True, overall, False, None, ()
    )
    return Artifact(verdict, sha)


def row(stem, status, scope="core", score=GREEN, sha="s", round_=1, attempt=1):
    return Trial(scope, status, round_, attempt, 1, "run", score, None, f"t0/verdicts/{stem}.json", sha)


def test_artifacts_of_reverted_and_crashed_attempts_do_not_count():
    files = {"r1-a1-t1": artifact(), "r2-a1-t1": artifact(green=False, round_=2)}
    for status, expected in (("reverted", DOWNHILL), ("crash", DOWNHILL), ("kept", SOLVED), ("rebased", SOLVED)):
        rows = (row("r1-a1-t1", "kept"), row("r2-a1-t1", status, score=RED, round_=2))
        assert phase_of(facts(*measure(files, rows, "run"))) == expected
    assert phase_of(facts(*measure(files, (), "run"))) == SOLVED  # no row at all: it counts as it stands


def test_evidence_that_is_gone_or_was_changed_is_red_and_lets_no_older_green_stand():
    rows = (row("r1-a1-t1", "kept"), row("r2-a1-t1", "kept", score=RED, round_=2))
    gone = {"r1-a1-t1": artifact()}
    forged = {**gone, "r2-a1-t1": artifact(round_=2, sha="other")}
    renamed = {**gone, "r2-a1-t1": artifact("else", round_=2)}
    for files, word in ((gone, "is gone"), (forged, "recorded"), (renamed, "recorded")):
        (one,) = derive_hill(facts(*measure(files, rows, "run")))
        assert one.phase == SOLVED
        assert word in one.why


def test_an_artifact_of_another_run_does_not_count():
    assert not measure({"r1-a1-t1": artifact(run_id="older")}, (), "run")
    assert measure({"r1-a1-t1": artifact(run_id="older")}, (), None)
    assert measure({"r1-a1-t1": artifact(run_id=None)}, (), "run")


def test_one_sequence_of_names_serves_many_scopes():
    files = {"r1-a1-t1": artifact("a"), "r1-a1-t2": artifact("b", trial=2, green=False)}
    found = measure(files, (), "run")
    known = HillFacts("cart", scopes=(HillScope("a"), HillScope("b")), measured=found)
    assert [one.phase for one in derive_hill(known)] == [DOWNHILL, SOLVED]


# --- what is kept from it --------------------------------------------------------------------------------------------


def test_a_slug_without_a_local_trace_is_never_derived_and_its_shards_stand():
    archived = facts(has_trace=False, shards=(HillShard("core", FINISHED),))
    views = derive(archived)
    assert (views.shards, views.chart, views.registry, views.moves) == ({}, None, None, ())
    assert [(one.scope_id, one.phase) for one in standing_hill(archived)] == [("core", FINISHED)]
    assert is_derived(archived, HillShard("core", UNKNOWN))


def test_what_the_settings_switch_off_is_not_written_but_moves_are_known():
    views = derive(facts(), writes_shared=False)
    assert (views.shards, views.chart) == ({}, None)
    assert views.registry
    assert views.moves


def test_deleting_all_and_deriving_again_gives_the_same_bytes():
    known = checkout()
    first = derive(known)
    again = derive(known._replace(shards=tuple(HillShard(one.scope_id, one.phase) for one in derive_hill(known))))
    assert first == again
    assert first.shards["shapeup/checkout/hill/cart-totals.yml"] == b"scope_id: cart-totals\nphase: FINISHED\n"
    assert len(first.shards) == len(known.scopes)


def test_moves_are_told_once():
    known = checkout()
    moves = derive(known).moves
    assert {(move.scope_id, move.from_phase, move.to_phase) for move in moves} == {
        ("cart-totals", DOWNHILL, FINISHED),
        ("payment-seam-and-everything-behind-it", None, SOLVED),
        ("checkout", None, SOLVED),
    }
    recorded = known._replace(trail=(*known.trail, *(move.row("2026-03-05T00:00:00.000Z") for move in moves)))
    assert not derive_moves(recorded, derive_hill(recorded))


def test_three_rounds_of_work_at_one_phase_ask_for_a_split():
    (one,) = propose_splits(checkout())
    assert (one.scope_id, one.phase, one.rounds) == ("discount-codes", SOLVED, (1, 2, 3))


def test_waiting_is_not_being_stuck_and_neither_is_moving():
    reds = [measured("core", f"r{round_}-a1-t1", green=False) for round_ in (1, 2, 3)]
    assert propose_splits(facts(*reds))
    assert not propose_splits(facts(*reds[:2]))
    assert not propose_splits(facts(measured("core", "r1-a1-t1"), worked=frozenset({("else", 2), ("else", 3)})))
    assert not propose_splits(facts(reds[0], reds[1], measured("core", "r3-a1-t1")))
    greens = [measured("core", f"r{round_}-a1-t1") for round_ in (1, 2, 3)]
    assert not propose_splits(facts(*greens, evaluations=(Evaluation(3, "PASS"),)))
    split = HillFacts("cart", scopes=(HillScope("core", (), ("a", "b")),), measured=tuple(reds))
    assert not propose_splits(split)


def test_the_registry_holds_what_is_kept_and_green_and_not_being_worked_on():
    assert derive_registry(facts()) == b'{"scopes": []}\n'
    assert json.loads(derive_registry(checkout())) == {
        "scopes": [{"scope_id": "cart-totals", "fixtures": ["run cart-totals"]}]
    }
    held = facts(measured("core", "r1-a1-t1"), evaluations=PASSED)
    assert (
        json.loads(derive_registry(held))["scopes"][0]["scope_id"] == "core"
    )  # FINISHED, though no trial row says kept
    assert json.loads(derive_registry(held._replace(live=frozenset({"core"})))) == {"scopes": []}


def test_t0_reads_the_registry_as_it_was_derived_and_what_no_file_can_hold_fails_its_check():
    odd = ("run 'ü' \"x\"\n", "run \udcff", "")
    for fixtures, expected in ((odd[:1], odd[:1]), (odd[:2], ()), (odd[::2], ()), ((), ())):
        known = HillFacts("cart", scopes=(HillScope("core", fixtures),), kept_green=frozenset({"core"}))
        registry = parse_seesaw(derive_registry(known), "registry.json")
        assert registry.fault is None
        assert registry.scopes == (FinishedScope("core", expected),)
    assert parse_seesaw(derive_registry(facts()), "registry.json") == Registry(())


def test_a_scope_holds_by_its_newest_surviving_trial():
    assert kept_green([row("x", "kept")]) == {"core"}
    assert kept_green([row("x", "kept"), row("y", "reverted", score=RED)]) == {"core"}
    assert not kept_green([row("x", "kept"), row("y", "rebased", score=RED)])
    assert not kept_green([row("x", "kept", score=RED)])


def test_the_gate_takes_what_is_derived_or_was_written_last():
    known = checkout()
    assert is_derived(known, HillShard("cart-totals", FINISHED))
    assert is_derived(
        known, HillShard("cart-totals", DOWNHILL)
    )  # our last own write: the daemon has not come round yet
    assert not is_derived(known, HillShard("cart-totals", SOLVED))
    assert [is_derived(known, HillShard("discount-codes", phase)) for phase in PHASES] == [False, True, False, False]
    assert is_derived(known, HillShard("no-contract-here", FINISHED))
