"""Hashes the files that grade a scope: when its order is admitted, and when the attempt is scored. Source: ruling G5.

Only what git does not ignore grades, beside what the contract's `grader_files:` names: a test program that is built must not
void the verdict it gives. New files in a folder of tests void nothing either: they add a test, and take none away.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

from daemon.disk import DiskTree, open_folder
from daemon.t0.contract import NoContract, find_scope
from daemon.t0.ledger import append_row
from hooks.git import GitFailed, run_git, scrubbed_env
from parsers.addresses import parse_address, slug_of
from parsers.facts import OrderFact
from parsers.globs import literal_prefix, matches
from parsers.graders import (
    MAX_FILES,
    GraderRow,
    hash_commands,
    inner_path,
    named_paths,
    parse_graders,
    render_grader_row,
    says_tests,
)
from parsers.layout import LOCAL_ROOT, path_of
from parsers.scope_contract import ScopeContract
from parsers.times import render_time
from parsers.tree import Unreadable
from reducers.graders import changed_graders, newest_row

_SEEN_FILES = 20_000  # files of one folder that are looked at; more is no folder of tests
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def graders_path(slug: str) -> str:
    """Where the hashes of a feature's graders stand, beside the other receipts."""
    return path_of("graders", slug)


def record_graders(root: Path, fact: OrderFact, now: datetime) -> tuple[str, ...]:
    """Write down what grades the build order that was just admitted; the paths. Empty: no build order, or these bytes are known.

    To be called for every admitted order; one whose contract does not read has no fixture to protect. Raises Unreadable, OSError.
    """
    address, slug = parse_address(fact.order.order_id), slug_of(fact.order.order_id)
    if address.name is None or address.attempt is None:
        return ()
    rows = parse_graders(DiskTree(root).read(graders_path(slug)) or b"")
    if newest_row(rows, fact.order.order_id, fact.sha256) is not None:
        return ()
    try:
        contract = find_scope(root, slug, address.name).contract
    except NoContract:
        return ()
    files = hash_graders(root, contract)
    kept = dict(sorted(files.items())[:MAX_FILES])
    row = GraderRow(
        render_time(now),
        fact.order.order_id,
        fact.sha256,
        contract.scope_id,
        hash_commands(contract.commands),
        kept,
        fact.order.run_id,
        len(files) - len(kept),
    )
    append_row(root, graders_path(slug), render_grader_row(row))
    return tuple(kept)


def find_changed(
    root: Path, top: Path, slug: str, order_id: str, contract: ScopeContract, is_granted: Callable[[str], bool]
) -> tuple[str, ...]:
    """The graders that changed since the order was admitted; empty where it never was. `top`: where the attempt lies."""
    row = newest_row(parse_graders(DiskTree(root).read(graders_path(slug)) or b""), order_id)
    if row is None:
        return ()
    present = hash_graders(top, contract, by_name=True)
    for path in row.files.keys() - present.keys():
        if found := _hash(top, path):
            present[path] = found
    return changed_graders(row, contract, present, is_granted)


def hash_graders(top: Path, contract: ScopeContract, *, by_name: bool = False) -> dict[str, str]:
    """The graders that are there, by path. `by_name`: only those that are named one by one, no folder's and no pattern's."""
    named = [path for path in named_paths(contract.commands) if path.partition("/")[0] not in (LOCAL_ROOT, ".git")]
    found = dict(_hash_all(top, named, by_name, says_tests))
    for ignored in _ignored(top, found):
        del found[ignored]
    listed = [path for text in contract.grader_files if (path := inner_path(text))]
    return {**found, **dict(_hash_all(top, listed, by_name, lambda folder: True))}


def _hash_all(
    top: Path, paths: Iterable[str], by_name: bool, takes_folder: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    for path in paths if by_name else _expand(top, paths):
        if digest := _hash(top, path):
            yield path, digest
        elif not by_name and takes_folder(path):
            below = ((file, _hash(top, file)) for file in _files_below(top, path))
            yield from ((file, found) for file, found in below if found)


def _expand(top: Path, paths: Iterable[str]) -> Iterator[str]:
    """The paths, and in place of one with a wildcard the files that it matches."""
    for path in paths:
        prefix = literal_prefix(path)
        if prefix == path:
            yield path
        elif folder := prefix.rpartition("/")[0]:
            yield from (file for file in _files_below(top, folder) if matches(path, file))
        else:
            yield from (name for name in DiskTree(top).list("") if matches(path, name))


def _files_below(top: Path, folder: str) -> Iterator[str]:
    """The files in the folder and below it, sorted; no link is followed."""
    left = _SEEN_FILES
    waiting = [folder]
    while waiting and left:
        here = waiting.pop()
        try:
            with open_folder(top, here) as fd:
                with os.scandir(fd) as entries:
                    inner = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except (OSError, Unreadable):
            continue
        for name, is_folder in inner[:left]:
            left -= 1
            if is_folder:
                waiting.append(f"{here}/{name}")
            else:
                yield f"{here}/{name}"


def _hash(top: Path, path: str) -> str | None:
    """The hash of a file's bytes, or of where a link leads with what is there; None for nothing, a folder or a device."""
    folder, _, name = path.rpartition("/")
    try:
        with open_folder(top, folder) as fd:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                return hashlib.sha256(
                    b"link\0" + os.fsencode(os.readlink(name, dir_fd=fd)) + _behind(top, path)
                ).hexdigest()
            if not stat.S_ISREG(status.st_mode):
                return None
            with os.fdopen(os.open(name, _LOOK, dir_fd=fd), "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, Unreadable, ValueError):
        return None


def _behind(top: Path, path: str) -> bytes:
    """The bytes of the file a link leads to, where it lies below the top."""
    real = os.path.realpath(top / path)
    inside = os.path.relpath(real, os.path.realpath(top))
    if inside.startswith("..") or not os.path.isfile(real):
        return b""
    return (_hash(top, inside) or "").encode()


def _ignored(top: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of the paths that git ignores; none outside git."""
    names = b"\0".join(os.fsencode(path) for path in paths)
    if not names:
        return ()
    try:
        ran = run_git("-C", os.fspath(top), "check-ignore", "-z", "--stdin", stdin=names, env=scrubbed_env())
    except (FileNotFoundError, GitFailed):
        return ()
    return tuple(os.fsdecode(name) for name in ran.out.split(b"\0") if name) if ran.status == 0 else ()
