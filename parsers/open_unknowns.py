"""The `~` lines of the discovery ledger: what a worker met and could not answer. Source: protocol §4.6, §5.4, W-34."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

_BLOCK = re.compile(r"## Discovered — (?P<order>\S+) \(")


def parse_unknowns(text: str) -> tuple[tuple[str, int], ...]:
    """(order id, number of `~` lines) of each block that has one, in file order; an order with two blocks stands there twice.

    A repro and the other fields of a discovery are indented, and no text of a result begins a line with `#` (ruling L7).
    """
    found = groupby(_marked(text), lambda mark: mark)
    return tuple((order, len(tuple(marks))) for (_, order), marks in found)


def _marked(text: str) -> Iterator[tuple[int, str]]:
    """(number of the block, its order id) for each line that is an unknown."""
    order, block = "", 0
    for line in text.split("\n"):
        if line.startswith("#"):
            heading = _BLOCK.match(line)
            order, block = heading["order"] if heading else "", block + 1
        elif order and line.startswith("~ "):
            yield block, order
