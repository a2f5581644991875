"""What a change leaves behind that nobody meant to ship: markers, debug output, code in comments, huge files. Source: protocol §5.9.

Advice for the report's reader, never a gate.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

MAX_FILES = 30  # looked at
MAX_SHOWN = 6  # told
MAX_UNTRACKED_BYTES = 200 * 1024
BIG_LINES = 400
BLOCK_LINES = 4

_MARKER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b", re.ASCII)
_CONSOLE = re.compile(r"\bconsole\.(?:log|debug)(?=\s*\()", re.ASCII)
_DEBUGGER = re.compile(r"^\s*(debugger)\b", re.ASCII)
_COMMENT = re.compile(r"\s*(?://|#)")
_CODE = re.compile(r"[;{}()=]")


class Addition(NamedTuple):
    """What was added to one file: runs of lines that stand together."""

    path: str
    runs: tuple[tuple[str, ...], ...]

    @property
    def lines(self) -> Iterator[str]:
        """All added lines."""
        return (line for run in self.runs for line in run)


class Leftover(NamedTuple):
    """What one file leaves behind: markers with their counts in the order they are met."""

    path: str
    markers: tuple[tuple[str, int], ...]
    has_dead_code: bool
    big_lines: int  # 0: not so many that it is told

    @property
    def text(self) -> str:
        """The report's line."""
        parts = [f"{marker} ×{count}" for marker, count in self.markers]
        parts += ["commented-out code block"] * self.has_dead_code
        parts += [f"+{self.big_lines} lines in one file"] if self.big_lines else []
        return f"{self.path}: {', '.join(parts)}"


def find_leftovers(additions: Iterable[Addition]) -> tuple[Leftover, ...]:
    """What the files leave behind, those with nothing left out."""
    found = (_look(addition) for addition in additions)
    return tuple(leftover for leftover in found if leftover.markers or leftover.has_dead_code or leftover.big_lines)


def _look(addition: Addition) -> Leftover:
    markers = Counter(name for line in addition.lines for name in _markers(line))
    added = sum(map(len, addition.runs))
    has_dead_code = any(map(_is_dead_code, addition.runs))
    return Leftover(addition.path, tuple(markers.items()), has_dead_code, added if added > BIG_LINES else 0)


def _markers(line: str) -> Iterator[str]:
    yield from _MARKER.findall(line)
    yield from _CONSOLE.findall(line)
    yield from _DEBUGGER.findall(line)


def _is_dead_code(run: Sequence[str]) -> bool:
    streak = 0
    for line in run:
        streak = streak + 1 if _COMMENT.match(line) and _CODE.search(line) else 0
        if streak == BLOCK_LINES:
            return True
    return False


def parse_added(diff: str) -> tuple[tuple[str, ...], ...]:
    """The added lines of one file's diff, by hunk; lines that stand together in a hunk are one run."""
    runs: list[list[str]] = []
    is_inside, joins = False, False
    for line in diff.split("\n"):
        if line.startswith("@@"):
            is_inside, joins = True, False
        elif is_inside and line.startswith("+"):
            if not joins:
                runs.append([])
            runs[-1].append(line[1:])
            joins = True
        elif is_inside and not line.startswith("\\"):
            joins = False
    return tuple(map(tuple, runs))
