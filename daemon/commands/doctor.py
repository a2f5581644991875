"""`shapeupd doctor`: proves each wall, and says how to mend what does not stand. Source: cli §2."""

from __future__ import annotations

import argparse

from daemon.doctor.checks import Check, run_checks
from daemon.exits import DONE, WANTING
from daemon.offline import place_of
from daemon.terminal import escape, print_json

HELP = """Proves each wall: the daemon lives and sees a canary file, a canary commit is refused in every worktree, the stubs start
a shapeupd that is there, the policy is fresh, limits suffice. Changes nothing. Ends with 1 if anything is red."""
EXAMPLE = "shapeupd doctor --json"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    place = place_of(args)
    checks = []
    for check in run_checks(place):
        checks.append(check)
        if not args.json:
            _show(check)
    if args.json:
        print_json({"schema": 1, "root": str(place.root), "checks": [check._asdict() for check in checks]})
    return WANTING if any(check.ok is False for check in checks) else DONE


def _show(check: Check) -> None:
    mark = {True: "ok ", False: "RED", None: "-  "}[check.ok]
    first, *more = check.what.split("\n")
    print(f"{mark} {escape(check.name)}: {escape(first)}")
    for line in more:
        print(f"      {escape(line)}")
    if check.fix and check.ok is False:
        print(f"      fix: {escape(check.fix)}")
