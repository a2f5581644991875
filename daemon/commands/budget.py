"""`shapeupd budget`: how much of its time each run has used, by both clocks. Source: protocol §7.2, cli §2, rulings F3, F4, J.

Reads files alone and changes nothing; with or without a daemon the answer is the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from daemon.boot_clock import read_clocks
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, TRIPPED, USAGE, Exit
from daemon.place import find_place
from daemon.terminal import complain, escape, print_json
from parsers.addresses import SLUG
from parsers.breaker_ledger import BreakerLedger, parse_breakers
from parsers.clock_anchor import Anchor, Clocks, parse_anchor
from parsers.durations import render_duration
from parsers.faults import render_fault
from parsers.harness_run import parse_harness_run
from parsers.layout import LOCAL_ROOT, NOT_A_SLUG, path_of
from parsers.receipts import Receipt, parse_receipt
from parsers.strict_json import parse_strict
from parsers.times import parse_time
from parsers.tree import Unreadable
from reducers.budget import (
    budget_document,
    effective_budget,
    elapsed_at,
    elapsed_since,
    evaluate_budget,
    is_loosened,
)

HELP = """Shows how much of its wall-clock budget a run has used, always counted anew from the receipt's start.
Without SLUG: the run that the active-scope pointer names, else every run that is open.
Ends with 0, with 6 under --strict where the time is used up, with 3 where there is no run."""
EXAMPLE = "shapeupd budget checkout --strict"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", nargs="?", metavar="SLUG", help="the feature")
    parser.add_argument("--at", type=_moment, metavar="ISO", help="the state at that moment instead of now")
    parser.add_argument("--strict", action="store_true", help="end with 6 where the time is used up")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _moment(text: str) -> datetime:
    moment = parse_time(text)
    if moment is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write it as 2026-03-01T09:00:00Z")
    return moment


class Told(NamedTuple):
    """One run's document, what of its facts cannot be meant as it stands, and whether it is still open."""

    document: dict[str, object]
    findings: tuple[str, ...]
    is_open: bool

    @property
    def has_tripped(self) -> bool:
        return self.document["status"] == "trip"


def run(args: argparse.Namespace) -> int:
    tree = DiskTree(find_place(Path(args.repo[0]) if args.repo else None).root)
    clocks = read_clocks()
    told: list[Told] = []
    failed: list[Exit] = []
    for slug in _slugs(tree, args.slug):
        try:
            told.append(_told(tree, slug, clocks, args.at))
        except Exit as stop:
            failed.append(stop)
        except Unreadable as stop:
            failed.append(Exit(USAGE, render_fault(stop.fault)))
    if not told:
        raise Exit(USAGE, "\n".join(failure.message for failure in failed))
    told = [one for one in told if one.is_open] or told
    _print(told, as_json=args.json)
    for failure in failed:
        complain(f"shapeupd: {failure.message}")
    if args.strict and any(one.has_tripped for one in told):
        return TRIPPED
    return USAGE if failed else DONE


def _print(told: list[Told], *, as_json: bool) -> None:
    documents = [one.document for one in told]
    if as_json:
        print_json({"schema": 1, **documents[0]} if len(told) == 1 else {"schema": 1, "budgets": documents})
    for one in told:
        if not as_json:
            _show(one.document)
        for finding in one.findings:
            complain(f"shapeupd: {one.document['slug']}: {finding}")


def _slugs(tree: DiskTree, named: str | None) -> tuple[str, ...]:
    """The features to tell about. Raises Exit where there is no receipt."""
    wanted = (named,) if named is not None else _pointed_at(tree) or tree.list(LOCAL_ROOT)
    found = tuple(slug for slug in wanted if _is_slug(slug) and tree.stamp(path_of("receipt", slug)) is not None)
    if not found:
        where = path_of("receipt", named if named is not None and _is_slug(named) else "<slug>")
        raise Exit(NOTHING_THERE, f"no run: there is no {where}")
    return found


def _pointed_at(tree: DiskTree) -> tuple[str, ...]:
    """The run of the active-scope pointer; nothing where it names none that is there."""
    path = path_of("active-scope")
    value = parse_strict(tree.read(path) or b"", path).value
    slug = value.get("slug") if isinstance(value, dict) else None
    if not isinstance(slug, str) or not _is_slug(slug):
        return ()
    return (slug,) if tree.stamp(path_of("receipt", slug)) is not None else ()


def _is_slug(text: str) -> bool:
    return SLUG.match(text) is not None and text not in NOT_A_SLUG


def _told(tree: DiskTree, slug: str, clocks: Clocks, at: datetime | None) -> Told:
    """One run's state. Raises Exit where its receipt names no start, for then nothing can be counted."""
    path = path_of("receipt", slug)
    receipt = parse_receipt(tree.read(path) or b"", path)
    if receipt.start is None:
        raise Exit(USAGE, "\n".join(map(render_fault, receipt.faults[:1])))
    anchor, ledger = _clock_facts(tree, slug, receipt)
    armed_s = anchor.budget_s if anchor else None
    budget_s = effective_budget(receipt.config.budget_s, armed_s, ledger.extensions, receipt.run_id)
    elapsed = elapsed_at(receipt.start, at) if at else elapsed_since(receipt.start, clocks, anchor)
    findings = [f"{fault.where}: {fault.what}" for fault in receipt.faults]
    if is_loosened(receipt.config.budget_s, armed_s):
        findings.append(f"{path}: the budget was raised by hand; what it was when the deadline was armed counts")
    findings += [elapsed.finding] if elapsed.finding else []
    is_open = _is_open(tree, slug)
    document = budget_document(
        slug,
        receipt,
        evaluate_budget(elapsed.seconds, budget_s),
        elapsed,
        is_open=is_open,
        extensions=ledger.extensions,
    )
    return Told({**document, "findings": findings}, tuple(findings), is_open)


def _clock_facts(tree: DiskTree, slug: str, receipt: Receipt) -> tuple[Anchor | None, BreakerLedger]:
    clock = path_of("clock", slug)
    anchor = parse_anchor(tree.read(clock) or b"", clock, receipt.run_id)
    return anchor, parse_breakers(tree.read(path_of("breakers", slug)) or b"")


def _is_open(tree: DiskTree, slug: str) -> bool:
    """Whether the run goes on. Source: ruling B1."""
    path = path_of("harness-run", slug)
    data = tree.read(path)
    return data is None or parse_harness_run(data, path).is_open


def _show(document: Mapping[str, object]) -> None:
    closed = "" if document["open"] else " (the run is closed: its breaker trips no more)"
    print(escape(f"{document['slug']}: {document['status']}, started {document['started_at']}{closed}"))
    print(f"  elapsed    {_seconds(document['elapsed_s'])} by the {_CLOCKS[str(document['clock'])]}")
    if document["clock"] == "boot":
        print(f"  wall clock {_seconds(document['wall_elapsed_s'])}")
    if document["budget_s"] is not None:
        print(f"  budget     {_seconds(document['budget_s'])}, remaining {_seconds(document['remaining_s'])}")
    match document["extensions"]:
        case [*grants]:
            for grant in grants:
                match grant:
                    case {"added_s": added_s, "by": by, "at": at}:
                        print(escape(f"  extended   {_seconds(added_s)} by {by} at {at}"))
    print(f"  {document['action']}")


_CLOCKS = {"boot": "boot clock", "wall": "wall clock", "given": "time that was given"}


def _seconds(value: object) -> str:
    assert isinstance(value, int | float)
    return f"{render_duration(value)} ({value} s)"
