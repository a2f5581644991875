"""Puts the hooks into a repository and takes them out again, byte for byte. Source: design §6, targets 24, cli §2.

One idea carries both: look at the repository as it would be without us, plan upon that, and change what differs. So
three installs equal one, and an install that died half-way is finished or undone by the next run.
Light module: standard library only.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from hooks.install.disk_nodes import UNFINISHED, File, Node, put_node, read_node, sync_folders
from hooks.install.hooks_folder import CODE
from hooks.install.joining import Look, Plan, Wanted
from hooks.install.leaving import LEGACY, OLD, STRIPS, Strip, Without, without_us
from hooks.install.record import Entry, Kind, Record, parse_record, render_record, state_of
from hooks.install.stub_text import HOOKS, SAVED, STRICT_HOOKS, is_stub
from parsers.faults import Fault


class Outcome(NamedTuple):
    """What a run did, or would do: the paths that changed, how each hook is joined, and what was left alone and why."""

    changed: tuple[str, ...]
    plan: Plan
    faults: tuple[Fault, ...]


class Unreadable(Exception):
    """The record cannot be used; the fault says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.what)
        self.fault = fault


class Repository(NamedTuple):
    """Where we install. `folders`: those in which stubs of ours may stand even if no record says so."""

    root: str
    common: str
    folders: tuple[str, ...] = ()

    @property
    def own_folder(self) -> str:
        return f"{self.common}/shapeupd"

    @property
    def record_path(self) -> str:
        return f"{self.own_folder}/install.json"


def read_record(repository: Repository) -> Record | None:
    """What an earlier run recorded; None where there is none. Raises Unreadable."""
    path = repository.record_path
    node = read_node(path)
    if node is None:
        return None
    record = parse_record(node.data, repository.root, repository.common) if isinstance(node, File) else None
    if record is None:
        why = "it says what stood here before us, and nothing else does"
        fix = f"move {path} away and run `shapeupd install`: our hooks are known by their first lines"
        raise Unreadable(Fault(CODE, path, "the record of the installation is damaged", why, fix))
    return record


def install(
    repository: Repository,
    plan: Callable[[Look], Plan],
    *,
    strict: bool,
    strips: Mapping[Kind, Strip] = STRIPS,
    dry_run: bool = False,
) -> Outcome:
    """Make the repository what `plan` wants of it. `plan` is asked with a look at the repository as it is without us."""
    with _alone(repository, dry_run):
        record = read_record(repository) or Record()
        record = record._replace(entries=(*record.entries, *_unrecorded(repository, record)))
        without = without_us(record, read_node, strips)
        made = plan(lambda path: without.nodes[path] if path in without.nodes else read_node(path))
        target = without.nodes | {wanted.path: wanted.node for wanted in made.wanted}
        entries = _entries(made.wanted, without, record)
        changes = _changes(target)
        final = Record(entries, record.folders, strict)
        if not dry_run:
            _sweep(repository, without)
            _carry_out(repository, record, final, changes)
        return Outcome(tuple(path for path, _ in changes), made, made.faults)


def uninstall(
    repository: Repository,
    *,
    strips: Mapping[Kind, Strip] = STRIPS,
    theirs: frozenset[str] = frozenset(),
    dry_run: bool = False,
) -> Outcome:
    """Make the repository what it would be without us; what cannot be told apart is left and named.

    `theirs`: paths that became the team's own since, and stay.
    """
    if not os.path.isdir(repository.own_folder) and not _unrecorded(repository, Record()):
        return Outcome((), Plan(), ())
    with _alone(repository, dry_run):
        record = read_record(repository) or Record()
        kept = (entry for entry in record.entries if entry.path not in theirs)
        record = record._replace(entries=(*kept, *_unrecorded(repository, record)))
        without = without_us(record, read_node, strips)
        changes = _changes(without.nodes)
        left = tuple(entry for entry in record.entries if without.keeps(entry))
        if not dry_run:
            _sweep(repository, without)
            _carry_out(repository, record, Record(left, record.folders, False), changes)
            if not left:
                put_node(repository.record_path, None)
                _remove_folders(record.folders)
        return Outcome(tuple(path for path, _ in changes), Plan(), tuple(without.kept.values()))


@contextmanager
def _alone(repository: Repository, dry_run: bool) -> Iterator[None]:
    """One run at a time. The lock is on the folder, so nothing is left behind."""
    if dry_run:
        yield
        return
    os.makedirs(repository.own_folder, exist_ok=True)
    if os.path.islink(repository.own_folder):
        why = "what is written through a link lands somewhere else"
        raise Unreadable(Fault(CODE, repository.own_folder, "it is a symbolic link", why, "remove the link"))
    fd = os.open(repository.own_folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
        _remove_folders((repository.own_folder,))  # only where nothing is in it


def _unrecorded(repository: Repository, record: Record) -> tuple[Entry, ...]:
    """Stubs of ours that no record names: it was lost, or another tool moved them aside."""
    known = {entry.path for entry in record.entries}
    found = []
    for folder in repository.folders:
        for path in (f"{folder}/{hook}" for hook in (*HOOKS, *STRICT_HOOKS)):
            behind = is_stub(read_node(path + LEGACY)) or is_stub(read_node(path + OLD))
            node = read_node(path)
            if path not in known and (is_stub(node) or behind):
                ours = (state_of(node),) if is_stub(node) else ()
                found.append(Entry(path, "stub", None, ours))
    return tuple(found)


def _entries(wanted: tuple[Wanted, ...], without: Without, record: Record) -> tuple[Entry, ...]:
    """What the record says afterwards: what is wanted, and what could not be taken out."""
    entries = []
    for item in wanted:
        before = without.nodes[item.path] if item.path in without.nodes else read_node(item.path)
        if before != item.node:  # a committed hook that calls us already is no work of ours
            entries.append(Entry(item.path, item.kind, before, (state_of(item.node),)))
    named = {entry.path for entry in entries}
    left = (entry for entry in record.entries if without.keeps(entry) and entry.path not in named)
    return tuple(sorted((*entries, *left)))


def _changes(target: Mapping[str, Node]) -> list[tuple[str, Node]]:
    """What differs, in an order in which no crash loses a hook: what stands behind ours, then ours, then what goes."""

    def rank(change: tuple[str, Node]) -> tuple[int, str]:
        path, node = change
        if path.endswith((LEGACY, OLD)):
            return 0, path
        if path.endswith(SAVED):
            return (1 if node is not None else 3), path
        return 2, path

    return sorted(((path, node) for path, node in target.items() if read_node(path) != node), key=rank)


def _sweep(repository: Repository, without: Without) -> None:
    """Remove what a run that died was writing."""
    for path in (repository.record_path, *without.nodes):
        put_node(path + UNFINISHED, None)


def _carry_out(repository: Repository, old: Record, new: Record, changes: list[tuple[str, Node]]) -> None:
    """Record both states, change the files, record the new state."""
    folders = _missing_folders(repository, [path for path, node in changes if node is not None])
    kept = new._replace(folders=tuple(dict.fromkeys((*old.folders, *folders))))
    if changes:
        _write_record(repository, _both(old, kept))
        for folder in folders:
            os.makedirs(folder, exist_ok=True)
        for path, node in changes:
            put_node(path, node, like=_twin(path))
        sync_folders(path for path, _ in changes)
    _write_record(repository, kept)


def _twin(path: str) -> str:
    """Where the same file may lie already: a hook and the name under which it is kept."""
    return path.removesuffix(SAVED) if path.endswith(SAVED) else path + SAVED


def _both(old: Record, new: Record) -> Record:
    """A record under which the old and the new state both count as ours."""
    before = {entry.path: entry for entry in old.entries}
    merged = []
    for entry in new.entries:
        earlier = before.pop(entry.path, None)
        ours = (*entry.ours, *(earlier.ours if earlier else ()))
        merged.append(entry._replace(ours=tuple(dict.fromkeys(ours))))
    return new._replace(entries=tuple(sorted((*merged, *before.values()))))


def _missing_folders(repository: Repository, paths: list[str]) -> tuple[str, ...]:
    missing: dict[str, None] = {}
    for path in paths:
        folder = os.path.dirname(path)
        above = []
        while not os.path.isdir(folder):
            above.append(folder)
            folder = os.path.dirname(folder)
        missing.update(dict.fromkeys(reversed(above)))
    return tuple(missing)


def _write_record(repository: Repository, record: Record) -> None:
    data = render_record(record, repository.root, repository.common)
    node = File(data, 0o644)
    if read_node(repository.record_path) != node:
        put_node(repository.record_path, node)
        sync_folders((repository.record_path,))


def _remove_folders(folders: tuple[str, ...]) -> None:
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # someone keeps something in it
