"""When git replays commits that exist already, and when a person or an agent makes a new one. Real hooks tell what they see."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hooks.changes import git_dir_and_head
from hooks.replay import is_replaying
from tests.hooks.history import History


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    made = History(tmp_path / "repo")
    monkeypatch.chdir(made.root)
    made.commit("base", a="1\n2\n3\n", b="b\n")
    made.git("checkout", "-q", "-b", "side")
    made.commit("s1", s1="x\n")
    made.commit("s2", s2="x\n")
    made.git("checkout", "-q", "main")
    made.commit("m", m="m\n")
    return made


def seen(history: History, *args: str, hook: str = "prepare-commit-msg", ends_well: bool = True) -> set[bool]:
    """What is_replaying says of the git folder as a hook finds it, at each of its runs during one git command."""
    copies = history.root / "copies"
    path = Path(history.git("rev-parse", "--path-format=absolute", "--git-path", f"hooks/{hook}"))
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f'#!/bin/sh\nmkdir -p "{copies}/$$"\ncd "$(git rev-parse --git-dir)" && '
        f'for name in *; do case $name in objects|hooks|refs|logs|worktrees) ;; *) cp -R "$name" "{copies}/$$/";; esac; done\n'
    )
    path.chmod(0o755)
    done = history.try_git(*args)
    path.unlink()
    assert (done.returncode == 0) == ends_well, done.stderr
    found = {is_replaying(os.fspath(copy)) for copy in copies.iterdir()}
    assert found
    for copy in copies.iterdir():
        copy.rename(history.root.parent / f"seen-{copy.name}")
    return found


def test_a_cherry_pick_a_sequence_and_a_rebase_are_replays(history: History) -> None:
    assert seen(history, "cherry-pick", "side") == {True}
    history.git("reset", "-q", "--hard", "HEAD~1")
    assert seen(history, "cherry-pick", "side~2..side") == {True}
    history.git("reset", "-q", "--hard", "HEAD~2")
    history.git("checkout", "-q", "side")
    assert seen(history, "rebase", "-q", "main") == {True}
    assert seen(history, "revert", "--no-edit", "HEAD~1..HEAD", "HEAD~1") == {True}


def test_a_rebase_by_patches_and_an_am_are_replays(history: History) -> None:
    history.git("checkout", "-q", "side")
    assert seen(history, "rebase", "-q", "--apply", "main", hook="applypatch-msg") == {True}
    patch = history.git("format-patch", "-1", "--stdout")
    history.git("reset", "-q", "--hard", "HEAD~1")
    history.write("../patch", patch + "\n")
    assert seen(history, "am", "-q", "../patch", hook="pre-applypatch") == {True}


@pytest.mark.parametrize(
    "before",
    [
        (),
        ("cherry-pick", "-n", "side"),
        ("merge", "-q", "--squash", "side"),
        ("merge", "-q", "--no-ff", "--no-commit", "side"),
        ("revert", "-n", "HEAD"),
    ],
)
@pytest.mark.parametrize("hook", ["pre-commit", "prepare-commit-msg"])
def test_what_a_person_commits_is_no_replay_whatever_prepared_it(
    history: History, before: tuple[str, ...], hook: str
) -> None:
    if before:
        history.git(*before)
    assert seen(history, "commit", "-q", "--allow-empty", "-m", "x", hook=hook) == {False}


def test_an_amend_a_merge_and_one_clean_revert_are_no_replays(history: History) -> None:
    assert seen(history, "commit", "-q", "--amend", "-m", "x") == {False}
    assert seen(history, "revert", "--no-edit", "HEAD") == {False}
    assert seen(history, "merge", "-q", "--no-ff", "side", "-m", "x", hook="pre-merge-commit") == {False}


def test_a_conflicted_cherry_pick_is_still_a_replay_when_it_is_committed(history: History) -> None:
    history.git("checkout", "-q", "-b", "other", "side~2")
    history.commit("theirs", a="theirs\n")
    history.git("checkout", "-q", "main")
    history.commit("ours", a="ours\n")
    assert history.try_git("cherry-pick", "other").returncode
    history.write("a", "both\n")
    history.git("add", "a")
    assert seen(history, "commit", "-q", "-m", "x", hook="pre-commit") == {True}


def test_a_replay_ends_with_its_last_commit_or_its_abort(history: History) -> None:
    git_dir, _ = git_dir_and_head()
    history.git("checkout", "-q", "-b", "other", "side~2")
    history.commit("theirs", a="theirs\n")
    history.git("checkout", "-q", "main")
    history.commit("ours", a="ours\n")
    for verb in ("rebase", "cherry-pick"):
        assert not is_replaying(git_dir)
        assert history.try_git(verb, "other").returncode
        assert is_replaying(git_dir)
        history.git(verb, "--abort")
    assert not is_replaying(git_dir)


def test_a_replay_in_one_worktree_is_none_in_another(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.git("worktree", "add", "-q", "../wt", "side")
    history.git("worktree", "add", "-q", "--detach", "../quiet", "side")
    history.write("../wt/m", "conflict\n")
    history.git("-C", "../wt", "add", "-A")
    history.git("-C", "../wt", "commit", "-qm", "x")
    assert history.try_git("-C", "../wt", "cherry-pick", "main").returncode
    replaying, _ = git_dir_and_head(repo="../wt")
    quiet, _ = git_dir_and_head(repo="../quiet")
    assert is_replaying(replaying)
    assert not is_replaying(quiet)
    assert not is_replaying(git_dir_and_head()[0])


def test_a_replay_in_a_reftable_repository_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not _knows_reftable(tmp_path):
        pytest.skip("this git has no reftable (before 2.45)")
    history = History(tmp_path / "repo", "--ref-format=reftable")
    history.commit("base", a="a\n")
    history.git("checkout", "-q", "-b", "side")
    history.commit("theirs", a="theirs\n")
    history.git("checkout", "-q", "main")
    history.commit("ours", a="ours\n")
    git_dir, _ = git_dir_and_head(repo=os.fspath(history.root))
    assert not is_replaying(git_dir)
    assert history.try_git("cherry-pick", "side").returncode
    assert is_replaying(git_dir)


def _knows_reftable(folder: Path) -> bool:
    probe = History(folder / "probe")
    return probe.try_git("init", "-q", "--ref-format=reftable", "../reftable").returncode == 0
