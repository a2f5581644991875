"""Measures attempts by itself, where this machine was told to: after a build result, for contracts that are trusted by hash. Source: rulings A2, A4, cli §5 `t0.auto`.

Beside the loop, one attempt after another, each in a `shapeupd t0` process of its own, which looks at the bytes that it runs. What was measured stands in trials.jsonl, so what
a death or a stop left out is found again at the next look; what could not be measured is not tried again in this life.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from daemon.exits import DONE, WANTING
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
        self._said: dict[tuple[str, str | None], str] = {}
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
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
            )
        except OSError as error:
            self._complain(due, str(error))
            return
        stdout, stderr = self._process.communicate()
        if self._process.returncode in (DONE, WANTING):
            self._tell(due, json.loads(stdout))
        elif not self._is_closing:
            self._complain(due, stderr.decode("utf-8", "replace").strip().removeprefix("shapeupd: ")[-800:])

    def _tell(self, due: Due, scored: Mapping[str, object]) -> None:
        """The events of cli §3, as `t0` itself tells them where a person calls it."""
        names: dict[str, Any] = {"slug": due.slug, "subject": due.address.name}
        shown: dict[str, Any] = {key: scored.get(key) for key in ("overall", "status", "delta", "reason")}
        self._log.write("t0.scored", **names, **shown, artifact=scored.get("path"), trial=scored.get("number"))
        if scored.get("undo_ref"):
            undo = f"shapeupd t0 undo {due.address.name} {scored.get('number')}"
            self._log.write("tree.restored", **names, ref=scored.get("tree_ref"), undo=undo)
        elif scored.get("tree_ref"):
            self._log.write("tree.kept", **names, ref=scored.get("tree_ref"))

    def _complain(self, due: Due, what: str) -> None:
        """Said once for each scope, until something else is wrong with it."""
        names: dict[str, Any] = {"slug": due.slug, "subject": due.address.name}
        if self._said.get((due.slug, due.address.name)) != what:
            self._said[due.slug, due.address.name] = what
            self._log.write("daemon.error", level="warn", code="E-T0", **names, error=what)
