"""Plays the service manager: listens at $NOTIFY_SOCKET, and tells when the watchdog's time has run out."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

PATIENCE_S = 60.0


class Manager:
    """What has been said to it, line by line."""

    def __init__(self, ear: socket.socket, watchdog_s: float) -> None:
        self._ear = ear
        self.watchdog_s = watchdog_s
        self.said: list[str] = []

    def hear(self, wait_s: float = PATIENCE_S) -> list[str]:
        """The lines of the next message. Raises TimeoutError."""
        self._ear.settimeout(wait_s)
        lines = self._ear.recv(8192).decode().split("\n")
        self.said += lines
        return lines

    def wait_for(self, line: str, *, count: int = 1) -> None:
        """Until the line was said that many times from now on."""
        while count:
            try:
                count -= self.hear().count(line)
            except TimeoutError:
                raise AssertionError(
                    f"nothing was heard for {PATIENCE_S} s; {line} was awaited after {self.said}"
                ) from None

    def wait_for_silence(self) -> None:
        """Until no ping came for the watchdog's time, which is when a manager acts."""
        while True:
            try:
                self.hear(self.watchdog_s)
            except TimeoutError:
                return


@contextmanager
def service_manager(monkeypatch: pytest.MonkeyPatch, watchdog_s: float) -> Iterator[Manager]:
    """A manager that every daemon started inside speaks to."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        path = Path(folder) / "notify"
        ear.bind(os.fspath(path))
        with monkeypatch.context() as world:
            world.setenv("NOTIFY_SOCKET", os.fspath(path))
            world.setenv("WATCHDOG_USEC", str(int(watchdog_s * 1e6)))
            yield Manager(ear, watchdog_s)
