"""Requirement rows and invariant entries: which ids a spec defines, and by which text. Source: protocol §1.4, §5.3, W-32, R-38.

Light module: hooks import it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from parsers.markdown import Line, parse_heading, parse_tables, scan_lines

_REQUIREMENT = re.compile(r"\bREQ-[A-Z0-9][A-Z0-9-]*")
_INVARIANT = re.compile(r"\[?INV-[A-Z0-9][A-Z0-9-]*\]?\Z")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+")
_MARKUP = str.maketrans("", "", "*_~`")
_BLANKS = re.compile(r"\s+")
_CLAUSE_COLUMNS = ("clause", "requirement", "text", "statement", "description")


class Definition(NamedTuple):
    """One id and the text that it stands for, markup and line breaks removed. `line` counts from 1."""

    id: str
    text: str
    line: int


def parse_requirements(text: str) -> tuple[Definition, ...]:
    """The requirements: table rows whose first cell holds an id, by their clause; in a file without any such row, the list
    items and headings that begin with one."""
    if "REQ-" not in text:
        return ()
    lines = text.split("\n")
    rows = tuple(_table_requirements(lines))
    return rows or tuple(_listed(lines, _REQUIREMENT))


def _table_requirements(lines: list[str]) -> Iterator[Definition]:
    for table in parse_tables(lines):
        header = [_plain(cell) for cell in table.header]
        clause = next((header.index(name) for name in _CLAUSE_COLUMNS if name in header), 1)
        for line, cells in table.rows:
            if cells and (found := _REQUIREMENT.search(cells[0])):
                yield Definition(found[0], _plain(cells[clause]) if clause < len(cells) else "", line + 1)


def parse_invariants(text: str) -> tuple[Definition, ...]:
    """The invariants of a use case: list items that begin with `[INV-n]`, and table rows of an Invariants section."""
    if "INV-" not in text:
        return ()
    lines = text.split("\n")
    return (*_listed(lines, _INVARIANT), *_tabled_invariants(lines))


def _tabled_invariants(lines: list[str]) -> Iterator[Definition]:
    inside = frozenset(_lines_below_invariants(lines))
    for table in parse_tables(lines):
        if table.header_line not in inside:
            continue
        for line, cells in table.rows:
            first = _plain(cells[0]) if cells else ""
            if _INVARIANT.match(first):
                yield Definition(first.strip("[]"), _plain(" ".join(cells[1:2])), line + 1)


def _lines_below_invariants(lines: list[str]) -> Iterator[int]:
    is_inside = False
    for line in scan_lines(lines):
        if not line.fenced and (heading := parse_heading(line.text)):
            is_inside = "invariant" in heading[1].lower()
        if is_inside:
            yield line.at


def _listed(lines: list[str], pattern: re.Pattern[str]) -> Iterator[Definition]:
    """List items and headings that begin with an id; the lines that continue an item belong to its text."""
    item: tuple[str, int, list[str]] | None = None
    for line in scan_lines(lines):
        begun = None if line.fenced else _begin(line, pattern)
        if begun or _ends_item(line):
            if item:
                yield Definition(item[0], _plain(" ".join(item[2])), item[1])
            item = (begun[0], line.at + 1, [begun[1]]) if begun else None
        elif item:
            item[2].append(line.text)
    if item:
        yield Definition(item[0], _plain(" ".join(item[2])), item[1])


def _begin(line: Line, pattern: re.Pattern[str]) -> tuple[str, str] | None:
    """The id and the first line of text of an entry that starts here."""
    heading = parse_heading(line.text)
    marker = _LIST_ITEM.match(line.text)
    if not heading and not marker:
        return None
    text = heading[1] if heading else line.text[marker.end() :] if marker else ""
    word, _, rest = text.translate(_MARKUP).strip().partition(" ")
    word = word.rstrip(":.,;")
    found = pattern.match(word)
    return (found[0].strip("[]"), rest.lstrip(" :—–-")) if found and found.end() == len(word) else None


def _ends_item(line: Line) -> bool:
    if line.fenced:
        return False
    is_table = line.text.lstrip().startswith("|")
    return not line.text.strip() or is_table or bool(parse_heading(line.text) or _LIST_ITEM.match(line.text))


def _plain(text: str) -> str:
    return _BLANKS.sub(" ", text.translate(_MARKUP)).strip()
