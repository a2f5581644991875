"""`shapeupd gate`: answer a gate from an answer set, look at a set, hold it against a lane, or write one. Source: protocol §8, cli §2.

Asks no daemon: what is recorded is written under the run's own lock, whether one lives or not.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path

from daemon import clock
from daemon.disk import DiskTree
from daemon.exits import DONE, GATE_ABORTS, MUST_DECIDE, USAGE, WANTING, Exit
from daemon.gate_answers import bar_committed, find_answers
from daemon.gate_record import Locked, record_gate
from daemon.journal import FsyncFailed
from daemon.place import Place, find_place
from daemon.terminal import escape, print_json, print_table
from daemon.writes import replace_file, sync_file
from parsers.addresses import SLUG
from parsers.answers import GATES, PRESETS, Gate, answers_document, render_answers, run_max_rounds
from parsers.faults import render_fault
from parsers.layout import NOT_A_SLUG, path_of
from parsers.ledgers import parse_rows
from parsers.receipts import parse_receipt
from parsers.strict_json import parse_strict
from parsers.times import render_time
from parsers.tree import Unreadable
from reducers.gates import (
    AUTO_LEVELS,
    Resolution,
    choose,
    crossing_of,
    gates_row,
    has_paused,
    render_block,
    resolution_document,
    resolve,
    verification_document,
    verify,
)

HELP = """Answers a gate from answers that were given ahead of time, records what came of it, and says so.
Ends with 0 when the gate is crossed, 4 when a person must decide, 5 when the answer is to abort, 2 when no set can be read."""
EXAMPLE = "shapeupd gate resolve L1b --slug checkout --preset guarded --json"

_STATUS = {"ok": DONE, "ask": MUST_DECIDE, "abort": GATE_ABORTS}
_EXAMPLES = {
    "resolve": EXAMPLE,
    "list": "shapeupd gate list --preset ci",
    "verify": "shapeupd gate verify --preset ci --auto-level unattended",
    "init": "shapeupd gate init --preset guarded --by ada",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    modes = parser.add_subparsers(dest="mode", required=True, metavar="resolve|list|verify|init")
    one = _mode(modes, "resolve", "answer one gate and record what came of it")
    one.add_argument("gate", metavar="GATE", help=", ".join(GATES))
    one.add_argument("--round", type=_round, metavar="N", help="the round the gate stands in; recorded")
    _mode(modes, "list", "print the set that would speak")
    lane = _mode(modes, "verify", "whether the set answers every gate of a lane")
    lane.add_argument("--auto-level", choices=AUTO_LEVELS, default="unattended", help="who is there to be asked")
    lane.add_argument("--tiny", action="store_true", help="the lane that passes L0 and L4 alone")
    lane.add_argument("--no-qa", action="store_true", help="the lane leaves the hunt out")
    start = _mode(modes, "init", "write a preset as a file to start from", reads_sets=False)
    start.add_argument("--preset", choices=tuple(PRESETS), default="ci", help="the preset (default: ci)")
    start.add_argument("--out", metavar="FILE", help=f"where to (default: {path_of('checkout-answers')})")
    start.add_argument("--by", metavar="WHO", help="who authorizes these answers")
    start.add_argument("--force", action="store_true", help="replace a file that says something else")


def _mode(
    modes: argparse._SubParsersAction[argparse.ArgumentParser], name: str, help_: str, *, reads_sets: bool = True
) -> argparse.ArgumentParser:
    mode = modes.add_parser(
        name,
        help=help_,
        description=f"{help_[0].upper()}{help_[1:]}.",
        epilog=f"example:\n  {_EXAMPLES[name]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    mode.add_argument("--repo", action="append", default=argparse.SUPPRESS, metavar="DIR", help=argparse.SUPPRESS)
    mode.add_argument("--json", action="store_true", help="print one JSON document")
    if reads_sets:
        mode.add_argument("--file", metavar="FILE", help="the answer set to take")
        mode.add_argument("--preset", choices=tuple(PRESETS), help="a set that needs no file")
        mode.add_argument(
            "--slug", type=_slug, metavar="SLUG", help="the feature: its own set counts, and rows are written"
        )
    return mode


def _round(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


def _slug(text: str) -> str:
    if not SLUG.match(text) or text in NOT_A_SLUG:
        raise argparse.ArgumentTypeError(f"{text!r} is no feature's slug (a-z, 0-9 and -)")
    return text


def run(args: argparse.Namespace) -> int:
    acts = {"resolve": _resolve, "list": _list, "verify": _verify, "init": _init}
    try:
        return acts[args.mode](find_place(Path(args.repo[0]) if args.repo else None), args)
    except Unreadable as stop:
        raise Exit(USAGE, render_fault(stop.fault)) from None


def _resolve(place: Place, args: argparse.Namespace) -> int:
    gate = GATES.get(args.gate)
    if gate is None:
        raise Exit(USAGE, f'there is no gate "{args.gate}"; the gates are {", ".join(GATES)}')
    slug, tree = args.slug, DiskTree(place.root)
    run_id = max_rounds = None
    is_paused = False
    if slug is not None:
        path = path_of("receipt", slug)
        receipt = tree.read(path)
        if receipt is not None:
            run_id, max_rounds = parse_receipt(receipt, path).run_id, run_max_rounds(parse_strict(receipt, path).value)
        rows = parse_rows(tree.read(path_of("gates", slug)) or b"")
        is_paused = has_paused(rows, gate.id, args.round, run_id)
    takes = partial(choose, gate_id=gate.id, is_paused=is_paused)
    candidate, answers = find_answers(place, args.file, args.preset, slug, takes)
    found = resolve(gate, candidate, answers, max_rounds)
    if slug is not None:
        _record(place, slug, found, args.round, run_id)
    if args.json:
        print_json({"schema": 1, **resolution_document(found)})
    else:
        _show(found, slug)
    return _STATUS[found.status]


def _record(place: Place, slug: str, found: Resolution, round_: int | None, run_id: str | None) -> None:
    """On disk before it is told. Raises Exit, and then the gate is not answered."""
    row = gates_row(found, round_, render_time(clock.now()), run_id)
    try:
        record_gate(place.root, slug, row, crossing_of(found, round_), clock.now)
    except (Locked, FsyncFailed) as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or str(error)
    else:
        return
    fix = "run the same command again once that is mended; no row is written twice"
    raise Exit(WANTING, f"not recorded, so GATE {found.gate.id} is not answered: {reason}\n  fix: {fix}")


def _show(found: Resolution, slug: str | None) -> None:
    gate = found.gate
    if found.status == "ask":
        where = path_of("gate-answers", slug) if slug else path_of("checkout-answers")
        told = {key: value for key, value in resolution_document(found).items() if key in ("source", "note", "reason")}
        block = render_block(gate, {**told, "valid_decisions": _answers_of(gate), "answer_in": where})
        print("\n".join(map(escape, block.split("\n"))))
        return
    print(escape(f"GATE {gate.id} — {gate.title}: {found.decision or found.status} ({found.source})"))
    for name, value in (("note", found.note), ("max_rounds", found.max_rounds), ("reason", found.reason)):
        if value is not None:
            print(escape(f"  {name}: {value}"))


def _answers_of(gate: Gate) -> list[str]:
    return [decision for decision in gate.decisions if decision != "ask"]


def _list(place: Place, args: argparse.Namespace) -> int:
    candidate, answers = find_answers(place, args.file, args.preset, args.slug, choose)
    if args.json:
        print_json({"schema": 1, "source": candidate.source, **answers_document(answers), "ok": True})
        return DONE
    by = f", authorized by {answers.authorized_by}" if answers.authorized_by else ""
    print(escape(f"{candidate.source}: preset {answers.preset}, a missing answer means {answers.on_missing}{by}"))
    rows = []
    for gate in GATES.values():
        answer = answers.answers.get(gate.id)
        rows.append((gate.id, gate.title, answer.decision if answer else "-", (answer.note or "") if answer else ""))
    print_table(("gate", "title", "decision", "note"), rows)
    return DONE


def _verify(place: Place, args: argparse.Namespace) -> int:
    candidate, answers = find_answers(place, args.file, args.preset, args.slug, choose)
    found = verify(answers, args.auto_level, is_tiny=args.tiny, has_qa=not args.no_qa)
    document = verification_document(candidate.source, answers, found)
    if args.json:
        print_json({"schema": 1, **document})
    elif found.reason:
        print(escape(f"{candidate.source}: {found.reason}"))
    else:
        asks = f"; asks at {', '.join(found.will_ask)}" if found.will_ask else ""
        print(escape(f"{candidate.source} answers {', '.join(found.required)}{asks}"))
    return USAGE if found.reason else DONE


def _init(place: Place, args: argparse.Namespace) -> int:
    """Write a preset; a file that says something else is a person's work and stays."""
    answers = PRESETS[args.preset]
    if args.by is not None:
        answers = answers._replace(authorized_by=args.by)
    content = render_answers(answers)
    folder, name = place.root, path_of("checkout-answers")
    if args.out is not None:
        out = Path(os.path.abspath(args.out))
        folder, name = Path(os.path.realpath(out.parent)), out.name
        if folder.is_relative_to(place.root):
            folder, name = place.root, os.path.relpath(folder / name, place.root)
        elif not folder.is_dir():
            raise Exit(USAGE, f"--out: {folder} is no folder")
    bar_committed(place, folder / name)
    there = DiskTree(folder).read(name)
    if there is not None and there != content and not args.force:
        raise Exit(
            USAGE,
            f"{folder / name} is there and says something else\n  fix: --force replaces it, --out writes elsewhere",
        )
    try:
        replace_file(folder, name, content, is_synced=True)
        sync_file(folder, name)
    except (OSError, FsyncFailed) as error:
        raise Exit(WANTING, f"{folder / name} cannot be written: {error}") from None
    if args.json:
        print_json({"schema": 1, "path": os.fspath(folder / name), "preset": answers.preset, "ok": True})
    else:
        print(escape(f"wrote {folder / name}: preset {answers.preset}; look at it with `shapeupd gate list`"))
    return DONE
