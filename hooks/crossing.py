"""The one way from a hook to the daemon's own code: a process that is asked and has a time limit. Source: ruling D5, targets 22."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence


def ask_daemon_code(root: str, words: Sequence[str], limit_s: float) -> tuple[bytes, int | None]:
    """What `python -I -m daemon <words>` prints for the repository at `root`, and its exit status: None where it had to be killed.

    Raises OSError where no such process can be started.
    """
    from hooks.git import scrubbed_env

    command = [sys.executable, "-I", "-m", "daemon", "--repo", root, *words]
    out_read, out_write = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    actions = [
        (os.POSIX_SPAWN_DUP2, nothing, 0),
        (os.POSIX_SPAWN_DUP2, out_write, 1),
        (os.POSIX_SPAWN_DUP2, nothing, 2),
    ]
    try:
        process = os.posix_spawn(sys.executable, command, scrubbed_env(), file_actions=actions, setpgroup=0)
    except OSError:
        os.close(out_read)
        raise
    finally:
        os.close(out_write)
        os.close(nothing)
    return _read_for(process, out_read, limit_s)


def _read_for(process: int, fd: int, limit_s: float) -> tuple[bytes, int | None]:
    """All that the process writes, and its exit status: None where it had to be killed."""
    import select
    import signal

    ends_at = time.monotonic() + limit_s
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLHUP)
    parts: list[bytes] = []
    is_done = False
    while not is_done and (left_s := ends_at - time.monotonic()) > 0 and poll.poll(left_s * 1000):
        chunk = os.read(fd, 1 << 16)
        parts.append(chunk)
        is_done = not chunk
    os.close(fd)
    if not is_done:
        os.killpg(process, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return b"".join(parts), status if is_done else None
