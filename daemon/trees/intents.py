"""The record of a restore under way: what is to become what. It lies in git's own folder until the last byte is on disk. Source: rulings D1, G2, hazards C.

Its rename into place is the point from which on the restore is finished by whoever comes next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from daemon.journal import fsync
from daemon.trees.objects import Entry
from daemon.trees.site import Site, state_file
from daemon.trees.steps import Plan, Step

ENDING = ".restore.json"
_SCHEMA = 1


class Intent(NamedTuple):
    """One restore. `kept`: the commit under the scope's kept ref when it began, empty where there was none; another one now
    means that the scope has moved on."""

    top: str
    slug: str
    scope_id: str
    trial: int
    undo_ref: str
    undo_commit: str
    kept: str
    plan: Plan


def write_intent(site: Site, intent: Intent) -> None:
    """Make the restore certain. Raises OSError, FsyncFailed."""
    file = _file(site, intent.slug, intent.scope_id)
    temp = file.with_name(file.name + ".tmp")
    data = json.dumps({"schema": _SCHEMA, **intent._asdict(), "plan": _plan_fields(intent.plan)}).encode()
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        fsync(fd, os.fspath(temp))
    finally:
        os.close(fd)
    os.replace(temp, file)
    _sync_folder(file.parent)


def read_intent(site: Site, slug: str, scope_id: str) -> Intent | None:
    """The scope's unfinished restore; None where there is none, or none that can be read."""
    return _read(_file(site, slug, scope_id))


def forget_intent(site: Site, slug: str, scope_id: str) -> None:
    """The restore is done, or void."""
    file = _file(site, slug, scope_id)
    if os.path.lexists(file):
        os.unlink(file)
        _sync_folder(file.parent)


def list_intents(site: Site) -> Iterator[Intent]:
    """Every unfinished restore of the repository, of all its worktrees."""
    for file in sorted(site.state.glob(f"*/*{ENDING}")):
        intent = _read(file)
        if intent is not None:
            yield intent


def _file(site: Site, slug: str, scope_id: str) -> Path:
    return state_file(site, slug, scope_id, ENDING)


def _read(file: Path) -> Intent | None:
    try:
        fields = json.loads(file.read_bytes())
        if fields.pop("schema") != _SCHEMA:
            return None
        plan = fields.pop("plan")
        steps = tuple(Step(path, _entry(was), _entry(to)) for path, was, to in plan["steps"])
        return Intent(plan=Plan(steps, tuple(plan["folders"]), dict(plan["left"])), **fields)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _entry(fields: list[str] | None) -> Entry | None:
    return None if fields is None else Entry(*fields)


def _plan_fields(plan: Plan) -> dict[str, object]:
    return {**plan._asdict(), "left": dict(plan.left)}


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fsync(fd, os.fspath(folder))
    finally:
        os.close(fd)
