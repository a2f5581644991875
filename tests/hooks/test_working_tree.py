"""What lies changed in a working tree, and the bytes on both sides of a change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hooks.blobs import Blobs, Given, WorkingTree, read_beneath
from hooks.changes import staged_changes, worktree_changes
from hooks.git import GitFailed
from hooks.path_change import PathChange
from tests.e2e.change_kinds import KINDS, Donor, lay
from tests.hooks.history import ENV, History


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    for key in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(key, ENV[key])
    made = History(tmp_path / "repo")
    monkeypatch.chdir(made.root)
    return made


def told(changes: tuple[PathChange, ...]) -> list[tuple[str, bytes]]:
    return sorted((change.status, change.path) for change in changes)


def by_a_scratch_index(history: History, index: Path) -> list[tuple[str, bytes, str, str]]:
    """What `git add -A` would stage: git's own account of the working tree against HEAD."""
    index.write_bytes((history.root / ".git" / "index").read_bytes())
    env = {"GIT_INDEX_FILE": os.fspath(index)}
    history.git("add", "-A", **env)
    out = history.try_git("diff-index", "--cached", "--raw", "-z", "--no-renames", "HEAD", **env).stdout.split(b"\0")[
        :-1
    ]
    rows = [(meta.decode().split(), path) for meta, path in zip(out[::2], out[1::2], strict=True)]
    return sorted((meta[4], path, meta[0][1:], meta[1]) for meta, path in rows)


def test_a_working_tree_is_told_as_add_would_stage_it(history: History, tmp_path: Path) -> None:
    """Every kind of change: lying there, staged, and staged with more lying there."""
    gits = History(tmp_path / "donor")
    donor = Donor(gits.root / ".git", (gits.commit("0", a="0\n"), gits.commit("1", a="1\n")))
    places = [(kind, f"{stage}/{number}") for number, kind in enumerate(KINDS) for stage in ("lying", "staged", "half")]
    folders = [os.fsencode(history.root / place) for _, place in places]
    for (kind, _), folder in zip(places, folders, strict=True):
        lay(folder, {}, kind.before, donor)
    history.write(".gitignore", "ignored\n")
    history.commit("base")
    for (kind, place), folder in zip(places, folders, strict=True):
        if place.startswith("lying"):
            lay(folder, kind.before, kind.after, donor)
            history.write(f"{place}/ignored")
            continue
        lay(folder, kind.before, kind.after, donor)
    history.git("add", "-A", "staged", "half")
    for _, place in places:
        if place.startswith("half"):
            history.write(f"{place}/more")
    found = worktree_changes(os.fspath(history.root))
    rows = sorted((change.status, change.path, change.old_mode, change.new_mode) for change in found)
    assert rows == by_a_scratch_index(history, tmp_path / "index")
    assert [change.path for change in found] == sorted(change.path for change in found)


def test_what_was_staged_and_undone_or_taken_out_of_the_index_is_told_as_it_lies(
    history: History, tmp_path: Path
) -> None:
    history.commit("base", kept="1\n", untracked="1\n", gone="1\n")
    history.write("new", "x\n")
    history.git("add", "new")
    os.unlink("new")
    history.git("rm", "-q", "--cached", "untracked", "gone")
    os.chmod("untracked", 0o755)
    os.unlink("gone")
    history.write("intended", "x\n")
    history.git("add", "-N", "intended")
    found = worktree_changes(".")
    assert told(found) == [("A", b"intended"), ("D", b"gone"), ("M", b"untracked")]
    (change,) = (change for change in found if change.path == b"untracked")
    assert (change.old_mode, change.new_mode, change.new_blob.strip("0")) == ("100644", "100755", "")


def test_no_program_that_the_repository_names_is_run(history: History) -> None:
    history.commit("base", a="a\n")
    history.write("run", "#!/bin/sh\ntouch ran\n")
    os.chmod("run", 0o755)
    history.git("config", "core.fsmonitor", os.path.abspath("run"))
    worktree_changes(".")
    assert not os.path.exists("ran")


def test_what_is_no_file_is_nothing_new_and_has_no_bytes(history: History) -> None:
    history.commit("base", a="a\n", b="b\n")
    os.mkfifo("pipe")
    os.makedirs("empty/folders")
    os.unlink("a")
    os.mkfifo("a")
    (change,) = worktree_changes(".")
    assert (change.status, change.path, WorkingTree(".", Blobs()).after(change)) == ("M", b"a", None)


def change_of(changes: tuple[PathChange, ...], path: bytes) -> PathChange:
    (found,) = (change for change in changes if change.path == path)
    return found


def test_both_sides_of_a_change_are_read(history: History) -> None:
    base = history.commit("base", a="old\n", gone="gone\n", big="x" * 300_000)
    history.write("a", b"new\0\xff\n")
    history.write("big", "y" * 300_000)
    os.unlink("gone")
    os.symlink("../out", "link")
    history.git("add", "-A")
    history.git("update-index", "--add", "--cacheinfo", f"160000,{base},sub")
    staged = staged_changes()
    sides = {change.path: (staged.content.before(change), staged.content.after(change)) for change in staged.changes}
    assert sides == {
        b"a": (b"old\n", b"new\0\xff\n"),
        b"big": (b"x" * 300_000, b"y" * 300_000),
        b"gone": (b"gone\n", None),
        b"link": (None, b"../out"),
        b"sub": (None, None),
    }


def test_a_blob_that_is_not_here_is_an_error_and_not_an_absent_file(history: History) -> None:
    history.commit("base", a="a\n")
    blobs = Blobs()
    missing = PathChange("M", b"a", "100644", "100644", "1" * 40, history.git("rev-parse", "HEAD:a"))
    with pytest.raises(GitFailed, match=f"'a' is not in this clone; `git cat-file -e {'1' * 40}` fetches it"):
        blobs.before(missing)
    assert blobs.after(missing) == b"a\n", "the next question is answered"
    blobs.close()
    assert blobs.after(missing) == b"a\n", "a closed reader starts anew"
    blobs.close()


def test_a_working_trees_new_side_is_what_lies_there(history: History) -> None:
    history.write(".gitattributes", "*.txt text eol=crlf\n")
    history.commit("base", a_txt="", b="old\n")
    history.write("b", "new\r\n")
    os.symlink("target", "link")
    history.write("dir/file", "inner\n")
    changes = worktree_changes(".")
    content = WorkingTree(".", Blobs())
    assert content.before(change_of(changes, b"b")) == b"old\n"
    assert content.after(change_of(changes, b"b")) == b"new\r\n"
    assert content.after(change_of(changes, b"link")) == b"target"
    assert content.after(change_of(changes, b"dir/file")) == b"inner\n"


def test_nothing_is_read_through_a_symlink_or_from_what_is_no_file(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "real").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (top / "real" / "file").write_bytes(b"x" * (3 << 20))
    (top / "linked").symlink_to(tmp_path)
    (top / "inner").symlink_to("real")
    os.mkfifo(top / "pipe")
    assert read_beneath(os.fspath(top), b"real/file") == b"x" * (3 << 20)
    assert read_beneath(os.fspath(top), b"inner") == b"real"
    for path in (
        b"linked/secret",
        b"inner/file",
        b"pipe",
        b"real",
        b"none",
        b"real/none",
        b"real/file/none",
        b"pipe/x",
    ):
        assert read_beneath(os.fspath(top), path) is None, path


def test_a_given_content_tells_what_it_was_given() -> None:
    change = PathChange("M", b"a", "100644", "100644", "1" * 40, "2" * 40)
    content = Given({b"a": b"old"}, {b"a": b"new"})
    assert (content.before(change), content.after(change)) == (b"old", b"new")
    assert Given().before(change) is None
