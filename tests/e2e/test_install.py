"""`shapeupd install` and `uninstall` on real repositories, as people meet them. Source: targets 24, rulings E18, A1."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from hooks.install.stub_text import SAVED, is_stub
from parsers.settings import KEYS, parse_settings
from tests.e2e.hook_tools import command
from tests.e2e.living import shapeupd
from tests.hooks.history import History
from tests.hooks.installing import PLAIN, Picture, picture

STUBBED = ("pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-push")


@pytest.fixture(autouse=True)
def _own_world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of whoever runs the tests reaches git or shapeupd."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "SHAPEUP", "XDG_CONFIG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", os.fspath(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.fspath(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")


@pytest.fixture
def repo(tmp_path: Path) -> History:
    made = History(tmp_path / "repo")
    made.commit("one", a="1\n")
    return made


def git_picture(repo: History) -> Picture:
    """Everything of the repository that install may touch, and its configuration."""
    common = Path(repo.git("rev-parse", "--path-format=absolute", "--git-common-dir"))
    ours = [common / name for name in ("hooks", "info", "config", "shapeupd", "husky")]
    tops = [path for path in repo.root.iterdir() if path.name != ".git"]
    return {name: seen for path in (*ours, *tops) for name, seen in picture(path).items()}


def hook(repo: History, name: str) -> bytes:
    return (repo.root / ".git" / "hooks" / name).read_bytes()


def test_installing_thrice_is_installing_once_and_uninstalling_leaves_no_trace(repo: History) -> None:
    (repo.root / ".git" / "hooks" / "pre-commit").write_bytes(PLAIN)
    (repo.root / ".git" / "hooks" / "pre-commit").chmod(0o755)
    before = git_picture(repo)
    first = shapeupd("install", cwd=repo.root)
    assert first.returncode == 0, first.stderr
    assert "the gate first, then the hook that was there" in first.stdout
    once = git_picture(repo)
    for _ in range(2):
        again = command("install", cwd=repo.root)
        assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "nothing to change")
    assert git_picture(repo) == once
    assert command("uninstall", cwd=repo.root).returncode == 0
    assert git_picture(repo) == before
    last = command("uninstall", cwd=repo.root)
    assert (last.returncode, last.stdout) == (0, "nothing is installed here\n")


def test_the_stubs_start_the_shapeupd_that_installed_them(repo: History) -> None:
    document = json.loads(command("install", "--json", cwd=repo.root).stdout)
    assert [row["hook"] for row in document["hooks"]] == list(STUBBED)
    assert document["refused"] == document["notes"] == []
    text = hook(repo, "pre-commit").decode()
    python = next(line for line in text.splitlines() if line.startswith("python=")).split("'")[1]
    main = next(line for line in text.splitlines() if line.startswith("main=")).split("'")[1]
    assert os.access(python, os.X_OK)
    assert os.path.exists(main)
    assert os.path.exists(os.path.join(os.path.dirname(python), "..", "pyvenv.cfg"))  # not resolved out of the venv


def test_commits_go_through_the_hooks_and_the_hook_behind_them(repo: History) -> None:
    (repo.root / ".git" / "hooks" / "commit-msg").write_bytes(b'#!/bin/sh\necho "theirs" >>"$1"\n')
    (repo.root / ".git" / "hooks" / "commit-msg").chmod(0o755)
    command("install", cwd=repo.root)
    repo.commit("two", a="2\n")
    assert repo.git("log", "-1", "--format=%B").splitlines()[-1] == "theirs"


def test_it_installs_for_all_worktrees_from_any_of_them(repo: History, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", os.fspath(linked))
    assert command("install", cwd=linked).returncode == 0
    assert is_stub_file(repo.root / ".git" / "hooks" / "pre-commit")
    assert not (linked / ".shapeupd.toml").exists()
    assert (repo.root / ".shapeupd.toml").exists()
    assert command("uninstall", cwd=linked).returncode == 0
    assert not (repo.root / ".git" / "hooks" / "pre-commit").exists()


def is_stub_file(path: Path) -> bool:
    from hooks.install.disk_nodes import read_node

    return is_stub(read_node(os.fspath(path)))


def test_a_path_that_means_something_to_the_shell_is_only_a_path(tmp_path: Path) -> None:
    repo = History(tmp_path / "a 'b' \"c\" $HOME `d`\n\\e")
    assert command("install", "--strict", cwd=repo.root).returncode == 0
    repo.commit("one", a="1\n")
    linked = tmp_path / "l 'i' $n\nk"
    repo.git("worktree", "add", "-q", "-b", "linked", os.fspath(linked))
    (linked / "a").write_text("2\n")
    repo.git("-C", os.fspath(linked), "commit", "-qam", "two")
    assert command("uninstall", cwd=repo.root).returncode == 0


def test_a_git_dir_that_lies_elsewhere_is_found(tmp_path: Path) -> None:
    repo = History(tmp_path / "work", "--separate-git-dir", os.fspath(tmp_path / "git dir"))
    assert command("install", cwd=repo.root).returncode == 0
    assert is_stub_file(tmp_path / "git dir" / "hooks" / "pre-commit")
    repo.commit("one", a="1\n")
    assert command("uninstall", cwd=repo.root).returncode == 0
    assert not (tmp_path / "git dir" / "shapeupd").exists()


def test_a_plain_folder_has_nothing_to_install(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for verb in ("install", "uninstall"):
        done = command(verb, cwd=tmp_path / "plain")
        assert done.returncode == 3
        assert "no git repository" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("scope", ["local", "global", "command"])
def test_a_hooks_path_outside_is_refused_naming_where_it_is_set(
    repo: History, tmp_path: Path, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "shared hooks"
    outside.mkdir()
    (outside / "pre-commit").write_bytes(PLAIN)
    if scope == "command":
        for name, value in (("COUNT", "1"), ("KEY_0", "core.hooksPath"), ("VALUE_0", os.fspath(outside))):
            monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
        source = "command line"
    else:
        source = ".git/config" if scope == "local" else os.fspath(tmp_path / "gitconfig")
        repo.git("config", f"--{scope}", "core.hooksPath", os.fspath(outside), GIT_CONFIG_GLOBAL=source)
    before = git_picture(repo), picture(outside)
    done = command("install", cwd=repo.root)
    assert done.returncode == 1
    assert source in done.stderr
    assert f"{scope} scope" in done.stderr
    assert os.fspath(outside) in done.stderr
    assert (git_picture(repo), picture(outside)) == before


def test_the_remedy_for_a_global_hooks_path_works(repo: History, tmp_path: Path) -> None:
    (tmp_path / "gitconfig").write_text(f"[core]\n\thooksPath = {tmp_path}/elsewhere\n")
    refusal = command("install", cwd=repo.root).stderr
    remedy = refusal.split("fix: ")[1].split(";")[0]
    repo.git("-c", f"alias.mend=!{remedy}", "mend")
    assert command("install", cwd=repo.root).returncode == 0
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", os.fspath(linked))
    said = repo.git("-C", os.fspath(linked), "rev-parse", "--path-format=absolute", "--git-path", "hooks")
    assert said == os.fspath(repo.root / ".git" / "hooks")


def test_a_hooks_folder_that_is_a_link_is_not_written_through(repo: History) -> None:
    (repo.root / "scripts").mkdir()
    shutil.rmtree(repo.root / ".git" / "hooks")
    (repo.root / ".git" / "hooks").symlink_to("../scripts")
    done = command("install", cwd=repo.root)
    assert done.returncode == 1
    assert "symbolic link to ../scripts" in done.stderr
    assert "core.hooksPath scripts" in done.stderr
    assert not list((repo.root / "scripts").iterdir())


def test_a_teams_own_folder_gets_lines_that_do_nothing_elsewhere(repo: History, tmp_path: Path) -> None:
    repo.write(".githooks/pre-commit", "#!/bin/sh\necho team >>said\n")
    repo.write(".githooks/pre-push", "#!/usr/bin/env python3\n")
    repo.git("config", "core.hooksPath", ".githooks")
    for name in ("pre-commit", "pre-push"):
        (repo.root / ".githooks" / name).chmod(0o755)
    repo.commit("hooks")
    before = git_picture(repo)
    before.pop(os.fspath(repo.root / "said"))
    done = command("install", cwd=repo.root)
    assert done.returncode == 1  # the Python script: said, and left
    assert ".githooks/pre-push: E-HOOKS it is no shell script" in done.stderr
    repo.commit("lines", b="2\n")
    assert (repo.root / "said").read_text() == "team\n" * 2

    clone = tmp_path / "clone"
    repo.git("clone", "-q", os.fspath(repo.root), os.fspath(clone))
    repo.git("-C", os.fspath(clone), "config", "core.hooksPath", ".githooks")
    (clone / "a").write_text("other machine\n")
    repo.git("-C", os.fspath(clone), "commit", "-qam", "where nothing is installed")
    repo.git("reset", "-q", "--hard", "HEAD~1")
    command("install", cwd=repo.root)
    assert command("uninstall", cwd=repo.root).returncode == 0
    after = git_picture(repo)
    after.pop(os.fspath(repo.root / "said"), None)
    assert after == before


def test_a_relative_hooks_path_that_a_worktree_cannot_resolve_is_said(repo: History, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    repo.git("worktree", "add", "-q", os.fspath(linked))
    (repo.root / ".githooks").mkdir()  # not committed, so no other worktree has it
    repo.git("config", "core.hooksPath", ".githooks")
    for words in (("--dry-run",), ()):
        done = command("install", *words, cwd=repo.root)
        assert done.returncode == 0
        assert f"note: {linked}: E-HOOKS core.hooksPath is relative" in done.stderr


def test_an_ignore_rule_is_added_only_where_git_does_not_ignore_the_tier_already(repo: History) -> None:
    repo.commit("ignored", _dot_gitignore=".shapeup\n")
    before = (repo.root / ".git" / "info" / "exclude").read_bytes()
    command("install", cwd=repo.root)
    assert (repo.root / ".git" / "info" / "exclude").read_bytes() == before


def test_the_local_tier_is_ignored_after_install(repo: History) -> None:
    command("install", cwd=repo.root)
    repo.write(".shapeup/cart/orders/x.json", "{}")
    assert repo.git("status", "--porcelain") == "?? .shapeupd.toml"


def test_the_settings_file_holds_every_key_and_sets_none() -> None:
    from daemon.install.settings_template import render_template

    text = render_template().decode()
    assert parse_settings(text, None, None, "/r") == parse_settings(None, None, None, "/r")
    bare = "".join(line.removeprefix("# ") + "\n" for line in text.splitlines() if not line.startswith("# shapeupd"))
    bare = "\n".join(line for line in bare.splitlines() if not line.startswith("What a machine"))
    assert not parse_settings(bare, None, None, "/r")[1]
    for key in (key for key, kind in KEYS.items() if not kind.user_only):
        assert f"# {key.partition('.')[2]} = " in text


@pytest.mark.parametrize("change", ["edited", "committed", "theirs"])
def test_a_settings_file_that_became_the_teams_stays(repo: History, change: str) -> None:
    path = repo.root / ".shapeupd.toml"
    if change == "theirs":
        path.write_text("[gate]\nstrict = false\n")
    command("install", cwd=repo.root)
    if change == "edited":
        path.write_text(path.read_text() + "# mine\n")
    elif change == "committed":
        repo.commit("settings")
    kept = path.read_bytes()
    assert command("uninstall", cwd=repo.root).returncode == 0
    assert path.read_bytes() == kept


def test_strict_follows_the_flag_or_the_setting_and_stays(repo: History) -> None:
    command("install", cwd=repo.root)
    assert not (repo.root / ".git" / "hooks" / "reference-transaction").exists()
    repo.write(".shapeupd.toml", "[gate]\nstrict = true\n")
    command("install", cwd=repo.root)
    assert is_stub_file(repo.root / ".git" / "hooks" / "reference-transaction")
    (repo.root / ".shapeupd.toml").unlink()
    command("install", cwd=repo.root)
    assert is_stub_file(repo.root / ".git" / "hooks" / "reference-transaction")


def test_wrong_settings_are_named_before_anything_is_written(repo: History) -> None:
    repo.write(".shapeupd.toml", "[gate]\nstrikt = true\n")
    before = git_picture(repo)
    done = command("install", cwd=repo.root)
    assert done.returncode == 2
    assert "gate.strict" in done.stderr
    assert git_picture(repo) == before


def test_a_folder_that_may_not_be_written_is_named_without_a_traceback(repo: History) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    folder = repo.root / ".git" / "hooks"
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    done = command("install", cwd=repo.root)
    folder.chmod(0o755)
    assert done.returncode == 1
    assert "Permission denied" in done.stderr
    assert command("install", cwd=repo.root).returncode == 0


def test_a_dead_shapeupd_is_mended_by_installing_again(repo: History) -> None:
    command("install", cwd=repo.root)
    path = repo.root / ".git" / "hooks" / "pre-commit"
    dead = path.read_bytes()
    for line in dead.splitlines():
        if line.startswith(b"python="):
            dead = dead.replace(line, b"python='/gone/bin/python'")
    path.write_bytes(dead)
    (repo.root / ".git" / "shapeupd" / "install.json").unlink()  # as if that other shapeupd had recorded it
    repo.commit("no order is live, so nobody needs Python", a="2\n")
    assert command("install", cwd=repo.root).returncode == 0
    assert b"/gone/" not in path.read_bytes()
    assert not path.with_name("pre-commit" + SAVED).exists()


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_a_bare_repository_is_told_what_serves_it(tmp_path: Path, verb: str) -> None:
    History(tmp_path / "bare", "--bare")
    done = command(verb, cwd=tmp_path / "bare")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
