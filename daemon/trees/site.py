"""Where kept trees lie: one worktree, git's command line over it, its shadow refs, a lock per scope. Source: protocol §6.5, W-54, rulings A1, G1, G2, W-68."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from daemon.place import find_place
from daemon.writes import short_name
from hooks.git import GitFailed, complaint, run_git, scrubbed_env
from parsers.addresses import SLUG
from parsers.trials import SCOPE_ID

STATE = "shapeupd/trees"  # below the common git dir: outside the two trees, and wiping `.shapeup/` loses no restore
_SETTINGS = (
    "core.fsmonitor=false",  # a program of the repository's own settings
    f"core.hooksPath={os.devnull}",  # a shadow ref is no business of a reference-transaction hook
    "core.fsync=all",  # what a restore takes away must be on disk as objects before
    "core.splitIndex=false",
)


class TreeFailed(Exception):
    """A tree could not be kept, brought back or read. Nothing was restored. The text says what is wrong."""


class Site(NamedTuple):
    """One worktree: its top, its own git folder, the common one. All real paths."""

    top: Path
    git_dir: Path
    common: Path

    @property
    def state(self) -> Path:
        """Where locks and unfinished restores lie."""
        return self.common / STATE

    def ask(
        self, *args: str | bytes, stdin: bytes = b"", top: str | None = None, fine: tuple[int, ...] = (0,)
    ) -> bytes:
        """What a git command that only reads says of this worktree, or of the folder `top` in its place.

        `fine`: the exit statuses that are answers. Raises GitFailed.
        """
        at = os.fspath(self.top) if top is None else top
        words = ("-C", at, f"--git-dir={self.git_dir}", f"--work-tree={at}", "--no-pager")
        ran = run_git(*words, *settings(), *args, stdin=stdin, env=git_env())
        if ran.status not in fine:
            raise GitFailed(complaint(ran, os.fsdecode(args[0])))
        return ran.out


def settings() -> tuple[str, ...]:
    """The options of every git started here."""
    return tuple(word for setting in _SETTINGS for word in ("-c", setting))


def git_env() -> dict[str, str]:
    """The environment of every git started here: what is there counts, not what a local ref paints over it."""
    return {**scrubbed_env(), "GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull, "GIT_NO_LAZY_FETCH": "1"}


def find_site(folder: Path) -> Site | None:
    """The worktree that encloses the folder; None outside git, where no tree is kept (ruling A1). Raises FileNotFoundError."""
    place = find_place(folder)
    if place.git_dir is None:
        return None
    here = Path(os.path.realpath(folder))
    for top in (here, *here.parents):
        git_dir = _linked(top / ".git")
        if git_dir is not None:
            return Site(top, git_dir, place.git_dir)
        if os.path.lexists(top / ".git" / "HEAD"):
            break
    return Site(place.root, place.git_dir, place.git_dir)


def _linked(dot_git: Path) -> Path | None:
    """The git folder that a linked worktree's `.git` file names."""
    if not dot_git.is_file():
        return None
    named = os.fsdecode(dot_git.read_bytes()[:4096]).partition("\n")[0]
    if not named.startswith("gitdir:"):
        return None
    git_dir = Path(os.path.realpath(dot_git.parent / named.removeprefix("gitdir:").strip()))
    return git_dir if (git_dir / "HEAD").exists() else None


def kept_ref(slug: str, scope_id: str) -> str:
    """Where the scope's kept tree lies. Source: ruling G1."""
    return f"{_refs(slug, scope_id)}/kept"


def undo_ref(slug: str, scope_id: str, trial: int, what: str = "") -> str:
    """Where the state before a trial's restore lies; `what`: `edited` (what was changed during one), `undone` (before an undo)."""
    return f"{undo_refs(slug, scope_id)}/{trial}{'-' if what else ''}{what}"


def undo_refs(slug: str, scope_id: str) -> str:
    """The folder of the scope's undo refs."""
    return f"{_refs(slug, scope_id)}/undo"


def legacy_ref(scope_id: str) -> str:
    """Where other tools keep the scope's tree, whatever the slug. Source: protocol §6.5, W-68."""
    return f"refs/shapeup/{re.sub(r'[^A-Za-z0-9_.-]', '-', scope_id)}/kept"


def _refs(slug: str, scope_id: str) -> str:
    if not SLUG.match(slug) or not SCOPE_ID.match(scope_id):
        raise TreeFailed(f"no ref can be named for the slug {slug!r} and the scope {scope_id!r}")
    return f"refs/shapeup/{slug}/{ref_word(scope_id)}"


def ref_word(scope_id: str) -> str:
    """The scope id as one part of a ref's name: git takes no `..`, no `.` at the end and no `.lock` there."""
    word = re.sub(r"\.(?=\.)", "%2e", scope_id)
    return re.sub(r"\.(lock)?\Z", r"%2e\1", word)


def state_file(site: Site, slug: str, scope_id: str, ending: str) -> Path:
    """A file of ours about one scope."""
    return site.state / slug / f"{short_name(ref_word(scope_id))}{ending}"


@contextmanager
def lock_scope(
    site: Site, slug: str, scope_id: str, *, patience_s: float | None = None, what: str = "tree"
) -> Iterator[bool]:
    """Hold one of the scope's locks; yields False, nothing held, where another holds it longer than `patience_s` (None: wait).

    `what` names the lock: `tree` is taken by every function here, so a caller takes another (`trials`, W-54).
    """
    file = state_file(site, slug, scope_id, f".{what}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        yield _locked(fd, patience_s)
    finally:
        os.close(fd)


def _locked(fd: int, patience_s: float | None) -> bool:
    if patience_s is None:
        fcntl.flock(fd, fcntl.LOCK_EX)
        return True
    until = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        else:
            return True


@contextmanager
def told() -> Iterator[None]:
    """What git or the disk refuses becomes a TreeFailed."""
    try:
        yield
    except GitFailed as error:
        raise TreeFailed(str(error)) from error
    except OSError as error:
        raise TreeFailed(f"{error.filename or 'the git folder'}: {error.strerror}") from error
