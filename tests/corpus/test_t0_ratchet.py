"""Every recorded score, verdict, comparison, delta, decision, digest, history and report: ours are equal, or differ by a rule that
the case itself shows. Source: corpus README, protocol §5.7, §5.12, §5.13, §6.2-6.4, §6.9, rulings H1, H3.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from daemon.commands import stats
from daemon.disk import DiskTree
from daemon.rebuilding import slugs_of
from parsers.layout import path_of, stem_at
from parsers.ledgers import parse_rows, render_row
from parsers.t0_verdict import (
    CommandResult,
    FailingScope,
    Seesaw,
    artifact_name,
    parse_artifact_name,
    parse_t0_verdict,
    render_t0_verdict,
)
from parsers.trials import Score, Trial, parse_trials, score_row, trial_row
from parsers.verdict_ledger import VerdictLine, parse_verdict_ledger
from reducers.digest import digest
from reducers.ratchet import better, decide, describe_delta, score_of
from reducers.ratchet_stats import ratchet_report, report_document
from reducers.t0_judgement import compute_verdict
from reducers.trial_history import select_trial_history
from reducers.verdict_history import (
    find_flips,
    flip_document,
    measure_stability,
    reconcile,
    stability_document,
    summary_document,
)
from tests.corpus.replay_cases import CORPUS, REPOSITORY
from tests.corpus.tally import count

CASES = CORPUS / "t0" / "cases.json"
RUNS = CORPUS / "runs"
TABLE = tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text())
ROWS = {row["rule"]: row for row in TABLE.get("ratchet", ())}
pytestmark = pytest.mark.corpus

Case = dict[str, Any]


@cache
def cases(group: str) -> list[Case]:
    groups = json.loads(CASES.read_bytes())["groups"] if CASES.is_file() else {}
    return list(groups.get(group, ()))


def is_ours(case: Case) -> bool:
    """Ruling H3: what is true or absent in another language only is no case of ours."""
    return case.get("note") != "truthiness"


def each(group: str) -> Callable[[Any], Any]:
    numbered = [pytest.param(n, case, id=f"{group}-{n}") for n, case in enumerate(cases(group)) if is_ours(case)]
    return pytest.mark.parametrize(("number", "case"), numbered)


def tell(group: str, number: int, rules: Iterable[str] = ()) -> None:
    """Count the case; each rule must have its row in the table."""
    assert set(rules) <= ROWS.keys()
    count("ratchet, by function", group, number, frozenset(rules))


# --- score, better, decide, delta ------------------------------------------------------------------------------------


def score(value: Case | None) -> Score | None:
    return None if value is None else Score(**value)


def command(value: Case | None) -> CommandResult | None:
    return None if value is None else CommandResult(value.get("cmd", ""), int(not value["pass"]), value["pass"])


def seesaw(value: Case) -> Seesaw:
    failing = tuple(FailingScope(scope["scope_id"]) for scope in value.get("failing", ()))
    return Seesaw(value["ran"], value.get("pass", not failing), (), failing)


@each("score")
def test_an_attempt_scores_alike(number: int, case: Case) -> None:
    (measured,) = case["args"]
    results = [CommandResult(one["cmd"], int(not one["pass"]), one["pass"]) for one in measured["fixtures"]["results"]]
    ours = score_of(results, command(measured["dbProbe"]), seesaw(measured["seesaw"]))
    assert score_row(ours) == case["expect"]
    assert list(score_row(ours)) == list(case["expect"])
    tell("score", number)


@each("computeVerdict")
def test_a_verdict_is_computed_alike(number: int, case: Case) -> None:
    (measured,) = case["args"]
    probe = measured["dbProbe"]
    ours = compute_verdict(measured["fixtures"]["pass"], probe and probe["pass"], seesaw(measured["seesaw"]))
    assert {**ours._asdict(), "overall": ours.overall} == case["expect"]
    tell("computeVerdict", number)


def better_rules(case: Case) -> set[str]:
    """The rules by which our comparison differs; fails where none explains it. So do the three functions like it below."""
    new, base = map(score, case["args"])
    assert new is not None
    ours = better(new, base)
    if ours is case["expect"]:
        return set()
    assert (ours, case["expect"]) == (False, True)
    assert base is not None
    assert new.db_probe == 0
    assert new == base._replace(db_probe=0)
    assert new._replace(db_probe=None).is_green
    return {"W-49"}


@each("better")
def test_two_scores_compare_alike_or_by_the_failing_probe(number: int, case: Case) -> None:
    tell("better", number, better_rules(case))


@each("describeDelta")
def test_a_difference_is_told_alike(number: int, case: Case) -> None:
    new, base = map(score, case["args"])
    assert new is not None
    assert describe_delta(new, base) == case["expect"]
    tell("describeDelta", number)


@each("decideStatus")
def test_a_status_is_decided_alike(number: int, case: Case) -> None:
    assert decide(*case["args"])._asdict() == case["expect"]
    tell("decideStatus", number)


# --- digest ----------------------------------------------------------------------------------------------------------


def is_python(line: str) -> bool:
    return line.lstrip().startswith('File "')


def digest_rules(case: Case) -> set[str]:
    (text,) = case["args"]
    ours = [triple._asdict() for triple in digest(text)]
    if ours == case["expect"]:
        return set()
    files = {line.split('"')[1] for line in text.split("\n") if is_python(line)}
    assert [triple for triple in ours if triple["file"] not in files] == case["expect"]
    return {"§5.12"}


@each("digest")
def test_output_is_digested_alike_or_knows_python(number: int, case: Case) -> None:
    tell("digest", number, digest_rules(case))


# --- histories and reports -------------------------------------------------------------------------------------------


def trials(rows: list[Case]) -> tuple[Trial, ...]:
    """The rows as our reader sees them; ids outside our alphabet (ruling B6) are put in by hand, for the order they sort in."""
    found = parse_trials("".join(map(render_row, [{**row, "scope_id": "x"} for row in rows])).encode())
    return tuple(trial._replace(scope_id=row["scope_id"]) for trial, row in zip(found, rows, strict=True))


@each("selectTrialHistory")
def test_a_history_is_selected_alike(number: int, case: Case) -> None:
    rows, terms = case["args"]
    ours = select_trial_history(trials(rows), terms.get("scopeId"), terms.get("round"))
    assert ours == case["expect"]
    assert [list(row) for row in ours] == [list(row) for row in case["expect"]]
    tell("selectTrialHistory", number)


@each("ratchetReport")
def test_a_report_is_made_alike(number: int, case: Case) -> None:
    ours = report_document(ratchet_report(("cart", trial) for trial in trials(case["args"][0])))
    # One comparison of the texts: key order, and 1 against 1.0, are part of the answer.
    assert json.dumps(ours) == json.dumps(case["expect"])
    tell("ratchetReport", number)


# --- verdict ledgers -------------------------------------------------------------------------------------------------


def lines(rows: list[Case]) -> tuple[VerdictLine, ...]:
    return tuple(VerdictLine(**row) for row in rows)


def flip_rules(case: Case) -> set[str]:
    told = lines(case["args"][0])
    ours = [flip_document(flip) for flip in find_flips(told)]
    if ours == case["expect"]:
        return set()
    joined = {"::".join(line.subject) for line in told}
    assert len(joined) < len({line.subject for line in told})
    assert [flip for flip in case["expect"] if flip in ours] == ours
    return {"§5.13"}


@each("detectFlips")
def test_flips_are_found_alike_or_by_true_pairs(number: int, case: Case) -> None:
    tell("detectFlips", number, flip_rules(case))


@each("stability")
def test_stability_is_measured_alike(number: int, case: Case) -> None:
    assert json.dumps(stability_document(measure_stability(lines(case["args"][0])))) == json.dumps(case["expect"])
    tell("stability", number)


@each("reconcile")
def test_verdicts_are_reconciled_alike(number: int, case: Case) -> None:
    before, current = map(lines, case["args"])
    found = reconcile(before, current)
    records = [{**one.line._asdict(), "flip": one.flip} for one in found]
    assert [{key: row[key] for key in row if key != "round"} for row in records] == case["expect"]["records"]
    assert summary_document(found) == case["expect"]["summary"]
    tell("reconcile", number)


def ledger_rules(case: Case) -> set[str]:
    ledger = parse_verdict_ledger((case["args"][0] or "").encode())
    if "throws" in case:
        assert ledger.skipped > 0
        return {"§5.13 (lines)"}
    assert [line.run for line in ledger.lines] == [row["run"] for row in case["expect"]]
    assert ledger.skipped == 0
    return set()


@each("parseLedger")
def test_a_ledger_is_read_alike_or_past_its_bad_lines(number: int, case: Case) -> None:
    tell("parseLedger", number, ledger_rules(case))


# --- whole runs ------------------------------------------------------------------------------------------------------


def records(pattern: str) -> list[Path]:
    return sorted((CORPUS / "expected").glob(f"*/{pattern}"))


def by_record(pattern: str) -> Callable[[Any], Any]:
    return pytest.mark.parametrize("path", records(pattern), ids=lambda path: f"{path.parent.name}-{path.stem}")


def root_of(path: Path) -> Path:
    return RUNS / path.parent.name


@by_record("probe-stats-ratchet*.json")
def test_a_recorded_report_is_made_alike(path: Path) -> None:
    record = json.loads(path.read_bytes())
    tree = DiskTree(root_of(path))
    slugs = [slug for slug in slugs_of(tree.root) if tree.list(f".shapeup/{slug}")]
    rows = [(slug, trial) for slug in slugs for trial in parse_trials(tree.read(path_of("trials", slug)) or b"")]
    ours = ratchet_report(rows)
    if "--format" in record["argv"]:
        numbers = f"{ours.trials} trial(s) across {ours.scopes} scope(s); {ours.scopes_multi_trial} with"
        assert numbers in record["stdout"]
        assert all(scope.scope_id in record["stdout"] for scope in ours.per_scope)
    else:
        assert json.dumps({"ratchet": report_document(ours)}, indent=2) + "\n" == record["stdout"]
    assert record["exit"] == 0
    count("stats --ratchet", path.parent.name, records("probe-stats-ratchet*.json").index(path), frozenset())


@by_record("reduce-verdict*.json")
def test_a_recorded_ledger_is_told_alike(path: Path) -> None:
    record = json.loads(path.read_bytes())
    data = DiskTree(root_of(path)).read(record["argv"][2])
    if data is None:
        assert record["exit"] == 2
    else:
        ledger = parse_verdict_ledger(data)
        stable, flips = measure_stability(ledger.lines), find_flips(ledger.lines)
        told = f"ledger: {len(ledger.lines)} records over {stable.runs} run(s)\n"
        told += f"stability (latest vs prior): {stable.stable}/{stable.total} stable\n"
        assert record["stdout"].startswith(told)
        assert bool(flips) == bool(record["exit"])
    count("reduce verdict", path.parent.name, records("reduce-verdict*.json").index(path), frozenset())


ARTIFACTS = sorted(path for path in CORPUS.glob("**/t0/verdicts/*.json") if path.is_file())
LEDGERS = sorted(CORPUS.glob("**/t0/trials.jsonl"))


@pytest.mark.skipif(not ARTIFACTS, reason=f"no T0 artifacts below {CORPUS} (set SHAPEUP_CORPUS)")
def test_every_recorded_artifact_comes_back_byte_for_byte() -> None:
    for path in ARTIFACTS:
        data = path.read_bytes()
        verdict = parse_t0_verdict(data, str(path))
        assert verdict is not None, path
        assert render_t0_verdict(verdict) == data, path
        named = parse_artifact_name(stem_at(str(path)))
        assert named == (verdict.round, verdict.attempt, verdict.trial), path
        assert artifact_name(*verdict.address) == stem_at(str(path)), path


@pytest.mark.skipif(not LEDGERS, reason=f"no trials below {CORPUS} (set SHAPEUP_CORPUS)")
def test_every_recorded_trial_row_comes_back_as_it_stands() -> None:
    for path in LEDGERS:
        data = path.read_bytes()
        assert "".join(render_row(trial_row(trial)) for trial in parse_trials(data)).encode() == data, path
        for row, trial in zip(parse_rows(data), parse_trials(data), strict=True):
            if trial.status != "crash" and trial.score is not None:
                older = [one for one in parse_trials(data) if one.trial == trial.baseline_trial]
                base = older[0].score if older else None
                assert describe_delta(trial.score, base) == row["delta"], path


@by_record("probe-stats-ratchet.json")
def test_our_own_verb_counts_the_same(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    stats.arguments(parser)
    args = parser.parse_args(["--ratchet", "--verdicts", "--json"])
    args.repo = (str(root_of(path)),)
    assert stats.run(args) == 0
    document = json.loads(capsys.readouterr().out)
    for scope in document["ratchet"]["per_scope"]:
        del scope["slug"]
    assert {"ratchet": document["ratchet"]} == json.loads(json.loads(path.read_bytes())["stdout"])
    assert document["schema"] == 1


RULED = {"better": better_rules, "digest": digest_rules, "detectFlips": flip_rules, "parseLedger": ledger_rules}


def test_every_row_of_the_table_is_needed() -> None:
    if not all(map(cases, RULED)):
        pytest.skip("this corpus holds fewer kinds of cases")
    assert set().union(*(rules(case) for group, rules in RULED.items() for case in cases(group))) == ROWS.keys()
