"""`shapeupd uninstall`: undoes exactly what install did. Source: cli §2, design §6, targets 24."""

from __future__ import annotations

import argparse
import os

from daemon.exits import DONE, NOTHING_THERE, WANTING, Exit
from daemon.install.service_unit import still_enabled, units_in
from daemon.install.site import find_folder, is_tracked, repository_of, strips
from daemon.offline import place_of
from daemon.terminal import complain, print_json
from hooks.install.hooks_folder import HooksFolder
from hooks.install.repository import Unreadable, read_record, uninstall
from parsers.faults import fault_row, render_fault
from parsers.layout import path_of

HELP = """Puts every hook and file back as it was before `shapeupd install`, byte for byte. What somebody changed since keeps
their changes; only our part goes. Ends with 1 where our part cannot be told apart: it is named, and left."""
EXAMPLE = "shapeupd uninstall --dry-run"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would change, change nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    place = place_of(args)
    if place.git_dir is None:
        raise Exit(NOTHING_THERE, f"{place.root} is no git repository, so nothing is installed")
    folder = find_folder(place)
    repository = repository_of(place, folder if isinstance(folder, HooksFolder) else None)
    settings = os.fspath(place.root / path_of("settings"))
    theirs = frozenset({settings} if is_tracked(os.fspath(place.root), settings) else ())
    try:
        enabled = still_enabled(units_in(read_record(repository)), "uninstall")
        if enabled is not None:
            raise Exit(WANTING, render_fault(enabled))
        outcome = uninstall(repository, strips=strips(), theirs=theirs, dry_run=args.dry_run)
    except Unreadable as damage:
        raise Exit(WANTING, render_fault(damage.fault)) from None
    except OSError as error:
        where = error.filename2 or error.filename or repository.common
        raise Exit(WANTING, f"{where}: {error.strerror}; what was begun is recorded, run it again") from None
    changed = [os.path.relpath(path, place.root) for path in outcome.changed]
    if args.json:
        left = [fault_row(fault) for fault in outcome.faults]
        print_json({"schema": 1, "changed": changed, "dry_run": args.dry_run, "left": left})
    else:
        for path in changed:
            print(f"{'would restore' if args.dry_run else 'restored'} {path}")
        if not changed and not outcome.faults:
            print("nothing is installed here")
    for fault in outcome.faults:
        complain(render_fault(fault))
    return WANTING if outcome.faults else DONE
