"""The daemon as a process: one per repository, clean ends, and the commands that ask it. Source: cli §1, §2, targets 10, rulings H8, L4."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

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
