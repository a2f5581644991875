"""orient/hill-signal.md: where the areas of a feature stand before there are scopes. Source: rulings K, protocol §1.2.

The file is prose that a worker writes. Two forms are seen in real runs: one section for each area with a `Signal:` line in it, and one
bold or `Phase:` line for the feature as a whole. What says no position has none; nothing here is ever evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from parsers.hill_shards import PHASES
from parsers.markdown import Line, parse_heading, parse_tables, scan_lines

MAX_AREAS = 40
_LONGEST = 120  # characters of an area's name
_UNKNOWN, _SOLVED, _DOWNHILL, _FINISHED = PHASES

_SIGNAL = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?[*_]{0,3}(?:hill[ \t]+)?(?:signal|position|phase)[*_]{0,3}[ \t]*:(?P<told>.*)", re.I
)
_BOLD = re.compile(r"[ \t]*(?:[-*+][ \t]+)?[*_]{2,3}(?P<told>[^*_].*)")
# The words that come first decide: "no uphill unknown" is no uphill, and "not yet solved" is no crest.
_POSITIONS = (
    (re.compile(r"\bno\b[^.;]{0,40}\bunknowns?\b|\bcrest\b|⛰|🏔", re.I), _SOLVED),
    (re.compile(r"\buphill\b|🔼", re.I), _UNKNOWN),
    (re.compile(r"\bdownhill\b|🔽", re.I), _DOWNHILL),
    (re.compile(r"\bnot\b[^.;]{0,20}\b(?:solved|done|finished)\b", re.I), _UNKNOWN),
    (re.compile(r"\bsolved\b", re.I), _SOLVED),
    (re.compile(r"\b(?:done|finished)\b|✅", re.I), _FINISHED),
)
_NAME_COLUMNS, _POSITION_COLUMNS = ("area", "slice", "scope", "name"), ("position", "signal", "phase", "hill")


class Area(NamedTuple):
    """One area and what was said of it. `phase` is one of PHASES; None where its words name no position."""

    name: str
    phase: str | None
    told: str


def parse_hill_signal(text: str, feature: str) -> tuple[Area, ...]:
    """The areas in file order; one area named after the feature where the file speaks of it as a whole; () where it says nothing."""
    lines = text.split("\n")
    areas = [*_tabled(lines), *_sections(lines)]
    if not areas and (whole := _whole(lines, feature)):
        areas = [whole]
    first: dict[str, Area] = {}
    for area in areas:
        first.setdefault(area.name, area)
    return tuple(first.values())[:MAX_AREAS]


def position_of(told: str) -> str | None:
    """The phase that the words name first; None where they name none."""
    found = [(named.start(), phase) for pattern, phase in _POSITIONS if (named := pattern.search(told))]
    return min(found, key=lambda one: one[0])[1] if found else None


def _sections(lines: list[str]) -> Iterator[Area]:
    """The sections below the title that hold a signal line each."""
    name = ""
    for line in scan_lines(lines):
        if line.fenced:
            continue
        if heading := parse_heading(line.text):
            name = heading[1] if heading[0] > 1 else ""
        elif name and (found := _SIGNAL.match(line.text)):
            yield Area(_plain(name), position_of(found["told"]), _plain(found["told"]))


def _tabled(lines: list[str]) -> Iterator[Area]:
    """The rows of a table with a column for the name and one for the position."""
    for table in parse_tables(lines):
        name = next((at for at, column in enumerate(table.header) if column in _NAME_COLUMNS), None)
        position = next((at for at, column in enumerate(table.header) if column in _POSITION_COLUMNS), None)
        if name is None or position is None:
            continue
        for row in table.rows:
            if len(row.cells) > max(name, position) and (plain := _plain(row.cells[name])):
                yield Area(plain, position_of(row.cells[position]), _plain(row.cells[position]))


def _whole(lines: list[str], feature: str) -> Area | None:
    """The feature as one area: the first bold line, signal line or heading that names a position."""
    for line in scan_lines(lines):
        told = None if line.fenced else _told(line)
        if told and (phase := position_of(told)):
            return Area(feature, phase, _plain(told))
    return None


def _told(line: Line) -> str | None:
    heading = parse_heading(line.text)
    found = _SIGNAL.match(heading[1] if heading else line.text) or _BOLD.match(line.text)
    return found["told"] if found else None


def _plain(text: str) -> str:
    """The words without emphasis, code marks and what is not printable, on one line and of bounded length."""
    shown = "".join(char if char.isprintable() else " " for char in re.sub(r"[*`]+|\b__|__\b", "", text))
    words = " ".join(shown.split()).strip(" .—-")
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
