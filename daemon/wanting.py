"""Prints what stands refused or waits, as the daemon's answers list it. Source: rulings H8, J."""

from __future__ import annotations

from daemon.terminal import escape
from parsers.layout import classify, folder_of

SHOWN = 5


def print_wanting(rows: object) -> None:
    """Up to five of the rows {path, order_id, outcome, code}, then where the reasons lie; nothing for no rows."""
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    for row in found[:SHOWN]:
        words = f"{row.get('path') or row.get('order_id')}: {row.get('outcome')} {row.get('code') or ''}"
        print(f"  {escape(words.rstrip())}")
    if len(found) > SHOWN:
        print(f"  and {len(found) - SHOWN} more")
    for slug in sorted({slug for row in found if (slug := _slug(row))}):
        print(f"see {folder_of('rejection', slug)}/")


def _slug(row: dict[str, object]) -> str:
    """The feature of a row; a pending result has no rejection file, so it names none."""
    if row.get("outcome") == "pending":
        return ""
    place = classify(str(row.get("path")))
    return (place.slug if place else None) or str(row.get("order_id") or "").partition("/")[0]
