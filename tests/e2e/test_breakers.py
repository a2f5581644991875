"""Breakers in a living daemon: one trip, one proposal, one hammer order, whatever dies; what may still be dispatched. Source: design §5, protocol §7, rulings F."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from daemon.boot_clock import read_clocks
from parsers.addresses import mint_run_id
from parsers.times import render_time
from tests.e2e.living import SLUG, Daemon, Row, SmallRun, daemon, shapeupd

BUDGET_S = 2.0


def ended(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return shapeupd("--repo", os.fspath(root), *words)


def open_run(root: Path, budget_s: float | None = BUDGET_S, *, ago_s: float = 0.0, **config: Any) -> SmallRun:
    """A run that was opened so many seconds ago."""
    run = SmallRun(root)
    started_at = render_time(read_clocks().wall - timedelta(seconds=ago_s))
    receipt = {"slug": SLUG, "started_at": started_at, "run_id": mint_run_id(SLUG, started_at, None)}
    run.write("receipt.json", {**receipt, "config": {"wall_clock_budget_s": budget_s, **config}})
    return run


def trips(run: SmallRun, breaker: str = "deadline", status: str = "trip") -> list[Row]:
    return [row for row in run.rows("breakers.jsonl") if row["breaker"] == breaker and row["status"] == status]


def hammers(run: SmallRun) -> list[str]:
    folder = run.local / "orders"
    return sorted(path.name for path in folder.glob("hammer-*.json")) if folder.exists() else []


def assert_tripped_once(run: SmallRun) -> None:
    assert len(trips(run)) == 1
    assert len(run.rows("gate-h.jsonl")) == 1
    assert hammers(run) == ["hammer-deadline-r1.json"]
    assert "GATE H" in run.text("gate-h.md")


# --- the deadline ----------------------------------------------------------------------------------------------------


def test_a_deadline_trips_once_and_what_may_still_be_dispatched_is(tmp_path: Path) -> None:
    run = open_run(tmp_path)
    run.order("cart-r1-a1")
    with daemon(tmp_path) as living:
        warned = living.wait_for("breaker.warned")
        tripped = living.wait_for("breaker.tripped", SLUG)
        assert (warned["breaker"], tripped["breaker"], tripped["budget_s"]) == ("deadline", "deadline", BUDGET_S)
        queued = living.wait_for("gate_h.queued")
        assert queued["order"] == f".shapeup/{SLUG}/orders/hammer-deadline-r1.json"
        living.wait_for("order.admitted", f"{SLUG}/hammer-deadline-r1")
        run.order("cart-r1-a2")
        refused = living.wait_for("order.refused")
        assert refused["code"] == "E-BREAKER"
        run.order("evaluate-r1", worker="spec-evaluator", operation="evaluate")
        run.order("hunt-r1", worker="qa-edge-hunter", operation="hunt")
        living.wait_for("order.admitted", f"{SLUG}/evaluate-r1")
        living.wait_for("order.admitted", f"{SLUG}/hunt-r1")
        run.result("cart-r1-a1")  # compiled before the trip
        living.wait_for("result.applied", f"{SLUG}/cart-r1-a1")
        living.sync()
    assert run.rejection("order-cart-r1-a2")["code"] == "E-BREAKER"
    fix = run.rejection("order-cart-r1-a2")["errors"][0]["fix"]
    assert "gate-h.md" in fix
    assert "--extend" in fix
    assert_tripped_once(run)
    row = run.rows("gate-h.jsonl")[0]
    assert row["open_orders"] == [f"{SLUG}/cart-r1-a1"]
    order = json.loads(run.text("orders/hammer-deadline-r1.json"))
    assert order["worker"] == "scope-hammer"
    assert order["payload"]["breaker"] == "deadline"
    assert "the deadline breaker has tripped" in run.text("gate-h.md").lower()


@pytest.mark.parametrize("moment", ["before", "at", "after"])
def test_a_kill_around_the_deadline_makes_no_second_trip(tmp_path: Path, moment: str) -> None:
    run = open_run(tmp_path, budget_s=0.8)
    run.order("cart-r1-a1")
    with daemon(tmp_path) as living:
        if moment == "at":
            living.wait_for("breaker.warned")
        elif moment == "after":
            living.wait_for("breaker.tripped")
        living.stop(signal.SIGKILL)
    with daemon(tmp_path) as living:
        living.wait_for("order.admitted", f"{SLUG}/hammer-deadline-r1")
        living.stop(signal.SIGKILL)
    with daemon(tmp_path) as living:
        run.order("cart-r1-a2")
        living.wait_for("order.refused")
        living.sync()
        assert living.events("breaker.tripped") == []
        assert f"{SLUG}/cart-r1-a1" in {row["subject"] for row in living.events("order.admitted")}
    assert_tripped_once(run)
    assert len(trips(run, status="warn")) <= 1


def test_what_was_dropped_past_the_deadline_while_nobody_watched_is_refused_and_what_was_there_before_stays(
    tmp_path: Path,
) -> None:
    run = open_run(tmp_path, budget_s=600, ago_s=660)
    before = run.order("cart-r1-a1")
    at = (read_clocks().wall - timedelta(seconds=300)).timestamp()
    os.utime(before, (at, at))
    run.order("cart-r1-a2")
    assert ended(tmp_path, "run", "--once").returncode == 1  # something stands rejected
    assert [run.rejection("order-cart-r1-a2")["code"], len(trips(run))] == ["E-BREAKER", 1]
    assert not (run.local / "rejections/order-cart-r1-a1.json").exists()
    policy = json.loads(ended(tmp_path, "check", "--print-policy").stdout)
    assert [contract["order_id"] for contract in policy["contracts"]] == [f"{SLUG}/cart-r1-a1"]


def test_a_run_that_is_closed_never_trips(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=1, ago_s=60)
    run.write("harness-run.md", "---\nstatus: shipped\nclosed_at: 2026-03-01T10:00:00.000Z\n---\n")
    ended(tmp_path, "run", "--once")
    assert run.rows("breakers.jsonl") == []
    assert hammers(run) == []


def test_a_hammer_order_that_stands_there_is_left_as_it_is(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=1, ago_s=60)
    own = run.order("hammer-deadline-r1", worker="scope-hammer", operation="hammer").read_bytes()
    ended(tmp_path, "run", "--once")
    assert len(trips(run)) == 1
    assert (run.local / "orders/hammer-deadline-r1.json").read_bytes() == own


def test_a_frozen_daemon_trips_when_it_wakes(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=1.0)
    with daemon(tmp_path) as living:
        living.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, living.process.pid, os.WSTOPPED | os.WNOWAIT)
        waiter = subprocess.run([sys.executable, "-c", "import select; select.select([], [], [], 1.2)"], check=True)
        assert waiter.returncode == 0
        living.process.send_signal(signal.SIGCONT)
        living.wait_for("gate_h.queued")
    assert_tripped_once(run)


# --- more time -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lives", [True, False])
def test_an_extension_opens_the_run_again(tmp_path: Path, lives: bool) -> None:
    run = open_run(tmp_path, budget_s=1, ago_s=60)
    run.order("cart-r1-a1")
    ended(tmp_path, "run", "--once")
    assert run.rejection("order-cart-r1-a1")["code"] == "E-BREAKER"
    living = Daemon(tmp_path) if lives else None
    try:
        if living:
            living.wait_for("daemon.ready")
        ran = ended(tmp_path, "budget", SLUG, "--extend", "2h", "--by", "ada", "--json")
        assert ran.returncode == 0, ran
        document = json.loads(ran.stdout)
        assert (document["budget_s"], document["status"]) == (7201, "ok")
        assert [grant["by"] for grant in document["extensions"]] == ["ada"]
        if living:
            living.wait_for("order.admitted", f"{SLUG}/cart-r1-a1")
            living.wait_for("breaker.extended")
    finally:
        if living:
            living.stop()
    assert not (run.local / "rejections/order-cart-r1-a1.json").exists()
    assert ended(tmp_path, "rebuild", "--verify").returncode == 0


def test_an_extension_needs_a_name_a_run_and_a_budget(tmp_path: Path) -> None:
    open_run(tmp_path, budget_s=None)
    for words, said in (
        (("--extend", "2h"), "--by NAME"),
        (("--by", "ada"), "--extend"),
        (("--extend", "-5m", "--by", "ada"), "--extend"),
        (("--extend", "2h", "--by", "ada"), "no wall-clock budget"),
    ):
        ran = ended(tmp_path, "budget", SLUG, *words)
        assert ran.returncode in (1, 2)
        assert said in ran.stderr


def test_a_forged_extension_grants_nothing_and_a_forged_trip_binds(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=3600, ago_s=10)
    run_id = json.loads(run.text("receipt.json"))["run_id"]
    forged = {
        "at": "2026-03-01T09:00:00.000Z",
        "run_id": run_id,
        "breaker": "deadline",
        "scope_id": None,
        "round": None,
    }
    grant = {**forged, "status": "extend", "added_s": 9999, "by": "ada", "budget_s": 13599}
    with daemon(tmp_path) as living:
        living.sync()
        run.write("breakers.jsonl", json.dumps(grant) + "\n")
        living.wait_for("artifact.tampered")
        assert json.loads(ended(tmp_path, "budget", SLUG, "--json").stdout)["budget_s"] == 3600
        trip = {**forged, "status": "trip", "budget_s": 3600, "reason": "enough"}
        run.write("breakers.jsonl", json.dumps(grant) + "\n" + json.dumps(trip) + "\n")
        living.wait_for("gate_h.queued")
        run.order("cart-r1-a1")
        living.wait_for("order.refused")


def test_a_receipt_that_grants_itself_more_is_tampering(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=3600)
    receipt = json.loads(run.text("receipt.json"))
    with daemon(tmp_path) as living:
        living.sync()
        run.write("receipt.json", {**receipt, "config": {"wall_clock_budget_s": 86400}})
        note = living.wait_for("artifact.tampered")["note"]
        assert "raised by hand" in note
        assert json.loads(ended(tmp_path, "budget", SLUG, "--json").stdout)["budget_s"] == 3600


def test_a_receipt_that_is_taken_away_is_told(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=3600)
    with daemon(tmp_path) as living:
        living.sync()
        (run.local / "receipt.json").unlink()
        assert "breakers are blind" in living.wait_for("artifact.tampered")["note"]


@pytest.mark.parametrize("started_at", [None, "soon", 7])
def test_a_receipt_without_a_start_is_told_and_never_trips(tmp_path: Path, started_at: object) -> None:
    run = open_run(tmp_path, budget_s=1)
    run.write("receipt.json", {"slug": SLUG, "started_at": started_at, "config": {"wall_clock_budget_s": 1}})
    with daemon(tmp_path) as living:
        told = living.wait_for("daemon.error", f".shapeup/{SLUG}/receipt.json:$.started_at")
        assert "deadline breaker is blind" in told["error"]
        run.order("cart-r1-a1")
        living.wait_for("order.admitted")
    assert run.rows("breakers.jsonl") == []


# --- rounds and attempts ---------------------------------------------------------------------------------------------


def evaluated(run: SmallRun, round_: int, overall: str) -> None:
    run.order(f"evaluate-r{round_}", worker="spec-evaluator", operation="evaluate")
    bugs = [{"task_id": "TASK-1", "criterion": "adds an item", "remedy": "add it"}] if overall == "FAIL" else []
    verdict = {"overall": overall, "criteria": [], "bugs": bugs}
    value = run.result_value(f"evaluate-r{round_}", worker="spec-evaluator", verdict=verdict)
    del value["task_results"]
    run.write(f"results/evaluate-r{round_}.json", value)


def test_a_last_round_that_fails_trips_the_outer_breaker(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=None, max_rounds=1)
    run.order("cart-r1-a1")
    with daemon(tmp_path) as living:
        run.result("cart-r1-a1")
        living.wait_for("result.applied", f"{SLUG}/cart-r1-a1")
        living.sync()
        evaluated(run, 1, "FAIL")
        tripped = living.wait_for("breaker.tripped")
        assert (tripped["breaker"], tripped["round"], tripped["cause"]) == ("outer", 1, "max-rounds")
        run.order("cart-r2-a1", operation="fix")
        living.wait_for("order.refused")
        living.sync()
    assert hammers(run) == ["hammer-outer-r1.json"]
    page = run.text("gate-h.md")
    assert "TASK-1: adds an item" in page
    assert "add it" not in page  # never remedies


def trial(run: SmallRun, scope: str, attempt: int, status: str) -> Row:
    score = {"regressions": 0, "fixtures_passed": 1, "fixtures_total": 2, "db_probe": None}
    row = {"scope_id": scope, "trial": attempt, "round": 1, "attempt": attempt, "status": status, "score": score}
    return row | {"at": "2026-03-01T10:00:00.000Z"}


def test_a_scope_that_brings_no_progress_trips_alone(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=None, no_progress_k=2)
    for scope in ("cart", "till"):
        (tmp_path / "shapeup" / SLUG / "scopes").mkdir(parents=True, exist_ok=True)
        (tmp_path / "shapeup" / SLUG / "scopes" / f"{scope}.md").write_text(f"---\nscope_id: {scope}\n---\n")
    rows = [trial(run, "cart", 1, "kept"), trial(run, "cart", 2, "reverted"), trial(run, "cart", 3, "reverted")]
    with daemon(tmp_path) as living:
        run.order("cart-r1-a3")
        living.wait_for("order.admitted")
        run.write("t0/trials.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        tripped = living.wait_for("breaker.tripped", "cart")
        assert (tripped["breaker"], tripped["cause"]) == ("inner", "stagnant")
        run.order("cart-r1-a4")
        living.wait_for("order.refused")
        run.order("till-r1-a1")
        living.wait_for("order.admitted", f"{SLUG}/till-r1-a1")
    assert hammers(run) == ["hammer-inner-cart-r1.json"]
    assert len(trips(run, "inner")) == 1


def test_silence_warns_once_and_again_after_something_landed(tmp_path: Path) -> None:
    (tmp_path / ".shapeupd.toml").write_text("[breakers]\nsilence_min = 0.01\n")
    run = open_run(tmp_path, budget_s=None)
    with daemon(tmp_path) as living:
        living.wait_for("breaker.warned")
        run.order("cart-r1-a1")
        warned = living.wait_for("breaker.warned", count=2)
        assert warned["breaker"] == "silence"
        run.order("cart-r1-a2")
        living.wait_for("order.admitted", f"{SLUG}/cart-r1-a2")  # it never refuses
    rows = trips(run, "silence", "warn")
    assert len({row["since"] for row in rows}) == len(rows) >= 2


# --- rules -----------------------------------------------------------------------------------------------------------


def test_an_order_that_a_rule_refuses_opens_nothing_anywhere_and_is_admitted_once_it_may(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".shapeupd.toml").write_text('[rules]\nprofile = "enforce"\nR-28 = "off"\nR-29 = "off"\n')
    run = open_run(tmp_path, budget_s=None)
    substrate = {"allowed": ["src/**"], "shared": [], "append_only": [], "frozen": []}
    with daemon(tmp_path) as living:
        run.order("cart-r1-a1", substrate=substrate)
        assert living.wait_for("order.rejected")["code"] == "R-27"
        living.sync()
        for name in ("code-surface", "discovered-seed", "hill-signal", "spike-x"):
            shown = json.loads(ended(tmp_path, "check", "--print-policy").stdout)
            assert shown["contracts"] == []
            assert (tmp_path / ".shapeup/policy.json").exists()
            run.write(f"orient/{name}.md", "x\n")
        for path in ("spec/usecases/UC-1.md", "project-profile.md", "wiring-map.md", "scopes/cart.md"):
            target = tmp_path / "shapeup" / SLUG / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("---\nscope_id: cart\n---\n")
        living.wait_for("order.admitted", f"{SLUG}/cart-r1-a1")
        assert len(living.events("order.rejected")) == 1
        living.sync()
        living.stop()
    assert not (run.local / "rejections/order-cart-r1-a1.json").exists()
    (run.local / "orient/spike-x.md").unlink()
    with daemon(tmp_path) as living:  # what was admitted stays so
        living.wait_for("order.admitted", f"{SLUG}/cart-r1-a1")
        living.sync()
        assert living.events("order.rejected") == []


# --- seen from outside -----------------------------------------------------------------------------------------------


def test_status_and_gate_h_show_clock_trip_and_open_gate(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=1, ago_s=60)
    run.order("cart-r1-a1")
    asked = ended(tmp_path, "gate", "resolve", "L1b", "--slug", SLUG, "--preset", "guarded")
    assert asked.returncode == 4
    with daemon(tmp_path):
        alive = json.loads(ended(tmp_path, "status", "--json").stdout)["runs"][0]
    dead = json.loads(ended(tmp_path, "status", "--json").stdout)["runs"][0]
    for told in (alive, dead):
        assert told["clock"]["status"] == "trip"
        assert [trip["breaker"] for trip in told["trips"]] == ["deadline"]
        assert [gate["gate"] for gate in told["open_gates"]] == ["L1b"]
    ran = ended(tmp_path, "gate-h", SLUG, "--json")
    document = json.loads(ran.stdout)
    assert document["schema"] == 1
    assert document["instruction"].startswith("The deadline breaker has tripped")
    assert [proposal["order_path"] for proposal in document["proposals"]] == [
        f".shapeup/{SLUG}/orders/hammer-deadline-r1.json"
    ]
    assert ended(tmp_path, "gate-h").stdout == run.text("gate-h.md")


def test_a_page_of_gate_h_that_is_edited_or_removed_is_made_again(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=1, ago_s=60)
    with daemon(tmp_path) as living:
        living.wait_for("gate_h.queued")
        living.sync()
        page = run.text("gate-h.md")
        run.write("gate-h.md", "All green, ship!\n")
        living.sync()
        assert run.text("gate-h.md") == page
        (run.local / "gate-h.md").unlink()
        living.sync()
        assert run.text("gate-h.md") == page


def test_gate_h_tells_of_a_deadline_that_no_daemon_saw_pass_and_of_a_closed_run(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=1, ago_s=60)
    assert "The deadline breaker has tripped" in ended(tmp_path, "gate-h", SLUG).stdout
    run.write("harness-run.md", "---\nstatus: shipped\nclosed_at: 2026-03-01T10:00:00.000Z\n---\n")
    assert "The run is closed" in ended(tmp_path, "gate-h", SLUG).stdout
    assert "is closed" in ended(tmp_path, "budget", SLUG, "--extend", "5m", "--by", "ada").stderr


def test_gates_are_told_as_they_are_asked_and_status_shows_who_waits(tmp_path: Path) -> None:
    open_run(tmp_path, budget_s=None)
    with daemon(tmp_path) as living:
        living.sync()
        ended(tmp_path, "gate", "resolve", "L1b", "--slug", SLUG, "--preset", "guarded")
        living.wait_for("gate.asked", "L1b")
        assert "gate L1b waits for an answer" in ended(tmp_path, "status").stdout


@pytest.fixture
def notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose own config writes each event into a file."""
    config, told = tmp_path / "config", tmp_path / "told"
    (config / "shapeupd").mkdir(parents=True)
    script = "import sys, os; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read()); print(sorted(k for k in os.environ if k[:4] == 'GIT_'))"
    argv = json.dumps([sys.executable, "-c", script, os.fspath(told)])
    (config / "shapeupd/config.toml").write_text(f"[breakers]\nnotify = {argv}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(config))
    return told


def test_the_machines_own_command_hears_of_a_trip_with_the_event_on_stdin(tmp_path: Path, notified: Path) -> None:
    repo = tmp_path / "repo"
    open_run(repo, budget_s=1, ago_s=60)
    ended(repo, "run", "--once")
    rows = [json.loads(line) for line in notified.read_text().splitlines()]
    assert [row["event"] for row in rows] == ["breaker.tripped"]


def test_a_branch_cannot_name_the_command(tmp_path: Path) -> None:
    (tmp_path / ".shapeupd.toml").write_text('[breakers]\nnotify = ["touch", "owned"]\n')
    open_run(tmp_path, budget_s=1, ago_s=60)
    assert "breakers.notify" in ended(tmp_path, "run", "--once").stderr
    assert not (tmp_path / "owned").exists()
