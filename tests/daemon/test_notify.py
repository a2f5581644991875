"""What the service manager hears, and what the environment keeps. Source: targets 32, sd_notify(3)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from daemon.notify import VARIABLES, take_manager

PID = 4711


@pytest.fixture(params=["path", "abstract"])
def ear(request: pytest.FixtureRequest) -> Iterator[tuple[str, socket.socket]]:
    """An address as $NOTIFY_SOCKET tells it, and the socket that listens there."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        told = f"{folder}/notify" if request.param == "path" else f"@shapeupd-test{folder}"
        heard.bind(told.replace("@", "\0", 1) if told.startswith("@") else told)
        heard.settimeout(30)
        yield told, heard


def test_it_speaks_to_paths_and_to_abstract_sockets(ear: tuple[str, socket.socket]) -> None:
    told, heard = ear
    party = take_manager({"NOTIFY_SOCKET": told}, PID).join()
    assert party.ready("watching /a\nREADY=0")
    assert heard.recv(4096) == b"READY=1\nSTATUS=watching /a READY=0"
    assert party.alive()
    assert heard.recv(4096) == b"WATCHDOG=1"
    assert party.stopping("SIGTERM")
    assert heard.recv(4096) == b"STOPPING=1\nSTATUS=stopping: SIGTERM"


def test_several_services_are_ready_when_all_are_and_alive_while_all_are(ear: tuple[str, socket.socket]) -> None:
    told, heard = ear
    manager = take_manager({"NOTIFY_SOCKET": told}, PID)
    one, two = manager.join(), manager.join()
    one.ready("one")
    two.ready("two")
    assert heard.recv(4096) == b"READY=1\nSTATUS=one; two"
    for _ in range(3):
        one.alive()
    two.status("alive next")
    two.alive()
    assert [heard.recv(4096) for _ in range(2)] == [b"STATUS=alive next", b"WATCHDOG=1"]


@pytest.mark.parametrize(
    ("usec", "pid", "ping_s"),
    [
        ("30000000", None, 15.0),
        ("30000000", str(PID), 15.0),
        ("30000000", "1", None),
        ("0", None, None),
        ("-1", None, None),
        ("soon", None, None),
        ("٣", None, None),
        ("9" * 40, None, None),
        (None, None, None),
    ],
)
def test_it_pings_at_half_the_time_if_the_time_is_meant_for_it(
    usec: str | None, pid: str | None, ping_s: float | None
) -> None:
    environ = {"NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": usec, "WATCHDOG_PID": pid, "PATH": "/bin"}
    given = {name: value for name, value in environ.items() if value is not None}
    assert take_manager(given, PID).ping_s == ping_s
    assert given == {"PATH": "/bin"}


@pytest.mark.parametrize("address", [None, "", "vsock:2:1234", "relative"])
def test_without_a_socket_it_can_speak_to_nothing_is_said_and_nothing_wanted(address: str | None) -> None:
    environ = {"WATCHDOG_USEC": "1"} | ({} if address is None else {"NOTIFY_SOCKET": address})
    manager = take_manager(environ, PID)
    party = manager.join()
    assert manager.ping_s is None
    assert party.ready("x")
    assert party.alive()
    assert not environ.keys() & set(VARIABLES)


def test_a_manager_that_is_gone_or_does_not_read_holds_nothing_up(tmp_path: Path) -> None:
    gone = take_manager({"NOTIFY_SOCKET": os.fspath(tmp_path / "gone")}, PID).join()
    assert not gone.ready("x")
    too_long = take_manager({"NOTIFY_SOCKET": "/" + "x" * 200}, PID).join()
    assert not too_long.ready("x")
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(f"{folder}/notify")
        deaf = take_manager({"NOTIFY_SOCKET": f"{folder}/notify"}, PID).join()
        taken = 0
        while deaf.alive():
            taken += 1
        assert taken > 0
