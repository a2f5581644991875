"""Every order that the reference compiled in the recorded runs, compiled again from the same trees; and the recorded joins of tasks and scopes.

An order is compared whole. What the record does not keep is what the tree said then: a task's status (ticked since) and the trials
that came later, so the first is left out and the second are cut at the order's own time. Where ours differ, a rule says so and is
checked on the value itself. Source: corpus README, protocol §2.3-2.5, §3.1, §10.6, rulings H1, H2.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from daemon.compile_facts import read_compile_facts
from daemon.disk import DiskTree
from parsers.addresses import parse_address
from parsers.envelopes import COMPILED_FOR_EVERYONE, PAYLOAD_RIGHTS
from parsers.facts import read_order
from parsers.layout import folder_of, path_of
from parsers.tasks import Task
from parsers.times import parse_time
from reducers.board import Scope, tasks_for_scope
from reducers.bugs import ScopeArea
from reducers.compile.order import Compiled, compile_order
from reducers.compile.request import CompileFacts, Request
from reducers.compile.tasks import partition_conflicts
from tests.corpus.replay_cases import CORPUS, REPOSITORY
from tests.corpus.tally import count

RUNS = CORPUS / "runs"
CASES = CORPUS / "t0" / "cases.json"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not RUNS.is_dir(), reason=f"no runs below {CORPUS} (set SHAPEUP_CORPUS)"),
]
ROWS = {
    row["rule"]: row
    for row in tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text()).get("compile", ())
}
DERIVED = {"scope_contract", "tasks", "decisions", "digested_errors", "trial_history", "bugs", "kb_rules_path"}
MACHINE = "/repo"  # what the corpus writes for the checkout's root

Json = dict[str, Any]


def recorded_orders() -> list[Path]:
    return sorted(RUNS.glob("*/.shapeup/*/orders/*.json"))


@cache
def facts_of(run: Path, slug: str) -> CompileFacts:
    return read_compile_facts(DiskTree(run), slug)._replace(root=MACHINE)


def compiled_again(path: Path) -> tuple[Json, Json]:
    """The recorded order, and the one that the same request makes of the same tree."""
    record: Json = json.loads(path.read_bytes())
    run, slug = path.parents[3], path.parents[1].name
    address, at = parse_address(record["order_id"]), parse_time(record["compiled_at"])
    payload = record["payload"]
    builds = "scope_contract" in payload
    facts = facts_of(run, slug)
    then = tuple(trial for trial in facts.trials if at and (landed := parse_time(trial.at)) and landed < at)
    added = {
        key: value
        for key, value in payload.items()
        if key not in DERIVED and not (builds and key in COMPILED_FOR_EVERYONE)
    }
    scope = payload["scope_contract"]["scope_id"] if builds else None
    request = Request(slug, record["operation"], scope, round=address.round, attempt=address.attempt, payload=added)
    found = compile_order(facts._replace(trials=then), request, record["compiled_at"])
    assert isinstance(found, Compiled), found
    return record, found.document


def rules_of(record: Json, ours: Json) -> frozenset[str]:
    """The rules by which the two differ; fails where none explains it."""
    assert list(ours) == list(record)
    assert {**ours, "payload": None} == {**record, "payload": None}
    rules: set[str] = set()
    theirs, mine = record["payload"], ours["payload"]
    for key in theirs.keys() | mine.keys():
        if theirs.get(key) == mine.get(key):
            continue
        if key == "tasks":
            rules.update(rules_of_tasks(theirs[key], mine[key]))
        elif key not in mine:
            assert key in COMPILED_FOR_EVERYONE - PAYLOAD_RIGHTS[record["worker"]]
            rules.add("W-04")
        else:
            assert key not in theirs
            assert (key, record["operation"]) == ("t0_artifacts", "evaluate")
            rules.add("R-18")
    assert [key for key in mine if key in theirs] == [key for key in theirs if key in mine]
    return frozenset(rules)


def rules_of_tasks(theirs: list[Json], mine: list[Json]) -> Iterator[str]:
    assert len(theirs) == len(mine)
    for before, after in zip(theirs, mine, strict=True):
        assert list(before) == list(after)
        for key in before.keys() - {"status"}:
            if key != "acceptance_criteria":
                assert before[key] == after[key], key
            elif before[key] != after[key]:
                assert len(before[key]) == len(after[key])
                assert all(
                    text_of(long).startswith(text_of(short))
                    for short, long in zip(before[key], after[key], strict=True)
                )
                yield "C9"


def text_of(criterion: str | Json) -> str:
    return criterion if isinstance(criterion, str) else str(criterion["text"])


@pytest.mark.parametrize("path", recorded_orders(), ids=lambda path: f"{path.parents[3].name}-{path.stem}")
def test_a_recorded_order_is_compiled_again(path: Path) -> None:
    record, ours = compiled_again(path)
    rules = rules_of(record, ours)
    assert rules <= ROWS.keys()
    count("orders compiled again", path.parents[3].name, path.stem, rules)


def test_what_is_compiled_is_admissible_without_a_warning() -> None:
    for path in recorded_orders():
        record, ours = compiled_again(path)
        slug, _, stem = record["order_id"].partition("/")
        read = read_order(path_of("order", slug, stem), json.dumps(ours).encode())
        carried = [name for name in ours["payload"] if name in ("qa_findings", "hammer_proposals", "green_scopes")]
        assert read.fact is not None
        assert not read.warnings or carried


def test_every_row_of_the_table_is_needed() -> None:
    paths = recorded_orders()
    if not paths:
        pytest.skip("this corpus holds no runs")
    assert frozenset().union(*(rules_of(*compiled_again(path)) for path in paths)) == ROWS.keys()


# --- tasks and scopes ------------------------------------------------------------------------------------------------


def cases(group: str) -> list[Json]:
    groups = json.loads(CASES.read_bytes())["groups"] if CASES.is_file() else {}
    return list(groups.get(group, ()))


def task_of(value: Json) -> Task:
    folder = folder_of("task", "x")
    refs = tuple(value.get("use_case_refs", ()))
    return Task(
        f"{folder}/{value['id']}.md", value["id"], "", "ready", (), (), 1, value.get("scope_id"), "", 0, refs, True
    )


def area_of(value: Json) -> ScopeArea:
    return ScopeArea(value["scope_id"], use_cases=tuple(value["use_cases"]))


@pytest.mark.parametrize(("number", "case"), list(enumerate(cases("tasksForScope"))))
def test_a_scope_is_given_the_same_tasks(number: int, case: Json) -> None:
    tasks, scope = case["args"]
    found = tasks_for_scope(
        [task_of(one) for one in tasks], Scope(scope["scope_id"], tuple(scope["use_cases"]), False, False)
    )
    assert [task.id for task in found] == [one["id"] for one in case["expect"]]
    count("tasks and scopes, by function", "tasksForScope", number, frozenset())


@pytest.mark.parametrize(("number", "case"), list(enumerate(cases("scopePartitionConflicts"))))
def test_the_same_tasks_are_claimed_twice(number: int, case: Json) -> None:
    tasks, scopes = case["args"]
    found = partition_conflicts([task_of(one) for one in tasks], [area_of(one) for one in scopes])
    assert [{"task_id": task_id, "scopes": list(owners)} for task_id, owners in found] == case["expect"]
    count("tasks and scopes, by function", "scopePartitionConflicts", number, frozenset())
