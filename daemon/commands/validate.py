"""`shapeupd validate FILE…`: judges envelopes as the protocol's validator does. Source: cli §2, protocol §2.15, ruling C1."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from daemon.exits import DONE, USAGE, WANTING, Exit
from daemon.place import Place, find_place
from daemon.terminal import complain, escape, print_json
from parsers.faults import Fault, render_fault
from parsers.layout import classify, folder_of, stem_at

if TYPE_CHECKING:
    from daemon.run_state import RunState
    from parsers.facts import ResultFact
    from reducers.run import Attestation, Run

HELP = """Judges order and result files. Which one a file is follows from its folder, or from --as.
Prints the protocol's error texts. What an ingest would refuse beyond the protocol's shape, or let wait, is
a note on stderr and does not change the status: 0 all valid, 1 one is not, 2 one cannot be read."""
EXAMPLE = "shapeupd validate .shapeup/*/orders/*.json .shapeup/*/results/*.json"

Kind = Literal["order", "result"]
_BY_FOLDER: dict[str, Kind] = {"orders": "order", "results": "result"}


class Verdict(NamedTuple):
    """What one file was found to be. `errors` is empty for a valid one; `notes` never make it invalid."""

    file: str
    kind: Kind
    errors: tuple[str, ...]
    notes: tuple[Fault, ...]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--as", dest="kind", choices=("order", "result"), help="judge every file as this kind")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    runs = Runs()
    verdicts: list[Verdict] = []
    unreadable: dict[str, str] = {}
    for file in args.files:
        try:
            data = Path(file).read_bytes()
        except OSError as error:
            unreadable[file] = _unreadable(error)
            continue
        place = find_place(Path(args.repo[0]) if args.repo else Path(file).parent)
        kind = args.kind or kind_of(file, place)
        if kind is None:
            unreadable[file] = "neither an order nor a result by its path; say --as order or --as result"
            continue
        verdicts.append(judge(file, kind, data, place, runs))
    _show(verdicts, unreadable, as_json=args.json)
    if unreadable:
        return USAGE
    return WANTING if any(verdict.errors for verdict in verdicts) else DONE


def kind_of(file: str, place: Place) -> Kind | None:
    """The kind of a file by its place in the tree, else by the folder it lies in; None when neither says."""
    known = classify(_inside(file, place))
    if known is not None and known.kind in ("order", "result"):
        return "order" if known.kind == "order" else "result"
    return _BY_FOLDER.get(Path(os.path.abspath(file)).parent.name)


def _unreadable(error: OSError) -> str:
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return "does not exist"
        case IsADirectoryError():
            return "is a folder"
    return error.strerror or str(error)


def judge(file: str, kind: Kind, data: bytes, place: Place, runs: Runs) -> Verdict:
    """The protocol's verdict on the bytes, and what an ingest would refuse or warn about beyond it."""
    from parsers.envelopes import order_errors, result_errors
    from parsers.facts import read_order, read_result
    from parsers.strict_json import parse_lenient

    parsed = parse_lenient(data, file)
    if parsed.fault is not None:
        at = parsed.fault.where.removeprefix(file).removeprefix(":")  # line:column where one is known
        return Verdict(file, kind, (f"{at}: {parsed.fault.what}" if at else parsed.fault.what,), ())
    errors = tuple((order_errors if kind == "order" else result_errors)(parsed.value))
    if errors:
        return Verdict(file, kind, errors, ())
    path = _inside(file, place)
    if kind == "order":
        order = read_order(path, data)
        return Verdict(file, kind, (), (*order.faults, *order.warnings))
    read = read_result(path, data)
    return Verdict(file, kind, (), read.faults or (runs.objections(place, read.fact) if read.fact else ()))


class Runs:
    """The runs that results of one call lie in, read once each and never written."""

    def __init__(self) -> None:
        self._runs: dict[tuple[Path, str], Run] = {}

    def objections(self, place: Place, fact: ResultFact) -> tuple[Fault, ...]:
        """Why an ingest would refuse the result now or let it wait; empty outside a run's results folder."""
        from daemon.clock import now
        from parsers.tree import Unreadable
        from reducers.ingest import reduce_result

        known = classify(fact.path)
        if known is None or known.kind != "result" or not known.slug:
            return ()
        try:
            return reduce_result(self._run(place, known.slug), fact, now()).faults
        except Unreadable as stop:
            return (stop.fault,)
        except OSError as error:
            complain(f"shapeupd: {fact.path}: judged by its shape alone; its run cannot be read: {error.strerror}")
            return ()

    def _run(self, place: Place, slug: str) -> Run:
        from daemon.run_state import RunState

        if (place.root, slug) not in self._runs:
            state = RunState.load(place.root, slug, lambda event, fields: None, recovers=False)
            _read_orders(state)
            self._runs[place.root, slug] = state.run(_attestation(place))
        return self._runs[place.root, slug]


def _read_orders(state: RunState) -> None:
    """Take in the run's orders as admission would: a later one decides what a changed result of an earlier one is."""
    from daemon.scan import is_fact_path
    from parsers.facts import read_order
    from parsers.tree import Unreadable

    folder = folder_of("order", state.slug)
    for path in (f"{folder}/{name}" for name in state.disk.list(folder)):
        try:
            data = state.disk.read(path) if is_fact_path(path) and classify(path) else None
        except Unreadable:
            continue
        read = read_order(path, data) if data is not None else None
        if read and read.fact:
            state.orders[stem_at(path)] = read.fact
        elif read and read.claimed is not None:
            state.claimed[stem_at(path)] = read.claimed


def _attestation(place: Place) -> Attestation:
    """The setting in force; the default where the settings are wrong, which the daemon itself refuses to start with."""
    from daemon.configuration import load_settings

    try:
        return load_settings(place)[0].ingest_attestation
    except Exit as ending:
        complain(f"shapeupd: {ending.message}")
        return "auto"


def _inside(file: str, place: Place) -> str:
    """The path below the repository's root; the whole path for a file outside it."""
    path = os.path.join(os.path.realpath(os.path.dirname(file) or "."), os.path.basename(file))
    return path.removeprefix(os.fspath(place.root) + os.sep)


def _show(verdicts: list[Verdict], unreadable: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        files = [
            {
                "file": verdict.file,
                "kind": verdict.kind,
                "valid": not verdict.errors,
                "errors": list(verdict.errors),
                "notes": [{"code": note.code, **_row(note)} for note in verdict.notes],
            }
            for verdict in verdicts
        ]
        failed = [{"file": file, "error": reason} for file, reason in unreadable.items()]
        print_json({"schema": 1, "files": files, "unreadable": failed})
    for verdict in verdicts:
        if not as_json:
            _print_verdict(verdict)
        for note in verdict.notes:
            complain(f"note: an ingest would object to this\n{render_fault(note)}")
    for file, reason in unreadable.items():
        complain(f"shapeupd: {file}: {reason}")


def _print_verdict(verdict: Verdict) -> None:
    if not verdict.errors:
        print(f"{escape(verdict.file)}: valid")
    for error in verdict.errors:
        print(f"{escape(verdict.file)}: {escape(error)}")


def _row(note: Fault) -> dict[str, str]:
    return {"where": note.where, "what": note.what, "why": note.why, "fix": note.fix}
