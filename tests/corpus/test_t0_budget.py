"""Every recorded `evaluateBudget`, `stagnation` and `verify budget`: ours are equal, or differ by a rule that the case itself shows.
Source: corpus README, protocol §6.6, §7.2, rulings H1, F2, F5.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from parsers.layout import path_of
from parsers.receipts import DEFAULT_NO_PROGRESS_K, parse_receipt
from parsers.strict_json import parse_strict
from parsers.times import parse_time
from parsers.trials import Trial
from reducers.breakers import stagnation
from reducers.budget import budget_document, elapsed_at, evaluate_budget, evaluated_document
from tests.corpus.replay_cases import CORPUS, REPOSITORY
from tests.corpus.tally import count

CASES = CORPUS / "t0" / "cases.json"
RECORDS = sorted((CORPUS / "expected").glob("*/verify-budget*.json"))
pytestmark = pytest.mark.corpus

ROWS = {
    row["rule"]: row for row in tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text()).get("budget", ())
}
PROSE = "action"  # ruling H1
TRIPPED = 6

Case = dict[str, Any]
Document = Mapping[str, object]


@cache
def cases(group: str) -> list[Case]:
    groups = json.loads(CASES.read_bytes())["groups"] if CASES.is_file() else {}
    return list(groups.get(group, ()))


def each(group: str) -> Callable[[Any], Any]:
    numbered = [pytest.param(n, case, id=f"{group}-{n}") for n, case in enumerate(cases(group))]
    return pytest.mark.parametrize(("number", "case"), numbered)


def facts(document: Document) -> Document:
    """A document without its sentence, but with whether there was one."""
    return {key: bool(value) if key == PROSE else value for key, value in document.items()}


def half_a_second_early(elapsed_s: float, budget_s: float) -> tuple[str, str]:
    """(what the reference says, what W-67 makes of it): it rounds first, seconds to whole ones and the fraction to 3 decimals."""
    rounded = max(0, int(elapsed_s + 0.5))
    used = int(rounded / budget_s * 1000 + 0.5) / 1000
    theirs = "trip" if int(budget_s - rounded + 0.5) <= 0 else "warn" if used >= 0.75 else "ok"
    fixed = "trip" if elapsed_s >= budget_s else "warn" if elapsed_s / budget_s >= 0.75 else "ok"
    return theirs, fixed


def differing_rules(ours: Document, recorded: Document, elapsed_s: float, budget_s: float | None) -> set[str]:
    """The rules by which the two differ; fails where none explains it."""
    ours, recorded = facts(ours), facts(recorded)
    if ours == recorded:
        return set()
    assert {**ours, "status": None} == {**recorded, "status": None}
    assert budget_s is not None
    assert (recorded["status"], ours["status"]) == half_a_second_early(elapsed_s, budget_s)
    assert "W-67" in ROWS
    return {"W-67"}


@each("evaluateBudget")
def test_a_budget_is_evaluated_alike_or_by_unrounded_seconds(number: int, case: Case) -> None:
    elapsed_s, budget_s = case["args"]
    ours = evaluated_document(evaluate_budget(elapsed_s, budget_s))
    rules = differing_rules(ours, case["expect"], elapsed_s, budget_s)
    assert list(ours) == list(case["expect"])
    count("budget, by function", "evaluateBudget", number, frozenset(rules))


@each("stagnation")
def test_stagnation_is_counted_alike(number: int, case: Case) -> None:
    rows, k = case["args"][0] or (), (*case["args"], DEFAULT_NO_PROGRESS_K)[1]
    ours = stagnation([Trial("core", row["status"]) for row in rows], k)
    assert ours._asdict() == case["expect"]
    count("stagnation, by function", "stagnation", number, frozenset())


# --- whole runs ------------------------------------------------------------------------------------------------------


def words_of(record: Case) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in ("--slug", "--at", "--cwd"):
        parser.add_argument(flag)
    parser.add_argument("--strict", action="store_true")
    return parser.parse_args(record["argv"][2:])


def prepared_receipt(root: Path, slug: str, record: Case) -> bytes:
    """The receipt with the budget that was put into it before the command ran."""
    value = json.loads((root / path_of("receipt", slug)).read_bytes())
    if prep := record.get("prep"):
        assert "wall_clock_budget_s = 3600" in prep
        value["config"]["wall_clock_budget_s"] = 3600
    return json.dumps(value).encode()


@pytest.mark.skipif(not RECORDS, reason=f"no recorded budgets below {CORPUS} (set SHAPEUP_CORPUS)")
@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_recorded_run_is_told_alike(path: Path) -> None:
    record = json.loads(path.read_bytes())
    root, words = CORPUS / "runs" / path.parent.name, words_of(record)
    pointer = parse_strict((root / path_of("active-scope")).read_bytes(), "active-scope").value
    slug = words.slug or (pointer["slug"] if isinstance(pointer, dict) else "")
    receipt = parse_receipt(prepared_receipt(root, slug, record), path_of("receipt", slug))
    at = parse_time(words.at)
    assert receipt.start is not None
    assert at is not None
    elapsed = elapsed_at(receipt.start, at)
    budget = evaluate_budget(elapsed.seconds, receipt.config.budget_s)
    ours = budget_document(slug, receipt, budget, elapsed, is_open=False)
    recorded = json.loads(record["stdout"])
    shown = {key: ours[key] for key in recorded}
    assert list(ours)[: len(recorded)] == list(recorded)
    rules = differing_rules(shown, recorded, elapsed.seconds, receipt.config.budget_s)
    assert (TRIPPED if words.strict and budget.status == "trip" else 0) == record["exit"]
    count("verify budget, by function", path.parent.name, RECORDS.index(path), frozenset(rules))


def test_every_row_of_the_table_is_needed() -> None:
    if not cases("evaluateBudget"):
        pytest.skip("this corpus holds no budget cases")
    needed = set()
    for case in cases("evaluateBudget"):
        elapsed_s, budget_s = case["args"]
        ours = evaluated_document(evaluate_budget(elapsed_s, budget_s))
        needed |= differing_rules(ours, case["expect"], elapsed_s, budget_s)
    assert needed == ROWS.keys()
