"""A full disk: nothing is torn, nothing is half told, the daemon stays up and catches up. Source: ruling L5, targets 7."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.reconciler import Reconciler
from daemon.scan import scan
from parsers.settings import Settings
from tests.crash import small_run as small
from tests.crash.hearing import Hearing, living, settle_for_a_while, stepping

TMPFS_KB = 512


class FullDisk:
    """Lets `free` calls that need space succeed, then refuses all; `cuts` lets the first refused write put down a part."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, cuts: bool) -> None:
        self.free: int | None = None  # None: space enough
        self.used = 0
        self._cuts = cuts
        self._real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in ("write", "open", "mkdir")}
        for name in self._real:
            monkeypatch.setattr(os, name, getattr(self, name))

    def write(self, fd: int, data: bytes) -> int:
        if os.readlink(f"/proc/self/fd/{fd}").endswith(".log"):
            return self._real["write"](fd, data)
        if self._is_full():
            if not self._cuts or len(data) < 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._cuts = False
            return self._real["write"](fd, data[: len(data) // 2])
        return self._real["write"](fd, data)

    def open(self, path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_CREAT and not str(path).endswith(".log"):
            self._take()
        return self._real["open"](path, flags, mode, dir_fd=dir_fd)

    def mkdir(self, path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        self._take()
        self._real["mkdir"](path, mode, dir_fd=dir_fd)

    def _take(self) -> None:
        if self._is_full():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _is_full(self) -> bool:
        self.used += 1
        return self.free is not None and self.used > self.free


def _assert_nothing_torn(root: Path, before: dict[str, bytes], wanted: dict[str, bytes]) -> None:
    """Ledgers hold whole rows, every other file its old or its new bytes."""
    for path, data in small.tree_bytes(root).items():
        if path in small.LEDGERS or path == small.JOURNAL:
            assert wanted[path].startswith(data), path
            assert data.endswith(b"\n") or not data, path
        else:
            assert data in (before.get(path), wanted.get(path)), path


@pytest.mark.parametrize("cuts", [False, True], ids=["refused", "cut short"])
def test_a_disk_that_is_full_at_any_call_stops_nothing_and_all_is_caught_up(
    cuts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template, root = tmp_path / "template", tmp_path / "root"
    template.mkdir()
    small.make_run(template)
    small.put_batch(template)
    small.settle(small.copy_tree(template, root))
    before, wanted = small.tree_bytes(template), small.tree_bytes(root)
    free = trials = 0
    while True:
        small.copy_tree(template, root)
        with monkeypatch.context() as patched:
            disk, hearing = FullDisk(patched, cuts=cuts), Hearing()
            log = hearing.log(root)
            log.write("daemon.starting")  # as a daemon does, which has its log open by then
            reconciler = Reconciler(root, Settings(), log, now=lambda: small.NOW, monotonic=stepping())
            reconciler.mark(scan(root))
            disk.free = free
            settle_for_a_while(reconciler)
            is_full = disk.used > free
            _assert_nothing_torn(root, before, wanted)
            disk.free = None
            settle_for_a_while(reconciler)
            reconciler.checkpoint()
            reconciler.close()
        if not is_full:
            break
        assert hearing.of("daemon.error", "E-NOSPACE")
        assert not hearing.of("daemon.error", "E-BUG")
        found = small.tree_bytes(root)
        assert not small.difference(found, wanted), f"full after {free} calls:\n{small.difference(found, wanted)}"
        trials, free = trials + 1, free + 1
    print(f"full disk, {'short writes' if cuts else 'refused'}: {trials} calls that need space, all caught up")
    assert trials > 20


def test_a_checkpoint_on_a_full_disk_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small.make_run(tmp_path)
    small.put_batch(tmp_path)
    hearing = Hearing()
    reconciler = Reconciler(tmp_path, Settings(), hearing.log(tmp_path), now=lambda: small.NOW, monotonic=stepping())
    reconciler.mark(scan(tmp_path))
    settle_for_a_while(reconciler)
    with monkeypatch.context() as patched:
        FullDisk(patched, cuts=False).free = 0
        reconciler.checkpoint()
    assert hearing.of("daemon.error", "E-NOSPACE")
    reconciler.checkpoint()
    reconciler.close()
    assert json.loads((tmp_path / small.RUN / "journal/checkpoint.json").read_text()) == {"seq": 3}


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, half a megabyte large."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if os.getuid() != 0 or mount is None:
        pytest.skip("mounting a small file system takes root")
    command = [mount, "-t", "tmpfs", "-o", f"size={TMPFS_KB}k", "none", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_daemon_on_a_file_system_that_fills_up_says_so_and_catches_up(tiny_disk: Path) -> None:
    small.make_run(tiny_disk)
    small.put_order(tiny_disk, "outbox-r1-a1", minute=10)
    with living(tiny_disk) as daemon:
        small.put_result(tiny_disk, "outbox-r1-a1", small.build_result("outbox-r1-a1", [1, 2], discoveries=2))
        daemon.hearing.wait_for("result.applied")
        small.put_order(tiny_disk, "later-r1-a1", minute=20)
        small.put_result(tiny_disk, ".later", small.build_result("later-r1-a1", [3], note="n" * 9000))
        _fill(tiny_disk)
        os.rename(tiny_disk / small.result_path(".later"), tiny_disk / small.result_path("later-r1-a1"))
        daemon.hearing.wait_for("daemon.error", code="E-NOSPACE")
        (tiny_disk / "ballast").unlink()
        daemon.hearing.wait_for("result.applied", count=2)
        assert not daemon.hearing.of("daemon.error", "E-BUG")
    assert daemon.status == 0
    found = small.tree_bytes(tiny_disk)
    small.settle(tiny_disk)
    assert small.tree_bytes(tiny_disk) == found
    assert found[small.RECORD].count(b"\n") == 2
    assert found[small.task_path(3)].count(b"## Execution Log") == 1


def _fill(disk: Path) -> None:
    with open(disk / "ballast", "ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            while _fits(file, size):
                pass


def _fits(file: io.FileIO, size: int) -> bool:
    try:
        return file.write(b"b" * size) > 0
    except OSError:
        return False
