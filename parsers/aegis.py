"""The digested error: where it happened and what it said, in four fields. Source: protocol §2.7 AegisTriple, §5.12.

The strict model is parsers/domain.py AegisTriple; this one reads whatever stands in a ledger. Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from parsers.ledgers import MAX_COUNT


class AegisTriple(NamedTuple):
    """One error. `file` and `line` are None where the output named no place."""

    file: str | None
    line: int | None
    core_message: str
    kind: str


def parse_triples(value: object) -> tuple[AegisTriple, ...]:
    """The triples of a JSON array in its order; whatever is no object is skipped, anything else than an array is empty."""
    if not isinstance(value, list):
        return ()
    return tuple(_triple(item) for item in value if isinstance(item, dict))


def triple_rows(triples: Iterable[AegisTriple]) -> list[dict[str, object]]:
    """The triples as JSON objects, keys in the registry's order."""
    return [dict(triple._asdict()) for triple in triples]


def _triple(item: dict[str, object]) -> AegisTriple:
    file, line, message, kind = (item.get(key) for key in AegisTriple._fields)
    is_line = isinstance(line, int) and not isinstance(line, bool) and 0 <= line < MAX_COUNT
    return AegisTriple(
        file if isinstance(file, str) else None,
        line if is_line and isinstance(line, int) else None,
        message if isinstance(message, str) else "",
        kind if isinstance(kind, str) else "",
    )
