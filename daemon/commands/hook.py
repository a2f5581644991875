"""`shapeupd hook NAME`: what git calls; `pre-receive` in a bare repository is the wall of a server. Source: cli §2, targets 21."""

from __future__ import annotations

import argparse
import os

HELP = """Runs one git hook, as git calls it: its arguments behind the name, its lines on stdin. People never call it.
A server needs one line in the bare repository's hooks/pre-receive:
  exec shapeupd hook pre-receive"""
EXAMPLE = "shapeupd hook pre-receive </dev/null"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the hook's name, as git spells it")
    parser.add_argument("words", nargs="*", metavar="ARG", help="what git hands to the hook")


def run(args: argparse.Namespace) -> int:
    if args.repo:
        os.chdir(args.repo[0])
    from hooks.__main__ import main

    return main([args.name, "--", *args.words])
