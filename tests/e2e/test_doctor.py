"""`shapeupd doctor` on walls that stand and on walls that do not: each red names the wall, and its fix works. Source: cli §2, targets 24, 33."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from daemon.doctor.checks import check_limits, check_packages
from daemon.install.worktree_hooks import run_with_status
from hooks.install.stub_text import MARK
from tests.e2e.hook_tools import command, tool
from tests.e2e.living import SmallRun, daemon, shapeupd
from tests.hooks.history import History
from tests.hooks.installing import picture

WITHOUT_DAEMON = {"daemon", "watch"}


@pytest.fixture(autouse=True)
def _own_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("GIT_", "SHAPEUP_ORDER", "XDG_CONFIG"))]:
        monkeypatch.delenv(name)
    for name in ("HUSKY", "LEFTHOOK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")


@pytest.fixture
def repo(tmp_path: Path) -> History:
    made = History(tmp_path / "repo")
    made.commit("one", a="1\n")
    return made


@pytest.fixture
def installed(repo: History) -> History:
    assert command("install", cwd=repo.root).returncode == 0
    return repo


def checks(root: Path) -> dict[str, dict[str, Any]]:
    """What doctor found, by name; its exit status must say whether anything was red."""
    done = command("doctor", "--json", cwd=root)
    assert "Traceback" not in done.stderr, done.stderr
    document = json.loads(done.stdout)
    found = {row["name"]: row for row in document["checks"]}
    assert done.returncode == (1 if any(row["ok"] is False for row in found.values()) else 0)
    assert all(bool(row["fix"]) for row in found.values() if row["ok"] is False), found
    return found


def reds(root: Path) -> set[str]:
    return {name for name, row in checks(root).items() if row["ok"] is False} - WITHOUT_DAEMON


def test_every_wall_stands_after_install_with_a_daemon(installed: History, tmp_path: Path) -> None:
    linked = tmp_path / "linked tree"
    installed.git("worktree", "add", "-q", "-b", "linked", os.fspath(linked))
    SmallRun(installed.root, with_receipt=True).order("cart-r1-a1")
    with daemon(installed.root) as living:
        living.sync()
        found = checks(linked)
        assert {name for name, row in found.items() if row["ok"] is not True} == {"service", "linger"}  # not asked for
        assert "R-37" in found["gate"]["what"]
        assert "R-37" in found["gate in ../linked tree"]["what"]
        assert not list((installed.root / ".shapeup").glob("*canary*"))
        done = shapeupd("doctor", cwd=installed.root)
        assert done.returncode == 0
        assert "RED" not in done.stdout


def test_without_a_daemon_two_walls_are_red(installed: History) -> None:
    found = checks(installed.root)
    assert {name for name, row in found.items() if row["ok"] is False} == WITHOUT_DAEMON
    assert "shapeupd run" in found["daemon"]["fix"]


def test_a_plain_folder_has_its_git_walls_off(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    found = checks(tmp_path / "plain")
    assert found["gate"] == {"name": "gate", "ok": None, "what": "off: no git", "fix": ""}
    assert {name for name, row in found.items() if row["ok"] is False} == WITHOUT_DAEMON


def test_nothing_is_touched_by_the_canary(installed: History) -> None:
    """HEAD, index, refs, objects, hooks and the working tree keep every byte, with staged and unstaged changes lying there."""
    installed.write("a", "staged\n")
    installed.git("add", "a")
    installed.write("a", "not staged\n")
    installed.write("new", "untracked\n")
    before = picture(installed.root)
    checks(installed.root)
    assert picture(installed.root) == before


def test_a_repository_without_a_commit_is_guarded_too(tmp_path: Path) -> None:
    repo = History(tmp_path / "fresh")
    command("install", cwd=repo.root)
    assert reds(repo.root) == set()


def test_before_install_every_red_says_install(repo: History) -> None:
    found = checks(repo.root)
    for name in ("installation", "gate", "local tier"):
        assert found[name]["ok"] is False
        assert "shapeupd install" in found[name]["fix"]
    command("install", cwd=repo.root)
    assert reds(repo.root) == set()


@pytest.mark.parametrize(
    ("damage", "hook"),
    [("removed", "pre-push"), ("mode", "pre-commit"), ("replaced", "pre-push"), ("passes", "pre-commit")],
)
def test_a_hook_that_no_longer_guards_is_red_and_install_mends_it(installed: History, hook: str, damage: str) -> None:
    path = installed.root / ".git" / "hooks" / hook
    if damage == "removed":
        path.unlink()
    elif damage == "mode":
        path.chmod(0o644)
    elif damage == "replaced":
        path.write_text("#!/bin/sh\nexit 0\n")
    else:
        path.write_text(f"#!/bin/sh\n# {MARK.decode()}\nexit 0\n")
    red = reds(installed.root)
    assert red, damage
    assert red <= {"gate", "installation", "stub"}
    if damage == "passes":  # its bytes are not ours any more: the remedy is told, and it is more than one command
        path.unlink()
    assert command("install", cwd=installed.root).returncode == 0
    assert reds(installed.root) == set()


def test_a_stub_whose_python_is_gone_is_red(installed: History) -> None:
    path = installed.root / ".git" / "hooks" / "pre-commit"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(b"python='/gone/python'\n" if line.startswith(b"python=") else line for line in lines))
    found = checks(installed.root)
    assert "/gone/python" in found["stub"]["what"]
    assert found["gate"]["ok"] is False  # refused, but not by the rule


def test_a_hooks_path_from_the_environment_is_red(installed: History, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COUNT", "1"), ("KEY_0", "core.hooksPath"), ("VALUE_0", "/dev/null")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    found = checks(installed.root)
    assert "command line" in found["hooks folder"]["what"]
    assert found["gate"]["ok"] is False


def test_a_worktree_with_hooks_of_its_own_is_red_by_name(installed: History, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    installed.git("worktree", "add", "-q", "-b", "linked", os.fspath(linked))
    installed.git("config", "extensions.worktreeConfig", "true")
    installed.git("-C", os.fspath(linked), "config", "--worktree", "core.hooksPath", os.fspath(tmp_path / "none"))
    assert reds(installed.root) == {"gate in ../linked"}


def test_a_relative_hooks_path_that_a_worktree_lacks_is_red_by_name(repo: History, tmp_path: Path) -> None:
    (repo.root / ".githooks").mkdir()
    repo.git("config", "core.hooksPath", ".githooks")
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", "-b", "linked", os.fspath(linked))
    command("install", cwd=repo.root)
    found = checks(repo.root)
    assert found["gate"]["ok"] is True
    assert found["gate in ../linked"]["ok"] is False
    assert "core.hooksPath is relative" in found["gate in ../linked"]["what"]


def test_a_worktree_that_is_away_is_off(installed: History, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    installed.git("worktree", "add", "-q", "-b", "linked", os.fspath(linked))
    os.rename(linked, tmp_path / "elsewhere")
    found = checks(installed.root)
    assert found["gate in ../linked"]["ok"] is None


def test_files_of_the_local_tier_that_git_tracks_are_red(installed: History) -> None:
    installed.write(".shapeup/x", "x")
    installed.git("add", "-f", ".shapeup/x")
    assert "local tier" in reds(installed.root)
    installed.git("rm", "-r", "-q", "--cached", ".shapeup/")
    assert reds(installed.root) == set()


def test_orders_without_a_policy_are_red(installed: History) -> None:
    SmallRun(installed.root, with_receipt=True).order("cart-r1-a1")
    assert "policy" in reds(installed.root)
    (installed.root / ".shapeup" / "policy.json").write_text("{")
    assert "does not parse" in checks(installed.root)["policy"]["what"]


def test_wrong_settings_are_red(installed: History) -> None:
    installed.write(".shapeupd.toml", "[gate]\nstrikt = true\n")
    assert reds(installed.root) == {"settings"}


def test_pre_commit_over_us_is_proven_by_our_stub_alone(installed: History) -> None:
    """pre-commit moves files of the working tree, so the canary must not meet it."""
    hooks = installed.root / ".git" / "hooks"
    os.rename(hooks / "pre-commit", hooks / "pre-commit.legacy")
    marker = installed.root / "ran"
    text = f"#!/bin/sh\n# File generated by pre-commit: https://pre-commit.com\necho >{marker}\n"
    (hooks / "pre-commit").write_text(text)
    (hooks / "pre-commit").chmod(0o755)
    found = checks(installed.root)
    assert found["gate"]["ok"] is True
    assert "called by pre-commit" in found["gate"]["what"]
    assert not marker.exists()


def test_a_hook_behind_ours_is_not_run_by_the_canary(repo: History) -> None:
    hook = repo.root / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\necho >{repo.root}/ran\n")
    hook.chmod(0o755)
    command("install", cwd=repo.root)
    assert reds(repo.root) == set()
    assert not (repo.root / "ran").exists()


def test_lefthook_is_proven_with_the_lefthook_that_its_hook_finds(
    repo: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_folder = tool("lefthook")
    bare_path = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{bare_path}")
    repo.write("lefthook.yml", "pre-commit:\n  commands:\n    theirs:\n      run: touch ran\n")
    repo.commit("config")
    assert run_with_status(("lefthook", "install"), os.fspath(repo.root), dict(os.environ))[0] == 0
    command("install", cwd=repo.root)
    found = checks(repo.root)
    assert found["gate"]["ok"] is True
    assert "called by lefthook" in found["gate"]["what"]
    assert not (repo.root / "ran").exists()

    monkeypatch.setenv("LEFTHOOK", "0")
    assert "unset LEFTHOOK" in checks(repo.root)["switched off"]["fix"]
    monkeypatch.delenv("LEFTHOOK")
    (repo.root / "lefthook-local.yml").write_text("output: [summary]\n")
    assert "no command of ours" in checks(repo.root)["gate"]["what"]
    (repo.root / "lefthook.yml").write_text("pre-commit: [\n")
    assert "lefthook does not run" in checks(repo.root)["gate"]["what"]


def test_husky_switched_off_is_red(repo: History, monkeypatch: pytest.MonkeyPatch) -> None:
    bin_folder = tool("husky")
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    assert run_with_status(("husky",), os.fspath(repo.root), dict(os.environ))[0] == 0
    command("install", cwd=repo.root)
    found = checks(repo.root)
    assert "called by husky" in found["gate"]["what"]
    monkeypatch.setenv("HUSKY", "0")
    assert reds(repo.root) == {"switched off"}


def test_a_limit_that_the_trees_come_close_to_is_red(tmp_path: Path) -> None:
    from daemon.place import Place

    for number in range(9):
        (tmp_path / ".shapeup" / f"run-{number}").mkdir(parents=True)
    (tmp_path / "max_user_watches").write_text("15\n")
    check = check_limits(Place(tmp_path, None), os.fspath(tmp_path))
    assert check.ok is False
    assert "sysctl fs.inotify.max_user_watches=" in check.fix
    (tmp_path / "max_user_watches").write_text("1000\n")
    assert check_limits(Place(tmp_path, None), os.fspath(tmp_path)).ok is True
    assert check_limits(Place(tmp_path, None), "/nowhere").ok is None


def test_another_distribution_in_our_packages_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_packages().ok is True
    info = tmp_path / "hooks_for_all-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hooks-for-all\nVersion: 1.0\n")
    (info / "RECORD").write_text("hooks/__init__.py,,\n")
    monkeypatch.syspath_prepend(os.fspath(tmp_path))
    check = check_packages()
    assert check.ok is False
    assert "hooks-for-all" in check.what


def test_a_hook_that_hangs_is_given_up_with_all_it_started(tmp_path: Path) -> None:
    status, said = run_with_status(("sh", "-c", "sleep 600 & sleep 600"), os.fspath(tmp_path), dict(os.environ), 0.2)
    assert status is None
    assert "0.2 s" in said
