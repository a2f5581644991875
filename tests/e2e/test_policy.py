"""The policy that hooks read: written as orders land and are answered, and known for stale when it is. Source: design §4, E1."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hooks.shell_policy import render_shell_policy
from parsers.policy_file import Policy, parse_policy
from tests.e2e.living import Daemon, SmallRun, daemon, shapeupd

SUBSTRATE = {"allowed": ["src/cart/**"], "frozen": ["spec/**"]}


def policy(root: Path) -> Policy:
    found = parse_policy((root / ".shapeup/policy.json").read_bytes())
    assert found is not None
    return found


def live(root: Path) -> list[str]:
    return [contract.order_id for contract in policy(root).contracts if not contract.answered]


def is_stale(root: Path) -> bool:
    """What the stub asks with `-nt`."""
    own = (root / ".shapeup/policy.paths").stat().st_mtime_ns
    inputs = [
        path
        for name in ("orders", "orders/*.json", "receipt.json", "harness-run.md")
        for path in root.glob(f".shapeup/*/{name}")
    ]
    return any(path.stat().st_mtime_ns > own for path in inputs)


def test_an_order_that_lands_is_in_both_files_once_it_is_settled(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        run.order("core-r1-a1", substrate=SUBSTRATE)
        living.sync()
        assert live(tmp_path) == ["cart/core-r1-a1"]
        paths = (tmp_path / ".shapeup/policy.paths").read_text()
        assert paths == render_shell_policy(policy(tmp_path))
        assert not is_stale(tmp_path)


def test_an_answer_an_edit_and_a_removal_each_change_the_policy(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        path = run.order("core-r1-a1", substrate=SUBSTRATE)
        run.order("other-r1-a1", substrate=SUBSTRATE)
        living.sync()
        run.result("core-r1-a1", criteria=("adds an item",))
        living.sync()
        assert live(tmp_path) == ["cart/other-r1-a1"]
        run.order("other-r1-a1", substrate={"allowed": ["lib/**"]})
        living.sync()
        assert policy(tmp_path).contracts[1].allowed == ("lib/**",)
        path.unlink()
        living.wait_for("order.admitted", "cart/other-r1-a1", count=2)
        wait_until_gone(living, tmp_path)


def wait_until_gone(living: Daemon, root: Path) -> None:
    """A file counts as gone once that has lasted, so one sync may come too early: each asks the daemon to settle."""
    for _ in range(200):
        living.sync()
        if [contract.order_id for contract in policy(root).contracts] == ["cart/other-r1-a1"]:
            return
    raise AssertionError(policy(root))


def test_an_order_that_is_refused_grants_nothing(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        run.order("core-r1-a1", substrate=SUBSTRATE)
        run.write("orders/bad-r1-a1.json", json.dumps({"order_id": "cart/bad-r1-a1", "substrate": {"allowed": ["**"]}}))
        living.wait_for("order.rejected")
        living.sync()
        assert live(tmp_path) == ["cart/core-r1-a1"]


def test_what_came_while_no_daemon_lived_makes_the_policy_stale(tmp_path: Path) -> None:
    run = SmallRun(tmp_path, with_receipt=True)
    run.order("core-r1-a1", substrate=SUBSTRATE)
    assert shapeupd("run", "--once", "--repo", str(tmp_path)).returncode == 0
    assert not is_stale(tmp_path)
    for change in (
        lambda: run.order("core-r1-a2", substrate=SUBSTRATE),
        lambda: run.order("core-r1-a2", substrate={"allowed": ["**"]}),
        lambda: run.write("harness-run.md", "---\nstatus: building\nclosed_at: ~\n---\n"),
        lambda: os.utime(run.local / "receipt.json"),
        lambda: (run.local / "orders/core-r1-a2.json").unlink(),
    ):
        change()
        assert is_stale(tmp_path)
        assert shapeupd("run", "--once", "--repo", str(tmp_path)).returncode == 0
        assert not is_stale(tmp_path)


def test_a_policy_that_somebody_else_wrote_is_told_and_written_anew(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        run.order("core-r1-a1", substrate=SUBSTRATE)
        living.sync()
        before = (tmp_path / ".shapeup/policy.paths").read_bytes()
        (tmp_path / ".shapeup/policy.paths").write_text("shapeupd-policy 1 open 1 x\n.\n")
        living.wait_for("writer.foreign", ".shapeup/policy.paths")
        living.sync()
        assert (tmp_path / ".shapeup/policy.paths").read_bytes() == before


def test_a_closed_run_lifts_its_whitelists(tmp_path: Path) -> None:
    run = SmallRun(tmp_path, with_receipt=True)
    with daemon(tmp_path) as living:
        run.order("core-r1-a1", substrate=SUBSTRATE)
        living.sync()
        run.write("harness-run.md", "---\nstatus: shipped\nclosed_at: 2026-03-01T12:00:00Z\n---\n")
        living.sync()
        assert policy(tmp_path).contracts == ()


def test_without_any_order_no_policy_is_written(tmp_path: Path) -> None:
    SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        living.sync()
        assert not (tmp_path / ".shapeup/policy.json").exists()


def test_a_link_in_the_place_of_the_policy_is_said_and_not_followed(tmp_path: Path) -> None:
    run = SmallRun(tmp_path / "repo")
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (tmp_path / "repo/.shapeup/policy.json").symlink_to(outside)
    with daemon(tmp_path / "repo") as living:
        run.order("core-r1-a1", substrate=SUBSTRATE)
        living.sync()
        assert living.wait_for("daemon.error", ".shapeup/policy.json")["code"] == "E-SYMLINK"
    assert outside.read_text() == "mine"


def test_breaking_a_live_order_opens_nothing(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    whole = run.order("core-r1-a1", substrate=SUBSTRATE).read_text()
    for broken in ("{", "[]", json.dumps({"order_id": "cart/core-r1-a1", "substrate": {"allowed": ["**"]}})):
        with daemon(tmp_path) as living:
            run.write("orders/core-r1-a1.json", whole)
            living.sync()
            assert policy(tmp_path).contracts[0].permits
            run.write("orders/core-r1-a1.json", broken)
            living.wait_for("order.rejected")
            living.sync()
            (kept,) = policy(tmp_path).contracts
            assert (kept.is_constraining, kept.permits, kept.frozen) == (True, False, ("spec/**",))
        told = shapeupd("check", "--print-policy", "--repo", str(tmp_path))  # what a hook asks while no daemon lives
        assert parse_policy(told.stdout.encode()) == policy(tmp_path)


def test_an_order_that_is_rewritten_or_removed_while_it_is_live_is_told(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        path = run.order("core-r1-a1", substrate=SUBSTRATE)
        living.sync()
        run.order("core-r1-a1", substrate={"allowed": ["**"]})
        row = living.wait_for("order.admitted", "cart/core-r1-a1", count=2)
        assert (row["level"], row["warnings"]) == ("warn", ["its substrate changed without a new compile"])
        run.order("core-r1-a1", substrate=SUBSTRATE, compiled_at="2026-03-02T10:00:00Z")
        assert living.wait_for("order.admitted", "cart/core-r1-a1", count=3)["level"] == "info"
        path.unlink()
        assert "removed before it was answered" in living.wait_for("artifact.tampered", "cart/core-r1-a1")["note"]
