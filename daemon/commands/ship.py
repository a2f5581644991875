"""`shapeupd ship`: the report of a run, written whole at once and frozen at L4. Source: cli §2, protocol §5.8, R-41, R-45."""

from __future__ import annotations

import argparse
import sys

from daemon import clock
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, USAGE, WANTING, Exit
from daemon.offline import place_of
from daemon.ship_facts import read_ship_facts
from daemon.terminal import complain, escape, print_json, wants_style
from daemon.writes import replace_file
from parsers.addresses import SLUG
from parsers.faults import Fault, render_fault
from parsers.layout import NOT_A_SLUG, path_of
from parsers.markdown import encode
from parsers.tree import Unreadable
from reducers.ship.facts import ShipFacts, is_frozen
from reducers.ship.report import render_report

HELP = """Writes the report of a run, shapeup/SLUG/REPORT.md, from its files: outcome, leftovers, T0, ratchet, evaluation,
findings, decisions, what was discovered and not built. Once GATE L4 said `ship` it may not change: ends with 1 then.
Ends with 3 where there is no run."""
EXAMPLE = "shapeupd ship checkout --stdout"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help="the feature")
    parser.add_argument(
        "--verdict", choices=("PASS", "FAIL", "not-evaluated"), help="what to report (default: what the run says)"
    )
    parser.add_argument(
        "--qa", choices=("run", "skipped"), help="whether QA hunted (default: as its report lies there)"
    )
    parser.add_argument("--stdout", action="store_true", help="print the report and write nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document about it")


def run(args: argparse.Namespace) -> int:
    place, slug = place_of(args), args.slug
    is_slug = bool(SLUG.match(slug)) and slug not in NOT_A_SLUG
    found = read_ship_facts(place, slug, clock.now(), args.verdict, args.qa) if is_slug else None
    if found is None:
        where = path_of("receipt", slug if is_slug else "<slug>")
        raise Exit(NOTHING_THERE, f"no run: there is no {where}, no order and no result beside it")
    facts, records = found
    report, path = render_report(facts), path_of("report", slug)
    if not args.stdout:
        _write(DiskTree(place.root), path, encode(report), is_frozen(records))
    for warning in facts.warnings:
        complain(f"shapeupd: {warning}")
    if args.json:
        print_json(_document(facts, None if args.stdout else path))
    elif args.stdout:
        sys.stdout.write("\n".join(map(escape, report.split("\n"))) if wants_style() else report)
    else:
        print(escape(f"{path}: {' '.join(facts.verdict.split())}, {facts.done}/{facts.tasks} tasks done"))
    return DONE


def _write(tree: DiskTree, path: str, report: bytes, frozen: bool) -> None:
    """Raises Exit where the report stands and may not change, or cannot be written."""
    try:
        standing = tree.read(path)
        if standing == report:
            return
        if standing is not None and frozen:
            what = "the report is frozen: the run is shipped"
            why = "it is what was signed off; a later one would say it of something else"
            fix = "read it as it stands, or look at the present state with `--stdout`"
            raise Exit(WANTING, render_fault(Fault("R-45", path, what, why, fix)))
        replace_file(tree.root, path, report, is_synced=True)
    except Unreadable as stop:
        raise Exit(USAGE, render_fault(stop.fault)) from None
    except OSError as error:
        raise Exit(USAGE, f"cannot write {path}: {error.strerror}") from None


def _document(facts: ShipFacts, path: str | None) -> dict[str, object]:
    return {
        "schema": 1,
        "slug": facts.slug,
        "path": path,
        "verdict": facts.verdict,
        "not_evaluated": list(facts.not_evaluated),
        "rounds_used": facts.rounds_used,
        "qa": facts.qa,
        "tasks": {"total": facts.tasks, "done": facts.done, "cut": facts.cut},
        "unfinished": [{"of": name, "tasks": tasks} for name, tasks in facts.unfinished],
        "leftovers": [{"path": found.path, "text": found.text} for found in facts.leftovers],
        "warnings": list(facts.warnings),
    }
