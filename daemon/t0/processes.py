"""Runs one command line of a contract: what it printed, how it ended, and nothing of it left behind. Source: protocol §6.1, W-47, ruling G10.

Nothing polls: the pipes, the process's own descriptor and the time left are waited for together. A process that outlives
the command is killed with the command's session, and one that left the session cannot hold us up: nobody waits for its pipe.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from daemon.clock import monotonic
from hooks.git import scrubbed_env

SHELL = "/bin/sh"
TAIL_BYTES = 1 << 20
GRACE_S = 5.0  # between asking a command to end and ending it
_PIECE = 1 << 16
# What speaks to this process and must not speak to a fixture: the service manager's socket, and who commits for which order.
_OURS = ("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "SHAPEUP_ORDER", "SHAPEUP_OVERRIDE")


class Measured(NamedTuple):
    """One command as it ran. `exit` None: it was killed, or never started. `error`: why nothing was measured (no start, no end in time).

    The tails are the last TAIL_BYTES of each stream. A command that the shell does not find ends with 127 and is no error.
    """

    cmd: str
    exit: int | None
    error: str | None
    stdout_tail: bytes
    stderr_tail: bytes
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether it ended by itself, in time, with 0."""
        return self.exit == 0 and self.error is None

    @property
    def output(self) -> bytes:
        """stdout, LF, stderr: what is digested."""
        return self.stdout_tail + b"\n" + self.stderr_tail


def fixture_env(source: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a fixture: the caller's own, without what would lead its git elsewhere or speak for us."""
    own = os.environ if source is None else source
    scrubbed = {**scrubbed_env(own)}
    del scrubbed["LC_ALL"]  # git's words are read by nobody here, and a fixture's language is its caller's
    if "LC_ALL" in own:
        scrubbed["LC_ALL"] = own["LC_ALL"]
    return {key: value for key, value in scrubbed.items() if key not in _OURS and not key.startswith("WATCHDOG_")}


def run_command(
    cmd: str,
    folder: Path,
    timeout_s: float,
    *,
    env: Mapping[str, str] | None = None,
    grace_s: float = GRACE_S,
    started: Callable[[int], None] | None = None,
) -> Measured:
    """Run the command line through the shell in the folder, to its end or to the end of its time. Never raises for what it does.

    `started` is told the process id, which is that of its group and session too. An exception that comes from outside meanwhile
    (an interrupt) goes on, with the session killed.
    """
    begun = monotonic()
    run: _Run | None = None
    try:
        with _uninterrupted():
            run = _start(cmd, folder, fixture_env() if env is None else env)
        if started:
            started(run.pid)
        run.wait(begun + timeout_s)
        late = None if run.has_ended else run.stop(grace_s, f"not ended after {timeout_s:g} s")
    except _NotStarted as error:
        return Measured(cmd, None, f"not started: {error}", b"", b"", monotonic() - begun)
    finally:
        if run is not None:
            run.close()
    status = run.status
    return Measured(cmd, status if status >= 0 else None, late, run.out.tail, run.err.tail, monotonic() - begun)


class _NotStarted(Exception):
    """There is no process; the text says why."""


def _start(cmd: str, folder: Path, env: Mapping[str, str]) -> _Run:
    try:
        process = subprocess.Popen(
            (SHELL, "-c", cmd),
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the command
        raise _NotStarted(str(error)) from None
    try:
        return _Run(process)
    except BaseException:
        with process:
            os.killpg(process.pid, signal.SIGKILL)
        raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold back what would raise here, until the process is in hands that end it; then it raises.

    The signals are not blocked: a process that is started would inherit that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    before = {number: handler for number, handler in before.items() if callable(handler)}
    for number in before:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


class _Tail:
    """One stream: its descriptor and the last bytes that came through."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._kept = bytearray()
        os.set_blocking(fd, False)

    @property
    def tail(self) -> bytes:
        return bytes(self._kept[-TAIL_BYTES:])

    def take(self) -> bool | None:
        """Take in one piece; True at the end of the stream, None where nothing waits to be read."""
        try:
            piece = os.read(self.fd, _PIECE)
        except BlockingIOError:
            return None
        self._kept += piece
        if len(self._kept) > 2 * TAIL_BYTES:
            del self._kept[:-TAIL_BYTES]
        return not piece

    def drain(self) -> None:
        """Take in what lies in the pipe now. One that others still fill is not emptied for ever."""
        left = fcntl.fcntl(self.fd, fcntl.F_GETPIPE_SZ) // _PIECE + 2
        while left and self.take() is False:
            left -= 1


class _Run:
    """A started command: what it prints is taken in until it ends. It is reaped last, so that its id stays its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self.out = _Tail(process.stdout.fileno())
        self.err = _Tail(process.stderr.fileno())
        self.has_ended = False
        self._end = os.pidfd_open(process.pid)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._end, selectors.EVENT_READ)
        for stream in (self.out, self.err):
            self._selector.register(stream.fd, selectors.EVENT_READ, stream)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int:
        """How it ended; negative: by that signal. To be asked when all is closed."""
        return self._process.returncode

    def wait(self, until: float) -> None:
        """Take in what is printed until the command ends or the time is over."""
        while not self.has_ended:
            left = until - monotonic()
            ready = self._selector.select(max(left, 0))
            for key, _ in ready:
                if key.data is None:
                    self.has_ended = True
                elif key.data.take():
                    self._selector.unregister(key.fd)
            if left <= 0:
                return  # one that never stops printing has no more time than another

    def stop(self, grace_s: float, why: str) -> str:
        """Ask the whole session to end, and wait a little."""
        _signal_session(self._process.pid, signal.SIGTERM)
        self.wait(monotonic() + grace_s)
        return why

    def close(self) -> None:
        """Kill what is left, take in what was printed, reap the command."""
        _signal_session(self._process.pid, signal.SIGKILL)
        try:
            if not self.has_ended:
                self._selector.unregister(self._end)
                os.waitid(os.P_PIDFD, self._end, os.WEXITED | os.WNOWAIT)
            for stream in (self.out, self.err):
                stream.drain()
        finally:
            self._selector.close()
            os.close(self._end)
            with self._process:  # closes the pipes and reaps
                pass


def _signal_session(session: int, number: int) -> None:
    """Signal the group that the command leads, and every process of its session that left the group.

    The command is not reaped yet, so its id means nobody else. What forks while we look is looked for again.
    """
    signalled: set[int] = set()
    while True:
        try:
            os.killpg(session, number)
        except (ProcessLookupError, PermissionError):
            pass
        found = {pid for pid in _session_members(session) if pid != session} - signalled
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                pass
        signalled |= found


def _session_members(session: int) -> set[int]:
    """The processes of a session that live; none where the system has no /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return set()
    return {int(name) for name in names if name.isdecimal() and _session_of(int(name)) == session}


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None
