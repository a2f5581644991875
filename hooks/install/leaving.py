"""What a repository would be without us, whatever has happened to our hooks since. Source: design §6, targets 24.

Pure: it looks, it changes nothing. Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from hooks.install.disk_nodes import File, Node
from hooks.install.hooks_folder import CODE
from hooks.install.joining import Look
from hooks.install.record import Entry, Kind, Record
from hooks.install.stub_text import SAVED, is_of_pre_commit, is_stub
from hooks.install.text_blocks import strip_blocks
from parsers.faults import Fault

LEGACY = ".legacy"  # what pre-commit calls the hook that it finds
OLD = ".old"  # what lefthook calls it; it is not run any more
Strip = Callable[[bytes], bytes | None]

STRIPS: Mapping[Kind, Strip] = {"lines": strip_blocks}


class Without(NamedTuple):
    """Paths that hold something of ours, and what they hold without it. `kept`: paths where our part cannot be taken out."""

    nodes: dict[str, Node]
    kept: dict[str, Fault]

    def keeps(self, entry: Entry) -> bool:
        """Whether the entry is needed once more; a hook and what was moved aside for it are one matter."""
        path = entry.path.removesuffix(SAVED)
        return path in self.kept or path + SAVED in self.kept


def without_us(record: Record, look: Look, strips: Mapping[Kind, Strip] = STRIPS) -> Without:
    """What every recorded path holds without us. `strips` takes our lines out of a text; its None: they cannot be told apart."""
    found = Without({}, {})
    for entry in record.entries:
        match entry.kind:
            case "stub":
                _undo_stub(entry, look, found)
            case "copy":
                found.nodes[entry.path] = None  # nobody else writes into our own folder
            case "settings":
                now = look(entry.path)
                found.nodes[entry.path] = entry.before if entry.holds(now) else now
            case "lines" | "yaml":
                _undo_text(entry, look, strips[entry.kind], found)
            case "saved":
                pass  # goes with its stub
    return found


def _undo_text(entry: Entry, look: Look, strip: Strip, found: Without) -> None:
    now = look(entry.path)
    if entry.holds(now) or now == entry.before:
        found.nodes[entry.path] = entry.before
        return
    if not isinstance(now, File):
        found.nodes[entry.path] = now
        return
    rest = strip(now.data)
    if rest is None:
        why = "someone changed the lines around ours, so what is ours cannot be told from what is theirs"
        fix = "take the lines between `>>> shapeupd` and `<<< shapeupd` out by hand"
        found.kept[entry.path] = Fault(CODE, entry.path, "our part cannot be taken out", why, fix)
        found.nodes[entry.path] = now
    elif entry.before is None and rest.strip() in (b"", b"#!/bin/sh"):
        found.nodes[entry.path] = None
    else:
        found.nodes[entry.path] = File(rest, now.mode)


def _undo_stub(entry: Entry, look: Look, found: Without) -> None:
    path = entry.path
    now, saved = look(path), look(path + SAVED)
    behind = next((name for name in (path + LEGACY, path + OLD) if is_stub(look(name))), None)
    found.nodes[path + SAVED] = None
    if behind is not None:
        found.nodes[behind] = None  # another tool moved ours there
    if entry.holds(now):
        found.nodes[path] = entry.before if saved is None else saved
    elif now is None:
        found.nodes[path] = saved
    elif is_stub(now):
        found.nodes[path], found.nodes[path + SAVED] = now, saved
        why = "to take it away would take away what was added to it"
        fix = f"move what is yours out of {path}, remove it, and run `shapeupd uninstall` again"
        found.kept[path] = Fault(CODE, path, "our stub was changed by someone", why, fix)
    else:
        found.nodes[path] = now
        _undo_displaced(path, now, saved, behind, look, found)


def _undo_displaced(path: str, now: Node, saved: Node, behind: str | None, look: Look, found: Without) -> None:
    """Another tool put its hook over ours. `saved` is the hook that ours had moved aside, `behind` where ours is now."""
    if saved is None or saved == now or (is_of_pre_commit(saved) and is_of_pre_commit(now)):
        return
    if behind is not None:
        found.nodes[behind] = saved
    elif saved != look(path + LEGACY):
        found.nodes[path + SAVED] = saved
        what = "the hook from before us lies here, and another one took its place since"
        fix = f"keep what you need of it in {path} and remove {path}{SAVED}"
        found.kept[path + SAVED] = Fault(CODE, path + SAVED, what, "which of the two is right is yours to say", fix)
