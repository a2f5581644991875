"""`shapeupd gate` as it is called: which set answers, what is recorded, and that nothing committed crosses a gate.

Source: protocol §8, rulings A1, A2, F7, W-60, W-66.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.commands.gate import HELP
from parsers.answers import GATES
from parsers.ledgers import parse_rows
from parsers.tier_direction import tier_breaks
from tests.e2e.gate_words import (
    GATES_PATH,
    LEDGER_PATH,
    MACHINE_ANSWERS,
    RUN_ANSWERS,
    answers,
    commit,
    crossings_of,
    gate,
    gates_of,
    git,
    new_repository,
    resolve,
    write,
)
from tests.e2e.living import SLUG, SmallRun


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return new_repository(tmp_path)


# --- what is recorded ------------------------------------------------------------------------------------------------


def test_a_crossing_stands_in_both_ledgers_with_its_run(root: Path) -> None:
    SmallRun(root, with_receipt=True)
    write(root, RUN_ANSWERS, answers(L2="proceed"))
    status, told, _ = resolve(root, "L2", "--slug", SLUG, "--round", "2")
    assert (status, told and told["source"]) == (0, f"file:{RUN_ANSWERS}")
    (row,) = parse_rows((root / GATES_PATH).read_bytes())
    assert (row["gate"], row["round"], row["source"]) == ("L2", 2, f"file:{RUN_ANSWERS}")
    assert str(row["run_id"]).startswith(f"{SLUG}-20260301T090000Z-")
    assert str(row["at"]).endswith("Z")
    ledger = (root / LEDGER_PATH).read_bytes()
    assert ledger.endswith(b"| 2 | \xe2\x80\x94 | gate | GATE L2 | proceed | file:run answers (ada) |\n")
    assert not list(tier_breaks(ledger))


def test_a_gate_that_asks_or_aborts_is_a_row_of_gates_alone(root: Path) -> None:
    write(root, MACHINE_ANSWERS, answers(L0="abort", L4="hold"))
    assert [resolve(root, gate_id, "--slug", SLUG)[0] for gate_id in ("L0", "L1b", "L4")] == [5, 4, 0]
    assert [row[:2] for row in gates_of(root)] == [("L0", "abort"), ("L1b", "ask"), ("L4", "ok")]
    assert crossings_of(root) == [("GATE L4", "hold", "file:machine answers (ada)")]


def test_without_a_feature_nothing_is_written(root: Path) -> None:
    assert resolve(root, "L0", "--preset", "ci")[0] == 0
    assert not (root / ".shapeup").exists()
    assert not (root / "shapeup").exists()


def test_what_somebody_wrote_into_the_ledger_stays(root: Path) -> None:
    before = "---\ntype: round-ledger\n---\n\n## Decisions\n\nnone so far\n\n## Notes\n\nmine\r\n"
    (root / "shapeup" / SLUG).mkdir(parents=True)
    (root / LEDGER_PATH).write_bytes(before.encode())
    os.chmod(root / LEDGER_PATH, 0o640)
    resolve(root, "L0", "--slug", SLUG, "--preset", "ci")
    after = (root / LEDGER_PATH).read_bytes().decode()
    head, tail = before.split("## Decisions\n")
    assert after.startswith(f"{head}## Decisions\n")
    assert after.endswith(tail)
    assert (root / LEDGER_PATH).stat().st_mode & 0o777 == 0o640
    assert len(crossings_of(root)) == 1


@pytest.mark.parametrize(
    "words", [("L9", "--preset", "ci"), ("L0",), ("L0", "--file", "none.json"), ("L0", "--file", "")]
)
def test_what_cannot_be_read_is_no_answer_and_no_row(root: Path, words: tuple[str, ...]) -> None:
    status, told, complaint = resolve(root, *words, "--slug", SLUG)
    assert (status, told) == (2, None)
    assert complaint
    assert "Traceback" not in complaint
    assert gates_of(root) == crossings_of(root) == []


def test_a_broken_set_names_every_fault_and_falls_through_to_nothing(root: Path) -> None:
    write(root, RUN_ANSWERS, answers(L0="ship", L9="proceed"))
    write(root, MACHINE_ANSWERS, answers(L0="proceed"))
    status, told, complaint = resolve(root, "L0", "--slug", SLUG)
    assert (status, told, gates_of(root)) == (2, None, [])
    assert f"{RUN_ANSWERS}:$.answers.L0.decision: E-SCHEMA" in complaint
    assert f"{RUN_ANSWERS}:$.answers.L9: E-SCHEMA" in complaint


@pytest.mark.parametrize("slug", ["Cart", "../x", "metrics", "a/b", ""])
def test_a_slug_that_is_none_is_wrong_usage(root: Path, slug: str) -> None:
    assert resolve(root, "L0", "--preset", "ci", f"--slug={slug}")[0] == 2
    assert not (root / ".shapeup").exists()


def test_the_run_caps_the_rounds_of_an_answer(root: Path) -> None:
    """W-60."""
    run = SmallRun(root)
    started = {"slug": SLUG, "started_at": "2026-03-01T09:00:00.000Z", "config": {"max_rounds": 2}}
    run.write("receipt.json", started)
    assert (resolve(root, "L3", "--slug", SLUG, "--preset", "ci")[1] or {})["max_rounds"] == 2


def test_an_answer_that_was_put_there_after_the_pause_crosses_though_a_preset_is_named(root: Path) -> None:
    """W-66."""
    launch = ("L1b", "--slug", SLUG, "--preset", "guarded")
    assert resolve(root, *launch)[0] == 4
    assert resolve(root, *launch)[0] == 4
    write(root, RUN_ANSWERS, answers(L1b="proceed"))
    status, told, _ = resolve(root, *launch)
    assert (status, told and told["source"]) == (0, f"file:{RUN_ANSWERS}")
    assert resolve(root, *launch)[0] == 0
    assert resolve(root, "H", "--slug", SLUG, "--preset", "guarded")[0] == 4


def test_a_linked_worktree_and_a_subfolder_write_to_the_main_tree(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A1."""
    linked = tmp_path_factory.mktemp("linked") / "tree"
    git(root, "worktree", "add", "-q", os.fspath(linked))
    (root / "src").mkdir()
    assert resolve(linked, "L0", "--slug", SLUG, "--preset", "ci")[0] == 0
    assert resolve(root / "src", "L1a", "--slug", SLUG, "--preset", "ci")[0] == 0
    assert [row[0] for row in gates_of(root)] == ["L0", "L1a"]
    assert not (linked / ".shapeup").exists()


# --- no committed file crosses a gate --------------------------------------------------------------------------------


def _tracked(root: Path) -> tuple[str, ...]:
    write(root, MACHINE_ANSWERS, answers(L0="proceed"))
    git(root, "add", "-f", MACHINE_ANSWERS)
    return ()


def _tracked_of_run(root: Path) -> tuple[str, ...]:
    write(root, RUN_ANSWERS, answers(L0="proceed"))
    git(root, "add", "-f", RUN_ANSWERS)
    commit(root)
    return ()


def _in_head_alone(root: Path) -> tuple[str, ...]:
    _tracked(root)
    commit(root)
    git(root, "rm", "-q", "--cached", MACHINE_ANSWERS)
    return ()


def _named(root: Path) -> tuple[str, ...]:
    write(root, "ci/answers.json", answers(L0="proceed"))
    git(root, "add", "ci")
    return "--file", "ci/answers.json"


def _in_the_committed_tree(root: Path) -> tuple[str, ...]:
    write(root, "shapeup/cart/answers.json", answers(L0="proceed"))
    return "--file", "shapeup/cart/answers.json"


def _led_to_by_a_link(root: Path) -> tuple[str, ...]:
    _named(root)
    (root / "local.json").symlink_to("ci/answers.json")
    return "--file", "local.json"


def _a_committed_link(root: Path) -> tuple[str, ...]:
    write(root, ".shapeup/x.json", answers(L0="proceed"))
    (root / "link.json").symlink_to(".shapeup/x.json")
    git(root, "add", "link.json")
    return "--file", "link.json"


def _below_a_planted_repository(root: Path) -> tuple[str, ...]:
    _tracked(root)
    git(root, "init", "-q", ".shapeup")
    return ()


def _of_another_repository(root: Path) -> tuple[str, ...]:
    other = root.parent / f"{root.name}-other"
    other.mkdir()
    git(other, "init", "-q")
    write(other, "a.json", answers(L0="proceed"))
    git(other, "add", ".")
    return "--file", os.fspath(other / "a.json")


COMMITTED = (
    _tracked,
    _tracked_of_run,
    _in_head_alone,
    _named,
    _in_the_committed_tree,
    _led_to_by_a_link,
    _a_committed_link,
    _below_a_planted_repository,
    _of_another_repository,
)


@pytest.mark.parametrize("prepare", COMMITTED, ids=lambda prepare: prepare.__name__.strip("_"))
def test_a_committed_answer_set_crosses_nothing(root: Path, prepare: Callable[[Path], tuple[str, ...]]) -> None:
    words = prepare(root)
    status, told, complaint = resolve(root, "L0", "--slug", SLUG, *words)
    assert (status, told) == (2, None)
    assert "cannot cross a gate" in complaint
    assert "fix:" in complaint
    assert gates_of(root) == crossings_of(root) == []


def test_a_link_in_an_answer_sets_place_is_not_followed(root: Path) -> None:
    write(root, "elsewhere.json", answers(L0="proceed"))
    (root / ".shapeup").mkdir()
    (root / MACHINE_ANSWERS).symlink_to("../elsewhere.json")
    assert resolve(root, "L0")[0] == 2


def test_a_file_that_git_does_not_know_crosses(root: Path) -> None:
    write(root, "mine.json", answers(L0="proceed"))
    status, told, _ = resolve(root, "L0", "--slug", SLUG, "--file", "mine.json")
    assert (status, told and told["source"]) == (0, "file:mine.json")
    assert crossings_of(root) == [("GATE L0", "proceed", "file:machine answers (ada)")]


def test_the_runs_own_file_by_name_is_committed_as_the_runs(root: Path) -> None:
    write(root, RUN_ANSWERS, answers(L0="proceed"))
    resolve(root, "L0", "--slug", SLUG, "--file", RUN_ANSWERS)
    assert crossings_of(root) == [("GATE L0", "proceed", "file:run answers (ada)")]


# --- the other modes -------------------------------------------------------------------------------------------------


def test_a_set_is_started_looked_at_and_held_against_a_lane(root: Path) -> None:
    assert gate("init", "--preset", "guarded", "--by", "ada", cwd=root).returncode == 0
    assert gate("init", "--preset", "guarded", "--by", "ada", cwd=root).returncode == 0
    shown = json.loads(gate("list", "--json", cwd=root).stdout)
    assert (shown["source"], shown["authorized_by"], list(shown["answers"])) == (
        f"file:{MACHINE_ANSWERS}",
        "ada",
        list(GATES),
    )
    assert gate("verify", cwd=root).returncode == 2
    assert gate("verify", "--auto-level", "auto", cwd=root).returncode == 0
    assert "L1b" in gate("list", cwd=root).stdout


def test_a_file_that_a_person_wrote_is_replaced_only_by_force(root: Path) -> None:
    mine = write(root, MACHINE_ANSWERS, answers(L0="proceed"))
    kept = mine.read_bytes()
    assert gate("init", cwd=root).returncode == 2
    assert mine.read_bytes() == kept
    assert gate("init", "--force", cwd=root).returncode == 0
    assert json.loads(mine.read_bytes())["preset"] == "ci"


@pytest.mark.parametrize("out", ["shapeup/answers.json", ".gitignore", "none/at/all/", ""])
def test_a_set_is_not_started_where_it_could_not_speak(root: Path, out: str) -> None:
    before = (root / ".gitignore").read_bytes()
    ran = gate(
        "init",
        "--force",
        "--out",
        os.fspath(root.parent / f"{root.name}-x" / out) if out.startswith("none") else out,
        cwd=root,
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False)
    assert (root / ".gitignore").read_bytes() == before


def test_a_person_sees_the_block_of_a_gate_that_waits(root: Path) -> None:
    ran = gate("resolve", "L1b", "--preset", "guarded", "--slug", SLUG, cwd=root)
    assert ran.returncode == 4
    lines = ran.stdout.splitlines()
    assert lines[0] == "⏸ GATE L1b — Board Review"
    assert f'answer_in: "{RUN_ANSWERS}"' in lines
    assert all(": " in line for line in lines[1:])


@pytest.mark.parametrize(
    "words", [(), ("resolve",), ("cross", "L0"), ("resolve", "L0", "--tiny"), ("list", "--round", "1")]
)
def test_words_that_say_nothing_are_wrong_usage(root: Path, words: tuple[str, ...]) -> None:
    ran = gate(*words, cwd=root)
    assert (ran.returncode, ran.stdout) == (2, "")


def test_repo_may_stand_behind_the_mode_and_words_in_any_order(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    away = tmp_path_factory.mktemp("away")
    assert gate("resolve", "--slug", SLUG, "--repo", os.fspath(root), "--preset", "ci", "L0", cwd=away).returncode == 0
    assert gate("--repo", os.fspath(root), "resolve", "L1a", "--slug", SLUG, "--preset", "ci", cwd=away).returncode == 0
    assert [row[0] for row in gates_of(root)] == ["L0", "L1a"]


@pytest.mark.parametrize("mode", ["resolve", "list", "verify", "init"])
def test_every_mode_has_help_with_an_example(mode: str, tmp_path: Path) -> None:
    assert HELP
    assert "example:\n  shapeupd gate" in gate(mode, "--help", cwd=tmp_path).stdout


def test_the_command_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = ("pydantic", "rich", "watchdog", "pygit2", "ruamel", "mistune")
    script = f"import sys, daemon.commands.gate; print([name for name in {heavy!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert ran.stdout == "[]\n"
