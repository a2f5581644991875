"""The worktrees of a repository, as git lists them. Source: design §6, ruling E18.

Light module: standard library only.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from hooks.git import ask_git
from hooks.install.hooks_folder import settings_env


class Worktree(NamedTuple):
    """One worktree. `is_there`: its folder exists (a removable disk may hold it, or someone deleted it)."""

    path: str
    is_there: bool


def list_worktrees(root: str) -> tuple[Worktree, ...]:
    """The main worktree first, then the linked ones; a bare repository itself is none. Raises GitFailed."""
    out = ask_git("-C", root, "worktree", "list", "--porcelain", "-z", env=settings_env())
    found = []
    for record in out.split(b"\0\0"):
        lines = record.split(b"\0")
        if lines[0].startswith(b"worktree ") and b"bare" not in lines:
            path = os.fsdecode(lines[0].removeprefix(b"worktree "))
            found.append(Worktree(path, os.path.isdir(path)))
    return tuple(found)


def linked_worktrees(root: str) -> tuple[str, ...]:
    """The folders of the linked worktrees that exist, by their real paths."""
    real = (os.path.realpath(tree.path) for tree in list_worktrees(root) if tree.is_there)
    return tuple(path for path in real if path != root)
