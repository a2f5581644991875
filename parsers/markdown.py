"""Lines, fences, headings, checkboxes and tables of a markdown text, with line numbers for exact edits. Source: ruling G6.

Every byte a caller does not mean to change stays: texts are split on LF alone, a CR stays on its line, and `decode`
keeps what is not UTF-8 so that `encode` gives it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

BOM = "\ufeff"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r"#{1,6}(?=[ \t])")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_SEPARATOR = re.compile(r"\s*:?-{2,}:?\s*\Z")


def decode(data: bytes) -> str:
    """The text, with bytes that are not UTF-8 kept aside for `encode`."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The exact bytes `decode` read."""
    return text.encode("utf-8", "surrogateescape")


def newline_of(text: str) -> str:
    """The newline style of the text: that of its first line, LF where it has none."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


class Line(NamedTuple):
    """One line: its index `at`, its text without the line end, and whether it lies inside a fenced code block."""

    at: int
    text: str
    fenced: bool


def scan_lines(lines: list[str]) -> Iterator[Line]:
    """The lines with their fence state; a fence's own two lines count as fenced. A byte order mark is no text (L1)."""
    fence = ""
    for index, raw in enumerate(lines):
        text = (raw if index else raw.removeprefix(BOM)).rstrip("\r")
        found = _FENCE.match(text)
        if fence:
            yield Line(index, text, True)
            if found and found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip():
                fence = ""
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
            yield Line(index, text, True)
        else:
            yield Line(index, text, False)


def parse_heading(text: str) -> tuple[int, str] | None:
    """Level and text of a heading line; None for any other line."""
    found = _HEADING.match(text)
    return (found.end(), text[found.end() :].strip(" \t")) if found else None


class Row(NamedTuple):
    """One table row: its line index and its cells as they stand, spaces included."""

    line: int
    cells: tuple[str, ...]


class Table(NamedTuple):
    """A table: header names trimmed and lower-cased, then its rows, separator rows left out."""

    header: tuple[str, ...]
    header_line: int
    rows: tuple[Row, ...]


def split_cells(text: str) -> tuple[str, ...] | None:
    """The cells of a `|` line, spaces kept; None when the line is no table row."""
    if not text.lstrip().startswith("|"):
        return None
    parts = _CELL_EDGE.split(text.strip())
    return tuple(parts[1:-1] if len(parts) > 2 and not parts[-1].strip() else parts[1:])


def parse_tables(lines: list[str]) -> tuple[Table, ...]:
    """Every table outside code fences. A line that is no `|` line ends a table."""
    tables: list[Table] = []
    header: Row | None = None
    rows: list[Row] = []
    for line in scan_lines(lines):
        cells = None if line.fenced else split_cells(line.text)
        if cells is None:
            if header:
                tables.append(_table(header, rows))
            header, rows = None, []
        elif header is None:
            header = Row(line.at, cells)
        elif not all(_SEPARATOR.match(cell) for cell in cells):
            rows.append(Row(line.at, cells))
    if header:
        tables.append(_table(header, rows))
    return tuple(tables)


def _table(header: Row, rows: list[Row]) -> Table:
    return Table(tuple(cell.strip().lower() for cell in header.cells), header.line, tuple(rows))
