"""`shapeupd layout`: the one table of artifact kinds. Source: cli §2, design §2."""

from __future__ import annotations

import argparse

from daemon.exits import DONE
from daemon.terminal import print_json, print_table
from parsers.layout import KINDS

HELP = "Every kind of file in the two trees: where it lives, its tier and format, who writes it, who reads it."
EXAMPLE = "shapeupd layout --json"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    if args.json:
        print_json({"schema": 1, "kinds": [{**kind._asdict(), "readers": list(kind.readers)} for kind in KINDS]})
    else:
        headers = ("kind", "path", "tier", "format", "writer", "readers")
        print_table(headers, [(*kind[:-1], ", ".join(kind.readers)) for kind in KINDS])
    return DONE
