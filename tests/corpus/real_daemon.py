"""A real `shapeupd run` on a folder: started, waited for by its own words, synced, killed. Source: protocol §4.2 for its lock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from daemon.sockets import ask
from tests.corpus.replay_cases import REPOSITORY

PATIENCE_S = 60.0


def settings_text(attestation: str) -> str:
    return f'[ingest]\nattestation = "{attestation}"\n'


def command(roots: Sequence[Path], *words: str) -> list[str]:
    repos = [word for root in roots for word in ("--repo", str(root))]
    return [sys.executable, "-m", "daemon", *repos, "run", "--log-format", "json", *words]


def run_once(*roots: Path) -> subprocess.CompletedProcess[str]:
    """`shapeupd run --once` to its end."""
    return subprocess.run(
        command(roots, "--once"), cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def land(root: Path, path: str, data: bytes) -> None:
    """Put a file where it belongs as workers should: written beside, then renamed."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.tmp")
    beside.write_bytes(data)
    os.rename(beside, target)


class RealDaemon:
    """One daemon process over some folders; `start` returns once it says that it is ready in each of them."""

    def __init__(self, *roots: Path) -> None:
        self.roots = roots
        self.events: list[dict[str, object]] = []
        self._heard = threading.Condition()
        self._ready = 0

    def __enter__(self) -> RealDaemon:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        self._ready = 0
        self._process = subprocess.Popen(command(self.roots), cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        with self._heard:
            assert self._heard.wait_for(lambda: self._ready >= len(self.roots), PATIENCE_S), (
                "the daemon never became ready"
            )
        assert self._process.poll() is None, f"the daemon ended: {self.events[-3:]}"

    def _read(self) -> None:
        """Keep the events; the end of the stream also ends the wait for them."""
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                event = json.loads(line)
                with self._heard:
                    self.events.append(event)
                    self._ready += event["event"] == "daemon.ready"
                    self._heard.notify_all()
        with self._heard:
            self._ready = len(self.roots)
            self._heard.notify_all()

    def sync(self, root: Path) -> None:
        """Everything that landed there so far is settled when this returns."""
        answer = ask(root, "sync", timeout_s=PATIENCE_S)
        assert answer is not None, "no daemon answers"
        assert "error" not in answer, answer

    def kill(self) -> None:
        """kill -9; fine when it ended already. A lock it held is made as old as it must be before it may be broken."""
        self._process.kill()
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        for root in self.roots:
            for lock in root.glob(".shapeup/*/.ingest.lock"):
                os.utime(lock, (0, 0))

    def stop(self) -> int:
        """SIGTERM; returns the exit status."""
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return status
