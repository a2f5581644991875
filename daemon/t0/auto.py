"""Measures attempts by itself, where this machine was told to: after a build result, for contracts that are trusted by hash. Source: rulings A2, A4, cli §5 `t0.auto`.

Beside the loop, one attempt after another, each in a `shapeupd t0` process of its own, which looks at the bytes that it runs. What was measured stands in trials.jsonl, so what
a death or a stop left out is found again at the next look; what could not be measured is not tried again in this life.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from typing import NamedTuple

from daemon.log import Log
from daemon.place import Place
from parsers.addresses import Address

CLOSE_PATIENCE_S = 5.0


class Due(NamedTuple):
    """An attempt that was answered and not measured."""

    slug: str
    address: Address


class AutoT0:
    """`note` and `close` are called by the loop; the attempts run in a thread of their own."""

    def __init__(self, place: Place, log: Log) -> None:
        self._place = place
        self._log = log
        self._known: set[Due] = set()
        self._waiting: queue.SimpleQueue[Due | None] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="auto t0", daemon=True)
        self._thread.start()

    def note(self, due: Iterable[Due]) -> None:
        """These attempts want measuring; each is taken once."""
        for one in due:
            if one not in self._known:
                self._known.add(one)
                self._waiting.put(one)

    def close(self) -> None:
        """End what runs, its fixtures with it."""
        self._is_closing = True
        self._waiting.put(None)
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
        self._thread.join(CLOSE_PATIENCE_S)

    def _work(self) -> None:
        while (due := self._waiting.get()) is not None and not self._is_closing:
            self._measure(due)

    def _measure(self, due: Due) -> None:
        """The command logs what came of it; what it could not do is said here."""
        address = due.address
        words = ("t0", str(address.name), "--round", str(address.round), "--attempt", str(address.attempt), "--trusted")
        command = (sys.executable, "-I", "-m", "daemon", "--repo", os.fspath(self._place.root), *words)
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env
            )
        except OSError as error:
            self._complain(due, str(error))
            return
        stderr = self._process.communicate()[1]
        if self._process.returncode > 1 and not self._is_closing:
            self._complain(due, stderr.decode("utf-8", "replace").strip()[-800:])

    def _complain(self, due: Due, what: str) -> None:
        error = f"t0 {due.address.name} could not be measured: {what}"
        self._log.write("daemon.error", level="warn", code="E-T0", slug=due.slug, subject=due.address.name, error=error)
