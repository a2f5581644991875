"""Moments as the trees write them: ISO-8601 in UTC with milliseconds and Z, and the UTC date. Source: protocol "General byte rules".

Light module: standard library only.
"""

from __future__ import annotations

from datetime import UTC, datetime


def parse_time(text: str | None) -> datetime | None:
    """An ISO time as an aware moment, UTC where it names no zone; None when it does not parse."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def render_time(moment: datetime) -> str:
    """`2026-03-01T12:04:31.220Z`: UTC, milliseconds, Z. Raises ValueError for a moment without a zone."""
    return _in_utc(moment).isoformat(timespec="milliseconds") + "Z"


def render_date(moment: datetime) -> str:
    """The moment's UTC date, `2026-03-01`. Raises ValueError for a moment without a zone."""
    return _in_utc(moment).date().isoformat()


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a time without a zone cannot be written down")
    return moment.astimezone(UTC).replace(tzinfo=None)
