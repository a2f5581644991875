"""Where bugs go, and what a fix round looks at again. Source: protocol §6.8, R-09, W-56, W-57."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.domain import Verdict
from reducers.bugs import (
    RegressionScope,
    ScopeArea,
    bug_locations,
    bugs_for_scope,
    elect_owner,
    regression_scope,
    verdict_bugs,
)
from tests.reducers.rules.world import World

AREAS = (
    ScopeArea("core", ("src/core/**",)),
    ScopeArea("add", ("src/add.py", "bin/app.py"), ("bin/app.py",)),
    ScopeArea("zed", ("bin/app.py", "src/zed/**")),
)
FILES = frozenset({"Makefile", "src/a.longextension", "bin/todo"})


@pytest.mark.parametrize(
    ("location", "paths"),
    [
        ("bin/todo.js:53, bin/todo.js:85", ("bin/todo.js",)),
        ("./src/a.py:3", ("src/a.py",)),  # W-57
        ("././src/a.py:3", ("src/a.py",)),
        ("../up/a.py:3", ()),
        ("Makefile:3", ("Makefile",)),
        ("see ./Makefile:3 (and bin/todo)", ("Makefile", "bin/todo")),
        ("Gemfile:3", ()),  # no file of the repository
        ("src/a.longextension", ("src/a.longextension",)),
        ("exit 1 on Node 20.1", ()),
        (None, ()),
        (7, ()),
        (["src/a.py", "src/b.py"], ("src/a.py", "src/b.py")),
    ],
)
def test_a_location_names_paths(location, paths):
    assert bug_locations({"location": location}, FILES.__contains__) == paths


def test_a_file_is_asked_where_no_location_is():
    assert bug_locations({"location": "", "file": "x.rb"}) == ("x.rb",)
    assert bug_locations({"location": "a.rb", "file": "x.rb"}) == ("a.rb",)


def test_nobody_who_shares_a_file_owns_it_while_somebody_else_may_write_it():
    assert elect_owner("bin/app.py", AREAS) == "zed"
    assert elect_owner("bin/app.py", AREAS[:2]) == "add"
    assert elect_owner("nowhere.py", AREAS) is None


def test_refuted_criteria_take_no_bug_back():
    verdict = Verdict.model_validate(
        {"overall": "FAIL", "bugs": [{"id": "B1"}, "crashes"], "refuted": [{"task_id": "TASK-1", "ac": "B1"}]}
    )
    assert verdict_bugs(verdict) == ({"id": "B1"}, {"criterion": "crashes"})  # W-56
    assert verdict_bugs(verdict, {"B1"}) == ({"criterion": "crashes"},)
    assert verdict_bugs(Verdict.model_validate({"overall": "PASS", "bugs": [{"id": "B1"}]})) == ()
    assert verdict_bugs(None) == ()


def test_scope_ids_are_compared_as_stems():
    (routed,) = bugs_for_scope([{"id": "B", "scope_id": "Cart_View"}], "cart-view", AREAS)
    assert routed == {"id": "B", "scope_id": "Cart_View"}


words = st.sampled_from(["src/core/a.py:3", "bin/app.py", "src/zed/q.py", "src/add.py", "nowhere.py", "prose", ""])
bugs = st.lists(
    st.fixed_dictionaries(
        {"id": st.sampled_from("ABC")},
        optional={
            "location": st.lists(words, max_size=3).map(" and ".join),
            "scope_id": st.sampled_from(["core", "add", "zed"]),
        },
    ),
    max_size=6,
)


@given(bugs, st.permutations(AREAS))
def test_every_bug_goes_somewhere_and_only_where_it_belongs(found, areas):
    routed = {area.scope_id: bugs_for_scope(found, area.scope_id, areas) for area in areas}
    for bug in found:
        homes = {scope for scope, own in routed.items() if bug in own}
        unowned = {scope for scope, own in routed.items() if {**bug, "unowned": True} in own}
        owners = {elect_owner(path, AREAS) for path in bug_locations(bug)} - {None}
        if "scope_id" in bug:
            assert (homes, unowned) == ({bug["scope_id"]}, set())
        elif owners:
            assert (homes, unowned) == (owners, set())
        else:
            assert (homes, unowned) == (set(), {"core", "add", "zed"})


@given(st.text(max_size=200), st.booleans())
def test_no_text_makes_it_raise_and_every_path_stands_in_it(text, exists):
    for path in bug_locations({"location": text}, lambda _: exists):
        assert path in text
        assert path


def test_a_long_location_costs_no_time_to_speak_of():
    for text in ("a" * 200_000, "a/" * 100_000, "a." * 100_000, "./" * 100_000, "(" * 200_000):
        bug_locations({"location": text}, lambda _: False)


def test_a_fix_round_looks_at_the_use_cases_of_what_it_reopened():
    world = World()
    tasks = [
        {"id": "TASK-1", "use_case_refs": ["[[usecases/UC-Add.md]]"]},
        {"id": "TASK-2", "use_case_refs": ["UC-List"]},
    ]
    world.order("core-r2-a1", payload={"tasks": tasks}, operation="fix")
    world.order("core-r1-a1", payload={"tasks": [{"id": "TASK-3", "use_case_refs": ["UC-Old"]}]}, operation="fix")
    world.order("new-r2-a1", payload={"tasks": [{"id": "TASK-4", "use_case_refs": ["UC-New"]}]})
    orders = [fact.order for fact in world.orders.values()]
    on_board = {"TASK-1": ["UC-Add", "UC-Total"]}

    def use_cases_of(task_id: str) -> list[str]:
        return on_board.get(task_id, [])

    assert regression_scope(2, orders, use_cases_of, {}) == RegressionScope(
        2, ("TASK-1", "TASK-2"), ("UC-Add", "UC-List", "UC-Total")
    )
    reported = {"cart/core-r2-a1": {"TASK-2"}}
    assert regression_scope(2, orders, use_cases_of, reported) == RegressionScope(2, ("TASK-2",), ("UC-List",))
    assert regression_scope(3, orders, use_cases_of, {}) == RegressionScope(3)
