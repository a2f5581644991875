"""How output looks: tables on a terminal, plain text in a pipe. The only importer of rich. Source: cli §1.

NO_COLOR, CLICOLOR_FORCE and COLUMNS are honoured. rich is loaded when a terminal (or a forced colour) asks for it, so
that a pipe and the light commands never pay for it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Literal, TextIO


def escape(text: str) -> str:
    """The text with every character that is not printable written as an escape, so that it can forge nothing."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def wants_style(stream: TextIO | None = None) -> bool:
    """Whether tables may be drawn: on a terminal, or where CLICOLOR_FORCE says so."""
    out = stream if stream is not None else sys.stdout
    return out.isatty() or os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0")


def terminal_width() -> int:
    """Columns: COLUMNS where it is set, else what the terminal says, else 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns or 80
    except (OSError, ValueError):
        return 80


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> None:
    """Prints rows under headers: drawn by rich on a terminal, else aligned columns two spaces apart."""
    cells = [[escape(str(cell)) for cell in row] for row in rows]
    if wants_style():
        _rich_table(headers, cells, title)
    else:
        print(plain_table(headers, cells, title))


def plain_table(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Aligned columns with a header line; no trailing blanks, so that a pipe can be compared byte for byte."""
    lines = [list(headers), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([title, *text] if title else text)


def print_json(document: object) -> None:
    """One document on stdout; ASCII, so that no quoted name can speak to a terminal."""
    print(json.dumps(document, indent=2))


def complain(text: str) -> None:
    """One diagnostic on stderr; its own line breaks stay, every other unprintable character is escaped."""
    print("\n".join(map(escape, text.split("\n"))), file=sys.stderr)


def _rich_table(headers: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    # no_color would still let bold and rich's italic titles through; without a colour system no escape is written.
    system: Literal["auto"] | None = None if "NO_COLOR" in os.environ else "auto"
    Console(color_system=system, force_terminal=True, highlight=False).print(table)
