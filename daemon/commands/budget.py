"""`shapeupd budget`: how much of its time each run has used, by both clocks. Source: protocol §7.2, cli §2, rulings F3, F4, J.

Reads files alone, with or without a daemon; only `--extend` changes something, and goes through the daemon where one lives.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from daemon.boot_clock import read_clocks
from daemon.clock_on_disk import is_run_open, read_run_clock
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, TRIPPED, USAGE, WANTING, Exit
from daemon.place import Place, find_place
from daemon.sockets import Message, ask
from daemon.terminal import complain, escape, print_json
from parsers.addresses import SLUG
from parsers.clock_anchor import Clocks
from parsers.durations import parse_duration, render_duration
from parsers.faults import render_fault
from parsers.layout import LOCAL_ROOT, NOT_A_SLUG, path_of
from parsers.strict_json import parse_strict
from parsers.times import parse_time
from parsers.tree import Unreadable
from reducers.budget import budget_document, elapsed_at, elapsed_since

HELP = """Shows how much of its wall-clock budget a run has used, always counted anew from the receipt's start.
Without SLUG: the run that the active-scope pointer names, else every run that is open.
--extend grants a run more time: a breaker that tripped for the time opens again, and orders it refused are admitted.
Ends with 0, with 6 under --strict where the time is used up, with 3 where there is no run."""
EXAMPLE = "shapeupd budget checkout --extend 30m --by ada"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", nargs="?", metavar="SLUG", help="the feature")
    parser.add_argument("--at", type=_moment, metavar="ISO", help="the state at that moment instead of now")
    parser.add_argument("--strict", action="store_true", help="end with 6 where the time is used up")
    parser.add_argument("--extend", type=_duration, metavar="D", help="grant this much more: 90m, 2h, or seconds")
    parser.add_argument("--by", metavar="NAME", help="who grants it; recorded with the extension")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _moment(text: str) -> datetime:
    moment = parse_time(text)
    if moment is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write it as 2026-03-01T09:00:00Z")
    return moment


MAX_NAME = 80


class Told(NamedTuple):
    """One run's document, what of its facts cannot be meant as it stands, and whether it is still open."""

    document: dict[str, object]
    findings: tuple[str, ...]
    is_open: bool

    @property
    def has_tripped(self) -> bool:
        return self.document["status"] == "trip"


def run(args: argparse.Namespace) -> int:
    place = find_place(Path(args.repo[0]) if args.repo else None)
    tree = DiskTree(place.root)
    if args.extend is not None or args.by is not None:
        args.slug = _extend(place, tree, args)
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


def _extend(place: Place, tree: DiskTree, args: argparse.Namespace) -> str:
    """Grant one run more time, through the daemon where one lives; its slug. Raises Exit where it cannot be."""
    if args.extend is None or not (args.by or "").strip() or args.at is not None:
        raise Exit(USAGE, f"--extend D and --by NAME go together, and without --at\n  fix: {EXAMPLE}")
    slugs = [slug for slug in _slugs(tree, args.slug) if is_run_open(tree, slug)]
    if args.slug is not None and not slugs:
        raise Exit(WANTING, f"the run of {args.slug} is closed; its budget counts no more")
    if len(slugs) != 1:
        which = f"{len(slugs)} runs are open" if slugs else "no run is open"
        raise Exit(USAGE, f"{which}; name one\n  fix: {EXAMPLE}")
    by = " ".join(args.by.split())[:MAX_NAME]
    answer = ask(place.root, "extend", timeout_s=None, slug=slugs[0], added_s=args.extend, by=by)
    if answer is None:
        answer = _extend_offline(place, slugs[0], args.extend, by)
    if "error" in answer:
        raise Exit(WANTING, str(answer["error"]))
    return slugs[0]


def _extend_offline(place: Place, slug: str, added_s: float, by: str) -> Message:
    from daemon.gate_record import Locked
    from daemon.offline import opened_offline

    try:
        with opened_offline(place) as reconciler:
            refusal = reconciler.extend(slug, added_s, by)
    except Locked as locked:
        return {"error": f"{locked}; try again when it is done"}
    return {"error": refusal} if refusal else {}


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
    """One run's state. Raises Exit where its receipt names no start, for then nothing can be counted; Unreadable."""
    found = read_run_clock(tree, slug)
    receipt, clock = found.clock.receipt, found.clock
    if clock.start is None:
        raise Exit(USAGE, "\n".join(map(render_fault, receipt.faults[:1])))
    elapsed = elapsed_at(clock.start, at) if at else elapsed_since(clock.start, clocks, clock.anchor)
    findings = [f"{fault.where}: {fault.what}" for fault in receipt.faults]
    findings += [told for told in (clock.tampering(), elapsed.finding) if told]
    document = budget_document(
        slug, receipt, clock.budget(elapsed), elapsed, is_open=found.is_open, extensions=clock.extensions
    )
    return Told({**document, "findings": findings}, tuple(findings), found.is_open)


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
