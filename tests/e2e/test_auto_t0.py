"""Attempts measured by the daemon itself: only where this machine was told to, only trusted bytes. Source: rulings A2, A4, cli §5 `t0.auto`, issue 5 item 6."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.e2e.living import SLUG, SmallRun, daemon, shapeupd

CONTRACT = """---
scope_id: {scope}
allowed_file_substrate: [src/{scope}/**]
shared_substrate: []
e2e_verification_fixtures:
  - test -f src/{scope}/done && echo {scope} >> {told}
---
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallRun:
    """A run whose machine measures by itself."""
    config, state = tmp_path / "config", tmp_path / "state"
    (config / "shapeupd").mkdir(parents=True)
    (config / "shapeupd/config.toml").write_text("[t0]\nauto = true\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(config))
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(state))
    run = SmallRun(tmp_path / "repo", with_receipt=True)
    for scope in ("cart", "till"):
        path = run.root / "shapeup" / SLUG / "scopes" / f"{scope}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CONTRACT.format(scope=scope, told=tmp_path / "told"))
        (run.root / "src" / scope).mkdir(parents=True)
        (run.root / "src" / scope / "done").touch()
    return run


def trust(run: SmallRun, *scopes: str) -> None:
    for scope in scopes:
        path = run.root / "shapeup" / SLUG / "scopes" / f"{scope}.md"
        assert shapeupd("--repo", os.fspath(run.root), "trust", os.fspath(path)).returncode == 0


def told(run: SmallRun) -> list[str]:
    path = run.root.parent / "told"
    return path.read_text().split() if path.exists() else []


def test_a_trusted_contract_is_measured_after_its_build_result_and_once(run: SmallRun) -> None:
    trust(run, "cart")
    run.order("cart-r1-a1")
    with daemon(run.root) as living:
        run.result("cart-r1-a1", "TASK-1")
        living.wait_for("hill.moved", "cart", count=2)
        assert run.rows("t0/trials.jsonl")[0]["status"] == "kept"
        living.stop(signal.SIGKILL)
    with daemon(run.root) as living:
        living.sync()
    assert len(run.rows("t0/trials.jsonl")) == 1
    assert told(run) == ["cart"]


def test_what_was_answered_while_nobody_watched_is_measured_at_the_start(run: SmallRun) -> None:
    trust(run, "cart")
    run.order("cart-r1-a1")
    run.result("cart-r1-a1", "TASK-1")
    shapeupd("--repo", os.fspath(run.root), "run", "--once")
    assert told(run) == []
    with daemon(run.root) as living:
        living.wait_for("hill.moved", "cart")
    assert told(run) == ["cart"]


def test_other_bytes_than_the_trusted_ones_never_run(run: SmallRun) -> None:
    trust(run, "cart")
    path = run.root / "shapeup" / SLUG / "scopes/cart.md"
    path.write_text(path.read_text() + "\nA word more.\n")
    run.order("cart-r1-a1")
    with daemon(run.root) as living:
        run.result("cart-r1-a1", "TASK-1")
        error = living.wait_for("daemon.error", "cart")
        assert (error["code"], "shapeupd trust" in error["error"]) == ("E-T0", True)
    assert told(run) == []
    assert run.rows("t0/trials.jsonl") == []


@pytest.mark.parametrize("is_forged", [True, False], ids=["forged fixtures", "untrusted scope"])
def test_the_registry_brings_in_nothing_that_is_not_trusted(run: SmallRun, is_forged: bool) -> None:
    trust(run, "cart", *(["till"] if is_forged else []))
    run.order("cart-r1-a1")
    run.result("cart-r1-a1", "TASK-1")
    own = f"test -f src/till/done && echo till >> {run.root.parent / 'told'}"
    forged = f"echo forged >> {run.root.parent / 'told'}"
    registry = {"scopes": [{"scope_id": "till", "fixtures": [forged if is_forged else own]}]}
    run.write("seesaw/registry.json", json.dumps(registry))
    words = ("t0", "cart", "--round", "1", "--attempt", "1", "--trusted")
    ran = shapeupd("--repo", os.fspath(run.root), *words)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "not measured" in ran.stderr
    assert told(run) == []


def test_nothing_runs_by_itself_unless_the_machine_says_so(run: SmallRun, monkeypatch: pytest.MonkeyPatch) -> None:
    trust(run, "cart")
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(run.root.parent / "nothing"))
    run.order("cart-r1-a1")
    with daemon(run.root) as living:
        run.result("cart-r1-a1", "TASK-1")
        living.wait_for("result.applied")
        living.sync()
    assert told(run) == []
