"""`shapeupd sync`: returns when everything that landed before it is settled. Source: targets 1, rulings H8, J."""

from __future__ import annotations

import argparse
from pathlib import Path

from daemon.exits import DONE, NOTHING_THERE, WANTING, Exit
from daemon.place import find_place
from daemon.sockets import ask
from daemon.terminal import print_json
from daemon.wanting import print_wanting
from parsers.durations import parse_duration

HELP = """Waits until the daemon has settled all that landed before this call.
Ends with 0 when nothing stands open, 1 when something is rejected or pending, 3 when no daemon lives."""
EXAMPLE = "shapeupd sync && shapeupd board"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="give up after S seconds (default: never)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    place = find_place(Path(args.repo[0]) if args.repo else None)
    try:
        answer = ask(place.root, "sync", timeout_s=args.timeout)
    except TimeoutError:
        raise Exit(WANTING, f"not settled within {args.timeout:g} s; see `shapeupd status`") from None
    if answer is None:
        raise Exit(NOTHING_THERE, f"no daemon runs for {place.root}; `shapeupd run --once` settles without one")
    if "error" in answer:
        raise Exit(NOTHING_THERE, str(answer["error"]))
    rejected, pending = _size(answer.get("rejected")), _size(answer.get("pending"))
    if args.json:
        print_json({"schema": 1} | {key: value for key, value in answer.items() if key != "schema"})
    else:
        print("settled" + (f"; {rejected} rejected, {pending} pending" if rejected or pending else ""))
        print_wanting(answer.get("wanting"))
    return WANTING if rejected or pending else DONE


def _size(value: object) -> int:
    """How many, given as a number or as a list of names."""
    if isinstance(value, list):
        return len(value)
    return value if isinstance(value, int) else 0
