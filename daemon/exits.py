"""The exit statuses, and the exception with which a command ends early. Source: cli §1."""

from __future__ import annotations

DONE = 0
WANTING = 1
USAGE = 2
NOTHING_THERE = 3
MUST_DECIDE = 4
GATE_ABORTS = 5
TRIPPED = 6
HELD = 7
BUG = 70
INTERRUPTED = 130


class Exit(Exception):
    """Ends a command with a status and one message on stderr; empty message: silently."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
