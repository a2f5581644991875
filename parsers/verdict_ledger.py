"""Verdict ledgers, `evaluation/.verdicts-<stem>.jsonl`: one line per judged criterion. Source: protocol §5.13, §2.7, W-46, ruling C11.

Light module: standard library only.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from parsers.addresses import parse_address
from parsers.ledgers import MAX_COUNT, MAX_LINE_BYTES

EVALUATE = "evaluate"


class VerdictLine(NamedTuple):
    """One criterion's verdict. `round` is that of the ledger's order, 0 where its stem names none; text that is absent is empty."""

    run: int
    dimension: str = ""
    criterion: str = ""
    verdict: str = ""
    confidence: str = ""
    round: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """When it was judged, against the lines of other ledgers too. Source: W-46."""
        return self.round, self.run

    @property
    def subject(self) -> tuple[str, str]:
        """What was judged."""
        return self.dimension, self.criterion


class VerdictLedger(NamedTuple):
    """The lines in file order, and how many others there were that hold no verdict."""

    lines: tuple[VerdictLine, ...]
    skipped: int


def parse_verdict_ledger(data: bytes, round_: int = 0) -> VerdictLedger:
    """The lines of one ledger; torn, oversized and foreign ones, and those whose `run` is no integer, are counted. Never raises."""
    lines: list[VerdictLine] = []
    skipped = 0
    for raw in data.split(b"\n"):
        if raw.strip():
            line = _line(raw, round_)
            skipped += line is None
            lines += [line] if line else []
    return VerdictLedger(tuple(lines), skipped)


def _line(raw: bytes, round_: int) -> VerdictLine | None:
    try:
        row = json.loads(raw) if len(raw) <= MAX_LINE_BYTES else None
    except (ValueError, RecursionError):
        return None
    run = row.get("run") if isinstance(row, dict) else None
    if not isinstance(row, dict) or not isinstance(run, int) or isinstance(run, bool) or abs(run) >= MAX_COUNT:
        return None
    values = (row.get(key) for key in ("dimension", "criterion", "verdict", "confidence"))
    dimension, criterion, verdict, confidence = (value if isinstance(value, str) else "" for value in values)
    return VerdictLine(run, dimension, criterion, verdict, confidence, round_)


def evaluate_round(stem: str) -> int | None:
    """The round of an evaluate order's stem, 0 for a bare `evaluate`; None for the stem of any other order."""
    address = parse_address(f"-/{stem}")
    if address.name != EVALUATE or address.attempt is not None:
        return None
    return address.round or 0
