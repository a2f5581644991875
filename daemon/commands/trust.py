"""`shapeupd trust`: which contracts this machine may run by itself after a build result. Source: cli §2, rulings A2, A4."""

from __future__ import annotations

import argparse
from pathlib import Path

from daemon import clock
from daemon.exits import DONE, NOTHING_THERE, USAGE, WANTING, Exit
from daemon.journal import FsyncFailed
from daemon.place import Place, find_place
from daemon.t0.contract import FoundContract, NoContract, find_contract
from daemon.terminal import escape, print_json, print_table
from daemon.trees.site import find_site
from daemon.trust import NotOurs, Trusted, distrust, read_trusted, trust

HELP = """Lets this machine run the fixtures of contracts by itself after a build result (with t0.auto on), by the hash of their bytes.
It covers the contract, not what its commands run: they run the code of whatever branch is checked out.
A contract that changes by one byte has to be trusted again."""
EXAMPLE = "shapeupd trust shapeup/checkout/scopes/cart-core.md"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "contracts", nargs="*", metavar="CONTRACT", help="a contract's path or its scope id; to remove: also a hash"
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--list", action="store_true", help="show what is trusted")
    mode.add_argument("--remove", action="store_true", help="trust these no longer, in whatever version")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    if args.list == bool(args.contracts):
        raise Exit(USAGE, f"name contracts, or --list alone\n  fix: {EXAMPLE}")
    here = Path(args.repo[0]) if args.repo else Path.cwd()
    place = find_place(here)
    try:
        if args.list:
            return _show(read_trusted(place.root), args.json)
        return (_remove if args.remove else _add)(place, here, args)
    except NoContract as error:
        raise Exit(USAGE, str(error)) from None
    except NotOurs as error:
        raise Exit(WANTING, f"nothing is trusted: {error}") from None
    except (FsyncFailed, OSError) as error:
        raise Exit(WANTING, f"the list could not be written: {error}") from None


def _add(place: Place, here: Path, args: argparse.Namespace) -> int:
    found = [_find(place, here, word) for word in args.contracts]  # all of them read, or none is trusted
    rows = trust(place.root, {one.contract.path: one.data for one in found}, clock.now())
    if args.json:
        print_json({"schema": 1, "trusted": [row._asdict() for row in rows]})
        return DONE
    for one in found:
        print(escape(f"{one.contract.path}: trusted as it is now; this machine may run by itself:"))
        for command in one.contract.commands:
            print(escape(f"  {command}"))
    return DONE


def _find(place: Place, here: Path, word: str) -> FoundContract:
    site = find_site(here)
    return find_contract(site.top if site else place.root, word, here)


def _remove(place: Place, here: Path, args: argparse.Namespace) -> int:
    words = []
    for word in args.contracts:
        try:
            words.append(_find(place, here, word).contract.path)
        except NoContract:
            words.append(word)  # the contract is gone or does not read any more: its path or hash names it
    gone = distrust(place.root, words)
    if args.json:
        print_json({"schema": 1, "removed": [row._asdict() for row in gone]})
    for row in () if args.json else gone:
        print(escape(f"{row.path} ({row.sha256[:12]}): trusted no longer"))
    if not gone:
        raise Exit(NOTHING_THERE, "none of these was trusted; `shapeupd trust --list` shows what is")
    return DONE


def _show(rows: tuple[Trusted, ...], as_json: bool) -> int:
    if as_json:
        print_json({"schema": 1, "trusted": [row._asdict() for row in rows]})
    else:
        print_table(
            ("at", "repository", "contract", "sha256"), [(row.at, row.root, row.path, row.sha256[:12]) for row in rows]
        )
    return DONE
