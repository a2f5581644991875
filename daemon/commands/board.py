"""`shapeupd board`: the task board of a feature, derived from its task files. Source: cli §2, protocol §5.1, rulings J."""

from __future__ import annotations

import argparse

from daemon.board_table import board_of, show_board
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, Exit
from daemon.offline import place_of
from daemon.rebuilding import slugs_of
from daemon.terminal import print_json
from parsers.layout import folder_of

HELP = """Shows the tasks of a feature with status, criteria and dependencies, as the task files say.
Without SLUG: every feature that has tasks."""
EXAMPLE = "shapeupd board checkout"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", nargs="?", metavar="SLUG", help="the feature (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    tree = DiskTree(place_of(args).root)
    slugs = [args.slug] if args.slug else list(slugs_of(tree.root))
    boards = [board for slug in slugs if (board := board_of(tree, slug))["tasks"]]
    if not boards:
        if args.json:
            print_json({"schema": 1, "boards": []})
        where = folder_of("board-index", args.slug or "<slug>")
        raise Exit(NOTHING_THERE, f"no task files; a planner writes them as {where}/TASK-….md")
    if args.json:
        print_json(boards[0] if len(boards) == 1 else {"schema": 1, "boards": boards})
    else:
        for board in boards:
            show_board(board)
    return DONE
