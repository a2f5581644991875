"""`shapeupd lint SLUG`: what it prints, and how it ends. Source: cli §1, §2."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from daemon.commands import lint
from daemon.exits import DONE, NOTHING_THERE, WANTING, Exit
from tests.e2e.living import SLUG, SmallRun
from tests.reducers.lint_spec.feature import SPEC, feature


@pytest.fixture(autouse=True)
def _nobodys_settings(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(tmp_path_factory.mktemp("config")))


def ended(root: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    lint.arguments(parser)
    parser.add_argument("--repo", action="append")
    return lint.run(parser.parse_args([*words, "--repo", os.fspath(root)]))


def findings(root: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    ended(root, SLUG, "--run", "--json")
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["schema", "findings"]
    assert document["schema"] == 1
    return list(document["findings"])


@pytest.fixture
def small(tmp_path: Path) -> SmallRun:
    """A run in which two build orders came without L1b: a process rule, so it warns."""
    run = SmallRun(tmp_path, with_receipt=True)
    run.order("core-r1-a1")
    run.order("view-r1-a1")
    return run


def test_a_warning_is_told_once_and_ends_well(small, capsys):
    assert ended(small.root, SLUG, "--run") == DONE
    out = capsys.readouterr().out
    assert out.count("R-28 warn: it builds, and no row says that L1b was crossed (and 1 more such)") == 1
    assert "\n  why: nothing is built before" in out
    assert "\n  fix: cross it: `shapeupd gate resolve L1b --slug cart`" in out
    assert out.endswith("4 warned\n")


def test_json_lists_each_finding(small, capsys):
    rows = findings(small.root, capsys)
    assert [(row["rule"], row["action"], row["subject"]) for row in rows if row["rule"] == "R-28"] == [
        ("R-28", "warn", "cart/core-r1-a1"),
        ("R-28", "warn", "cart/view-r1-a1"),
    ]


@pytest.mark.parametrize(
    ("rules", "ends", "actions"),
    [
        ('profile = "enforce"', WANTING, {"deny"}),
        ('R-28 = "deny"', WANTING, {"deny"}),
        ('R-28 = "off"', DONE, set()),
        ('profile = "enforce"\nR-28 = "warn"\nR-27 = "warn"', DONE, {"warn"}),
    ],
)
def test_the_settings_decide_how_a_process_rule_acts(small, capsys, rules, ends, actions):
    (small.root / ".shapeupd.toml").write_text(f"[rules]\n{rules}\n")
    assert ended(small.root, SLUG, "--run") == ends
    assert {row["action"] for row in findings(small.root, capsys) if row["rule"] == "R-28"} == actions


def test_an_integrity_rule_ends_with_1_under_every_profile(small, capsys):
    small.order("evaluate-r1", worker="spec-evaluator", operation="evaluate", payload={})
    verdict = {"overall": "FAIL", "criteria": []}
    small.write(
        "results/evaluate-r1.json", small.result_value("evaluate-r1") | {"task_results": [], "verdict": verdict}
    )
    assert ended(small.root, SLUG, "--run") == WANTING
    assert "R-17 deny: the verdict is FAIL" in capsys.readouterr().out


def test_nothing_that_stands_against_a_run_is_said(tmp_path, capsys):
    SmallRun(tmp_path, with_receipt=True)
    assert ended(tmp_path, SLUG, "--run") == DONE
    assert capsys.readouterr().out == "cart: nothing stands against the run\n"


@pytest.mark.parametrize("flags", [(), ("--run",), ("--spec",), ("--trace", "--gate")])
@pytest.mark.parametrize("slug", ["shop", "../cart", "metrics", ""])
def test_where_there_is_no_run_it_says_so(tmp_path, slug, flags):
    SmallRun(tmp_path, with_receipt=True)
    with pytest.raises(Exit) as ended_with:
        ended(tmp_path, slug, *flags)
    assert ended_with.value.status == NOTHING_THERE
    assert "no run" in ended_with.value.message


# --- specs and trace -------------------------------------------------------------------------------------------------


def lay_out(root: Path, changes: dict[str, str | None], slug: str = SLUG) -> Path:
    for path, text in {**feature(), **changes}.items():
        if text is not None:
            at = root / path.replace("/cart/", f"/{slug}/")
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text)
    return root


def test_a_clean_feature_ends_well_and_every_lint_says_so(tmp_path, capsys):
    assert ended(lay_out(tmp_path, {}), SLUG) == DONE
    out, _ = capsys.readouterr()
    reachability = "reachability skipped — there is no wiring map, so no engine is named"
    trace = f"covers 1/1 covered · 0 cut · uncovered []; {reachability}"
    assert out.split("\n") == [
        "cart: specs of 2 scopes and 2 tasks: 0 red, 0 warned",
        f"cart: trace: {trace}",
        "",
    ]


def test_a_red_of_the_specs_ends_with_1_in_the_error_form(tmp_path, capsys):
    root = lay_out(tmp_path, {f"{SPEC}/scope-board.md": "x\nTASK-1 \x1b[31m\nTASK-2\n"})
    assert ended(root, SLUG, "--spec") == WANTING
    assert capsys.readouterr().out.split("\n") == [
        "shapeup/cart/scope-board.md:2: TIER-DIRECTION red: names board id TASK-1",
        "shapeup/cart/scope-board.md:3: TIER-DIRECTION red: names board id TASK-2",
        "  why: board ids and local files differ on every machine; whoever clones this cannot follow them",
        "  fix: name the scope or the use case instead",
        "cart: specs of 2 scopes and 2 tasks: 2 red, 0 warned",
        "",
    ]


def test_a_warning_of_the_specs_ends_well(tmp_path):
    assert ended(lay_out(tmp_path, {f"{SPEC}/spec/_index.md": "[[nope]]\n"}), SLUG, "--spec") == DONE


def test_a_red_of_the_trace_counts_at_the_gate_alone(tmp_path, capsys):
    root = lay_out(tmp_path, {f"{SPEC}/requirements.md": "| REQ-1 | a | p | x |\n| REQ-2 | b | p | x |\n"})
    assert ended(root, SLUG) == DONE
    assert "REQ-UNCOVERED red (advisory): REQ-2" in capsys.readouterr().out
    assert ended(root, SLUG, "--gate") == WANTING
    assert "requirements.md:2: REQ-UNCOVERED red: REQ-2" in capsys.readouterr().out
    assert ended(root, SLUG, "--spec", "--gate") == DONE


def test_the_trace_leaves_its_report_where_there_is_a_local_tree_and_makes_none(tmp_path):
    root = lay_out(tmp_path, {})
    ended(root, SLUG, "--trace")
    report = root / ".shapeup" / SLUG / "trace" / "report.json"
    assert json.loads(report.read_bytes())["overall"] == "green"
    clone = lay_out(tmp_path / "clone", {})
    shutil.rmtree(clone / ".shapeup")
    ended(clone, SLUG)
    assert not (clone / ".shapeup").exists()


def test_a_report_that_cannot_be_written_is_said_and_changes_no_verdict(tmp_path, capsys):
    root = lay_out(tmp_path, {})
    (root / ".shapeup" / SLUG / "trace").symlink_to(tmp_path)
    assert ended(root, SLUG, "--trace") == DONE
    assert "trace/report.json is not written: " in capsys.readouterr().err
    assert not (tmp_path / "report.json").exists()


def test_without_a_flag_the_run_is_judged_where_there_is_one(small, capsys):
    lay_out(small.root, {})
    (small.local / "tasks" / "TASK-3.md").unlink()
    assert ended(small.root, SLUG) == DONE
    out = capsys.readouterr().out
    assert "R-28 warn: " in out
    assert out.endswith("4 warned\n")


def test_quiet_prints_nothing(tmp_path, capsys):
    root = lay_out(tmp_path, {f"{SPEC}/notes.md": "TASK-1\n"})
    assert ended(root, SLUG, "--quiet") == WANTING
    assert capsys.readouterr() == ("", "")


def test_json_holds_each_lint_that_was_asked_for(small, capsys):
    lay_out(small.root, {f"{SPEC}/notes.md": "TASK-1\n"})
    capsys.readouterr()
    assert ended(small.root, SLUG, "--json") == WANTING
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["schema", "slug", "spec", "trace", "run"]
    assert list(document["spec"]) == ["scopes", "tasks", "red", "warn", "findings"]
    assert list(document["spec"]["findings"][0]) == ["rule", "level", "scope", "where", "what", "why", "fix"]
    assert list(document["trace"]) == ["mode", "covers_closure", "reachability", "overall", "findings"]
    assert {row["action"] for row in document["run"]["findings"]} == {"warn"}
    ended(small.root, SLUG, "--trace", "--json")
    assert list(json.loads(capsys.readouterr().out)) == ["schema", "slug", "trace"]


def test_the_example_of_the_help_works(tmp_path, capsys):
    words = shlex.split(lint.EXAMPLE)
    assert words[:2] == ["shapeupd", "lint"]
    assert ended(lay_out(tmp_path, {}, words[2]), *words[2:]) == DONE
    assert "0 red" in capsys.readouterr().out
