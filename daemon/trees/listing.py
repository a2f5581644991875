"""Which files of a worktree a tree may speak about: git's own answer to what is tracked and what is ignored. Source: protocol §6.5, W-50, W-51, rulings G2, E13."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from daemon.trees.objects import FILE, LINK, PROGRAM, Area, Entry, folders_above, is_keepable
from daemon.trees.site import Site
from daemon.writes import TEMP_SUFFIX
from parsers.globs import may_meet

IGNORE_FILE = ".gitignore"
_FILES = ("--literal-pathspecs", "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
_IGNORED = ("--literal-pathspecs", "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
NESTED = "a repository of its own lies there"
IGNORED = "git ignores it"


class Listing(NamedTuple):
    """The area's paths that git knows or would take. `left`: what lies there and is no file of this tree, with the reason."""

    files: frozenset[str]
    tracked: frozenset[str]
    left: Mapping[str, str]


def list_files(site: Site, area: Area) -> Listing:
    """What git says of the area, tracked files that are gone included. Raises GitFailed."""
    files, tracked, left = set(), set(), {}
    is_nested = Nested(site)
    for line in _ask(site, _FILES, area):
        path = line[2:]
        if path.endswith("/"):
            if _meets(area, path):
                left[path.rstrip("/")] = NESTED
        elif area.holds(path) and not path.endswith(TEMP_SUFFIX):
            if top := is_nested.above(path):
                left[top] = NESTED
                continue
            files.add(path)
            if line[0] != "?":
                tracked.add(path)
    left |= dict.fromkeys(_outermost(path for path in _ask(site, _IGNORED, area) if _is_inside(area, path)), IGNORED)
    return Listing(frozenset(files), frozenset(tracked), left)


def _ask(site: Site, command: tuple[str, ...], area: Area) -> list[str]:
    roots = area.roots()
    if roots is None:
        return []
    return [os.fsdecode(path) for path in site.ask(*command, "--", *roots).split(b"\0") if path]


def _outermost(paths: Iterable[str]) -> Iterator[str]:
    """The paths without those that lie in a folder among them."""
    folder = "/"
    for path in sorted(paths):
        if not path.startswith(folder):
            folder = path if path.endswith("/") else folder
            yield path


def _is_inside(area: Area, path: str) -> bool:
    return (_meets(area, path) if path.endswith("/") else area.holds(path)) and not path.endswith(TEMP_SUFFIX)


def _meets(area: Area, folder: str) -> bool:
    """Whether the area may reach into the folder. Its own wildcard characters make the answer wider, never narrower."""
    return area.holds_folder(folder.rstrip("/")) or (
        is_keepable(folder.rstrip("/"))
        and all(any(may_meet(glob, f"{folder}**") for glob in globs) for globs in area.areas)
    )


class Nested:
    """Tells the paths that lie in another repository: a submodule, or one that somebody made there."""

    def __init__(self, site: Site) -> None:
        self._top = site.top
        self._kinds: dict[str, str] = {}

    def above(self, path: str) -> str | None:
        """The top of the other repository that holds the path, or is it; None where there is none."""
        for folder in (*reversed(folders_above(path)), path):
            kind = self._kinds.get(folder) or self._kinds.setdefault(folder, _kind_of(f"{self._top}/{folder}"))
            if kind == "top":
                return folder
            if kind == "link":
                return None
        return None


def _kind_of(folder: str) -> str:
    if os.path.islink(folder):
        return "link"
    return "top" if os.path.lexists(f"{folder}/.git") else "plain"


def read_tree(site: Site, commit: str) -> dict[str, Entry]:
    """Files and links of a commit's tree. Raises GitFailed."""
    found = {}
    for line in site.ask("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        head, _, path = line.partition(b"\t")
        if head:
            mode, _, blob = head.decode("ascii").split()
            if mode in (FILE, PROGRAM, LINK):
                found[os.fsdecode(path)] = Entry(mode, blob)
    return found


def id_length(site: Site) -> int:
    """How long the repository's object ids are. Raises GitFailed."""
    return 64 if site.ask("rev-parse", "--show-object-format").strip() == b"sha256" else 40


def ignored_by(site: Site, paths: Iterable[str], ignore_files: Mapping[str, Entry | None]) -> frozenset[str]:
    """Which of the paths the ignore files that are to stand would hide; those on disk where `ignore_files` says nothing,
    none where it says None.

    Asked in a folder that holds nothing but the ignore files. Raises GitFailed, OSError.
    """
    asked = list(paths)
    folders = {"", *(folder for path in asked for folder in folders_above(path))}
    with tempfile.TemporaryDirectory(prefix="shapeupd-ignore-") as top:
        for folder in sorted(folders):
            name = f"{folder}/{IGNORE_FILE}".lstrip("/")
            data = _ignore_file(site, name, ignore_files)
            if data is not None:
                os.makedirs(os.path.join(top, folder), exist_ok=True)
                with open(os.path.join(top, name), "wb") as file:
                    file.write(data)
        return _check_ignore(site, asked, top)


def _ignore_file(site: Site, name: str, ignore_files: Mapping[str, Entry | None]) -> bytes | None:
    if name in ignore_files:
        entry = ignore_files[name]
        return site.ask("cat-file", "blob", entry.blob) if entry and entry.mode != LINK else None
    try:
        with open(site.top / name, "rb") as file:
            return file.read()
    except OSError:
        return None


def _check_ignore(site: Site, paths: list[str], top: str) -> frozenset[str]:
    lines = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)  # or a colon would begin a pathspec
    out = site.ask("check-ignore", "-z", "--stdin", "--no-index", stdin=lines, top=top, fine=(0, 1))
    return frozenset(os.fsdecode(path[2:]) for path in out.split(b"\0") if path)
