"""Task files: frontmatter, acceptance criteria, and the exact edits ingest makes on them. Source: protocol §1.7, §4.3-4.4.

A file is edited by line, so every byte an edit does not mean to change stays (CRLF, BOM, trailing spaces, key order; W-24).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from parsers.faults import Fault
from parsers.frontmatter import Value, parse_frontmatter, set_key
from parsers.layout import stem_at
from parsers.markdown import BOM, Line, decode, encode, newline_of, parse_heading, scan_lines

DEFAULT_PRIORITY = 999
MAX_NEAR_PAIRS = 100_000  # criteria times boxes that are compared for containment; no real task comes near

_BOX = re.compile(r"(?P<head>[ \t]*- \[)(?P<mark>[ xX])(?P<tail>\] )(?P<text>.*)\Z")
_BLOCK_START = re.compile(r"[ \t]*(?:[-*+]|[0-9]+[.)])[ \t]|[ \t]*(?:>|\||#{1,6}[ \t])")
_COVERS = "(covers:"
_REQUIREMENT = re.compile(r"REQ-[0-9]+\Z")
EXECUTION_LOG = "Execution Log"
_LOG_BLOCK = re.compile(r"## Execution Log — [0-9]{4}-[0-9]{2}-[0-9]{2} \(")
_LINE_END = re.compile(r"(?<!\r)\r+\n")


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
    stem = stem_at(path)
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
        number = float(value) if isinstance(value, int | str) else 0.0
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def normalise(text: str) -> str:
    """Lower case, white space runs to one space, trimmed. Source: protocol §4.3."""
    return " ".join(text.lower().split())


def without_covers(text: str) -> str:
    """The text without a trailing `(covers: …)` clause."""
    at = _covers_at(text)
    return text if at is None else text[:at].rstrip()


def _covers_at(text: str) -> int | None:
    """Where the trailing covers clause begins; None when there is none. No pattern: it would search long texts for hours."""
    bare = text.rstrip()
    if not bare.endswith(")"):
        return None
    at = bare.find(_COVERS, bare.rfind(")", 0, len(bare) - 1) + 1)
    return None if at < 0 else at


def _covered(text: str) -> tuple[str, ...]:
    at = _covers_at(text)
    ids = [] if at is None else text[at + len(_COVERS) :].rstrip()[:-1].split(",")
    return tuple(name for part in ids if _REQUIREMENT.match(name := part.strip()))


def parse_boxes(text: str) -> tuple[Box, ...]:
    """The acceptance criteria: boxes outside code fences and before the first Execution Log. Source: W-22, ruling C9."""
    lines = list(_body_lines(text))
    boxes: list[Box] = []
    for at, line in enumerate(lines):
        found = None if line.fenced else _BOX.match(line.text)
        if not found:
            continue
        joined = " ".join([found["text"].strip(), *_wrapped(lines, at + 1, len(found["head"]) - 3)])
        boxes.append(Box(line.at, found["mark"] != " ", found["text"], joined, _covered(joined)))
    return tuple(boxes)


def _body_lines(text: str) -> Iterator[Line]:
    """The lines before the log. A block of the log ends the body even inside a fence that nobody closed: what a result
    says there could otherwise close it, and its boxes would count."""
    for line in scan_lines(text.split("\n")):
        heading = parse_heading(line.text)
        is_log = heading and heading[0] == 2 and heading[1].startswith(EXECUTION_LOG)
        if is_log and (not line.fenced or _LOG_BLOCK.match(line.text)):
            return
        yield line


def _wrapped(lines: Sequence[Line], start: int, indent: int) -> Iterator[str]:
    """The lines that go on with a box's text: indented deeper than its dash, and no new block."""
    for at in range(start, len(lines)):
        line = lines[at]
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
    free box has. An empty criterion matches nothing. The order of the criteria does not matter: where two want the same
    box, the longer one, which says more, is served first. Source: W-22, ruling C9.
    """
    wanted = [normalise(criterion) for criterion in criteria]
    open_ = sorted((at for at, text in enumerate(wanted) if text), key=lambda at: (-len(wanted[at]), wanted[at]))
    order = sorted(range(len(boxes)), key=lambda i: not boxes[i].ticked) if prefer_ticked else range(len(boxes))
    free = dict.fromkeys(order)
    found: dict[int, int] = {}
    for key_of, sought in ((_whole, str), (_first, str), (_bare, without_covers)):
        _match_equal(boxes, wanted, key_of, sought, open_, free, found)
    _match_near(boxes, wanted, open_, free, found)
    return tuple(found.get(at) for at in range(len(wanted)))


def _match_equal(
    boxes: Sequence[Box],
    wanted: Sequence[str],
    key_of: Callable[[Box], str],
    sought: Callable[[str], str],
    open_: list[int],
    free: dict[int, None],
    found: dict[int, int],
) -> None:
    """Give each open criterion the first free box whose key is what it seeks."""
    by_key: dict[str, deque[int]] = defaultdict(deque)
    for index in free:
        by_key[key_of(boxes[index])].append(index)
    for at in tuple(open_):
        if fitting := by_key.get(sought(wanted[at])):
            found[at] = fitting.popleft()
            del free[found[at]]
    open_[:] = [at for at in open_ if at not in found]


def _match_near(
    boxes: Sequence[Box], wanted: Sequence[str], open_: list[int], free: dict[int, None], found: dict[int, int]
) -> None:
    """Give each open criterion the one free box that contains it or is contained in it, until nothing more is certain."""
    texts = {index: _whole(boxes[index]) for index in free} if len(open_) * len(free) <= MAX_NEAR_PAIRS else {}
    near = {at: {index for index in texts if _contains(texts[index], wanted[at])} for at in open_}
    waiting = [at for at in open_ if near[at]]
    while (certain := next((at for at in waiting if len(near[at]) == 1), None)) is not None:
        (found[certain],) = near[certain]
        waiting = [at for at in waiting if at != certain]
        for at in waiting:
            near[at].discard(found[certain])


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


def box_edits(boxes: Sequence[Box], indexes: Sequence[int], ticked: bool) -> list[SetBox]:
    """The edits that set these boxes, told by their text so that they still find them in a file that moved on."""
    before: Counter[str] = Counter()
    nth: list[int] = []
    for box in boxes:
        nth.append(before[box.text])
        before[box.text] += 1
    return [SetBox(boxes[index].text, nth[index], ticked) for index in indexes]


def block_edit(text: str, block: str) -> AddBlock:
    """The edit that adds this block once more than it stands in the text. Its lines end in LF whatever ends they came with,
    so that it is found again in a file of either newline style."""
    block = with_lf(block)
    return AddBlock(block, with_lf(text).count(block) + 1)


def with_lf(text: str) -> str:
    """The text with LF for each line end."""
    return _LINE_END.sub("\n", text)


def apply_edits(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The file with each edit that is absent carried out; applying twice changes nothing more."""
    text = decode(data)
    for is_box, group in groupby(edits, lambda edit: isinstance(edit, SetBox)):
        if is_box:
            text = _set_boxes(text, [edit for edit in group if isinstance(edit, SetBox)])
            continue
        for edit in group:
            match edit:
                case SetKey(key, value):
                    text = set_key(text, key, value)
                case AddBlock(block, times):
                    if with_lf(text).count(block) < times:
                        text += block if newline_of(text) == "\n" else block.replace("\n", "\r\n")
    return encode(text)


def _set_boxes(text: str, edits: Sequence[SetBox]) -> str:
    """The text with these boxes set. It is parsed once: a tick changes no box's text and no line's place."""
    places: dict[str, list[Box]] = defaultdict(list)
    for box in parse_boxes(text):
        places[box.text].append(box)
    lines = text.split("\n")
    for edit in edits:
        same = places.get(edit.text, [])
        if edit.nth < len(same):
            lines[same[edit.nth].line] = _with_mark(lines[same[edit.nth].line], edit.ticked)
    return "\n".join(lines)


def _with_mark(line: str, ticked: bool) -> str:
    found = _BOX.match(line.removeprefix(BOM))
    assert found is not None  # parse_boxes saw it on this very line
    if (found["mark"] != " ") == ticked:
        return line
    at = len(found["head"]) + len(line) - len(line.removeprefix(BOM))
    return line[:at] + ("x" if ticked else " ") + line[at + 1 :]
