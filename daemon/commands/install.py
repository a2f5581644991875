"""`shapeupd install`: git hooks, ignore rule and settings file; joins what is there. Source: cli §2, design §6, targets 24."""

from __future__ import annotations

import argparse
import os
import sys

from daemon.configuration import load_settings
from daemon.exits import DONE, NOTHING_THERE, WANTING, Exit
from daemon.install.service_unit import (
    SYSTEM_UNIT,
    Unit,
    quoted,
    start_command,
    still_enabled,
    system_unit_of,
    unit_name,
    unit_of,
    units_in,
)
from daemon.install.site import find_folder, planner, repository_of, site_of, strips, this_stub
from daemon.install.worktree_hooks import worktree_gaps
from daemon.offline import place_of
from daemon.place import Place
from daemon.terminal import complain, print_json, print_table
from hooks.install.hooks_folder import HooksFolder
from hooks.install.joining import Site
from hooks.install.record import Record
from hooks.install.repository import Outcome, Unreadable, install, read_record
from parsers.faults import Fault, fault_row, render_fault
from parsers.layout import path_of

HELP = """Installs the git hooks, an ignore rule for .shapeup/ and a settings file. A hook that is there already runs after
ours; lefthook and husky are asked to call us. What was changed is recorded, and `shapeupd uninstall` undoes exactly
that. With --service systemd also a unit of your own systemd, which then runs shapeupd for this repository; nothing is
started or enabled. Ends with 1 where something could not be installed."""
EXAMPLE = "shapeupd install --dry-run"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--strict",
        action="store_true",
        help="also reference-transaction: every ref update is judged; stays until uninstall",
    )
    parser.add_argument(
        "--service",
        choices=("systemd", "none"),
        help="systemd: also a user unit for this repository; stays until uninstall or none",
    )
    parser.add_argument(
        "--print-system-unit",
        action="store_true",
        help="only print a unit for the system's own manager, to be put in place by root",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would change, change nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    place = place_of(args)
    if args.print_system_unit:
        return _print_system_unit(os.fspath(place.root))
    if place.git_dir is None:
        raise Exit(NOTHING_THERE, f"{place.root} is no git repository, so there are no hooks; `git init` makes it one")
    settings, _ = load_settings(place)
    folder, stub = find_folder(place), this_stub()
    for problem in (folder, stub):
        if isinstance(problem, Fault):
            raise Exit(WANTING, render_fault(problem))
    assert isinstance(folder, HooksFolder)
    assert not isinstance(stub, Fault)
    repository = repository_of(place, folder)
    try:
        earlier = read_record(repository)
        strict = args.strict or settings.gate_strict or (earlier is not None and earlier.strict)
        site = site_of(place, folder, stub, strict=strict)
        unit = _unit(args.service, site, earlier)
        outcome = install(repository, planner(site, unit), strict=strict, strips=strips(), dry_run=args.dry_run)
    except Unreadable as damage:
        raise Exit(WANTING, render_fault(damage.fault)) from None
    except OSError as error:
        where = error.filename2 or error.filename or repository.common
        raise Exit(WANTING, f"{where}: {error.strerror}; what was begun is recorded, run it again") from None
    notes = worktree_gaps(site, planned=args.dry_run)
    _show(args, place, site, outcome, notes)
    if unit is not None and unit.path in outcome.changed and not (args.dry_run or args.json):
        print(f"next: {start_command(unit)}")
    return WANTING if outcome.faults else DONE


def _unit(service: str | None, site: Site, earlier: Record | None) -> Unit | None:
    """The unit that shall stand; None: none. What an earlier install put in stays. Raises Exit."""
    old = units_in(earlier)
    is_wanted = service == "systemd" or (service is None and bool(old))
    unit = unit_of(site.root, site.stub.python, earlier) if is_wanted else None
    if isinstance(unit, Fault):
        raise Exit(WANTING, render_fault(unit))
    enabled = still_enabled((path for path in old if unit is None or path != unit.path), "install")
    if enabled is not None:
        raise Exit(WANTING, render_fault(enabled))
    return unit


def _print_system_unit(root: str) -> int:
    """The unit on stdout, and where it goes on stderr: shapeupd itself never becomes root."""
    unit = system_unit_of(root, os.path.abspath(sys.executable))
    if isinstance(unit, Fault):
        raise Exit(WANTING, render_fault(unit))
    print(unit.decode(), end="")
    start = f"sudo systemctl enable --now {quoted(unit_name(root, SYSTEM_UNIT))}"
    complain(f"next: put it into /etc/systemd/system/{SYSTEM_UNIT} as root, then `{start}`")
    return DONE


def _show(args: argparse.Namespace, place: Place, site: Site, outcome: Outcome, notes: tuple[Fault, ...]) -> None:
    changed = [os.path.relpath(path, place.root) for path in outcome.changed]
    if args.json:
        print_json(
            {
                "schema": 1,
                "hooks_folder": site.folder.path,
                "owner": site.folder.owner,
                "hooks": [joined._asdict() for joined in outcome.plan.joined],
                "changed": changed,
                "dry_run": args.dry_run,
                "refused": [fault_row(fault) for fault in outcome.faults],
                "notes": [fault_row(note) for note in notes],
            }
        )
    else:
        print_table(("hook", "who runs"), outcome.plan.joined)
        for path in changed:
            print(f"{'would change' if args.dry_run else 'changed'} {path}")
        if not changed:
            print("nothing to change")
        if path_of("settings") in changed and not args.dry_run:
            print(
                f"next: git add {path_of('settings')} && git commit -m 'shapeupd settings', before the first order lands"
            )
    for fault in outcome.faults:
        complain(render_fault(fault))
    for note in notes:
        complain(f"note: {render_fault(note)}")
    if site.folder.owner != "git" and outcome.changed and not args.dry_run:
        where = os.path.relpath(site.folder.scripts, place.root)
        complain(f"note: {where} is committed with the repository; commit the lines there so that they stay")
