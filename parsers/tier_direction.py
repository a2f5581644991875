"""Lines of committed files that name a board id or a path of the local tier. Source: protocol §1.1, §5.2 (TIER-DIRECTION), R-37.

Works on bytes and only looks at what it finds, so a file of any size costs one walk over it.
Light module: standard library only, hooks import it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

READ_ENDINGS = (".md", ".markdown", ".yml", ".yaml", ".json", ".txt")

# One kind each; a line is found once for every kind that it breaks.
_PATTERNS = (
    ("board-id", re.compile(rb"\bTASK-[A-Za-z0-9][\w.-]*"), b"TASK-"),
    ("local-path", re.compile(rb"\.shapeup/\S[^\s`\"'()<>|\]]*"), b".shapeup/"),
)
_WIKILINK = ("task-link", re.compile(rb"\[\[tasks/[^\]#|\n]*"), b"[[tasks/")


class TierBreak(NamedTuple):
    """One line that points from the committed tier into the local one. `line` counts from 1; `text` has no line end."""

    line: int
    kind: str  # board-id, local-path or task-link
    named: bytes
    text: bytes


def tier_breaks(data: bytes, *, is_spec: bool = False) -> Iterator[TierBreak]:
    """One break for each line and kind, kind by kind; `is_spec`: wikilinks to `tasks/…` count too."""
    for kind, pattern, needle in (*_PATTERNS, _WIKILINK) if is_spec else _PATTERNS:
        line, counted = 1, 0
        found = pattern.search(data) if needle in data else None
        while found:
            start = data.rfind(b"\n", 0, found.start()) + 1
            end = data.find(b"\n", found.start())
            end = len(data) if end < 0 else end
            line += data.count(b"\n", counted, start)
            counted = start
            yield TierBreak(line, kind, found[0], data[start:end].rstrip(b"\r"))
            found = pattern.search(data, end)


def added_breaks(after: Iterable[TierBreak], before: Iterable[TierBreak]) -> Iterator[TierBreak]:
    """Those of `after` that stand there more often than in `before`: a line that only moved is no new one. Source: ruling E9."""
    known = Counter((found.kind, found.text) for found in before)
    for found in after:
        key = (found.kind, found.text)
        if known[key] > 0:
            known[key] -= 1
        else:
            yield found
