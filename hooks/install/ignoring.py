"""Whether git ignores the local tier, and our lines in `info/exclude` where nothing else does. Source: cli §2, R-37.

Light module: standard library only.
"""

from __future__ import annotations

import os

from hooks.git import run_git
from hooks.install.disk_nodes import File, Link, Strange
from hooks.install.hooks_folder import CODE, settings_env
from hooks.install.joining import Look, Plan, Wanted
from hooks.install.text_blocks import append_block, block, strip_blocks
from parsers.faults import Fault

LOCAL_TIER = ".shapeup/"


def ignored_by(root: str, path: str) -> tuple[str, int] | None:
    """The file and line of the pattern that makes git ignore the path; None where git would offer it for a commit."""
    ran = run_git(
        "-C", root, "check-ignore", "-v", "-z", "--no-index", "--stdin", stdin=os.fsencode(path), env=settings_env()
    )
    fields = ran.out.split(b"\0")
    if ran.status != 0 or len(fields) < 4 or fields[2].startswith(b"!"):
        return None
    source = os.fsdecode(fields[0])
    return os.path.realpath(os.path.join(root, source)), int(fields[1] or 0)


def is_ignored_without_us(root: str, common: str, path: str, look: Look) -> bool:
    """Whether a pattern that is not ours makes git ignore the path."""
    by = ignored_by(root, path)
    exclude = f"{common}/info/exclude"
    if by is None or by[0] != os.path.realpath(exclude):
        return by is not None
    node = look(exclude)
    if not isinstance(node, File):
        return True
    lines, theirs = node.data.splitlines(), strip_blocks(node.data).splitlines()
    return lines[by[1] - 1] in theirs


def plan_ignore(common: str, patterns: tuple[str, ...], look: Look) -> Plan:
    """Our lines in `info/exclude`; nothing where no pattern is needed."""
    path = f"{common}/info/exclude"
    node = look(path)
    if not patterns:
        return Plan()
    if isinstance(node, Link | Strange):
        what = f"it is a symbolic link to {node.target}" if isinstance(node, Link) else f"it is {node.what}"
        why = "what is written through a link lands in a file that someone else owns"
        return Plan(faults=(Fault(CODE, path, what, why, f"add {' and '.join(patterns)} to .gitignore"),))
    found = node if isinstance(node, File) else File(b"", 0o644)
    ours = block("the local tier is never committed", patterns)
    edited = File(append_block(strip_blocks(found.data), ours), found.mode)
    return Plan((Wanted(path, "lines", edited),))
