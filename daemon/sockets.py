"""The daemon's socket: one JSON object a line, asked and answered. Source: targets 30, ruling D6.

Only processes of the same user get in (folder 0700, socket 0600, peer credentials), and none of them can hold the
daemon up: a request has 64 KiB and one second, and 64 clients are served at a time.
"""

from __future__ import annotations

import json
import os
import select
import socket
import stat
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from daemon.place import client_sockets

REQUEST_BYTES = 64 * 1024
REQUEST_S = 1.0
CLIENTS = 64
ANSWER_BYTES = 16 * 1024 * 1024
_LOOK_S = 2.0  # how often the listener makes sure that its path still leads to it

Message = dict[str, object]


class Server:
    """Answers requests in threads of its own. `handle` gets the request, with its `verb`, and returns the answer.

    What `handle` raises is told to `on_error`; the client sees only that it failed.
    """

    def __init__(self, path: Path, handle: Callable[[Message], Message], on_error: Callable[[Exception], None]) -> None:
        self.path = path
        self._handle = handle
        self._on_error = on_error
        self._slots = threading.BoundedSemaphore(CLIENTS)
        self._listener, self._bound = _listen(path)
        self._stopped, self._stop = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="socket", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stops listening and removes the path if it is still ours. Answers under way end with the process."""
        if self._stop < 0:
            return
        os.close(self._stop)
        self._stop = -1
        if self._thread.ident is not None:
            self._thread.join()
        if self._leads_here():
            self.path.unlink(missing_ok=True)
        self._listener.close()
        os.close(self._stopped)

    def _serve(self) -> None:
        while True:
            ready = _wait((self._listener.fileno(), self._stopped), _LOOK_S)
            if self._stopped in ready:
                return
            try:
                if ready:
                    self._accept()
                elif not self._leads_here():
                    self._listen_again()
            except OSError as error:
                self._on_error(error)
                if _wait((self._stopped,), 0.1):  # out of descriptors: do not spin
                    return

    def _leads_here(self) -> bool:
        """Whether the path is still the socket we bound."""
        try:
            return os.path.samestat(os.lstat(self.path), self._bound)
        except OSError:
            return False

    def _listen_again(self) -> None:
        """A cleaner of temporary folders took the path away; bind it anew."""
        fresh, self._bound = _listen(self.path)
        self._listener.close()
        self._listener = fresh

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        client.settimeout(REQUEST_S)
        if not _may_talk(client):
            client.close()
        elif not self._slots.acquire(blocking=False):
            with client:
                _send(client, {"error": f"{CLIENTS} clients are being served already; try again"})
        else:
            threading.Thread(target=self._converse, args=(client,), name="socket client", daemon=True).start()

    def _converse(self, client: socket.socket) -> None:
        """Answers one request after the other until the client has no more, is slow, or breaks a limit."""
        rest = b""
        try:
            with client:
                while True:
                    try:
                        line, rest = _receive_line(client, rest, REQUEST_BYTES, REQUEST_S)
                    except _Refused as refusal:
                        _send(client, {"error": str(refusal)})
                        return
                    if not line:
                        return
                    _send(client, self._answer(line))
        except OSError:
            pass  # the client went away, or was slow
        finally:
            self._slots.release()

    def _answer(self, line: bytes) -> Message:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            return {"error": "the request is not JSON"}
        if not isinstance(request, dict) or not isinstance(request.get("verb"), str):
            return {"error": 'a request is an object with a "verb"'}
        try:
            return self._handle(request)
        except Exception as error:
            self._on_error(error)
            return {"error": "the daemon failed to answer; its log has the reason"}


def ask(root: Path, verb: str, *, timeout_s: float | None = 5.0, **fields: object) -> Message | None:
    """The answer of this repository's daemon; None when none lives. `timeout_s` None waits for as long as it takes.

    Raises TimeoutError where a daemon lives and does not answer in time.
    """
    for path in client_sockets(root):
        connection = _connect(path, timeout_s)
        if connection is None:
            continue
        with connection:
            try:
                _send(connection, {"verb": verb, **fields})
                line, _ = _receive_line(connection, b"", ANSWER_BYTES, timeout_s)
            except TimeoutError:
                raise
            except (OSError, _Refused):
                return None  # it died while we spoke
            answer = json.loads(line) if line else None
            return answer if isinstance(answer, dict) else None
    return None


class _Refused(Exception):
    """The other side broke a limit; the text is for it."""


def _connect(path: Path, timeout_s: float | None) -> socket.socket | None:
    if not _is_private(path.parent):
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        connection.settimeout(timeout_s)
        connection.connect(os.fspath(path))
        if _may_talk(connection):
            return connection
    except (TimeoutError, BlockingIOError):  # it lives, and its queue of clients is full
        connection.close()
        raise TimeoutError("the daemon is busy") from None
    except OSError:
        pass  # nobody listens there
    connection.close()
    return None


def _send(connection: socket.socket, message: Message) -> None:
    connection.sendall(json.dumps(message, default=str, separators=(",", ":")).encode("ascii") + b"\n")


def _receive_line(connection: socket.socket, rest: bytes, limit: int, time_s: float | None) -> tuple[bytes, bytes]:
    """One line and what came after it; an empty line at the end. The time is for the whole line, not for each byte."""
    deadline = None if time_s is None else monotonic() + time_s
    parts = [rest]
    size = len(rest)
    while b"\n" not in parts[-1]:
        if size > limit:
            raise _Refused(f"a line may hold {limit} bytes")
        left = None if deadline is None else deadline - monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        block = connection.recv(65536)
        if not block:
            return b"", b""
        parts.append(block)
        size += len(block)
    line, after = b"".join(parts).split(b"\n", 1)
    if len(line) > limit:
        raise _Refused(f"a line may hold {limit} bytes")
    connection.settimeout(time_s)
    return line, after


def _wait(descriptors: tuple[int, ...], time_s: float) -> set[int]:
    """Those that can be read now; empty after the time. poll, because select ends at descriptor 1023."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return {descriptor for descriptor, _ in poll.poll(time_s * 1000)}


def _listen(path: Path) -> tuple[socket.socket, os.stat_result]:
    """A listening socket and its path's identity. The caller holds the instance lock, so one found there is a dead one's."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(path.parent)
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and found.st_mode & 0o077:
        path.parent.chmod(0o700)
    if not _is_private(path.parent):
        raise PermissionError(f"{path.parent} must be a folder of this user with mode 0700")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        os.fchmod(listener.fileno(), 0o600)  # before bind: the path never exists with a wider mode
        if path.is_socket():
            path.unlink()
        listener.bind(os.fspath(path))
        listener.listen(CLIENTS)
        listener.setblocking(False)
        return listener, os.lstat(path)
    except BaseException:
        listener.close()
        raise


def _is_private(folder: Path) -> bool:
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _may_talk(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as this user."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True  # other systems: the folder's mode is the wall
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", data)
    return bool(uid in (os.getuid(), 0))
