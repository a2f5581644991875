"""The one place that reads the clocks; everything else is handed a time. Source: house-style "Shape"."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from parsers.times import render_time


def now() -> datetime:
    """The wall clock as an aware UTC datetime."""
    return datetime.now(UTC)


def iso(at: datetime) -> str:
    """`2026-03-01T12:04:31.220Z`: UTC, milliseconds, Z. Raises ValueError for a datetime without a zone."""
    return render_time(at)


def monotonic() -> float:
    """Seconds on a clock that never steps; only differences mean anything."""
    return time.monotonic()
