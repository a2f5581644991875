"""Reads the wall clock and the clock that counts since the machine started, with the name of that start. Source: rulings F4, F10."""

from __future__ import annotations

import time
from functools import cache

from daemon import clock
from parsers.clock_anchor import Clocks

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def read_clocks() -> Clocks:
    """Both clocks now; without a boot clock, or a name for this boot, the wall clock alone."""
    wall = clock.now()
    boot_id = _boot_id()
    return Clocks(wall, boot_id, time.clock_gettime(time.CLOCK_BOOTTIME)) if boot_id else Clocks(wall)


@cache
def _boot_id() -> str | None:
    """The name of this boot, which no process outlives; None where there is no clock that goes with it."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            return file.read(64).strip() or None
    except (OSError, UnicodeDecodeError):
        return None
