"""`shapeupd lint SLUG --run`: what stands against a run by its records, rule by rule. Source: cli §2, protocol §9.

Reads files alone and changes nothing; with or without a daemon the answer is the same.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from daemon.configuration import load_settings
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, WANTING, Exit
from daemon.loop_facts import read_loop_facts, read_report
from daemon.offline import place_of
from daemon.terminal import escape, print_json
from parsers.addresses import SLUG
from parsers.faults import render_fault
from parsers.layout import NOT_A_SLUG, path_of
from parsers.settings import RuleLevel
from reducers.rules.findings import Finding, action_of, fault_of, finding_row
from reducers.rules.run import judge_run_loop

HELP = """Holds a run against the invariants of the round loop, by what is on record: its orders as they were given, its
applied results, trials, gates and decisions. A process rule denies under `rules.profile = "enforce"` only; a rule
that is set to `off` is not told. Ends with 0, with 1 where something is denied, with 3 where there is no run."""
EXAMPLE = "shapeupd lint checkout --run"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help="the feature")
    parser.add_argument("--run", dest="of_run", action="store_true", help="lint the records of its run (the default)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    place = place_of(args)
    settings, _ = load_settings(place)
    tree = DiskTree(place.root)
    slug = args.slug
    facts = read_loop_facts(tree, slug) if SLUG.match(slug) and slug not in NOT_A_SLUG else None
    if facts is None:
        where = path_of("receipt", slug if SLUG.match(slug) else "<slug>")
        raise Exit(NOTHING_THERE, f"no run: there is no {where}, no order and no result beside it")
    reports = {stem: read_report(tree, slug, fact) for stem, fact in facts.results.items() if fact.result.verdict}
    judged = ((found, action_of(found, settings.rule)) for found in judge_run_loop(facts, reports))
    told = [(found, action) for found, action in judged if action != "off"]
    if args.json:
        print_json({"schema": 1, "findings": [finding_row(found, action) for found, action in told]})
    else:
        _show(told, slug)
    return WANTING if any(action == "deny" for _, action in told) else DONE


def _show(told: Sequence[tuple[Finding, RuleLevel]], slug: str) -> None:
    """The findings in the error form; those of one rule that say the same are told once."""
    same: dict[tuple[str, str, RuleLevel], list[Finding]] = {}
    counts = Counter(action for _, action in told)
    for found, action in told:
        same.setdefault((found.rule, found.what, action), []).append(found)
    for (_, what, action), group in same.items():
        more = f" (and {len(group) - 1} more such)" if len(group) > 1 else ""
        text = render_fault(fault_of(group[0])._replace(what=f"{action}: {what}{more}"))
        print("\n".join(map(escape, text.split("\n"))))
    stands = f"{counts['deny']} denied, {counts['warn']} warned" if counts else "nothing stands against the run"
    print(f"{slug}: {stands}")
