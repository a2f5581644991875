"""Every recorded `bugLocations`, `electOwner` and `bugsForScope`: ours are equal, or differ by a rule that the case itself shows. Source: corpus README, protocol §6.8."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from reducers.bugs import ScopeArea, bug_locations, bugs_for_scope, elect_owner
from tests.corpus.replay_cases import CORPUS, REPOSITORY
from tests.corpus.tally import count

CASES = CORPUS / "t0" / "cases.json"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CASES.is_file(), reason=f"no cases below {CORPUS} (set SHAPEUP_CORPUS)"),
]
ROWS = {
    row["rule"]: row for row in tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text()).get("bugs", ())
}

Case = dict[str, Any]


@cache
def cases(group: str) -> list[Case]:
    groups = json.loads(CASES.read_bytes())["groups"] if CASES.is_file() else {}
    return list(groups.get(group, ()))


def each(group: str) -> Callable[[Any], Any]:
    numbered = [pytest.param(n, case, id=f"{group}-{n}") for n, case in enumerate(cases(group))]
    return pytest.mark.parametrize(("number", "case"), numbered)


def areas(value: list[Case] | None) -> tuple[ScopeArea, ...]:
    """The scopes of a case; null stands for none (H3)."""
    return tuple(ScopeArea(s["scope_id"], tuple(s["allowed"]), tuple(s["shared"])) for s in value or ())


def dotted(bug: Case | None) -> str:
    """What W-57 makes of the location: a `./` at the start of a word is taken away."""
    location = str((bug or {}).get("location") or "")
    return " ".join(word.removeprefix("./") for word in location.split(" "))


def rules_of_locations(case: Case) -> frozenset[str]:
    """The rules by which the two differ; fails where none explains it."""
    bug = case["args"][0]
    ours = list(bug_locations(bug or {}))
    if ours == case["expect"]:
        return frozenset()
    assert dotted(bug) != bug["location"], (ours, case["expect"])
    assert ours == list(bug_locations({"location": dotted(bug)}))
    return frozenset({"W-57"})


@each("bugLocations")
def test_a_bug_names_the_same_files(number: int, case: Case) -> None:
    rules = rules_of_locations(case)
    assert rules <= ROWS.keys()
    count("bug routing, by function", "bugLocations", number, rules)


@each("electOwner")
def test_a_file_has_the_same_owner(number: int, case: Case) -> None:
    path, scopes = case["args"]
    assert elect_owner(path, areas(scopes)) == case["expect"]
    count("bug routing, by function", "electOwner", number, frozenset())


@each("bugsForScope")
def test_a_scope_is_sent_the_same_bugs(number: int, case: Case) -> None:
    bugs, scope_id, scopes = case["args"]
    assert list(bugs_for_scope(bugs or (), scope_id, areas(scopes))) == case["expect"]
    count("bug routing, by function", "bugsForScope", number, frozenset())


def test_every_row_of_the_table_is_needed() -> None:
    if not cases("bugLocations"):
        pytest.skip("this corpus holds no bugs")
    assert frozenset().union(*map(rules_of_locations, cases("bugLocations"))) == ROWS.keys()
