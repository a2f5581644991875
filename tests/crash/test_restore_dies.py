"""A restore killed at any system call: the next start finishes it, or it never began; nothing of anybody's is lost. Source: targets 6, ruling G2.

The suite dies at a sample of the calls; SHAPEUP_CRASH_FULL=1 (`make crash`) at every one.
"""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path

import pytest

from daemon.trees.finishing import Finished, finish_restores
from daemon.trees.intents import list_intents
from daemon.trees.kept import Scope, keep, restore, undo
from daemon.trees.site import Site, find_site
from daemon.writes import TEMP_SUFFIX
from tests.crash import dying, small_run
from tests.daemon.trees.repository import AT, SLUG, Picture, git, make, nobody, picture, put, scope, users
from tests.e2e.living import daemon

SAMPLES = 6
_REFUSAL = dying.refusal()
CART = scope("cart")

pytestmark = pytest.mark.skipif(_REFUSAL is not None, reason=str(_REFUSAL))


def _prepare(root: Path, way: str) -> Site:
    """A kept tree, and an attempt over it that makes a restore do all that one can."""
    site = make(root)
    if way == "git":
        (site.common / "info" / "grafts").touch()
    put(root, "src/cart/deep/er/x.py", "x\n")
    put(root, "src/cart/swap", "a file\n")
    put(root, "src/cart/tool", "tool\n", mode=0o755)
    os.symlink("a.py", root / "src/cart/link")
    keep(site, CART, 1, AT)
    put(root, "src/cart/a.py", "worse\n")
    put(root, "src/cart/new/n.py", "new\n")
    (root / "src/cart/swap").unlink()
    put(root, "src/cart/swap/inner", "inner\n")
    shutil.rmtree(root / "src/cart/deep")
    put(root, "src/cart/deep", "no folder\n")
    (root / "src/cart/link").unlink()
    put(root, "src/cart/link", "no link\n")
    (root / "src/cart/tool").unlink()
    return site


def _restore(root: Path, own: Scope = CART) -> None:
    site = find_site(root)
    assert site is not None
    restore(site, own, 2, AT, is_others=nobody)


class Deaths:
    """One prepared repository, and fresh copies of it in which a restore dies."""

    def __init__(self, tmp_path: Path, way: str) -> None:
        import pygit2  # the child is forked: what is imported here is no part of its life

        assert pygit2
        self._tmp_path, self._numbers = tmp_path, count()
        template = _prepare(tmp_path / "template", way)
        self.attempt, self.users = picture(template.top), self._users(template.top)
        calm = self.copy()
        self.calls = dying.run_until(lambda: _restore(calm.top), 1 << 40)
        self.wanted = picture(calm.top)

    def _users(self, root: Path) -> dict[str, str]:
        return {key.removeprefix(os.fspath(root)): value for key, value in users(root).items()}

    def copy(self) -> Site:
        root = self._tmp_path / str(next(self._numbers))  # never one twice: a git that was orphaned may end late
        shutil.copytree(self._tmp_path / "template", root, symlinks=True)
        site = find_site(root)
        assert site is not None
        return site

    def entries(self) -> list[int]:
        assert self.calls
        return list(small_run.sample(range(1, self.calls + 1), SAMPLES))

    def dead_at(self, entry: int) -> Site | None:
        site = self.copy()
        return site if dying.run_until(lambda: _restore(site.top), entry) is None else None

    def assert_calm(self, site: Site, wanted: Picture, at: str) -> None:
        assert picture(site.top) == wanted, at
        assert self._users(site.top) == self.users, at
        assert not list(list_intents(site)), at
        assert not list(site.top.rglob(f"*{TEMP_SUFFIX}")), at


@pytest.mark.parametrize("way", ["pygit2", "git"])
def test_a_restore_that_died_is_finished_by_the_next_start_or_never_began(tmp_path: Path, way: str) -> None:
    deaths = Deaths(tmp_path, way)
    begun = trials = 0
    for entry in deaths.entries():
        site = deaths.dead_at(entry)
        if site is None:
            continue
        trials += 1
        finished = finish_restores(site, AT)
        begun += len(finished)
        at = f"{entry} of {deaths.calls}"
        if not finished and picture(site.top) != deaths.wanted:
            deaths.assert_calm(site, deaths.attempt, at)
            _restore(site.top)
        deaths.assert_calm(site, deaths.wanted, at)
        assert finish_restores(site, AT) == ()
        assert all(done.restored and not done.restored.failed and not done.restored.edited_ref for done in finished)
        undo(site, SLUG, "cart", 2, AT, is_others=nobody)
        deaths.assert_calm(site, deaths.attempt, at)
    print(f"restore through {way}: {trials} deaths at {deaths.calls} system calls, {begun} finished")
    assert trials
    assert begun


def test_a_finish_that_dies_is_finished_by_the_one_after(tmp_path: Path) -> None:
    deaths = Deaths(tmp_path, "git")
    site = _half_done(deaths)
    pending = tmp_path / "pending"
    shutil.copytree(site.top, pending, symlinks=True)
    _repoint(pending, site.top)
    calls = dying.run_until(lambda: _finish(pending), 1 << 40)
    assert calls
    for entry in small_run.sample(range(1, calls + 1), SAMPLES // 2):
        again = tmp_path / f"again-{entry}"
        shutil.copytree(site.top, again, symlinks=True)
        _repoint(again, site.top)
        if dying.run_until(lambda again=again: _finish(again), entry) is None:  # type: ignore[misc]
            _finish(again)
            own = find_site(again)
            assert own is not None
            deaths.assert_calm(own, deaths.wanted, f"{entry} of {calls}")


def _finish(root: Path) -> tuple[Finished, ...]:
    site = find_site(root)
    assert site is not None
    return finish_restores(site, AT)


def _repoint(root: Path, was: Path) -> None:
    """A copy's record names the copy."""
    for file in (root / ".git/shapeupd").rglob("*.restore.json"):
        file.write_text(file.read_text().replace(f'"{was}"', f'"{root}"'))


def _half_done(deaths: Deaths) -> Site:
    """A repository in which a restore has done some of its steps and not all of them."""
    assert deaths.calls
    low, high = 1, deaths.calls
    while low < high:
        middle = (low + high) // 2
        site = deaths.dead_at(middle)
        if site is None or not list(list_intents(site)):
            low, high = (low, middle) if site is None or picture(site.top) == deaths.wanted else (middle + 1, high)
        elif picture(site.top) in (deaths.attempt, deaths.wanted):
            low, high = (middle + 1, high) if picture(site.top) == deaths.attempt else (low, middle)
        else:
            return site
    raise AssertionError("no death left it half done")


def test_an_edit_after_the_death_is_kept_aside_before_the_restore_goes_on(tmp_path: Path) -> None:
    deaths = Deaths(tmp_path, "pygit2")
    site = _half_done(deaths)
    root = site.top
    put(root, "src/cart/a.py", "a person's edit\n")
    put(root, "src/cart/new/n.py", "a person's second edit\n")
    put(root, "src/cart/by-hand.py", "a person's new file\n")
    (done,) = finish_restores(site, AT)
    assert done.restored
    assert done.restored.edited_ref == "refs/shapeup/checkout/cart/undo/2-edited"
    assert git(root, "show", f"{done.restored.edited_ref}:src/cart/a.py") == "a person's edit"
    assert git(root, "show", f"{done.restored.edited_ref}:src/cart/new/n.py") == "a person's second edit"
    assert git(root, "show", f"{done.restored.undo_ref}:src/cart/a.py") == "worse"
    assert picture(root) == deaths.wanted | {"src/cart/by-hand.py": ("file", b"a person's new file\n")}


def test_a_path_that_became_anothers_after_the_death_is_left_to_it(tmp_path: Path) -> None:
    deaths = Deaths(tmp_path, "pygit2")
    site = _half_done(deaths)
    put(site.top, "src/cart/a.py", "the neighbour's\n")
    (done,) = finish_restores(site, AT, others=lambda slug, scope_id, path: path == "src/cart/a.py")
    assert done.restored
    assert "src/cart/a.py" in dict(done.restored.left)
    assert picture(site.top) == deaths.wanted | {"src/cart/a.py": ("file", b"the neighbour's\n")}


def test_a_tree_that_is_kept_after_the_death_voids_the_restore(tmp_path: Path) -> None:
    deaths = Deaths(tmp_path, "pygit2")
    site = _half_done(deaths)
    now = picture(site.top)
    keep(site, CART, 3, AT)
    assert finish_restores(site, AT) == ()
    assert picture(site.top) == now


def test_a_worktree_that_is_gone_takes_its_restore_along(tmp_path: Path) -> None:
    deaths = Deaths(tmp_path, "pygit2")
    site = _half_done(deaths)
    moved = tmp_path / "moved"
    os.rename(site.top, moved)
    (done,) = _finish(moved)
    assert done.restored is None
    assert "gone" in done.why
    assert _finish(moved) == ()


def test_a_daemon_that_starts_over_a_torn_restore_finishes_it_and_says_so(tmp_path: Path) -> None:
    deaths = Deaths(tmp_path, "pygit2")
    torn = next(
        site
        for entry in reversed(range(1, deaths.calls or 0))
        if (site := deaths.dead_at(entry)) and list(list_intents(site)) and picture(site.top) != deaths.wanted
    )
    with daemon(torn.top) as living:
        assert living.wait_for("tree.restored", CART.scope_id)["trial"] == 2
    code = {path: entry for path, entry in picture(torn.top).items() if not path.startswith(".shapeup")}
    assert code == {path: entry for path, entry in deaths.wanted.items() if not path.startswith(".shapeup")}
    assert not list(list_intents(torn))
