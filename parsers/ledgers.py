"""Append-only ledgers: JSON-lines files, the discovery ledger and the verdict ledgers. Source: protocol §4.6-4.7, §12.4."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MAX_LINE_BYTES = 1024 * 1024
MAX_COUNT = 2**53  # what every JSON reader counts up to exactly

_NOT_UTF8 = re.compile("[\ud800-\udfff]")
_DISCOVERED = re.compile(r"## Discovered — (?P<order>\S+) \(")
_LOGGED = re.compile(r"## Execution Log — .*\((?P<order>[^()]+)\)\s*\Z")


def parse_rows(data: bytes) -> tuple[dict[str, object], ...]:
    """The rows of a JSON-lines file; torn, oversized and unparsable lines are skipped. Source: protocol §12.4."""
    return tuple(_rows(data))


def _rows(data: bytes) -> Iterator[dict[str, object]]:
    for line in data.split(b"\n"):
        if not line.strip() or len(line) > MAX_LINE_BYTES:
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def render_row(row: Mapping[str, object]) -> str:
    """One row: compact JSON, non-ASCII as it is, LF at the end. Source: protocol "General byte rules".

    A file name need not be UTF-8; the row that names it must be, or nobody could read it again.
    """
    return escape_bytes(json.dumps(row, ensure_ascii=False, separators=(",", ":"))) + "\n"


def escape_bytes(text: str) -> str:
    """JSON text with the bytes that are not UTF-8 (kept aside as half surrogates) as `\\udcXX` escapes."""
    return _NOT_UTF8.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class IngestRow(NamedTuple):
    """One row of receipts/ingest.jsonl. Source: rulings J."""

    run_id: str | None
    order_id: str
    order_sha256: str | None
    sha256: str
    outcome: str
    code: str | None
    verdict: str | None = None  # verdict.overall of the result, where it carried one
    at: str | None = None


def parse_ingest_rows(data: bytes) -> tuple[IngestRow, ...]:
    """The ingest record in file order; rows without order_id, sha256 and outcome are skipped."""
    return tuple(row for raw in _rows(data) if (row := ingest_row_of(raw)))


def ingest_row_of(raw: Mapping[str, object]) -> IngestRow | None:
    """The row's identity and outcome; None when it has none."""
    order_id, sha256, outcome = raw.get("order_id"), raw.get("sha256"), raw.get("outcome")
    if not (isinstance(order_id, str) and isinstance(sha256, str) and isinstance(outcome, str)):
        return None
    return IngestRow(
        _text(raw, "run_id"),
        order_id,
        _text(raw, "order_sha256"),
        sha256,
        outcome,
        _text(raw, "code"),
        _text(raw, "verdict"),
        _text(raw, "at"),
    )


class LegRow(NamedTuple):
    """One row of legs.jsonl as far as adoption looks at it. Source: protocol §2.11, ruling D3."""

    run_id: str | None
    order_id: str
    ingested_at: str | None


def parse_legs(data: bytes) -> tuple[LegRow, ...]:
    """The legs in file order; rows without an order_id are skipped."""
    return tuple(
        LegRow(_text(row, "run_id"), order_id, _text(row, "ingested_at"))
        for row in _rows(data)
        if isinstance(order_id := row.get("order_id"), str)
    )


def _text(row: Mapping[str, object], key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) else None


def newest_run(data: bytes) -> int:
    """The highest integer `run` of a verdict ledger; 0 for an empty one. Only integers count (ruling C11)."""
    runs = [run for row in _rows(data) if isinstance(run := row.get("run"), int) and not isinstance(run, bool)]
    return max([0, *(run for run in runs if run < MAX_COUNT)])


def discovered_orders(text: str) -> frozenset[str]:
    """Order ids that have a block in the discovery ledger."""
    return frozenset(found["order"] for line in text.split("\n") if (found := _DISCOVERED.match(line)))


def logged_orders(text: str) -> frozenset[str]:
    """Order ids that have an Execution Log block in a task file."""
    return frozenset(found["order"] for line in text.split("\n") if (found := _LOGGED.match(line.rstrip("\r"))))
