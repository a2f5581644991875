"""`shapeupd compile`: one WorkOrder, from the run's files alone. Source: protocol §2.3-2.5, §12.2, cli §2, rulings B1-B8.

The order is whole, valid and allowed before the first byte of it is written. A breaker that stands ends it with 6.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from daemon import clock
from daemon.compile_facts import is_feature, read_compile_facts
from daemon.compile_write import LiveOrder, breaker_fault, live_fault, write_order
from daemon.configuration import load_settings
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, TRIPPED, USAGE, WANTING, Exit
from daemon.gate_record import Locked
from daemon.journal import FsyncFailed
from daemon.loop_facts import read_loop_facts
from daemon.offline import place_of
from daemon.place import Place
from daemon.runs_on_disk import open_runs
from daemon.terminal import complain, print_json
from parsers.addresses import SLUG
from parsers.facts import OrderFact
from parsers.faults import Fault, fault_row, render_fault
from parsers.harness_run import parse_harness_run
from parsers.layout import NOT_A_SLUG, SHARED_ROOT, path_of, stem_at
from parsers.strict_json import parse_strict
from parsers.tree import Unreadable
from reducers.compile.order import Compiled, Refused, compile_order
from reducers.compile.request import CompileFacts, Request
from reducers.compile.stagnation import stagnation_notice
from reducers.compile.stems import WORKERS
from reducers.rules.findings import action_of, fault_of
from reducers.rules.orders import judge_order

HELP = """Compiles one WorkOrder from the run's files: tasks, contract, decisions, errors and trials of the attempts before, routed bugs.
Prints the order's path. Without OPERATION, for a scope or a task: `fix` where bugs of the last verdict belong to it, else `execute`.
An order that is live is never replaced; one that was answered may be compiled again.
Ends with 0; 1 where a rule forbids the order or it is not valid; 2 where something named cannot be read or is live;
3 where there is no such feature or its run is closed; 6 where a breaker has tripped."""
EXAMPLE = "shapeupd compile --slug checkout --scope cart --round 1 --attempt 1"

AFTER_CLOSE = frozenset({"coach", "translate"})  # work that is no part of a run


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("operation", nargs="?", metavar="OPERATION", help=f"one of {', '.join(WORKERS)}")
    parser.add_argument("--operation", dest="operation_too", metavar="OPERATION", help="the same, as a flag")
    parser.add_argument("--slug", metavar="S", help="the feature (default: the contract's, else the open run)")
    parser.add_argument("--scope", metavar="ID", help="a scope id, or the path of its contract")
    parser.add_argument("--task", metavar="ID", help="one task of the board")
    parser.add_argument("--next", action="store_true", help="the first task that is ready, by priority")
    parser.add_argument("--round", type=_count, metavar="N")
    parser.add_argument("--attempt", type=_count, metavar="M")
    parser.add_argument("--payload", metavar="JSON", help="an object; its fields win over what is derived")
    parser.add_argument("--worker", metavar="NAME", help="who does it (default: the operation's own worker)")
    parser.add_argument("--test-cmd", metavar="CMD", help="what the worker runs to see that it works")
    parser.add_argument("--spec", metavar="DIR", help="the spec's folder (default: shapeup/<slug>/spec)")
    parser.add_argument("--dry-run", action="store_true", help="print the order, write nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


def run(args: argparse.Namespace) -> int:
    place = place_of(args)
    tree = DiskTree(place.root)
    slug = _slug(tree, args)
    request = _request(args, slug)
    try:
        facts = read_compile_facts(tree, slug)
        found = compile_order(facts, request, clock.iso(clock.now()))
        if isinstance(found, Refused):
            raise Exit(USAGE if found.kind == "input" else WANTING, _told(found.faults))
        warnings = (*found.warnings, *_allowed(place, tree, slug, found.fact))
        is_pointed = _written(place, slug, found, is_dry=args.dry_run)
    except Unreadable as stop:
        raise Exit(USAGE, render_fault(stop.fault)) from None
    except (Locked, FsyncFailed, OSError) as error:
        raise Exit(WANTING, f"the order could not be written: {error}\n  fix: mend that, and run it again") from None
    _report(place, found, warnings, args, is_pointed)
    _tell_stagnation(facts, request)
    return DONE


# --- what is asked for -----------------------------------------------------------------------------------------------


def _slug(tree: DiskTree, args: argparse.Namespace) -> str:
    """The feature: as named, as the contract's path says, as active-scope points at it, else the one open run."""
    slug = args.slug or _slug_at(args.scope) or _pointed_at(tree)
    if slug is None:
        runs = open_runs(tree.root)
        if len(runs) != 1:
            told = f"several runs are open: {', '.join(runs)}" if runs else "no run is open"
            raise Exit(USAGE if runs else NOTHING_THERE, f"{told}\n  fix: say --slug S")
        return runs[0]
    if not SLUG.match(slug) or slug in NOT_A_SLUG:
        raise Exit(USAGE, f"{slug!r} is no feature's name\n  fix: lower case letters, digits and dashes")
    if not is_feature(tree, slug):
        raise Exit(NOTHING_THERE, f"there is no feature {slug}\n  fix: open a run of it first (`shapeupd open`)")
    return str(slug)


def _slug_at(scope: str | None) -> str | None:
    """The directory two levels above a contract's file. Source: §2.5."""
    parts = (scope or "").split("/")
    return parts[-3] if len(parts) > 2 and parts[-2] == "scopes" else None


def _pointed_at(tree: DiskTree) -> str | None:
    path = path_of("active-scope")
    try:
        value = parse_strict(tree.read(path) or b"", path).value
    except Unreadable:
        return None
    slug = value.get("slug") if isinstance(value, dict) else None
    return slug if isinstance(slug, str) and is_feature(tree, slug) else None


def _request(args: argparse.Namespace, slug: str) -> Request:
    if args.operation and args.operation_too and args.operation != args.operation_too:
        raise Exit(USAGE, f"two operations: {args.operation} and {args.operation_too}\n  fix: name one")
    scope = stem_at(args.scope) if args.scope and _slug_at(args.scope) else args.scope
    if scope is not None and "/" in scope:
        raise Exit(USAGE, f"{scope} is no contract\n  fix: a contract stands at {SHARED_ROOT}/<slug>/scopes/<scope>.md")
    if args.slug and _slug_at(args.scope) not in (None, args.slug):
        raise Exit(USAGE, f"{args.scope} is no contract of {args.slug}\n  fix: leave --slug out")
    return Request(
        slug,
        args.operation or args.operation_too,
        scope,
        args.task,
        args.next,
        args.round,
        args.attempt,
        args.worker,
        _payload(args.payload),
        args.test_cmd,
        args.spec,
    )


def _payload(text: str | None) -> Mapping[str, object]:
    if text is None:
        return {}
    parsed = parse_strict(text.encode("utf-8", "surrogateescape"), "--payload")
    if parsed.fault:
        raise Exit(USAGE, render_fault(parsed.fault))
    if not isinstance(parsed.value, dict):
        raise Exit(USAGE, "--payload is no JSON object\n  fix: write it as '{\"field\": …}'")
    return parsed.value


# --- whether it may be ------------------------------------------------------------------------------------------------


def _allowed(place: Place, tree: DiskTree, slug: str, fact: OrderFact) -> Sequence[Fault]:
    """What the run says against the order without forbidding it. Raises Exit where it is forbidden."""
    if _is_closed(tree, slug) and fact.order.operation not in AFTER_CLOSE:
        raise Exit(NOTHING_THERE, f"the run of {slug} is closed\n  fix: open the next one first (`shapeupd open`)")
    if barred := breaker_fault(tree, slug, fact):
        raise Exit(TRIPPED, render_fault(barred))
    settings, faults = load_settings(place)
    loop = read_loop_facts(tree, slug)
    judged = [] if loop is None else judge_order(loop, fact)
    acts = [(action_of(found, settings.rule), fault_of(found)) for found in judged]
    if denied := [fault for action, fault in acts if action == "deny"]:
        raise Exit(WANTING, _told(denied))
    return (*faults, *(fault for action, fault in acts if action == "warn"))


def _is_closed(tree: DiskTree, slug: str) -> bool:
    """Whether there was a run and it has ended; a feature without a receipt has standalone orders (L8)."""
    path = path_of("harness-run", slug)
    if tree.stamp(path) is None or tree.stamp(path_of("receipt", slug)) is None:
        return False
    return not parse_harness_run(tree.read(path) or b"", path).is_open


def _written(place: Place, slug: str, found: Compiled, *, is_dry: bool) -> bool:
    """Whether the pointer names the order. Raises Exit where a live order has its stem."""
    try:
        if not is_dry:
            return write_order(place.root, slug, found.fact, found.data, clock.now)
        if fault := live_fault(DiskTree(place.root), slug, found.fact):
            raise LiveOrder(fault)
    except LiveOrder as live:
        raise Exit(USAGE, render_fault(live.fault)) from None
    return False


# --- what is said -----------------------------------------------------------------------------------------------------


def _report(
    place: Place, found: Compiled, warnings: Sequence[Fault], args: argparse.Namespace, is_pointed: bool
) -> None:
    order, path = found.fact.order, found.fact.path
    for warning in warnings:
        complain(render_fault(warning))
    if not is_pointed and not args.dry_run:
        complain(f"{path_of('active-order')} could not be set; agent hooks go on with the order it names")
    if args.json:
        print_json(
            {
                "schema": 1,
                "order_id": order.order_id,
                "path": path,
                "worker": order.worker,
                "operation": order.operation,
                "written": not args.dry_run,
                "pointed": is_pointed,
                "warnings": [{"code": one.code, **fault_row(one)} for one in warnings],
                "order": found.document,
            }
        )
    elif args.dry_run:
        print(json.dumps(found.document, indent=2))
    else:
        print(os.path.relpath(place.root / Path(path)))


def _tell_stagnation(facts: CompileFacts, request: Request) -> None:
    if notice := stagnation_notice(facts, request):
        complain(json.dumps(notice))


def _told(faults: Sequence[Fault]) -> str:
    return "\n".join(map(render_fault, faults[:20]))
