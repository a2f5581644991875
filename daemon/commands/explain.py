"""`shapeupd explain PATH`: who may write it, by which order and glob, and what to ask for. Source: cli §2, rulings A1, B3, J, W-16."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from daemon.exits import DONE
from daemon.place import Place, find_place
from daemon.policy_on_disk import policy_of
from daemon.terminal import escape, print_json
from hooks.verdict import RULES
from hooks.whitelist import OPEN, explain_path
from parsers.faults import CODES
from parsers.rule_table import RULES as LOOP_RULES

HELP = """Says who may write PATH now: the order and the glob that open it, its fixed writer where it has one, and what
to ask for where nobody may. Orders and results count as they lie on disk, with or without a daemon.
The name of a rule or of a fault code (OUTSIDE, R-37, E-STEM) is explained too."""
EXAMPLE = "shapeupd explain src/cart/total.py"

_ID = re.compile(r"(?:R|E)-[A-Z0-9][A-Z0-9-]*\Z")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="a file of the repository, there or not; or a rule or code")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    if (meaning := _meaning(args.path)) and not os.path.lexists(args.path):
        if args.json:
            print_json({"schema": 1, "id": args.path, "meaning": meaning})
        else:
            print(f"{args.path}: {meaning}")
        return DONE
    start = Path(args.repo[0]) if args.repo else None
    place = find_place(start)
    shown = explain_path(repository_path(args.path, start, place), policy_of(place))
    if args.json:
        print_json({"schema": 1, **shown})
        return DONE
    by = " ".join(str(shown[key]) for key in ("order_id", "rule", "pattern") if shown[key])
    by = "no live order narrows what may be written" if by == OPEN else by
    print(f"{escape(str(shown['path']))}: {shown['verdict']}")
    for name, value in (("by", by), ("owner", shown["owner"]), ("ask", shown["ask"])):
        if value:
            print(f"  {name}: {escape(str(value))}")
    return DONE


def _meaning(name: str) -> str | None:
    """What a rule, or a fault code, says; a name that looks like one and is none is told so."""
    loop = LOOP_RULES.get(name)
    known = RULES.get(name) or CODES.get(name) or (f"{loop.statement} ({loop.family})" if loop else None)
    if known is None and _ID.match(name):
        return "there is no rule and no code of this name"
    return known


def repository_path(path: str, start: Path | None, place: Place) -> str:
    """The path below the top of the worktree it lies in, links of its folder resolved; one that begins with `../` lies outside.

    A relative path is meant from `start`, the working directory where that is None.
    """
    whole = os.path.join(os.path.realpath(start or os.getcwd()), path)
    folder, name = os.path.split(whole.rstrip("/") or "/")
    is_folder = name in ("", ".", "..")
    real = os.path.realpath(whole) if is_folder else os.path.join(os.path.realpath(folder), name)
    top = _worktree_top(os.path.dirname(real), place)
    return os.path.relpath(real, top)


def _worktree_top(folder: str, place: Place) -> str:
    """The top of the worktree of this repository that holds the folder; the main one's where none does."""
    while folder != os.path.dirname(folder):
        if folder == os.fspath(place.root):
            return folder
        if os.path.lexists(os.path.join(folder, ".git")) and find_place(Path(folder)) == place:
            return folder
        folder = os.path.dirname(folder)
    return os.fspath(place.root)
