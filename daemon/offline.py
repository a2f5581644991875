"""How a command does by itself what it would ask a daemon for: under the same lock, with the same log. Source: cli §1."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daemon import clock
from daemon.configuration import load_settings
from daemon.exits import HELD, USAGE, Exit
from daemon.instance import Held, Instance, hold_instance
from daemon.log import MEGABYTE, Console, Log
from daemon.place import Place, find_place
from daemon.reconciler import Reconciler
from daemon.terminal import complain
from parsers.faults import render_fault
from parsers.settings import Settings


def place_of(args: argparse.Namespace) -> Place:
    """The one repository a command speaks about."""
    return find_place(Path(args.repo[0]) if args.repo else None)


def hold(place: Place) -> Instance:
    """The repository's lock. Raises Exit where a daemon has it, or a link stands in the place of the LOCAL tree."""
    if place.local.is_symlink():
        raise Exit(USAGE, f"{place.local} is a symbolic link, and links are never followed; put a folder in its place")
    try:
        return hold_instance(place)
    except Held as held:
        pid = f"pid {held.pid}" if held.pid else "its pid is unknown"
        raise Exit(
            HELD, f"another daemon holds {place.root} ({pid}); stop it, or ask it with `shapeupd sync`"
        ) from None


def open_log(place: Place, console: Console | None) -> tuple[Settings, Log]:
    """The settings in force and the log they describe; what is wrong with the machine-local file is said, not obeyed."""
    settings, faults = load_settings(place)
    log = Log(
        place.local,
        clock.now,
        level=settings.log_level,
        max_bytes=int(settings.log_max_mb * MEGABYTE),
        keep=settings.log_keep,
        console=console,
    )
    for fault in faults:
        log.write("daemon.error", level="warn", code=fault.code, error=render_fault(fault))
        complain(render_fault(fault))
    return settings, log


@contextmanager
def opened_offline(place: Place) -> Iterator[Reconciler]:
    """A reconciler of this repository for one command; what it did is on disk when the block ends."""
    with hold(place):
        settings, log = open_log(place, None)
        reconciler = Reconciler(place.root, settings, log)
        try:
            yield reconciler
            reconciler.checkpoint()
        finally:
            reconciler.close()
            log.close()
