"""clock.json: the two clocks at one moment of a run, so that a stepped wall clock is noticed. Source: rulings F4, F10.

Light module: standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from parsers.strict_json import parse_strict
from parsers.times import parse_time, render_time


class Clocks(NamedTuple):
    """What the clocks say now. `boot_id` and `boottime_s` are None where the system has no such clock.

    `boottime_s` counts seconds since the machine started, suspend included.
    """

    wall: datetime
    boot_id: str | None = None
    boottime_s: float | None = None


class Anchor(NamedTuple):
    """Both clocks at the moment at which the run's deadline was first armed.

    `budget_s` and `started_at` are the receipt's at that moment (F3); None: it had none, or the row does not say.
    """

    run_id: str
    boot_id: str
    boottime_s: float
    wall: datetime
    budget_s: float | None = None
    started_at: datetime | None = None


def parse_anchor(data: bytes, path: str, run_id: str | None) -> Anchor | None:
    """The anchor of this run; None where the file cannot be read or is another run's. Never raises."""
    value = parse_strict(data, path).value
    if not isinstance(value, dict) or run_id is None or value.get("run_id") != run_id:
        return None
    boot_id, boottime_s, wall = value.get("boot_id"), _number(value, "boottime_s"), value.get("wall")
    moment = parse_time(wall) if isinstance(wall, str) else None
    if not isinstance(boot_id, str) or boottime_s is None or moment is None:
        return None
    started_at = value.get("started_at")
    start = parse_time(started_at) if isinstance(started_at, str) else None
    return Anchor(run_id, boot_id, boottime_s, moment, _number(value, "budget_s"), start)


def anchor_document(anchor: Anchor) -> dict[str, object]:
    """What is written: {run_id, boot_id, boottime_s, wall} and, beside F10, `budget_s` and `started_at`."""
    return {
        "run_id": anchor.run_id,
        "boot_id": anchor.boot_id,
        "boottime_s": anchor.boottime_s,
        "wall": render_time(anchor.wall),
        "budget_s": anchor.budget_s,
        "started_at": None if anchor.started_at is None else render_time(anchor.started_at),
    }


def _number(row: Mapping[str, object], key: str) -> float | None:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value
