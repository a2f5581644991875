"""`shapeupd stats`: how the ratchet did, and which verdicts flipped. Source: cli §2, protocol §5.7 (ratchet), §5.13, W-41, W-46.

Reads ledgers alone and changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import NamedTuple

from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, USAGE, Exit
from daemon.offline import place_of
from daemon.rebuilding import slugs_of
from daemon.terminal import escape, print_json, print_table
from parsers.faults import render_fault
from parsers.layout import LOCAL_ROOT, classify, folder_of, path_of
from parsers.tree import Unreadable
from parsers.trials import Score, parse_trials
from parsers.verdict_ledger import VerdictLine
from reducers.ratchet_stats import RatchetReport, ScopeStats, ratchet_report, report_document
from reducers.verdict_history import (
    Flip,
    Stability,
    find_flips,
    flip_document,
    measure_stability,
    read_evaluations,
    stability_document,
)

HELP = """Counts over what the ledgers of a feature say; give one or both of:
  --ratchet   the measured attempts (t0/trials.jsonl): how many were kept, how soon a scope was green
  --verdicts  the evaluators' verdicts of all rounds: which flipped from one judgement to the next"""
EXAMPLE = "shapeupd stats --ratchet --slug checkout"


class Verdicts(NamedTuple):
    """The verdicts of one feature: how many lines its ledgers hold, how many lines hold none, and what they come to."""

    slug: str
    lines: tuple[VerdictLine, ...]
    skipped: int
    stability: Stability
    flips: tuple[Flip, ...]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ratchet", action="store_true", help="count the measured attempts")
    parser.add_argument("--verdicts", action="store_true", help="look for verdicts that flipped")
    parser.add_argument("--slug", metavar="SLUG", help="the feature (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    if not (args.ratchet or args.verdicts):
        raise Exit(USAGE, "say what to count: --ratchet, --verdicts or both")
    tree = DiskTree(place_of(args).root)
    slugs = tuple(slug for slug in slugs_of(tree.root) if tree.list(f"{LOCAL_ROOT}/{slug}"))
    if args.slug is not None:
        if args.slug not in slugs:
            raise Exit(NOTHING_THERE, f"there is no feature {escape(args.slug)!r} below {LOCAL_ROOT}/")
        slugs = (args.slug,)
    try:
        report = _ratchet(tree, slugs) if args.ratchet else None
        verdicts = tuple(_verdicts(tree, slug) for slug in slugs) if args.verdicts else None
    except Unreadable as stop:
        raise Exit(USAGE, render_fault(stop.fault)) from None
    if args.json:
        print_json({"schema": 1, **_document(report, verdicts)})
        return DONE
    if report is not None:
        _show_ratchet(report, len(slugs) > 1)
    for found in verdicts or ():
        _show_verdicts(found)
    return DONE


def _ratchet(tree: DiskTree, slugs: tuple[str, ...]) -> RatchetReport:
    trials = [(slug, trial) for slug in slugs for trial in parse_trials(tree.read(path_of("trials", slug)) or b"")]
    return ratchet_report(trials)


def _verdicts(tree: DiskTree, slug: str) -> Verdicts:
    folder = folder_of("verdict-ledger", slug)
    ledgers: dict[str, bytes] = {}
    for name in tree.list(folder):
        place = classify(f"{folder}/{name}")
        if place and place.kind == "verdict-ledger" and place.stem:
            ledgers[place.stem] = tree.read(f"{folder}/{name}") or b""
    ledger = read_evaluations(ledgers)
    return Verdicts(slug, ledger.lines, ledger.skipped, measure_stability(ledger.lines), find_flips(ledger.lines))


def _document(report: RatchetReport | None, verdicts: tuple[Verdicts, ...] | None) -> Mapping[str, object]:
    document: dict[str, object] = {}
    if report is not None:
        document["ratchet"] = report_document(report, with_slug=True)
    if verdicts is not None:
        document["verdicts"] = [
            {
                "slug": found.slug,
                "records": len(found.lines),
                "skipped": found.skipped,
                "stability": stability_document(found.stability),
                "flips": [flip_document(flip) for flip in found.flips],
            }
            for found in verdicts
        ]
    return document


def _show_ratchet(report: RatchetReport, is_of_many: bool) -> None:
    print(
        f"ratchet: {_count(report.trials, 'trial')} of {_count(report.scopes, 'scope')}, "
        f"{report.scopes_multi_trial} of them tried more than once"
    )
    green = "—" if report.mean_trials_to_green is None else report.mean_trials_to_green
    print(f"  improvement rate      {report.improvement_rate} (kept, of the trials after the first)")
    print(f"  monotone rate         {report.monotone_rate} (scopes without a setback, of those tried again)")
    print(f"  sawteeth              {report.sawtooth_count} (reverted directly after kept)")
    print(f"  mean trials to green  {green}")
    if not report.per_scope:
        return
    statuses = (f"{status or '(none)'} {count}" for status, count in report.status_histogram.items())
    print(escape(f"  statuses              {', '.join(statuses)}"))
    headers = ("feature",) * is_of_many + ("scope", "trials", "first", "last", "course", "green at")
    print_table(headers, [(scope.slug,) * is_of_many + _cells(scope) for scope in report.per_scope])


def _cells(scope: ScopeStats) -> tuple[object, ...]:
    course = {None: "—", True: "monotone", False: "sawtooth"}[scope.monotone]
    green = "—" if scope.reached_green_at_trial is None else f"trial {scope.reached_green_at_trial}"
    return scope.scope_id, scope.trials, _score(scope.first_score), _score(scope.last_score), course, green


def _score(score: Score | None) -> str:
    return "—" if score is None else f"{score.fixtures_passed}/{score.fixtures_total}"


def _show_verdicts(found: Verdicts) -> None:
    stable = found.stability
    skipped = f", {_count(found.skipped, 'line')} skipped that hold no verdict" if found.skipped else ""
    print(escape(f"verdicts of {found.slug}: {_count(len(found.lines), 'record')}{skipped}"))
    print(f"  stable      {stable.stable} of {stable.total} in the newest judgement, against the one before")
    print(f"  flips       {len(found.flips) or 'none'}")
    for flip in found.flips:
        when = f"r{flip.before.round} run {flip.before.run} to r{flip.after.round} run {flip.after.run}"
        subject = f"{flip.after.dimension}: {flip.after.criterion}"
        print(escape(f"    {flip.before.verdict} → {flip.after.verdict}  {when}  {subject}"))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
