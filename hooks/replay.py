"""Whether git is replaying commits that exist already. Source: ruling E17.

Left out on purpose: REVERT_HEAD. Measured on git 2.39, it is there after `revert -n` and after a conflict, when a person or
an agent makes the commit, and not there while one clean `git revert` commits. Light module: standard library only.
"""

from __future__ import annotations

import os

from hooks.git import run_git

# rebase; am and rebase --apply; one cherry-pick; a sequence of cherry-picks or reverts.
_SIGNS = ("rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "sequencer")


def is_replaying(git_dir: str) -> bool:
    """Whether a rebase, an `am` or a cherry-pick is under way in the worktree whose git folder this is.

    `git_dir`: as `git_dir_and_head` of hooks/changes.py gives it, or GIT_DIR of the hook.
    """
    if any(os.path.lexists(os.path.join(git_dir, sign)) for sign in _SIGNS):
        return True
    if not os.path.isdir(os.path.join(git_dir, "reftable")):
        return False
    return run_git("--git-dir", git_dir, "rev-parse", "-q", "--verify", "CHERRY_PICK_HEAD").status == 0
