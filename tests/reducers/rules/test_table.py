"""The table of the invariants: every rule of §9 is in it, and somebody holds each of them. Source: protocol §9, cli §5."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.rule_table import RULES
from parsers.settings import Settings
from reducers.rules import (
    decisions,
    evaluation,
    evidence,
    gate_order,
    orders,
    phases,
    results,
    rounds,
    run,
    shipping,
    verdicts,
    workers,
)
from reducers.rules.coverage import COVERAGE
from reducers.rules.findings import action_of, finding

INTEGRITY = {f"R-{n:02d}" for n in (1, 2, 3, 14, 15, 17, 18, 19, 20, 21, 34, 36, 37, 38, 44, 46)}
WARNS = {f"R-{n:02d}" for n in (8, 9, 20, 21, 22, 23, 24, 25, 29, 30, 32, 35, 39, 41, 42, 43, 45, 46)}
STORIES = (decisions, evaluation, evidence, gate_order, phases, rounds, shipping, verdicts, workers)
REPOSITORY = Path(__file__).resolve().parents[3]
levels = st.sampled_from(["off", "warn", "deny"])


def test_the_table_is_that_of_the_protocol():
    assert list(RULES) == [f"R-{n:02d}" for n in range(1, 48)]
    assert {rule for rule, one in RULES.items() if one.family == "integrity"} == INTEGRITY
    assert {rule for rule, one in RULES.items() if one.severity == "warn"} == WARNS
    assert {rule for rule, one in RULES.items() if one.severity == "info"} == {"R-47"}


def test_every_rule_is_held_somewhere_or_waits_for_something_named():
    assert list(COVERAGE) == list(RULES)
    for rule, home in COVERAGE.items():
        assert home.places, rule
        assert home.told, rule
        if "waits" in home.places:
            assert re.search("wait|writes|report|derived|patrol", home.told), rule


@pytest.mark.parametrize(
    ("place", "judges"), [("order", orders.ORDER_RULES), ("result", results.RESULT_RULES), ("run", run.RUN_RULES)]
)
def test_the_table_of_homes_is_what_the_judges_ask(place, judges):
    """A run is asked of its past orders and applied results as well, but for R-31, which a look back cannot tell."""
    named = {rule for judge in judges for rule in re.findall(r"R-[0-9]{2}", judge.__doc__.split(".")[0].split(",")[0])}
    if place == "run":
        named |= {rule for rule, home in COVERAGE.items() if {"order", "result"} & set(home.places)} - {"R-31"}
    assert {rule for rule, home in COVERAGE.items() if place in home.places} == named


@pytest.mark.parametrize("story", STORIES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_each_rule_names_the_finding_that_its_docstring_promises(story: ModuleType):
    judges = (*orders.ORDER_RULES, *results.RESULT_RULES, *run.RUN_RULES)
    source = (REPOSITORY / story.__name__.replace(".", "/")).with_suffix(".py").read_text()
    for judge in (one for one in judges if one.__module__ == story.__name__):
        body = source.split(f"def {judge.__name__}(")[1].split("\ndef ")[0]
        emitted = set(re.findall(r'(?:finds|finding)\(\s*"(R-[0-9]{2})"', body))
        assert len(emitted) == 1, judge.__name__
        assert emitted <= set(re.findall(r"R-[0-9]{2}", judge.__doc__ or "")), judge.__name__


def test_what_is_held_elsewhere_is_there():
    for rule, home in COVERAGE.items():
        for path in re.findall(r"(?:reducers|parsers|hooks|daemon)/[a-z_/0-9]+\.py", home.told):
            assert (REPOSITORY / path).is_file(), (rule, path)
        for path in re.findall(r"(?<![a-z_/])rules/[a-z_]+\.py", home.told):
            assert (REPOSITORY / "reducers" / path).is_file(), (rule, path)


@given(st.sampled_from(sorted(RULES)), st.sampled_from(["advise", "enforce"]), st.none() | levels)
def test_a_setting_tightens_an_integrity_rule_at_most_and_decides_a_process_rule(rule, profile, own):
    settings = Settings(rules_profile=profile, rules=((rule, own),) if own else ())
    action = action_of(finding(rule, "s", "p", "w", "f"), settings.rule)
    order = ("off", "warn", "deny")
    if RULES[rule].family == "integrity":
        assert order.index(action) >= order.index("deny" if RULES[rule].severity == "deny" else "warn")
    elif own:
        assert action == own
    else:
        assert action == ("deny" if profile == "enforce" and RULES[rule].severity == "deny" else "warn")
