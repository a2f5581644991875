"""What a reducer wants done: the only two changes that are journaled; views are derived, not asked for. Source: design §2, §3.

Reducers return changes; only daemon/store.py carries them out. A task edit travels as edits by meaning (set this key,
tick this box, add this block), not as bytes: the journal stays small, and a file that someone changed meanwhile takes the
same edits again instead of being overwritten.
"""

from __future__ import annotations

from typing import NamedTuple

from parsers.tasks import Edit


class EditTask(NamedTuple):
    """Edit a task file: `was` are the bytes the edits were made on, `content` what they give."""

    path: str
    edits: tuple[Edit, ...]
    was: bytes
    content: bytes


class Append(NamedTuple):
    """Append text to a ledger; `header` comes first where the file does not exist yet."""

    path: str
    text: str
    header: str = ""


Change = EditTask | Append
