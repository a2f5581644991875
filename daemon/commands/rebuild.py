"""`shapeupd rebuild`: recompute the shared state from the journal and the task files. Source: cli §2, ruling D2."""

from __future__ import annotations

import argparse
from typing import Any

from daemon.configuration import load_settings
from daemon.exits import DONE, WANTING, Exit
from daemon.offline import opened_offline, place_of
from daemon.once import settle_all
from daemon.place import Place
from daemon.rebuilding import rebuild_document
from daemon.sockets import ask
from daemon.terminal import complain, print_json
from parsers.faults import render_fault
from parsers.tree import Unreadable

HELP = """Recomputes the views and re-applies each journaled edit where it is absent.
With --verify nothing is written: what would change is listed, and the command ends with 1 if anything would."""
EXAMPLE = "shapeupd rebuild --verify"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verify", action="store_true", help="only compare; 1 when something would change")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    place = place_of(args)
    answer = ask(place.root, "rebuild", timeout_s=None, verify=args.verify) or _offline(place, args.verify)
    if "error" in answer:
        raise Exit(WANTING, str(answer["error"]))
    repairs: Any = answer["repairs"]
    damage: Any = answer["damage"]
    if args.json:
        print_json({"schema": 1, "verify": args.verify, "repairs": repairs, "damage": damage})
    else:
        _show(repairs, damage, args.verify)
    return WANTING if damage or (args.verify and repairs) else DONE


def _offline(place: Place, verify: bool) -> dict[str, object]:
    if verify:
        settings, _ = load_settings(place)
        return rebuild_document(place.root, None, write_index=settings.board_write_index)
    with opened_offline(place) as reconciler:
        settle_all(reconciler, place.root)
        try:
            repairs = reconciler.rebuild()
        except Unreadable as stop:
            raise Exit(WANTING, render_fault(stop.fault)) from None
        if repairs is None:
            raise Exit(WANTING, "another reducer holds a run's lock; try again when it is done")
        return rebuild_document(place.root, repairs, write_index=reconciler.writes_index)


def _show(repairs: list[dict[str, object]], damage: list[str], verify: bool) -> None:
    for row in repairs:
        was = "missing" if row["was_bytes"] is None else f"{row['was_bytes']} bytes"
        print(f"{row['path']}: {was} -> {row['now_bytes']} bytes")
    for fault in damage:
        complain(fault)
    if repairs and verify:
        print(f"{len(repairs)} {'file' if len(repairs) == 1 else 'files'} would change; `shapeupd rebuild` does it")
    elif not repairs:
        print("the shared state is what the journal says" + (", as far as it can be read" if damage else ""))
