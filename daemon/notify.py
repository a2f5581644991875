"""Tells the service manager how this process fares: ready, alive, stopping. Source: design §6, targets 32, sd_notify(3).

One datagram of `NAME=value` lines to $NOTIFY_SOCKET; no library is needed for that. The variables are taken out of the
environment when they are read: a child that spoke to the manager in our name would be believed.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import MutableMapping
from functools import cache

SEND_S = 1.0  # a manager that does not read must not hold up the loop
VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Manager:
    """The service manager of this process. `ping_s`: seconds between two pings, half of what it waits; None: it waits for none.

    Several services may live in one process: it is ready when all are, and alive while all are.
    """

    def __init__(self, address: str | None, ping_s: float | None) -> None:
        self._address = address
        self.ping_s = ping_s
        self._guard = threading.Lock()
        self._parties: list[Party] = []
        self._ready: dict[Party, str] = {}
        self._alive: set[Party] = set()

    def join(self) -> Party:
        """One more service of this process; all of them join before the first is ready."""
        with self._guard:
            party = Party(self)
            self._parties.append(party)
            return party

    def heard_ready(self, party: Party, status: str) -> bool:
        with self._guard:
            self._ready[party] = status
            if len(self._ready) < len(self._parties):
                return True
            return self.tell("READY=1", f"STATUS={'; '.join(self._ready.values())}")

    def heard_alive(self, party: Party) -> bool:
        with self._guard:
            self._alive.add(party)
            if len(self._alive) < len(self._parties):
                return True
            self._alive.clear()
            return self.tell("WATCHDOG=1")

    def tell(self, *lines: str) -> bool:
        """Send the lines; whether they were taken. Nobody to send to counts as taken."""
        if self._address is None:
            return True
        message = "\n".join(line.replace("\n", " ") for line in lines)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
                channel.settimeout(SEND_S)
                channel.sendto(os.fsencode(message), self._address)
        except OSError:
            return False
        return True


class Party:
    """What one service of this process says to the manager. Each call returns whether the manager took it."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    @property
    def ping_s(self) -> float | None:
        return self._manager.ping_s

    def ready(self, status: str) -> bool:
        """Everything that stood on disk is settled."""
        return self._manager.heard_ready(self, status)

    def alive(self) -> bool:
        """It was proven just now that this service works."""
        return self._manager.heard_alive(self)

    def status(self, text: str) -> bool:
        """One line for `systemctl status`."""
        return self._manager.tell(f"STATUS={text}")

    def stopping(self, reason: str) -> bool:
        return self._manager.tell("STOPPING=1", f"STATUS=stopping: {reason}")


def take_manager(environ: MutableMapping[str, str], pid: int) -> Manager:
    """The manager that the environment names; the variables are gone from it afterwards, whatever they held.

    `pid`: this process; pings that WATCHDOG_PID wants of another process are none of ours.
    """
    address, usec, watched = (environ.pop(name, "") for name in VARIABLES)
    if address.startswith("@"):
        address = "\0" + address[1:]
    elif not address.startswith("/"):
        return Manager(None, None)
    is_ours = watched in ("", str(pid))
    is_number = usec.isascii() and usec.isdigit() and len(usec) <= 18
    return Manager(address, int(usec) / 2e6 if is_ours and is_number and int(usec) > 0 else None)


@cache
def this_manager() -> Manager:
    """The manager of this very process: its environment speaks of one, and is read once."""
    return take_manager(os.environ, os.getpid())
