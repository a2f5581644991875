"""`shapeupd ship`: one report, written whole, frozen after L4; leftovers from a real git. Source: protocol §5.8, §5.9, R-41, R-45."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

import pytest

from daemon.commands import ship
from daemon.disk import DiskTree
from daemon.exits import NOTHING_THERE, USAGE, WANTING, Exit
from daemon.leftovers import read_additions
from daemon.read_facts import read_run_records
from hooks.git import scrubbed_env
from parsers.layout import path_of
from reducers.ship.leftovers import find_leftovers

REPORT = path_of("report", "cart")
SHIPPED = {"gate": "L4", "status": "ok", "decision": "ship"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CLICOLOR_FORCE", raising=False)
    write(tmp_path, path_of("receipt", "cart"), json.dumps({"slug": "cart", "started_at": "2026-03-01T10:00:00.000Z"}))
    return tmp_path


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def run(root: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    ship.arguments(parser)
    args = parser.parse_args(words)
    args.repo = (str(root),)
    return ship.run(args)


def git(root: Path, *words: str) -> None:
    env = {**scrubbed_env(), "HOME": str(root), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, env=env, capture_output=True)


def test_the_report_is_written_and_may_be_written_anew_until_l4(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "cart", "--verdict", "FAIL") == 0
    assert capsys.readouterr().out == f"{REPORT}: FAIL, 0/0 tasks done\n"
    assert run(root, "cart", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (next(iter(document)), document["path"], document["verdict"]) == ("schema", REPORT, "not-evaluated")
    assert "verdict: not-evaluated" in (root / REPORT).read_text()


def test_a_frozen_report_stays_as_it_is(root: Path) -> None:
    assert run(root, "cart") == 0
    before = (root / REPORT).read_bytes()
    write(root, path_of("gates", "cart"), json.dumps(SHIPPED) + "\n")
    assert run(root, "cart") == 0, "the same bytes again change nothing"
    with pytest.raises(Exit) as stop:
        run(root, "cart", "--verdict", "FAIL")
    assert (stop.value.status, "R-45" in stop.value.message) == (WANTING, True)
    assert (root / REPORT).read_bytes() == before


def test_after_l4_a_report_that_is_missing_is_still_written(root: Path) -> None:
    write(root, path_of("gates", "cart"), json.dumps(SHIPPED) + "\n")
    assert run(root, "cart") == 0
    assert (root / REPORT).is_file()


def test_stdout_writes_nothing_even_after_l4(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, path_of("gates", "cart"), json.dumps(SHIPPED) + "\n")
    assert run(root, "cart", "--stdout") == 0
    assert capsys.readouterr().out.startswith("---\ntype: ship-report\nfeature: cart\n")
    assert not (root / REPORT).exists()


def test_a_pass_without_a_judge_is_warned_about(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "cart", "--verdict", "PASS") == 0
    assert "R-41" in capsys.readouterr().err


@pytest.mark.parametrize("slug", ["nope", "../x", "metrics", "Cart"])
def test_where_there_is_no_run_nothing_is_written(root: Path, slug: str) -> None:
    with pytest.raises(Exit) as stop:
        run(root, slug)
    assert stop.value.status == NOTHING_THERE
    assert not (root / "shapeup").exists()


def test_a_link_in_the_reports_place_is_not_followed(root: Path) -> None:
    write(root, "outside.md", "mine")
    (root / REPORT).parent.mkdir(parents=True)
    (root / REPORT).symlink_to(root / "outside.md")
    with pytest.raises(Exit) as stop:
        run(root, "cart")
    assert stop.value.status == USAGE
    assert (root / "outside.md").read_text() == "mine"


def leftovers(root: Path, *, is_git: bool) -> list[str]:
    tree = DiskTree(root)
    records = read_run_records(tree, "cart")
    assert records is not None
    return [found.text for found in find_leftovers(read_additions(tree, records, is_git=is_git))]


def test_git_says_what_a_change_and_new_files_leave_behind(root: Path) -> None:
    git(root, "init", "-q")
    write(root, ".gitignore", "ignored.py\n")
    write(root, "src/old ü\n.py", "# TODO was there\n")
    write(root, "gone.py", "TODO\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "start")
    (root / "gone.py").unlink()
    write(root, "src/old ü\n.py", "# TODO was there\n# FIXME\n")
    write(root, "new.py", "HACK\n" * 2)
    write(root, "ignored.py", "TODO\n")
    write(root, "shapeup/cart/spec/x.md", "TODO\n")
    write(root, "picture.bin", "TODO\0")
    write(root, "huge.py", "TODO\n" * 60_000)
    (root / "link.py").symlink_to("new.py")
    assert leftovers(root, is_git=True) == ["src/old ü\n.py: FIXME ×1", "new.py: HACK ×2"]


@pytest.mark.parametrize("is_git", [False, True])
def test_where_git_cannot_say_the_newest_result_names_the_files(root: Path, is_git: bool) -> None:
    if is_git:
        git(root, "init", "-q")  # no commit yet
    write(root, "a.py", "TODO\n")
    write(root, "b.py", "TODO\n")
    touched = [{"path": "a.py"}, {"path": "../b.py"}, {"path": ".shapeup/cart/x"}, {"path": "gone.py"}]
    document = {"order_id": "cart/core-r1-a1", "files_touched": touched}
    write(root, path_of("result", "cart", "core-r1-a1"), json.dumps(document))
    assert leftovers(root, is_git=is_git) == ["a.py: TODO ×1"]


def test_a_result_that_was_not_applied_judges_nothing(root: Path) -> None:
    verdict = {"overall": "PASS", "criteria": [{"criterion": "x", "verdict": "PASS"}]}
    document = {"order_id": "cart/evaluate-r1", "status": "done", "verdict": verdict}
    write(root, path_of("result", "cart", "evaluate-r1"), json.dumps(document))
    row = {"order_id": "cart/evaluate-r1", "sha256": "0" * 64, "outcome": "rejected"}
    records = read_run_records(DiskTree(root), "cart")
    assert records is not None
    assert [round_ for round_, _ in records.evaluations] == [1]
    write(root, path_of("ingest-record", "cart"), json.dumps(row) + "\n")
    records = read_run_records(DiskTree(root), "cart")
    assert records is not None
    assert records.evaluations == ()
