"""A kept tree holds the scope's files as they lie on disk and nothing of the user's moves. Source: protocol §6.5, W-51, W-52, W-68, ruling G1."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from daemon.trees.kept import find_kept, keep, restore
from daemon.trees.listing import IGNORED, NESTED, read_tree
from daemon.trees.site import Site, TreeFailed, find_site, lock_scope, ref_word
from tests.daemon.trees.repository import AT, ENV, SLUG, git, make, nobody, picture, put, scope, users

WAYS = ("pygit2", "git")


def only(site: Site, way: str) -> Site:
    """The same repository, to be written in this way: grafts are what pygit2 would misread."""
    if way == "git":
        (site.common / "info").mkdir(exist_ok=True)
        (site.common / "info" / "grafts").touch()
    return site


@pytest.fixture(params=WAYS)
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    return only(make(tmp_path / "repo"), request.param)


def fill(root: Path) -> None:
    put(root, "src/cart/new.py", "new\n")
    put(root, "src/cart/run.sh", "#!/bin/sh\r\n", mode=0o755)
    put(root, "src/cart/empty", "")
    put(root, os.fsdecode(b'src/cart/\xff"\\q\t'), "no utf-8")
    put(root, "src/cart/two\nlines", "a newline in its name")
    put(root, "src/cart/a/b", "sorts before a.py, as a folder after it")
    put(root, "src/cart/a-b", "-")
    put(root, "src/cart/huge", b"0123456789abcdef" * 600_000)
    os.symlink("nowhere/at all", root / "src/cart/link")


def test_both_ways_store_the_same_tree_and_the_same_commit(tmp_path: Path) -> None:
    trees = []
    for way in WAYS:
        site = only(make(tmp_path / way), way)
        fill(site.top)
        stored = keep(site, scope("cart", "src/cart/**", "src/cart/*"), 1, AT)
        kept = find_kept(site, SLUG, "cart")
        assert kept is not None
        trees.append((stored.commit, kept.commit, kept.tree, read_tree(site, kept.commit)))
        git(site.top, "fsck", "--full", "--strict")
    assert trees[0] == trees[1]
    assert len(trees[0][3]) == 10


@pytest.mark.parametrize("way", WAYS)
def test_a_kept_tree_comes_back_in_the_same_bytes(tmp_path: Path, way: str) -> None:
    site = only(make(tmp_path), way)
    fill(site.top)
    wanted = picture(site.top)
    own = scope("cart", "src/cart/**", "src/cart/*")
    keep(site, own, 1, AT)
    for path in wanted:
        if path.startswith("src/cart/"):
            (site.top / path).unlink()
    restored = restore(site, own, 2, AT, is_others=nobody)
    assert picture(site.top) == wanted
    assert restored.is_whole
    assert len(restored.written) == 10


def test_nothing_of_the_users_moves(site: Site) -> None:
    root = site.top
    put(root, "src/cart/a.py", "stashed\n")
    git(root, "stash")
    put(root, "src/cart/a.py", "staged\n")
    git(root, "add", "src/cart/a.py")
    put(root, "src/cart/a.py", "in the tree\n")
    put(root, "src/cart/planned.py", "")
    git(root, "add", "--intent-to-add", "src/cart/planned.py")
    before, files = users(root), picture(root)
    keep(site, scope("cart"), 1, AT)
    assert (users(root), picture(root)) == (before, files)
    put(root, "src/cart/a.py", "worse\n")
    restore(site, scope("cart"), 2, AT, is_others=nobody)
    assert (users(root), picture(root)) == (before, files)


def test_a_lock_on_the_users_index_hinders_nothing(site: Site) -> None:
    (site.git_dir / "index.lock").touch()
    assert keep(site, scope("cart"), 1, AT).files == 1


def test_hooks_and_filters_of_the_repository_do_not_run(site: Site) -> None:
    root = site.top
    put(root, ".gitattributes", "*.py filter=loud text eol=crlf ident working-tree-encoding=UTF-16\n")
    for name in ("clean", "smudge"):
        git(root, "config", f"filter.loud.{name}", f"touch {root}/ran; cat")
    git(root, "config", "core.autocrlf", "true")
    git(root, "config", "core.fsmonitor", f"touch {root}/ran")
    put(root, ".git/hooks/reference-transaction", f"#!/bin/sh\ntouch {root}/ran\nexit 1\n", mode=0o755)
    put(root, "src/cart/a.py", b"mixed\r\nends\n$Id$ \x00\xff")
    keep(site, scope("cart"), 1, AT)
    put(root, "src/cart/a.py", b"worse")
    restore(site, scope("cart"), 2, AT, is_others=nobody)
    assert (root / "src/cart/a.py").read_bytes() == b"mixed\r\nends\n$Id$ \x00\xff"
    assert not (root / "ran").exists()


def test_ignored_files_and_other_repositories_are_no_part_of_it_and_named(site: Site) -> None:
    root = site.top
    put(root, ".gitignore", "*.log\ncache/\n")
    put(root, "src/cart/x.log", "log")
    put(root, "src/cart/deep/cache/y", "cached")
    put(root, "src/cart/nested/inner.py", "another's")
    git(root / "src/cart/nested", "init", "-q")
    stored = keep(site, scope("cart"), 1, AT)
    assert dict(stored.left) == {
        "src/cart/x.log": IGNORED,
        "src/cart/deep/": IGNORED,
        "src/cart/nested": NESTED,
    }
    assert list(read_tree(site, stored.commit)) == ["src/cart/a.py"]


def test_a_tracked_file_is_never_ignored(site: Site) -> None:
    put(site.top, ".gitignore", "src/\n")
    assert list(read_tree(site, keep(site, scope("cart"), 1, AT).commit)) == ["src/cart/a.py"]


def test_globs_are_the_protocols_and_no_pathspecs(site: Site) -> None:
    for name in ("src/cart/b.py", "src/cart/deep/c.py", "src/[x]/d.py", "src/x/e.py"):
        put(site.top, name, name)
    stored = keep(site, scope("cart", "src/cart/*.py", "src/[x]/**", "nothing/**", ":(exclude)src/**"), 1, AT)
    assert list(read_tree(site, stored.commit)) == ["src/[x]/d.py", "src/cart/a.py", "src/cart/b.py"]


@pytest.mark.parametrize("glob", ["/etc/**", "../x/**", ".git/**", "", "src/../x", "./src/**", "a//b", "src#Heading"])
def test_a_glob_that_can_match_nothing_spoils_no_other(site: Site, glob: str) -> None:
    assert keep(site, scope("cart", glob), 1, AT).files == 0
    assert keep(site, scope("cart", glob, "src/cart/**"), 1, AT).files == 1


def test_no_glob_reaches_the_two_trees_or_the_settings(site: Site) -> None:
    for name in (".shapeup/checkout/orders/x.json", "shapeup/checkout/scopes/cart.md", ".shapeupd.toml", "other.py"):
        put(site.top, name, name)
    stored = keep(site, scope("all", "**"), 1, AT)
    assert set(read_tree(site, stored.commit)) == {"README.md", "other.py", "src/cart/a.py", "src/mail/m.py"}
    put(site.top, "shapeup/checkout/scopes/cart.md", "moved on")
    restored = restore(site, scope("all", "**"), 2, AT, is_others=nobody)
    assert (restored.written, restored.deleted) == ((), ())


def test_a_scope_whose_name_git_takes_for_no_ref_has_one(site: Site) -> None:
    names = ("a..b", "a...b", "end.", "x.lock", "x.lock.", "A_b-c.d", "kept", "undo")
    assert len({ref_word(name) for name in names}) == len(names)
    for name in names:
        ref = keep(site, scope(name, "src/cart/**"), 1, AT).ref
        git(site.top, "check-ref-format", ref)
        assert find_kept(site, SLUG, name) is not None


@pytest.mark.parametrize(("slug", "name"), [("../x", "cart"), ("checkout", "a/b"), ("checkout", ""), ("", "cart")])
def test_a_name_that_is_none_is_refused(site: Site, slug: str, name: str) -> None:
    with pytest.raises(TreeFailed):
        keep(site, scope(name)._replace(slug=slug), 1, AT)


def test_the_unslugged_ref_is_read_where_its_message_names_the_slug(site: Site) -> None:
    legacy = git(site.top, "commit-tree", "HEAD^{tree}", "-m", "t0: kept checkout-two/cart")
    git(site.top, "update-ref", "refs/shapeup/cart/kept", legacy)
    assert find_kept(site, SLUG, "cart") is None
    legacy = git(site.top, "commit-tree", "HEAD^{tree}", "-m", "t0: kept checkout/cart")
    git(site.top, "update-ref", "refs/shapeup/cart/kept", legacy)
    kept = find_kept(site, SLUG, "cart")
    assert kept is not None
    assert (kept.commit, kept.note, kept.trial) == (legacy, None, None)
    own = keep(site, scope("cart"), 4, AT, run_id="checkout-20360401T000000Z-00000000")
    kept = find_kept(site, SLUG, "cart")
    assert kept is not None
    assert kept.note is not None
    assert (kept.commit, kept.trial, kept.note.run_id) == (own.commit, 4, "checkout-20360401T000000Z-00000000")


def test_another_tools_tree_comes_back_through_the_filters_it_went_in(site: Site) -> None:
    root = site.top
    git(root, "config", "core.autocrlf", "true")
    put(root, "src/cart/a.py", "one\r\ntwo\r\n")
    legacy = git(root, "stash", "create", "checkout")
    git(root, "update-ref", "refs/shapeup/cart/kept", legacy)
    put(root, "src/cart/a.py", "worse\r\n")
    put(root, "src/cart/untracked.py", "nobody knows whether it was there\n")
    restored = restore(site, scope("cart"), 2, AT, is_others=nobody)
    assert (root / "src/cart/a.py").read_bytes() == b"one\r\ntwo\r\n"
    assert (root / "src/cart/untracked.py").exists()
    assert [path for path, _ in restored.left] == ["src/cart/untracked.py"]


def test_outside_git_there_is_no_place_for_trees(tmp_path: Path) -> None:
    assert find_site(tmp_path) is None


def test_a_linked_worktree_keeps_its_own_files_on_the_same_refs(tmp_path: Path) -> None:
    main = make(tmp_path / "main")
    git(main.top, "worktree", "add", "-q", os.fspath(tmp_path / "linked"))
    linked = find_site(tmp_path / "linked" / "src")
    assert linked is not None
    assert (linked.top, linked.common) == (tmp_path / "linked", main.common)
    put(linked.top, "src/cart/new.py", "linked\n")
    stored = keep(linked, scope("cart"), 1, AT)
    assert set(read_tree(main, stored.commit)) == {"src/cart/a.py", "src/cart/new.py"}
    (linked.top / "src/cart/new.py").unlink()
    before = picture(main.top)
    restore(linked, scope("cart"), 2, AT, is_others=nobody)
    assert (linked.top / "src/cart/new.py").read_text() == "linked\n"
    assert picture(main.top) == before


@pytest.mark.parametrize("kind", ["sha256", "sparse", "split index", "unborn", "index v4"])
def test_odd_repositories_keep_and_restore_too(tmp_path: Path, kind: str) -> None:
    site = make(tmp_path, *(["--object-format=sha256"] if kind == "sha256" else []))
    root = site.top
    if kind == "sparse":
        git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "src/cart")
    elif kind == "split index":
        git(root, "update-index", "--split-index")
    elif kind == "unborn":
        git(root, "checkout", "-q", "--orphan", "fresh")
    elif kind == "index v4":
        git(root, "update-index", "--index-version=4")
    put(root, "src/cart/new.py", "new\n")
    before, wanted = users(root), picture(root)
    everything = scope("cart", "src/**")
    keep(site, everything, 1, AT)
    put(root, "src/cart/worse.py", "worse\n")
    put(root, "src/cart/a.py", "worse\n")
    restored = restore(site, everything, 2, AT, is_others=nobody)
    assert (picture(root), users(root), restored.failed) == (wanted, before, ())


def test_the_environment_of_a_hook_leads_nowhere_else(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = make(tmp_path / "other")
    before = users(other.top), git(other.top, "for-each-ref")
    for name, value in (
        ("GIT_DIR", other.git_dir),
        ("GIT_INDEX_FILE", other.git_dir / "index"),
        ("GIT_WORK_TREE", other.top),
    ):
        monkeypatch.setenv(name, os.fspath(value))
    keep(site, scope("cart"), 1, AT)
    assert (users(other.top), git(other.top, "for-each-ref")) == before


def test_what_cannot_be_read_fails_the_keep_and_moves_no_ref(site: Site) -> None:
    first = keep(site, scope("cart"), 1, AT)
    git(site.top, "update-ref", "-d", first.ref)
    git(site.top, "update-ref", f"{first.ref}/in/the/way", "HEAD")
    with pytest.raises(TreeFailed):
        keep(site, scope("cart"), 2, AT)
    assert not list(site.common.glob("fast_import_crash_*"))


def test_the_lock_is_the_scopes_own_and_dies_with_its_holder(site: Site) -> None:
    with lock_scope(site, SLUG, "cart"):
        with (
            lock_scope(site, SLUG, "cart", patience_s=0) as again,
            lock_scope(site, SLUG, "mail", patience_s=0) as other,
        ):
            assert (again, other) == (False, True)
        with lock_scope(site, SLUG, "cart", patience_s=0, what="trials") as rows:
            assert rows


def test_a_stream_that_breaks_off_leaves_no_ref(site: Site) -> None:
    """As a death leaves it: git's own end of the pipe closes in the middle of the commit."""
    stream = b"commit refs/shapeup/checkout/cart/kept\ncommitter A <a@b> 1 +0000\ndata 1\nx\ndeleteall\n"
    command = ["git", f"--git-dir={site.common}", "fast-import", "--quiet", "--force", "--done"]
    ended = subprocess.run(command, input=stream, env=ENV, capture_output=True, check=False)
    assert ended.returncode != 0
    assert find_kept(site, SLUG, "cart") is None
