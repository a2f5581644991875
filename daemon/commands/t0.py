"""`shapeupd t0`: measure a scope's attempt, keep or restore its tree; `t0 undo` brings back what a restore replaced. Source: protocol §6, cli §2, rulings A4, G7, G9.

Runs the fixtures of the contract, and so the code of this branch: that is what a person who calls it asks for.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from daemon import clock
from daemon.configuration import load_settings
from daemon.disk import DiskTree
from daemon.exits import DONE, USAGE, WANTING, Exit
from daemon.journal import FsyncFailed
from daemon.log import MEGABYTE, Log
from daemon.place import Place, find_place
from daemon.t0.attempt import NO_GIT, Attempt, Scored, run_attempt
from daemon.t0.contract import FoundContract, NoContract, find_contract
from daemon.t0.fixtures import SEESAW, Step
from daemon.t0.neighbours import read_neighbours
from daemon.t0.processes import Measured
from daemon.t0.recovery import hold_scope
from daemon.t0.trusted import NotTrusted, trusted_registry
from daemon.terminal import complain, escape, print_json
from daemon.trees.finishing import Restored
from daemon.trees.kept import undo
from daemon.trees.site import Site, TreeFailed, find_site
from parsers.faults import render_fault
from parsers.scope_contract import contract_warnings
from parsers.settings import Settings
from parsers.tree import Tree, Unreadable
from parsers.trials import score_row

HELP = """Runs the fixtures of a scope, scores the attempt against the last one that was kept, keeps its tree or puts the kept one back,
and writes the evidence. This runs the code of the branch that is checked out. Prints one JSON document; ends with 0 when the attempt is
green, 1 when it is red, 2 when the contract cannot be read (then nothing was run).
`t0 undo SCOPE TRIAL` brings back what the restore of that trial replaced."""
EXAMPLE = "shapeupd t0 cart-core --round 1 --attempt 2"

_SHOWN = 20  # paths that are told one by one
_COMMAND_WIDTH = 60


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words", nargs="+", metavar="SCOPE", help="a scope id or its contract's path; or: undo SCOPE TRIAL"
    )
    parser.add_argument("--round", type=_count, metavar="N", help="the round the attempt belongs to")
    parser.add_argument("--attempt", type=_count, metavar="M", help="the attempt within the round")
    parser.add_argument("--no-seesaw", action="store_true", help="leave the finished scopes out")
    parser.add_argument(
        "--seesaw-registry", metavar="FILE", help="the finished scopes (default: the run's own registry)"
    )
    parser.add_argument("--no-ratchet", action="store_true", help="write the verdict alone: no trial, no tree")
    parser.add_argument("--trusted", action="store_true", help=argparse.SUPPRESS)  # how the daemon calls it
    parser.add_argument("--json", action="store_true", help="accepted: the answer is one JSON document anyway")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


def run(args: argparse.Namespace) -> int:
    is_undo = len(args.words) == 3 and args.words[0] == "undo"
    if len(args.words) != 1 and not is_undo:
        raise Exit(USAGE, f"one scope, or `undo SCOPE TRIAL`\n  fix: {EXAMPLE}")
    here = Path(args.repo[0]) if args.repo else Path.cwd()
    place = find_place(here)
    try:
        site = find_site(here)
        top = site.top if site else place.root
        with _stopped_in_order():
            found = find_contract(top, args.words[1 if is_undo else 0], here)
            return _undo(place, site, found, args.words[2]) if is_undo else _measure(place, top, found, args)
    except NoContract as error:
        raise Exit(USAGE, str(error)) from None
    except Unreadable as stop:
        raise Exit(USAGE, render_fault(stop.fault)) from None
    except (FsyncFailed, OSError) as error:
        raise Exit(WANTING, f"the evidence could not be written: {error}\n  fix: mend that, and run it again") from None


@contextmanager
def _stopped_in_order() -> Iterator[None]:
    """A command that is told to end takes its fixtures with it, as it does when it is interrupted."""

    def stop(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _measure(place: Place, top: Path, found: FoundContract, args: argparse.Namespace) -> int:
    if args.round is None or args.attempt is None:
        raise Exit(USAGE, f"--round and --attempt say which attempt this is\n  fix: {EXAMPLE}")
    settings, faults = load_settings(place)
    for fault in (*faults, *contract_warnings(found.contract)):
        complain(render_fault(fault))
    registry: tuple[Tree, str] | None = None
    if args.trusted:
        registry = _trusted(place, top, found)
    elif args.seesaw_registry is not None:
        path = Path(os.path.abspath(args.seesaw_registry))
        registry = (DiskTree(path.parent), path.name)
    attempt = Attempt(
        place.root,
        top,
        found,
        args.round,
        args.attempt,
        settings.t0_timeout_s,
        clock.now,
        with_seesaw=not args.no_seesaw,
        with_ratchet=not args.no_ratchet,
        registry=registry,
        progress=_Progress() if sys.stderr.isatty() else lambda step, measured: None,
        say=complain,
    )
    scored = run_attempt(attempt)
    if not args.trusted:  # the daemon that called tells it itself
        _log(place, settings, found.slug, scored)
    print_json(document_of(scored))
    for line in _sentences(found, scored):
        complain(line)
    return DONE if scored.verdict.is_green else WANTING


def _trusted(place: Place, top: Path, found: FoundContract) -> tuple[Tree, str]:
    try:
        return trusted_registry(place.root, top, found)
    except NotTrusted as stop:
        raise Exit(USAGE, f"not measured: {stop}") from None


class _Progress:
    """One line for each command on the terminal: what runs, then how it ended and how long it took."""

    def __call__(self, step: Step, measured: Measured | None) -> None:
        if measured is None:
            whose = f" of {step.scope_id}" if step.kind == SEESAW else ""
            cmd = step.cmd if len(step.cmd) <= _COMMAND_WIDTH else step.cmd[: _COMMAND_WIDTH - 1] + "…"
            sys.stderr.write(escape(f"{step.kind} {step.number}/{step.of}{whose}: {cmd}") + " … ")
        else:
            how = "passed" if measured.passed else measured.error or f"exit {measured.exit}"
            sys.stderr.write(escape(f"{how}, {measured.seconds:.1f} s") + "\n")
        sys.stderr.flush()


def document_of(scored: Scored) -> dict[str, object]:
    """What `t0` prints. `trial` is the T of the artifact's name, `number` that of the row, which `t0 undo` takes. Source: §6.4, G9.

    `tree_ref` null: the tree is neither kept nor restored; `notes` say why. `status` null: no row was written.
    """
    verdict, trial, restored = scored.verdict, scored.trial, scored.restored
    return {
        "schema": 1,
        "path": scored.path,
        "sha256": scored.sha256,
        "trial": verdict.trial,
        "overall": verdict.overall,
        "regression": verdict.regression,
        "score": score_row(verdict.score) if verdict.score else None,
        "status": trial.status if trial else None,
        "baseline_trial": trial.baseline_trial if trial else None,
        "delta": trial.delta if trial else None,
        "tree_ref": scored.tree_ref,
        "undo_ref": restored.undo_ref if restored else None,
        "number": trial.trial if trial else None,
        "reason": verdict.reason,
        "changed_graders": list(scored.changed_graders),
        **(_restored_rows(restored) if restored else {}),
        "notes": list(scored.notes),
    }


def _restored_rows(restored: Restored) -> dict[str, object]:
    return {
        "written": list(restored.written),
        "deleted": list(restored.deleted),
        "left": [{"path": path, "why": why} for path, why in restored.left],
        "failed": [{"path": path, "why": why} for path, why in restored.failed],
        "edited_ref": restored.edited_ref,
    }


def _sentences(found: FoundContract, scored: Scored) -> Iterator[str]:
    """What a person has to know beside the document."""
    verdict, trial, scope_id = scored.verdict, scored.trial, found.contract.scope_id
    status = f", {trial.status} ({trial.delta})" if trial else ""
    yield f"{scope_id}: {verdict.overall}{status}; evidence {scored.path}"
    if scored.seesaw.error:
        yield f"the finished scopes were not checked, so this is red: {scored.seesaw.error}"
    for path in scored.changed_graders[:_SHOWN]:
        yield f"{path}: changed since the order was admitted, and the order does not grant it; the verdict is void\n  fix: bring it back"
    yield from scored.notes
    if scored.restored and trial:
        yield from _told(scored.restored)
        yield f"undo the restore: shapeupd t0 undo {scope_id} {trial.trial}"


def _told(restored: Restored) -> Iterator[str]:
    yield f"{len(restored.written)} files brought back, {len(restored.deleted)} deleted"
    for word, rows in (("left as it is", restored.left), ("NOT restored", restored.failed)):
        for path, why in rows[:_SHOWN]:
            yield f"{path}: {word}: {why}"
        if len(rows) > _SHOWN:
            yield f"… and {len(rows) - _SHOWN} more"


def _undo(place: Place, site: Site | None, found: FoundContract, word: str) -> int:
    slug, scope_id = found.slug, found.contract.scope_id
    if not (word.isascii() and word.isdigit() and len(word) <= 9 and int(word) >= 1):
        raise Exit(USAGE, f"{word!r} is no trial\n  fix: take `number` of what t0 printed")
    if site is None:
        raise Exit(WANTING, NO_GIT)
    neighbours = read_neighbours(place.root)
    try:
        with hold_scope(place.root, slug, scope_id, lambda: complain(f"a t0 of {scope_id} runs; waiting for it")):
            restored = undo(
                site,
                slug,
                scope_id,
                int(word),
                clock.now(),
                is_others=lambda path: neighbours.may_write(slug, scope_id, path),
            )
    except TreeFailed as error:
        raise Exit(WANTING, f"nothing is undone: {error}") from None
    for line in _told(restored):
        complain(line)
    print_json(
        {"schema": 1, "scope_id": scope_id, "number": int(word), "undo_ref": restored.undo_ref}
        | _restored_rows(restored)
    )
    return DONE if restored.is_whole else WANTING


def _log(place: Place, settings: Settings, slug: str, scored: Scored) -> None:
    """The events of cli §3."""
    verdict, trial = scored.verdict, scored.trial
    log = Log(place.local, clock.now, max_bytes=int(settings.log_max_mb * MEGABYTE), keep=settings.log_keep)
    names: dict[str, Any] = {"slug": slug, "subject": verdict.scope_id, "run_id": verdict.run_id}
    status: dict[str, Any] = {"status": trial.status, "trial": trial.trial, "delta": trial.delta} if trial else {}
    log.write("t0.scored", **names, overall=verdict.overall, artifact=scored.path, **status)
    if scored.restored:
        log.write("tree.restored", **names, ref=scored.tree_ref, undo_ref=scored.restored.undo_ref)
    elif scored.tree_ref:
        log.write("tree.kept", **names, ref=scored.tree_ref)
    log.close()
