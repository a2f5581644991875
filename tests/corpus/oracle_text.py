"""What the two ingests do to one text, written from the protocol alone: the reference's way, and each fix by its name.

Independent of parsers/ and reducers/ on purpose: it is the second opinion that the replay tests hold against both the records
and our own files. `fixes` are the names of the rules in force; none of them is the reference. Source: protocol §4.3-4.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

Fixes = frozenset[str]

BOM = "\ufeff"
GLYPH = {"ready": "⬜", "in-progress": "🔄", "blocked": "🚫", "done": "✅"}
_REF_BOX = re.compile(r"(\s*- \[)[ x](\] )(.*)", re.DOTALL)
_BOX = re.compile(r"([ \t]*- \[)[ xX](\] )(.*)", re.DOTALL)
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_NEW_BLOCK = re.compile(r"\s*([-*+]|\d+[.)])\s|\s*(>|\||#{1,6}\s)")


class TaskFile(NamedTuple):
    """What an ingest reads of a task file."""

    id: str
    status: str
    title: str
    depends_on: tuple[str, ...]
    has_frontmatter: bool


def flat(text: str) -> str:
    return " ".join(text.lower().split())


def bare(text: str) -> str:
    return flat(re.sub(r"\(covers:[^)]*\)\s*\Z", "", text))


def is_crlf(text: str) -> bool:
    return text.split("\n", 1)[0].endswith("\r") and "\n" in text


# --- checkboxes: W-22, W-24 ---------------------------------------------------------------------------------------------


def set_boxes(text: str, criteria: Sequence[str], wanted: Sequence[bool], on: bool, fixes: Fixes) -> tuple[str, int]:
    """The text with the box of each wanted criterion ticked (or un-ticked), and how many criteria found one."""
    if "W-22" in fixes:
        places = match_boxes(text, criteria, prefer_ticked=not on)
        places = [place if want else None for place, want in zip(places, wanted, strict=True)]
    else:
        places = [
            _ref_place(text, criterion) if want else None for criterion, want in zip(criteria, wanted, strict=True)
        ]
    hits = [place for place in places if place is not None]
    lines = text.split("\n")
    if hits and "W-24" not in fixes:
        lines = [line.removesuffix("\r") for line in lines]
    for place in hits:
        mark = re.compile(
            r"\[[ xX]\]" if not on or "W-22" not in fixes else r"\[ \]"
        )  # a box that is ticked stays as it is
        head, bracket, tail = lines[place].partition("]")
        lines[place] = mark.sub("[x]" if on else "[ ]", head + bracket, count=1) + tail
    return "\n".join(lines), len(hits)


def _ref_place(text: str, criterion: str) -> int | None:
    for at, line in enumerate(text.split("\n")):
        box = _REF_BOX.fullmatch(line.removesuffix("\r"))
        if box and (flat(criterion) in flat(box[3]) or flat(box[3]) in flat(criterion)):
            return at
    return None


class Box(NamedTuple):
    line: int
    ticked: bool
    first: str
    whole: str


def boxes_of(text: str) -> list[Box]:
    """The acceptance criteria: outside fences, before the first Execution Log, wrapped lines joined."""
    return list(_boxes([line.removesuffix("\r") for line in text.split("\n")]))


def _boxes(lines: list[str]) -> Iterator[Box]:
    fence = ""
    for at, line in enumerate(lines):
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        if re.match(r"##\s+Execution Log" if not fence else r"## Execution Log — [\d-]+ \(", line):
            return
        if fence:
            continue
        if box := _BOX.fullmatch(line):
            whole = [box[3].strip()]
            for more in lines[at + 1 :]:
                deeper = len(more) - len(more.lstrip()) > len(box[1]) - 3
                if not more.strip() or not deeper or _NEW_BLOCK.match(more) or _FENCE.match(more):
                    break
                whole.append(more.strip())
            yield Box(at, "[ ]" not in line[: len(box[1]) + 2], box[3], " ".join(whole))


def match_boxes(text: str, criteria: Sequence[str], *, prefer_ticked: bool) -> list[int | None]:
    """The line of each criterion's box: whole text, first line, without covers, then a containment that is unique.

    Where two want one box, the longer criterion is served first; a containment counts once every other choice is taken.
    """
    free = sorted(boxes_of(text), key=lambda box: prefer_ticked and not box.ticked)
    found: list[int | None] = [None] * len(criteria)
    same = (
        lambda box, text: flat(box.whole) == flat(text),
        lambda box, text: flat(box.first) == flat(text),
        lambda box, text: bare(box.whole) == bare(text),
        lambda box, text: bool(flat(box.whole)) and (flat(text) in flat(box.whole) or flat(box.whole) in flat(text)),
    )
    order = sorted(range(len(criteria)), key=lambda at: (-len(flat(criteria[at])), flat(criteria[at])))
    for level, is_same in enumerate(same):
        while True:
            served = len(free)
            for at in order:
                near = [box for box in free if is_same(box, criteria[at])]
                if found[at] is None and flat(criteria[at]) and near and (level < 3 or len(near) == 1):
                    found[at] = near[0].line
                    free.remove(near[0])
                    break
            if len(free) == served:
                break
    return found


# --- frontmatter: W-23, W-24, W-28, W-76 --------------------------------------------------------------------------------


def set_key(text: str, key: str, value: str, fixes: Fixes) -> str:
    mark = BOM if "W-76" in fixes and text.startswith(BOM) else ""
    rest = text.removeprefix(mark)
    block = re.match(r"---\r?\n(.*?)\r?\n---", rest, re.DOTALL)
    if block is None:
        return text
    body, line = block[1], re.compile(rf"^{key}:[^\r\n]*", re.M)
    if line.search(body):
        new = line.sub(lambda _: f"{key}: {value}", body, count=1)
    else:
        new = body + ("\r\n" if "W-24" in fixes and is_crlf(rest) else "\n") + f"{key}: {value}"
    if "W-23" in fixes:
        return mark + rest[: block.start(1)] + new + rest[block.end(1) :]
    return mark + _js_replace(rest, body, new)


def _js_replace(text: str, old: str, new: str) -> str:
    """The first `old` replaced, with `$$`, `$&`, `` $` `` and `$'` in `new` meaning what they mean in a replacement string."""
    at = text.find(old)
    before, after = text[:at], text[at + len(old) :]
    meaning = {"$$": "$", "$&": old, "$`": before, "$'": after}
    return before + re.sub(r"\$[$&`']", lambda token: meaning[token[0]], new) + after


def read_task(name: str, text: str, fixes: Fixes) -> TaskFile:
    return _read_task(name, text, "W-28" in fixes)


@lru_cache(maxsize=4096)
def _read_task(name: str, text: str, in_dialect: bool) -> TaskFile:
    stem = name.removesuffix(".md")
    block = re.match(rf"{BOM}?---\r?\n(.*?)^---\r?$", text, re.DOTALL | re.M)
    if in_dialect:
        values = _dialect(block[1]) if block else {}
        deps = values.get("depends_on", ())
        return TaskFile(
            _one(values.get("id", "")) or stem,
            _one(values.get("status", "")),
            _one(values.get("title", "")),
            deps if isinstance(deps, tuple) else tuple([deps] if deps else []),
            block is not None,
        )
    listed = re.search(r"^depends_on:\s*\[(.*)\]", text, re.M)
    deps = tuple(part for raw in (listed[1] if listed else "").split(",") if (part := _unquoted(raw)))
    return TaskFile(_plain(text, "id") or stem, _plain(text, "status"), _plain(text, "title"), deps, block is not None)


def _plain(text: str, key: str) -> str:
    found = re.search(rf"^{key}:[ \t]*([^\r\n]*)", text, re.M)
    return _unquoted(found[1]) if found else ""


def _unquoted(raw: str) -> str:
    return raw.strip().strip("\"'")


def _one(value: str | tuple[str, ...]) -> str:
    return value if isinstance(value, str) and value not in ("~", "null", "true", "false") else ""


def _dialect(block: str) -> dict[str, str | tuple[str, ...]]:
    values: dict[str, str | tuple[str, ...]] = {}
    items: list[str] = []
    key = ""
    for line in [raw.removesuffix("\r") for raw in block.split("\n")]:
        item = re.fullmatch(r"\s*-\s+(.*)", line)
        if item and key:
            items.append(_unquoted(item[1]))
            values[key] = tuple(items)
        elif line[:1] not in ("", " ", "\t") and ":" in line:
            name, _, raw = line.partition(":")
            key, items = "", []
            if name.strip() in values:
                continue
            listed = re.fullmatch(r"\s*\[(.*)\]\s*", raw)
            key = "" if raw.strip() else name.strip()
            inline = tuple(part for one in (listed[1] if listed else "").split(",") if (part := _unquoted(one)))
            values[name.strip()] = inline if listed else _unquoted(raw)
    return values


# --- logs and ledgers: L7, W-24 -------------------------------------------------------------------------------------------


def inert(text: str, fixes: Fixes) -> str:
    return re.sub(r"(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]) {0,3}#", "    #", text) if "L7" in fixes else text


def add_block(text: str, block: str, fixes: Fixes) -> str:
    return text + (block.replace("\n", "\r\n") if "W-24" in fixes and is_crlf(text) else block)


# --- the index: W-18, W-19, W-24 ------------------------------------------------------------------------------------------


def flip_rows(index: str, task_id: str, names: frozenset[str], to: str, fixes: Fixes) -> str:
    """The index with the rows of a task that became done or ready rewritten. `names` are what its ID cell may say."""
    rows = dict(table_rows(index)) if "W-18" in fixes else {}
    lines = index.split("\n") if "W-24" in fixes else [line.removesuffix("\r") for line in index.split("\n")]
    for at, line in enumerate(lines):
        if "W-18" not in fixes:
            if "|" in line and task_id in line:
                lines[at] = _flip(line, to)
        elif at in rows and rows[at].key in names:
            cell = rows[at]
            if "W-19" in fixes:
                lines[at] = line[: cell.start] + _flip(line[cell.start : cell.end], to) + line[cell.end :]
            else:
                lines[at] = _flip(line, to)
    return "\n".join(lines)


def _flip(text: str, to: str) -> str:
    if to == "done":
        return re.sub(r"(?i)\b(ready|in-progress|blocked)\b", "done", re.sub("[⬜🔄⏳🚫]", "✅", text))
    return re.sub(r"(?i)\bblocked\b", "ready", re.sub("[⏳🚫]", "⬜", text))


class StatusCell(NamedTuple):
    """A row of the index that has an ID and a Status: what the ID cell says, and where in the line the Status cell stands."""

    key: str
    start: int
    end: int


def table_rows(index: str) -> Iterator[tuple[int, StatusCell]]:
    """(line index, row) of every table with an ID and a Status column."""
    header: list[str] | None = None
    for at, line in enumerate(index.split("\n")):
        edges = [found.start() for found in re.finditer(r"(?<!\\)\|", line)]
        if not line.lstrip().startswith("|"):
            header = None
            continue
        cells = [(left + 1, right) for left, right in pairwise(edges)]
        texts = [line[left:right] for left, right in cells]
        if header is None:
            header = [text.strip().lower() for text in texts]
        elif {"id", "status"} <= set(header) and len(texts) > max(header.index("id"), header.index("status")):
            key = re.sub(r"\[\[([^\]|\\]*)(\\?\|[^\]]*)?\]\]", r"\1", texts[header.index("id")])
            row = StatusCell(key.strip().strip("`*").strip(), *cells[header.index("status")])
            yield from () if all(re.fullmatch(r"\s*:?-+:?\s*", text) for text in texts) else [(at, row)]
