"""The frontmatter dialect of task files and contracts: values, what could not be read, one key set. Source: protocol §10.1-10.3, W-23, W-28, W-73.

It is not YAML: anchors, aliases, merge keys and tags mean nothing here, so no bomb can be built from them.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from parsers.faults import Fault
from parsers.markdown import BOM, encode, newline_of

MAX_FRONTMATTER_BYTES = 64 * 1024

Scalar = str | int | bool | None
Value = Scalar | tuple[str, ...]

_CODE_SPAN = re.compile(r"(`{1,3})([^`]+)\1\Z")
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")


class Unread(NamedTuple):
    """Lines below a key that the dialect cannot take in (§10.1, rows 2 and 4). `line` is the key's, counted from 0."""

    key: str
    has_inline: bool  # True: the inline value was kept and the lines were not; False: the value reads as null
    rows: int
    line: int


class Frontmatter(NamedTuple):
    """The block's values by key, in file order, and its lines: `first` is the line after the opening `---`, `last` the closing one.

    `lines`: where each key stands, counted from 0. `doubled`: the lines that name a key once more; the first one counts.
    """

    values: dict[str, Value]
    first: int
    last: int
    lines: dict[str, int]
    unread: tuple[Unread, ...] = ()
    doubled: tuple[tuple[str, int], ...] = ()


def parse_frontmatter(text: str, where: str) -> tuple[Frontmatter | None, Fault | None]:
    """The block at byte 0 (after a byte order mark); (None, None) when the text has none."""
    lines = text.removeprefix(BOM).split("\n")
    last = _closing(lines)
    if last is None:
        return None, None
    block = lines[1:last]
    if len(encode("\n".join(block))) > MAX_FRONTMATTER_BYTES:
        what = f"the frontmatter is larger than {MAX_FRONTMATTER_BYTES} bytes"
        why = "frontmatter holds a task's keys; anything that large belongs in the body"
        return None, Fault("E-FRONTMATTER", where, what, why, "move long values below the closing ---")
    return _parse_block(block, last), None


def _closing(lines: list[str]) -> int | None:
    """The line that ends the block; None when there is no block. Text behind its dashes is body: a recorded reading (H2)."""
    if lines[0].rstrip("\r") != "---":
        return None
    return next((at for at in range(1, len(lines)) if lines[at].startswith("---")), None)


def _parse_block(lines: list[str], last: int) -> Frontmatter:
    values: dict[str, Value] = {}
    places: dict[str, int] = {}
    unread: list[Unread] = []
    doubled: list[tuple[str, int]] = []
    index = 0
    while index < len(lines):
        line = lines[index].rstrip("\r")
        at = index = index + 1  # the block's first line is the text's second
        if not line.strip() or line[0] in " \t" or ":" not in line:
            continue
        name, _, inline = line.partition(":")
        key = name.strip()
        while index < len(lines) and continues(lines[index]):
            index += 1
        items, stray = _below(lines[at:index])
        if key in values:
            doubled.append((key, at))
            continue
        places[key] = at
        values[key] = parse_scalar(inline) if inline.strip() else tuple(map(_item_text, items)) or None
        rows = len(items) + stray if inline.strip() else 0 if items else stray
        if rows:
            unread.append(Unread(key, bool(inline.strip()), rows, at))
    return Frontmatter(values, 1, last, places, tuple(unread), tuple(doubled))


def _below(lines: list[str]) -> tuple[list[str], int]:
    """The block items below a key, dashes removed, and how many other lines stand there."""
    texts = [text for line in lines if (text := line.strip())]
    items = [text[1:].strip() for text in texts if text == "-" or text.startswith("- ")]
    return items, len(texts) - len(items)


def continues(line: str) -> bool:
    """Indented and blank lines belong to the key above; so does an un-indented list item (W-73)."""
    text = line.rstrip("\r")
    return not text.strip() or text[0] in " \t" or text == "-" or text.startswith("- ")


def _item_text(item: str) -> str:
    """A block item through the scalar rule and back to text: `~` is `null`, `[p, q]` is `p,q`."""
    return scalar_text(parse_scalar(item))


def scalar_text(value: Value) -> str:
    """A value where the dialect wants text: lists joined by commas, the rest as JSON spells it."""
    if isinstance(value, tuple):
        return ",".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def parse_scalar(raw: str) -> Value:
    """A value by the scalar rule: code span, list, quotes, booleans, null, integers, else text. Source: protocol §10.2."""
    text = raw.strip()
    if span := _CODE_SPAN.match(text):
        text = span[2].strip()
    if text.startswith("[") and text.endswith("]"):
        return parse_inline_list(text[1:-1])
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        text = _unquote(text)
    if text in ("true", "false"):
        return text == "true"
    if text in ("", "~", "null"):
        return None
    return int(text) if _INTEGER.match(text) else text


def _unquote(text: str) -> str:
    if text[0] == '"':
        try:
            decoded = json.loads(text)
            encode(decoded)  # an escaped half surrogate is no text that a file could hold
        except ValueError:
            return text[1:-1]
        return str(decoded)
    return text[1:-1]


def parse_inline_list(inner: str) -> tuple[str, ...]:
    """Comma-separated items outside quotes; always text, empty ones dropped. Source: protocol §10.3."""
    items: list[str] = []
    current: list[str] = []
    quote = ""
    escaped = False
    for char in inner:
        if escaped:
            current.append(char if char in (quote, "\\") else "\\" + char)
            escaped = False
        elif quote and char == "\\":
            escaped = True
        elif quote:
            quote, char = ("", "") if char == quote else (quote, char)
            current.append(char)
        elif char in "\"'":
            quote = char
        elif char == ",":
            items.append("".join(current).strip())
            current = []
        else:
            current.append(char)
    items.append("".join(current).strip())
    return tuple(item for item in items if item)


def set_key(text: str, key: str, value: str) -> str:
    """The text with `key: value` in its frontmatter: the first line of that key, else a new last line.

    Literal: nothing in the value is special (W-23). Newline style and BOM stay. No frontmatter: unchanged.
    """
    mark = BOM if text.startswith(BOM) else ""
    lines = text.removeprefix(BOM).split("\n")
    last = _closing(lines)
    if last is None:
        return text
    for index in range(1, last):
        name, colon, _ = lines[index].partition(":")
        if colon and name.rstrip() == key:
            lines[index] = f"{key}: {value}" + ("\r" if lines[index].endswith("\r") else "")
            break
    else:
        lines.insert(last, f"{key}: {value}{newline_of(text)[:-1]}")
    return mark + "\n".join(lines)
