"""`shapeupd rebuild`: recompute the shared state from the journal and the task files. Source: cli §2, ruling D2."""

from __future__ import annotations

import argparse
from typing import Any

from daemon.exits import DONE, WANTING, Exit
from daemon.offline import opened_offline, place_of
from daemon.once import settle_all
from daemon.rebuilding import repair_rows, verify_all
from daemon.sockets import ask
from daemon.terminal import print_json

HELP = """Recomputes the views and re-applies each journaled edit where it is absent.
With --verify nothing is written: what would change is listed, and the command ends with 1 if anything would."""
EXAMPLE = "shapeupd rebuild --verify"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verify", action="store_true", help="only compare; 1 when something would change")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    place = place_of(args)
    answer = ask(place.root, "rebuild", timeout_s=None, verify=args.verify)
    if answer is None:
        answer = {"repairs": _offline(args)}
    if "error" in answer:
        raise Exit(WANTING, str(answer["error"]))
    repairs: Any = answer["repairs"]
    if args.json:
        print_json({"schema": 1, "verify": args.verify, "repairs": repairs})
    else:
        _show(repairs, args.verify)
    return WANTING if args.verify and repairs else DONE


def _offline(args: argparse.Namespace) -> list[dict[str, object]]:
    place = place_of(args)
    if args.verify:
        return repair_rows(verify_all(place.root))
    with opened_offline(place) as reconciler:
        settle_all(reconciler, place.root)
        repairs = reconciler.rebuild()
        if repairs is None:
            raise Exit(WANTING, "another reducer holds a run's lock; try again when it is done")
        return repair_rows(repairs)


def _show(repairs: list[dict[str, object]], verify: bool) -> None:
    for row in repairs:
        was = "missing" if row["was_bytes"] is None else f"{row['was_bytes']} bytes"
        print(f"{row['path']}: {was} -> {row['now_bytes']} bytes")
    if not repairs:
        print("the shared state is what the journal says")
    elif verify:
        print(f"{len(repairs)} files would change; `shapeupd rebuild` changes them")
