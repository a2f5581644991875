"""Runs the git command line, the reference for reading changes. Source: design §4, targets 22-23, hazards B.

No `subprocess`: importing it costs as much as the whole check. Light module: standard library only.
"""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from typing import NamedTuple


class Ran(NamedTuple):
    """How one git command ended: its exit status (128 and more: it failed, or a signal killed it) and its two outputs."""

    status: int
    out: bytes
    err: bytes


class GitFailed(Exception):
    """git could not answer; the text is its own: the last line that says what is wrong."""


# A check takes no lock and talks to no network: what a partial clone lacks is missing (gits before 2.45 do not know
# GIT_NO_LAZY_FETCH, and find every way to the remote closed).
_READING = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "LC_ALL": "C"}


def hook_env(source: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a git that must see what the running hook sees: its index, its quarantine. It can only read."""
    return {**(os.environ if source is None else source), **_READING}


def scrubbed_env(source: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a git (or any child) that must not be led elsewhere: no GIT_*, no lock taken."""
    kept = {key: value for key, value in (os.environ if source is None else source).items() if key[:4] != "GIT_"}
    return {**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def run_git(*args: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Ran:
    """Run `git <args>` to its end; use `-C <dir>` for another folder. `env` None: `hook_env()`.

    Raises FileNotFoundError where there is no git.
    """
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, in_read, 0),
        (os.POSIX_SPAWN_DUP2, out_write, 1),
        (os.POSIX_SPAWN_DUP2, err_write, 2),
    ]
    try:
        process = os.posix_spawnp("git", ("git", *args), hook_env() if env is None else env, file_actions=actions)
    except OSError:
        for fd in (in_write, out_read, err_read):
            os.close(fd)
        raise
    finally:
        for fd in (in_read, out_write, err_write):
            os.close(fd)
    out, err = _converse(in_write, stdin, out_read, err_read)
    return Ran(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) & 0xFF, out, err)


def ask_git(*args: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
    """What `git <args>` prints. Raises GitFailed where it ends with anything but 0."""
    ran = run_git(*args, stdin=stdin, env=env)
    if ran.status:
        raise GitFailed(complaint(ran, os.fsdecode(args[0])))
    return ran.out


def complaint(ran: Ran, verb: str) -> str:
    """What a git that failed says is wrong. Advice may follow that line, so it need not be the last one."""
    lines = ran.err.decode("utf-8", "replace").strip().splitlines()
    wrong = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return (wrong or lines or [f"git {verb} ended with {ran.status}"])[-1]


def _converse(in_write: int, stdin: bytes, out_read: int, err_read: int) -> tuple[bytes, bytes]:
    """Write and read at once, so that no full pipe stops both sides."""
    read: dict[int, list[bytes]] = {out_read: [], err_read: []}
    open_ends = {out_read, err_read}
    poll = select.poll()
    for fd in open_ends:
        poll.register(fd, select.POLLIN | select.POLLHUP)
    left = memoryview(stdin)
    if left:
        os.set_blocking(in_write, False)
        poll.register(in_write, select.POLLOUT)
    else:
        os.close(in_write)
    while open_ends or left:
        for fd, _ in poll.poll():
            if fd == in_write:
                left = _push(in_write, left, poll)
                continue
            chunk = os.read(fd, 1 << 16)
            if chunk:
                read[fd].append(chunk)
            else:
                poll.unregister(fd)
                open_ends.discard(fd)
                os.close(fd)
        if left and not open_ends:
            _give_up(in_write, poll)
            break
    return b"".join(read[out_read]), b"".join(read[err_read])


def _push(in_write: int, left: memoryview, poll: select.poll) -> memoryview:
    try:
        left = left[os.write(in_write, left) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        left = left[:0]
    if not left:
        _give_up(in_write, poll)
    return left


def _give_up(in_write: int, poll: select.poll) -> None:
    poll.unregister(in_write)
    os.close(in_write)
