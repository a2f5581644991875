"""Bringing an outside path back to what it was before it slipped in is told from every other change."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from hooks.changes import staged_changes, worktree_changes
from hooks.returns import NAMED, returns_of
from tests.hooks.history import ENV, History

START = 1_800_000_000
NOON = START + 1_000  # the live orders are compiled at noon


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    for key in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(key, ENV[key])


class Dated(History):
    """A history whose commits are made at a told second."""

    def at(self, second: int, message: str, **files: str | None) -> str:
        for name, text in files.items():
            path = self.root / name.replace("__", "/")
            if text is None:
                path.unlink()
            else:
                self.write(name.replace("__", "/"), text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, GIT_COMMITTER_DATE=f"@{second} +0000")
        return self.head

    def returning(self, since: int | None = NOON, accepted: Collection[str] = ()) -> list[bytes]:
        """The staged paths that are returns."""
        self.git("add", "-A")
        return self.returning_staged(since, accepted)

    def returning_staged(self, since: int | None = NOON, accepted: Collection[str] = ()) -> list[bytes]:
        staged = staged_changes()
        is_return = returns_of(next(iter(staged.parents), None), staged.changes, since=since, accepted=accepted)
        return sorted(change.path for change in staged.changes if is_return(change))


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dated:
    made = Dated(tmp_path / "repo")
    monkeypatch.chdir(made.root)
    made.at(START, "base", docs__old="1\n", docs__other="1\n", src__a="1\n")
    return made


def test_deleting_a_file_that_slipped_in_is_a_return(history: Dated) -> None:
    history.at(NOON, "slip", docs__new="x\n")
    os.unlink("docs/new")
    assert history.returning() == [b"docs/new"]


def test_reverting_an_edit_or_a_deletion_is_a_return(history: Dated) -> None:
    history.at(NOON + 1, "slip", docs__old="2\n", docs__other=None)
    history.write("docs/old", "1\n")
    history.write("docs/other", "1\n")
    assert history.returning() == [b"docs/old", b"docs/other"]


def test_anything_but_the_state_of_before_is_none(history: Dated) -> None:
    history.at(NOON + 1, "slip", docs__old="2\n", docs__new="x\n")
    history.write("docs/old", "3\n")
    history.write("docs/new", "y\n")
    os.unlink("docs/other")
    assert history.returning() == []
    history.write("docs/old", "1\n")
    os.chmod("docs/old", 0o755)
    assert history.returning() == [], "the mode belongs to the state"


def test_what_slipped_in_by_several_commits_can_go_at_once(history: Dated) -> None:
    history.at(NOON + 1, "slip", docs__new="x\n", docs__old="2\n")
    history.at(NOON + 2, "slip", docs__new="y\n")
    history.at(NOON + 3, "slip", docs__old="3\n", docs__new="z\n")
    history.at(NOON + 4, "mine", src__a="2\n")
    os.unlink("docs/new")
    history.write("docs/old", "1\n")
    assert history.returning() == [b"docs/new", b"docs/old"]


def test_undoing_what_was_committed_before_the_orders_is_no_return(history: Dated) -> None:
    history.at(NOON - 1, "a person's work", docs__old="2\n", docs__new="x\n")
    history.write("docs/old", "1\n")
    os.unlink("docs/new")
    assert history.returning() == []
    assert history.returning(since=None) == [b"docs/new", b"docs/old"]
    history.at(NOON + 1, "slip", docs__other="2\n")
    assert history.returning() == []


def test_going_past_a_slip_to_what_was_older_than_the_orders_is_no_return(history: Dated) -> None:
    history.at(NOON - 1, "a person's work", docs__old="2\n")
    history.at(NOON + 1, "slip", docs__old="3\n")
    history.write("docs/old", "1\n")
    assert history.returning() == []
    history.write("docs/old", "2\n")
    assert history.returning() == [b"docs/old"]


def test_nothing_slips_in_by_a_commit_that_a_wall_accepted(history: Dated) -> None:
    """One order's worker cannot take back what another's was let to write."""
    good = history.at(NOON + 1, "accepted", docs__old="2\n")
    history.write("docs/old", "1\n")
    assert history.returning(accepted={good}) == []
    bad = history.at(NOON + 2, "slip", docs__old="3\n")
    history.write("docs/old", "1\n")
    assert history.returning(accepted={good}) == []
    history.write("docs/old", "2\n")
    assert history.returning(accepted={good}) == [b"docs/old"]
    assert history.returning(accepted={good, bad}) == []


def test_amending_it_away_is_a_return(history: Dated) -> None:
    history.at(NOON + 1, "mine and a slip", src__a="2\n", docs__new="x\n", docs__old="2\n")
    history.git("reset", "-q", "HEAD^", "--", "docs")
    assert history.returning_staged() == [b"docs/new", b"docs/old"]


def test_amending_it_out_of_the_first_commit_of_all_is_a_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = Dated(tmp_path / "fresh")
    monkeypatch.chdir(history.root)
    assert history.returning() == []
    history.write("docs/x")
    assert history.returning() == [], "without a commit nothing has slipped in"
    history.at(NOON + 1, "root", src__a="1\n")
    history.git("rm", "-q", "--cached", "docs/x")
    assert history.returning_staged() == [b"docs/x"]


def test_what_a_merge_brought_can_be_taken_back_and_its_history_is_not_followed_further(history: Dated) -> None:
    history.git("checkout", "-q", "-b", "side")
    history.at(NOON + 1, "side", docs__new="1\n")
    history.at(NOON + 2, "side", docs__new="2\n")
    history.git("checkout", "-q", "main")
    history.at(NOON + 3, "main", src__a="2\n")
    history.git("merge", "-q", "--no-ff", "-m", "x", "side", GIT_COMMITTER_DATE=f"@{NOON + 4} +0000")
    history.write("docs/new", "1\n")
    assert history.returning() == [], "the first parent never had it so"
    os.unlink("docs/new")
    assert history.returning() == [b"docs/new"]
    for value in ("off", "combined", "remerge", "first-parent"):
        history.git("config", "log.diffMerges", value)
        assert history.returning() == [b"docs/new"]


def test_settings_that_bend_a_log_do_not(history: Dated) -> None:
    history.at(NOON + 1, "slip", docs__old="2\n")
    history.write("docs/old", "1\n")
    for key, value in (
        ("log.follow", "true"),
        ("log.showRoot", "false"),
        ("log.showSignature", "true"),
        ("diff.relative", "true"),
        ("diff.renames", "copies"),
        ("color.ui", "always"),
        ("core.abbrev", "5"),
        ("log.date", "relative"),
        ("format.pretty", "oneline"),
    ):
        history.git("config", key, value)
    assert history.returning() == [b"docs/old"]
    os.environ["GIT_LITERAL_PATHSPECS"] = "1"
    try:
        os.chdir("src")
        assert history.returning_staged() == [b"docs/old"]
    finally:
        del os.environ["GIT_LITERAL_PATHSPECS"]


def test_a_replaced_or_grafted_history_returns_nothing_that_was_not(history: Dated) -> None:
    first = history.head
    head = history.at(NOON + 1, "mine", src__a="2\n")
    os.unlink("docs/old")
    (history.root / ".git" / "info" / "grafts").write_text(f"{head}\n")
    assert history.returning() == []
    (history.root / ".git" / "info" / "grafts").unlink()
    tree = history.git("hash-object", "-w", "-t", "tree", "/dev/null")
    history.git("replace", first, history.git("commit-tree", "-m", "x", tree))
    assert history.returning() == []


def test_in_a_shallow_clone_the_oldest_commit_brought_nothing(history: Dated, tmp_path: Path) -> None:
    """It seems to add every file, so that deleting any of them would be a return."""
    history.at(NOON + 1, "mine", src__a="2\n")
    source = f"file://{history.root}"
    subprocess.run(["git", "clone", "-q", "--depth=1", source, tmp_path / "shallow"], env=ENV, check=True)
    clone = Dated(tmp_path / "shallow")
    os.chdir(clone.root)
    os.unlink("docs/old")
    assert clone.returning() == []
    clone.at(NOON + 2, "slip", docs__new="x\n")
    os.unlink("docs/new")
    assert clone.returning() == [b"docs/new"]


@pytest.mark.parametrize(
    "name", [b"docs/\xff\xfe", b'docs/a\nb"c', b"docs/:(top)x", b"docs/*", b"docs/[ab]", b":(exclude)x", b"-x"]
)
def test_odd_names_are_taken_literally(history: Dated, name: bytes) -> None:
    history.write(name)
    history.write("docs/abc")
    history.at(NOON + 1, "slip")
    os.unlink(os.fsencode(history.root) + b"/" + name)
    assert history.returning() == [name]


def test_a_file_in_place_of_a_folder_and_back_is_told_by_each_path(history: Dated) -> None:
    os.rename("docs/old", "moved")
    os.unlink("docs/other")
    os.rmdir("docs")
    os.rename("moved", "docs")
    history.at(NOON + 1, "slip")
    os.unlink("docs")
    history.write("docs/old", "1\n")
    history.write("docs/other", "2\n")
    assert history.returning() == [b"docs", b"docs/old"]


@pytest.mark.parametrize("count", [NAMED - 1, NAMED + 50])
def test_many_paths_cost_one_git(history: Dated, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"docs__{number}": "x\n" for number in range(count)}
    history.at(NOON + 1, "slip", **files)
    history.at(NOON + 2, "mine", src__a="2\n")
    history.at(NOON + 3, "removed", **dict.fromkeys(files))
    history.git("reset", "-q", "--hard", "HEAD~1")
    for name in files:
        os.unlink(name.replace("__", "/"))
    os.unlink("docs/other")
    history.git("add", "-A")
    staged = staged_changes()
    is_return = returns_of(history.head, staged.changes, since=NOON)
    trace = tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE", os.fspath(trace))
    assert sum(map(is_return, staged.changes)) == count
    assert trace.read_text().count("built-in: git log") == 1
    assert trace.read_text().count("built-in") == 1


def test_nothing_is_asked_of_git_before_a_path_is(
    history: Dated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TRACE", os.fspath(tmp_path / "trace"))
    returns_of(history.head, ())
    assert not (tmp_path / "trace").exists()


def test_where_git_cannot_answer_nothing_is_a_return(history: Dated) -> None:
    history.at(NOON + 1, "slip", docs__new="x\n")
    os.unlink("docs/new")
    history.git("add", "-A")
    (change,) = staged_changes().changes
    assert not returns_of("1" * 40, (change,))(change)
    assert not returns_of(None, (change,))(change)


def test_what_lies_unhashed_in_a_working_tree_is_a_return_as_add_would_store_it(history: Dated) -> None:
    history.write(".gitattributes", "*.txt text eol=crlf\n")
    os.symlink("a", "src/link")
    history.at(NOON - 5, "base", docs__text="")
    history.write("docs/x.txt", "one\r\n")
    history.at(NOON - 4, "base")
    os.unlink("src/link")
    os.symlink("b", "src/link")
    history.write("docs/x.txt", "two\r\n")
    history.at(NOON + 1, "slip", docs__old="2\n", docs__new="x\n")
    os.unlink("src/link")
    os.symlink("a", "src/link")
    os.unlink("docs/new")
    history.write("docs/x.txt", "one\r\n")
    history.write("docs/old", "other\n")
    history.write("docs/fresh", "x\n")
    changes = worktree_changes(".")
    os.chdir("src")
    is_return = returns_of(history.head, changes, since=NOON, repo="..")
    assert [change.path for change in changes if is_return(change)] == [b"docs/new", b"docs/x.txt", b"src/link"]
