"""Runs a function in a forked child that is killed when it enters its n-th system call, by ptrace. Source: targets 6."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

_TRACEME, _SYSCALL, _SETOPTIONS = 0, 24, 0x4200
_SYSGOOD, _EXITKILL = 1, 0x100000
_SYSCALL_STOP = signal.SIGTRAP | 0x80

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


class ChildFailed(Exception):
    """The child ended by itself, and not well."""


def _ptrace(request: int, pid: int, data: int = 0) -> None:
    if _libc.ptrace(request, pid, None, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def refusal() -> str | None:
    """Why children cannot be traced here; None where they can."""
    try:
        return None if run_until(lambda: None, 1 << 30) else "the traced child did not run"
    except OSError as error:
        return f"no ptrace here: {error}"


def run_until(act: Callable[[], object], entry: int) -> int | None:
    """Kill the child as it enters its `entry`-th system call (from 1): None. It ended before that: how many it entered."""
    pid = os.fork()
    if pid == 0:
        _be_traced(act)
    try:
        return _trace(pid, entry)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _be_traced(act: Callable[[], object]) -> None:
    status = 99
    try:
        if _libc.ptrace(_TRACEME, 0, None, None) == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
            act()
            status = 0
    finally:
        os._exit(status)


def _trace(pid: int, entry: int) -> int | None:
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        raise PermissionError(1, "the child may not ask to be traced")
    _ptrace(_SETOPTIONS, pid, _SYSGOOD | _EXITKILL)
    entered, inside, deliver = 0, False, 0
    while True:
        _ptrace(_SYSCALL, pid, deliver)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return entered
        if not os.WIFSTOPPED(status):
            raise ChildFailed(status)
        deliver = 0
        if os.WSTOPSIG(status) != _SYSCALL_STOP:
            deliver = os.WSTOPSIG(status)
            continue
        inside = not inside
        entered += inside
        if inside and entered == entry:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
