"""Runs the machine's own notification command on a trip; the event is on its stdin as JSON. Source: cli §5 `breakers.notify`, ruling A2.

The command stands in the user's own configuration alone: nothing that a branch or an agent can write is ever executed. It runs beside
the loop, in its own session, and is ended after half a minute: a command that hangs delays nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from typing import Any

from daemon.log import Log, render_line

PATIENCE_S = 30.0


class Notifier:
    """Runs `argv` (empty: nobody is told) once for each event."""

    def __init__(self, argv: tuple[str, ...], log: Log) -> None:
        self._argv = argv
        self._log = log

    def __call__(self, row: dict[str, Any]) -> None:
        if self._argv:
            threading.Thread(target=self._run, args=(render_line(row).encode(),), name="notify").start()

    def _run(self, event: bytes) -> None:
        try:
            process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
                start_new_session=True,
            )
        except OSError as error:
            self._complain(f"{self._argv[0]}: {error.strerror}")
            return
        try:
            stderr = process.communicate(event, timeout=PATIENCE_S)[1]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            self._complain(f"{self._argv[0]} was ended after {PATIENCE_S:g} s")
            return
        if process.returncode:
            told = stderr.decode("utf-8", "replace").strip()[-400:]
            self._complain(f"{self._argv[0]} ended with {process.returncode}{f': {told}' if told else ''}")

    def _complain(self, what: str) -> None:
        fix = "correct breakers.notify in your own config.toml; the trip itself is recorded all the same"
        self._log.write("daemon.error", level="warn", code="E-NOTIFY", error=f"breakers.notify: {what}\n  fix: {fix}")
