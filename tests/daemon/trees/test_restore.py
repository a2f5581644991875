"""A restore makes the scope's paths the kept tree, leaves what is another's, and can be undone. Source: protocol §6.5, W-50..W-53, rulings G2, G9."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon.trees.carrying import BARRED, OCCUPIED
from daemon.trees.kept import keep, restore, undo
from daemon.trees.listing import IGNORED, NESTED
from daemon.trees.refs import list_undos
from daemon.trees.site import Site, TreeFailed
from daemon.trees.steps import OTHERS, THEN_LEFT, UNKNOWN
from tests.daemon.trees.repository import AT, SLUG, git, make, nobody, picture, put, scope, users

CART = scope("cart")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = make(tmp_path / "repo")
    put(site.top, "src/cart/new.py", "new\n")
    put(site.top, "src/cart/deep/er/x.py", "x\n")
    os.symlink("a.py", site.top / "src/cart/link")
    keep(site, CART, 1, AT)
    return site


def _rewrite(root: Path) -> None:
    put(root, "src/cart/a.py", "worse\n")
    put(root, "src/cart/new.py", "worse\n", mode=0o755)


def _delete(root: Path) -> None:
    shutil.rmtree(root / "src/cart")


def _add(root: Path) -> None:
    put(root, "src/cart/more/and/more.py", "more\n")


def _folder_for_file(root: Path) -> None:
    (root / "src/cart/a.py").unlink()
    put(root, "src/cart/a.py/inside/x", "x\n")
    (root / "src/cart/a.py/empty/too").mkdir(parents=True)


def _file_for_folder(root: Path) -> None:
    shutil.rmtree(root / "src/cart/deep")
    put(root, "src/cart/deep", "a file\n")


def _link_for_file(root: Path) -> None:
    (root / "src/cart/a.py").unlink()
    os.symlink("../../README.md", root / "src/cart/a.py")


def _file_for_link(root: Path) -> None:
    (root / "src/cart/link").unlink()
    put(root, "src/cart/link", "no link\n")


def _link_for_folder(root: Path) -> None:
    shutil.rmtree(root / "src/cart/deep")
    (root / "src/cart/deep").symlink_to(root / "src/mail")
    put(root, "src/mail/er/x.py", "a neighbour's\n")


def _mode(root: Path) -> None:
    (root / "src/cart/a.py").chmod(0o755)


def _staged(root: Path) -> None:
    put(root, "src/cart/staged.py", "staged\n")
    git(root, "add", "src/cart/staged.py")
    git(root, "rm", "-q", "--cached", "src/cart/a.py")


CHANGES = (
    _rewrite,
    _delete,
    _add,
    _folder_for_file,
    _file_for_folder,
    _link_for_file,
    _file_for_link,
    _link_for_folder,
    _mode,
    _staged,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
def test_the_kept_tree_stands_there_exactly_and_its_undo_brings_the_attempt_back(
    site: Site, change: Callable[[Path], None]
) -> None:
    kept, neighbour = picture(site.top, "src/cart"), picture(site.top, "src/mail")
    change(site.top)
    attempt, before = picture(site.top), users(site.top)
    neighbour |= {path: found for path, found in attempt.items() if path.startswith("src/mail/")}
    restored = restore(site, CART, 2, AT, is_others=nobody)
    assert (picture(site.top, "src/cart"), picture(site.top, "src/mail")) == (kept, neighbour)
    assert (restored.left, restored.failed, restored.edited_ref) == ((), (), None)
    undone = undo(site, SLUG, "cart", 2, AT, is_others=nobody)
    assert picture(site.top) == attempt
    assert (undone.left, undone.failed) == ((), ())
    assert users(site.top) == before


def test_a_pattern_that_matches_nothing_cancels_nothing(site: Site) -> None:
    put(site.top, "src/cart/a.py", "worse\n")
    wide = scope("cart", "test/**", "src/cart/**", "none.py")
    assert restore(site, wide, 2, AT, is_others=nobody).written == ("src/cart/a.py",)
    assert (site.top / "src/cart/a.py").read_text() == "a\n"


def test_what_another_live_order_may_write_is_left_and_named_and_no_undo_touches_it(site: Site) -> None:
    root = site.top
    put(root, "src/cart/shared.py", "kept\n")
    put(root, "src/cart/same.py", "same\n")
    keep(site, CART, 2, AT)
    put(root, "src/cart/shared.py", "the neighbour's work\n")
    put(root, "src/cart/shared-new.py", "the neighbour's new file\n")
    put(root, "src/cart/a.py", "worse\n")
    theirs = {"src/cart/shared.py", "src/cart/shared-new.py", "src/cart/same.py"}
    restored = restore(site, CART, 3, AT, is_others=theirs.__contains__)
    assert restored.written == ("src/cart/a.py",)
    assert dict(restored.left) == {"src/cart/shared.py": OTHERS, "src/cart/shared-new.py": OTHERS}
    put(root, "src/cart/shared.py", "and more of it\n")
    undone = undo(site, SLUG, "cart", 3, AT, is_others=nobody)  # the neighbour's order is answered by now
    assert (root / "src/cart/a.py").read_text() == "worse\n"
    assert (root / "src/cart/shared.py").read_text() == "and more of it\n"
    assert set(dict(undone.left).values()) == {THEN_LEFT}


def test_ignored_files_stay_and_are_named(site: Site) -> None:
    put(site.top, ".gitignore", "*.log\n")
    put(site.top, "src/cart/deep/new/x.log", "log\n")
    put(site.top, "src/cart/deep/new/y.py", "y\n")
    restored = restore(site, CART, 2, AT, is_others=nobody)
    assert restored.deleted == ("src/cart/deep/new/y.py",)
    assert dict(restored.left) == {"src/cart/deep/new/x.log": IGNORED}
    assert (site.top / "src/cart/deep/new/x.log").read_text() == "log\n"
    undo(site, SLUG, "cart", 2, AT, is_others=nobody)
    assert (site.top / "src/cart/deep/new/x.log").read_text() == "log\n"


def test_an_attempt_that_ignores_a_kept_file_does_not_hide_it(site: Site) -> None:
    put(site.top, "src/cart/.gitignore", "*\n")
    put(site.top, "src/cart/new.py", "worse\n")
    restore(site, CART, 2, AT, is_others=nobody)
    assert (site.top / "src/cart/new.py").read_text() == "new\n"


def test_an_attempt_that_ignores_less_deletes_nothing_that_was_ignored(site: Site) -> None:
    put(site.top, "src/cart/.gitignore", "build/\n")
    put(site.top, "src/cart/build/big/artifact", "built\n")
    put(site.top, "src/cart/build/tracked", "tracked\n")
    git(site.top, "add", "-f", "src/cart/build/tracked")
    keep(site, CART, 2, AT)
    put(site.top, "src/cart/.gitignore", "")
    put(site.top, "src/cart/build/added", "added\n")
    git(site.top, "add", "-f", "src/cart/build/added")
    restored = restore(site, CART, 3, AT, is_others=nobody)
    assert restored.deleted == ("src/cart/build/added",)
    assert dict(restored.left)["src/cart/build/big/artifact"] == IGNORED
    assert (site.top / "src/cart/build/big/artifact").exists()


def test_paths_that_became_the_scopes_later_are_left(site: Site) -> None:
    wide = scope("cart", "src/cart/**", "src/mail/**")
    put(site.top, "src/mail/more.py", "more\n")
    restored = restore(site, wide, 2, AT, is_others=nobody)
    assert restored.deleted == ()
    assert dict(restored.left) == {"src/mail/m.py": UNKNOWN, "src/mail/more.py": UNKNOWN}


def test_paths_that_are_no_longer_the_scopes_are_left(site: Site) -> None:
    put(site.top, "src/cart/deep/er/x.py", "worse\n")
    put(site.top, "src/cart/a.py", "worse\n")
    restored = restore(site, scope("cart", "src/cart/deep/**"), 2, AT, is_others=nobody)
    assert restored.written == ("src/cart/deep/er/x.py",)
    assert (site.top / "src/cart/a.py").read_text() == "worse\n"


def test_a_link_that_is_no_path_of_the_scope_is_never_followed(site: Site, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, "a.py", "outside\n")
    put(outside, "stays", "outside\n")
    shutil.rmtree(site.top / "src/cart")
    (site.top / "src/cart").symlink_to(outside)
    restored = restore(site, CART, 2, AT, is_others=nobody)
    assert picture(outside) == {"a.py": ("file", b"outside\n"), "stays": ("file", b"outside\n")}
    assert set(dict(restored.left).values()) == {BARRED}
    assert os.readlink(site.top / "src/cart") == os.fspath(outside)


def test_a_repository_that_somebody_made_there_is_left(site: Site) -> None:
    root = site.top
    put(root, "src/cart/deep/er/y.py", "y\n")
    git(root / "src/cart/deep", "init", "-q")
    (root / "src/cart/a.py").unlink()
    put(root, "src/cart/a.py/inner.py", "inner\n")
    git(root / "src/cart/a.py", "init", "-q")
    git(root / "src/cart/a.py", "add", ".")
    git(root / "src/cart/a.py", "commit", "-q", "-m", "inner")
    before = picture(root)
    restored = restore(site, CART, 2, AT, is_others=nobody)
    assert picture(root) == before
    assert dict(restored.left)["src/cart/a.py"] == dict(restored.left)["src/cart/deep/er/x.py"] == NESTED


def test_a_submodule_is_never_entered(tmp_path: Path) -> None:
    inner, site = make(tmp_path / "inner"), make(tmp_path / "outer")
    git(site.top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", os.fspath(inner.top), "src/cart/sub")
    stored = keep(site, CART, 1, AT)
    put(site.top, "src/cart/sub/README.md", "changed inside\n")
    git(site.top / "src/cart/sub", "commit", "-q", "-a", "-m", "inside")
    before = picture(site.top)
    restored = restore(site, CART, 2, AT, is_others=nobody)
    assert picture(site.top) == before
    assert ("src/cart/sub", NESTED) in stored.left
    assert ("src/cart/sub", NESTED) in restored.left


def test_what_no_tree_can_hold_stays_and_is_named(site: Site) -> None:
    (site.top / "src/cart/a.py").unlink()
    os.mkfifo(site.top / "src/cart/a.py")
    put(site.top, "src/cart/new.py", "worse\n")
    restored = restore(site, CART, 2, AT, is_others=nobody)
    assert restored.written == ("src/cart/new.py",)
    assert "pipe" in dict(restored.left)["src/cart/a.py"]


def test_a_folder_that_holds_ignored_files_keeps_its_place(site: Site) -> None:
    put(site.top, ".gitignore", "*.log\n")
    (site.top / "src/cart/a.py").unlink()
    put(site.top, "src/cart/a.py/x.log", "log\n")
    restored = restore(site, CART, 2, AT, is_others=nobody)
    assert dict(restored.left)["src/cart/a.py"] == OCCUPIED
    assert (site.top / "src/cart/a.py/x.log").exists()


def test_folders_that_become_empty_go_only_inside_the_scope(site: Site) -> None:
    own = scope("cart", "lib/*/x/**", "only.py", "pkg/*.py")
    keep(site, own, 2, AT)
    for name in ("lib/one/x/y/z.py", "lib/one/x/w.py", "pkg/p.py", "only.py"):
        put(site.top, name, name)
    (site.top / "lib/one/x/mine").mkdir()
    restore(site, own, 3, AT, is_others=nobody)
    assert [path.relative_to(site.top).as_posix() for path in sorted((site.top / "lib").rglob("*"))] == [
        "lib/one",
        "lib/one/x",
        "lib/one/x/mine",
    ]
    assert (site.top / "pkg").is_dir()
    put(site.top, "lib/two/x/y.py", "y\n")
    restore(site, own, 4, AT, is_others=nobody)
    assert (site.top / "lib/two").is_dir()
    assert not (site.top / "lib/two/x").exists()


def test_permissions_that_git_does_not_know_stay(site: Site) -> None:
    (site.top / "src/cart/a.py").write_text("worse\n")
    (site.top / "src/cart/a.py").chmod(0o640)
    (site.top / "src/cart/new.py").chmod(0o750)
    restore(site, CART, 2, AT, is_others=nobody)
    assert [(site.top / "src/cart" / name).stat().st_mode & 0o777 for name in ("a.py", "new.py")] == [0o640, 0o640]


def test_where_the_undo_cannot_be_stored_nothing_is_restored(site: Site) -> None:
    git(site.top, "update-ref", "refs/shapeup/checkout/cart/undo", "HEAD")
    put(site.top, "src/cart/a.py", "worse\n")
    before = picture(site.top)
    with pytest.raises(TreeFailed):
        restore(site, CART, 2, AT, is_others=nobody)
    assert picture(site.top) == before


def test_where_no_tree_is_kept_nothing_is_restored(site: Site) -> None:
    with pytest.raises(TreeFailed):
        restore(site, scope("mail"), 2, AT, is_others=nobody)
    with pytest.raises(TreeFailed):
        undo(site, SLUG, "cart", 7, AT, is_others=nobody)


def test_a_second_undo_of_one_number_leaves_the_first_within_reach(site: Site) -> None:
    for text in ("first\n", "second\n"):
        put(site.top, "src/cart/a.py", text)
        restored = restore(site, CART, 2, AT, is_others=nobody)
    assert restored.undo_ref == "refs/shapeup/checkout/cart/undo/2"
    assert git(site.top, "show", f"{restored.undo_ref}:src/cart/a.py") == "second"
    assert git(site.top, "show", f"{restored.undo_ref}^:src/cart/a.py") == "first"
    assert list_undos(site, SLUG, "cart") == (2,)


def test_an_undo_can_be_undone_by_what_it_stored(site: Site) -> None:
    put(site.top, "src/cart/a.py", "worse\n")
    restore(site, CART, 2, AT, is_others=nobody)
    put(site.top, "src/cart/a.py", "a person's edit after the restore\n")
    undone = undo(site, SLUG, "cart", 2, AT, is_others=nobody)
    assert undone.undo_ref == "refs/shapeup/checkout/cart/undo/2-undone"
    assert git(site.top, "show", f"{undone.undo_ref}:src/cart/a.py") == "a person's edit after the restore"
    assert list_undos(site, SLUG, "cart") == (2,)


def test_a_file_too_large_for_memory_goes_and_comes_in_pieces(site: Site) -> None:
    big = os.urandom(1 << 20) * 9
    put(site.top, "src/cart/big", big)
    keep(site, CART, 2, AT)
    put(site.top, "src/cart/big", big[:-1] + b"?")
    restored = restore(site, CART, 3, AT, is_others=nobody)
    assert restored.written == ("src/cart/big",)
    assert (site.top / "src/cart/big").read_bytes() == big


def test_a_forged_tree_writes_nowhere_but_in_the_scope(site: Site) -> None:
    """Whoever can write refs can write files; still no restore writes git's own files, or ours."""
    blob = git(site.top, "hash-object", "-w", "--stdin", stdin=b"evil\n")
    inner = git(site.top, "mktree", stdin=f"100755 blob {blob}\tpre-commit\n".encode())
    trees = "".join(f"040000 tree {inner}\t{name}\n" for name in (".GIT", ".shapeup", "..", "ok"))
    message = git(site.top, "log", "-1", "--format=%B", "refs/shapeup/checkout/cart/kept").replace("src/cart/**", "**")
    tree = git(site.top, "mktree", stdin=trees.encode())
    forged = git(site.top, "commit-tree", tree, stdin=message.encode())
    git(site.top, "update-ref", "refs/shapeup/checkout/cart/kept", forged)
    put(site.top, "src/cart/a.py", "a\n")
    restored = restore(site, scope("cart", "**"), 2, AT, is_others=nobody)
    assert restored.written == ("ok/pre-commit",)
    assert not (site.top.parent / "pre-commit").exists()
    assert not (site.top / ".shapeup").exists()
