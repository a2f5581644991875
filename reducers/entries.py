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

from parsers.markdown import decode, encode
from parsers.tasks import AddBlock, Edit, SetBox, SetKey, apply_edits, with_lf


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


def resume(data: bytes | None, steps: Sequence[EditEntry], done: int) -> bytes | None:
    """The file after a crash; None when it cannot be told. `steps` are all its edits, the first `done` known to be on disk.

    As `roll_forward`, with what only a recovery may assume: a beginning of a known text is that text, torn by a power cut;
    and an edit whose block stands in the file was carried out, so what is otherwise in it was meant by whoever wrote it
    since (a file is renamed into place as a whole).
    """
    tail = steps[done:]
    known = {digest for step in steps for digest in (step.was, step.now)}
    if data is None or hash_of(data) in known:
        return roll_forward(data, tail)
    texts = _known_texts(steps, done)
    beginning = data.rstrip(b"\0")  # some file systems leave zeros for what was not written yet
    if any(len(data) <= len(text) and text.startswith(beginning) for text in texts):
        return texts[-1]
    carried_out = max((at for at, step in enumerate(tail, 1) if _has_block(data, step)), default=0)
    return roll_forward(data, tail[carried_out:])


def _known_texts(steps: Sequence[EditEntry], done: int) -> list[bytes]:
    """The file's text before and after each edit, from the newest base that leads to the edits after `done`."""
    bases = [at for at, step in enumerate(steps[: done + 1]) if step.base is not None]
    texts: list[bytes] = []
    for step in steps[bases[-1] :] if bases else ():
        if step.base is not None:
            texts.append(encode(step.base))
        texts.append(apply_edits(texts[-1], step.edits))
    return texts


def _has_block(data: bytes, step: EditEntry) -> bool:
    text = with_lf(decode(data))
    return any(isinstance(edit, AddBlock) and text.count(edit.text) >= edit.times for edit in step.edits)


def complete_appends(data: bytes, steps: Sequence[AppendEntry], *, is_whole: bool = False) -> tuple[int, bytes] | None:
    """(offset to cut at, bytes to add) that bring a ledger to hold every journaled append once; None when it does.

    An append that is not at its offset is looked for elsewhere: someone may have added or taken out rows, and rows that were
    taken out and came back stand behind later ones. Of two equal appends each needs a place of its own. `is_whole`: these are
    all appends there ever were, so whatever stands anywhere in the ledger is one of them.
    """
    kept, added, found_to, has_moved = data, b"", 0, is_whole
    spent: dict[bytes, int] = {}  # where the last place that was given to an append of this text ends
    for step in steps:
        text = encode(step.text)
        free = spent.get(text, 0)
        if step.offset >= free and kept.startswith(text, step.offset):
            spent[text] = found_to = step.offset + len(text)
        elif step.offset == len(kept) + len(added) and not (has_moved and text in kept[free:]):
            added += text
        elif not added and step.offset < len(kept) and text.startswith(kept[step.offset :].rstrip(b"\0")):
            kept, added = kept[: step.offset], text  # torn by the crash
        elif (at := kept.find(text, max(free, found_to))) >= 0 or (at := kept.find(text, free)) >= 0:
            spent[text] = found_to = at + len(text)
            has_moved = True  # offsets say little from here on: a file may end at one by chance
        else:
            added += text
    if not added:
        return None
    is_glued = steps[0].path.endswith(".jsonl") and kept != b"" and not kept.endswith(b"\n")
    return len(kept), b"\n" * (is_glued and not added.startswith(b"\n")) + added
