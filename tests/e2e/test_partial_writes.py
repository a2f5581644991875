"""Writers that take their time: exactly one accept and no refusal, however a file comes into being. Source: targets 12, ruling C12."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.living import SLUG, Daemon, SmallRun, daemon

PAUSE = threading.Event()  # never set: a writer's own pace is what is tested, so it waits on nothing


def _in_seven_chunks(target: Path, data: bytes) -> None:
    size = len(data) // 7 + 1
    with target.open("wb", buffering=0) as file:
        for at in range(0, len(data), size):
            file.write(data[at : at + size])
            PAUSE.wait(0.05)


def _truncate_and_rewrite(target: Path, data: bytes) -> None:
    target.write_bytes(b"")
    PAUSE.wait(0.05)
    target.write_bytes(data[: len(data) // 2])
    PAUSE.wait(0.05)
    target.write_bytes(data)


def _like_vim(target: Path, data: bytes) -> None:
    probe = target.with_name("4913")
    probe.touch()
    probe.unlink()
    swap = target.with_name(f".{target.name}.swp")
    swap.write_bytes(b"swap")
    if target.exists():
        os.rename(target, target.with_name(f"{target.name}~"))
    target.write_bytes(data)
    target.with_name(f"{target.name}~").unlink(missing_ok=True)
    swap.unlink()


def _like_emacs(target: Path, data: bytes) -> None:
    lock = target.with_name(f".#{target.name}")
    lock.symlink_to("someone@host.1")
    auto = target.with_name(f"#{target.name}#")
    auto.write_bytes(data[:10])
    target.write_bytes(data)
    auto.unlink()
    lock.unlink()


def _temp_and_rename(target: Path, data: bytes) -> None:
    beside = target.with_name(f"{target.name}.tmp")
    beside.write_bytes(data[:20])
    PAUSE.wait(0.02)
    beside.write_bytes(data)
    os.replace(beside, target)


def _moved_away_and_back(target: Path, data: bytes) -> None:
    elsewhere = target.parents[3] / "elsewhere.json"
    target.write_bytes(data[:20])
    os.rename(target, elsewhere)
    elsewhere.write_bytes(data)
    os.rename(elsewhere, target)


WRITERS: tuple[Callable[[Path, bytes], None], ...] = (
    _in_seven_chunks,
    _truncate_and_rewrite,
    _like_vim,
    _like_emacs,
    _temp_and_rename,
    _moved_away_and_back,
)


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__.strip("_"))
def test_a_slow_or_roundabout_writer_gets_one_accept_and_no_refusal(
    write: Callable[[Path, bytes], None], tmp_path: Path
) -> None:
    run = SmallRun(tmp_path)
    run.order("core-r1-a1")
    (run.local / "results").mkdir()
    value = run.result_value("core-r1-a1", criteria=("adds an item",))
    with daemon(tmp_path) as living:
        write(run.local / "results/core-r1-a1.json", json.dumps(value, indent=2).encode())
        living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
        living.sync()
        _assert_one_accept(living)
    assert run.text("tasks/TASK-1.md").count("## Execution Log") == 1
    assert not list((run.local / "rejections").glob("*")) if (run.local / "rejections").exists() else True


def _assert_one_accept(living: Daemon) -> None:
    assert len(living.events("result.applied")) == 1
    assert living.events("result.rejected") == []
    assert living.events("result.superseded") == []


def test_a_file_that_stays_broken_is_refused_and_judged_anew_when_it_changes(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    run.order("core-r1-a1")
    with daemon(tmp_path) as living:
        run.write("results/core-r1-a1.json", '{"schema_version": 1,')
        assert living.wait_for("result.rejected")["code"] == "E-JSON"
        run.result("core-r1-a1")
        living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
        living.sync()
    assert not (run.local / "rejections/result-core-r1-a1.json").exists()


def test_sync_waits_for_a_file_that_is_still_being_judged(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        run.write("results/core-r1-a1.json", "{")
        assert living.sync().items() >= {"settled": 0, "rejected": 1, "pending": 0}.items()
