"""The rules that act when a result is ingested: for each a run in which it fires, and the nearest one in which it does not. Source: protocol §9."""

from __future__ import annotations

import pytest

from parsers.settings import Settings
from reducers.rules.findings import action_of, fault_of
from tests.reducers.rules.world import HASH, World, has, whats


def evaluated(world: World, stem: str = "evaluate-r1", **verdict: object):
    """A verdict that lands; it is not applied yet."""
    world.order(stem, 30)
    return world.result(stem, 35, applied=False, verdict=verdict)


PASSED = {"criterion": "C1", "verdict": "PASS"}
FAILED = {"criterion": "C2", "verdict": "FAIL", "evidence": "src/a.py:3"}


@pytest.mark.parametrize(
    ("verdict", "is_coherent"),
    [
        ({"overall": "PASS", "criteria": [PASSED]}, True),
        ({"overall": "PASS"}, True),
        ({"overall": "PASS", "criteria": [PASSED, FAILED]}, False),
        ({"overall": "PASS", "bugs": [{"id": "B"}]}, False),
        ({"overall": "FAIL", "criteria": [PASSED]}, False),
        ({"overall": "FAIL", "criteria": [PASSED, FAILED]}, True),
        ({"overall": "FAIL", "bugs": ["it crashes"]}, True),
    ],
)
def test_a_verdict_says_what_its_criteria_and_bugs_say(verdict, is_coherent):
    world = World()
    found = [one for one in world.of_result(evaluated(world, **verdict)) if one.rule == "R-17"]
    assert bool(found) != is_coherent
    for one in found:
        assert action_of(one, Settings().rule) == "deny"
        assert fault_of(one).code == "R-17"
        assert fault_of(one).where.startswith(".shapeup/cart/results/evaluate-r1.json:$.verdict")


def test_an_evaluation_that_says_neither_pass_nor_fail_is_told_and_taken():
    world = World()
    (found,) = [one for one in world.of_result(evaluated(world, criteria=[FAILED])) if one.rule == "R-17"]
    assert action_of(found, Settings().rule) == "warn"
    assert "not judged" in found.what


def cited(world: World, **changes: object):
    artifact = world.artifact("r1-a1-t1", "core")
    citation = {"scope_id": "core", "path": artifact.path, "sha256": artifact.sha256, **changes}
    return evaluated(world, overall="PASS", t0_citations=[citation])


def test_a_verdict_cites_the_artifact_as_it_lies_there():
    world = World()
    world.scope("core", "src/**")
    assert not has(world.of_result(cited(world)), "R-18")
    assert not has(world.of_result(cited(world, scope_id="Core")), "R-18")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"sha256": HASH}, "has the hash"),
        ({"scope_id": "view"}, "measures scope core"),
        ({"path": ".shapeup/cart/t0/verdicts/r9-a9-t9.json"}, "does not exist"),
        ({"path": "t0/verdicts/r1-a1-t1.json"}, "is no T0 artifact of cart"),
        ({"path": ".shapeup/shop/t0/verdicts/r1-a1-t1.json"}, "is no T0 artifact of cart"),
        ({"path": ".shapeup/cart/receipt.json"}, "is no T0 artifact of cart"),
    ],
)
def test_a_wrong_citation_is_refused(changes, told):
    world = World()
    world.scope("core", "src/**")
    (found,) = [one for one in world.of_result(cited(world, **changes)) if one.rule == "R-18"]
    assert told in found.what
    assert action_of(found, Settings().rule) == "deny"


def test_a_pass_does_not_rest_on_red_and_a_fail_may():
    for overall, refused in (("PASS", True), ("FAIL", False)):
        world = World()
        world.scope("core", "src/**")
        red = world.artifact("r1-a1-t1", "core", "red")
        citation = {"scope_id": "core", "path": red.path, "sha256": red.sha256}
        fact = evaluated(world, overall=overall, t0_citations=[citation], bugs=["B"] if overall == "FAIL" else [])
        assert has(world.of_result(fact), "R-18") == refused


@pytest.mark.parametrize(("is_scoped", "action"), [(True, "deny"), (False, "warn")])
def test_a_scoped_verdict_without_a_citation_is_refused_and_an_unscoped_one_is_warned_of(is_scoped, action):
    world = World()
    if is_scoped:
        world.scope("core", "src/**")
    (found,) = [one for one in world.of_result(evaluated(world, overall="PASS")) if one.rule == "R-18"]
    assert action_of(found, Settings().rule) == action


def test_who_judges_has_not_built():
    for worker, other in (("evaluate-r1", "core-r1-a1"), ("core-r1-a1", "evaluate-r1")):
        world = World()
        world.order("core-r1-a1")
        world.order("evaluate-r1", 30)
        world.dispatched(worker, 31, "agent-1")
        world.dispatched(other, 11, "agent-2")
        fact = world.result(worker, applied=False)
        assert not has(world.of_result(fact), "R-15")
        world.dispatched(other, 12, "agent-1")
        assert whats(world.of_result(fact), "R-15")[0].startswith(f"agent agent-1 also answered cart/{other}")
        assert has(world.of_run(), "R-15")


def test_an_agent_without_a_name_is_nobodys_twin():
    world = World()
    world.order("core-r1-a1")
    world.order("evaluate-r1", 30)
    world.dispatched("core-r1-a1", 11)
    world.dispatched("evaluate-r1", 31)
    assert not has(world.of_result(world.result("evaluate-r1", applied=False)), "R-15")
    assert not has(world.of_run(), "R-15")


@pytest.mark.parametrize(
    ("discovery", "is_right"),
    [
        ({"marker": "~", "line": "x", "repro": "click twice"}, True),
        ({"marker": "+", "line": "x", "repro": "click twice"}, False),
        ({"marker": "~", "line": "x"}, False),
        ({"marker": "~", "line": "x", "repro": " "}, False),
    ],
)
def test_a_qa_finding_is_a_tilde_with_a_repro(discovery, is_right):
    world = World()
    world.order("hunt")
    found = world.of_result(world.result("hunt", applied=False, discoveries=[discovery]))
    assert has(found, "R-34") != is_right
    world.order("core-r1-a1")
    assert not has(world.of_result(world.result("core-r1-a1", discoveries=[discovery])), "R-34")


def test_an_escalation_asks_its_question():
    world = World()
    world.order("core-r1-a1")
    for deviations, asks in (([], False), ([" "], False), (["which rounding?"], True)):
        fact = world.result("core-r1-a1", applied=False, status="escalated", deviations=deviations)
        assert has(world.of_result(fact), "R-39") != asks
    assert not has(world.of_result(world.result("core-r1-a1", applied=False, status="failed")), "R-39")


# --- a fix round -----------------------------------------------------------------------------------------


def fix_round() -> World:
    """Round 2 of a run in which core has a bug and view passed."""
    world = World()
    world.scope("core", "src/core/**")
    world.scope("view", "src/view/**")
    world.artifact("r1-a1-t1", "core")
    world.artifact("r1-a1-t2", "view")
    world.judged("evaluate-r1", "FAIL")
    world.task("TASK-1", use_case_refs="[UC-Add]")
    world.task("TASK-2", use_case_refs="[UC-List]")
    world.order("core-r2-a1", 50, tasks=["TASK-1"], operation="fix", payload={"bugs": [{"id": "B1"}]})
    return world


def test_a_fix_round_leaves_alone_what_passed():
    world = fix_round()
    touched = [{"path": path, "change": "modified"} for path in ("src/core/a.py", "src/view/b.py", "README.md")]
    fact = world.result("core-r2-a1", applied=False, files_touched=touched)
    assert whats(world.of_result(fact), "R-08") == [
        "src/view/b.py belong to scope view, which was green and has no bug"
    ]
    world.artifact("r1-a2-t1", "view", "red")
    assert not has(world.of_result(fact), "R-08")


def test_a_reopened_use_case_is_run_again():
    world = fix_round()
    for criterion, told in (("UC-Add step 2", False), ("uc-add-o holds", False), ("UC-List", True), ("C1", True)):
        fact = evaluated(world, "evaluate-r2", overall="PASS", criteria=[{"criterion": criterion, "verdict": "PASS"}])
        assert has(world.of_result(fact), "R-09") == told, criterion


def test_a_report_may_say_that_there_is_no_test_surface():
    world = fix_round()
    fact = evaluated(world, "evaluate-r2", overall="PASS", criteria=[PASSED])
    assert has(world.of_result(fact, "all is well"), "R-09")
    assert has(world.of_result(fact, "UC-List: no test surface"), "R-09")
    assert not has(world.of_result(fact, "UC-Add: no Test Surface"), "R-09")
    assert not has(world.of_result(fact, "regression coverage: none (no test surface)"), "R-09")


def test_the_first_round_reopens_nothing():
    world = fix_round()
    fact = evaluated(world, "evaluate-r3", overall="PASS", criteria=[PASSED])
    assert not has(world.of_result(fact), "R-09")
