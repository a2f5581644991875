"""What a daemon remembers of stray writes from one start to the next: since when orders are live, and what was told. Source: ruling E7.

The file lies beside the daemon's lock in the common git dir and is gone while no order is live. Whoever edits it can at most
make strays be told twice or not at all; commits are judged without it.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from daemon.stray.sightings import Mark

NAME = "shapeupd.strays.json"
MOST = 2000  # paths of one worktree that are remembered, the newest
LARGEST = 8 << 20

Told = Mapping[str, Mapping[bytes, Mark]]  # by the top of the worktree, then by path: what it was when it was told


class Memory(NamedTuple):
    """`since_ns`: when orders became live, in nanoseconds since 1970."""

    since_ns: int
    told: Told


def read_memory(git_dir: Path) -> Memory | None:
    """The memory; None where none is, or what lies there is none."""
    try:
        fd = os.open(git_dir / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with open(fd, "rb") as file:
            value = json.loads(file.read(LARGEST))
        told = {
            str(top): {base64.b64decode(path, validate=True): tuple(map(int, mark)) for path, mark in marks.items()}
            for top, marks in value["told"].items()
        }
        return Memory(int(value["since_ns"]), told)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def write_memory(git_dir: Path, memory: Memory) -> None:
    """Replace the file; where the disk refuses, a restart tells more than it should."""
    told = {
        top: {base64.b64encode(path).decode("ascii"): mark for path, mark in list(marks.items())[-MOST:]}
        for top, marks in memory.told.items()
    }
    text = json.dumps({"schema": 1, "since_ns": memory.since_ns, "told": told}, separators=(",", ":")) + "\n"
    aside = git_dir / f"{NAME}.{os.getpid()}.tmp"
    try:
        forget_file(aside)
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(text)
        os.replace(aside, git_dir / NAME)
    except OSError:
        forget_file(aside)


def forget_memory(git_dir: Path) -> None:
    """Remove the file."""
    forget_file(git_dir / NAME)


def forget_file(path: Path) -> None:
    """Remove the file, if it is there and can be removed."""
    try:
        os.unlink(path)
    except OSError:
        pass
