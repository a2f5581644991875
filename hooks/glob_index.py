"""Finds which of very many globs match a path without trying each of them. Pure. Source: targets 18-20, ruling E10.

A thousand live orders hold thousands of globs, and a commit may change thousands of paths. Once more than a few paths have
been asked for, a glob is looked up by the folder it names before its first wildcard and by the text after its last one;
what is left over is tried. Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from parsers.globs import Matcher, literal_prefix, literal_tail, matcher_of, matches

Value = TypeVar("Value")
FEW = 8  # paths for which trying every glob is cheaper than filing them


class _Candidate(NamedTuple, Generic[Value]):
    """A glob with wildcards and what was filed under it. `matcher` is empty until a path first asks."""

    glob: str
    values: list[Value]
    matcher: list[Matcher]

    def matches(self, path: str) -> bool:
        if not self.matcher:
            self.matcher.append(matcher_of(self.glob))
        return self.matcher[0](path)


class _Filed(NamedTuple, Generic[Value]):
    """Globs without wildcards, and the others by the folder before the first one (its `/` included), by the length of the
    tail, and by the tail."""

    exact: dict[str, list[Value]]
    wild: dict[str, dict[int, dict[str, list[_Candidate[Value]]]]]


class GlobIndex(Generic[Value]):
    """Values filed under globs. What it answers does not change once it is made."""

    def __init__(self, rows: Iterable[tuple[str, Value]]) -> None:
        self._rows = list(rows)
        self._asked = 0
        self._filed: _Filed[Value] | None = None
        self._nearest: dict[str, Value] | None = None

    def __bool__(self) -> bool:
        return bool(self._rows)

    def find(self, path: str) -> Iterator[Value]:
        """What is filed under every glob that matches the path."""
        self._asked += 1
        if self._asked <= FEW:
            return _try_all(self._rows, path)
        if self._filed is None:
            self._filed = _file(self._rows)
        return _look_up(self._filed, path)

    def closest(self, path: str) -> Value | None:
        """What is filed under the glob that shares the deepest folder with the path; None where none shares any."""
        nearest = self._nearest
        if nearest is None:
            nearest = {}
            for glob, value in self._rows:
                for folder in _folders(literal_prefix(glob)):
                    nearest.setdefault(folder, value)
            self._nearest = nearest
        shared = (folder for folder in reversed(list(_folders(path))) if folder in nearest)
        return nearest[folder] if (folder := next(shared, "")) else None


def _try_all(rows: list[tuple[str, Value]], path: str) -> Iterator[Value]:
    for glob, value in rows:
        if path.startswith(literal_prefix(glob)) and path.endswith(literal_tail(glob)) and matches(glob, path):
            yield value


def _file(rows: list[tuple[str, Value]]) -> _Filed[Value]:
    by_glob: dict[str, list[Value]] = {}
    for glob, value in rows:
        by_glob.setdefault(glob, []).append(value)
    filed: _Filed[Value] = _Filed({}, {})
    for glob, values in by_glob.items():
        prefix = literal_prefix(glob)
        if prefix == glob:
            filed.exact[glob] = values
            continue
        tail = literal_tail(glob)
        shelf = filed.wild.setdefault(prefix[: prefix.rfind("/") + 1], {})
        shelf.setdefault(len(tail), {}).setdefault(tail, []).append(_Candidate(glob, values, []))
    return filed


def _look_up(filed: _Filed[Value], path: str) -> Iterator[Value]:
    yield from filed.exact.get(path, ())
    for folder in _folders(path) if filed.wild else ():
        for length, by_tail in filed.wild.get(folder, {}).items():
            tail = path[len(path) - length :] if length <= len(path) else None
            for candidate in by_tail.get(tail, ()) if tail is not None else ():
                if candidate.matches(path):
                    yield from candidate.values


def _folders(path: str) -> Iterator[str]:
    """The folders above a path, the outermost first, as `""`, `src/`, `src/ui/`."""
    yield ""
    at = path.find("/") + 1
    while at:
        yield path[:at]
        at = path.find("/", at) + 1
