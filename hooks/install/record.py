"""`<git common dir>/shapeupd/install.json`: what install found, what it put there. Source: targets 24, design §6.

It is written before anything else is, so an install that dies half-way is completed or undone by the next run.
Light module: standard library only.
"""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import Literal, NamedTuple

from hooks.install.disk_nodes import File, Link, Node
from hooks.install.hooks_folder import is_below

SCHEMA = 1
Kind = Literal["stub", "saved", "copy", "lines", "yaml", "settings"]
_KINDS: tuple[Kind, ...] = ("stub", "saved", "copy", "lines", "yaml", "settings")


class Entry(NamedTuple):
    """One path that install changed. `before` is what it held without us; `ours` what we put there, as `state_of` tells it
    (several while a run is under way: the old and the new)."""

    path: str
    kind: Kind
    before: Node
    ours: tuple[str, ...]

    def holds(self, node: Node) -> bool:
        """Whether the node is ours; permission bits may have changed since."""
        return state_of(node) in self.ours


class Record(NamedTuple):
    """Everything that install changed. `folders`: made by it, outermost first. `strict`: reference-transaction too."""

    entries: tuple[Entry, ...] = ()
    folders: tuple[str, ...] = ()
    strict: bool = False


def state_of(node: Node) -> str:
    """A short name for what stands somewhere, its permission bits apart."""
    match node:
        case File(data):
            return sha256(data).hexdigest()
        case Link(target):
            return f"link {target}"
        case None:
            return "nothing"
    return node.what


def render_record(record: Record, root: str, common: str) -> bytes:
    """The file. Paths are told from the git dir or the working tree, so that the repository may be moved."""
    document = {
        "schema": SCHEMA,
        "strict": record.strict,
        "folders": [_told(path, root, common) for path in record.folders],
        "entries": [
            {
                "path": _told(entry.path, root, common),
                "kind": entry.kind,
                "before": _node_row(entry.before),
                "ours": list(entry.ours),
            }
            for entry in sorted(record.entries)
        ],
    }
    return (json.dumps(document, indent=1) + "\n").encode("ascii")


def parse_record(data: bytes, root: str, common: str) -> Record | None:
    """The record; None for bytes that are not exactly one."""
    try:
        document = json.loads(data)
        if document["schema"] != SCHEMA:
            return None
        entries = tuple(_entry(row, root, common) for row in document["entries"])
        folders = tuple(_path(text, root, common) for text in document["folders"])
        return Record(entries, folders, bool(document["strict"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, StopIteration):
        return None


def _entry(row: dict[str, object], root: str, common: str) -> Entry:
    kind: Kind = next(name for name in _KINDS if name == row["kind"])
    ours = row["ours"]
    if not isinstance(ours, list):
        raise TypeError
    return Entry(_path(row["path"], root, common), kind, _node(row["before"]), tuple(map(str, ours)))


def _told(path: str, root: str, common: str) -> str:
    for name, base in (("$GIT", common), ("$ROOT", root)):
        if is_below(path, base):
            return f"{name}/{path[len(base) :].lstrip('/')}"
    return path


def _path(text: object, root: str, common: str) -> str:
    if not isinstance(text, str) or not text.startswith(("/", "$GIT/", "$ROOT/")) or "/../" in f"{text}/":
        raise ValueError
    for name, base in (("$GIT/", common), ("$ROOT/", root)):
        if text.startswith(name):
            return f"{base.rstrip('/')}/{text.removeprefix(name)}"
    return text


def _node_row(node: Node) -> dict[str, str] | None:
    match node:
        case File(data, mode):
            return {"mode": f"{mode:o}", "base64": base64.b64encode(data).decode("ascii")}
        case Link(target):
            return {"link": target}
    return None


def _node(row: object) -> Node:
    match row:
        case None:
            return None
        case {"mode": str(mode), "base64": str(text)}:
            return File(base64.b64decode(text, validate=True), int(mode, 8) & 0o7777)
        case {"link": str(target)}:
            return Link(target)
    raise ValueError
