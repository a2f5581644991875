"""Which files grade an attempt, as its commands name them, and `receipts/graders.jsonl`. Source: ruling G5.

Light module: standard library and light parsers only.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from parsers.ledgers import parse_rows, render_row
from parsers.markdown import encode

MAX_FILES = 2000  # in one row, so that it stays below the size of a line that readers take in
_WORD = re.compile(r"""(?P<to>[0-9&]*>>?\s*)?(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<plain>[^\s"'`;|&<>()]+))""")
_PLACE = re.compile(r"(?P<path>.*?)(?:::.*|:[0-9]+(?::[0-9]+)?)\Z", re.DOTALL)
_GOES_TO = frozenset({"cd", "pushd", "-C", "--prefix", "--cwd", "--dir", "--directory"})
_SHELLS = re.compile(r"[\s;|&<>()]")
_TESTS = re.compile(r"(?:\A|[/_.-])_*(?:tests?|specs?|e2e|testdata|fixtures)_*(?:\Z|[/_.-])", re.IGNORECASE)


class GraderRow(NamedTuple):
    """The graders of one order when it was admitted: `files` by path, their hashes. `commands`: the hash of the commands themselves.

    `order_sha256`: of the order's bytes then. `left_out`: how many more files there were than a row takes.
    """

    at: str
    order_id: str
    order_sha256: str
    scope_id: str
    commands: str
    files: Mapping[str, str]
    run_id: str | None = None
    left_out: int = 0


def hash_commands(commands: Iterable[str]) -> str:
    """The hash of the commands in their order."""
    return hashlib.sha256(b"\0".join(map(encode, commands))).hexdigest()


def named_paths(commands: Iterable[str]) -> tuple[str, ...]:
    """Every text in the commands that may name a path below the folder they run in; most of them name none.

    A file that a command writes (`> out`) and a folder it goes to (`cd x`) are no graders; what follows is looked for there too.
    """
    return tuple(dict.fromkeys(path for command in commands for path in _paths(command)))


def _paths(command: str) -> Iterator[str]:
    bases, before = [""], ""
    for found in _WORD.finditer(command):
        word = found["plain"] or found["double"] or found["single"] or ""
        name, _, value = word.partition("=")
        if found["to"] is not None:
            continue
        if before in _GOES_TO or (name in _GOES_TO and value):
            bases.append(posixpath.join(bases[-1], value if name in _GOES_TO else word))
        elif found["plain"] is None and _SHELLS.search(word):
            yield from _paths(word)  # a command in quotes: `sh -c "pytest tests/a.py"`
            yield from _below(bases, word)
        else:
            yield from _below(bases, word)
        before = word


def _below(bases: list[str], word: str) -> Iterator[str]:
    for part in (word, *word.partition("=")[2:], *(word.split(",") if "," in word else ())):
        place = _PLACE.match(part)
        for text in filter(None, (part, place["path"]) if place else (part,)):
            for base in bases:
                if path := inner_path(posixpath.join(base, text)):
                    yield path


def inner_path(text: str) -> str | None:
    """The path below the folder, without `.` and `..`; None for the folder itself, what lies outside, and what no path can be."""
    if not text or "\0" in text or "\n" in text or text.startswith(("/", "~", "-")):
        return None
    path = posixpath.normpath(text)
    return None if path == "." or path == ".." or path.startswith(("../", "/")) else path


def says_tests(folder: str) -> bool:
    """Whether a folder's path says that tests are kept there: of a folder that is named in a command, only then its files grade."""
    return _TESTS.search(folder) is not None


def render_grader_row(row: GraderRow) -> str:
    """The line of one row."""
    fields: dict[str, object] = {"at": row.at}
    if row.run_id is not None:
        fields["run_id"] = row.run_id
    fields |= {"order_id": row.order_id, "order_sha256": row.order_sha256, "scope_id": row.scope_id}
    fields |= {"commands": row.commands, "files": dict(row.files)}
    return render_row({**fields, "left_out": row.left_out} if row.left_out else fields)


def parse_graders(data: bytes) -> tuple[GraderRow, ...]:
    """The rows in file order; those that cannot be read are skipped."""
    return tuple(row for raw in parse_rows(data) if (row := _row(raw)))


def _row(raw: Mapping[str, object]) -> GraderRow | None:
    at, order_id, order_sha256, scope_id, commands = (
        value if isinstance(value := raw.get(key), str) else ""
        for key in ("at", "order_id", "order_sha256", "scope_id", "commands")
    )
    files, run_id, left_out = raw.get("files"), raw.get("run_id"), raw.get("left_out")
    if not order_id or not isinstance(files, dict) or not all(isinstance(value, str) for value in files.values()):
        return None
    return GraderRow(
        at,
        order_id,
        order_sha256,
        scope_id,
        commands,
        files,
        run_id if isinstance(run_id, str) else None,
        left_out if isinstance(left_out, int) else 0,
    )
