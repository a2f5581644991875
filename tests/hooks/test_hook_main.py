"""The slow path behind the stub: overrides, the user's own paths, computed policies, and that nothing ends in a traceback."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from parsers.policy_file import Contract, Policy
from tests.hooks.gated import CART, ENV, HOOKS, PROJECT, STRICT, TAX, Gated

PATIENCE_S = 30.0


@pytest.fixture
def gated(tmp_path: Path) -> Gated:
    return Gated(tmp_path / "repo")


def run_main(gated: Gated, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(PROJECT / "hooks" / "__main__.py"), *argv]
    return subprocess.run(
        command, cwd=gated.root, env=ENV | env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def logged(gated: Gated, event: str) -> dict[str, Any]:
    """The first such row of the log, once it is there."""
    log = gated.root / ".shapeup/shapeupd.log"
    ends_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_at:
        for line in log.read_text().splitlines() if log.exists() else ():
            row: dict[str, Any] = json.loads(line)
            if row["event"] == event:
                return row
        select.select([], [], [], 0.02)
    raise AssertionError(f"no {event} in the log")


def at_a_terminal(gated: Gated, *words: str, **env: str) -> tuple[int, str]:
    """One git command with a terminal of its own, as a person types it: its exit status and all it said."""
    process, terminal = pty.fork()
    if process == 0:  # pragma: no cover - the child
        os.chdir(gated.root)
        os.execvpe("git", ["git", *words], ENV | env)
    said = b""
    while True:
        try:
            chunk = os.read(terminal, 4096)
        except OSError:
            break
        if not chunk:
            break
        said += chunk
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), said.decode()


def test_a_person_at_a_terminal_may_override_and_it_is_stamped_and_recorded(gated: Gated) -> None:
    gated.orders(CART)
    gated.stage("docs/x")
    status, said = at_a_terminal(gated, "commit", "-qm", "change", SHAPEUP_OVERRIDE="the build\n is red")
    assert status == 0, said
    assert "OUTSIDE overridden by SHAPEUP_OVERRIDE: the build is red" in said
    assert gated.message() == "change\n\nShapeup-Override: the build is red"
    assert gated.accepts() == [f"{gated.git('rev-parse', 'HEAD')} -"]
    row = logged(gated, "hook.override")
    assert (row["hook"], row["reason"], row["rules"]) == ("prepare-commit-msg", "the build is red", ["OUTSIDE"])
    assert row["paths"] == ["docs/x"]


def test_an_override_without_a_terminal_is_refused_in_words(gated: Gated) -> None:
    gated.orders(CART)
    said = gated.commit("docs/x", SHAPEUP_OVERRIDE="because")
    assert said is not None
    assert "only a person at a terminal may override" in said


def test_an_override_is_not_needed_and_not_stamped_where_all_is_allowed(gated: Gated) -> None:
    gated.orders(CART)
    gated.stage("src/cart/x")
    status, said = at_a_terminal(gated, "commit", "-qm", "change", SHAPEUP_OVERRIDE="because")
    assert status == 0, said
    assert "Shapeup-Override" not in gated.message()


def test_an_override_passes_the_strict_wall_too(tmp_path: Path) -> None:
    gated = Gated(tmp_path / "repo", hooks=STRICT)
    gated.orders(CART)
    gated.stage("docs/x")
    status, said = at_a_terminal(gated, "commit", "-qm", "change", SHAPEUP_OVERRIDE="because")
    assert status == 0, said
    assert "Shapeup-Override: because" in gated.message()


def test_a_refusal_is_recorded(gated: Gated) -> None:
    gated.orders(CART)
    assert gated.commit("docs/x") is not None
    row = logged(gated, "commit.rejected")
    assert (row["hook"], row["rules"], row["paths"]) == ("pre-commit", ["OUTSIDE"], ["docs/x"])


def test_the_users_own_paths_pass_and_are_told_and_recorded(gated: Gated, tmp_path: Path) -> None:
    gated.orders(CART)
    config = tmp_path / "config"
    (config / "shapeupd").mkdir(parents=True)
    (config / "shapeupd/config.toml").write_text(
        f'[repo."{gated.root.resolve()}".gate]\nallow_paths = ["docs/**"]\n[repo."/elsewhere".gate]\nallow_paths = ["**"]\n'
    )
    gated.stage("docs/x", "src/cart/x")
    done = gated.try_git("commit", "-qm", "change", XDG_CONFIG_HOME=str(config))
    assert done.returncode == 0, done.stderr
    assert "gate.allow_paths of your own settings lets docs/x pass" in done.stderr
    assert logged(gated, "hook.override")["reason"] == "gate.allow_paths"
    gated.stage("src/tax/x")
    assert gated.try_git("commit", "-qm", "change", XDG_CONFIG_HOME=str(config)).returncode != 0


def test_twenty_paths_are_told_and_the_rest_counted(gated: Gated) -> None:
    gated.orders(CART)
    said = gated.commit(*(f"docs/{n}" for n in range(25)))
    assert said is not None
    assert said.splitlines()[0] == "shapeupd: this commit is refused (25 paths)"
    assert "… and 5 more; all of them: shapeupd check --staged" in said


def test_the_python_path_stamps_what_one_order_covers(gated: Gated) -> None:
    growing = Contract("cart/notes-r1-a1", "fix", allowed=("src/tax/**",), append_only=("docs/a",))
    gated.orders(CART, growing)
    gated.write("docs/a", "a\nand more\n")
    gated.git("add", "-A")
    gated.git("commit", "-qm", "grown")
    assert gated.message() == "grown\n\nShapeup-Order: cart/notes-r1-a1\nShapeup-Operation: fix"
    gated.write("docs/a", "less\n")
    gated.git("add", "-A")
    assert "APPEND-ONLY" in gated.try_git("commit", "-qm", "cut").stderr


def test_an_operation_that_is_not_the_orders_is_refused(gated: Gated) -> None:
    gated.orders(CART)
    said = gated.commit("src/cart/x", message="change\n\nShapeup-Order: cart/core-r1-a1\nShapeup-Operation: fix")
    assert said is not None
    assert "Shapeup-Operation is 'fix', but cart/core-r1-a1 is for execute" in said


def test_a_stale_policy_is_computed_from_the_orders(gated: Gated) -> None:
    gated.orders(CART, TAX, policy=Policy("old", (CART,)), is_fresh=False)
    assert gated.commit("src/tax/x") is None
    assert "OUTSIDE" in (gated.commit("docs/x") or "")


def test_without_any_policy_the_orders_alone_decide(gated: Gated) -> None:
    gated.orders(CART)
    for name in ("policy.json", "policy.paths"):
        (gated.root / ".shapeup" / name).unlink()
    assert gated.commit("src/cart/x") is None
    assert "Shapeup-Order: cart/core-r1-a1" in gated.message()
    assert "OUTSIDE" in (gated.commit("docs/x") or "")


def test_a_past_order_may_be_named(gated: Gated) -> None:
    gated.orders(CART, TAX, policy=Policy("digest", (CART,), has_open_run=True))
    assert gated.commit("src/tax/x", SHAPEUP_ORDER="cart/tax-r1-a1") is None
    assert gated.message().endswith("Shapeup-Order: cart/tax-r1-a1\nShapeup-Operation: execute")
    said = gated.commit("docs/x", SHAPEUP_ORDER="cart/tax-r1-a1")
    assert said is not None
    assert "OUTSIDE" in said


def test_a_hook_that_nobody_knows_is_a_usage_error(gated: Gated) -> None:
    done = run_main(gated, "post-rewrite", "--root", str(gated.root))
    assert done.returncode == 2
    assert "is no hook that shapeupd knows" in done.stderr


@pytest.mark.parametrize("hook", ["pre-commit", "pre-merge-commit"])
def test_without_a_root_git_is_asked_for_it(gated: Gated, hook: str) -> None:
    gated.orders(CART)
    gated.stage("docs/x")
    assert run_main(gated, hook).returncode == 1


def test_outside_a_repository_it_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", str(PROJECT / "hooks" / "__main__.py"), "pre-commit"]
    done = subprocess.run(command, cwd="/", env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "shapeupd:" in done.stderr


@pytest.mark.parametrize("hook", [hook for hook in STRICT if hook not in ("pre-push", "post-commit")])
def test_whatever_goes_wrong_is_told_in_words_and_refuses(gated: Gated, hook: str) -> None:
    gated.orders(CART)
    gated.stage("docs/x")
    (gated.root / ".git/MERGE_HEAD").write_bytes(b"\xff\xfenonsense\n")
    (gated.root / ".git/message").write_text("x\n\nShapeup-Order: cart/core-r1-a1\n")
    args = {
        "prepare-commit-msg": [".git/message"],
        "commit-msg": [".git/message"],
        "reference-transaction": ["prepared"],
    }
    words = [hook, "--root", str(gated.root), "--", *args.get(hook, [])]
    for env in ({}, {"GIT_INDEX_FILE": "/nowhere/at/all/index"}, {"GIT_DIR": "/nowhere"}, {"PATH": "/nowhere"}):
        done = run_main(gated, *words, **env)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in (0, 1)
        assert done.returncode == 1 or hook == "reference-transaction", (env, done.stderr)


def test_a_bug_leaves_a_report_and_names_it(gated: Gated, tmp_path: Path) -> None:
    gated.orders(CART)
    copy = tmp_path / "copy"
    for package in ("hooks", "parsers"):
        shutil.copytree(PROJECT / package, copy / package)
    (copy / "hooks/policy.py").write_text(
        "def judge(*args, **kwargs):\n    raise ZeroDivisionError\n\n\nrequires_live_order = judge\n"
    )
    gated.install(HOOKS, main=str(copy / "hooks/__main__.py"))
    said = gated.commit("docs/x")
    assert said is not None
    assert "the gate itself failed (ZeroDivisionError)" in said
    report = gated.root / ".git/shapeupd-bug.txt"
    assert str(report) in said
    assert "ZeroDivisionError" in report.read_text()
