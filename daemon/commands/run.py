"""`shapeupd run`: watch in the foreground, or settle what is on disk and end. Source: cli §2."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from daemon.exits import DONE, INTERRUPTED
from daemon.log import console_for
from daemon.offline import hold, open_log
from daemon.once import settle_once
from daemon.place import find_place
from daemon.service import Service

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
            held.enter_context(hold(place))
        opened = [(place, *open_log(place, console_for(args.log_format))) for place in places]
        if args.once:
            return max([settle_once(place, settings, log) for place, settings, log in opened])
        return _watch([Service(place, settings, log) for place, settings, log in opened])


def _watch(services: Sequence[Service]) -> int:
    """Run every service until a signal comes; one alone runs in this thread."""
    received: list[int] = []

    def end(number: int, _frame: object) -> None:
        received.append(number)
        for service in services:
            service.stop(signal.Signals(number).name)

    def tell(died: threading.ExceptHookArgs) -> None:
        """A thread that ends by an exception (the watcher replaces its own) is told in the log, not on the terminal."""
        name = died.thread.name if died.thread else "unknown"
        services[0].log.write(
            "daemon.error", level="warn", code="E-THREAD", error=f"thread {name} ended: {died.exc_value!r}"
        )

    threading.excepthook = tell
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
