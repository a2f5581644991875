"""`shapeupd stats`: reads ledgers, says what there is, and stops where nothing is. Source: cli §2, protocol §5.7, §5.13, W-41, W-46."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from daemon.commands import stats
from daemon.exits import NOTHING_THERE, USAGE, Exit
from parsers.layout import path_of

GREEN = {"regressions": 0, "fixtures_passed": 2, "fixtures_total": 2, "db_probe": None}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for slug in ("cart", "shop"):
        write(tmp_path, path_of("trials", slug), {"scope_id": "core", "trial": 1, "status": "kept", "score": GREEN})
    for round_, verdict in ((1, "FAIL"), (2, "PASS")):
        path = path_of("verdict-ledger", "cart", f"evaluate-r{round_}")
        write(tmp_path, path, {"run": 1, "dimension": "spec", "criterion": "adds \x1b[1m", "verdict": verdict})
    (tmp_path / ".shapeup" / "active-order").write_text("{}")
    return tmp_path


def write(root: Path, path: str, row: object) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(json.dumps(row) + "\ntorn")


def run(root: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    stats.arguments(parser)
    args = parser.parse_args(words)
    args.repo = (str(root),)
    return stats.run(args)


def test_two_features_with_a_scope_of_one_name_are_two_scopes(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "--ratchet", "--json") == 0
    report = json.loads(capsys.readouterr().out)["ratchet"]
    assert [(scope["slug"], scope["scope_id"], scope["trials"]) for scope in report["per_scope"]] == [
        ("cart", "core", 1),
        ("shop", "core", 1),
    ]


def test_a_flip_between_rounds_is_seen_and_bad_lines_are_counted(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, "--verdicts", "--slug", "cart", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert (found["records"], found["skipped"], found["stability"]["ratio"]) == (2, 2, 0)
    assert [(flip["from"], flip["to"], flip["rounds"]) for flip in found["flips"]] == [("FAIL", "PASS", [1, 2])]


def test_people_read_the_same_and_no_text_of_an_agent_speaks_to_the_terminal(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(root, "--ratchet", "--verdicts") == 0
    out = capsys.readouterr().out
    assert "2 trials of 2 scopes" in out
    assert "FAIL → PASS  r1 run 1 to r2 run 1  spec: adds" in out
    assert "\x1b" not in out


def test_without_a_trial_the_counts_are_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--ratchet") == 0
    assert "0 trials of 0 scopes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status"),
    [((), USAGE), (("--json",), USAGE), (("--ratchet", "--slug", "nope"), NOTHING_THERE), (("--ratchet", "--slug", "../x"), NOTHING_THERE)],
)  # fmt: skip
def test_what_cannot_be_answered_is_said(root: Path, words: tuple[str, ...], status: int) -> None:
    with pytest.raises(Exit) as stop:
        run(root, *words)
    assert stop.value.status == status


def test_a_link_in_a_ledgers_place_is_not_followed(root: Path) -> None:
    (root / path_of("trials", "cart")).unlink()
    (root / path_of("trials", "cart")).symlink_to(root / path_of("trials", "shop"))
    with pytest.raises(Exit) as stop:
        run(root, "--ratchet")
    assert stop.value.status == USAGE
