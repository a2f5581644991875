"""Whatever kind of repository git keeps, the same changes are read as in a plain one, and nothing is written. Source: targets 23."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hooks.blobs import Blobs, WorkingTree
from hooks.changes import commit_changes, git_dir_and_head, staged_changes, worktree_changes
from hooks.git import GitFailed
from hooks.path_change import PathChange
from hooks.returns import returns_of
from tests.hooks.history import ENV, History

Row = tuple[str, bytes, str, str, bytes | None, bytes | None]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    for key in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(key, ENV[key])


def base(history: History) -> None:
    """What every repository holds at first."""
    for number in range(30):
        history.write(f"src/{number}", f"{number}\n")
        history.write(f"docs/deep/{number}", f"{number}\n")
    history.write("top", "top\n")
    history.write(b"src/\xff\n", "odd\n")
    history.write("turns", "file\n")
    history.commit("base")
    history.write("src/slip")
    history.commit("slip")


def change(history: History) -> None:
    """The changes that are then staged, all inside `src/` and the top so that a sparse tree holds them too."""
    history.write("src/1", "changed\n")
    history.write("src/new/file", "new\n")
    history.write(b"src/\xff\n", "odder\n")
    os.chmod(history.root / "src/2", 0o755)
    for name in ("src/3", "src/slip", "turns"):
        os.unlink(history.root / name)
    os.rename(history.root / "src/4", history.root / "src/moved")
    os.symlink("top", history.root / "turns")


def rows(changes: tuple[PathChange, ...], content: Blobs | WorkingTree) -> list[Row]:
    return sorted(
        (one.status, one.path, one.old_mode, one.new_mode, content.before(one), content.after(one)) for one in changes
    )


Make = Callable[[Path], History]
KINDS: dict[str, Make] = {}


def kind(make: Make) -> Make:
    KINDS[make.__name__.replace("_", " ").strip()] = make
    return make


def plain(folder: Path, *init: str) -> History:
    history = History(folder / "repo", *init)
    base(history)
    return history


@kind
def sha256(folder: Path) -> History:
    return plain(folder, "--object-format=sha256")


@kind
def reftable(folder: Path) -> History:
    if History(folder / "probe").try_git("init", "-q", "--ref-format=reftable", "../other").returncode:
        pytest.skip("this git has no reftable (before 2.45)")
    return plain(folder, "--ref-format=reftable")


@kind
def sparse_index(folder: Path) -> History:
    history = plain(folder)
    history.git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
    assert not (history.root / "docs").exists()
    assert "docs/\n" in history.git("ls-files", "--sparse") + "\n"
    return history


@kind
def sparse_checkout_without_cone(folder: Path) -> History:
    history = plain(folder)
    history.git("sparse-checkout", "set", "--no-cone", "/src/", "/*", "!/docs/")
    assert not (history.root / "docs").exists()
    return history


@kind
def split_index(folder: Path) -> History:
    history = plain(folder)
    history.git("config", "core.splitIndex", "true")
    history.git("config", "splitIndex.maxPercentChange", "100")
    history.git("update-index", "--split-index")
    assert any(name.startswith("sharedindex") for name in os.listdir(history.root / ".git"))
    return history


@kind
def index_version_4(folder: Path) -> History:
    history = plain(folder)
    history.git("update-index", "--index-version", "4")
    assert (history.root / ".git" / "index").read_bytes()[:8] == b"DIRC\0\0\0\4"
    return history


@kind
def many_files_with_untracked_cache(folder: Path) -> History:
    history = plain(folder)
    history.git("config", "feature.manyFiles", "true")
    history.git("update-index", "--force-untracked-cache")
    history.git("status")
    return history


@kind
def partial_clone(folder: Path) -> History:
    return _clone(folder, "--filter=blob:none")


@kind
def partial_clone_without_trees(folder: Path) -> History:
    return _clone(folder, "--filter=tree:0")


@kind
def shallow_clone(folder: Path) -> History:
    return _clone(folder, "--depth=2")


def _clone(folder: Path, *words: str) -> History:
    origin = History(folder / "origin")
    base(origin)
    origin.git("config", "uploadpack.allowFilter", "true")
    origin.git("clone", "-q", *words, f"file://{origin.root}", "../repo")
    return History(folder / "repo")


@kind
def linked_worktree_with_its_own_settings(folder: Path) -> History:
    history = plain(folder)
    history.git("config", "extensions.worktreeConfig", "true")
    history.git("worktree", "add", "-q", "-b", "work", "../linked")
    linked = History.__new__(History)
    linked.root = folder / "linked"
    linked.git("config", "--worktree", "diff.ignoreSubmodules", "all")
    linked.git("config", "--worktree", "core.quotePath", "true")
    assert history.try_git("config", "core.quotePath").returncode == 1
    return linked


@kind
def separate_git_folder(folder: Path) -> History:
    return plain(folder, "--separate-git-dir", os.fspath(folder / "elsewhere"))


@kind
def borrowed_objects(folder: Path) -> History:
    return _clone(folder, "--shared")


@kind
def packed(folder: Path) -> History:
    history = plain(folder)
    history.git("gc", "-q")
    history.git("commit-graph", "write", "--reachable", "--changed-paths")
    history.git("pack-refs", "--all")
    return history


@kind
def submodule(folder: Path) -> History:
    origin = History(folder / "origin")
    base(origin)
    above = History(folder / "above")
    above.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", os.fspath(origin.root), "inner")
    inner = History.__new__(History)
    inner.root = above.root / "inner"
    return inner


@kind
def folding_names(folder: Path) -> History:
    history = plain(folder)
    history.git("config", "core.ignoreCase", "true")
    history.git("config", "core.precomposeUnicode", "true")
    return history


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Row], list[Row]]:
    """What a plain repository tells: lying in the working tree, and staged."""
    history = plain(tmp_path_factory.mktemp("plain"))
    change(history)
    top = os.fspath(history.root)
    lying = rows(worktree_changes(top), WorkingTree(top, Blobs(git_dir_and_head(repo=top)[0])))
    history.git("add", "-A")
    staged = staged_changes(repo=top)
    assert len(staged.changes) == len(lying) == 9
    return lying, rows(staged.changes, Blobs(git_dir_and_head(repo=top)[0]))


def state(history: History) -> Iterator[tuple[str, str]]:
    """Every file of the git folder by its bytes."""
    top = git_dir_and_head(repo=os.fspath(history.root))[0]
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                yield path, hashlib.sha256(file.read()).hexdigest()


@pytest.mark.parametrize("name", KINDS)
def test_the_changes_are_those_of_a_plain_repository(
    name: str, expected: tuple[list[Row], list[Row]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = KINDS[name](tmp_path)
    monkeypatch.chdir(history.root)
    change(history)
    before = dict(state(history))
    lying = worktree_changes(".")
    assert dict(state(history)) == before
    assert rows(lying, WorkingTree(".", Blobs())) == expected[0]
    history.git("add", "-A")
    before = dict(state(history))
    staged = staged_changes()
    assert rows(staged.changes, Blobs()) == expected[1]
    is_return = returns_of(staged.parents[0], staged.changes)
    slip = next(one for one in staged.changes if one.path == b"src/slip")
    assert is_return(slip) == (name != "partial clone without trees"), (
        "where the older tree is not here, nobody can tell"
    )
    after = dict(state(history))
    if name == "sparse index":  # git writes the trees of the full index, which the commit will need; never the index
        after = {path: sha for path, sha in after.items() if path in before or "/objects/" not in path}
    assert after == before, "reading wrote something"
    history.git("commit", "-qm", "x")
    assert sorted(commit_changes("HEAD")) == sorted(staged.changes)
    assert staged.parents == (history.git("rev-parse", "HEAD^"),)


def test_a_path_outside_a_sparse_tree_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = sparse_index(tmp_path)
    monkeypatch.chdir(history.root)
    blob = history.git("rev-parse", "HEAD:top")
    history.git("update-index", "--cacheinfo", f"100644,{blob},docs/deep/7")
    history.git("update-index", "--force-remove", "docs/deep/8")
    changes = {(one.status, one.path) for one in staged_changes().changes}
    assert changes == {("M", b"docs/deep/7"), ("D", b"docs/deep/8")}


@pytest.mark.parametrize("words", [("--filter=blob:none",), ("--filter=tree:0",)])
def test_what_a_partial_clone_lacks_is_said_and_never_fetched(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = _clone(tmp_path, *words, "--no-checkout")
    monkeypatch.chdir(history.root)
    if words == ("--filter=tree:0",):
        history.git("rev-parse", "HEAD^{tree}", "HEAD:src", "HEAD:docs/deep")
    history.git("read-tree", "HEAD")
    new = history.git("hash-object", "-w", "--stdin", stdin=b"new\n")
    history.git("update-index", "--cacheinfo", f"100644,{new},docs/deep/7")
    before = dict(state(history))
    staged = staged_changes()
    (one,) = staged.changes
    assert (one.status, one.path) == ("M", b"docs/deep/7")
    assert staged.content.after(one) == b"new\n"
    with pytest.raises(GitFailed, match=f"git cat-file -e {one.old_blob}"):
        staged.content.before(one)
    assert staged.content.after(one) == b"new\n"
    assert not returns_of(staged.parents[0], staged.changes)(one)
    assert dict(state(history)) == before, "something was fetched"
    history.git("cat-file", "-e", one.old_blob)
    assert staged.content.before(one) == b"7\n", "the way forward works"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
def test_a_repository_of_somebody_else_is_gits_to_refuse_and_ours_to_read_when_git_does(
    expected: tuple[list[Row], list[Row]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = plain(tmp_path)
    change(history)
    history.git("add", "-A")
    for folder, folders, names in os.walk(os.fsencode(history.root)):
        for name in (b".", *folders, *names):
            os.chown(os.path.join(folder, name), 65534, 65534, follow_symlinks=False)
    monkeypatch.chdir(history.root)
    monkeypatch.delenv("SUDO_UID", raising=False)
    for ask in (staged_changes, lambda: worktree_changes("."), lambda: commit_changes("HEAD")):
        with pytest.raises(GitFailed, match=r"dubious ownership|safe.directory"):
            ask()
    for key, value in (("COUNT", "1"), ("KEY_0", "safe.directory"), ("VALUE_0", "*")):
        monkeypatch.setenv(f"GIT_CONFIG_{key}", value)
    staged = staged_changes()
    assert rows(staged.changes, Blobs()) == expected[1]


def test_no_commands_environment_reaches_the_repository_of_another(tmp_path: Path) -> None:
    """A hook's own variables would lead the working tree's git into the wrong repository."""
    history, other = plain(tmp_path / "one"), plain(tmp_path / "two")
    other.write("stray")
    hostile = {"GIT_DIR": os.fspath(history.root / ".git"), "GIT_INDEX_FILE": "/nowhere", "GIT_WORK_TREE": "/"}
    code = (
        f"import sys; sys.path.insert(0, {os.getcwd()!r})\n"
        "from hooks.changes import worktree_changes\n"
        f"print([change.name for change in worktree_changes({os.fspath(other.root)!r})])\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], env=ENV | hostile, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['stray']"
