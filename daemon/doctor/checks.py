"""Proves each wall: a list of checks, each with what was found and one way to mend it. Source: cli §2, targets 24, 33, 34."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from daemon.place import Place
from daemon.scan import NETWORK_FILESYSTEMS, filesystem_of, survey
from parsers.faults import Fault, render_fault

LAYERED_FILESYSTEMS = frozenset(("overlay", "aufs", "fuse.fuse-overlayfs"))


class Check(NamedTuple):
    """One wall. `ok` None: there is nothing to prove here, and `what` says why. `fix` is empty unless `ok` is False."""

    name: str
    ok: bool | None
    what: str
    fix: str = ""


def red(name: str, fault: Fault) -> Check:
    """A check that failed for this reason."""
    return Check(name, False, f"{fault.where}: {fault.what} ({fault.why})", fault.fix)


def run_checks(place: Place) -> Iterator[Check]:
    """Every check, in the order in which one relies on the other."""
    from daemon.doctor import daemon_checks, hook_checks, service_checks

    yield from hook_checks.check_git(place)
    yield from daemon_checks.check_daemon(place)
    if place.git_dir is None:
        for name in hook_checks.NAMES:
            yield Check(name, None, "off: no git")
    else:
        yield from hook_checks.check_hooks(place)
    yield from daemon_checks.check_policy(place)
    yield check_settings(place)
    yield check_filesystem(place)
    yield check_limits(place)
    yield service_checks.check_instances()
    yield from service_checks.check_service(place)
    yield check_packages()


def check_settings(place: Place) -> Check:
    """Whether the three settings files say only what they may."""
    from daemon.configuration import load_settings
    from daemon.exits import Exit

    try:
        _, faults = load_settings(place)
    except Exit as ending:
        return Check("settings", False, ending.message, "correct the file; until then the daemon does not start")
    if faults:
        return Check("settings", False, "\n".join(map(render_fault, faults)), "correct or remove the line")
    return Check("settings", True, "all of them are in force")


def check_filesystem(place: Place) -> Check:
    """Whether the kernel tells of changes there, and locks hold."""
    kind = filesystem_of(place.root)
    if kind in NETWORK_FILESYSTEMS:
        what = f"{kind} tells of no changes that are made elsewhere, so shapeupd polls"
        return Check("file system", False, what, "move the working tree to a local disk")
    if kind in LAYERED_FILESYSTEMS:
        return Check("file system", True, f"{kind}: it loses sight of single files, so shapeupd watches folders")
    return Check("file system", True, kind or "not named by the kernel")


def check_limits(place: Place, limits: str = "/proc/sys/fs/inotify") -> Check:
    """Whether the kernel lets us watch every folder of the two trees."""
    allowed = _number(f"{limits}/max_user_watches")
    if allowed is None:
        return Check("inotify limits", None, "off: this kernel has no inotify")
    folders = len(survey(place.root).folders)
    what = f"{folders} folders to watch, {allowed} watches allowed for all programs of this user"
    if folders * 2 > allowed:
        fix = f"sudo sysctl fs.inotify.max_user_watches={max(65536, folders * 8)}"
        return Check("inotify limits", False, what, fix)
    return Check("inotify limits", True, what)


def _number(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def check_packages() -> Check:
    """Whether the four packages that run are ours: their names are plain ones, and another distribution may hold them too."""
    from importlib.metadata import distributions

    import daemon
    import hooks
    import parsers
    import reducers

    ours = {module.__name__ for module in (daemon, hooks, parsers, reducers)}
    homes = {os.path.dirname(str(module.__path__[0])) for module in (daemon, hooks, parsers, reducers)}
    others = set()
    for found in distributions():
        name = found.metadata["Name"]
        files = found.files or ()
        if name != "shapeupd" and any(len(file.parts) > 1 and file.parts[0] in ours for file in files):
            others.add(name)
    if others:
        what = f"{', '.join(sorted(others))} has put files into {', '.join(sorted(ours))} too"
        fix = (
            "install shapeupd alone in an environment of its own: `uv tool install shapeupd` or `pipx install shapeupd`"
        )
        return Check("packages", False, what, fix)
    if len(homes) != 1:
        fix = "install shapeupd again, alone in an environment of its own"
        return Check("packages", False, f"the four packages come from {', '.join(sorted(homes))}", fix)
    return Check("packages", True, f"all four from {homes.pop()}")
