"""Every recorded `verify spec` and `verify trace`: ours finds the same, rule by rule and in the same order, or differs by a rule that
the case itself shows.

Source: corpus README, protocol §5.2, §5.3, §10.6, rulings H1, H2.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from daemon.disk import DiskTree
from daemon.lint_facts import project_files
from parsers.tasks import parse_task
from reducers.board import Scope
from reducers.lint_spec.facts import read_spec_facts
from reducers.lint_spec.lint import lint_spec, spec_document
from reducers.lint_spec.scope_graph import partition_conflicts
from reducers.lint_trace.facts import read_trace_facts
from reducers.lint_trace.lint import TraceReport, lint_trace, render_trace, trace_files
from tests.corpus.replay_cases import CORPUS, REPOSITORY
from tests.corpus.tally import count

TREES = CORPUS / "trees" / "cases.json"
FUNCTIONS = CORPUS / "t0" / "cases.json"
EXPECTED = CORPUS / "expected"
RECORDS = {verb: sorted(EXPECTED.glob(f"*/verify-{verb}*.json")) for verb in ("spec", "trace")}
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(
        not TREES.is_file() and not EXPECTED.is_dir(), reason=f"no lints below {CORPUS} (set SHAPEUP_CORPUS)"
    ),
]
ROWS = {row["rule"] for row in tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text()).get("lint", ())}
PROSE = frozenset({"detail", "message", "reason", "skipped_reason"})  # sentences are ours (H1)
NAMED = re.compile(r"\bTASK-\d+\b|\bUC-\w+|\bREQ-\d+|\b[\w-]+(?:/[\w.-]+)+:\d+|\bexit [1-9]|\bsrc/\w+/\w+\.\w+")


def tree_runs(verb: str) -> list[Any]:
    if not TREES.is_file():
        return []
    return [
        pytest.param(case, run, id=f"{case['id']}-{number}")
        for case in json.loads(TREES.read_bytes())["cases"]
        for number, run in enumerate(case["runs"])
        if run["argv"][:2] == ["verify", verb]
    ]


def lay_out(root: Path, case: dict[str, Any]) -> None:
    for path, text in case["files"].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())


def slug_of(run: dict[str, Any]) -> str:
    slug: str = run["argv"][run["argv"].index("--slug") + 1]
    return slug


def without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_prose(item) for key, item in value.items() if key not in PROSE or item is None}
    return [without_prose(item) for item in value] if isinstance(value, list) else value


# --- verify spec -----------------------------------------------------------------------------------------------------


def check_spec(root: Path, run: dict[str, Any]) -> None:
    slug = slug_of(run)
    report = lint_spec(read_spec_facts(DiskTree(root), slug, project_files(root)))
    mine, recorded = spec_document(report), json.loads(run["stdout"])
    assert without_prose(mine) == without_prose(recorded)
    assert int(report.red > 0) == run["exit"]
    for ours, theirs in zip(list_of(mine), list_of(recorded), strict=True):
        missing = set(NAMED.findall(theirs["detail"])) - set(NAMED.findall(ours["detail"]))
        assert not missing, (ours, theirs)


def list_of(document: dict[str, Any]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = document["findings"]
    return rows


@pytest.mark.parametrize(("case", "run"), tree_runs("spec"))
def test_a_small_tree_has_the_recorded_spec_findings(
    case: dict[str, Any], run: dict[str, Any], quick_root: Path
) -> None:
    lay_out(quick_root, case)
    check_spec(quick_root, run)
    count("verify spec, trees", case["id"], 0, frozenset())


@pytest.mark.parametrize("path", RECORDS["spec"], ids=lambda path: path.parent.name)
def test_a_real_run_has_the_recorded_spec_findings(path: Path) -> None:
    check_spec(CORPUS / "runs" / path.parent.name, json.loads(path.read_bytes()))
    count("verify spec, runs", path.parent.name, 0, frozenset())


# --- verify trace ----------------------------------------------------------------------------------------------------


def traced(root: Path, run: dict[str, Any]) -> TraceReport:
    facts = read_trace_facts(DiskTree(root), slug_of(run), project_files(root))
    return lint_trace(facts, is_gate="--gate" in run["argv"])


def trace_rules(report: TraceReport, run: dict[str, Any]) -> set[str]:
    """The rules by which we differ; asserts that nothing else differs."""
    rules: set[str] = set()
    mine, theirs = trace_files(report, "<NOW>"), dict(run.get("files", run["files_written"]))
    assert mine.keys() == theirs.keys()
    for path, text in mine.items():
        if not path.endswith(".json"):
            assert text == theirs[path]
            continue
        document, recorded = json.loads(text), json.loads(theirs[path])
        rules |= forgive_dangling(document, recorded) | forgive_unread(document, recorded)
        assert list(document) == list(recorded)
        assert without_prose(document) == without_prose(recorded)
    if not rules:
        assert int(report.fails) == run["exit"]
        assert facts_of(render_trace(report)) == facts_of(run["stdout"])
    return rules


def forgive_dangling(mine: dict[str, Any], recorded: dict[str, Any]) -> set[str]:
    """§5.3: without a registry there is nothing that a covers clause could dangle from."""
    closure = recorded["covers_closure"]
    if closure["checked"] or not closure["dangling_covers"]:
        return set()
    recorded["covers_closure"] = closure | {"dangling_covers": [], "pass": True}
    recorded["findings"] = [row for row in recorded["findings"] if row["code"] != "COVERS-DANGLING"]
    recorded["overall"] = "red" if any(row["severity"] == "red" for row in recorded["findings"]) else "green"
    return {"§5.3 no registry"}


def forgive_unread(mine: dict[str, Any], recorded: dict[str, Any]) -> set[str]:
    """§5.3: a map that cannot be read passes nothing."""
    is_unread = any(row["code"] == "WIRING-UNREADABLE" for row in recorded["findings"])
    if not is_unread or not recorded["reachability"]["pass"]:
        return set()
    recorded["reachability"]["pass"] = False
    return {"§5.3 unread map"}


def facts_of(text: str) -> list[tuple[str, ...]]:
    """What a printed report says beside its sentences: verdict, counts, ids, codes and marks, line by line."""
    return [
        tuple(re.findall(r"🟢|🔴|🟠|\[[^\]]*\]|\d+/\d+|(?<=: )skipped(?= — )|→ \S+", line)[:4])
        for line in text.split("\n")
    ]


@pytest.mark.parametrize(("case", "run"), tree_runs("trace"))
def test_a_small_tree_has_the_recorded_trace(case: dict[str, Any], run: dict[str, Any], quick_root: Path) -> None:
    lay_out(quick_root, case)
    rules = trace_rules(traced(quick_root, run), run)
    assert rules <= ROWS, f"tests/divergences.toml has no row for {sorted(rules - ROWS)}"
    count("verify trace, trees", case["id"], int("--gate" in run["argv"]), frozenset(rules))


@pytest.mark.parametrize("path", RECORDS["trace"], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_real_run_has_the_recorded_trace(path: Path) -> None:
    run = json.loads(path.read_bytes())
    assert not trace_rules(traced(CORPUS / "runs" / path.parent.name, run), run)
    count("verify trace, runs", path.parent.name, int("--gate" in run["argv"]), frozenset())


def test_every_row_of_the_table_is_needed(quick_root: Path) -> None:
    if not (runs := tree_runs("trace")):
        pytest.skip("this corpus holds no small trees")
    needed = set()
    for number, parameter in enumerate(runs):
        case, run = parameter.values
        lay_out(quick_root / str(number), case)
        needed |= trace_rules(traced(quick_root / str(number), run), run)
    assert needed == ROWS


# --- the join --------------------------------------------------------------------------------------------------------


def partitions() -> list[Any]:
    groups = json.loads(FUNCTIONS.read_bytes())["groups"] if FUNCTIONS.is_file() else {}
    return list(groups.get("scopePartitionConflicts", ()))


@pytest.mark.parametrize("case", partitions())
def test_a_task_is_claimed_by_the_recorded_scopes(case: dict[str, Any]) -> None:
    tasks, scopes = case["args"]
    parsed = [parse_task(f"t/{row['id']}.md", f"---\n{frontmatter(row)}---\n".encode())[0] for row in tasks]
    found = partition_conflicts(
        parsed, [Scope(row["scope_id"], tuple(row["use_cases"]), False, False) for row in scopes]
    )
    assert [{"task_id": task_id, "scopes": list(ids)} for task_id, ids in found.items()] == case["expect"]


def frontmatter(row: dict[str, Any]) -> str:
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in row.items())
