"""The rules that act when an order is admitted: for each a run in which it fires, and the nearest one in which it does not. Source: protocol §9."""

from __future__ import annotations

import pytest

from parsers.breaker_ledger import Trip
from parsers.settings import Settings
from reducers.rules.findings import action_of
from reducers.rules.orders import judge_past_order
from tests.reducers.rules.world import ALL_PHASES, RUN_ID, World, at, has, whats


def queued(scope: str) -> Trip:
    return Trip(RUN_ID, "inner", "trip", scope, 1)


# --- evaluation ----------------------------------------------------------------------------------------


def test_an_unfinished_board_is_not_evaluated():
    world = World()
    world.task("TASK-1", "done")
    world.task("TASK-2", "in-progress")
    (found,) = [one for one in world.of_order(world.order("evaluate-r1")) if one.rule == "R-04"]
    assert "1 of 2" in found.what
    assert "TASK-2" in found.what
    world.task("TASK-2", "cut")
    assert not has(world.of_order(world.order("evaluate-r1")), "R-04")


def test_tasks_of_a_scope_that_waits_for_gate_h_hold_no_evaluation_up():
    world = World()
    world.task("TASK-1", "done", scope_id="Core")
    world.task("TASK-2", "ready", scope_id="Cart.View")
    world.scope("Cart.View", "src/**")
    order = world.order("evaluate-r1")
    assert has(world.of_order(order), "R-04")
    world.more["trips"] = (queued("core"),)
    assert has(world.of_order(order), "R-04")
    world.more["trips"] = (queued("cart.view"),)
    assert not has(world.of_order(order), "R-04")


@pytest.mark.parametrize(
    ("level", "grave"), [("interactive", False), (None, False), ("auto", True), ("unattended", True)]
)
def test_a_person_may_wave_an_unfinished_board_through_l2(level, grave):
    world = World()
    world.config(auto_level=level)
    world.task("TASK-1")
    world.gate("L2", round_=1)
    enforce = Settings(rules_profile="enforce")
    (found,) = [one for one in world.of_order(world.order("evaluate-r1")) if one.rule == "R-04"]
    assert action_of(found, enforce.rule) == ("deny" if grave else "warn")
    world.gates[0]["round"] = 2  # another round's
    (found,) = [one for one in world.of_order(world.order("evaluate-r1")) if one.rule == "R-04"]
    assert action_of(found, enforce.rule) == "deny"


def test_a_round_is_asked_for_its_verdict_once():
    world = World()
    world.judged("evaluate-r1", "FAIL")
    assert not has(world.of_order(world.orders["evaluate-r1"]), "R-05")  # the order that was answered
    again = world.order("evaluate-r1", 50)
    assert has(world.of_order(again), "R-05")
    assert not has(world.of_order(world.order("evaluate-r2", 50)), "R-05")


def test_an_evaluation_that_failed_without_a_verdict_may_be_ordered_again():
    world = World()
    world.order("evaluate-r1")
    world.result("evaluate-r1", status="failed")
    assert not has(world.of_order(world.order("evaluate-r1", 50)), "R-05")


def test_a_round_is_not_evaluated_while_it_is_being_built():
    world = World()
    world.built("core-r1-a1")
    world.order("view-r1-a1", 12)
    order = world.order("evaluate-r1", 30)
    assert whats(world.of_order(order), "R-06") == ["round 1 is still being built: cart/view-r1-a1"]
    assert not has(world.of_order(world.order("evaluate-r2", 30)), "R-06")
    assert not has(world.of_order(order, 11), "R-06")  # it came before that build order
    world.more["trips"] = (queued("view"),)
    assert not has(world.of_order(order), "R-06")
    del world.more["trips"]
    world.built("view-r1-a2", 14)  # the first attempt died, the second was answered
    assert not has(world.of_order(order), "R-06")


@pytest.mark.parametrize("stem", ["evaluate-task-003", "evaluate-core-r1", "core-r1-a1"])
def test_one_task_scope_or_attempt_is_never_evaluated(stem):
    order = World().order(stem, worker="spec-evaluator", operation="evaluate")
    assert has(World().of_order(order), "R-06")
    assert not has(World().of_order(World().order("evaluate")), "R-06")


# --- rounds --------------------------------------------------------------------------


def test_a_green_scope_is_not_built_on_in_a_later_round_without_a_bug():
    world = World()
    world.artifact("r1-a1-t1", "core", "red")
    world.artifact("r1-a2-t1", "core")
    assert has(world.of_order(world.order("core-r2-a1", 40)), "R-07")
    assert not has(world.of_order(world.order("core-r2-a1", 40, operation="fix")), "R-07")
    assert not has(world.of_order(world.order("core-r2-a1", 40, payload={"bugs": [{"id": "B1"}]})), "R-07")
    assert not has(world.of_order(world.order("core-r1-a3", 40)), "R-07")
    assert not has(world.of_order(world.order("view-r2-a1", 40)), "R-07")
    world.artifact("r1-a3-t1", "core", "red")  # an old green does not outlive a later red
    assert not has(world.of_order(world.order("core-r2-a1", 40)), "R-07")


def test_qa_hunts_after_a_pass_alone():
    world = World()
    assert whats(world.of_order(world.order("hunt", 50)), "R-10") == [
        "nothing was evaluated yet; QA hunts after a PASS"
    ]
    world.judged("evaluate-r1", "FAIL")
    assert has(world.of_order(world.order("hunt", 50)), "R-10")
    world.judged("evaluate-r2", "PASS", 40)
    assert not has(world.of_order(world.order("hunt", 50)), "R-10")


def test_a_run_is_hunted_once():
    world = World()
    world.judged("evaluate-r1", "PASS")
    world.order("hunt", 40)
    world.result("hunt", 45)
    assert whats(world.of_order(world.order("hunt", 60)), "R-10") == ["this run was hunted already, by cart/hunt"]
    assert has(world.of_result(world.result("hunt", 65, applied=False, notes="other")), "R-10")
    again = World()
    again.judged("evaluate-r1", "PASS")
    again.order("hunt", 40)
    assert not has(again.of_result(again.result("hunt", 45)), "R-10")


@pytest.mark.parametrize("stem", ["core-r2-a1", "evaluate-r2"])
def test_a_round_begins_after_a_fail_of_the_one_before(stem):
    world = World()
    assert whats(world.of_order(world.order(stem, 60)), "R-11") == ["round 1 has no verdict yet"]
    world.judged("evaluate-r1", "PASS")
    assert has(world.of_order(world.order(stem, 60)), "R-11")
    world.decided("double submit", "promoted to must-have", round="1")
    assert not has(world.of_order(world.order(stem, 60)), "R-11")
    failed = World()
    failed.judged("evaluate-r1", "FAIL")
    assert not has(failed.of_order(failed.order(stem, 60)), "R-11")


def test_the_plain_evaluate_speaks_for_the_newest_round_built_before_it():
    world = World()
    world.built("core-r1-a1", 10)
    world.judged("evaluate", "FAIL", 20)
    assert not has(world.of_order(world.order("core-r2-a1", 40)), "R-11")
    assert has(world.of_order(world.order("core-r3-a1", 40)), "R-11")


def test_no_round_lies_beyond_max_rounds():
    world = World()
    world.config(max_rounds=2)
    world.judged("evaluate-r1", "FAIL", 20)
    world.judged("evaluate-r2", "FAIL", 30)
    assert has(world.of_order(world.order("core-r3-a1", 60)), "R-11")
    world.config(max_rounds=3)
    assert not has(world.of_order(world.order("core-r3-a1", 60)), "R-11")
    world.gate("L3", "loop", 2, 40, max_rounds=2)  # W-60
    assert has(world.of_order(world.order("core-r3-a1", 60)), "R-11")


def test_stop_at_l3_ends_the_loop_until_somebody_takes_it_back():
    world = World()
    world.gate("L3", "stop", 1, 30)
    assert has(world.of_order(world.order("core-r2-a1", 40)), "R-12")
    assert not has(world.of_order(world.order("core-r1-a2", 40)), "R-12")
    assert not has(world.of_order(world.order("core-r2-a1", 20), 20), "R-12")  # the order was there before the answer
    world.gate("L3", "loop", 1, 50)
    assert not has(world.of_order(world.order("core-r2-a1", 60)), "R-12")


def test_what_a_task_depends_on_is_built_first():
    world = World()
    world.task("TASK-1", "in-progress")
    world.task("TASK-2", "blocked", ["TASK-1"])
    world.task("TASK-3", "blocked", ["TASK-2"])
    assert whats(world.of_order(world.order("b-r1-a1", tasks=["TASK-2", "TASK-3"])), "R-26") == [
        "its tasks depend on TASK-1, not done yet"
    ]
    world.task("TASK-1", "done")
    assert not has(world.of_order(world.order("b-r1-a1", tasks=["TASK-2", "TASK-3"])), "R-26")
    world.task("TASK-1", "in-progress")
    assert not has(world.of_order(world.order("b-r1-a1", tasks=["TASK-2"], operation="fix")), "R-26")


def test_what_a_scope_depends_on_is_built_first():
    world = World()
    world.scope("core", "src/core/**")
    contract = {"scope_id": "view", "depends_on": ["core", "view", "nowhere"]}
    order = world.order("view-r1-a1", contract=contract)
    assert whats(world.of_order(order), "R-26") == ["scope view depends on core, neither green nor finished yet"]
    world.task("TASK-1", "done", scope_id="core")
    assert not has(world.of_order(order), "R-26")
    world.task("TASK-1", "ready", scope_id="core")
    world.artifact("r1-a1-t1", "core")
    assert not has(world.of_order(order), "R-26")


def test_discovered_work_is_taken_up_before_the_next_round():
    world = World(discovered=frozenset({"cart/core-r1-a1"}))
    world.built("core-r1-a1", 10)
    order = world.order("core-r2-a1", 60)
    assert has(world.of_order(order), "R-33")
    assert not has(world.of_order(world.order("view-r1-a1", 60)), "R-33")  # no new round
    world.gate("L1b", minute=12)  # before it was discovered
    assert has(world.of_order(order), "R-33")
    world.gate("L1b", minute=40)
    assert not has(world.of_order(order), "R-33")
    world.gates.clear()
    world.order("reconcile-r1", 40)
    assert not has(world.of_order(order), "R-33")
    assert not has(World().of_order(World().order("core-r2-a1", 60)), "R-33")


# --- phases and gates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stem", "needs"),
    [("analyze", "orient"), ("wire", "analyze"), ("map-scopes", "wire"), ("core-r1-a1", "map-scopes")],
)
def test_a_phase_needs_what_the_one_before_it_left(stem, needs):
    world = World(phases=ALL_PHASES - {needs})
    assert has(world.of_order(world.order(stem)), "R-27")
    assert not has(World().of_order(World().order(stem)), "R-27")
    world.config(is_tiny=True)
    assert not has(world.of_order(world.order(stem)), "R-27")
    assert not has(World(phases=frozenset()).of_order(World().order("orient")), "R-27")


def test_wiring_needs_the_project_profile():
    assert has(World(has_profile=False).of_order(World().order("wire")), "R-27")


def test_nothing_is_built_before_l1b():
    world = World()
    order = world.order("core-r1-a1")
    assert has(world.of_order(order), "R-28")
    world.gate("L1b", status="ask")
    assert has(world.of_order(order), "R-28")
    world.gate("L1b", run_id="cart-20250101T000000Z-11111111")
    assert has(world.of_order(order), "R-28")
    world.gate("L1b")
    assert not has(world.of_order(order), "R-28")
    tiny = World()
    tiny.config(is_tiny=True)
    assert not has(tiny.of_order(order), "R-28")


def test_a_round_is_judged_after_l2_and_the_next_one_begins_after_l3():
    world = World()
    world.gate("L1b")
    order, next_round = world.order("evaluate-r1", 30), world.order("core-r2-a1", 60)
    assert whats(world.of_order(order), "R-29") == ["no row says that L2 was crossed for round 1"]
    assert whats(world.of_order(next_round), "R-29") == ["no row says that L3 was crossed for round 1"]
    world.gate("L2", round_=1)
    world.gate("L3", "loop", round_=1)
    assert not has(world.of_order(order), "R-29")
    assert not has(world.of_order(next_round), "R-29")


def test_gates_weigh_more_where_nobody_watches():
    world = World()
    enforce = Settings(rules_profile="enforce")
    for level, action in (("unattended", "deny"), ("auto", "warn")):
        world.config(auto_level=level)
        (found,) = [one for one in world.of_order(world.order("evaluate-r1", 30)) if one.rule == "R-29"]
        assert action_of(found, enforce.rule) == action
        assert action_of(found, Settings().rule) == "warn"


# --- decisions -------------------------------------------------------------------------------------------------


def test_a_decision_reaches_the_later_orders_of_its_scope():
    world = World(decided_at=at(5))
    world.decided("rounding", "half up", "Core", "design-decision")
    world.decided("where it ships", "everywhere", "*", "cut")
    world.decided("GATE L1b", "proceed", "—", "gate")
    bare = world.order("core-r1-a1", 10)
    assert "rounding: half up, where it ships: everywhere" in whats(world.of_order(bare), "R-31")[0]
    carried = {"decisions": [{"id": "ESC-01", "answer": "half  up"}, {"id": "D-2", "answer": "everywhere"}]}
    assert not has(world.of_order(world.order("core-r1-a1", 10, payload=carried)), "R-31")
    assert not has(world.of_order(world.order("core-r1-a1", 4)), "R-31")  # compiled before the ledger was written
    other = {"decisions": [{"id": "D-2", "answer": "everywhere"}]}
    assert not has(world.of_order(world.order("view-r1-a1", 10, payload=other)), "R-31")


def test_a_later_answer_to_the_same_question_replaces_the_earlier():
    world = World(decided_at=at(5))
    world.decided("Rounding", "half up", "core")
    world.decided("rounding", "half even", "core")
    carried = {"decisions": [{"id": "D-2", "answer": "half even"}]}
    assert not has(world.of_order(world.order("core-r1-a1", 10, payload=carried)), "R-31")


# --- who is judged at all --------------------------------------------------------------------------------------------


def test_an_order_outside_the_run_is_not_judged():
    world = World(phases=frozenset())
    order = world.order("core-r1-a1")
    assert world.of_order(order)
    assert not world.of_order(world.order("core-r1-a1", mode="standalone"))
    assert not world.of_order(world.order("core-r1-a1", run_id="cart-20250101T000000Z-11111111"))
    world.more["has_receipt"] = False
    assert not world.of_order(order)


def test_an_answered_order_is_not_judged_again_and_a_recompiled_one_is():
    world = World()
    world.built("core-r1-a1")
    assert not world.of_order(world.orders["core-r1-a1"])
    assert world.of_order(world.order("core-r1-a1", 50))


def test_a_past_order_is_judged_by_what_was_there_then():
    world = World()
    world.task("TASK-1", "done")
    world.task("TASK-2", "done", ["TASK-1"])
    world.order("a-r1-a1", 10, tasks=["TASK-1"])
    world.result("a-r1-a1", 30, task_results=[{"task_id": "TASK-1", "status": "done"}])
    early, late = world.order("b-r1-a1", 20, tasks=["TASK-2"]), world.order("c-r1-a1", 40, tasks=["TASK-2"])
    assert [one.subject for one in world.of_run() if one.rule == "R-26"] == ["cart/b-r1-a1"]
    assert not has(world.of_order(early, 20), "R-26")  # a daemon that learns of it late blames nobody
    assert not has(judge_past_order(world.facts(), late, at(40)), "R-26")
