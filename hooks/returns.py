"""Which changes only bring a path back to what it was before it slipped in. Source: ruling E15.

Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from hooks.blobs import read_beneath
from hooks.git import GitFailed, ask_git, hook_env, scrubbed_env
from hooks.path_change import ABSENT_MODE, GITLINK_MODE, SYMLINK_MODE, PathChange
from hooks.range.commits import Commit, parse_log

COMMITS = 500  # how far back is looked
NAMED = 100  # as many paths are named to git; more are picked out of all that the commits changed

# Merges are read against their first parent: what a merge brought can be taken back as what a commit brought.
_LOG = (
    "-c",
    "log.diffMerges=separate",  # what -m means is a setting
    "--no-replace-objects",
    "log",
    f"--max-count={COMMITS}",
    "--first-parent",
    "-m",
    "--root",
    "--full-history",
    "--raw",
    "-z",
    "--no-renames",
    "--no-abbrev",
    "--no-relative",
    "--no-follow",
    "-O/dev/null",
    "--ignore-submodules=none",
    "--no-show-signature",
    "--format=%x01%H%n%P%n%at%n%ct%n",
)

State = tuple[str, str]  # mode and blob


class _Before(NamedTuple):
    """What a path was before one commit changed it."""

    commit: Commit
    state: State


def returns_of(
    head: str | None,
    changes: Sequence[PathChange],
    *,
    since: int | None = None,
    accepted: Collection[str] = (),
    env: Mapping[str, str] | None = None,
    repo: str | None = None,
) -> Callable[[PathChange], bool]:
    """Whether a change is a return: its new mode and blob (or its absence) are what the path had in front of the last commit
    on HEAD's first-parent line that changed it, or of one before that.

    `since`, in seconds since 1970: a commit committed earlier, that is before any live order, let nothing slip in, and none
    in front of it counts either; None: any commit. `accepted`: ids of commits that a wall judged and let pass; the way back
    ends at them, as nothing slips in by them. `head` None: there is no commit. Amending a path away is a return by the
    same rule, as HEAD is then the commit that brought it. A file of a working tree that git has not hashed is hashed as
    `git add` would, where `repo` is the top of that tree.

    One git process, started when the first path is asked; where git cannot answer, nothing is a return.
    """
    ways: list[Mapping[bytes, tuple[_Before, ...]]] = []

    def is_return(change: PathChange) -> bool:
        if head is None:
            return False
        if not ways:
            ways.append(_ways_back(head, changes, since, env, repo))
        way = ways[0].get(change.path, ())
        state = (change.new_mode, _blob_after(change, repo) if way else "")
        for before in way:
            if before.commit.id in accepted:
                return False
            if before.state == state:
                return not _is_cut_off(before.commit, env, repo)
        return False

    return is_return


def _blob_after(change: PathChange, repo: str | None) -> str:
    if change.new_blob.strip("0") or change.new_mode == ABSENT_MODE:
        return change.new_blob
    at = ("-C", repo or ".")
    try:
        if change.new_mode == SYMLINK_MODE:
            target = read_beneath(repo or ".", change.path) or b""
            return ask_git(*at, "hash-object", "--stdin", stdin=target, env=scrubbed_env()).decode("ascii").strip()
        if change.new_mode == GITLINK_MODE:
            return ""
        return ask_git(*at, "hash-object", "--", change.path, env=scrubbed_env()).decode("ascii").strip()
    except GitFailed:
        return ""


def _ways_back(
    head: str, changes: Sequence[PathChange], since: int | None, env: Mapping[str, str] | None, repo: str | None
) -> Mapping[bytes, tuple[_Before, ...]]:
    """For each path what it was before each commit that changed it, newest first."""
    asked = {change.path for change in changes}
    paths = tuple(b":(top,literal)" + path for path in sorted(asked)) if len(asked) <= NAMED else ()
    at = () if repo is None else ("-C", repo)
    limit = () if since is None else (f"--max-age={since}",)
    try:
        commits = tuple(parse_log(ask_git(*at, *_LOG, *limit, head, "--", *paths, env=_log_env(env))))
    except GitFailed:
        return {}
    ways: dict[bytes, list[_Before]] = {}
    for commit, change in _changes_of(commits):
        if change.path in asked:
            ways.setdefault(change.path, []).append(_Before(commit, (change.old_mode, change.old_blob)))
    return {path: tuple(way) for path, way in ways.items()}


def _changes_of(commits: Sequence[Commit]) -> Iterator[tuple[Commit, PathChange]]:
    for commit in commits:
        for change in commit.changes:
            yield commit, change


def _log_env(env: Mapping[str, str] | None) -> dict[str, str]:
    kept = {key: value for key, value in hook_env(env).items() if not key.endswith("_PATHSPECS")}
    return {**kept, "GIT_GRAFT_FILE": "/dev/null"}


def _is_cut_off(commit: Commit, env: Mapping[str, str] | None, repo: str | None) -> bool:
    """Whether the commit seems to have no parent only because this clone is shallow: what was before it is not known."""
    if commit.parents:
        return False
    at = () if repo is None else ("-C", repo)
    header = ask_git(*at, "--no-replace-objects", "cat-file", "commit", commit.id, env=_log_env(env))
    return b"\nparent " in header.partition(b"\n\n")[0]
