"""Journal entries: one committed transaction as one line, and how far a file has come along its edits. Source: design §3, ruling D1.

An entry holds the cause and every change. A task edit is told by meaning with the hash before and after it, and with the
whole text before it (`base`) where the journal does not know that text yet; an append is told by offset.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import NamedTuple, assert_never

from parsers.markdown import encode
from parsers.tasks import AddBlock, Edit, SetBox, SetKey, apply_edits


class EditEntry(NamedTuple):
    """Edits of one task file. `base` is the text they were made on, None where an earlier entry leads to it."""

    path: str
    was: str
    now: str
    edits: tuple[Edit, ...]
    base: str | None


class AppendEntry(NamedTuple):
    """Text appended to one ledger at a byte offset."""

    path: str
    offset: int
    text: str


Step = EditEntry | AppendEntry


class Cause(NamedTuple):
    """The fact behind a transaction."""

    path: str
    sha256: str
    order_id: str
    outcome: str


class Entry(NamedTuple):
    """One transaction: its number in the run's journal, when, why, and its steps in order."""

    seq: int
    at: str
    cause: Cause
    steps: tuple[Step, ...]


def hash_of(data: bytes) -> str:
    """The hash a file's state is told by."""
    return hashlib.sha256(data).hexdigest()


def render_entry(entry: Entry) -> bytes:
    """The entry as one line, closed by a checksum over everything before it."""
    body = json.dumps(
        {
            "seq": entry.seq,
            "at": entry.at,
            "cause": entry.cause._asdict(),
            "steps": [_step_row(s) for s in entry.steps],
        },
        ensure_ascii=True,
        separators=(",", ":"),
    ).encode()
    return body[:-1] + b',"sum":"%08x"}\n' % zlib.crc32(body)


def parse_entry(line: bytes) -> Entry | None:
    """The entry of a line without its LF; None when the line is torn or was changed."""
    body, mark, tail = line.rpartition(b',"sum":"')
    if not mark or tail != b'%08x"}' % zlib.crc32(body + b"}"):
        return None
    try:
        row = json.loads(body + b"}")
        return Entry(row["seq"], row["at"], Cause(**row["cause"]), tuple(map(_parse_step, row["steps"])))
    except (ValueError, KeyError, TypeError):
        return None


def _step_row(step: Step) -> dict[str, object]:
    match step:
        case EditEntry():
            row: dict[str, object] = {"op": "edit", "path": step.path, "was": step.was, "now": step.now}
            row["edits"] = [_edit_row(edit) for edit in step.edits]
            return row if step.base is None else row | {"base": step.base}
        case AppendEntry():
            return {"op": "append", "path": step.path, "offset": step.offset, "text": step.text}
        case _:
            assert_never(step)


def _edit_row(edit: Edit) -> list[object]:
    name = {SetKey: "key", SetBox: "box", AddBlock: "block"}[type(edit)]
    return [name, *edit]


def _parse_step(row: dict[str, object]) -> Step:
    if row["op"] == "append":
        return AppendEntry(str(row["path"]), int(str(row["offset"])), str(row["text"]))
    if row["op"] != "edit" or not isinstance(row["edits"], list):
        raise ValueError(row["op"])
    base = row.get("base")
    edits = tuple(_parse_edit(edit) for edit in row["edits"])
    return EditEntry(str(row["path"]), str(row["was"]), str(row["now"]), edits, None if base is None else str(base))


def _parse_edit(row: list[object]) -> Edit:
    match row:
        case ["key", str(key), str(value)]:
            return SetKey(key, value)
        case ["box", str(text), int(nth), bool(ticked)]:
            return SetBox(text, nth, ticked)
        case ["block", str(text), int(times)]:
            return AddBlock(text, times)
    raise ValueError(row)


def roll_forward(data: bytes | None, steps: Sequence[EditEntry]) -> bytes | None:
    """The file with every journaled edit in it, from whatever state a crash left it in; None when it cannot be told.

    A state the journal knows takes the edits after it. A state it does not know (someone wrote the file meanwhile) takes
    every edit that is absent. A missing file is made again from the newest base.
    """
    if data is not None:
        digest = hash_of(data)
        for done in range(len(steps), 0, -1):
            if steps[done - 1].now == digest:
                return _apply(data, steps[done:])
        return _apply(data, steps)
    for first in range(len(steps) - 1, -1, -1):
        base = steps[first].base
        if base is not None:
            return _apply(encode(base), steps[first:])
    return None


def _apply(data: bytes, steps: Sequence[EditEntry]) -> bytes:
    for step in steps:
        data = apply_edits(data, step.edits)
    return data


def complete_appends(data: bytes, steps: Sequence[AppendEntry]) -> tuple[int, bytes] | None:
    """(offset to cut at, bytes to add) that bring a ledger to hold every journaled append once; None when it does."""
    text = data
    for step in steps:
        added = encode(step.text)
        if text[step.offset : step.offset + len(added)] == added or added in text[max(0, step.offset - len(added)) :]:
            continue
        if step.offset <= len(text) and added.startswith(text[step.offset :]):
            text = text[: step.offset]  # torn by the crash, or exactly where it should go on
        text += added
    if text == data:
        return None
    keep = next((at for at, (left, right) in enumerate(zip(data, text, strict=False)) if left != right), None)
    keep = min(len(data), len(text)) if keep is None else keep
    return keep, text[keep:]
