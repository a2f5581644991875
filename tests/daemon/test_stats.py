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
    [(("--ratchet", "--slug", "nope"), NOTHING_THERE), (("--ratchet", "--slug", "../x"), NOTHING_THERE)],
)  # fmt: skip
def test_what_cannot_be_answered_is_said(root: Path, words: tuple[str, ...], status: int) -> None:
    with pytest.raises(Exit) as stop:
        run(root, *words)
    assert stop.value.status == status


def test_without_a_flag_the_harvests_of_past_runs_are_counted_even_of_a_feature_whose_run_is_archived(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"feature_slug": "gone\x1b", "terminal_state": "shipped", "round_count": 2}
    write(root, path_of("metrics", stem="host"), row)
    (root / ".shapeup" / "metrics" / "notes.txt").write_text("no shard")
    assert run(root, "--slug", "gone\x1b", "--json") == 0
    stats = json.loads(capsys.readouterr().out)["stats"]
    assert (stats["sources"], stats["rows_total"], stats["rows_malformed"]) == (["host.jsonl"], 1, 1)
    assert stats["per_slug"][0]["rounds"] == {"min": 2, "max": 2, "avg": 2}
    assert run(root) == 0
    out = capsys.readouterr().out
    assert "1 run(s), 0 pathologies, 1 malformed" in out
    assert "\x1b" not in out


def test_hooks_and_ratchet_may_be_asked_for_at_once(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, path_of("decisions"), {"hook": "sandbox-guard", "verdict": "deny", "rule": "outside-substrate"})
    assert run(root, "--hooks", "--ratchet", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["schema", "ratchet", "hooks"]
    assert document["hooks"]["per_hook"][0]["deny"] == 1
    assert run(root, "--hooks") == 0
    assert "outside-substrate 1" in capsys.readouterr().out


def test_where_nothing_was_harvested_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 0
    assert "no run was harvested yet" in capsys.readouterr().out


def test_a_link_in_a_ledgers_place_is_not_followed(root: Path) -> None:
    (root / path_of("trials", "cart")).unlink()
    (root / path_of("trials", "cart")).symlink_to(root / path_of("trials", "shop"))
    with pytest.raises(Exit) as stop:
        run(root, "--ratchet")
    assert stop.value.status == USAGE
