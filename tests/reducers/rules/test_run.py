"""The rules over a whole run: for each a run in which it fires, and the nearest one in which it does not. Source: protocol §9."""

from __future__ import annotations

import pytest

from reducers.rules.findings import finding_row
from tests.reducers.rules.world import ALL_PHASES, HASH, World, has, whats

# --- dispatches ------------------------------------------------------------------------------------------


def test_a_judged_round_is_not_dispatched_again():
    world = World()
    world.judged("evaluate-r1", "FAIL", 30)
    world.dispatched("evaluate-r1", 31)
    assert not has(world.of_run(), "R-05")
    world.dispatched("evaluate-r1", 40)
    assert has(world.of_run(), "R-05")


def test_each_attempt_has_a_fresh_agent():
    world = World()
    world.order("core-r1-a1")
    world.order("core-r1-a2")
    world.order("evaluate-r1")
    for minute, (stem, agent) in enumerate(
        [("core-r1-a1", "a"), ("core-r1-a1", "a"), ("core-r1-a2", None), ("core-r1-a1", None), ("evaluate-r1", "b")]
    ):
        world.dispatched(stem, minute, agent)
    assert not has(world.of_run(), "R-35")
    world.dispatched("core-r1-a2", 12, "a")
    world.dispatched("core-r1-a2", 13, "a")
    assert whats(world.of_run(), "R-35") == ["agent a was dispatched for cart/core-r1-a1 before"]


# --- evidence ------------------------------------------------------------------------------------------


def measured() -> World:
    """Two attempts of a scope, the second green, its result applied."""
    world = World()
    world.trial(world.artifact("r1-a1-t1", "core", "red"), 1, "reverted")
    world.trial(world.artifact("r1-a2-t1", "core"), 2)
    world.built("core-r1-a2")
    return world


def test_trials_and_artifacts_that_correspond_are_fine():
    assert not {"R-22", "R-23", "R-24"} & {one.rule for one in measured().of_run()}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"sha256": HASH}, "is not what it was"),
        ({"artifact": "t0/verdicts/r9-a9-t9.json"}, "is missing"),
        ({"round": 2}, "measures core in round 1, attempt 2"),
        ({"attempt": 1}, "measures core in round 1, attempt 2"),
        ({"trial": 3}, "follows trial 1"),
        ({"trial": 1}, "follows trial 1"),
    ],
)
def test_a_trial_row_that_says_something_else_than_its_artifact_is_told(change, told):
    world = measured()
    world.trials[1] |= change
    assert any(told in what for what in whats(world.of_run(), "R-22"))


def test_an_artifact_has_exactly_one_row():
    world = measured()
    row = world.trials.pop()
    assert "no trial row names it" in whats(world.of_run(), "R-22")
    world.trials += [row, row | {"trial": 3}]
    assert "2 trial rows name it" in whats(world.of_run(), "R-22")


def test_scopes_count_their_trials_apart():
    world = measured()
    world.trial(world.artifact("r1-a1-t2", "view"), 1)
    assert not has(world.of_run(), "R-22")


def test_a_reverted_attempt_names_the_tree_that_was_put_back():
    world = measured()
    world.trials[0]["tree_ref"] = None
    assert not has(world.of_run(), "R-23")  # the first one had nothing to go back to
    world.trial(world.artifact("r1-a3-t1", "core", "red"), 3, "reverted", tree_ref=None)
    assert has(world.of_run(), "R-23")
    for row in world.trials:
        row["tree_ref"] = None
    assert not has(world.of_run(), "R-23")  # nobody keeps trees there


def test_green_needs_a_green_artifact_and_an_applied_result():
    world = measured()
    world.trials[1]["artifact"] = "t0/verdicts/r1-a1-t1.json"
    assert "is not green" in whats(world.of_run(), "R-24")[0]
    unanswered = measured()
    unanswered.records.clear()
    assert "no result of round 1 was applied" in whats(unanswered.of_run(), "R-24")[0]


# --- what is claimed ----------------------------------------------------------------------------


def test_done_comes_from_an_applied_result():
    world = World()
    world.task("TASK-1", "done")
    assert not has(world.of_run(), "R-25")  # a fresh clone has no history
    world.order("core-r1-a1")
    world.result("core-r1-a1", task_results=[{"task_id": "TASK-1", "status": "partial"}])
    assert has(world.of_run(), "R-25")
    world.order("core-r1-a2")
    world.result("core-r1-a2", 30, task_results=[{"task_id": "TASK-1", "status": "done"}])
    assert not has(world.of_run(), "R-25")


def test_an_answered_phase_has_left_its_artifact():
    world = World(phases=ALL_PHASES - {"wire"})
    world.order("wire")
    assert not has(world.of_run(), "R-40")
    world.result("wire")
    assert has(world.of_run(), "R-40")
    world.more["phases"] = ALL_PHASES
    assert not has(world.of_run(), "R-40")


@pytest.mark.parametrize(
    ("said", "overall", "told"), [("pass", "FAIL", True), ("PASS", "PASS", False), ("fail", "FAIL", False)]
)
def test_a_pass_was_judged(said, overall, told):
    world = World(final_verdict=said)
    world.judged("evaluate-r1", overall)
    assert has(world.of_run(), "R-41") == told


def test_what_was_not_evaluated_never_becomes_a_pass():
    assert has(World(final_verdict="pass").of_run(), "R-41")
    assert not has(World(final_verdict="not-evaluated").of_run(), "R-41")


def test_a_deployment_is_a_persons_decision():
    world = World(deploy="deployed")
    assert has(world.of_run(), "R-42")
    world.decided("deploy?", "yes", by="preset:ci (unattended lane)")
    assert has(world.of_run(), "R-42")
    world.decided("deploy to production?", "yes", by="PO (interactive)")
    assert not has(world.of_run(), "R-42")
    assert not has(World(deploy="pending-po").of_run(), "R-42")


def test_no_criterion_is_open_on_a_shipping_board():
    world = World(open_boxes={".shapeup/cart/tasks/TASK-1.md": 2})
    world.task("TASK-1", "done")
    assert not has(world.of_run(), "R-43")
    world.more["status"] = "shipped"
    assert whats(world.of_run(), "R-43") == ["TASK-1 is done with 2 open criteria, and the run was shipped"]
    world.more["open_boxes"] = {}
    assert not has(world.of_run(), "R-43")


# --- gates and decisions ---------------------------------------------------------------------------


def test_h_is_crossed_before_a_run_is_shipped():
    world = World()
    world.gate("L4", "ship", minute=50)
    assert has(world.of_run(), "R-29")
    world.gate("H", "ship-all", minute=60)
    assert has(world.of_run(), "R-29")
    world.gate("H", "ship-all", minute=40)
    assert not has(world.of_run(), "R-29")
    assert not has(World().of_run(), "R-29")


def test_an_answer_is_in_the_round_ledger_before_the_next_order():
    world = World()
    world.gate("L2", round_=1, minute=20)
    world.order("core-r1-a1", 10)
    assert not has(world.of_run(), "R-30")  # nothing was ordered since
    world.order("evaluate-r1", 30)
    assert has(world.of_run(), "R-30")
    world.decided("GATE L2", "proceed", kind="gate", round="2")
    assert has(world.of_run(), "R-30")
    world.decided("GATE L2", "proceed", kind="gate", round="1")
    assert not has(world.of_run(), "R-30")


def test_consent_to_ship_has_a_name():
    world = World(status="shipped")
    world.gate("H")
    world.decided("GATE H", "ship-all", kind="gate", by="preset:ci (unattended lane (--unattended))")
    assert not has(world.of_run(), "R-32")
    world.decided("GATE L4", "ship", kind="gate", by="file:run answers")
    assert has(world.of_run(), "R-32")
    world.more["status"] = "building"
    assert not has(world.of_run(), "R-32")
    unnamed = World(status="shipped")
    unnamed.gate("H", source="")
    assert has(unnamed.of_run(), "R-32")


# --- the whole -------------------------------------------------------------------------------------------------------


def test_a_run_by_the_book_has_nothing_against_it():
    world = World()
    world.scope("core", "src/core/**")
    world.task("TASK-1", "done", use_case_refs="[UC-Add]")
    world.gate("L1b")
    world.order("core-r1-a1", 10, tasks=["TASK-1"])
    world.result("core-r1-a1", 15, task_results=[{"task_id": "TASK-1", "status": "done"}])
    first = world.artifact("r1-a1-t1", "core", minute=16)
    world.trial(first)
    world.gate("L2", round_=1, minute=17)
    citation = {"scope_id": "core", "path": first.path, "sha256": first.sha256}
    world.judged("evaluate-r1", "FAIL", 20, t0_citations=[citation])
    world.gate("L3", "loop", round_=1, minute=26)
    world.order("core-r2-a1", 30, tasks=["TASK-1"], operation="fix", payload={"bugs": [{"id": "B1"}]})
    world.result("core-r2-a1", 35, task_results=[{"task_id": "TASK-1", "status": "done"}])
    second = world.artifact("r2-a1-t1", "core", minute=36)
    world.trial(second, 2)
    world.gate("L2", round_=2, minute=37)
    citation = {"scope_id": "core", "path": second.path, "sha256": second.sha256}
    passed = [{"criterion": "UC-Add", "verdict": "PASS"}]
    world.judged("evaluate-r2", "PASS", 40, t0_citations=[citation], criteria=passed)
    for round_, (gate, answer) in enumerate([("L2", "proceed"), ("L3", "loop"), ("L2", "proceed")]):
        world.decided(f"GATE {gate}", answer, kind="gate", round=str(1 + round_ // 2))
    world.decided("GATE L1b", "proceed", kind="gate", round="—")
    world.order("hunt", 50)
    finding = {"marker": "~", "line": "slow", "repro": "open it"}
    world.result("hunt", 55, discoveries=[finding])
    assert world.of_run() == ()
    assert world.of_order(world.order("hammer", 60)) == ()


def test_findings_are_sorted_and_told_once():
    world = World(phases=frozenset())
    world.built("view-r1-a1")
    world.built("core-r1-a1")
    found = world.of_run()
    assert list(found) == sorted(dict.fromkeys(found), key=lambda one: (one.rule, one.path, one.subject))
    row = finding_row(found[0], "warn")
    assert list(row) == ["rule", "action", "subject", "path", "what", "why", "fix"]
    assert all(row.values())
