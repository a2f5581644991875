"""Whatever a run holds: judging it never raises, does not depend on the order of its mappings, and what helps it never harms. Source: protocol §9."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from parsers.rule_table import RULES
from parsers.settings import Settings
from reducers.rules.findings import action_of
from reducers.rules.loop_facts import LoopFacts
from reducers.rules.orders import judge_order
from reducers.rules.run import judge_run_loop
from tests.reducers.rules.world import World

BUILDS = [f"{scope}-r{round_}-a{attempt}" for scope in ("core", "view") for round_ in (1, 2, 3) for attempt in (1, 2)]
OTHERS = ["evaluate-r1", "evaluate-r2", "evaluate", "hunt", "hunt-2", "orient", "wire", "reconcile-r1", "hammer"]
minutes = st.integers(0, 90)
overalls = st.sampled_from(["PASS", "FAIL"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("order"), st.sampled_from(BUILDS + OTHERS), minutes, st.sampled_from(["execute", "fix"])),
        st.tuples(st.just("result"), st.sampled_from(BUILDS), minutes, st.sampled_from(["done", "partial", "failed"])),
        st.tuples(st.just("verdict"), st.sampled_from(["evaluate-r1", "evaluate-r2", "evaluate"]), minutes, overalls),
        st.tuples(
            st.just("gate"),
            st.sampled_from(["L1b", "L2", "L3", "H", "L4"]),
            minutes,
            st.sampled_from(["loop", "stop", "ship"]),
        ),
        st.tuples(st.just("artifact"), st.sampled_from(["core", "view"]), minutes, st.sampled_from(["green", "red"])),
        st.tuples(st.just("dispatch"), st.sampled_from(BUILDS + OTHERS), minutes, st.sampled_from(["a", "b"])),
        st.tuples(
            st.just("task"), st.sampled_from(["TASK-1", "TASK-2"]), minutes, st.sampled_from(["done", "ready", "cut"])
        ),
    ),
    max_size=14,
)


def grown(found: list[tuple[str, str, int, str]]) -> World:
    world = World(discovered=frozenset({"cart/core-r1-a1"}))
    world.scope("core", "src/core/**")
    world.scope("view", "src/view/**", depends_on=("core",))
    for number, (kind, name, minute, what) in enumerate(found):
        match kind:
            case "order":
                operation = {"operation": what} if name in BUILDS else {}
                world.order(name, minute, tasks=["TASK-2"] if name in BUILDS else (), **operation)
            case "result":
                world.result(name, minute, task_results=[{"task_id": "TASK-1", "status": what}])
            case "verdict":
                bugs: dict[str, Any] = {"bugs": ["B"]} if what == "FAIL" else {}
                world.result(name, minute, verdict={"overall": what, **bugs})
            case "gate":
                world.gate(name, what, 1 + number % 2, minute)
            case "artifact":
                world.trial(world.artifact(f"r1-a1-t{number}", name, what, minute), number)
            case "dispatch":
                world.dispatched(name, minute, what)
            case "task":
                world.task(name, what, ["TASK-1"] if name == "TASK-2" else [])
    return world


def turned(facts: LoopFacts) -> LoopFacts:
    """The same run with every mapping the other way round."""
    mappings = ("orders", "records", "artifacts", "results", "verdicts")
    return facts._replace(**{name: dict(reversed(getattr(facts, name).items())) for name in mappings})


@given(steps)
def test_judging_never_raises_and_does_not_depend_on_the_order_of_mappings(found):
    facts = grown(found).facts()
    standing = judge_run_loop(facts)
    assert standing == judge_run_loop(turned(facts))
    for fact in facts.orders.values():
        assert judge_order(facts, fact) == judge_order(turned(facts), fact)
    for one in standing:
        assert one.rule in RULES
        assert all((one.subject, one.path, one.what, one.why, one.fix))


@given(steps)
def test_under_advise_no_order_is_refused(found):
    facts = grown(found).facts()
    for fact in facts.orders.values():
        assert "deny" not in {action_of(one, Settings().rule) for one in judge_order(facts, fact)}


@given(steps)
def test_crossing_a_gate_never_makes_an_order_worse_off(found):
    world = grown(found)
    before = world.facts()
    for round_ in (1, 2, 3):
        world.gate("L2", "proceed", round_, 0)
        world.gate("L3", "loop", round_, 0)
    world.gate("L1b", minute=0)
    after = world.facts()
    for fact in before.orders.values():
        assert {one.rule for one in judge_order(after, fact)} <= {one.rule for one in judge_order(before, fact)}
        assert not {"R-28", "R-29"} & {
            one.rule for one in judge_order(after, fact) if "L1b" in one.what or "L2" in one.what
        }
