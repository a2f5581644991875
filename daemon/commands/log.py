"""`shapeupd log`: the daemon's log, rendered; needs no daemon. Source: cli §2, §3, ruling L6."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from daemon.clock import now
from daemon.exits import DONE, NOTHING_THERE, USAGE, Exit
from daemon.log import Row, console_for, render_line
from daemon.place import find_place
from daemon.read_log import Wanted, follow_log, parse_since, read_log
from daemon.render_log import render_row

HELP = """Shows the daemon's log, across its rotated files; works while the daemon is down.
-f prints the last 10 events and then each new one, whoever rotates or truncates the file."""
EXAMPLE = "shapeupd log -n 20 --event 'result.*' --since 1h"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--follow", action="store_true", help="go on as events land")
    parser.add_argument(
        "-n", dest="last", type=_count, metavar="N", help="the last N events (with -f: 10 unless given)"
    )
    parser.add_argument("--event", metavar="GLOB", help="only events of this name, such as 'result.*'")
    parser.add_argument("--slug", metavar="S", help="only events of this feature")
    parser.add_argument("--since", metavar="T", help="90s, 10m, 2h, 1d or an ISO time")
    parser.add_argument("--json", action="store_true", help="print the events as JSON, one a line")


def run(args: argparse.Namespace) -> int:
    folder = find_place(Path(args.repo[0]) if args.repo else None).local
    try:
        since = parse_since(args.since, now()) if args.since else None
    except (ValueError, OverflowError):
        raise Exit(USAGE, f'--since: "{args.since}" is neither 90s, 10m, 2h, 1d nor an ISO time') from None
    wanted = Wanted(args.event, args.slug, since)
    if args.follow:
        last = 10 if args.last is None else args.last
        _show(follow_log(folder, wanted, threading.Event().wait, last), as_json=args.json)
        return DONE
    rows = read_log(folder, wanted, args.last)
    _show(rows, as_json=args.json)
    if not rows and not any(folder.glob("shapeupd.log*")):
        raise Exit(NOTHING_THERE, f"no log at {folder / 'shapeupd.log'} yet; `shapeupd run` starts one")
    return DONE


def _show(rows: Iterable[Row], *, as_json: bool) -> None:
    color = console_for("console", sys.stdout).color
    for row in rows:
        if as_json:
            sys.stdout.write(render_line(row))
        else:
            print(render_row(row, color=color))
        sys.stdout.flush()


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of events")
    return int(text)
