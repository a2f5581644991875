"""Task files: frontmatter, acceptance criteria, and the exact edits ingest makes on them. Source: protocol §1.7, §4.3-4.4.

A file is edited by line, so every byte an edit does not mean to change stays (CRLF, BOM, trailing spaces, key order; W-24).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from parsers.faults import Fault
from parsers.frontmatter import Value, parse_frontmatter, set_key
from parsers.markdown import Line, decode, encode, newline_of, parse_heading, scan_lines

STATUSES = ("ready", "in-progress", "blocked", "done", "cut")
DEFAULT_PRIORITY = 999

_BOX = re.compile(r"(?P<head>[ \t]*- \[)(?P<mark>[ xX])(?P<tail>\] )(?P<text>.*)\Z")
_BLOCK_START = re.compile(r"[ \t]*(?:[-*+]|[0-9]+[.)])[ \t]|[ \t]*(?:>|\||#{1,6}[ \t])")
_COVERS = re.compile(r"\(covers:(?P<ids>[^)]*)\)\s*\Z")
_REQUIREMENT = re.compile(r"REQ-[0-9]+\Z")
EXECUTION_LOG = "Execution Log"


class Task(NamedTuple):
    """What the board knows of one task file. `has_frontmatter` False: only `id` (the file stem) and `path` mean anything."""

    path: str
    id: str
    title: str
    status: str  # empty when the file states none
    depends_on: tuple[str, ...]
    unlocks: tuple[str, ...]
    priority: int
    scope_id: str | None
    package: str
    estimated_hours: float
    use_case_refs: tuple[str, ...]
    has_frontmatter: bool


class Box(NamedTuple):
    """One acceptance criterion: its line index, whether it is ticked, its first line, and its text with wrapped lines joined."""

    line: int
    ticked: bool
    first: str
    text: str
    covers: tuple[str, ...]


def parse_task(path: str, data: bytes) -> tuple[Task, Fault | None]:
    """The task; with a fault when its frontmatter is beyond the dialect's limits (the file then counts as having none)."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".md")
    block, fault = parse_frontmatter(decode(data), path)
    values = block.values if block else {}
    declared = values.get("id")
    return (
        Task(
            path=path,
            id=_text(declared) or stem,
            title=_text(values.get("title")),
            status=_text(values.get("status")),
            depends_on=_names(values.get("depends_on")),
            unlocks=_names(values.get("unlocks")),
            priority=_integer(values.get("priority"), DEFAULT_PRIORITY),
            scope_id=_text(values.get("scope_id")) or None,
            package=_text(values.get("package")),
            estimated_hours=_number(values.get("estimated_hours")),
            use_case_refs=_names(values.get("use_case_refs")),
            has_frontmatter=block is not None,
        ),
        fault,
    )


def _text(value: Value) -> str:
    if value is None or isinstance(value, bool | tuple):
        return ""
    return str(value)


def _names(value: Value) -> tuple[str, ...]:
    if isinstance(value, tuple):
        return value
    return (str(value),) if isinstance(value, str) and value else ()


def _integer(value: Value, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _number(value: Value) -> float:
    try:
        return float(value) if isinstance(value, int | str) else 0.0
    except ValueError:
        return 0.0


def normalise(text: str) -> str:
    """Lower case, white space runs to one space, trimmed. Source: protocol §4.3."""
    return " ".join(text.lower().split())


def without_covers(text: str) -> str:
    """The text without a trailing `(covers: …)` clause."""
    return _COVERS.sub("", text).rstrip()


def parse_boxes(text: str) -> tuple[Box, ...]:
    """The acceptance criteria: boxes outside code fences and before the first Execution Log. Source: W-22, ruling C9."""
    lines = list(_body_lines(text))
    boxes: list[Box] = []
    for at, line in enumerate(lines):
        found = None if line.fenced else _BOX.match(line.text)
        if not found:
            continue
        joined = " ".join([found["text"].strip(), *_wrapped(lines[at + 1 :], len(found["head"]) - 3)])
        clause = _COVERS.search(joined)
        ids = [part.strip() for part in clause["ids"].split(",")] if clause else []
        covers = tuple(part for part in ids if _REQUIREMENT.match(part))
        boxes.append(Box(line.at, found["mark"] != " ", found["text"], joined, covers))
    return tuple(boxes)


def _body_lines(text: str) -> Iterator[Line]:
    for line in scan_lines(text.split("\n")):
        heading = None if line.fenced else parse_heading(line.text)
        if heading and heading[0] == 2 and heading[1].startswith(EXECUTION_LOG):
            return
        yield line


def _wrapped(lines: Sequence[Line], indent: int) -> Iterator[str]:
    """The lines that go on with a box's text: indented deeper than its dash, and no new block."""
    for line in lines:
        text = line.text
        depth = len(text) - len(text.lstrip(" \t"))
        if line.fenced or not text.strip() or depth <= indent or _BLOCK_START.match(text):
            return
        yield text.strip()


def match_boxes(
    boxes: Sequence[Box], criteria: Sequence[str], *, prefer_ticked: bool = False
) -> tuple[int | None, ...]:
    """For each criterion the index of its box, or None: each box is given once, the surest matches first.

    Surest first: the whole text, the first line, the text without its covers clause, then a containment that only one
    free box has. An empty criterion matches nothing. Source: W-22, ruling C9.
    """
    wanted = [normalise(criterion) for criterion in criteria]
    found: list[int | None] = [None] * len(wanted)
    order = sorted(range(len(boxes)), key=lambda i: not boxes[i].ticked) if prefer_ticked else range(len(boxes))
    free = list(order)
    for exact in (_whole, _first, _bare):
        keys = [exact(box) for box in boxes]
        for at, text in enumerate(wanted):
            if text and found[at] is None:
                sought = normalise(without_covers(text)) if exact is _bare else text
                found[at] = next((i for i in free if keys[i] == sought), None)
                if found[at] is not None:
                    free.remove(found[at])  # type: ignore[arg-type]
    for at, text in enumerate(wanted):
        if text and found[at] is None:
            near = [i for i in free if _contains(_whole(boxes[i]), text)]
            if len(near) == 1:
                found[at] = near[0]
                free.remove(near[0])
    return tuple(found)


def _whole(box: Box) -> str:
    return normalise(box.text)


def _first(box: Box) -> str:
    return normalise(box.first)


def _bare(box: Box) -> str:
    return normalise(without_covers(box.text))


def _contains(left: str, right: str) -> bool:
    return bool(left) and bool(right) and (left in right or right in left)


class SetKey(NamedTuple):
    """Set one frontmatter key."""

    key: str
    value: str


class SetBox(NamedTuple):
    """Tick or un-tick the `nth` (from 0) box whose joined text is `text`."""

    text: str
    nth: int
    ticked: bool


class AddBlock(NamedTuple):
    """Add a block of text at the end of the file, in the file's newline style; present when it stands there `times` times."""

    text: str
    times: int


Edit = SetKey | SetBox | AddBlock


def box_edit(boxes: Sequence[Box], index: int, ticked: bool) -> SetBox:
    """The edit that sets this box, told by its text so that it still finds it in a file that moved on."""
    text = boxes[index].text
    return SetBox(text, sum(1 for box in boxes[:index] if box.text == text), ticked)


def block_edit(text: str, block: str) -> AddBlock:
    """The edit that adds this block once more than it stands in the text."""
    return AddBlock(block, text.replace("\r\n", "\n").count(block) + 1)


def apply_edits(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The file with each edit that is absent carried out; applying twice changes nothing more."""
    text = decode(data)
    for edit in edits:
        match edit:
            case SetKey(key, value):
                text = set_key(text, key, value)
            case SetBox():
                text = _set_box(text, edit)
            case AddBlock(block, times):
                if text.replace("\r\n", "\n").count(block) < times:
                    text += block if newline_of(text) == "\n" else block.replace("\n", "\r\n")
    return encode(text)


def _set_box(text: str, edit: SetBox) -> str:
    same = [box for box in parse_boxes(text) if box.text == edit.text]
    if edit.nth >= len(same) or same[edit.nth].ticked == edit.ticked:
        return text
    lines = text.split("\n")
    line = same[edit.nth].line
    found = _BOX.match(lines[line].removesuffix("\r"))
    assert found is not None  # parse_boxes saw it on this very line
    at = len(found["head"])
    lines[line] = lines[line][:at] + ("x" if edit.ticked else " ") + lines[line][at + 1 :]
    return "\n".join(lines)
