"""Links where our files should be: not one byte is written outside the tree, and the refusal has a stable code. Source: targets 29."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import pytest

from daemon.reconciler import Reconciler
from daemon.scan import scan
from daemon.writes import TEMP_SUFFIX
from parsers.faults import CODES
from parsers.settings import Settings
from tests.crash import small_run as small
from tests.crash.hearing import Hearing, settle_for_a_while, stepping

SWAPS = 1000 if small.IS_FULL else 100
FILES = (small.BOARD, small.DISCOVERIES, small.LEGS, small.RECORD, small.VERDICTS, small.task_path(1), small.JOURNAL)
FOLDERS = tuple(f"{small.RUN}/{name}" for name in "tasks journal rejections discovery receipts evaluation".split())
CODES_OF_LINKS = {"E-SYMLINK", "E-NOT-A-FILE", "E-CONFLICT"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run with a settled past, where three results and a broken one just landed."""
    root = tmp_path / "root"
    root.mkdir()
    small.make_run(root)
    small.put_order(root, "early-r1-a1", minute=5)
    small.put_result(root, "early-r1-a1", small.build_result("early-r1-a1", [1], discoveries=1))
    small.put_order(root, "wrong-r1-a1", minute=6)
    small.put_result(root, "wrong-r1-a1", b"{}")
    small.settle(root)
    small.put_batch(root)
    small.put_order(root, "broken-r1-a1", minute=13)
    small.put_result(root, "broken-r1-a1", b'{"schema_version": 1}')
    return root


@pytest.fixture
def outside(tmp_path: Path, root: Path) -> Path:
    """A copy of the whole run beside the tree: whatever a link leads to looks as it should."""
    return small.copy_tree(root / small.RUN, tmp_path / "outside")


def _put_link(root: Path, outside: Path, path: str) -> None:
    """A link in the place of one file or folder, to its twin outside."""
    target, twin = root / path, outside / os.path.relpath(path, small.RUN)
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    target.parent.mkdir(exist_ok=True)
    target.symlink_to(twin)


def _settle(root: Path) -> Hearing:
    hearing = Hearing()
    reconciler = Reconciler(root, Settings(), hearing.log(root), now=lambda: small.NOW, monotonic=stepping())
    reconciler.mark(scan(root))
    settle_for_a_while(reconciler)
    reconciler.checkpoint()
    reconciler.close()
    return hearing


def _codes(hearing: Hearing) -> set[str]:
    return {row["code"] for row in hearing.rows if row.get("code")}


@pytest.mark.parametrize("path", [*FILES, *FOLDERS])
def test_a_link_in_the_place_of_a_file_or_folder_of_ours_is_not_written_through(
    path: str, root: Path, outside: Path
) -> None:
    _put_link(root, outside, path)
    before = small.tree_bytes(outside)
    hearing = _settle(root)
    assert not small.difference(small.tree_bytes(outside), before)
    assert not hearing.of("daemon.error", "E-BUG")
    assert _codes(hearing) & CODES_OF_LINKS, [(row["event"], row.get("code")) for row in hearing.rows]
    assert _codes(hearing) <= CODES.keys() | {"E-IO"}
    assert (root / path).is_symlink()


def test_once_the_link_is_gone_the_run_goes_on(root: Path, outside: Path) -> None:
    link, real = root / small.RUN / "journal", root / small.RUN / "real"
    calm = small.copy_tree(root, root.parent / "calm")
    small.settle(calm)
    link.rename(real)
    link.symlink_to(outside)
    hearing = Hearing()
    reconciler = Reconciler(root, Settings(), hearing.log(root), now=lambda: small.NOW, monotonic=stepping())
    reconciler.mark(scan(root))
    settle_for_a_while(reconciler)
    assert _codes(hearing) == {"E-SYMLINK"}
    link.unlink()
    real.rename(link)
    settle_for_a_while(reconciler)
    reconciler.checkpoint()
    reconciler.close()
    assert not small.difference(small.tree_bytes(root), small.tree_bytes(calm))


@pytest.mark.parametrize("folder", ["orders", "results"])
def test_facts_behind_a_linked_folder_are_no_facts(folder: str, root: Path, outside: Path) -> None:
    _put_link(root, outside, f"{small.RUN}/{folder}")
    before = small.tree_bytes(outside)
    hearing = _settle(root)
    assert not small.difference(small.tree_bytes(outside), before)
    assert not hearing.of("order.admitted" if folder == "orders" else "result.applied")
    assert not hearing.of("daemon.error", "E-BUG")


@pytest.mark.parametrize("path", [small.RUN, ".shapeup"])
def test_a_linked_run_is_left_alone(path: str, root: Path, outside: Path) -> None:
    other = small.copy_tree(root / ".shapeup", outside.parent / "other")
    shutil.rmtree(root / path)
    (root / path).symlink_to(other if path == ".shapeup" else other / small.SLUG)
    before = small.tree_bytes(other)
    _settle(root)
    assert not small.difference(small.tree_bytes(other), before)


@pytest.mark.parametrize("is_link", [True, False], ids=["link", "folder"])
@pytest.mark.parametrize("path", [small.task_path(1), small.BOARD, f"{small.RUN}/journal/checkpoint.json"])
def test_what_is_planted_under_a_temporary_name_is_not_written_through(
    path: str, is_link: bool, root: Path, outside: Path
) -> None:
    folder, name = os.path.split(root / path)
    temporary = Path(folder) / f".{name}{TEMP_SUFFIX}"
    if is_link:
        temporary.symlink_to(outside / "tasks/TASK-1.md")
    else:
        temporary.mkdir()
    before = small.tree_bytes(outside)
    hearing = _settle(root)
    assert not small.difference(small.tree_bytes(outside), before)
    assert not hearing.of("daemon.error", "E-BUG")
    assert is_link or _codes(hearing) & CODES_OF_LINKS


def test_a_conflict_that_cannot_be_kept_is_said_all_the_same(root: Path, outside: Path) -> None:
    small.settle(root, checkpoints=False)
    _put_link(root, outside, small.task_path(1))
    (root / small.RUN / "conflicts").symlink_to(outside)
    before = small.tree_bytes(outside)
    hearing = _settle(root)
    assert not small.difference(small.tree_bytes(outside), before)
    assert "E-CONFLICT" in _codes(hearing)
    assert not hearing.of("daemon.error", "E-BUG")


@contextmanager
def _swapping(path: Path, twin: Path, swaps: list[str]) -> Iterator[None]:
    """A thread that puts a link in the place of the path, and the path back, as fast as it can."""
    over = threading.Event()
    aside = path.with_name(f".{path.name}.aside")

    def swap() -> None:
        while not over.is_set():
            try:
                path.rename(aside)
            except FileNotFoundError:
                continue  # not made yet
            except OSError:  # a folder of an earlier swap lies aside still
                shutil.rmtree(aside, ignore_errors=True)
                continue
            try:
                path.symlink_to(twin)
                swaps.append(path.name)
                path.unlink()
            except OSError:
                pass  # the daemon was faster: what it put there stands, the link is gone
            try:
                if not path.exists():
                    aside.rename(path)
            except OSError:
                pass  # made anew between the look and the rename: that one stands

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_link_swapped_in_while_we_write_is_never_written_through(root: Path, outside: Path) -> None:
    before = small.tree_bytes(outside)
    swaps: list[str] = []
    for path in cycle((*FILES, *FOLDERS)):
        work = small.copy_tree(root, root.parent / "work")
        with _swapping(work / path, outside / os.path.relpath(path, small.RUN), swaps):
            hearing = _settle(work)
        assert not small.difference(small.tree_bytes(outside), before), path
        assert not hearing.of("daemon.error", "E-BUG"), (path, hearing.of("daemon.error", "E-BUG")[0])
        if len(swaps) >= SWAPS and len(set(swaps)) >= len(FILES):
            break
    print(f"links: {len(swaps)} swapped in under our hands, 0 bytes written outside")
