"""Our command in `lefthook-local.yml`, because lefthook writes its hook files anew as it likes. Source: design §6, targets 24.

The rest of the file keeps its bytes; what comes out is read again, and must say what was there and our commands.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping

from daemon.yaml_file import NotYaml, Spot, find_spots, read_yaml
from hooks.install.disk_nodes import File, Link, Node, Strange, read_node
from hooks.install.hooks_folder import CODE
from hooks.install.joining import Look, Plan, Wanted
from hooks.install.stub_text import HOOKS, READS_STDIN, STRICT_HOOKS
from hooks.install.text_blocks import append_block, block, insert_block, strip_blocks
from parsers.faults import Fault

COMMAND = "shapeupd"
_BASES = ("lefthook", ".lefthook", ".config/lefthook")
_ENDINGS = ("yml", "yaml", "json", "jsonc", "toml")
_TITLE = "the gate"
_ARGUMENTS = {
    "commit-msg": ('"$gate" "{1}"',),
    "prepare-commit-msg": (
        'set -- "{1}" "{2}" "{3}"',
        'case "$3" in "{"*) set -- "$1" "$2" ;; esac',  # lefthook leaves the name of an argument that git did not give
        'case "$2" in "{"*) set -- "$1" ;; esac',
        '"$gate" "$@"',
    ),
    "pre-push": ("\"$gate\" '{1}' '{2}'",),
    "reference-transaction": ('"$gate" "{1}"',),
}


def find_config(worktree: str) -> str | None:
    """The configuration that lefthook reads in this worktree; None: it finds none and lets everything pass."""
    return _first(worktree, "")


def find_local(worktree: str) -> str | None:
    """The configuration of this machine beside it; None where there is none."""
    return _first(worktree, "-local")


def _first(worktree: str, suffix: str) -> str | None:
    paths = (f"{worktree}/{base}{suffix}.{ending}" for base in _BASES for ending in _ENDINGS)
    return next((path for path in paths if os.path.lexists(path)), None)


def hooks_of(worktree: str) -> frozenset[str]:
    """Our hooks that the configuration names. What it draws in from elsewhere shows in the hook files that lefthook writes."""
    path = find_config(worktree)
    node = read_node(path) if path else None
    if path is None or not isinstance(node, File):
        return frozenset()
    try:
        document = _read(path, node.data)
    except (NotYaml, ValueError):
        return frozenset()
    names = document.keys() if isinstance(document, dict) else ()
    return frozenset(names) & frozenset((*HOOKS, *STRICT_HOOKS))


def _read(path: str, data: bytes) -> object:
    if path.endswith(".toml"):
        return tomllib.loads(data.decode())
    return json.loads(data) if path.endswith((".json", ".jsonc")) else read_yaml(data)


def plan_local(worktree: str, hooks: tuple[str, ...], look: Look) -> Plan:
    """Our commands for these hooks in the worktree's own `lefthook-local.yml`."""
    path = find_local(worktree) or f"{worktree}/lefthook-local.yml"
    node = look(path)
    fault = _not_ours_to_edit(path, node)
    if fault is not None:
        return Plan(faults=(fault,))
    found = node if isinstance(node, File) else File(b"", 0o644)
    text: bytes | None = found.data
    for hook in hooks:
        text = add_command(text, hook, os.path.relpath(path, worktree)) if text is not None else None
    if text is None:
        what = f"our commands for {', '.join(hooks)} cannot be put in so that all else stays as it is"
        why = "the file has keys in braces, an anchor, or a command of our name"
        fix = "write the hooks as indented blocks, or call `<git common dir>/shapeupd/hooks/<hook>` from lefthook.yml"
        return Plan(faults=(Fault(CODE, path, what, why, fix),))
    return Plan((Wanted(path, "yaml", File(text, found.mode)),))


def _not_ours_to_edit(path: str, node: Node) -> Fault | None:
    if isinstance(node, Link | Strange):
        what = f"it is a symbolic link to {node.target}" if isinstance(node, Link) else f"it is {node.what}"
        why = "what is written through a link lands in a file that someone else owns"
        return Fault(CODE, path, what, why, "put a plain file in its place")
    if not path.endswith((".yml", ".yaml")):
        fix = f"write the same as lefthook-local.yml and remove it, then `shapeupd install`; or add {COMMAND!r} by hand"
        return Fault(CODE, path, "it is not YAML", "we edit lefthook's YAML only", fix)
    return None


def add_command(data: bytes, hook: str, name: str) -> bytes | None:
    """The text with our command for one hook; None where it cannot be put in and all else kept. `name`: the file's own."""
    try:
        spots = find_spots(data)
        if spots is None:
            return None
        edited = _insert(data, hook, name, spots)
        before, after = read_yaml(data), read_yaml(edited) if edited is not None else None
    except NotYaml:
        return None
    if edited is None or _command(after, hook) is None or _command(before, hook) is not None:
        return None
    return edited if _without(after, {hook}) == _without(before, set()) else None


def strip_commands(data: bytes) -> bytes | None:
    """The text without our commands; None where taking our lines out would change what the rest says."""
    rest = strip_blocks(data)
    try:
        before, after = read_yaml(data), read_yaml(rest)
    except NotYaml:
        return None
    every = {*HOOKS, *STRICT_HOOKS}
    return rest if _without(before, every) == _without(after, set()) else None


def _insert(data: bytes, hook: str, name: str, spots: Mapping[tuple[str, ...], Spot]) -> bytes | None:
    newline = "\r\n" if b"\r\n" in data else "\n"
    command = _command_lines(hook, name)
    commands = ("commands:", *_indented(command))
    spot = spots.get((hook,))
    if spot is None:
        return append_block(data, block(_TITLE, (f"{hook}:", *_indented(commands)), newline=newline))
    inner = spots.get((hook, "commands"))
    where = spot if inner is None else inner
    lines = commands if inner is None else command
    if where.value == "other":
        return None
    line, column = where.child_line, where.child_column
    if where.value == "nothing":
        line, column = where.line + 1, where.column + 2
    return insert_block(data, block(_TITLE, lines, indent=" " * column, newline=newline), line)


def _command_lines(hook: str, name: str) -> tuple[str, ...]:
    """One command. Without a file in its templates lefthook would leave it out of commits that only delete."""
    gate = f'gate="$(git rev-parse --git-common-dir)/shapeupd/hooks/{hook}"'
    run = (": {files}", gate, '[ -x "$gate" ] || exit 0', *_ARGUMENTS.get(hook, ('"$gate"',)))
    stdin = ("  use_stdin: true",) if hook in READS_STDIN else ()
    return (f"{COMMAND}:", "  priority: 1", f"  files: echo {name}", *stdin, "  run: |", *_indented(run, "    "))


def _indented(lines: tuple[str, ...], by: str = "  ") -> tuple[str, ...]:
    return tuple(by + line for line in lines)


def _command(document: object, hook: str) -> object:
    found = document.get(hook) if isinstance(document, dict) else None
    commands = found.get("commands") if isinstance(found, dict) else None
    return commands.get(COMMAND) if isinstance(commands, dict) else None


def _without(document: object, hooks: set[str]) -> object:
    """The document without our command in these hooks, and without keys that hold nothing."""
    if not isinstance(document, dict):
        return document or {}
    found = {}
    for key, value in document.items():
        if key in hooks and isinstance(value, dict) and isinstance(value.get("commands"), dict):
            commands = {name: command for name, command in value["commands"].items() if name != COMMAND}
            value = value | {"commands": commands}
        if isinstance(value, dict):
            value = {name: inner for name, inner in value.items() if inner not in (None, {})}
        if value not in (None, {}):
            found[key] = value
    return found
