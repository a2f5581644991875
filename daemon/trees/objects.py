"""What a kept tree is made of: entries, the paths that may be in it, and git's own bytes for them. Pure. Source: protocol §3.2, §6.5, W-52."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha1, sha256
from os import fsencode
from typing import NamedTuple

from parsers.globs import is_wild, matcher_of, tokens_of
from parsers.layout import LOCAL_ROOT, SHARED_ROOT, path_of

FILE, PROGRAM, LINK = "100644", "100755", "120000"
FOLDER = "40000"
MAX_ROOTS = 500  # paths that git is asked about by name
WRITER = b"shapeupd <shapeupd@localhost>"  # these commits are published nowhere
_MARK = "Shapeup-Tree: "
_OURS = frozenset({LOCAL_ROOT, SHARED_ROOT, path_of("settings")})
_GITS = frozenset({"", ".", "..", ".git", "git~1"})


class Entry(NamedTuple):
    """A file or a symbolic link: its mode as git writes it, the id of its bytes as they lie on disk (no filter ran)."""

    mode: str
    blob: str


class Note(NamedTuple):
    """What a commit of ours says about its tree.

    `areas`: a path belongs to it iff a glob of EACH matches. `left`: paths of the areas that it does not speak about.
    `trial` None and `tracked_only`: another tool kept it, and only what git tracked.
    """

    kind: str
    slug: str
    scope_id: str
    trial: int | None
    areas: tuple[tuple[str, ...], ...]
    left: tuple[str, ...] = ()
    run_id: str | None = None
    tracked_only: bool = False


class Area:
    """The paths that a tree may speak about. Git's own files and the two trees of shapeupd are never among them."""

    def __init__(self, areas: Iterable[tuple[str, ...]]) -> None:
        # A glob of a section opens a part of a file, and no file is brought back in part.
        self.areas = tuple(tuple(glob for glob in globs if "#" not in glob) for globs in areas)
        self._matchers = tuple(tuple(map(matcher_of, globs)) for globs in self.areas)
        tops = (tuple(glob.removesuffix("/**") for glob in globs if glob.endswith("/**")) for globs in self.areas)
        self._tops = tuple(tuple(map(matcher_of, globs)) for globs in tops)

    def holds(self, path: str) -> bool:
        """Whether the path is one of the area's."""
        return is_keepable(path) and all(any(match(path) for match in matchers) for matchers in self._matchers)

    def holds_folder(self, path: str) -> bool:
        """Whether the folder itself is the area's: everything of that name, or everything in it, may be written."""
        pairs = zip(self._matchers, self._tops, strict=True)
        return is_keepable(path) and all(any(match(path) for match in (*own, *tops)) for own, tops in pairs)

    def roots(self) -> tuple[str, ...] | None:
        """Literal paths at or below which all of the area lies; empty: anywhere; None: nowhere."""
        found = {_root(glob) for glob in self.areas[0]}
        if "" in found:
            return ()
        # git refuses a whole command for one path that leaves the repository, and nothing keepable lies there
        inside = tuple(sorted(filter(is_keepable, found)))
        if not inside:
            return None
        return inside if len(inside) <= MAX_ROOTS else ()


def _root(glob: str) -> str:
    first = tokens_of(glob)[0] if glob else ""
    if first == glob:
        return "" if is_wild(glob) else glob
    return "" if is_wild(first) else first.rpartition("/")[0]


def is_keepable(path: str) -> bool:
    """Whether a kept tree may hold the path at all."""
    parts = path.lower().split("/")
    return parts[0] not in _OURS and _GITS.isdisjoint(parts)


def folders_above(path: str) -> tuple[str, ...]:
    """The folders on the way to the path, the nearest first."""
    parts = path.split("/")
    return tuple("/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))


def hasher(id_length: int, size: int, kind: str = "blob") -> Callable[[bytes], str]:
    """A function that takes the bytes of an object in pieces; each call returns the id of all so far. `id_length`: 40 or 64."""
    digest = sha1(usedforsecurity=False) if id_length == 40 else sha256()
    digest.update(f"{kind} {size}\0".encode())

    def take(piece: bytes) -> str:
        digest.update(piece)
        return digest.hexdigest()

    return take


def write_trees(entries: Mapping[str, Entry], write: Callable[[bytes], str]) -> str:
    """The id of the tree that holds the entries; `write` stores one tree object and returns its id."""
    return _write_level({fsencode(path): entry for path, entry in entries.items()}, write)


def _write_level(entries: Mapping[bytes, Entry], write: Callable[[bytes], str]) -> str:
    below: dict[bytes, dict[bytes, Entry]] = {}
    rows: list[tuple[bytes, bytes, str]] = []
    for path, entry in entries.items():
        name, slash, rest = path.partition(b"/")
        if slash:
            below.setdefault(name, {})[rest] = entry
        else:
            rows.append((name, entry.mode.encode() + b" " + name, entry.blob))
    for name, inner in below.items():
        # git sorts a folder as if its name ended in a slash
        rows.append((name + b"/", FOLDER.encode() + b" " + name, _write_level(inner, write)))
    return write(b"".join(head + b"\0" + bytes.fromhex(blob) for _, head, blob in sorted(rows)))


def render_commit(tree: str, parents: Iterable[str], seconds: int, message: bytes) -> bytes:
    """A commit object."""
    who = WRITER + f" {seconds} +0000".encode()
    lines = [b"tree " + tree.encode(), *(b"parent " + parent.encode() for parent in parents)]
    return b"\n".join((*lines, b"author " + who, b"committer " + who, b"", message))


def render_note(note: Note) -> bytes:
    """The message of the commit: a sentence for people, a line for us."""
    trial = "" if note.trial is None else f", trial {note.trial}"
    fields = note._asdict()
    return f"shapeupd: {note.kind} {note.slug}/{note.scope_id}{trial}\n\n{_MARK}{json.dumps(fields)}\n".encode()


def parse_note(message: str) -> Note | None:
    """What a commit of ours says; None for another's."""
    line = next((line for line in message.splitlines() if line.startswith(_MARK)), None)
    try:
        fields = json.loads(line.removeprefix(_MARK)) if line else None
        if not isinstance(fields, dict):
            return None
        areas = tuple(tuple(map(str, globs)) for globs in fields.pop("areas"))
        return Note(areas=areas, left=tuple(map(str, fields.pop("left"))), **fields)
    except (ValueError, TypeError, KeyError):
        return None


def names_slug(message: str, slug: str) -> bool:
    """Whether the slug stands in the message as a word of its own. Source: W-68."""
    return re.search(rf"(?<![A-Za-z0-9-]){re.escape(slug)}(?![A-Za-z0-9-])", message) is not None
