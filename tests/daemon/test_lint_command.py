"""`shapeupd lint SLUG --run`: what it prints, and how it ends. Source: cli §1, §2."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from daemon.commands import lint
from daemon.exits import DONE, NOTHING_THERE, WANTING, Exit
from tests.e2e.living import SLUG, SmallRun


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
    assert ended(small.root, SLUG) == DONE
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
    assert ended(small.root, SLUG) == ends
    assert {row["action"] for row in findings(small.root, capsys) if row["rule"] == "R-28"} == actions


def test_an_integrity_rule_ends_with_1_under_every_profile(small, capsys):
    small.order("evaluate-r1", worker="spec-evaluator", operation="evaluate", payload={})
    verdict = {"overall": "FAIL", "criteria": []}
    small.write(
        "results/evaluate-r1.json", small.result_value("evaluate-r1") | {"task_results": [], "verdict": verdict}
    )
    assert ended(small.root, SLUG) == WANTING
    assert "R-17 deny: the verdict is FAIL" in capsys.readouterr().out


def test_nothing_that_stands_against_a_run_is_said(tmp_path, capsys):
    SmallRun(tmp_path, with_receipt=True)
    assert ended(tmp_path, SLUG, "--run") == DONE
    assert capsys.readouterr().out == "cart: nothing stands against the run\n"


@pytest.mark.parametrize("slug", ["shop", "../cart", "metrics", ""])
def test_where_there_is_no_run_it_says_so(tmp_path, slug):
    SmallRun(tmp_path, with_receipt=True)
    with pytest.raises(Exit) as ended_with:
        ended(tmp_path, slug)
    assert ended_with.value.status == NOTHING_THERE
    assert "no run" in ended_with.value.message


def test_the_example_of_the_help_works(tmp_path, capsys):
    words = shlex.split(lint.EXAMPLE)
    assert words[:2] == ["shapeupd", "lint"]
    local = tmp_path / ".shapeup" / words[2]
    local.mkdir(parents=True)
    (local / "receipt.json").write_text(json.dumps({"slug": words[2], "started_at": "2026-03-01T09:00:00.000Z"}))
    assert ended(tmp_path, *words[2:]) == DONE
    assert "nothing stands against" in capsys.readouterr().out
