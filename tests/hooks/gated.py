"""A real repository with our stub under every hook's name, a few orders and the policy that the daemon would write for them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from hooks.shell_policy import render_shell_policy
from parsers.policy_file import Contract, Policy, render_policy

PROJECT = Path(__file__).resolve().parents[2]
STUB = PROJECT / "hooks" / "stubs" / "gate.sh"
HOOKS = ("pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-push")
STRICT = (*HOOKS, "reference-transaction")
SHELLS = {"dash": ("dash",), "bash": ("bash", "--posix"), "busybox": ("busybox", "sh")}

ENV = {
    key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "SHAPEUP", "XDG_", "GITHUB_"))
} | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_EDITOR": "true"}
ENV |= {
    f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in (("NAME", "a"), ("EMAIL", "a@b"))
}

CART = Contract("cart/core-r1-a1", "execute", allowed=("src/cart/**",))
TAX = Contract("cart/tax-r1-a1", "execute", allowed=("src/tax/**",))


def fill_stub(python: str = sys.executable, main: str | None = None, root: str = "../..") -> str:
    """The stub as install writes it."""
    values = {"@PYTHON@": python, "@MAIN@": main or str(PROJECT / "hooks" / "__main__.py"), "@ROOT@": root}
    text = STUB.read_text()
    for name, value in values.items():
        text = text.replace(name, shlex.quote(value))
    return text


class Gated:
    """One repository, `main` checked out, one commit with src/cart/a, src/tax/a and docs/a."""

    def __init__(self, root: Path, shell: Iterable[str] = ("sh",), hooks: Iterable[str] = HOOKS) -> None:
        self.root = root
        self.shell = tuple(shell)
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", "--template=")
        self.write(".gitignore", ".shapeup/\n")
        for path in ("src/cart/a", "src/tax/a", "docs/a"):
            self.write(path, "a\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "base", "--date=2026-01-01T00:00:00Z", GIT_COMMITTER_DATE="2026-01-01T00:00:00Z")
        self.install(hooks)

    def install(self, hooks: Iterable[str] = HOOKS, **values: str) -> None:
        """Write our stub under these names."""
        (self.root / ".git/shapeupd").mkdir(exist_ok=True)
        (self.root / ".git/hooks").mkdir(exist_ok=True)
        for hook in hooks:
            self.hook(hook, fill_stub(**values), self.shell)

    def hook(self, name: str, text: str, shell: tuple[str, ...] = ("sh",)) -> Path:
        path = self.root / ".git/hooks" / name
        path.write_text(text.replace("#!/bin/sh", "#!/usr/bin/env -S " + " ".join(shell), 1))
        path.chmod(0o755)
        return path

    def try_git(self, *args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """One git command, however it ends."""
        return subprocess.run(
            ["git", *args],
            cwd=cwd or self.root,
            env=ENV | env,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )

    def git(self, *args: str, cwd: Path | None = None, **env: str) -> str:
        """What one git command prints, that must end well."""
        done = self.try_git(*args, cwd=cwd, **env)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout.strip()

    def write(self, path: str, text: str = "x\n") -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def stage(self, *paths: str) -> None:
        for path in paths:
            self.write(path, f"{path} changed\n")
        if paths:
            self.git("add", "-A", "-f", "--", *paths)

    def commit(self, *paths: str, message: str = "change", args: Iterable[str] = (), **env: str) -> str | None:
        """Stage these paths and commit: None where that was allowed, else what was said."""
        self.stage(*paths)
        done = self.try_git("commit", "-qm", message, *args, **env)
        assert "Traceback" not in done.stderr, done.stderr
        return None if done.returncode == 0 else done.stderr

    def message(self, of: str = "HEAD") -> str:
        return self.git("log", "-1", "--format=%B", of)

    def accepts(self) -> list[str]:
        path = self.root / ".git/shapeupd/accepts"
        return path.read_text().splitlines() if path.exists() else []

    def orders(self, *contracts: Contract, policy: Policy | None = None, is_fresh: bool = True) -> Policy:
        """Order files for the contracts, and the policy over them as the daemon writes it."""
        for contract in contracts:
            slug, stem = contract.order_id.split("/")
            substrate = {key: getattr(contract, key) for key in ("allowed", "shared", "append_only", "frozen")}
            order = {"schema_version": 1, "order_id": contract.order_id, "operation": contract.operation}
            order |= {"compiled_at": "2026-03-01T10:00:00.000Z", "worker": "task-executor", "mode": "orchestrated"}
            text = json.dumps(order | {"substrate": substrate, "payload": {}})
            self.write(f".shapeup/{slug}/orders/{stem}.json", text)
        made = policy or Policy("digest", contracts, has_open_run=True)
        self.policy(made, is_fresh=is_fresh)
        return made

    def policy(self, policy: Policy, *, is_fresh: bool = True) -> None:
        """Write both policy files, as old as the newest of their inputs."""
        local = self.root / ".shapeup"
        local.mkdir(exist_ok=True)
        inputs = [*local.glob("*/orders"), *local.glob("*/orders/*.json"), *local.glob("*/receipt.json")]
        newest = max((path.stat().st_mtime_ns for path in inputs), default=1_700_000_000 * 10**9)
        stamp = newest if is_fresh else newest - 10**9
        for name, text in (("policy.json", render_policy(policy)), ("policy.paths", render_shell_policy(policy))):
            (local / name).write_text(text)
            os.utime(local / name, ns=(stamp, stamp))
