"""Facts land under a running daemon; the shared state follows, whatever the order they land in. Source: issue 2, design §3."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.e2e.living import SLUG, SmallRun, daemon, shapeupd


def test_a_result_that_lands_moves_the_board_and_the_ledgers_once(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        run.order("core-r1-a1")
        discovery = {"marker": "+", "line": "needs an index", "lens": "perf"}
        run.result("core-r1-a1", criteria=("adds an item", "rejects zero"), discoveries=[discovery])
        row = living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
        assert (row["tasks_updated"], row["acs_ticked"], row["unblocked"]) == (["TASK-1"], 2, ["TASK-2"])
        assert row["ms"] >= 0
        living.sync()
    assert "- [x] adds an item\n- [x] rejects zero" in run.text("tasks/TASK-1.md")
    assert run.text("tasks/TASK-1.md").count("## Execution Log") == 1
    index = run.text("tasks/_index.md")
    assert "| TASK-1 | One, ready or blocked | ✅ done | — |" in index
    assert "| TASK-2 | Two | ⬜ ready | TASK-1 |" in index
    assert "| TASK-3 | Three | 🚫 blocked | TASK-1, TASK-2 |" in index
    assert "1 / 3 tasks complete" in index
    assert run.text("discovery/ledger.md").count("+ [lens:perf] needs an index") == 1
    assert [leg["order_id"] for leg in run.rows("legs.jsonl")] == [f"{SLUG}/core-r1-a1"]
    assert [row["outcome"] for row in run.rows("receipts/ingest.jsonl")] == ["applied"]


def test_an_index_is_created_where_no_planner_wrote_one(tmp_path: Path) -> None:
    run = SmallRun(tmp_path, with_index=False)
    with daemon(tmp_path) as living:
        living.sync()
        run.result("bad-r1-a1", task_id="TASK-99")
        living.wait_for("result.rejected")
        living.sync()
        assert not (run.local / "tasks/_index.md").exists()
        run.order("core-r1-a1")
        run.result("core-r1-a1")
        living.wait_for("board.written")
        run.task("TASK-0", "ready", (), ("comes late",))
        living.wait_for("board.written", count=2)
        living.sync()
    rows = [line.split("|")[1:5] for line in run.text("tasks/_index.md").splitlines() if line.startswith("| TASK")]
    assert [(row[0].strip(), row[3].strip()) for row in rows] == [
        ("TASK-0", "⬜ ready"),
        ("TASK-1", "✅ done"),
        ("TASK-2", "⬜ ready"),
        ("TASK-3", "🚫 blocked"),
    ]


def test_a_result_waits_for_its_order_where_the_run_has_a_receipt(tmp_path: Path) -> None:
    run = SmallRun(tmp_path, with_receipt=True)
    with daemon(tmp_path) as living:
        run.result("core-r1-a1")
        living.wait_for("result.pending", f"{SLUG}/core-r1-a1")
        assert living.sync().items() >= {"settled": 0, "rejected": 0, "pending": 1}.items()
        assert run.status("TASK-1") == "ready"
        assert shapeupd("sync", "--repo", str(tmp_path)).returncode == 1
        run.order("core-r1-a1")
        living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
        living.sync()
    assert run.status("TASK-1") == "done"
    assert shapeupd("run", "--once", "--repo", str(tmp_path)).returncode == 0


def test_a_result_without_order_is_applied_with_a_warning_where_no_run_was_opened(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        run.result("core-r1-a1")
        row = living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
        assert "no order" in row["warnings"][0]
    assert run.rows("legs.jsonl") == []


def test_a_result_waits_for_its_dispatch_receipt_where_the_run_keeps_them(tmp_path: Path) -> None:
    run = SmallRun(tmp_path, with_receipt=True)
    run_id = "cart-20260301T090000Z-0a1b2c3d"
    other = {
        "at": "2026-03-01T10:00:01.000Z",
        "order_id": f"{SLUG}/orient",
        "run_id": run_id,
        "skill_invoked": "orient",
    }
    ledger = run.write("receipts/dispatch.jsonl", other)
    with ledger.open("a") as file:
        file.write("\n")
    with daemon(tmp_path) as living:
        run.order("core-r1-a1", run_id=run_id)
        run.result("core-r1-a1")
        row = living.wait_for("result.rejected", f"{SLUG}/core-r1-a1")
        assert row["code"] == "E-UNATTESTED"
        assert run.rejection("result-core-r1-a1")["code"] == "E-UNATTESTED"
        with ledger.open("a") as file:
            own = '{"at":"2026-03-01T10:00:02.000Z","order_id":"cart/core-r1-a1","skill_invoked":"task-executor"}\n'
            file.write(own)
        living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
        living.sync()
        assert not (run.local / "rejections/result-core-r1-a1.json").exists()
    assert run.rows("legs.jsonl")[0]["attested"] is True
    assert [row["outcome"] for row in run.rows("receipts/ingest.jsonl")] == ["rejected", "applied"]


def test_a_result_waits_for_its_task_file(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        run.order("core-r1-a1")
        run.result("core-r1-a1", task_id="TASK-9")
        assert living.wait_for("result.rejected")["code"] == "E-NO-TASK"
        run.task("TASK-9", "ready", (), ("late",))
        living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
    assert run.status("TASK-9") == "done"


def test_results_that_land_while_the_daemon_is_down_are_applied_in_the_order_of_their_orders(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    run.order("b-r1-a1", compiled_at="2026-03-01T10:00:00.000Z")
    run.order("a-r1-a1", compiled_at="2026-03-01T11:00:00.000Z")
    run.result("a-r1-a1")
    run.result("b-r1-a1")
    with daemon(tmp_path) as living:
        living.sync()
    log = run.text("tasks/TASK-1.md")
    assert log.index("(cart/b-r1-a1)") < log.index("(cart/a-r1-a1)")


def test_two_repositories_are_watched_by_one_process(tmp_path: Path) -> None:
    first, second = SmallRun(tmp_path / "one"), SmallRun(tmp_path / "two")
    with daemon(first.root, second.root) as living:
        first.result("core-r1-a1")
        second.result("core-r1-a1")
        living.wait_for("result.applied", count=2)
        assert living.stop() == 0
    assert (first.status("TASK-1"), second.status("TASK-1")) == ("done", "done")


def test_the_same_bytes_again_in_every_way_leave_the_tree_as_it_is(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    run.order("core-r1-a1")
    path = run.result("core-r1-a1", criteria=("adds an item",), discoveries=[{"marker": "~", "line": "odd"}])
    with daemon(tmp_path) as living:
        living.wait_for("result.applied")
        living.sync()
        before = run.state()
        os.utime(path)
        living.wait_for("result.duplicate", count=1)
        path.write_bytes(path.read_bytes())
        living.wait_for("result.duplicate", count=2)
        beside = path.with_suffix(".tmp")
        beside.write_bytes(path.read_bytes())
        os.replace(beside, path)
        living.wait_for("result.duplicate", count=3)
        living.sync()
        living.sync()
        assert run.state() == before
        assert living.stop() == 0
    with daemon(tmp_path) as living:
        living.sync()
        assert run.state() == before
        assert living.events("result.applied") == []


def test_new_bytes_of_an_answered_order_supersede_and_late_ones_are_tampering(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    run.order("core-r1-a1")
    with daemon(tmp_path) as living:
        run.result("core-r1-a1", criteria=("adds an item",))
        living.wait_for("result.applied")
        run.result("core-r1-a1", criteria=("adds an item", "rejects zero"))
        living.wait_for("result.superseded")
        run.order("core-r1-a2", compiled_at="2026-03-01T12:00:00.000Z")
        living.wait_for("order.admitted", f"{SLUG}/core-r1-a2")
        before = run.text("tasks/TASK-1.md")
        run.result("core-r1-a1", criteria=())
        assert living.wait_for("artifact.tampered")["code"] == "E-TAMPERED"
        living.sync()
        assert run.text("tasks/TASK-1.md") == before
        run.result("core-r1-a1", criteria=("adds an item", "rejects zero"))
        living.wait_for("result.duplicate")
        living.sync()
        assert not (run.local / "rejections/result-core-r1-a1.json").exists()


def test_commands_from_a_subfolder_and_a_linked_worktree_speak_about_the_main_worktree(tmp_path: Path) -> None:
    git = pytest.importorskip("subprocess")
    main = tmp_path / "main"
    env = {"GIT_CONFIG_GLOBAL": "/dev/null", "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    env |= {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (
        ["init", "-q", str(main)],
        ["-C", str(main), "commit", "-q", "--allow-empty", "-m", "x"],
        ["-C", str(main), "worktree", "add", "-q", str(tmp_path / "linked")],
    ):
        git.run(["git", *words], check=True, env=env)
    run = SmallRun(main)
    run.result("core-r1-a1")
    assert shapeupd("run", "--once", cwd=tmp_path / "linked").returncode == 0
    assert run.status("TASK-1") == "done"
    board = shapeupd("board", cwd=main / ".shapeup" / SLUG)
    assert "1 of 3 tasks done" in board.stdout
