"""What an audit remembers across restarts, `.shapeup/audit.json`, and what hooks left for it. Source: rulings E6, E16.

Agents can write both files, so both are read with care; whoever removes them is judged anew.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from daemon.disk import DiskTree
from daemon.writes import replace_file
from hooks.accepted import ACCEPTS, tail_of
from parsers.layout import path_of
from parsers.times import parse_time, render_time
from parsers.tree import Unreadable

SCHEMA = 1
KNOWN = 500  # earlier tips: branches that moved or went
NOTES_BYTES = 1024 * 1024  # of the end of the notes
REFLOG_BYTES = 1 << 14
FETCHED_BYTES = 16 * 1024 * 1024

OBJECT_ID = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")


class Memory(NamedTuple):
    """The time of the last audit, the tips that it saw, and earlier tips, newest last: all that these reach is judged."""

    at: datetime
    tips: Mapping[str, str]
    known: tuple[str, ...] = ()

    def moved_to(self, at: datetime, tips: Mapping[str, str]) -> Memory:
        """The memory after an audit of these tips."""
        left = set(tips.values())
        known = dict.fromkeys((*self.known, *(tip for tip in self.tips.values() if tip not in left)))
        return Memory(at, tips, tuple(known)[-KNOWN:])


def read_memory(root: Path) -> Memory | None:
    """The memory; None where there is none, or none that can be understood."""
    try:
        data = DiskTree(root).read(path_of("audit"))
        value = json.loads(data or b"null")
        at, tips, known = parse_time(value["at"]), value["tips"], value["known"]
    except (Unreadable, OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    texts = (*tips.keys(), *tips.values(), *known) if isinstance(tips, dict) and isinstance(known, list) else (None,)
    if at is None or value.get("schema") != SCHEMA or not all(isinstance(text, str) for text in texts):
        return None
    if not all(map(OBJECT_ID.match, (*tips.values(), *known))):
        return None  # they are handed to git
    return Memory(at, tips, tuple(known))


def write_memory(root: Path, memory: Memory) -> None:
    """Write it down. Raises OSError, Unreadable."""
    document = {"schema": SCHEMA, "at": render_time(memory.at), "tips": dict(memory.tips), "known": list(memory.known)}
    replace_file(root, path_of("audit"), (json.dumps(document, indent=1) + "\n").encode())


def accepts_path(common_dir: Path) -> Path:
    """Where hooks note the commits that they let pass: `<commit> <order_id or ->`, one a line."""
    return common_dir / ACCEPTS


def read_notes(common_dir: Path) -> frozenset[str]:
    """The commits that hooks let pass, the newest of them."""
    lines = tail_of(accepts_path(common_dir), NOTES_BYTES).split(b"\n")
    return frozenset(line.split(b" ")[0].decode("ascii", "replace") for line in lines if line)


def fetched_tips(root: Path, git_dirs: Iterable[Path]) -> frozenset[str]:
    """What the last fetch of each worktree brought. What was fetched from this very repository was made here."""
    here = (b" of .", b" of " + os.fsencode(root), b" of " + os.fsencode(root / ".git"))
    found = set()
    for folder in git_dirs:
        for line in tail_of(folder / "FETCH_HEAD", FETCHED_BYTES).split(b"\n"):
            commit, tab, source = line.partition(b"\t")
            name = commit.decode("ascii", "replace")
            if tab and OBJECT_ID.match(name) and not source.rstrip(b"/").endswith(here):
                found.add(name)
    return frozenset(found)


def pushed_since(common_dir: Path, since: datetime) -> tuple[frozenset[str], frozenset[str]]:
    """The tips that pushes from here gave to remote-tracking refs since then, and the tips these had before.

    A remote-tracking ref hides what came from elsewhere; what was made here and pushed at once is still to be judged.
    """
    pushed, before = set(), set()
    for folder, _, names in os.walk(common_dir / "logs" / "refs" / "remotes"):
        for name in names:
            oldest = ""
            for line in reversed(tail_of(Path(folder) / name, REFLOG_BYTES).splitlines()):
                moved, _, message = line.partition(b"\t")
                words = moved.decode("utf-8", "replace").split(" ")
                if message != b"update by push" or not words[-2].isdecimal() or int(words[-2]) < since.timestamp() - 1:
                    break
                oldest = words[0]
                pushed.add(words[1])
            before |= {oldest} if oldest.strip("0") else set()
    return frozenset(pushed), frozenset(before)


def shallow_commits(common_dir: Path) -> frozenset[str]:
    """Commits whose parents are not here: they came by a fetch."""
    return frozenset(tail_of(common_dir / "shallow", FETCHED_BYTES).decode("ascii", "replace").split())


def rebased_tips(common_dir: Path, heads: Mapping[str, str]) -> dict[str, str]:
    """Where each branch under rebase stood before: old tip by the HEAD that is taking its place."""
    found = {}
    for name, head in heads.items():
        folder = (common_dir / name).parent
        for state in ("rebase-merge", "rebase-apply"):
            old = tail_of(folder / state / "orig-head", 128).decode("ascii", "replace").strip()
            if OBJECT_ID.match(old):
                found[old] = head
    return found
