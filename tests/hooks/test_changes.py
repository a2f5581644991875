"""What the next commit changes and what one commit changed, against git's own word.

The forms of commit have their own matrix: tests/e2e/test_commit_forms.py.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from hooks.changes import commit_changes, git_dir_and_head, index_changes, staged_changes, worktree_changes
from hooks.git import GitFailed
from hooks.path_change import PathChange
from tests.hooks.history import ENV, History

PROJECT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    for key in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(key, ENV[key])


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    made = History(tmp_path / "repo")
    monkeypatch.chdir(made.root)
    return made


@pytest.fixture
def merging(history: History) -> History:
    """`side` changed a and brought b, `main` changed m; `both` is changed by both so that git merges the text."""
    lines = [str(number) for number in range(9)]
    history.commit("base", a="a\n", m="m\n", both="\n".join(lines))
    history.git("checkout", "-q", "-b", "side")
    history.commit("side", a="side\n", b="b\n", both="\n".join(["side", *lines[1:]]))
    history.git("checkout", "-q", "main")
    history.commit("main", m="main\n", both="\n".join([*lines[:-1], "main"]))
    return history


def told(changes: tuple[PathChange, ...]) -> list[tuple[str, bytes]]:
    return sorted((change.status, change.path) for change in changes)


def index_state(history: History) -> tuple[str, list[str]]:
    """The index as bytes, and all that lies beside it."""
    git_dir = history.root / ".git"
    return hashlib.sha256((git_dir / "index").read_bytes()).hexdigest(), sorted(os.listdir(git_dir))


def test_an_unborn_head_has_no_parent_and_everything_is_added(history: History) -> None:
    assert staged_changes()[:3:2] == ((), ())
    history.write("a/b")
    history.git("add", "-A")
    staged = staged_changes()
    assert (staged.parents, told(staged.changes)) == ((), [("A", b"a/b")])
    assert git_dir_and_head() == (os.path.realpath(".git"), None)


def test_intent_to_add_counts_as_an_addition(history: History) -> None:
    history.commit("base", a="a\n")
    history.write("later", "text\n")
    history.git("add", "-N", "later")
    (change,) = staged_changes().changes
    assert (change.status, change.path, change.new_mode) == ("A", b"later", "100644")
    assert staged_changes().content.after(change) == b""


def test_an_unmerged_index_is_an_error_that_names_the_path(merging: History) -> None:
    merging.git("checkout", "-q", "-b", "other", "side")
    merging.commit("other", m="other\n")
    assert merging.try_git("merge", "main").returncode
    with pytest.raises(GitFailed, match="'m' is not merged yet"):
        staged_changes()
    assert ("M", b"m") in told(worktree_changes("."))


def test_of_a_merge_only_what_differs_from_every_parent_is_told(merging: History) -> None:
    merging.git("merge", "-q", "--no-ff", "--no-commit", "side")
    assert told(staged_changes().changes) == [("M", b"both")]
    merging.write("evil", "x\n")
    merging.write("a", "neither\n")
    merging.git("add", "-A")
    staged = staged_changes()
    assert staged.parents == (merging.head, merging.git("rev-parse", "side"))
    assert told(staged.changes) == [("A", b"evil"), ("M", b"a"), ("M", b"both")]
    (change,) = (change for change in staged.changes if change.path == b"a")
    assert staged.content.before(change) == b"a\n", "the old side is the first parent's"
    merging.git("commit", "-qm", "x")
    assert sorted(commit_changes("HEAD")) == sorted(staged.changes)


def test_the_variables_of_git_merge_are_believed_in_pre_merge_commit_only(merging: History) -> None:
    """Otherwise anybody could name a commit that holds what he wants to commit."""
    merging.git("read-tree", "side")
    side = merging.git("rev-parse", "side")
    env = {**os.environ, f"GITHEAD_{side}": "side", "GITHEAD_nonsense": "x", "GIT_REFLOG_ACTION": "merge side"}
    plain, inside = staged_changes(env=env), staged_changes(env=env, in_pre_merge=True)
    assert (plain.parents, inside.parents) == ((merging.head,), (merging.head, side))
    assert b"b" in {change.path for change in plain.changes}
    assert inside.changes == ()


def test_a_merge_head_that_git_will_drop_hides_nothing(history: History) -> None:
    """git commit drops a parent that another one holds: what was undone since then would otherwise pass unseen."""
    old = history.commit("base", a="old\n")
    new = history.commit("newer", a="new\n")
    history.write("a", "old\n")
    history.git("add", "-A")
    history.write(".git/MERGE_HEAD", f"{old}\n")
    staged = staged_changes()
    assert (staged.parents, told(staged.changes)) == ((new,), [("M", b"a")])
    history.git("commit", "-qm", "x")
    assert history.git("rev-parse", "HEAD^@").split() == [new]
    assert commit_changes("HEAD") == staged.changes


@pytest.mark.parametrize("forced", [(), ("--no-ff",)])
def test_an_octopus_over_a_head_that_its_sides_hold_has_the_parents_that_git_gives_it(
    history: History, forced: tuple[str, ...]
) -> None:
    history.commit("base", a="a\n")
    for name in ("one", "two"):
        history.git("checkout", "-q", "-b", name, "main")
        history.commit(name, **{name: "x\n"})
    history.git("checkout", "-q", "main")
    history.git("merge", "-q", *forced, "--no-commit", "one", "two")
    history.write("evil")
    history.git("add", "-A")
    staged = staged_changes()
    history.git("commit", "-qm", "x")
    assert list(staged.parents) == history.git("rev-parse", "HEAD^@").split()
    assert told(staged.changes) == told(commit_changes("HEAD")) == [("A", b"evil")]


def test_a_merge_head_that_is_no_list_of_commits_is_an_error(history: History) -> None:
    history.commit("base", a="a\n")
    for text in ("--output=pwned\n", "x", f"{'f' * 39}g\n"):
        history.write(".git/MERGE_HEAD", text)
        with pytest.raises(GitFailed, match="MERGE_HEAD is no list"):
            staged_changes()
    history.write(".git/MERGE_HEAD", f"{'1' * 40}\n")
    with pytest.raises(GitFailed):
        staged_changes()


def test_settings_that_would_bend_or_hide_paths_do_not(history: History, tmp_path: Path) -> None:
    first = history.commit("base", dir__moved="some text that is long enough\n", b="b\n")
    history.write(".gitmodules", '[submodule "sub"]\n path = sub\n url = x\n ignore = all\n')
    os.rename("dir/moved", "dir/new")
    history.git("add", "-A")
    history.git("update-index", "--add", "--cacheinfo", f"160000,{first},sub")
    plain, lying = staged_changes().changes, worktree_changes(".")
    assert told(plain) == [("A", b".gitmodules"), ("A", b"dir/new"), ("A", b"sub"), ("D", b"dir/moved")]
    (tmp_path / "order").write_text("dir/new\n")
    for key, value in (
        ("diff.ignoreSubmodules", "all"),
        ("submodule.sub.ignore", "all"),
        ("diff.relative", "true"),
        ("diff.renames", "copies"),
        ("diff.orderFile", os.fspath(tmp_path / "order")),
        ("diff.external", "false"),
        ("core.quotePath", "true"),
        ("core.abbrev", "5"),
        ("core.fileMode", "true"),
        ("color.ui", "always"),
        ("status.renames", "copies"),
        ("status.showUntrackedFiles", "no"),
        ("status.relativePaths", "true"),
        ("status.branch", "true"),
        ("status.showStash", "true"),
        ("status.short", "true"),
    ):
        history.git("config", key, value)
    history.git("update-ref", "refs/heads/HEAD", first)
    history.git("stash", "store", "-m", "x", history.git("stash", "create"))
    os.chdir("dir")
    assert staged_changes().changes == plain
    assert worktree_changes("..") == lying


def test_a_replaced_head_does_not_hide_a_change(history: History) -> None:
    head = history.commit("base", a="a\n")
    history.write("docs/x")
    history.git("add", "-A")
    history.git("replace", head, history.git("commit-tree", "-m", "x", history.git("write-tree")))
    assert told(staged_changes().changes) == [("A", b"docs/x")]


def test_a_folder_of_any_name_can_hold_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path / "new\nline \udcff")
    monkeypatch.chdir(tmp_path)
    head = history.commit("base", a="a\n")
    assert git_dir_and_head(repo=os.fspath(history.root)) == (os.path.realpath(history.root / ".git"), head)
    history.write("b")
    assert told(worktree_changes(os.fspath(history.root))) == [("A", b"b")]
    history.git("add", "-A")
    staged = staged_changes(repo=os.fspath(history.root))
    assert told(staged.changes) == [("A", b"b")]
    assert staged.content.after(staged.changes[0]) == b"x\n"


def test_five_thousand_paths_are_told(history: History) -> None:
    history.commit("base", a="a\n")
    blob = history.git("rev-parse", "HEAD:a")
    lines = b"".join(b"100644 %s\t%05d/\xff\n" % (blob.encode(), number) for number in range(5000))
    history.git("update-index", "--add", "--index-info", stdin=lines)
    assert len(staged_changes().changes) == 5000


def test_a_broken_repository_is_an_error_with_gits_own_words(history: History, tmp_path: Path) -> None:
    history.commit("base", a="a\n")
    with pytest.raises(GitFailed, match="not a git repository"):
        staged_changes(repo=os.fspath(tmp_path))
    with pytest.raises(GitFailed, match="not a git repository"):
        worktree_changes(os.fspath(tmp_path))
    for wrong in ("no-such-commit", "1" * 40, "HEAD:a", "HEAD^{tree}"):
        with pytest.raises(GitFailed):
            commit_changes(wrong)
    history.write(".git/refs/heads/main", "1" * 40 + "\n")
    with pytest.raises(GitFailed):
        staged_changes()
    history.write(".git/index", "garbage")
    with pytest.raises(GitFailed):
        staged_changes()


def test_reading_writes_nothing_though_the_index_is_stale(history: History) -> None:
    history.commit("base", a="a\n", b="b\n")
    history.write("c")
    history.git("add", "-A")
    os.utime("a", (1, 1))
    before = index_state(history)
    staged = staged_changes()
    assert staged.content.after(staged.changes[0]) == b"x\n"
    index_changes(())
    worktree_changes(".")
    commit_changes("HEAD")
    assert index_state(history) == before


def test_the_index_can_be_held_against_other_commits_than_head(history: History) -> None:
    """So is an amend judged whole: against the parents of the commit that it takes the place of."""
    history.commit("base", a="a\n")
    history.commit("slipped in", docs__x="x\n")
    history.write("src/b")
    history.git("add", "-A")
    assert told(staged_changes().changes) == [("A", b"src/b")]
    whole = index_changes(history.git("rev-parse", "HEAD^@").split())
    assert told(whole) == [("A", b"docs/x"), ("A", b"src/b")]
    history.git("commit", "-q", "--amend", "-m", "x")
    assert commit_changes("HEAD") == whole


HOOK = """import json, os, sys
sys.path.insert(0, {project!r})
from hooks.changes import staged_changes
staged = staged_changes(in_pre_merge={hook!r} == "pre-merge-commit")
row = [{hook!r}, sorted([change.status, change.name] for change in staged.changes), list(staged.parents)]
for change in staged.changes:
    staged.content.before(change), staged.content.after(change)
with open({out!r}, "a") as out:
    print(json.dumps(row), file=out)
"""


@pytest.mark.parametrize(
    ("script", "hooks"),
    [
        ("git add docs; git commit -qm x", ["pre-commit", "prepare-commit-msg"]),
        ("git add -N docs; cd docs; git commit -qam x", ["pre-commit", "prepare-commit-msg"]),
        ("git add -N docs; git commit -qm x -o docs/x", ["pre-commit", "prepare-commit-msg"]),
        ("export GIT_INDEX_FILE=.git/x; git read-tree HEAD; git add docs; cd docs; git commit -qm x", ["pre-commit", "prepare-commit-msg"]),
        ("git worktree add -q ../wt; cd ../wt; mkdir docs; echo >docs/x; git add .; git commit -qm x", ["pre-commit", "prepare-commit-msg"]),
        ("top=$PWD; cd /; export GIT_DIR=$top/.git GIT_WORK_TREE=$top; git add -A; git commit -qm x", ["pre-commit", "prepare-commit-msg"]),
        ("git merge -q --no-ff -m x side", ["pre-merge-commit", "prepare-commit-msg"]),
        ("git checkout -q --orphan o; git rm -rqf --cached .; git add docs; git commit -qm x", ["pre-commit", "prepare-commit-msg"]),
    ],
)  # fmt: skip
def test_a_python_of_the_hooks_own_reads_what_is_then_committed(
    merging: History, tmp_path: Path, script: str, hooks: list[str]
) -> None:
    """In the hook's real environment, folder and process."""
    out = tmp_path / "rows"
    for hook in ("pre-commit", "pre-merge-commit", "prepare-commit-msg"):
        path = merging.root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        code = tmp_path / f"{hook}.py"
        code.write_text(HOOK.format(project=os.fspath(PROJECT), out=os.fspath(out), hook=hook))
        path.write_text(f"#!/bin/sh\nexec '{sys.executable}' -I -S '{code}' 2>>'{tmp_path}/said'\n")
        path.chmod(0o755)
    merging.write("docs/x")
    commit = merging.git("-c", f"alias.go=!{script}; git rev-parse HEAD", "go").splitlines()[-1]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row[0] for row in rows] == hooks
    assert (tmp_path / "said").read_text() == "", "a reader that is not closed says nothing at the end"
    changes = sorted([change.status, change.name] for change in commit_changes(commit))
    assert changes
    parents = merging.git("rev-parse", f"{commit}^@").split()
    assert all(row[1:] == [changes, parents] for row in rows), rows
