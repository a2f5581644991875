"""Reads what a commit would change, what one changed, and what lies changed in a working tree. Source: targets 15-17, 23, rulings E13, E14.

The git command line is asked, because it alone knows every index and object format. Nothing is written: no lock, no index.
Light module: standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hooks.blobs import Blobs
from hooks.git import GitFailed, ask_git, complaint, hook_env, run_git, scrubbed_env
from hooks.path_change import ABSENT_MODE, GITLINK_MODE, SYMLINK_MODE, Content, PathChange
from hooks.range.commits import read_commits

# Every setting of the user's or the repository's that could hide or bend a path is named here.
_INDEX_AGAINST = (
    "--no-replace-objects",
    "diff-index",
    "--cached",
    "--raw",
    "-z",
    "--no-renames",
    "--no-abbrev",
    "--no-relative",
    "-O/dev/null",
    "--ita-visible-in-index",  # `git add -N` announces a path: judged as an addition before it is one
    "--ignore-submodules=none",
)
# fsmonitor would run a program of the repository's choice; a submodule's own files are no change of this repository.
_STATUS = (
    "-c",
    "core.fsmonitor=false",
    "--no-replace-objects",
    "status",
    "--porcelain=v2",
    "-z",
    "--no-renames",
    "--untracked-files=all",
    "--ignore-submodules=dirty",
)


class StagedChange(NamedTuple):
    """What the next commit changes. `parents`: the ids it will have as parents, () before the first commit.

    Of a merge: the paths that differ from every parent, their old side the first parent's.
    """

    changes: tuple[PathChange, ...]
    content: Content
    parents: tuple[str, ...]


def staged_changes(
    *, env: Mapping[str, str] | None = None, repo: str | None = None, in_pre_merge: bool = False
) -> StagedChange:
    """The index that git names (GIT_INDEX_FILE, relative to the worktree's top or absolute) against HEAD, and in a merge
    against the other parents too. Under `--amend` git shows a hook no more than this: the difference to the commit that is
    amended; `index_changes(<parents of HEAD>)` is the whole.

    `env` None: the running hook's. `repo` None: the working folder, which for a hook is the worktree's top. `in_pre_merge`:
    pre-merge-commit runs before MERGE_HEAD is there, so the other parents are those of the GITHEAD_<id> variables (E14);
    elsewhere these are not believed, as anybody may set them. Raises GitFailed, for an unmerged index too.
    """
    git_dir, head = git_dir_and_head(env=env, repo=repo)
    parents = _parents(git_dir, head, hook_env(env), repo, in_pre_merge)
    return StagedChange(index_changes(parents, env=env, repo=repo), Blobs(git_dir), parents)


def index_changes(
    against: Sequence[str], *, env: Mapping[str, str] | None = None, repo: str | None = None
) -> tuple[PathChange, ...]:
    """The paths in which the index differs from every one of these commits or trees; from nothing at all where there is none."""
    at = _at(repo)
    trees = tuple(against) or (empty_tree(env=env, repo=repo),)
    return _in_every(parse_raw(ask_git(*at, *_INDEX_AGAINST, tree, "--", env=hook_env(env))) for tree in trees)


def empty_tree(*, env: Mapping[str, str] | None = None, repo: str | None = None) -> str:
    """The id of the tree that holds nothing, in the repository's own object format."""
    return ask_git(*_at(repo), "hash-object", "-t", "tree", "/dev/null", env=hook_env(env)).decode("ascii").strip()


def commit_changes(commit: str, *, repo: str | None = None) -> tuple[PathChange, ...]:
    """What one commit changes against all its parents: a root commit adds all it holds, of a merge as in StagedChange."""
    for found in read_commits((commit,), but=(f"{commit}^@",), at=_at(repo)):
        return tuple(_change(*change[1:]) for change in found.changes)  # git's combined diffs have no letter T
    raise GitFailed(f"{commit} is no commit")


def worktree_changes(repo: str) -> tuple[PathChange, ...]:
    """What lies in the working tree with this top and is not in HEAD: tracked files changed or gone, untracked files that git
    does not ignore. A new side that git has not hashed has an id of zeros. A nested repository is a gitlink.

    Not seen: files marked `assume-unchanged` or `skip-worktree`. Sorted by path. Raises GitFailed.
    """
    out = ask_git("-C", repo, *_STATUS, env=hook_env(scrubbed_env()))
    found: dict[bytes, PathChange] = {}
    for change in _status_lines(out, os.fsencode(repo)):
        removed = found.get(change.path)
        if removed is not None and removed.new_mode == ABSENT_MODE:  # taken out of the index, still lying there
            change = _change(change.path, removed.old_mode, change.new_mode, removed.old_blob, change.new_blob)
        found[change.path] = change
    return tuple(found[path] for path in sorted(found))


def parse_raw(out: bytes) -> Iterator[PathChange]:
    """The lines of `git diff-index|diff-tree --raw -z --no-renames`. Raises GitFailed for a path that is not merged yet."""
    tokens = iter(out.split(b"\0"))
    for meta in tokens:
        if not meta:
            return
        old_mode, new_mode, old_blob, new_blob, status = meta[1:].decode("ascii").split(" ")
        change = PathChange(status[0], next(tokens), old_mode, new_mode, old_blob, new_blob)
        if change.status == "U":
            raise GitFailed(f"{change.name!a} is not merged yet; resolve it and `git add` it")
        yield change


def git_dir_and_head(*, env: Mapping[str, str] | None = None, repo: str | None = None) -> tuple[str, str | None]:
    """The git folder of this worktree as an absolute path, and the commit of HEAD: None before the first one. Raises GitFailed."""
    ran = run_git(*_at(repo), "rev-parse", "--absolute-git-dir", "-q", "--verify", "HEAD", env=hook_env(env))
    text = os.fsdecode(ran.out).removesuffix("\n")
    if ran.status == 0:
        git_dir, _, head = text.rpartition("\n")
        return git_dir, head
    if ran.status == 1 and text:
        return text, None
    raise GitFailed(complaint(ran, "rev-parse"))


def _at(repo: str | None) -> tuple[str, ...]:
    return () if repo is None else ("-C", repo)


def _in_every(sides: Iterable[Iterable[PathChange]]) -> tuple[PathChange, ...]:
    first, *others = sides
    changes = tuple(first)
    for other in others:
        paths = {change.path for change in other}
        changes = tuple(change for change in changes if change.path in paths)
    return changes


def _parents(
    git_dir: str, head: str | None, env: Mapping[str, str], repo: str | None, in_pre_merge: bool
) -> tuple[str, ...]:
    if head is None:
        return ()
    merged = _lines(git_dir, "MERGE_HEAD")
    if not merged and in_pre_merge:
        named = (key[8:] for key in sorted(env) if key[:8] == "GITHEAD_")
        return tuple(dict.fromkeys((head, *(name for name in named if _is_id(name)))))
    if not merged:
        return (head,)
    if not all(_is_id(line) for line in merged):
        raise GitFailed("MERGE_HEAD is no list of commits; `git merge --abort` leaves the merge")
    parents = tuple(dict.fromkeys((head, *merged)))
    if "no-ff" in _lines(git_dir, "MERGE_MODE"):
        return parents
    # git commit drops parents that another one already holds, HEAD among them.
    return tuple(ask_git(*_at(repo), "merge-base", "--independent", *parents, env=env).decode("ascii").split())


def _is_id(text: str) -> bool:
    return len(text) in (40, 64) and all(char in "0123456789abcdef" for char in text)


def _lines(git_dir: str, name: str) -> tuple[str, ...]:
    try:
        with open(os.path.join(git_dir, name), encoding="utf-8", errors="surrogateescape") as file:
            return tuple(file.read().split())
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise GitFailed(f"{name} cannot be read: {error.strerror}") from None


def _status_lines(out: bytes, top: bytes) -> Iterator[PathChange]:
    for line in out.split(b"\0"):
        match line[:2]:
            case b"1 ":
                _, letters, _, head_mode, _, mode, head_blob, index_blob, path = line.split(b" ", 8)
                is_as_in_index = letters[1:] == b"."
                new_blob = index_blob if is_as_in_index else b"0" * len(head_blob)
                yield from _changed(path, head_mode, mode, head_blob, new_blob)
            case b"u ":
                _, _, _, _, ours, _, mode, _, blob, _, path = line.split(b" ", 10)
                yield from _changed(path, ours, mode, blob, b"0" * len(blob))
            case b"? ":
                lying = _mode(os.path.join(top, line[2:]))
                if lying:
                    yield _change(line[2:].rstrip(b"/"), ABSENT_MODE, lying, "0" * 40, "0" * 40)


def _changed(path: bytes, old_mode: bytes, new_mode: bytes, old_blob: bytes, new_blob: bytes) -> Iterator[PathChange]:
    old, new = (
        (old_mode.decode("ascii"), old_blob.decode("ascii")),
        (new_mode.decode("ascii"), new_blob.decode("ascii")),
    )
    if old != new:
        yield _change(path, old[0], new[0], old[1], new[1])


def _change(path: bytes, old_mode: str, new_mode: str, old_blob: str, new_blob: str) -> PathChange:
    if old_mode == ABSENT_MODE:
        status = "A"
    elif new_mode == ABSENT_MODE:
        status = "D"
    else:
        status = "M" if old_mode[:3] == new_mode[:3] else "T"
    return PathChange(status, path, old_mode, new_mode, old_blob, new_blob)


def _mode(path: bytes) -> str:
    """The mode that git would store for what lies there; empty for what it would not store, or what is gone."""
    try:
        mode = os.lstat(path.rstrip(b"/")).st_mode
    except OSError:
        return ""
    kinds = {0o040000: GITLINK_MODE, 0o120000: SYMLINK_MODE, 0o100000: "100755" if mode & 0o100 else "100644"}
    return kinds.get(mode & 0o170000, "")
