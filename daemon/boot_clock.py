"""Reads the wall clock and the clock that counts since the machine started, with the name of that start. Source: rulings F4, F10."""

from __future__ import annotations

import time

from daemon import clock
from parsers.clock_anchor import Clocks

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def read_clocks() -> Clocks:
    """Both clocks now; without a boot clock, or a name for this boot, the wall clock alone."""
    wall = clock.now()
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return Clocks(wall)
    try:
        with open(_BOOT_ID, encoding="ascii") as file:
            boot_id = file.read(64).strip()
        boottime_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, UnicodeDecodeError):
        return Clocks(wall)
    return Clocks(wall, boot_id, boottime_s) if boot_id else Clocks(wall)
