"""`python -I -m daemon record`: what hooks leave for the log, and one audit now. Never called by people. Source: rulings D5, E8.

One JSON object on stdin: {"event": "commit.rejected" | "hook.override", …}, its other keys the event's fields. An override is
also a pathology row.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from daemon import clock
from daemon.configuration import load_settings
from daemon.exits import DONE, USAGE, WANTING, Exit
from daemon.log import MEGABYTE, Log
from daemon.place import Place, find_place
from daemon.writes import append_at, ledger_end
from hooks.verdict import SHOWN
from parsers.layout import path_of
from parsers.ledgers import render_row
from parsers.settings import Settings
from parsers.times import render_time
from parsers.tree import Unreadable

HELP = "Called by hooks: writes what one of them decided into the log; with --audit, audits new commits now."
EXAMPLE = "shapeupd record --audit"

EVENTS = frozenset({"commit.rejected", "hook.override"})
MAX_BYTES = 256 * 1024
COMMAND_CHARS = 200
AUDIT_S = 20.0

_OWN_FIELDS = frozenset({"event", "level", "at", "slug", "subject", "run_id", "ms", "violations", "count"})
_MACHINE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--audit", action="store_true", help="audit new commits now and return when all are recorded")


def run(args: argparse.Namespace) -> int:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]  # a hook's own repository must not be taken for the one that is asked about
    place = find_place(Path(args.repo[0]) if args.repo else None)
    return _audit(place) if args.audit else _record(place, _row())


def _row() -> dict[str, object]:
    try:
        row = json.loads(sys.stdin.buffer.read(MAX_BYTES + 1)[:MAX_BYTES])
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or _text(row, "event") not in EVENTS:
        raise Exit(USAGE, f"one JSON object with an event ({' or '.join(sorted(EVENTS))}) is expected on stdin")
    return row


def _record(place: Place, row: Mapping[str, object]) -> int:
    """Write the event, and for an override the pathology row."""
    log = _log_of(place)
    fields: dict[str, Any] = {key: value for key, value in row.items() if key not in _OWN_FIELDS} | _paths(row)
    log.write(str(row["event"]), level="warn", slug=_text(row, "slug"), subject=_text(row, "subject"), **fields)
    log.close()
    if row["event"] == "hook.override":
        _add_pathology(place.root, row, clock.now())
    return WANTING if log.lost else DONE


def _paths(row: Mapping[str, object]) -> dict[str, object]:
    """The paths of a row's violations; what each of them breaks, the refusal has said already."""
    violations = row.get("violations")
    if not isinstance(violations, list):
        return {}
    named = (violation.get("path") for violation in violations if isinstance(violation, dict))
    paths = tuple(dict.fromkeys(path for path in named if isinstance(path, str) and path))
    return {"paths": paths[:SHOWN], "path_count": len(paths)} if paths else {}


def _log_of(place: Place) -> Log:
    try:
        settings, _ = load_settings(place)
    except Exit:
        settings = Settings()  # the hook that calls has other things to say than that a settings file is wrong
    return Log(place.local, clock.now, max_bytes=int(settings.log_max_mb * MEGABYTE), keep=settings.log_keep)


def _add_pathology(root: Path, row: Mapping[str, object], at: datetime) -> None:
    """Source: protocol §2.14."""
    document = {
        "schema_version": 1,
        "at": render_time(at),
        "kind": "pathology",
        "pathology": "SAFETY-OVERRIDE",
        "category": "commit-gate",
        "tool": "git",
        "command": (_text(row, "command") or "git commit")[:COMMAND_CHARS],
        "note": _text(row, "reason") or _text(row, "note") or "",
    }
    path = path_of("metrics", stem=machine_id(os.environ))
    try:
        end = ledger_end(root, path)
        data = render_row(document).encode()
        while not append_at(root, path, data if end.is_whole else b"\n" + data, end.size):
            end = ledger_end(root, path)
    except (OSError, Unreadable) as error:
        raise Exit(WANTING, f"{path} cannot be written, so the override stands in the log alone: {error}") from None


def machine_id(environment: Mapping[str, str]) -> str:
    """The name of this machine's metrics file: HOSTNAME where it can be a file name, else `local`."""
    name = environment.get("HOSTNAME", "")
    return name if _MACHINE.match(name) else "local"


def _text(row: Mapping[str, object], key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) else None


def _audit(place: Place) -> int:
    """Through the daemon, if one lives; else by itself, under the daemon's lock."""
    from daemon.sockets import ask

    if place.git_dir is None:
        return DONE
    try:
        answer = ask(place.root, "audit", timeout_s=AUDIT_S)
    except TimeoutError:
        raise Exit(WANTING, f"the daemon has not audited the new commits within {AUDIT_S:g} s") from None
    if answer is None:
        return _audit_alone(place)
    if "error" in answer:
        raise Exit(WANTING, str(answer["error"]))
    return DONE


def _audit_alone(place: Place) -> int:
    from daemon.commits.audit import Audit
    from daemon.commits.past_policies import policies_on_disk
    from daemon.journal import FsyncFailed
    from daemon.offline import hold

    if not place.local.is_dir():
        return DONE  # nothing of ours is here, and nothing has ever been
    log = _log_of(place)
    with hold(place):
        audit = Audit(place, lambda: policies_on_disk(place), log)
        try:
            audit.finish(clock.now())
        except FsyncFailed as failed:
            raise Exit(WANTING, f"the disk did not confirm a write: {failed}") from None
        finally:
            log.close()
    if audit.trouble:
        raise Exit(WANTING, f"new commits are not audited: {audit.trouble}")
    return DONE
