"""`shapeupd t0` as a person runs it: one document, an exit status, and nothing left running. Source: cli §1, §2, protocol §6.4, G7, G9."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.daemon.t0.attempting import FIXTURES, artifacts, make_repository, rows, write_contract
from tests.daemon.t0.test_processes import is_gone
from tests.daemon.trees.repository import put

PATIENCE_S = 60.0
PROJECT = Path(__file__).parents[3]
COMMAND = (
    sys.executable,
    "-c",
    "import sys; from daemon import cli; cli.VERBS.setdefault('t0', cli.Verb('daemon.commands.t0', '')); sys.exit(cli.main())",
)
NEXT = ("--round", "1", "--attempt")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", os.fspath(PROJECT))
    for name in [name for name in os.environ if name.startswith(("GIT_", "SHAPEUP_ORDER"))]:
        monkeypatch.delenv(name)


def shapeupd(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], cwd=root, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_green_ends_with_0_and_red_with_1_though_it_is_kept(root: Path) -> None:
    done = shapeupd(root, "t0", "core", *NEXT, "1")
    document = json.loads(done.stdout)
    keys = "schema path sha256 trial overall regression score status baseline_trial delta tree_ref undo_ref".split()
    assert done.returncode == 0
    assert list(document)[: len(keys)] == keys
    assert (document["overall"], document["status"], document["undo_ref"]) == ("green", "kept", None)
    write_contract(root, *FIXTURES, "exit 1")
    done = shapeupd(root, "t0", "shapeup/cart/scopes/core.md", *NEXT, "2", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (1, "rebased")


def test_what_a_restore_took_is_brought_back_by_the_command_it_names(root: Path) -> None:
    shapeupd(root, "t0", "core", *NEXT, "1")
    put(root, "src/a", "mine")
    done = shapeupd(root, "t0", "core", *NEXT, "2")
    assert (done.returncode, (root / "src/a").read_text()) == (1, "good")
    words = done.stderr.rpartition("undo the restore: shapeupd ")[2].split()
    assert shapeupd(root, *words).returncode == 0
    assert (root / "src/a").read_text() == "mine"


def test_the_log_tells_what_was_scored_and_what_became_of_the_tree(root: Path) -> None:
    shapeupd(root, "t0", "core", *NEXT, "1")
    put(root, "src/a", "bad")
    shapeupd(root, "t0", "core", *NEXT, "2")
    events = [json.loads(line)["event"] for line in (root / ".shapeup/shapeupd.log").read_text().splitlines()]
    assert events == ["t0.scored", "tree.kept", "t0.scored", "tree.restored"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("---\nscope_id: core\n---\n\n## e2e_verification_fixtures\n\n- touch ran\n", "e2e_verification_fixtures"),
        ("---\nscope_id: core\ne2e_verification_fixtures: [touch ran]\n  - more\n---\n", "e2e_verification_fixtures"),
        ("---\nscope_id: core\ndb_probe: [touch ran]\n---\n", "db_probe"),
        ("---\nscope_id: other\ne2e_verification_fixtures: [touch ran]\n---\n", "scope_id"),
        ("\ufeff---\nscope_id: core\ne2e_verification_fixtures: [touch ran]\n---\n", "frontmatter"),
        ("---\nscope_id: core\nscope_id: core\ne2e_verification_fixtures: [touch ran]\n---\n", "scope_id"),
    ],
)
def test_a_contract_that_does_not_read_runs_nothing(text: str, named: str, root: Path) -> None:
    put(root, "shapeup/cart/scopes/core.md", text)
    done = shapeupd(root, "t0", "core", *NEXT, "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr
    assert "fix: " in done.stderr
    assert not (root / "ran").exists()
    assert artifacts(root) == []


@pytest.mark.parametrize(
    "words",
    [
        ("nope", *NEXT, "1"),
        ("core",),
        ("core", *NEXT, "0"),
        ("core", "more", *NEXT, "1"),
        ("undo", "core", "x"),
        ("/etc/hostname", *NEXT, "1"),
        ("../x.md", *NEXT, "1"),
        ("src/a", *NEXT, "1"),
    ],
)
def test_what_names_no_attempt_ends_with_2(words: tuple[str, ...], root: Path) -> None:
    done = shapeupd(root, "t0", *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_trial_that_was_never_restored_cannot_be_undone(root: Path) -> None:
    done = shapeupd(root, "t0", "undo", "core", "7")
    assert (done.returncode, done.stdout) == (1, "")
    assert "trial 7" in done.stderr


def test_a_scope_of_two_features_is_asked_about(root: Path) -> None:
    put(root, "shapeup/other/scopes/core.md", (root / "shapeup/cart/scopes/core.md").read_text())
    done = shapeupd(root, "t0", "core", *NEXT, "1")
    assert done.returncode == 2
    assert "shapeup/other/scopes/core.md" in done.stderr
    assert shapeupd(root, "t0", "shapeup/cart/scopes/core.md", *NEXT, "1").returncode == 0


def test_what_can_never_be_green_is_said(root: Path) -> None:
    write_contract(root, "true # exit 3")
    done = shapeupd(root, "t0", "core", *NEXT, "1")
    assert done.returncode == 1
    assert "T0-UNPASSABLE" in done.stderr


def test_another_registry_can_be_named(root: Path) -> None:
    put(root, "mine.json", '{"scopes": [{"scope_id": "old", "fixtures": ["exit 1"]}]}')
    done = shapeupd(root, "t0", "core", *NEXT, "1", "--seesaw-registry", "mine.json")
    assert (done.returncode, json.loads(done.stdout)["regression"]) == (1, True)
    done = shapeupd(root, "t0", "core", *NEXT, "2", "--seesaw-registry", "mine.json", "--no-seesaw")
    assert done.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_told_to_end_it_takes_its_fixtures_with_it_and_counts_nothing(number: signal.Signals, root: Path) -> None:
    os.mkfifo(root / "pipe")
    write_contract(root, "echo $$ > pipe; exec sleep 1000")
    process = subprocess.Popen([*COMMAND, "t0", "core", *NEXT, "1"], cwd=root, stderr=subprocess.DEVNULL)
    with (root / "pipe").open() as pipe:
        fixture = int(pipe.read())
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == 130
    assert is_gone(fixture)
    assert (artifacts(root), rows(root)) == ([], [])


def test_a_terminal_sees_each_command_as_it_runs(root: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, "t0", "core", *NEXT, "1"], cwd=root, stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], PATIENCE_S)[0]:
        try:
            seen += os.read(ours, 4096)
        except OSError:
            break  # the other end is closed
    os.close(ours)
    assert process.wait(PATIENCE_S) == 0
    lines = seen.decode().splitlines()
    assert lines[0].startswith("fixture 1/2: test -f src/a … passed, ")
    assert lines[1].startswith("fixture 2/2: grep -q good src/a … passed, ")
