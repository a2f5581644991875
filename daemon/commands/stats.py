"""`shapeupd stats`: how past runs ended, how the ratchet did, what the hooks said, which verdicts flipped. Source: cli §2, protocol §5.7, §5.13, W-41, W-46.

Reads ledgers alone and changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, NamedTuple

from daemon import clock
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, USAGE, Exit
from daemon.offline import place_of
from daemon.rebuilding import slugs_of
from daemon.stats_tables import read_stats, show_hooks, show_stats
from daemon.terminal import escape, print_json, print_table
from parsers.faults import render_fault
from parsers.layout import LOCAL_ROOT, classify, folder_of, path_of
from parsers.ledgers import parse_rows
from parsers.tree import Unreadable
from parsers.trials import Score, parse_trials
from parsers.verdict_ledger import VerdictLine
from reducers.ratchet_stats import RatchetReport, ScopeStats, ratchet_report, report_document
from reducers.stats import hooks_document
from reducers.verdict_history import (
    Flip,
    Stability,
    find_flips,
    flip_document,
    measure_stability,
    read_evaluations,
    stability_document,
)

HELP = """Counts over ledgers. Without a flag: the harvests of past runs (.shapeup/metrics), by feature. Else one or more of:
  --ratchet   the measured attempts (t0/trials.jsonl): how many were kept, how soon a scope was green
  --hooks     what the agent hooks of this checkout allowed and denied, by hook and rule
  --verdicts  the evaluators' verdicts of all rounds: which flipped from one judgement to the next"""
EXAMPLE = "shapeupd stats --ratchet --slug checkout"


class Verdicts(NamedTuple):
    """The verdicts of one feature: how many lines its ledgers hold, how many lines hold none, and what they come to."""

    slug: str
    lines: tuple[VerdictLine, ...]
    skipped: int
    stability: Stability
    flips: tuple[Flip, ...]


class Counted(NamedTuple):
    """What one command counted; None: it was not asked for."""

    stats: Mapping[str, Any] | None = None
    hooks: Mapping[str, Any] | None = None
    ratchet: RatchetReport | None = None
    verdicts: tuple[Verdicts, ...] | None = None
    slugs: tuple[str, ...] = ()


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ratchet", action="store_true", help="count the measured attempts")
    parser.add_argument("--hooks", action="store_true", help="count what the agent hooks said")
    parser.add_argument("--verdicts", action="store_true", help="look for verdicts that flipped")
    parser.add_argument("--slug", metavar="SLUG", help="the feature (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    tree = DiskTree(place_of(args).root)
    try:
        counted = _counted(args, tree)
    except Unreadable as stop:
        raise Exit(USAGE, render_fault(stop.fault)) from None
    if args.json:
        print_json({"schema": 1, **_document(counted)})
        return DONE
    if counted.stats is not None:
        show_stats(counted.stats)
    if counted.ratchet is not None:
        _show_ratchet(counted.ratchet, len(counted.slugs) > 1)
    if counted.hooks is not None:
        show_hooks(counted.hooks)
    for found in counted.verdicts or ():
        _show_verdicts(found)
    return DONE


def _counted(args: argparse.Namespace, tree: DiskTree) -> Counted:
    """What was asked for. The harvests and the hooks' log know features whose run is archived; the other ledgers lie in one."""
    stats = hooks = None
    if not (args.ratchet or args.hooks or args.verdicts):
        stats = read_stats(tree, clock.iso(clock.now()), args.slug)
    if args.hooks:
        hooks = hooks_document(parse_rows(tree.read(path_of("decisions")) or b""))
    if not (args.ratchet or args.verdicts):
        return Counted(stats=stats, hooks=hooks)
    slugs = tuple(slug for slug in slugs_of(tree.root) if tree.list(f"{LOCAL_ROOT}/{slug}"))
    if args.slug is not None:
        if args.slug not in slugs:
            raise Exit(NOTHING_THERE, f"there is no feature {escape(args.slug)!r} below {LOCAL_ROOT}/")
        slugs = (args.slug,)
    report = _ratchet(tree, slugs) if args.ratchet else None
    verdicts = tuple(_verdicts(tree, slug) for slug in slugs) if args.verdicts else None
    return Counted(None, hooks, report, verdicts, slugs)


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


def _document(counted: Counted) -> Mapping[str, object]:
    document: dict[str, object] = {}
    if counted.stats is not None:
        document["stats"] = counted.stats
    if counted.ratchet is not None:
        document["ratchet"] = report_document(counted.ratchet, with_slug=True)
    if counted.hooks is not None:
        document["hooks"] = counted.hooks
    if counted.verdicts is not None:
        document["verdicts"] = [
            {
                "slug": found.slug,
                "records": len(found.lines),
                "skipped": found.skipped,
                "stability": stability_document(found.stability),
                "flips": [flip_document(flip) for flip in found.flips],
            }
            for found in counted.verdicts
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
