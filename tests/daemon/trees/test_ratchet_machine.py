"""Three scopes build at once, each attempt kept, reverted or dead at any point: every scope's tree is its last kept one. Source: issue 5, ruling G2.

The suite runs a few short machines; SHAPEUP_RATCHET_FULL=1 (`make ratchet`) many with 20 attempts of each scope.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from daemon.trees.finishing import finish_restores
from daemon.trees.kept import Scope, keep, restore, undo
from daemon.trees.objects import Area
from daemon.trees.site import find_site
from tests.crash import dying
from tests.daemon.trees.repository import AT, SLUG, Picture, git, make, nobody, picture, put, scope, users

IS_FULL = bool(os.environ.get("SHAPEUP_RATCHET_FULL"))
ATTEMPTS = 20  # of each scope
NAMES = ("cart", "mail", "docs")
SCOPES = {
    "cart": scope("cart", "src/cart/**", "test/cart/*.py", "both/**"),
    "mail": scope("mail", "src/mail/**", "both/**", "nothing/here/**"),
    "docs": scope("docs", "docs/**", "src/*.md"),
}
PATHS = {
    "cart": ("src/cart/a.py", "src/cart/x", "src/cart/x/y", "src/cart/x/y/z", "src/cart/é.py", "test/cart/t.py"),
    "mail": ("src/mail/m.py", "src/mail/x", "src/mail/x/y", "src/mail/in\tner"),
    "docs": ("docs/d.md", "docs/x", "docs/x/y.md", "src/top.md"),
}
BOTH = "both/shared.py"
CONTENT = st.sampled_from((b"", b"one\n", b"two\r\n", b"\x00\xff", b"long" * 5000))
KINDS = st.sampled_from(("file", "file", "file", "program", "link", "nothing", "nothing", "ignored", "folder"))
EDITS = st.lists(st.tuples(st.integers(0, 5), KINDS, CONTENT), min_size=1, max_size=4)
_HAS_PTRACE = dying.refusal() is None


def _is_shared(path: str) -> bool:
    return path.startswith("both/")


def _clear(root: Path, path: str) -> bool:
    """Make room for a file; False where a link is on the way, which an editor would follow out of the scope."""
    target = root / path
    for folder in reversed(target.relative_to(root).parents):
        above = root / folder
        if above.is_symlink():
            return False
        if above.is_file():
            above.unlink()
    if target.is_symlink() or target.is_file():
        target.unlink()
    elif target.is_dir():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    return True


def _edit(root: Path, path: str, kind: str, content: bytes) -> None:
    if not _clear(root, path):
        return
    match kind:
        case "link":
            (root / path).symlink_to("../../README.md")
        case "ignored":
            put(root, f"{path}/x.log", content)
        case "folder":
            put(root, f"{path}/inner/f", content)
        case "file" | "program":
            put(root, path, content, mode=0o755 if kind == "program" else 0o644)


def _all_of(root: Path) -> Picture:
    return {path: found for path, found in picture(root).items() if not path.endswith(".log")}


class Ratchet(RuleBasedStateMachine):
    """The model is one picture of the whole tree: what stands kept of each scope, and what each attempt has made since."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(
            tempfile.mkdtemp(prefix="shapeupd-ratchet-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        )
        self.root = self.folder / "repo"
        self.kept: dict[str, Picture] = {}
        self.trials = dict.fromkeys(NAMES, 0)
        self.logs: set[str] = set()

    @initialize(way=st.sampled_from(("pygit2", "git")))
    def begin(self, way: str) -> None:
        self.site = make(self.root, docs__d_md="d\n", both__shared_py="shared\n")
        if way == "git":
            (self.site.common / "info" / "grafts").touch()
        put(self.root, ".gitignore", "*.log\n")
        put(self.root, "src/cart/a.py", "stashed\n")
        git(self.root, "stash")
        put(self.root, "src/cart/staged.py", "staged\n")
        git(self.root, "add", "src/cart/staged.py")
        self.users = users(self.root)
        for name in NAMES:
            self.keep(name)

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def own(self, name: str) -> Picture:
        """The files of one scope that no other may write."""
        holds = Area((SCOPES[name].allowed,)).holds
        return {path: found for path, found in _all_of(self.root).items() if holds(path) and not _is_shared(path)}

    def neighbours(self, name: str) -> Picture:
        mine = self.own(name)
        return {path: found for path, found in picture(self.root).items() if path not in mine}

    def edit(self, name: str, edits: list[tuple[int, str, bytes]]) -> None:
        for at, kind, content in edits:
            _edit(self.root, PATHS[name][at % len(PATHS[name])], kind, content)
        if "both/**" in SCOPES[name].allowed:
            put(self.root, BOTH, edits[0][2])

    def keep(self, name: str) -> None:
        before = picture(self.root)
        self.trials[name] += 1
        keep(self.site, SCOPES[name], self.trials[name], AT)
        assert picture(self.root) == before
        self.kept[name] = self.own(name)

    def is_over(self, name: str) -> bool:
        return self.trials[name] >= ATTEMPTS

    @rule(name=st.sampled_from(NAMES), edits=EDITS)
    def an_attempt_is_kept(self, name: str, edits: list[tuple[int, str, bytes]]) -> None:
        if not self.is_over(name):
            self.edit(name, edits)
            self.keep(name)

    @rule(name=st.sampled_from(NAMES), edits=EDITS, undoes=st.booleans())
    def an_attempt_is_reverted(self, name: str, edits: list[tuple[int, str, bytes]], undoes: bool) -> None:
        if self.is_over(name):
            return
        self.edit(name, edits)
        self.trials[name] += 1
        attempt, others = self.own(name), self.neighbours(name)
        restored = restore(self.site, SCOPES[name], self.trials[name], AT, is_others=_is_shared)
        assert restored.failed == ()
        self.assert_kept(name, others, attempt, {path for path, _ in restored.left})
        if undoes and not restored.left:
            undo(self.site, SLUG, name, self.trials[name], AT, is_others=_is_shared)
            assert self.own(name) == attempt
            restore(self.site, SCOPES[name], self.trials[name], AT, is_others=_is_shared)
            self.assert_kept(name, others, attempt, set())

    @rule(name=st.sampled_from(NAMES), edits=EDITS, call=st.integers(1, 1000))
    def an_attempt_dies(self, name: str, edits: list[tuple[int, str, bytes]], call: int) -> None:
        if self.is_over(name) or not _HAS_PTRACE:
            return
        self.edit(name, edits)
        self.trials[name] += 1
        attempt, others = self.own(name), self.neighbours(name)
        dying.run_until(lambda: restore(self.site, SCOPES[name], self.trials[name], AT, is_others=_is_shared), call)
        assert others.items() <= self.neighbours(name).items()
        finish_restores(self.site, AT, others=lambda slug, scope_id, path: _is_shared(path))
        restored = restore(self.site, SCOPES[name], self.trials[name], AT, is_others=_is_shared)
        self.assert_kept(name, others, attempt, {path for path, _ in restored.left})

    def assert_kept(self, name: str, others: Picture, attempt: Picture, left: set[str]) -> None:
        """The kept tree and nothing else; no byte of anybody else's. Ignored files stay, and what they occupy with them."""
        now = self.own(name)
        occupied = {path for path in self.kept[name] if path in left}
        assert now == {path: found for path, found in self.kept[name].items() if path not in occupied}
        assert self.neighbours(name) == others
        for path in occupied:  # only an ignored file may stand in a kept file's way; the next attempt begins without it
            assert list((self.root / path).rglob("*.log"))
            shutil.rmtree(self.root / path)
        if occupied:
            restore(self.site, SCOPES[name], self.trials[name], AT, is_others=_is_shared)
            assert self.own(name) == self.kept[name]

    @invariant()
    def every_scope_stands_as_it_was_kept(self) -> None:
        for name, kept in self.kept.items():
            assert self.own(name) == kept

    @invariant()
    def nothing_of_the_users_moved(self) -> None:
        if self.kept:
            assert users(self.root) == self.users


RatchetTest = Ratchet.TestCase
RatchetTest.settings = settings(
    max_examples=60 if IS_FULL else 4,
    stateful_step_count=3 * ATTEMPTS if IS_FULL else 12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_scopes_that_are_kept_and_restored_at_the_same_moment_do_not_meet(tmp_path: Path) -> None:
    site = make(tmp_path, docs__d_md="d\n")
    failures: list[BaseException] = []

    def build(name: str, attempts: int) -> None:
        own = find_site(tmp_path)
        assert own is not None
        for trial in range(1, attempts, 2):
            put(tmp_path, f"{name}/{trial}/kept.py", f"{trial}\n")
            keep(own, Scope(SLUG, name, (f"{name}/**",)), trial, AT)
            wanted = picture(tmp_path, name)
            put(tmp_path, f"{name}/{trial}/kept.py", "worse\n")
            put(tmp_path, f"{name}/{trial}/worse/still.py", "worse\n")
            restore(own, Scope(SLUG, name, (f"{name}/**",)), trial + 1, AT, is_others=nobody)
            assert picture(tmp_path, name) == wanted

    def guarded(name: str, run: Callable[[str, int], None]) -> None:
        try:
            run(name, ATTEMPTS if IS_FULL else 6)
        except BaseException as error:
            failures.append(error)

    before = users(tmp_path)
    threads = [Thread(target=guarded, args=(name, build)) for name in NAMES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert users(site.top) == before


@pytest.mark.skipif(not IS_FULL, reason="SHAPEUP_RATCHET_FULL=1 measures")
def test_a_scope_of_ten_thousand_files_takes_seconds(tmp_path: Path) -> None:
    from time import perf_counter

    site = make(tmp_path)
    for number in range(10_000):
        put(tmp_path, f"src/cart/{number % 100}/{number}.py", f"{number}\n" * 100)
    spans = []
    for act in (
        lambda: keep(site, scope("cart"), 1, AT),
        lambda: keep(site, scope("cart"), 2, AT),
        lambda: restore(site, scope("cart"), 3, AT, is_others=nobody),
    ):
        start = perf_counter()
        act()
        spans.append(f"{perf_counter() - start:.2f} s")
    print("10,000 files: first keep, second keep, restore of one change:", *spans)
