"""`shapeupd status`: what the daemon is doing, or the runs on disk where none lives. Source: cli §2, rulings H8, J."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from daemon.exits import DONE, NOTHING_THERE, Exit
from daemon.place import Place, find_place
from daemon.sockets import ask
from daemon.terminal import complain, escape, print_json, print_table
from daemon.wanting import print_wanting

HELP = """Shows the daemon, its runs with their live orders, the queue, latency and event counters.
Ends with 3 when no daemon lives; the runs found on disk are shown all the same."""
EXAMPLE = "shapeupd status --json"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    place = find_place(Path(args.repo[0]) if args.repo else None)
    answer = ask_daemon(place)
    if answer is None:
        document = _without_daemon(place)
    else:
        document = {"schema": 1} | {key: value for key, value in answer.items() if key != "schema"}
    if args.json:
        print_json(document)
    else:
        _show(document, place)
    if answer is None:
        complain(f"shapeupd: no daemon runs for {place.root}; start one with `shapeupd run`")
        return NOTHING_THERE
    return DONE


def ask_daemon(place: Place) -> dict[str, object] | None:
    """The daemon's answer; None when none lives."""
    try:
        answer = ask(place.root, "status")
    except TimeoutError:
        raise Exit(NOTHING_THERE, "a daemon listens and does not answer; see `shapeupd log`") from None
    if answer is not None and "error" in answer:
        raise Exit(NOTHING_THERE, str(answer["error"]))
    return answer


def _without_daemon(place: Place) -> dict[str, object]:
    from daemon.runs_on_disk import runs_on_disk

    return {
        "schema": 1,
        "daemon": None,
        "runs": runs_on_disk(place.root),
        "queue": None,
        "latency": None,
        "counters": {},
    }


def _show(document: Mapping[str, object], place: Place) -> None:
    match document.get("daemon"):
        case {"pid": pid, "version": version, "uptime_s": int() | float() as uptime_s}:
            print(f"daemon {version}, pid {pid}, up {_duration(uptime_s)}, watching {escape(str(place.root))}")
    match document.get("daemon"):
        case {"degraded": str(reason)}:
            print(f"degraded: {escape(reason)}")
    rows = []
    match document.get("runs"):
        case [*runs]:
            rows = [_run_row(run) for run in runs if isinstance(run, dict)]
    if rows:
        print_table(("feature", "run", "status", "round", "live orders", "rejected", "pending", "trips"), rows)
    else:
        print("no runs")
    match document.get("runs"):
        case [*runs]:
            print_wanting([item for run in runs if isinstance(run, dict) for item in _wanting_of(run)])
            for run in runs:
                _show_clock(run)
    _show_traffic(document)


def _show_clock(run: object) -> None:
    """A run's clock where it runs out, the gates that wait for a person, and what of its receipt cannot be meant."""
    match run:
        case {"slug": slug, "clock": {"status": "ok" | "warn" | "trip" as status, "action": action}}:
            print(escape(f"{slug}: {status}: {action}"))
    match run:
        case {"slug": slug, "open_gates": [*gates]}:
            for gate in gates:
                match gate:
                    case {"gate": name, "round": round_, "note": note}:
                        at = f" (round {round_})" if round_ is not None else ""
                        print(escape(f"{slug}: gate {name}{at} waits for an answer: {note}"))
    match run:
        case {"slug": slug, "findings": [*findings]}:
            for finding in findings:
                print(escape(f"{slug}: {finding}"))


def _run_row(run: Mapping[str, object]) -> tuple[str, ...]:
    cells = (run.get("slug"), run.get("run_id"), run.get("status"), run.get("round"))
    lists = (run.get("live_orders"), run.get("rejected"), run.get("pending"), run.get("trips"))
    return (*("-" if cell is None else str(cell) for cell in cells), *map(_names, lists))


def _wanting_of(run: Mapping[str, object]) -> list[object]:
    wanting = run.get("wanting")
    return wanting if isinstance(wanting, list) else []


def _names(value: object) -> str:
    """Names in one cell, or how many; a trip is named by its breaker."""
    if isinstance(value, int) and value:
        return str(value)
    if not isinstance(value, list) or not value:
        return "-"
    return ", ".join(str(item.get("breaker", item)) if isinstance(item, dict) else str(item) for item in value)


def _show_traffic(document: Mapping[str, object]) -> None:
    if document.get("queue") is not None:
        print(f"queue {document['queue']}")
    match document.get("latency"):
        case {"n": int(n), "p50_ms": p50, "p99_ms": p99} if n:
            print(f"latency p50 {p50} ms, p99 {p99} ms over {n}")
    match document.get("counters"):
        case {**counters}:
            for name, count in sorted(counters.items()):
                if count:
                    print(f"{escape(str(name)):<20} {count}")


def _duration(seconds: float) -> str:
    minutes, whole = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole} s" if minutes else f"{whole} s"
