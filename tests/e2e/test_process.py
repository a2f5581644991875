"""The daemon as a process: one per repository, clean ends, and the commands that ask it. Source: cli §1, §2, targets 10, rulings H8, L4."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from daemon.sockets import ask
from tests.e2e.living import COMMAND, SLUG, SmallRun, daemon, shapeupd


def test_a_signal_ends_it_cleanly_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    SmallRun(tmp_path)
    for number, status in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
        with daemon(tmp_path) as living:
            document = json.loads((tmp_path / ".shapeup/daemon.json").read_text())
            assert document["pid"] == living.process.pid
            assert Path(document["socket"]).exists()
            assert living.stop(number) == status
            assert living.events("daemon.stopping")
        assert not (tmp_path / ".shapeup/daemon.json").exists()
        assert not Path(document["socket"]).exists()


def test_a_second_daemon_is_refused_and_names_the_first(tmp_path: Path) -> None:
    SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        for words in (["run"], ["run", "--once"]):
            second = shapeupd(*words, "--repo", str(tmp_path))
            assert second.returncode == 7
            assert str(living.process.pid) in second.stderr
        living.stop(signal.SIGKILL)
    with daemon(tmp_path) as living:
        assert living.sync()["rejected"] == 0


def test_status_shows_the_runs_with_and_without_a_daemon(tmp_path: Path) -> None:
    run = SmallRun(tmp_path, with_receipt=True)
    run.order("core-r1-a1")
    without = shapeupd("status", "--json", "--repo", str(tmp_path))
    assert without.returncode == 3
    assert json.loads(without.stdout)["runs"][0]["live_orders"] == [f"{SLUG}/core-r1-a1"]
    with daemon(tmp_path) as living:
        living.sync()
        document = json.loads(shapeupd("status", "--json", "--repo", str(tmp_path)).stdout)
        assert document["schema"] == 1
        assert document["daemon"]["pid"] == living.process.pid
        assert document["runs"][0]["live_orders"] == [f"{SLUG}/core-r1-a1"]
        run.result("core-r1-a1")
        living.wait_for("result.applied")
        document = json.loads(shapeupd("status", "--json", "--repo", str(tmp_path)).stdout)
        assert document["runs"][0]["live_orders"] == []
        assert document["latency"]["n"] == 1
        assert document["counters"]["result.applied"] == 1


def test_ingest_asks_the_daemon_or_does_it_alone(tmp_path: Path) -> None:
    run = SmallRun(tmp_path, with_receipt=True)
    path = run.result("core-r1-a1", criteria=("adds an item",))
    order = run.order("other-r1-a1")
    refused = shapeupd("ingest", str(path))
    assert refused.returncode == 1
    assert "E-NO-ORDER" in refused.stderr
    with daemon(tmp_path) as living:
        living.sync()
        again = shapeupd("ingest", str(path), "--no-receipt-check", "--json")
        assert again.returncode == 0, again.stderr
        document = json.loads(again.stdout)
        assert (document["outcome"], document["acs_ticked"], document["unblocked"]) == ("applied", 1, ["TASK-2"])
        assert json.loads(shapeupd("ingest", str(path), "--json").stdout)["outcome"] == "duplicate"
    assert shapeupd("ingest", "--order", str(order)).returncode == 2
    run.result("other-r1-a1", task_id="TASK-2")
    assert shapeupd("ingest", "--order", str(order)).returncode == 0
    assert run.status("TASK-2") == "done"
    assert shapeupd("ingest", str(order)).returncode == 2
    assert shapeupd("ingest", str(tmp_path / "nothing.json")).returncode == 2


def test_the_log_is_followed_while_it_grows(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        living.sync()
        command = [*COMMAND, "log", "-f", "--json", "--event", "result.*", "--repo", str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
            assert follower.stdout is not None
            run.result("core-r1-a1")
            row = json.loads(follower.stdout.readline())
            assert (row["event"], row["subject"]) == ("result.applied", f"{SLUG}/core-r1-a1")
            follower.send_signal(signal.SIGINT)
            assert follower.wait(30) in (0, 130)


@pytest.mark.parametrize("with_daemon", [False, True], ids=["alone", "beside a daemon"])
def test_rebuild_brings_back_what_was_lost_to_the_byte(with_daemon: bool, tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    run.order("core-r1-a1")
    run.result("core-r1-a1", criteria=("adds an item",), discoveries=[{"marker": "+", "line": "x"}])
    assert shapeupd("run", "--once", "--repo", str(tmp_path)).returncode == 0
    before = run.state()
    assert shapeupd("rebuild", "--verify", "--repo", str(tmp_path)).returncode == 0

    def damage_and_rebuild() -> None:
        (run.local / "legs.jsonl").unlink()
        (run.local / "tasks/TASK-2.md").unlink()
        ledger = run.local / "discovery/ledger.md"
        ledger.write_bytes(ledger.read_bytes()[:-9])
        task = run.local / "tasks/TASK-1.md"
        task.write_text(task.read_text().split("\n\n## Execution Log")[0].replace("[x]", "[ ]"))
        verify = shapeupd("rebuild", "--verify", "--json", "--repo", str(tmp_path))
        assert verify.returncode == 1
        named = {row["path"] for row in json.loads(verify.stdout)["repairs"]}
        wanted = {"legs.jsonl", "tasks/TASK-1.md", "tasks/TASK-2.md", "discovery/ledger.md"}
        assert {f".shapeup/{SLUG}/{name}" for name in wanted} <= named
        assert shapeupd("rebuild", "--repo", str(tmp_path)).returncode == 0
        assert shapeupd("rebuild", "--verify", "--repo", str(tmp_path)).returncode == 0

    if with_daemon:
        with daemon(tmp_path) as living:
            living.sync()
            damage_and_rebuild()
            living.sync()
    else:
        damage_and_rebuild()
    assert run.state() == before


def test_a_settings_file_with_a_mistake_stops_the_start_and_an_agents_one_does_not(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    (tmp_path / ".shapeupd.toml").write_text('[ingest]\natestation = "off"\n')
    refused = shapeupd("run", "--once", "--repo", str(tmp_path))
    assert refused.returncode == 2
    assert 'write "ingest.attestation"' in refused.stderr
    (tmp_path / ".shapeupd.toml").write_text('[ingest]\nattestation = "require"\n')
    (tmp_path / ".shapeup/shapeupd.toml").write_text('[ingest]\nattestation = "off"\n')
    run.order("core-r1-a1")
    run.result("core-r1-a1")
    once = shapeupd("run", "--once", "--repo", str(tmp_path))
    assert once.returncode == 1
    assert "may only tighten" in once.stderr
    assert run.rejection("result-core-r1-a1")["code"] == "E-UNATTESTED"


def test_the_demo_shows_what_it_claims(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    demo = subprocess.run([*COMMAND, "demo"], capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "Every step showed what it claims." in demo.stdout
    assert not list(tmp_path.glob("shapeupd-demo-*"))
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.parametrize("with_daemon", [False, True], ids=["alone", "beside a daemon"])
def test_ingest_waits_for_a_file_that_may_still_be_written_and_then_says_what_is_wrong(
    with_daemon: bool, tmp_path: Path
) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) if with_daemon else nullcontext():
        told = shapeupd("ingest", str(run.write("results/core-r1-a1.json", '{"schema_version": 1,')))
    assert told.returncode == 1, told.stderr
    assert "E-JSON" in told.stderr


def test_a_damaged_journal_is_said_and_a_rebuild_doubles_nothing(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    for n in range(1, 4):
        run.order(f"core-r1-a{n}")
        run.result(f"core-r1-a{n}", task_id=f"TASK-{n}")
        assert shapeupd("run", "--once", "--repo", str(tmp_path)).returncode == 0
    journal = run.local / "journal/000001.jsonl"
    first, second, third = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + b"X" + second[1:] + third)
    (run.local / "legs.jsonl").unlink()
    for _ in range(2):
        told = shapeupd("rebuild", "--repo", str(tmp_path))
        assert told.returncode == 1
        assert "journal/000001.jsonl:2: E-JOURNAL" in told.stderr
        assert [row["order_id"] for row in run.rows("legs.jsonl")] == ["cart/core-r1-a1", "cart/core-r1-a3"]
    with daemon(tmp_path) as living:
        assert living.wait_for("daemon.error")["code"] == "E-JOURNAL"
    shutil.rmtree(run.local / "journal")
    verify = shapeupd("rebuild", "--verify", "--repo", str(tmp_path))
    assert verify.returncode == 1
    assert "there is no journal" in verify.stderr


def test_a_planners_index_that_is_lost_comes_back_with_the_planners_text(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    index = run.local / "tasks/_index.md"
    index.write_text(index.read_text() + "\nTalk to the shop before TASK-3.\n")
    run.result("core-r1-a1")
    assert shapeupd("run", "--once", "--repo", str(tmp_path)).returncode == 0
    before = index.read_bytes()
    for damage in (lambda: index.unlink(), lambda: index.write_bytes(b""), lambda: index.write_bytes(b"\0" * 40)):
        damage()
        assert shapeupd("rebuild", "--verify", "--repo", str(tmp_path)).returncode == 1
        assert shapeupd("run", "--once", "--repo", str(tmp_path)).returncode == 0
        assert index.read_bytes() == before


def test_an_idle_daemon_says_nothing_and_its_own_files_are_no_news(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    (tmp_path / ".shapeupd.toml").write_text("[watch]\nrescan_s = 0.2\n")
    with daemon(tmp_path) as living:
        run.result("core-r1-a1")
        living.wait_for("result.applied")
        living.sync()
        status = ask(tmp_path, "status")
        assert status is not None
        rescans = status["counters"]["watch.rescans"]  # type: ignore[index]
        said = len(living.rows)
        while (now := ask(tmp_path, "status")) and now["counters"]["watch.rescans"] < rescans + 5:  # type: ignore[index]
            pass  # five timed rescans, counted by the daemon itself
        assert living.rows[said:] == []


def test_a_folder_in_a_results_place_is_refused_by_a_running_daemon(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    (run.local / "results").mkdir()
    with daemon(tmp_path) as living:
        living.sync()
        (run.local / "results/core-r1-a1.json").mkdir()
        assert living.wait_for("result.rejected")["code"] == "E-NOT-A-FILE"


@pytest.mark.parametrize("with_daemon", [False, True], ids=["alone", "beside a daemon"])
def test_rebuild_names_a_link_in_a_files_place_and_keeps_to_the_settings(with_daemon: bool, tmp_path: Path) -> None:
    run = SmallRun(tmp_path, with_index=False)
    (tmp_path / ".shapeupd.toml").write_text("[board]\nwrite_index = false\n")
    run.result("core-r1-a1")
    assert shapeupd("run", "--once", "--repo", str(tmp_path)).returncode == 0
    with daemon(tmp_path) if with_daemon else nullcontext():
        assert shapeupd("rebuild", "--verify", "--repo", str(tmp_path)).returncode == 0
        (run.local / "tasks/TASK-1.md").rename(tmp_path / "outside.md")
        (run.local / "tasks/TASK-1.md").symlink_to(tmp_path / "outside.md")
        for words in (["--verify"], []):
            told = shapeupd("rebuild", *words, "--repo", str(tmp_path))
            assert told.returncode == 1, told.stderr
            assert "E-SYMLINK" in told.stderr
