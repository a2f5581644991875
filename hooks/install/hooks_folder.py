"""Where git looks for this repository's hooks, and whose folder that is. Source: design §6, targets 24, ruling E18.

Light module: standard library only.
"""

from __future__ import annotations

import os
from shlex import quote
from typing import Literal, NamedTuple

from hooks.git import run_git, scrubbed_env
from hooks.install.disk_nodes import first_link
from parsers.faults import Fault

Owner = Literal["git", "husky", "team"]
CODE = "E-HOOKS"


class HooksFolder(NamedTuple):
    """Where hooks lie. `path` is what git runs, `scripts` where a hook is written by hand (husky: another folder).

    `owner` git: the folder is this machine's own; husky, team: it lies in the working tree, so its files are committed.
    `setting` is the value of core.hooksPath; empty where it is not set.
    """

    path: str
    scripts: str
    owner: Owner
    setting: str = ""

    @property
    def is_relative(self) -> bool:
        """Whether each worktree looks for its own copy of the folder."""
        return bool(self.setting) and not self.setting.startswith(("/", "~"))


def settings_env() -> dict[str, str]:
    """The environment of a git that must read the settings which this person's git reads, and is led nowhere else."""
    kept = {key: value for key, value in os.environ.items() if key.startswith("GIT_CONFIG_")}
    return {**scrubbed_env(), **kept}


def hooks_path(worktree: str) -> str:
    """The folder that git in this worktree runs hooks from, absolute, whether it exists or not."""
    ran = run_git("-C", worktree, "rev-parse", "--git-path", "hooks", env=settings_env())
    text = os.fsdecode(ran.out).removesuffix("\n")
    return os.path.normpath(os.path.join(worktree, text)) if ran.status == 0 and text else ""


def find_hooks_folder(root: str, common: str) -> HooksFolder | Fault:
    """The hooks folder of the main worktree at `root`, or why nothing is installed there. Both paths are real paths."""
    path = hooks_path(root)
    if not path:
        why = "git says where hooks are looked for, and only git knows"
        return Fault(CODE, root, "git cannot name the hooks folder", why, f"run `git -C {root} status` and heed it")
    setting, origin = _setting(root)
    real = os.path.realpath(path)
    for owner_root in (common, root):
        if is_below(real, owner_root):
            return _link_fault(path, root, common) or _owned(real, owner_root == common, setting)
    return _outside(path, setting, origin, common)


def is_below(path: str, folder: str) -> bool:
    """Whether the path lies inside the folder."""
    return path.startswith(folder.rstrip("/") + "/")


def _owned(path: str, is_private: bool, setting: str) -> HooksFolder:
    if is_private:
        return HooksFolder(path, path, "git", setting)
    if os.path.basename(path) == "_":
        return HooksFolder(path, os.path.dirname(path), "husky", setting)
    return HooksFolder(path, path, "husky" if os.path.basename(path) == ".husky" else "team", setting)


def _link_fault(path: str, root: str, common: str) -> Fault | None:
    base = next((base for base in (common, root) if is_below(path, base)), None)
    link = first_link(path, base) if base else None
    if link is None:
        return None
    target = os.path.relpath(os.path.realpath(path), root)
    why = "what is written through a link lands in a file that someone else owns"
    fix = f"remove the link and run `git -C {root} config core.hooksPath {target}`, then `shapeupd install` again"
    return Fault(CODE, link, f"it is a symbolic link to {os.readlink(link)}", why, fix)


def _setting(root: str) -> tuple[str, tuple[str, str]]:
    """The value of core.hooksPath with its scope and origin; empty where it is not set."""
    asked = ("config", "--show-scope", "--show-origin", "-z", "--get", "core.hooksPath")
    fields = os.fsdecode(run_git("-C", root, *asked, env=settings_env()).out).split("\0")
    return (fields[2], (fields[0], fields[1])) if len(fields) >= 3 else ("", ("", ""))


def _outside(path: str, setting: str, origin: tuple[str, str], common: str) -> Fault:
    scope, source = origin
    if not setting:
        why = "hooks that many repositories share would judge all of them by this one's orders"
        return Fault(CODE, path, "git looks for hooks outside this repository", why, "move the folder into it")
    where = source.removeprefix("file:")
    what = f"core.hooksPath is {setting}, outside this repository (set in the {scope} scope)"
    why = "hooks there run for every repository that reads this setting, so they are not ours to change"
    match scope:
        case "local" | "worktree":
            fix = f"git config --{scope} --unset-all core.hooksPath"
        case "command":
            fix = "unset GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS"
        case _:
            fix = f"git config --local core.hooksPath {quote(common + '/hooks')}"  # a relative one fails in worktrees
    return Fault(CODE, where, what, why, f"{fix}; then `shapeupd install` again")
