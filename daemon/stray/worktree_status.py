"""What git says of one working tree, and what the file system says beside it: all that tells a write from git's own doing. Source: ruling E7.

Nothing is written, no lock is taken.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from daemon.place import Place
from daemon.scan import Fingerprint, fingerprint
from daemon.stray.sightings import GONE, Mark
from hooks.changes import git_dir_and_head
from hooks.git import GitFailed, ask_git, scrubbed_env
from hooks.install.worktrees import list_worktrees
from hooks.path_change import ABSENT_MODE, GITLINK_MODE, SYMLINK_MODE, PathChange
from hooks.policy import is_local

NAMED = 256  # paths that git is asked about by name
VISITED = 8  # places where HEAD was between two looks
READ_BYTES = 1 << 16
_OPERATIONS = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "sequencer")
_STATUS = (
    "-c",
    "core.fsmonitor=false",
    "--no-replace-objects",
    "--literal-pathspecs",
    "status",
    "--porcelain=v2",
    "-z",
    "--no-renames",
    "--untracked-files=all",
    "--ignore-submodules=dirty",  # a submodule's own files are no change of this repository
)
_NO_BLOB = b"0" * 40


class Checkout(NamedTuple):
    """One worktree: its top, its own git folder, the common one, and whether it is a linked one. All real paths."""

    top: str
    git_dir: str
    common: str
    is_linked: bool


def find_checkouts(place: Place) -> tuple[Checkout, ...]:
    """The worktrees that are there. Raises GitFailed."""
    if place.git_dir is None:
        return ()
    common, found = os.path.realpath(place.git_dir), []
    for tree in list_worktrees(os.fspath(place.root)):
        if tree.is_there:
            try:
                git_dir = os.path.realpath(git_dir_and_head(env=scrubbed_env(), repo=tree.path)[0])
            except GitFailed:
                continue  # a folder that is no worktree any more
            found.append(Checkout(os.path.realpath(tree.path), git_dir, common, git_dir != common))
    return tuple(found)


def list_stamp(place: Place) -> tuple[tuple[bytes, bool], ...]:
    """Differs once a worktree has come, gone or moved. Cheap: no git is started."""
    folder, found = os.fsencode(f"{place.git_dir}/worktrees"), []
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ()
    for name in names:
        record = os.path.join(folder, name)
        dot_git = os.path.join(record, _read(os.fsdecode(record + b"/gitdir")).rstrip(b"\n"))
        found.append((dot_git, os.path.lexists(dot_git)))
    return tuple(found)


class Dirty(NamedTuple):
    """One change in the tree against HEAD. `letters` are git's: index against HEAD, tree against index; `??`: not tracked,
    `uu`: not merged."""

    letters: str
    change: PathChange


def dirty_paths(checkout: Checkout, named: Sequence[bytes] = ()) -> dict[bytes, Dirty]:
    """Every change, by path, but those of the LOCAL tier and the linked worktrees that lie in this one.

    `named`: only these paths and what lies below them; () asks for all, and so do more than NAMED. Raises GitFailed.
    """
    asked = named if len(named) <= NAMED else ()
    found: dict[bytes, Dirty] = {}
    for dirty in _status_lines(checkout, ask_git("-C", checkout.top, *_STATUS, "--", *asked, env=scrubbed_env())):
        path = dirty.change.path
        if not is_local(dirty.change.name) and not _is_own_worktree(checkout, dirty.change):
            found[path] = _joined(found[path], dirty) if path in found else dirty
    return found


def _is_own_worktree(checkout: Checkout, change: PathChange) -> bool:
    """By the place that it names itself: it may have come since the worktrees were listed."""
    if change.new_mode != GITLINK_MODE:
        return False
    top = os.path.join(checkout.top, os.fsdecode(change.path))
    named = os.fsdecode(_read(f"{top}/.git").removeprefix(b"gitdir: ").rstrip(b"\n"))
    return bool(named) and os.path.realpath(os.path.join(top, named)).startswith(f"{checkout.common}/worktrees/")


def _status_lines(checkout: Checkout, out: bytes) -> Iterator[Dirty]:
    """The lines of `git status --porcelain=v2 -z --no-renames` that differ from HEAD."""
    for line in out.split(b"\0"):
        match line[:2]:
            case b"1 ":
                _, letters, _, old_mode, _, new_mode, old_blob, index_blob, path = line.split(b" ", 8)
                new_blob = index_blob if letters[1:] == b"." else b"0" * len(old_blob)
                if (old_mode, old_blob) != (new_mode, new_blob):
                    yield _dirty(letters, path, old_mode, new_mode, old_blob, new_blob)
            case b"u ":
                _, _, _, _, old_mode, _, new_mode, _, old_blob, _, path = line.split(b" ", 10)
                yield _dirty(b"uu", path, old_mode, new_mode, old_blob, b"0" * len(old_blob))
            case b"? ":
                path = line[2:].rstrip(b"/")
                mode = _git_mode(_lstat(os.path.join(os.fsencode(checkout.top), path)))
                if mode:
                    yield _dirty(b"??", path, ABSENT_MODE.encode(), mode, _NO_BLOB, _NO_BLOB)


def _dirty(letters: bytes, path: bytes, old_mode: bytes, new_mode: bytes, old_blob: bytes, new_blob: bytes) -> Dirty:
    old, new = old_mode.decode("ascii"), new_mode.decode("ascii")
    if ABSENT_MODE in (old, new):
        status = "A" if old == ABSENT_MODE else "D"
    else:
        status = "M" if old[:3] == new[:3] else "T"
    blobs = old_blob.decode("ascii"), new_blob.decode("ascii")
    return Dirty(letters.decode("ascii"), PathChange(status, path, old, new, *blobs))


def _joined(removed: Dirty, lying: Dirty) -> Dirty:
    """A path that was taken out of the index and still lies there."""
    old, new = removed.change, lying.change
    status = "M" if old.old_mode[:3] == new.new_mode[:3] else "T"
    return Dirty(removed.letters, PathChange(status, old.path, old.old_mode, new.new_mode, old.old_blob, new.new_blob))


def _git_mode(seen: os.stat_result | None) -> bytes:
    """The mode that git would store; empty for what it would not store."""
    if seen is None:
        return b""
    file = b"100755" if seen.st_mode & 0o100 else b"100644"
    kinds = {stat.S_IFDIR: GITLINK_MODE.encode(), stat.S_IFLNK: SYMLINK_MODE.encode(), stat.S_IFREG: file}
    return kinds.get(stat.S_IFMT(seen.st_mode), b"")


def mark_of(top: str, path: bytes) -> Mark:
    """What tells this state of the path from others; of a folder (a nested repository) only which one it is."""
    seen = fingerprint(os.path.join(top, os.fsdecode(path)))
    if seen is None:
        return GONE
    return seen[:3] if stat.S_ISDIR(seen.mode_kind) else tuple(seen)


def written_ns(top: str, path: bytes) -> int:
    """When the path came to be what it is, or a folder on its way did: a folder that is moved takes its files along unchanged.
    Where nothing lies: when the nearest folder last changed."""
    newest, at = 0, os.path.join(os.fsencode(top), path)
    while len(at) > len(top):
        seen = _lstat(at)
        newest = max(newest, seen.st_ctime_ns if seen else 0)
        if seen is None and (above := _lstat(os.path.dirname(at))) is not None:
            return above.st_ctime_ns
        at = os.path.dirname(at)
    return newest


def _lstat(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


class View(NamedTuple):
    """The files by which git moves its own view of the tree; equal before and after a look: it did not move."""

    head: bytes
    log: Fingerprint | None  # every place where HEAD was
    files: tuple[Fingerprint | None, ...]


def view_of(checkout: Checkout) -> View:
    """HEAD and the index as they are now."""
    head = _read(f"{checkout.git_dir}/HEAD")
    branch = os.fsdecode(head.removeprefix(b"ref: ").strip())
    files = [f"{checkout.git_dir}/{name}" for name in ("index", "reftable/tables.list")]
    files += [f"{checkout.common}/{name}" for name in (branch, "packed-refs", "reftable/tables.list")]
    return View(head, fingerprint(f"{checkout.git_dir}/logs/HEAD"), tuple(map(fingerprint, files)))


def visited(checkout: Checkout, since: View) -> tuple[str, ...]:
    """The commits where HEAD was since then, the newest; none where it did not move or no log of it is kept."""
    start = since.log.size if since.log else 0
    lines = _read(f"{checkout.git_dir}/logs/HEAD", start).splitlines()[-VISITED:]
    words = [word for line in lines for word in line.split(b" ", 2)[:2]]
    return tuple(dict.fromkeys(word.decode("ascii", "replace") for word in words if word.strip(b"0")))


def left_behind(checkout: Checkout, paths: Iterable[bytes], commits: Iterable[str]) -> frozenset[bytes]:
    """Those of the paths that are as one of the commits has them: git put them there and then moved on, nobody wrote them."""
    asked = [path for path in paths if b"\n" not in path]
    seen = {path: _lstat(os.path.join(os.fsencode(checkout.top), path)) for path in asked}
    files = [path for path, there in seen.items() if there and stat.S_ISREG(there.st_mode)]
    named = asked if len(asked) <= NAMED else []
    at, env = ("--no-replace-objects", "--literal-pathspecs", "-C", checkout.top), scrubbed_env()
    found: set[bytes] = set()
    try:
        stdin = b"".join(path + b"\n" for path in files)
        hashes = ask_git(*at, "hash-object", "--stdin-paths", stdin=stdin, env=env).split()
        for commit in commits if asked else ():
            lines = ask_git(*at, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *named, env=env).split(b"\0")
            blobs = {line.partition(b"\t")[2]: line.partition(b"\t")[0].split()[2] for line in lines if line}
            found |= {path for path, blob in zip(files, hashes, strict=True) if blobs.get(path) == blob}
            found |= {path for path in asked if seen[path] is None and path not in blobs}
    except GitFailed:
        pass  # a file that went meanwhile, a commit that is not here: the times of the files tell
    return frozenset(found)


def _read(path: str, start: int = 0) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(READ_BYTES)
    except OSError:
        return b""


def is_locked(checkout: Checkout) -> bool:
    """Whether git is writing this worktree, or has not begun to fill it."""
    has_index = os.path.lexists(f"{checkout.git_dir}/index")
    return os.path.lexists(f"{checkout.git_dir}/index.lock") or (checkout.is_linked and not has_index)


def is_mid_operation(checkout: Checkout) -> bool:
    """Whether a merge, a rebase or the like has stopped in the middle and left the tree to a person."""
    return any(os.path.lexists(f"{checkout.git_dir}/{name}") for name in _OPERATIONS)


def made_ns(checkout: Checkout) -> int:
    """When a linked worktree was added; 0 for the main one."""
    seen = _lstat(os.fsencode(f"{checkout.git_dir}/commondir")) if checkout.is_linked else None
    return seen.st_ctime_ns if seen else 0


def by_git(letters: str, *, is_mid_operation: bool) -> bool:
    """Whether the path is as git itself left it: staged or in conflict, while an operation has stopped in the middle."""
    return is_mid_operation and (letters == "uu" or letters[1] == ".")


def marks_of(checkout: Checkout, paths: Iterable[bytes]) -> dict[bytes, Mark]:
    """The mark of each path."""
    return {path: mark_of(checkout.top, path) for path in paths}
