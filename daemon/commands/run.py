"""`shapeupd run`: watch in the foreground, or settle what is on disk and end. Source: cli §2."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from daemon.configuration import load_settings
from daemon.exits import DONE, HELD, INTERRUPTED, Exit
from daemon.instance import Held, hold_instance
from daemon.log import MEGABYTE, Log, console_for
from daemon.once import settle_once
from daemon.place import Place, find_place
from daemon.service import Service
from daemon.terminal import complain
from parsers.faults import render_fault
from parsers.settings import Settings

HELP = """Watches the repository in the foreground until SIGINT or SIGTERM.
With --once: settles what is on disk and ends, 1 when anything stands rejected or pending."""
EXAMPLE = "shapeupd run --once"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="settle what is on disk, then end")
    formats = ("auto", "console", "json")
    parser.add_argument("--log-format", choices=formats, default="auto", help="events on stderr (default: auto)")


def run(args: argparse.Namespace) -> int:
    places = [find_place(Path(repo)) for repo in args.repo] or [find_place()]
    with ExitStack() as held:
        for place in places:
            held.enter_context(_hold(place))
        opened = [(place, *_open(place, args.log_format)) for place in places]
        if args.once:
            return max([settle_once(place.root, settings, log) for place, settings, log in opened])
        return _watch([Service(place, settings, log) for place, settings, log in opened])


def _hold(place: Place) -> ExitStack:
    stack = ExitStack()
    try:
        stack.enter_context(hold_instance(place))
    except Held as held:
        pid = f"pid {held.pid}" if held.pid else "its pid is unknown"
        raise Exit(
            HELD, f"another daemon holds {place.root} ({pid}); stop it, or ask it with `shapeupd sync`"
        ) from None
    return stack


def _open(place: Place, log_format: str) -> tuple[Settings, Log]:
    from daemon import clock

    settings, faults = load_settings(place)
    log = Log(
        place.local,
        clock.now,
        level=settings.log_level,
        max_bytes=int(settings.log_max_mb * MEGABYTE),
        keep=settings.log_keep,
        console=console_for(log_format),
    )
    for fault in faults:
        log.write("daemon.error", level="warn", code=fault.code, error=render_fault(fault))
        complain(render_fault(fault))
    return settings, log


def _watch(services: Sequence[Service]) -> int:
    """Run every service until a signal comes; one alone runs in this thread."""
    received: list[int] = []

    def end(number: int, _frame: object) -> None:
        received.append(number)
        for service in services:
            service.stop(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda s=s: statuses.append(s.run())) for s in services[1:]]
    for thread in threads:
        thread.start()
    statuses.append(services[0].run())
    for thread in threads:
        thread.join()
    if max(statuses) != DONE:
        return max(statuses)
    return INTERRUPTED if signal.SIGINT in received else DONE
