"""Pipes, folders, long names and foreign files among ours: the daemon neither hangs nor gives up on the run. Source: targets 26, 29."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from daemon.reconciler import Reconciler
from daemon.scan import scan
from parsers.settings import Settings
from tests.crash import small_run as small
from tests.crash.hearing import Hearing, settle_for_a_while, stepping

CHECKPOINT = f"{small.RUN}/journal/checkpoint.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run with three results to settle."""
    small.make_run(tmp_path)
    small.put_batch(tmp_path)
    return tmp_path


def _settle(root: Path) -> Hearing:
    hearing = Hearing()
    reconciler = Reconciler(root, Settings(), hearing.log(root), now=lambda: small.NOW, monotonic=stepping())
    reconciler.mark(scan(root))
    settle_for_a_while(reconciler)
    reconciler.checkpoint()
    reconciler.close()
    assert not hearing.of("daemon.error", "E-BUG")
    return hearing


@pytest.mark.parametrize("path", [*small.LEDGERS, small.BOARD, small.task_path(1), small.JOURNAL, CHECKPOINT])
def test_a_pipe_in_the_place_of_a_file_of_ours_blocks_nothing(root: Path, path: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).unlink(missing_ok=True)
    os.mkfifo(root / path)
    _settle(root)
    assert stat.S_ISFIFO(os.lstat(root / path).st_mode)


def test_a_pipe_put_where_we_just_wrote_does_not_end_the_daemon(root: Path) -> None:
    reconciler = small.reconciler_of(root)
    reconciler.mark(scan(root))
    settle_for_a_while(reconciler)
    for path in (small.LEGS, small.task_path(1)):
        (root / path).unlink()
        os.mkfifo(root / path)
    reconciler.checkpoint()
    reconciler.close()
    assert (root / CHECKPOINT).exists()


def test_a_task_file_whose_name_leaves_no_room_for_a_temporary_one_is_edited(root: Path) -> None:
    name = f"TASK-9-{'n' * 240}.md"
    os.rename(root / small.task_path(1), root / small.RUN / "tasks" / name)
    _settle(root)
    assert b"status: done" in (root / small.RUN / "tasks" / name).read_bytes()
    assert not [path for path in os.listdir(root / small.RUN / "tasks") if "-tmp" in path]


def test_files_of_others_in_the_journal_folder_are_left_alone(root: Path) -> None:
    for name in ("notes.jsonl", "0.jsonl", "zzz.jsonl", "000009.jsonl.bak"):
        small.write(root, f"{small.RUN}/journal/{name}", "{}\n")
    assert len(_settle(root).of("result.applied")) == 3
    assert len(_settle(root).of("result.applied")) == 0
    assert (root / small.RUN / "journal/zzz.jsonl").read_text() == "{}\n"


@pytest.mark.parametrize("text", ["", "garbage", "[]", '{"seq": "x"}', '{"seq": null}', '{"seq": -5}', '{"seq": 99}'])
def test_a_checkpoint_that_says_nothing_true_costs_nothing(root: Path, text: str) -> None:
    small.settle(root)
    wanted = small.tree_bytes(root)
    (root / CHECKPOINT).write_text(text)
    _settle(root)
    assert not small.difference(small.tree_bytes(root), wanted)


def test_permissions_of_a_rewritten_file_stay_as_they_were(root: Path) -> None:
    modes = {small.task_path(1): 0o664, small.task_path(2): 0o600, small.BOARD: 0o444}
    for path, mode in modes.items():
        (root / path).chmod(mode)
    _settle(root)
    assert {path: stat.S_IMODE(os.lstat(root / path).st_mode) for path in modes} == modes
