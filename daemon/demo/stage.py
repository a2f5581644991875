"""The demo's stage: a temporary repository, a real daemon process, and the log it waits on. Source: cli §2 `demo`."""

from __future__ import annotations

import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daemon import clock
from daemon.render_log import render_row
from daemon.sockets import ask
from hooks.git import scrubbed_env

PATIENCE_S = 15.0


class Failed(Exception):
    """A step did not show what it claims."""


class Stage:
    """One repository with a daemon that can be started, stopped and killed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._daemon: subprocess.Popen[bytes] | None = None
        self._heard = b""

    def init_git(self) -> bool:
        """Make the folder a git repository; False where there is no git (everything but git works without)."""
        if shutil.which("git") is None:
            return False
        self.write("README.md", "A shop.\n")
        self.write(".gitignore", ".shapeup/\n")
        for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "a shop")):
            if self.git(*words).returncode != 0:
                raise Failed(f"git {words[0]} does not work here")
        return True

    def git(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One git command as the demo's author, whoever sits at the machine."""
        who = {"AUTHOR_NAME": "demo", "AUTHOR_EMAIL": "demo@example.org", "COMMITTER_NAME": "demo"}
        who |= {"COMMITTER_EMAIL": "demo@example.org", "CONFIG_GLOBAL": os.devnull, "CONFIG_SYSTEM": os.devnull}
        env = scrubbed_env() | {f"GIT_{key}": value for key, value in who.items()}
        return subprocess.run(["git", *words], cwd=self.root, env=env, capture_output=True, text=True, check=False)

    def shapeupd(self, *words: str) -> None:
        """One shapeupd command in the repository; what it prints is shown. Raises Failed where it does not end with 0."""
        command = [sys.executable, "-I", "-m", "daemon", *words]
        done = subprocess.run(command, cwd=self.root, env=scrubbed_env(), capture_output=True, text=True, check=False)
        print("\n".join(f"    {line}" for line in (f"$ shapeupd {' '.join(words)}", *done.stdout.splitlines())))
        if done.returncode != 0:
            raise Failed(f"shapeupd {words[0]} ended with {done.returncode}: {done.stderr}")

    def write(self, path: str, content: str | Mapping[str, Any]) -> None:
        """Write one file as an agent would: in place, in one go."""
        text = content if isinstance(content, str) else json.dumps(content, indent=2) + "\n"
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def start(self) -> None:
        """Start `shapeupd run` and wait until it is ready."""
        command = [sys.executable, "-I", "-m", "daemon", "run", "--repo", os.fspath(self.root), "--log-format", "json"]
        self._daemon = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self._heard = b""
        self.wait_for("daemon.ready")

    def wait_for(self, event: str, subject: str | None = None) -> dict[str, Any]:
        """The next such event of the daemon's log, printed as a person sees it. Raises Failed when it does not come."""
        until = clock.monotonic() + PATIENCE_S
        while True:
            for row in self._rows(until):
                if row["event"] == event and subject in (None, row["subject"]):
                    print(f"    {render_row(row, color=False)}")
                    return row
            if clock.monotonic() >= until:
                raise Failed(f"no {event} within {PATIENCE_S:g} s")

    def _rows(self, until: float) -> list[dict[str, Any]]:
        """The next whole line of the daemon's stderr as a row; none when time or the daemon ran out."""
        assert self._daemon is not None
        assert self._daemon.stderr is not None
        stream = self._daemon.stderr.fileno()
        while b"\n" not in self._heard:
            ready, _, _ = select.select([stream], [], [], max(0.0, until - clock.monotonic()))
            chunk = os.read(stream, 65536) if ready else b""
            if ready and not chunk:
                raise Failed("the daemon ended")
            if not chunk:
                return []
            self._heard += chunk
        line, _, self._heard = self._heard.partition(b"\n")
        try:
            return [json.loads(line)]
        except ValueError:
            raise Failed(f"the daemon says: {line.decode(errors='replace')}") from None

    def sync(self) -> dict[str, Any]:
        """Wait until everything that landed is settled."""
        answer = ask(self.root, "sync", timeout_s=PATIENCE_S)
        if answer is None or "error" in answer:
            raise Failed(f"the daemon does not answer: {answer}")
        return answer

    def end(self, number: int) -> int:
        """Send the daemon a signal and wait for its end; the exit status, negative for a signal that killed it."""
        assert self._daemon is not None
        assert self._daemon.stderr is not None
        self._daemon.send_signal(number)
        status = self._daemon.wait(PATIENCE_S)
        self._daemon.stderr.close()
        self._daemon = None
        return status

    def close(self) -> None:
        """End whatever still runs."""
        if self._daemon is not None and self._daemon.poll() is None:
            self.end(signal.SIGKILL)

    def state(self) -> dict[str, str]:
        """The hash of every file of the shared state: all of .shapeup/ but the log and what names a process."""
        found = {}
        for path in sorted((self.root / ".shapeup").rglob("*")):
            if path.is_file() and path.name not in (
                "shapeupd.log",
                "daemon.json",
                "daemon.lock",
                "checkpoint.json",
                "audit.json",
            ):
                found[os.fspath(path.relative_to(self.root))] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found
