"""Every recorded run through the invariants of §9, fact by fact in the order in which they came: which rule speaks how often, and no
integrity rule refuses what the reference took unless the table of divergences says so. Source: protocol §9, corpus README.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from daemon.disk import DiskTree
from daemon.loop_facts import read_loop_facts, read_report
from parsers.facts import OrderFact, ResultFact
from parsers.ledgers import IngestRow
from parsers.rule_table import RULES
from parsers.settings import Settings
from reducers.rules.findings import Finding, action_of
from reducers.rules.loop_facts import LoopFacts
from reducers.rules.orders import judge_order
from reducers.rules.results import judge_result
from reducers.rules.run import judge_run_loop
from tests.corpus.replay_cases import CORPUS, OWN, REPOSITORY, corpus_params
from tests.corpus.tally import count

TABLE = tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text()).get("invariant", ())
ROWS = {row["rule"]: row for row in TABLE}
NOT_A_SLUG = frozenset({"metrics", "exports"})
ADVISE, ENFORCE = Settings(), Settings(rules_profile="enforce")


def trees() -> list[Path]:
    replays = [folder / "before" for base in (OWN, CORPUS / "replay") for folder in base.glob("*") if folder.is_dir()]
    return sorted((CORPUS / "runs").glob("*")) + sorted(folder for folder in replays if folder.is_dir())


def name_of(tree: Path) -> str:
    return tree.parent.name if tree.name == "before" else tree.name


def tree_params() -> list[object]:
    found = trees()
    if not found:
        return list(corpus_params([], f"no runs below {CORPUS} (set SHAPEUP_CORPUS)"))
    marked = ((tree, () if OWN in tree.parents else pytest.mark.corpus) for tree in found)
    kinds = ((tree, mark, "replay" if tree.name == "before" else "run") for tree, mark in marked)
    return [pytest.param(tree, id=f"{kind}-{name_of(tree)}", marks=mark) for tree, mark, kind in kinds]


class Spoken(NamedTuple):
    """What was found as the facts came one by one, and then of the whole."""

    of_orders: tuple[Finding, ...]
    of_results: tuple[Finding, ...]
    of_run: tuple[Finding, ...]


@cache
def replayed(root: Path) -> tuple[Spoken, ...]:
    """Each feature of the tree."""
    tree = DiskTree(root)
    names = [path.name for path in (root / ".shapeup").iterdir() if path.is_dir() and path.name not in NOT_A_SLUG]
    found = ((slug, read_loop_facts(tree, slug)) for slug in sorted(names))
    return tuple(judged(tree, slug, facts) for slug, facts in found if facts)


def judged(tree: DiskTree, slug: str, whole: LoopFacts) -> Spoken:
    of_orders: list[Finding] = []
    of_results: list[Finding] = []
    now = whole._replace(orders={}, records={}, landed={}, results={}, verdicts={})
    reports = {stem: read_report(tree, slug, fact) for stem, fact in whole.results.items()}
    for event in events(whole):
        match event:
            case OrderFact():
                now = now._replace(orders={**now.orders, event.stem: event})
                of_orders += judge_order(now, event)
            case ResultFact():
                order = now.order_of(event.result.order_id)
                of_results += judge_result(now, event, order, reports[event.stem])
                now = applied(now, whole, event)
    return Spoken(tuple(of_orders), tuple(of_results), judge_run_loop(whole, reports))


def applied(now: LoopFacts, whole: LoopFacts, fact: ResultFact) -> LoopFacts:
    """The facts once the result is applied. One without an order is judged, but makes no row."""
    rows = whole.applied(fact.result.order_id)
    verdicts = {stem: one for stem, one in whole.verdicts.items() if stem == fact.stem or stem in now.verdicts}
    records = {**now.records, fact.result.order_id: rows} if rows else now.records
    return now._replace(records=records, results={**now.results, fact.stem: fact}, verdicts=verdicts)


def events(facts: LoopFacts) -> Iterator[OrderFact | ResultFact]:
    """The orders as they were compiled, and each result when it was recorded; one that never was comes last."""
    at: list[tuple[str, int, str, OrderFact | ResultFact]] = [
        (fact.order.compiled_at or "", 0, stem, fact) for stem, fact in facts.orders.items()
    ]
    for stem, fact in facts.results.items():
        rows: tuple[IngestRow, ...] = facts.applied(fact.result.order_id)
        at.append(((rows[-1].at if rows else None) or "~", 1, stem, fact))
    yield from (event for *_, event in sorted(at, key=lambda one: one[:3]))


def is_integrity(found: Finding) -> bool:
    return RULES[found.rule].family == "integrity"


@pytest.mark.parametrize("tree", tree_params())
def test_no_integrity_rule_refuses_what_the_reference_took_but_for_those_in_the_table(tree: Path) -> None:
    for number, spoken in enumerate(replayed(tree)):
        everything = {*spoken.of_orders, *spoken.of_results, *spoken.of_run}
        refused = {found for found in everything if is_integrity(found) and action_of(found, ADVISE.rule) == "deny"}
        assert {found.rule for found in refused} <= ROWS.keys(), refused
        if OWN in tree.parents:
            assert not refused, "our own cases hold what must be"
        way = "invariants over the corpus" + (" replays" if tree.name == "before" else " runs")
        count(way, name_of(tree), number, frozenset(found.rule for found in everything))


@pytest.mark.parametrize("tree", tree_params())
def test_under_advise_nothing_but_integrity_denies(tree: Path) -> None:
    for spoken in replayed(tree):
        for found in (*spoken.of_orders, *spoken.of_results, *spoken.of_run):
            assert is_integrity(found) or action_of(found, ADVISE.rule) == "warn"
            assert all((found.what, found.why, found.fix, found.path, found.subject)), found
            assert action_of(found, ENFORCE.rule) in ("warn", "deny")


@pytest.mark.corpus
def test_every_row_of_the_table_is_needed(record_property: Callable[[str, object], None]) -> None:
    if not (CORPUS / "runs").is_dir():
        pytest.skip(f"no runs below {CORPUS} (set SHAPEUP_CORPUS)")
    spoken = [one for tree in trees() for one in replayed(tree)]
    tally = {part: Counter(found.rule for one in spoken for found in getattr(one, part)) for part in Spoken._fields}
    for part, counted in tally.items():
        told = ", ".join(f"{rule} {number}" for rule, number in sorted(counted.items()))
        print(f"{part}: {told or 'nothing'}")
    record_property("tally", json.dumps(tally))
    found = {one for each in spoken for one in (*each.of_orders, *each.of_results, *each.of_run)}
    refusing = {one.rule for one in found if is_integrity(one) and action_of(one, ADVISE.rule) == "deny"}
    assert refusing == ROWS.keys()
