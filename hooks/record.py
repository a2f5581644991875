"""Tells the daemon's log what a hook decided, without waiting for anybody. Source: rulings D5, E8.

Light module: standard library only.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence

from hooks.git import scrubbed_env
from hooks.verdict import Violation, violation_row

ROWS = 200  # violations that one event names
MAX_BYTES = 60_000  # what a pipe takes without a reader


def record(
    root: str,
    event: str,
    hook: str,
    violations: Sequence[Violation],
    *,
    order_id: str | None = None,
    reason: str | None = None,
) -> None:
    """Start `python -I -m daemon record` with one row on its stdin: `commit.rejected` or `hook.override`. What goes wrong there
    changes no verdict."""
    command = (sys.executable, "-I", "-m", "daemon", "--repo", root, "record")
    try:
        in_read, in_write = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
    except OSError:
        return
    actions = [(os.POSIX_SPAWN_DUP2, in_read, 0), (os.POSIX_SPAWN_DUP2, nothing, 1), (os.POSIX_SPAWN_DUP2, nothing, 2)]
    try:
        os.posix_spawn(sys.executable, command, scrubbed_env(), file_actions=actions, setsid=True)
        os.write(in_write, _row(event, hook, violations, order_id, reason))
    except OSError:
        pass
    finally:
        for fd in (in_read, in_write, nothing):
            os.close(fd)


def _row(event: str, hook: str, violations: Sequence[Violation], order_id: str | None, reason: str | None) -> bytes:
    row: dict[str, object] = {"event": event, "hook": hook, "subject": order_id, "order_id": order_id}
    if reason is not None:
        row["reason"] = reason[:1000]
    row["rules"] = sorted({violation.rule for violation in violations})
    for count in (ROWS, 40, 5, 0):
        rows: list[Mapping[str, object]] = [violation_row(violation) for violation in violations[:count]]
        data = json.dumps(row | {"violations": rows}).encode("ascii") + b"\n"
        if len(data) <= MAX_BYTES:
            break
    return data
