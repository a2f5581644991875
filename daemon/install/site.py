"""What install works on: this repository's hooks folder, this shapeupd, and all that is to be put in. Source: design §6."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import hooks
from daemon.install.service_unit import Unit, plan_unit
from daemon.install.settings_template import render_template
from daemon.place import Place
from hooks.git import GitFailed, run_git
from hooks.install.disk_nodes import File, read_node
from hooks.install.hooks_folder import CODE, HooksFolder, find_hooks_folder, settings_env
from hooks.install.ignoring import LOCAL_TIER, is_ignored_without_us, plan_ignore
from hooks.install.joining import Look, Plan, Site, Wanted, plan_hooks
from hooks.install.leaving import STRIPS, Strip
from hooks.install.record import Kind
from hooks.install.repository import Repository
from hooks.install.stub_text import HOOKS, STRICT_HOOKS, Stub
from hooks.install.worktrees import linked_worktrees
from parsers.faults import Fault
from parsers.layout import path_of


def strips() -> dict[Kind, Strip]:
    """How our lines are taken out of each kind of text."""

    def strip_yaml(data: bytes) -> bytes | None:
        from daemon.install.lefthook_file import strip_commands  # ruamel is loaded where lefthook is used

        return strip_commands(data)

    return {**STRIPS, "yaml": strip_yaml}


def common_of(place: Place) -> str:
    """The common git dir of a place that is a git repository."""
    return os.fspath(place.git_dir or place.root / ".git")


def repository_of(place: Place, folder: HooksFolder | None) -> Repository:
    """The repository as install sees it; a folder that is not ours to look into is left out."""
    common = common_of(place)
    own = (f"{common}/hooks",)
    return Repository(os.fspath(place.root), common, tuple(dict.fromkeys((*own, folder.path) if folder else own)))


def find_folder(place: Place) -> HooksFolder | Fault:
    """The hooks folder of the main worktree, or why there is none for us."""
    return find_hooks_folder(os.fspath(place.root), common_of(place))


def this_stub() -> Stub | Fault:
    """The stub of the shapeupd that runs now. The interpreter keeps the name it was started by: a venv lives by it."""
    folder = os.path.dirname(os.path.abspath(hooks.__file__))
    path = f"{folder}/stubs/gate.sh"
    try:
        with open(path, "rb") as file:
            template = file.read()
    except OSError as error:
        why = "it is part of shapeupd"
        return Fault(CODE, path, f"cannot be read: {error.strerror}", why, "install shapeupd again")
    if not sys.executable:
        why = "the hooks start shapeupd by it"
        return Fault(CODE, "shapeupd", "Python does not know its own path", why, "start shapeupd by its full path")
    return Stub(template, os.path.abspath(sys.executable), f"{folder}/__main__.py")


def site_of(place: Place, folder: HooksFolder, stub: Stub, *, strict: bool) -> Site:
    """All that the plan needs to know of the place."""
    root = os.fspath(place.root)
    mask = os.umask(0)
    os.umask(mask)
    names = (*HOOKS, *STRICT_HOOKS) if strict else HOOKS
    return Site(root, common_of(place), folder, names, stub, lefthook_hooks(root), 0o777 & ~mask)


def lefthook_hooks(root: str) -> frozenset[str]:
    """Our hooks that a lefthook configuration here names."""
    if not any(name.startswith(("lefthook", ".lefthook")) for name in os.listdir(root)) and not os.path.isdir(
        f"{root}/.config"
    ):
        return frozenset()
    from daemon.install.lefthook_file import hooks_of

    return hooks_of(root)


def planner(site: Site, unit: Unit | None = None) -> Callable[[Look], Plan]:
    """The whole plan: hooks, lefthook's file in every worktree, the ignore rule, the settings file, the service's unit."""

    def plan(look: Look) -> Plan:
        made = plan_hooks(site, look)
        patterns = []
        if not is_ignored_without_us(site.root, site.common, LOCAL_TIER + "probe", read_node):
            patterns.append(LOCAL_TIER)
        if made.chained:
            made |= _plan_lefthook(site, made.chained, look, patterns)
        made |= plan_ignore(site.common, tuple(patterns), look) | _plan_settings(site, look)
        return made if unit is None else made | plan_unit(unit, look)

    return plan


def _plan_lefthook(site: Site, chained: tuple[str, ...], look: Look, patterns: list[str]) -> Plan:
    from daemon.install.lefthook_file import find_config, plan_local

    made = Plan()
    for worktree in (site.root, *linked_worktrees(site.root)):
        if find_config(worktree) is not None:
            made |= plan_local(worktree, chained, look)
    for name in sorted({os.path.basename(item.path) for item in made.wanted if look(item.path) is None}):
        if not is_ignored_without_us(site.root, site.common, name, read_node):
            patterns.append(f"/{name}")  # of this machine only: nobody should commit it by accident
    return made


def _plan_settings(site: Site, look: Look) -> Plan:
    path = f"{site.root}/{path_of('settings')}"
    if look(path) is not None:
        return Plan()
    return Plan((Wanted(path, "settings", File(render_template(), 0o666 & site.mode)),))


def is_tracked(root: str, path: str) -> bool:
    """Whether git tracks the path, so that it is the team's by now."""
    try:
        return bool(run_git("-C", root, "ls-files", "-z", "--", path, env=settings_env()).out)
    except (GitFailed, OSError):
        return False
