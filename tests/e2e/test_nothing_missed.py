"""Nothing that lands is missed, however the events are lost. Source: targets 1, 2, 11."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

from tests.e2e.living import SLUG, SmallRun, daemon

FLOOD = 30_000  # more than the kernel's queue usually holds (16,384)
QUEUE = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


def test_thirty_thousand_files_made_while_the_daemon_is_stopped_are_all_seen(tmp_path: Path) -> None:
    run = SmallRun(tmp_path, with_index=False)
    run.order("core-r1-a1")
    with daemon(tmp_path) as living:
        run.result("core-r1-a1")
        living.wait_for("result.applied")
        living.sync()
        os.kill(living.process.pid, signal.SIGSTOP)
        for n in range(FLOOD):
            (run.local / f"tasks/TASK-1{n:05d}.md").write_text(f"---\nid: TASK-1{n:05d}\nstatus: ready\n---\n")
        os.kill(living.process.pid, signal.SIGCONT)
        living.sync()
        if QUEUE < FLOOD:
            assert living.events("watch.overflow"), "the queue did not run over: the test proves nothing here"
    rows = [line for line in run.text("tasks/_index.md").splitlines() if line.startswith("| TASK-")]
    assert len(rows) == FLOOD + 3


def test_results_are_found_after_the_tree_was_removed_and_made_again(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        run.result("core-r1-a1")
        living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
        living.sync()
        os.rename(tmp_path / ".shapeup", tmp_path / "old")  # the log is written meanwhile: no moment finds it empty
        again = SmallRun(tmp_path)
        again.result("core-r1-a1")
        living.wait_for("result.applied", f"{SLUG}/core-r1-a1", count=2)
        living.sync()
        assert again.status("TASK-1") == "done"
        assert again.text("tasks/TASK-1.md").count("## Execution Log") == 1


def test_a_run_can_be_removed_under_the_daemon_which_puts_nothing_into_its_folders_meanwhile(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        for lap in range(1, 4):
            run.result("core-r1-a1")
            living.wait_for("result.applied", count=lap)
            living.sync()
            shutil.rmtree(run.local)  # raises where something was put back
            living.sync()
            assert not run.local.exists()
            SmallRun(tmp_path)
    assert run.status("TASK-1") == "ready"


def test_results_are_found_after_the_tree_was_moved_away_and_back(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        living.sync()
        os.rename(tmp_path / ".shapeup", tmp_path / "elsewhere")
        (tmp_path / "elsewhere" / SLUG / "results").mkdir()
        (tmp_path / "elsewhere" / SLUG / "results/core-r1-a1.json").write_text(
            '{"schema_version":1,"order_id":"cart/core-r1-a1","status":"done",'
            '"task_results":[{"task_id":"TASK-1","status":"done"}]}'
        )
        shutil.rmtree(tmp_path / ".shapeup", ignore_errors=True)
        os.rename(tmp_path / "elsewhere", tmp_path / ".shapeup")
        living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
    assert run.status("TASK-1") == "done"
