"""The hill in a living daemon: facts alone move it, once; views come back; what is committed must be what the facts derive. Source: protocol §5.4, rulings E3, G3, G4."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.living import SLUG, Daemon, SmallRun, daemon, shapeupd

CONTRACT = """---
scope_id: cart
allowed_file_substrate: [src/cart/**]
shared_substrate: []
e2e_verification_fixtures:
  - test -f src/cart/total.txt
use_cases: [UC-1]
---

# Cart
"""


def git(root: Path, *words: str) -> str:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a"}
    who |= {"GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | who
    ran = subprocess.run(["git", *words], cwd=root, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def run(tmp_path: Path) -> SmallRun:
    """A run with one scope, in a repository."""
    git(tmp_path, "init", "-q")
    run = SmallRun(tmp_path, with_receipt=True)
    contract = tmp_path / "shapeup" / SLUG / "scopes" / "cart.md"
    contract.parent.mkdir(parents=True)
    contract.write_text(CONTRACT)
    (tmp_path / ".gitignore").write_text(".shapeup/\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "specs")
    return run


def t0(run: SmallRun, attempt: int, status: int = 0) -> dict[str, object]:
    ran = shapeupd("--repo", os.fspath(run.root), "t0", "cart", "--round", "1", "--attempt", str(attempt))
    assert ran.returncode == status, ran
    document: dict[str, object] = json.loads(ran.stdout)
    return document


def shard(run: SmallRun) -> str:
    return (run.root / "shapeup" / SLUG / "hill/cart.yml").read_text()


def build(run: SmallRun, living: Daemon) -> None:
    """One attempt that is green, and its answer."""
    run.order("cart-r1-a1", substrate={"allowed": ["src/cart/**"], "shared": [], "append_only": [], "frozen": []})
    living.wait_for("order.admitted", f"{SLUG}/cart-r1-a1")
    (run.root / "src/cart").mkdir(parents=True)
    (run.root / "src/cart/total.txt").write_text("0.00\n")
    t0(run, 1)
    run.result("cart-r1-a1", "TASK-1", ("adds an item", "rejects zero"))
    living.wait_for("result.applied", f"{SLUG}/cart-r1-a1")


def judge(run: SmallRun, living: Daemon, overall: str) -> None:
    artifact = next((run.local / "t0/verdicts").iterdir())
    citation = {
        "scope_id": "cart",
        "path": os.fspath(artifact.relative_to(run.root)),
        "sha256": hashlib.sha256(artifact.read_bytes()).hexdigest(),
    }
    run.order("evaluate-r1", worker="spec-evaluator", operation="evaluate")
    value = run.result_value("evaluate-r1", worker="spec-evaluator")
    del value["task_results"]
    criteria = [{"criterion": "UC-1 total", "verdict": overall}]
    verdict = {"overall": overall, "criteria": criteria, "t0_citations": [citation]}
    run.write("results/evaluate-r1.json", value | {"verdict": verdict})
    living.wait_for("result.applied", f"{SLUG}/evaluate-r1")
    living.sync()


def test_facts_move_a_scope_over_the_hill_and_nothing_else_does(run: SmallRun) -> None:
    with daemon(run.root) as living:
        build(run, living)
        moved = living.wait_for("hill.moved", "cart", count=2)
        assert (moved["from"], moved["to"]) == ("UPHILL_SOLVED", "DOWNHILL_EXECUTION")
        judge(run, living, "PASS")
        assert living.wait_for("hill.moved", "cart", count=3)["to"] == "FINISHED"
        assert shard(run) == "scope_id: cart\nphase: FINISHED\n"
        registry = json.loads(run.text("seesaw/registry.json"))
        assert [scope["scope_id"] for scope in registry["scopes"]] == ["cart"]
        assert "cart" in (run.root / "shapeup" / SLUG / "hill-chart.md").read_text()
        (run.root / "shapeup" / SLUG / "hill/cart.yml").write_text("scope_id: cart\nphase: UPHILL_UNKNOWN\n")
        living.wait_for("writer.foreign")
        living.sync()
        assert shard(run) == "scope_id: cart\nphase: FINISHED\n"
        living.stop(signal.SIGKILL)
    (run.root / "shapeup" / SLUG / "hill/cart.yml").unlink()
    with daemon(run.root) as living:
        living.sync()
        assert living.events("hill.moved") == []
    assert shard(run) == "scope_id: cart\nphase: FINISHED\n"
    assert [row["to"] for row in run.rows("hill.jsonl")] == ["UPHILL_SOLVED", "DOWNHILL_EXECUTION", "FINISHED"]
    shown = json.loads(shapeupd("--repo", os.fspath(run.root), "hill", SLUG, "--json").stdout)
    assert [(one["scope_id"], one["phase"]) for one in shown["hill"]] == [("cart", "FINISHED")]


@pytest.mark.parametrize("is_gone", [True, False])
def test_evidence_that_was_changed_is_told_and_takes_the_scope_back(run: SmallRun, is_gone: bool) -> None:
    with daemon(run.root) as living:
        build(run, living)
        living.wait_for("hill.moved", "cart", count=2)
        artifact = next((run.local / "t0/verdicts").iterdir())
        before = artifact.read_bytes()
        if is_gone:
            artifact.unlink()
        else:
            artifact.write_bytes(before.replace(b'"attempt": 1', b'"attempt": 2'))
        told = living.wait_for("artifact.tampered")
        assert told["subject"] == os.fspath(artifact.relative_to(run.root))
        assert living.wait_for("hill.moved", "cart", count=3)["to"] == "UPHILL_SOLVED"
        artifact.write_bytes(before)
        assert living.wait_for("hill.moved", "cart", count=4)["to"] == "DOWNHILL_EXECUTION"


def test_a_team_that_keeps_its_hill_by_hand_is_left_alone(run: SmallRun) -> None:
    (run.root / ".shapeupd.toml").write_text("[hill]\nwrite = false\n")
    with daemon(run.root) as living:
        build(run, living)
        living.wait_for("hill.moved", "cart", count=2)
    assert not (run.root / "shapeup" / SLUG / "hill").exists()
    assert not (run.root / "shapeup" / SLUG / "hill-chart.md").exists()


def test_a_commit_may_carry_the_shard_that_the_facts_derive_and_no_other(run: SmallRun) -> None:
    assert shapeupd("--repo", os.fspath(run.root), "install").returncode == 0
    git(run.root, "add", ".shapeupd.toml")
    git(run.root, "commit", "-q", "-m", "settings")
    with daemon(run.root) as living:
        build(run, living)
        living.wait_for("hill.moved", "cart", count=2)
        living.sync()
        living.stop()
    path = run.root / "shapeup" / SLUG / "hill/cart.yml"
    derived = path.read_bytes()
    git(run.root, "add", "shapeup")  # shard and chart
    git(run.root, "commit", "-q", "-m", "the hill")
    path.write_text("scope_id: cart\nphase: FINISHED\n")
    git(run.root, "add", "shapeup")
    refused = subprocess.run(
        ["git", "commit", "-m", "finished"], cwd=run.root, capture_output=True, text=True, check=False
    )
    assert refused.returncode != 0
    assert "R-36" in refused.stderr
    path.write_bytes(derived)
