"""`shapeupd ingest`: reduce one result now, with or without a daemon. Source: cli §2, rulings H8, J."""

from __future__ import annotations

import argparse
import os
import threading
from pathlib import Path

from daemon.exits import DONE, USAGE, WANTING, Exit
from daemon.offline import opened_offline
from daemon.place import Place, find_place
from daemon.reconciler import LOCK_PATIENCE_S, LOCK_POLL_S
from daemon.requests import outcome_document
from daemon.sockets import Message, ask
from daemon.terminal import complain, print_json
from parsers.layout import classify, path_of

HELP = """Reduces one result into the shared state now and says what it did.
Ends with 0 when it was applied (or had been), 1 when it was refused or waits for its order, 2 when it cannot be read."""
EXAMPLE = "shapeupd ingest .shapeup/checkout/results/cart-r1-a1.json"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("result", nargs="?", metavar="RESULT", help="a file in a results/ folder")
    parser.add_argument("--order", metavar="ORDER", help="the order whose result is meant, a file in an orders/ folder")
    parser.add_argument(
        "--no-receipt-check", action="store_true", help="apply without order or dispatch receipt; logged"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    place, path = _named(args)
    if not os.path.lexists(place.root / path):
        raise Exit(USAGE, f"{path} does not exist; the worker has not answered yet")
    answer = ask(place.root, "ingest", timeout_s=None, path=path, receipt_check=not args.no_receipt_check)
    if answer is None:
        answer = _offline(place, path, not args.no_receipt_check)
    if "error" in answer:
        raise Exit(WANTING, str(answer["error"]))
    if args.json:
        print_json({"schema": 1, **answer})
    else:
        _show(answer, args.no_receipt_check)
    return DONE if answer["outcome"] in ("applied", "superseded", "adopted", "duplicate", "abandoned") else WANTING


def _named(args: argparse.Namespace) -> tuple[Place, str]:
    """The repository and the result's path in it. Raises Exit where the words name none."""
    named = args.result or args.order
    if not named or (args.result and args.order):
        raise Exit(USAGE, "name one RESULT, or --order ORDER\n  fix: " + EXAMPLE)
    full = Path(os.path.abspath(named))
    place = find_place(Path(args.repo[0]) if args.repo else _existing(full.parent))
    path = os.path.relpath(os.path.join(os.path.realpath(full.parent), full.name), place.root)
    found = classify(path)
    kind = "order" if args.order else "result"
    if found is None or found.kind != kind or not found.slug or not found.stem:
        raise Exit(USAGE, f"{named} is no {kind}: it must lie at {path_of(kind, '<slug>', '<stem>')} of a repository")
    return place, path_of("result", found.slug, found.stem)


def _existing(folder: Path) -> Path:
    return folder if folder.is_dir() else Path()


def _offline(place: Place, path: str, receipt_check: bool) -> Message:
    pause = threading.Event()
    with opened_offline(place) as reconciler:
        for _ in range(int(LOCK_PATIENCE_S / LOCK_POLL_S)):
            settled = reconciler.ingest(path, None if receipt_check else "off")
            if settled is not None:
                return outcome_document(settled)
            pause.wait(LOCK_POLL_S)
    return {"error": f"another reducer holds the run's lock for {LOCK_PATIENCE_S:g} s"}


def _show(answer: Message, unchecked: bool) -> None:
    """The protocol's summary line, or the reasons of a refusal. Source: protocol §4.1 step 12."""
    errors = answer["errors"]
    if isinstance(errors, list) and errors:
        complain(f"{answer['order_id']}: {answer['outcome']}\n" + "\n".join(map(str, errors)))
        return
    tasks, unblocked = _names(answer["tasks_updated"]), _names(answer["unblocked"])
    print(
        f"{answer['outcome']} {answer['order_id']}: tasks [{tasks}] · ACs ticked {answer['acs_ticked']} · "
        f"unblocked [{unblocked}] · discoveries {answer['discoveries_appended']} · "
        f"verdict lines {answer['verdict_lines']} · refuted un-ticked {answer['refuted_unticked']}"
        + (" · receipt check off" if unchecked else "")
    )
    misses = answer["misses"]
    for miss in misses if isinstance(misses, list) else ():
        complain(f"not found: {miss}")


def _names(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else ""
