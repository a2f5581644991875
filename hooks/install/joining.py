"""How our stub joins what is there: a plain hook, pre-commit, lefthook, husky, a team's folder. Source: design §6, targets 24.

Pure: it looks at a repository without us and says what install puts there. Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hooks.install.disk_nodes import File, Link, Node, Strange
from hooks.install.hooks_folder import CODE, HooksFolder
from hooks.install.record import Kind
from hooks.install.stub_text import (
    SAVED,
    STRICT_HOOKS,
    Stub,
    calling_block,
    is_of_lefthook,
    is_of_pre_commit,
    is_shell,
    is_stub,
    place_of_call,
    render_stub,
)
from hooks.install.text_blocks import insert_block, strip_blocks
from parsers.faults import Fault

Look = Callable[[str], Node]


class Wanted(NamedTuple):
    """What shall stand at a path."""

    path: str
    kind: Kind
    node: File | Link


class Joined(NamedTuple):
    """How one hook comes to us, and in which order: for people."""

    hook: str
    how: str


class Plan(NamedTuple):
    """What install wants. `chained`: hooks that lefthook runs, so that its configuration must name us."""

    wanted: tuple[Wanted, ...] = ()
    joined: tuple[Joined, ...] = ()
    faults: tuple[Fault, ...] = ()
    chained: tuple[str, ...] = ()

    def __or__(self, other: Plan) -> Plan:
        """Both plans."""
        return Plan(
            self.wanted + other.wanted,
            self.joined + other.joined,
            self.faults + other.faults,
            self.chained + other.chained,
        )


class Site(NamedTuple):
    """The repository and what is to be put into it. `lefthook`: hooks that its configuration names. `mode`: of new hooks."""

    root: str
    common: str
    folder: HooksFolder
    hooks: tuple[str, ...]
    stub: Stub
    lefthook: frozenset[str] = frozenset()
    mode: int = 0o755

    @property
    def copies(self) -> str:
        """The folder of our own that committed hooks and lefthook call."""
        return f"{self.common}/shapeupd/hooks"


def plan_hooks(site: Site, look: Look) -> Plan:
    """What the hooks of a repository shall be, seen without us."""
    join = _join_private if site.folder.owner == "git" else _join_committed
    plan = Plan()
    for hook in site.hooks:
        plan |= join(site, hook, look)
    return plan


def _join_private(site: Site, hook: str, look: Look) -> Plan:
    """A hook in the machine's own folder: ours first, then what was there; lefthook's is left to lefthook."""
    path = f"{site.folder.path}/{hook}"
    node = look(path)
    chained = hook in site.lefthook or is_of_lefthook(node)
    copies, names = ((_copy(site, hook),), (hook,)) if chained else ((), ())
    if is_of_lefthook(node):
        return Plan(copies, (Joined(hook, "lefthook runs the gate, then its other commands"),), (), names)
    fault = _in_the_way(path, hook, node, look)
    if fault is not None:
        return Plan(copies, (), (fault,), names)
    saved = () if node is None or isinstance(node, Strange) else (Wanted(path + SAVED, "saved", node),)
    stub = Wanted(path, "stub", File(render_stub(site.stub, hook, site.folder.path, site.root), site.mode))
    return Plan((*copies, *saved, stub), (Joined(hook, _order(node)),), (), names)


def _order(node: Node) -> str:
    if node is None:
        return "the gate"
    if is_of_pre_commit(node):
        return "the gate first, then pre-commit"
    return "the gate first, then the hook that was there"


def _in_the_way(path: str, hook: str, node: Node, look: Look) -> Fault | None:
    """Why the hook is left alone; None where it can be joined."""
    if isinstance(node, Strange):
        return Fault(CODE, path, f"it is {node.what}", "git cannot run it and we do not touch it", "move it away")
    if is_stub(node):
        why = "to put it back as it was would lose what was changed"
        fix = f"move your own lines to {path}{SAVED} (it runs after ours), remove {path}, then `shapeupd install`"
        return Fault(CODE, path, "our stub was changed by someone", why, fix)
    if node is not None and look(path + SAVED) is not None:
        what = f"another hook stands here, and {hook}{SAVED} holds the one from before us"
        why = "only one of them can run after ours, and which one is yours to say"
        return Fault(CODE, path, what, why, f"join both into {path}, remove {path}{SAVED}, then `shapeupd install`")
    return None


def _join_committed(site: Site, hook: str, look: Look) -> Plan:
    """A hook in the working tree: our lines go into it, harmless where nothing of ours is installed."""
    folder = site.folder
    if hook in STRICT_HOOKS and folder.path != folder.scripts and look(f"{folder.path}/{hook}") is None:
        stub = File(render_stub(site.stub, hook, folder.path, site.root), site.mode)  # husky has no such hook
        return Plan((Wanted(f"{folder.path}/{hook}", "stub", stub),), (Joined(hook, "the gate"),))
    path = f"{folder.scripts}/{hook}"
    node = look(path)
    fault = _not_ours_to_edit(path, hook, node, site)
    if fault is not None:
        return Plan((_copy(site, hook),), (), (fault,))
    found = node if isinstance(node, File) else File(b"#!/bin/sh\n", site.mode)
    text = strip_blocks(found.data)
    edited = File(insert_block(text, calling_block(hook), place_of_call(text)), found.mode)
    manager = "husky" if folder.owner == "husky" else "the folder's own hook"
    how = f"the gate first, then the rest of {manager}'s script" if isinstance(node, File) else "the gate"
    return Plan((_copy(site, hook), Wanted(path, "lines", edited)), (Joined(hook, how),))


def _not_ours_to_edit(path: str, hook: str, node: Node, site: Site) -> Fault | None:
    fix = f'let it first run `"$(git rev-parse --git-common-dir)/shapeupd/hooks/{hook}" "$@"` and end with its status'
    match node:
        case None:
            return None
        case Link(target):
            why = "what is written through a link lands in a file that someone else owns"
            return Fault(CODE, path, f"it is a symbolic link to {target}", why, fix)
        case Strange(what):
            return Fault(CODE, path, f"it is {what}", "git cannot run it and we do not touch it", "move it away")
        case File(data, mode):
            if not is_shell(data):
                return Fault(CODE, path, "it is no shell script", "our lines are sh", fix)
            if site.folder.path == site.folder.scripts and not mode & 0o111:
                why = "git does not run it, and to make it run would start what somebody switched off"
                return Fault(CODE, path, "it is not executable", why, f"chmod +x {path}, or remove it")
    return None


def _copy(site: Site, hook: str) -> Wanted:
    return Wanted(
        f"{site.copies}/{hook}", "copy", File(render_stub(site.stub, hook, site.copies, site.root), site.mode)
    )
