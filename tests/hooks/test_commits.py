"""A range of commits read by one git process equals what git says of each commit alone."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from hooks.git import GitFailed
from hooks.path_change import PathChange
from hooks.range.commits import Commit, read_commits
from tests.hooks.history import ENV, History


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


def names(commit: Commit) -> list[bytes]:
    return sorted(change.path for change in commit.changes)


def alone(history: History, commit: str) -> set[PathChange]:
    """What git says of the commit against each of its parents, and of those what is in all of them, by its first parent."""
    parents = history.git("rev-list", "--parents", "-n1", commit).split()[1:]
    tree = history.git("hash-object", "-t", "tree", "/dev/null")
    sides = []
    for parent in parents or [tree]:
        out = history.try_git("diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", parent, commit).stdout
        tokens = out.split(b"\0")[:-1]
        rows = {}
        for meta, path in zip(tokens[::2], tokens[1::2], strict=True):
            old_mode, new_mode, old_blob, new_blob, status = meta[1:].decode().split(" ")
            rows[path] = PathChange(status, path, old_mode, new_mode, old_blob, new_blob)
        sides.append(rows)
    shared = set.intersection(*(set(rows) for rows in sides))
    return {sides[0][path] for path in shared}


def test_one_commit_has_its_message_parents_and_changes(history: History) -> None:
    first = history.commit("base", src__a="a\n")
    second = history.commit("subject line", "Shapeup-Order: cart/core-r1-a1", src__a="b\n", src__b="b\n")
    newest, oldest = read_commits((second,))
    assert (newest.id, newest.parents, newest.subject) == (second, (first,), "subject line")
    assert newest.message.endswith(b"Shapeup-Order: cart/core-r1-a1\n")
    assert [(change.status, change.path) for change in newest.changes] == [("M", b"src/a"), ("A", b"src/b")]
    assert oldest.parents == ()
    assert newest.committer_s == int(history.git("log", "-1", "--format=%ct"))


def test_a_root_commit_adds_all_it_holds_whatever_log_showroot_says(history: History) -> None:
    history.git("config", "log.showRoot", "false")
    history.commit("base", src__a="a\n", b="b\n")
    (commit,) = read_commits(("HEAD",))
    assert names(commit) == [b"b", b"src/a"]


def test_an_empty_commit_and_one_without_a_message_change_nothing(history: History) -> None:
    history.commit("base", a="a\n")
    history.git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    commit, _ = read_commits(("HEAD",))
    assert (commit.message.strip(), commit.changes, commit.subject) == (b"", (), "")


def test_of_a_merge_only_what_differs_from_every_parent_is_read(history: History) -> None:
    history.commit("base", a="a\n", b="b\n", both="1\n2\n3\n4\n5\n")
    history.git("checkout", "-q", "-b", "side")
    history.commit("side", a="side\n", both="side\n2\n3\n4\n5\n", brought="x\n")
    history.git("checkout", "-q", "main")
    history.commit("main", b="main\n", both="1\n2\n3\n4\nmain\n")
    history.git("merge", "-q", "--no-commit", "--no-ff", "side")
    history.write("evil", "evil\n")
    merge = history.commit("merge")
    (commit,) = read_commits((merge,), but=(f"{merge}^1", f"{merge}^2")) or [None]
    assert commit is not None
    assert names(commit) == [b"both", b"evil"]
    assert set(commit.changes) == alone(history, merge)
    side = history.git("rev-parse", "side:both")
    assert dict(zip(names(commit), commit.others, strict=True))[b"both"] == (("100644", side),)


def test_an_octopus_is_read_like_a_merge(history: History) -> None:
    history.commit("base", a="a\n")
    for name in ("one", "two", "three"):
        history.git("checkout", "-q", "-b", name, "main")
        history.commit(name, **{name: "x\n"})
    history.git("checkout", "-q", "main")
    history.git("merge", "-q", "--no-ff", "-m", "octopus", "one", "two", "three")
    clean = read_commits(("HEAD",))[0]
    assert (len(clean.parents), clean.changes) == (4, ())
    history.write("evil", "x\n")
    history.git("add", "-A")
    history.git("commit", "-q", "--amend", "--no-edit")
    evil = read_commits(("HEAD",))[0]
    assert (names(evil), len(evil.parents), evil.others) == ([b"evil"], 4, ((("000000", "0" * 40),) * 3,))


def test_a_merge_that_takes_one_side_whole_changes_nothing(history: History) -> None:
    history.commit("base", a="a\n")
    history.git("checkout", "-q", "-b", "side")
    history.commit("side", a="side\n", c="c\n")
    history.git("checkout", "-q", "main")
    history.commit("main", a="main\n")
    history.git("merge", "-q", "-s", "ours", "-m", "ours", "side")
    assert read_commits(("HEAD",))[0].changes == ()


def test_modes_links_submodules_and_renames_are_told_as_git_stores_them(history: History) -> None:
    history.commit("base", a="a\n", moved="some text that is long enough\n", link="x\n")
    history.git("config", "diff.ignoreSubmodules", "all")
    history.git("config", "diff.renames", "copies")
    os.chmod(history.root / "a", 0o755)
    os.rename(history.root / "moved", history.root / "new")
    os.unlink(history.root / "link")
    os.symlink("/etc/passwd", history.root / "link")
    history.git("add", "-A")
    history.git("update-index", "--add", "--cacheinfo", f"160000,{history.head},sub")
    history.git("commit", "-qm", "x")
    commit = read_commits(("HEAD",))[0]
    told = {(change.status, change.path, change.old_mode, change.new_mode) for change in commit.changes}
    assert told == {
        ("M", b"a", "100644", "100755"),
        ("D", b"moved", "100644", "000000"),
        ("A", b"new", "000000", "100644"),
        ("T", b"link", "100644", "120000"),
        ("A", b"sub", "000000", "160000"),
    }


def test_names_and_messages_that_look_like_the_format_stay_what_they_are(history: History) -> None:
    odd = [b":100644 100644 a b M", b"\x01abc", b"line\nbreak", b'q"uote', b"\xff\xfe", b"::", b" M"]
    for name in odd:
        history.write(name)
    message = "\x01" + "0" * 40 + "\n\n:100644 100644 0 0 M\n\x02::\nM"
    history.git("add", "-A")
    history.git("commit", "-q", "--cleanup=verbatim", "-F", "-", stdin=message.encode())
    (commit,) = read_commits(("HEAD",))
    assert names(commit) == sorted(odd)
    assert commit.message == message.encode() + b"\n" or commit.message == message.encode()


def test_settings_that_would_bend_or_hide_paths_do_not(history: History) -> None:
    history.commit("base", src__a="a\n", b="b\n")
    plain = read_commits(("HEAD",))
    for key, value in (
        ("diff.relative", "true"),
        ("diff.orderFile", "/nowhere"),
        ("core.quotePath", "true"),
        ("core.abbrev", "5"),
        ("log.showSignature", "true"),
        ("log.follow", "true"),
        ("log.diffMerges", "off"),
        ("color.ui", "always"),
        ("format.pretty", "oneline"),
        ("log.date", "relative"),
        ("diff.noprefix", "true"),
        ("i18n.logOutputEncoding", "utf-16"),
    ):
        history.git("config", key, value)
    os.chdir(history.root / "src")
    assert read_commits(("HEAD",)) == plain


def test_a_replaced_commit_is_read_as_it_is_pushed(history: History) -> None:
    base = history.commit("base", a="a\n")
    bad = history.commit("bad", docs__x="x\n")
    innocent = history.git("commit-tree", "-m", "innocent", "-p", base, f"{base}^{{tree}}")
    history.git("replace", bad, innocent)
    assert names(read_commits((bad,))[0]) == [b"docs/x"]
    (history.root / ".git" / "info" / "grafts").write_text(f"{bad}\n")
    assert read_commits((bad,))[0].parents == (base,)


def test_what_is_excluded_is_not_read(history: History) -> None:
    base = history.commit("base", a="a\n")
    history.git("update-ref", "refs/remotes/origin/main", base)
    new = history.commit("new", b="b\n")
    assert [commit.id for commit in read_commits((new,), without=("--remotes",))] == [new]
    assert read_commits((new,), without=("--all",)) == ()
    assert [commit.id for commit in read_commits((new,), but=(base,))] == [new]
    assert [commit.id for commit in read_commits((new, base), but=(base,))] == [new]


def test_no_tip_reads_nothing_and_a_missing_one_is_an_error(history: History) -> None:
    history.commit("base", a="a\n")
    assert read_commits(()) == ()
    with pytest.raises(GitFailed):
        read_commits(("1" * 40,))


def test_tags_lead_to_their_commits_and_a_tag_of_a_file_to_none(history: History) -> None:
    base = history.commit("base", a="a\n")
    history.git("tag", "-a", "-m", "one", "one", base)
    history.git("tag", "-a", "-m", "two", "two", "one")
    history.git("tag", "-a", "-m", "file", "file", "HEAD:a")
    history.git("tag", "-a", "-m", "tree", "tree", "HEAD^{tree}")
    assert [commit.id for commit in read_commits((history.git("rev-parse", "two"),))] == [base]
    for name in ("file", "tree"):
        assert read_commits((history.git("rev-parse", name),)) == ()


def test_a_range_equals_what_git_says_of_each_commit(history: History) -> None:
    """Random histories with merges, deletions and mode changes."""
    dice = random.Random(20260301)
    history.commit("base", **{f"f{n}": f"{n}\n" for n in range(4)})
    for step in range(int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "24")) // 4 + 4):
        branches = history.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
        if dice.random() < 0.3:
            history.git("checkout", "-q", "-b", f"b{step}", dice.choice(branches))
        elif dice.random() < 0.4 and len(branches) > 1:
            history.try_git("merge", "-q", "--no-commit", "--no-ff", "-X", "ours", dice.choice(branches))
        for _ in range(dice.randrange(3)):
            path = f"d{dice.randrange(2)}/f{dice.randrange(4)}"
            if dice.random() < 0.2 and (history.root / path).exists():
                os.unlink(history.root / path)
            else:
                history.write(path, f"{dice.random()}\n")
        history.commit(f"step {step}")
    commits = read_commits(tuple(history.git("for-each-ref", "--format=%(objectname)", "refs/heads").split()))
    assert len(commits) == int(history.git("rev-list", "--count", "--branches"))
    for commit in commits:
        assert set(commit.changes) == alone(history, commit.id), commit
