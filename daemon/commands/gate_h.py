"""`shapeupd gate-h`: what waits at GATE H, and the sentence to act on. Source: protocol §7.4, cli §2, ruling F8.

Reads files alone, with or without a daemon.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from daemon.breakers.census import read_census
from daemon.exits import DONE, NOTHING_THERE, Exit
from daemon.place import find_place
from daemon.runs_on_disk import open_runs
from daemon.terminal import escape, print_json
from parsers.layout import path_of
from reducers.gate_h import Census, census_document, render_census

HELP = """Shows the queue of GATE H: what tripped, what is green, what is open, what may still be dispatched,
and the one sentence that the orchestrator acts on. Without SLUG: every open run.
Ends with 0, with 3 where there is no run."""
EXAMPLE = "shapeupd gate-h checkout --json"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", nargs="?", metavar="SLUG", help="the feature")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    root = find_place(Path(args.repo[0]) if args.repo else None).root
    slugs = open_runs(root, args.slug)
    if not slugs:
        raise Exit(NOTHING_THERE, f"no run: there is no {path_of('receipt', args.slug or '<slug>')}")
    found = [read_census(root, slug) for slug in slugs]
    if args.json:
        documents = [census_document(census) for census in found]
        print_json({"schema": 1, **documents[0]} if len(found) == 1 else {"schema": 1, "queues": documents})
    else:
        print("\n".join(map(_shown, found)), end="")
    return DONE


def _shown(census: Census) -> str:
    return "\n".join(map(escape, render_census(census).split("\n")))
