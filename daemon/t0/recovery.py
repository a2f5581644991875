"""What an attempt is about to write, so that a death in the middle is made good. Source: protocol §6.2, §6.4, W-48, W-54, targets 6, R-22.

The note (`journal/t0-<scope>.json`) is on disk before the artifact is: no artifact is ever without its row for longer than it
takes to run `t0` again. What the dead attempt did with the tree is not guessed: a tree that it did not keep is not
kept afterwards, when others have written on, and such an attempt counts as a crash.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from daemon.disk import DiskTree, open_folder
from daemon.t0.ledger import append_row, create_file, sync_deep
from daemon.trees.finishing import Finished
from daemon.trees.kept import find_kept
from daemon.trees.site import Site, TreeFailed, kept_ref
from daemon.writes import remove_file, replace_file
from parsers.addresses import scope_stem
from parsers.facts import sha256_of
from parsers.faults import Fault
from parsers.layout import folder_of, path_of, stem_at
from parsers.ledgers import render_row
from parsers.markdown import encode
from parsers.t0_verdict import T0Verdict, artifact_name, parse_t0_verdict, render_t0_verdict
from parsers.tree import Unreadable
from parsers.trials import Trial, parse_trials, trial_row
from reducers.ratchet import next_artifact_number

_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Pending(NamedTuple):
    """An attempt on its way to disk. `trial` None: no row is to be written."""

    verdict: T0Verdict
    trial: Trial | None


@contextmanager
def hold_scope(root: Path, slug: str, scope_id: str, waits: Callable[[], None]) -> Iterator[None]:
    """Let attempts of one scope follow one another; `waits` is told where another one has to end first."""
    path = path_of("journal", slug, f"t0-{scope_stem(scope_id)}.lock")
    folder, _, name = path.rpartition("/")
    with open_folder(root, folder, create=True) as at:
        fd = os.open(name, _LOCK, 0o644, dir_fd=at)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def next_artifact(root: Path, slug: str, round_: int, attempt: int) -> int:
    """The T that nobody has yet; somebody may take it before us."""
    names = DiskTree(root).list(folder_of("t0-verdict", slug))
    return next_artifact_number(map(stem_at, names), round_, attempt)


def write_down(root: Path, slug: str, scope_id: str, pending: Pending) -> None:
    """Put the note on disk: from here on the attempt happened."""
    document = {
        "schema": 1,
        "artifact": render_t0_verdict(pending.verdict).decode(),
        "row": None if pending.trial is None else trial_row(pending.trial),
    }
    path = _path(slug, scope_id)
    replace_file(root, path, json.dumps(document).encode(), is_synced=True)
    sync_deep(root, path)


def place_artifact(root: Path, slug: str, scope_id: str, pending: Pending) -> tuple[Pending, str, bytes]:
    """Create the artifact under the next name that is free; with its final T, its path and its bytes.

    One that lies there already with these very bytes is ours: the attempt died behind it.
    """
    while True:
        verdict = pending.verdict
        name = artifact_name(verdict.round or 0, verdict.attempt or 0, verdict.trial or 0)
        path, data = path_of("t0-verdict", slug, name), render_t0_verdict(verdict)
        if create_file(root, path, data, f".t0-{scope_stem(scope_id)}.new") or DiskTree(root).read(path) == data:
            run_path = path.removeprefix(folder_of("receipt", slug) + "/")
            named = pending.trial and pending.trial._replace(artifact=run_path, sha256=sha256_of(data))
            return Pending(verdict, named), path, data
        number = next_artifact(root, slug, verdict.round or 0, verdict.attempt or 0)
        pending = pending._replace(verdict=verdict._replace(trial=number))
        write_down(root, slug, scope_id, pending)


def forget(root: Path, slug: str, scope_id: str) -> None:
    """Remove the note: all of the attempt is on disk."""
    remove_file(root, _path(slug, scope_id))


def complete_attempt(
    root: Path, slug: str, scope_id: str, site: Site | None, finished: Iterable[Finished] = ()
) -> str | None:
    """Make good what the scope's last attempt left half done; what was done, for people. The scope is held.

    `finished`: the restores that were just finished. Raises Unreadable where the note is damaged.
    """
    data = DiskTree(root).read(_path(slug, scope_id))
    if data is None:
        return None
    pending, path, _ = place_artifact(root, slug, scope_id, _parse(data, _path(slug, scope_id)))
    trial = pending.trial
    if trial is not None and not _has_row(root, slug, trial):
        trial = _settled(trial, slug, site, finished)
        append_row(root, path_of("trials", slug), render_row(trial_row(trial)))
    forget(root, slug, scope_id)
    return (
        f"an earlier attempt died half-way; its evidence {path} is complete now ({trial.status if trial else 'no row'})"
    )


def _settled(trial: Trial, slug: str, site: Site | None, finished: Iterable[Finished]) -> Trial:
    """The row by what became of the tree."""
    if trial.status in ("kept", "rebased"):
        if site is None:
            return trial
        is_kept = _is_kept(site, slug, trial)
        return trial._replace(tree_ref=kept_ref(slug, trial.scope_id)) if is_kept else trial._replace(status="crash")
    own = (slug, trial.scope_id, trial.trial)
    is_restored = any(one[:3] == own and one.restored is not None and one.restored.is_whole for one in finished)
    return trial._replace(tree_ref=kept_ref(slug, trial.scope_id)) if is_restored else trial


def _is_kept(site: Site, slug: str, trial: Trial) -> bool:
    try:
        kept = find_kept(site, slug, trial.scope_id)
    except TreeFailed:
        return False
    note = kept.note if kept else None
    return note is not None and note.trial == trial.trial and note.run_id == trial.run_id


def _has_row(root: Path, slug: str, trial: Trial) -> bool:
    rows = parse_trials(DiskTree(root).read(path_of("trials", slug)) or b"")
    return any(row.artifact == trial.artifact and row.sha256 == trial.sha256 for row in rows)


def _path(slug: str, scope_id: str) -> str:
    return path_of("journal", slug, f"t0-{scope_stem(scope_id)}.json")


def _parse(data: bytes, path: str) -> Pending:
    """The note; it took its name as a whole, so one that cannot be read was damaged, or is none of ours."""
    try:
        document = json.loads(data)
        verdict = parse_t0_verdict(encode(document["artifact"]), path)
        row = document["row"]
        trial = None if row is None else parse_trials(encode(render_row(row)))[0]
        if verdict is None:
            raise ValueError("no verdict")
        return Pending(verdict, trial)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        why = "it says what a t0 that died was writing, and this text says nothing"
        fix = "look at the last rows of t0/trials.jsonl and at t0/verdicts/, then remove the file"
        raise Unreadable(Fault("E-JOURNAL", path, "the note of an attempt is damaged", why, fix)) from None
