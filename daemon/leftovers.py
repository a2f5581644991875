"""Reads what the worktree adds to HEAD, for the report's leftovers. Source: protocol §5.9, design §4.

Reading only: no lock is taken, no external diff, text conversion or file system monitor is started.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from daemon.disk import DiskTree
from hooks.git import GitFailed, ask_git, scrubbed_env
from parsers.layout import LOCAL_ROOT, SHARED_ROOT, path_of
from parsers.markdown import decode
from parsers.tree import Unreadable
from reducers.run_records import RunRecords, objects_at, text_at
from reducers.ship.leftovers import MAX_FILES, MAX_UNTRACKED_BYTES, Addition, parse_added

_DIFF = ("diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all")
_OWN = (f"{LOCAL_ROOT}/", f"{SHARED_ROOT}/")


def read_additions(tree: DiskTree, records: RunRecords, *, is_git: bool) -> tuple[Addition, ...]:
    """What changed and new files add; where git cannot say, the files that the newest result touched, whole."""
    if is_git:
        try:
            return tuple(_from_git(tree))
        except (GitFailed, FileNotFoundError):
            pass  # no commit yet, or no git: the result says what there is to look at
    return tuple(_whole(tree, _first(_touched(tree, records))))


def _from_git(tree: DiskTree) -> Iterator[Addition]:
    changed = _first(_git(tree, *_DIFF, "--name-only", "--diff-filter=d", "-z"))
    yield from (Addition(path, parse_added(_diff(tree, path))) for path in changed)
    fresh = _git(tree, "ls-files", "--others", "--exclude-standard", "-z")
    yield from _whole(tree, _first(fresh, MAX_FILES - len(changed)))


def _git(tree: DiskTree, *words: str) -> list[str]:
    out = ask_git("-C", os.fspath(tree.root), "-c", "core.fsmonitor=false", *words, env=scrubbed_env())
    return [os.fsdecode(path) for path in out.split(b"\0") if path]


def _diff(tree: DiskTree, path: str) -> str:
    words = ("-C", os.fspath(tree.root), "-c", "core.fsmonitor=false", *_DIFF, "-U0", "--", f":(top,literal){path}")
    return decode(ask_git(*words, env=scrubbed_env()))


def _first(paths: Iterable[str], most: int = MAX_FILES) -> list[str]:
    return [path for path in sorted(set(paths)) if not path.startswith(_OWN)][: max(0, most)]


def _touched(tree: DiskTree, records: RunRecords) -> Iterator[str]:
    """The files that the newest result names, by when its file was written."""
    stamps = ((tree.stamp(path_of("result", records.slug, result.stem)), result) for result in records.results)
    dated = [(stamp.mtime_ns, result) for stamp, result in stamps if stamp]
    if dated:
        newest = max(dated, key=lambda found: found[0])[1]
        touched = (text_at(entry, "path") for entry in objects_at(newest.document, "files_touched"))
        yield from (path for path in touched if path)


def _whole(tree: DiskTree, paths: Iterable[str]) -> Iterator[Addition]:
    """Files all of whose lines count as added: texts of a size that somebody wrote by hand."""
    for path in paths:
        stamp = tree.stamp(path)
        if stamp is None or stamp.size > MAX_UNTRACKED_BYTES:
            continue
        try:
            data = tree.read(path)
        except (Unreadable, OSError):
            continue
        if data and b"\0" not in data:
            yield Addition(path, (tuple(decode(data).rstrip("\n").split("\n")),))
