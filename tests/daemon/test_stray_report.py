"""What git says of a working tree, which of it is stray, and how it is taken back: on a real repository, with a policy made by hand."""

import os
import subprocess
from pathlib import Path

import pytest

from daemon.place import Place
from daemon.stray.report import judge_strays, rest_fields, stray_fields
from daemon.stray.worktree_status import (
    by_git,
    dirty_paths,
    find_checkouts,
    is_locked,
    is_mid_operation,
    left_behind,
    list_stamp,
    made_ns,
    mark_of,
    view_of,
    visited,
    written_ns,
)
from parsers.policy_file import Contract, Policy
from tests.hooks.gated import Gated

CART = Contract("cart/a-r1-a1", "execute", allowed=("src/cart/**",), frozen=("docs/frozen/**",))
NOTHING_SLIPPED_PAST = 1_767_225_601  # orders are live since a second after the first commit
POLICY = Policy("digest", contracts=(CART,))


@pytest.fixture
def gated(tmp_path):
    return Gated(tmp_path / "repo", hooks=())


def checkouts(gated):
    return find_checkouts(Place(gated.root, gated.root / ".git"))


def judged(gated, policy=POLICY, since_s=NOTHING_SLIPPED_PAST, **more):
    (checkout,) = [each for each in checkouts(gated) if not each.is_linked]
    strays = judge_strays(checkout, dirty_paths(checkout), policy, since_s=since_s, **more)
    return {os.fsdecode(stray.path): stray for stray in strays}


def letters(gated, *named):
    found = dirty_paths(checkouts(gated)[0], tuple(map(os.fsencode, named)))
    return {os.fsdecode(path): (dirty.letters, dirty.change.status) for path, dirty in found.items()}


def take_back(stray):
    """As somebody runs it who stands somewhere else."""
    done = subprocess.run(["sh", "-c", stray.undo], cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), stray.undo


def status(gated):
    return gated.git("status", "--porcelain", "--untracked-files=all")


# --- what is dirty ----------------------------------------------------------------------------------------------------


def test_each_kind_of_change_has_its_letters_and_ignored_and_local_paths_have_none(gated):
    gated.write("src/cart/a", "changed\n")
    gated.write("docs/a", "staged\n")
    gated.git("add", "docs/a")
    (gated.root / "src/tax/a").unlink()
    gated.write("new", "x")
    gated.write("added", "x")
    gated.git("add", "added")
    gated.write(".shapeup/cart/x", "local")
    assert letters(gated) == {
        "src/cart/a": (".M", "M"),
        "docs/a": ("M.", "M"),
        "src/tax/a": (".D", "D"),
        "new": ("??", "A"),
        "added": ("A.", "A"),
    }
    assert set(letters(gated, "docs", "new")) == {"docs/a", "new"}


def test_a_path_taken_out_of_the_index_that_still_lies_there_is_one_change(gated):
    gated.git("rm", "-q", "--cached", "docs/a")
    gated.write("docs/a", "other\n")
    assert letters(gated) == {"docs/a": ("D.", "M")}


def test_names_that_mean_something_to_git_mean_themselves(gated):
    odd = (":(top)x", "a*b", "-n", " lead", "new\nline", "é")
    for name in odd:
        gated.write(name, "x")
    gated.write("ab", "x")
    assert set(letters(gated, *odd)) == set(odd)


def test_a_linked_worktree_inside_is_no_change_and_a_strangers_repository_is(gated):
    gated.git("worktree", "add", "-q", "--detach", "trees/ours")
    subprocess.run(["git", "init", "-q", os.fspath(gated.root / "trees/theirs")], check=True)
    gated.write("trees/theirs/x", "x")
    assert letters(gated) == {"trees/theirs": ("??", "A")}


def test_the_list_of_worktrees_is_stamped_anew_for_each_that_comes_goes_or_moves(gated, tmp_path):
    place, stamps = Place(gated.root, gated.root / ".git"), []
    for words in (("add", "-q", "--detach", tmp_path / "one"), ("move", tmp_path / "one", tmp_path / "two")):
        stamps.append(list_stamp(place))
        gated.git("worktree", *map(os.fspath, words))
    stamps.append(list_stamp(place))
    (tmp_path / "two").rename(tmp_path / "away")
    stamps.append(list_stamp(place))
    assert len(checkouts(gated)) == 1
    (tmp_path / "away").rename(tmp_path / "two")
    assert list_stamp(place) == stamps[2]
    main, linked = checkouts(gated)
    assert (main.is_linked, linked.is_linked, linked.top) == (False, True, os.path.realpath(tmp_path / "two"))
    assert (made_ns(main), made_ns(linked) > 0) == (0, True)
    gated.git("worktree", "remove", os.fspath(tmp_path / "two"))
    stamps.append(list_stamp(place))
    assert len(set(stamps)) == 5 - 1  # none at the start, none at the end
    assert stamps[0] == stamps[-1]


def test_outside_git_there_is_no_worktree(tmp_path):
    assert find_checkouts(Place(tmp_path, None)) == ()
    assert list_stamp(Place(tmp_path, None)) == ()


def test_a_bare_repository_has_only_its_linked_worktrees(gated, tmp_path):
    bare, tree = tmp_path / "bare.git", tmp_path / "tree"
    subprocess.run(["git", "clone", "-q", "--bare", os.fspath(gated.root), os.fspath(bare)], check=True)
    subprocess.run(["git", "-C", os.fspath(bare), "worktree", "add", "-q", "--detach", os.fspath(tree)], check=True)
    assert [each.top for each in find_checkouts(Place(tree, bare))] == [os.path.realpath(tree)]


# --- whose doing it is ------------------------------------------------------------------------------------------------


def test_a_mark_tells_every_state_of_a_path_from_the_others(gated, tmp_path):
    top, path = os.fspath(gated.root), b"docs/a"
    marks = [mark_of(top, path)]
    gated.write("docs/a", "b\n")
    marks.append(mark_of(top, path))
    os.utime(gated.root / "docs/a", ns=(1, 1))
    marks.append(mark_of(top, path))
    (gated.root / "docs/a").unlink()
    marks.append(mark_of(top, path))
    (gated.root / "docs/a").symlink_to("b")
    marks.append(mark_of(top, path))
    assert len(set(marks)) == len(marks)
    folder = mark_of(top, b"docs")
    gated.write("docs/more", "x")
    assert mark_of(top, b"docs") == folder


def test_a_file_is_as_new_as_the_newest_folder_on_its_way(gated):
    top = os.fspath(gated.root)
    before = written_ns(top, b"docs/a")
    (gated.root / "docs").chmod(0o700)
    assert written_ns(top, b"docs/a") == (gated.root / "docs").stat().st_ctime_ns >= before
    assert written_ns(top, b"docs/gone/deep") == (gated.root / "docs").stat().st_ctime_ns


def test_the_view_moves_with_the_index_and_with_head_and_with_nothing_else(gated):
    (checkout,) = checkouts(gated)
    view = view_of(checkout)
    gated.write("docs/a", "b\n")
    gated.write("new", "x")
    assert view_of(checkout) == view
    gated.git("add", "docs/a")
    staged = view_of(checkout)
    gated.git("commit", "-qm", "more")
    committed = view_of(checkout)
    gated.git("branch", "-q", "other")
    assert view_of(checkout) == committed
    gated.git("checkout", "-q", "--detach")
    gated.git("pack-refs", "--all")
    assert len({view, staged, committed, view_of(checkout)}) == 4


def test_what_a_reset_leaves_behind_was_written_by_git(gated):
    (checkout,) = checkouts(gated)
    gated.write("docs/a", "second\n")
    gated.write("docs/b", "second\n")
    gated.git("add", "-A")
    gated.git("commit", "-qm", "second")
    view = view_of(checkout)
    gated.git("reset", "-q", "HEAD~1")
    gated.write("docs/c", "a person's\n")
    commits = visited(checkout, view)
    assert len(commits) == 2
    paths = (b"docs/a", b"docs/b", b"docs/c")
    assert left_behind(checkout, paths, commits) == {b"docs/a", b"docs/b"}
    gated.write("docs/a", "written since\n")
    assert left_behind(checkout, paths, commits) == {b"docs/b"}
    assert left_behind(checkout, paths, visited(checkout, view_of(checkout))) == frozenset()


def test_git_is_at_work_while_the_index_is_locked(gated):
    (checkout,) = checkouts(gated)
    assert not is_locked(checkout)
    (gated.root / ".git/index.lock").touch()
    assert is_locked(checkout)


def test_only_in_the_middle_of_an_operation_is_what_is_staged_or_in_conflict_gits(gated):
    (checkout,) = checkouts(gated)
    assert not is_mid_operation(checkout)
    gated.git("checkout", "-qb", "theirs")
    gated.write("docs/a", "theirs\n")
    gated.write("docs/b", "theirs\n")
    gated.git("add", "-A")
    gated.git("commit", "-qm", "theirs")
    gated.git("checkout", "-q", "main")
    gated.write("docs/a", "ours\n")
    gated.git("commit", "-qam", "ours")
    gated.try_git("merge", "-q", "theirs")
    gated.write("src/tax/a", "a person's\n")
    assert is_mid_operation(checkout)
    found = letters(gated)
    assert {path: by_git(each[0], is_mid_operation=True) for path, each in found.items()} == {
        "docs/a": True,
        "docs/b": True,
        "src/tax/a": False,
    }
    assert not any(by_git(each[0], is_mid_operation=False) for each in found.values())


# --- what is stray, and the way back ----------------------------------------------------------------------------------


def test_only_what_lies_outside_every_live_substrate_is_stray(gated):
    gated.write("src/cart/a", "allowed\n")
    gated.write("src/cart/new", "allowed\n")
    gated.write("src/tax/a", "stray\n")
    gated.write("docs/frozen/x", "stray\n")
    gated.write("notes/x", "a person's\n")
    gated.write("mine/x", "allowed by the user's own settings\n")
    found = judged(gated, POLICY._replace(human_globs=("notes/**",)), allow_paths=("mine/**",))
    assert {path: (stray.rule, stray.order_id) for path, stray in found.items()} == {
        "src/tax/a": ("OUTSIDE", None),
        "docs/frozen/x": ("FROZEN", "cart/a-r1-a1"),
    }


def test_a_superseded_order_permits_nothing_and_another_live_one_permits_its_own(gated):
    gated.write("src/cart/a", "x\n")
    gated.write("src/tax/a", "x\n")
    tax = Contract("tax/a-r1-a1", "execute", allowed=("src/tax/**",))
    assert judged(gated, POLICY._replace(contracts=(CART, tax))) == {}
    assert set(judged(gated, POLICY._replace(contracts=(CART._replace(superseded=True), tax)))) == {"src/cart/a"}


def test_without_a_live_order_no_write_is_stray_though_a_commit_would_be_refused(gated):
    gated.write("src/tax/a", "x\n")
    assert judged(gated, Policy("digest", has_open_run=True, no_live_order="deny")) == {}


WAYS = {
    "changed": lambda root, git: (root / "docs/a").write_text("x"),
    "changed and staged": lambda root, git: ((root / "docs/a").write_text("x"), git("add", "docs/a")),
    "changed, staged, changed": lambda root, git: (
        (root / "docs/a").write_text("x"),
        git("add", "docs/a"),
        (root / "docs/a").write_text("y"),
    ),
    "removed": lambda root, git: (root / "docs/a").unlink(),
    "removed, staged": lambda root, git: git("rm", "-q", "docs/a"),
    "out of the index": lambda root, git: git("rm", "-q", "--cached", "docs/a"),
    "moved": lambda root, git: git("mv", "docs/a", "docs/b"),
    "made executable": lambda root, git: (root / "docs/a").chmod(0o755),
    "a link in its place": lambda root, git: ((root / "docs/a").unlink(), (root / "docs/a").symlink_to("/etc/passwd")),
    "a folder in its place": lambda root, git: (
        (root / "docs/a").unlink(),
        (root / "docs/a").mkdir(),
        (root / "docs/a/x").touch(),
    ),
    "new": lambda root, git: (root / "docs/b").touch(),
    "new, staged": lambda root, git: ((root / "docs/b").touch(), git("add", "docs/b")),
    "new, staged, changed": lambda root, git: (
        (root / "docs/b").touch(),
        git("add", "docs/b"),
        (root / "docs/b").write_text("x"),
    ),
    "meant to be added": lambda root, git: ((root / "docs/b").touch(), git("add", "-N", "docs/b")),
    "a repository": lambda root, git: (git("init", "-q", "docs/inner"), (root / "docs/inner/x").touch()),
    "an odd name": lambda root, git: (root / "docs/-rf 'it''s' $HOME\n*?[a]:(top)é").touch(),
    "a line end at the end": lambda root, git: (root / "docs/b\n").touch(),
    "a line end at the end, tracked": lambda root, git: ((root / "docs/*\n").touch(), git("add", ".")),
    "no text": lambda root, git: Path(os.fsdecode(os.fsencode(root) + b"/docs/\xff\xfe")).touch(),
    "pathspec magic, tracked": lambda root, git: (
        (root / ":!docs").touch(),
        git("add", "--", "./:!docs"),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_undo_of_each_stray_leaves_git_status_clean(gated, way):
    WAYS[way](gated.root, gated.git)
    assert judged(gated)
    for _ in range(4):
        for stray in list(judged(gated).values())[:1]:  # one may take back another too
            take_back(stray)
    assert status(gated) == ""


def test_a_write_that_returns_to_what_slipped_past_is_no_stray(gated):
    gated.write("docs/a", "slipped past\n")
    gated.git("commit", "-qam", "slipped past", "--no-verify")
    gated.write("docs/a", "a\n")
    assert judged(gated, since_s=0) == {}
    gated.write("docs/a", "something else\n")
    assert set(judged(gated, since_s=0)) == {"docs/a"}


def test_the_event_names_path_orders_worktree_and_the_way_back(gated, tmp_path):
    tree = tmp_path / "a tree"
    gated.git("worktree", "add", "-q", "--detach", os.fspath(tree))
    (tree / "docs/a").write_text("x")
    (tree / "new\n").touch()
    main, linked = checkouts(gated)
    strays = judge_strays(linked, dirty_paths(linked), POLICY, since_s=NOTHING_SLIPPED_PAST)
    fields = {each["subject"]: each for each in (stray_fields(stray, POLICY, linked) for stray in strays)}
    assert set(fields) == {"docs/a", '"new\\n"'}
    assert fields["docs/a"]["worktree"] == linked.top
    assert fields["docs/a"]["live_orders"] == ["cart/a-r1-a1"]
    assert stray_fields(strays[0], POLICY, main)["worktree"] is None
    for stray in strays:
        take_back(stray)
    assert dirty_paths(linked) == {}
    rest = rest_fields(strays, POLICY, linked)
    assert (rest["path_count"], rest["subject"], rest["paths"]) == (2, linked.top, ["docs/a", '"new\\n"'])
