"""What the trace lint looks at: requirements, covers clauses, wiring map, profile, sources. Source: protocol §5.3, §10, W-32."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from parsers.contracts import ParsedContract, Row, parse_contract, unreadable_clause
from parsers.frontmatter import Value, scalar_text
from parsers.layout import folder_of, path_of, stem_at
from parsers.markdown import Row as TableRow
from parsers.markdown import Table, decode, parse_tables, split_cells
from parsers.strict_json import parse_strict
from parsers.tasks import parse_boxes, without_covers
from parsers.tree import Tree, Unreadable
from reducers.lint_spec.facts import TASK_NAME, unread_fault

_REQUIREMENT = re.compile(r"\bREQ-[A-Z0-9][A-Z0-9-]*", re.ASCII)
_RULE = re.compile(r"\|[\s:|-]*-[\s:|-]*\Z")
_STATUS = 3  # the column of the status where no header names it
_CUT = re.compile(r"\bcut\b", re.IGNORECASE | re.ASCII)


class Requirement(NamedTuple):
    """One row of the registry. `line` counts from 1."""

    id: str
    clause: str
    status: str
    line: int

    @property
    def is_cut(self) -> bool:
        """Whether it was cut, so that nothing need cover it."""
        return _CUT.search(self.status) is not None


class Cover(NamedTuple):
    """One id in the covers clause of a criterion, and where that stands."""

    id: str
    where: str


class Map(NamedTuple):
    """A contract of one of the two kinds, as it lies there. `unread`: why it does not read as a whole, and where."""

    path: str
    contract: ParsedContract
    text: str
    unread: tuple[tuple[str, str], ...] = ()

    @property
    def entries(self) -> tuple[Row, ...]:
        """The rows of a wiring map that name an engine."""
        return tuple(row for row in self.contract.rows if row.get("engine"))

    def line_of(self, row: Row) -> str:
        """Where a row stands, by the first line that names its engine; the file alone where none does."""
        engine = scalar_text(row["engine"])
        for at, line in enumerate(self.text.split("\n"), start=1):
            if engine in line:
                return f"{self.path}:{at}"
        return self.path


class TraceFacts(NamedTuple):
    """One feature. `requirements`: None where there is no registry. `tree`, `files`: the sources of the project."""

    slug: str
    tree: Tree
    files: frozenset[str]
    requirements: tuple[Requirement, ...] | None
    covers: tuple[Cover, ...]
    wiring: Map | None
    profile: Map | None


def read_trace_facts(tree: Tree, slug: str, files: Sequence[str]) -> TraceFacts:
    """The facts of one feature in this tree; `files`: the project's paths in it."""
    registry = _bytes(tree, path_of("requirements", slug))
    requirements = None if registry is None else parse_registry(decode(registry))
    wiring, profile = (_map(tree, kind, slug) for kind in ("wiring-map", "project-profile"))
    return TraceFacts(slug, tree, frozenset(files), requirements, tuple(_covers(tree, slug)), wiring, profile)


def parse_registry(text: str) -> tuple[Requirement, ...]:
    """The rows whose first cell names a requirement, the first row of each id. The status stands in the column of that name,
    else in the fourth cell, else in the last."""
    found: dict[str, Requirement] = {}
    lines = text.split("\n")
    for table in parse_tables(lines):
        column = table.header.index("status") if "status" in table.header else _STATUS
        for line, cells in (*_headless(table, lines), *table.rows):
            if cells and (named := _REQUIREMENT.search(cells[0])):
                status = cells[column] if column < len(cells) else cells[-1]
                clause = cells[1].strip() if len(cells) > 1 else ""
                found.setdefault(named[0], Requirement(named[0], clause, status.strip(), line + 1))
    return tuple(found.values())


def _headless(table: Table, lines: Sequence[str]) -> tuple[TableRow, ...]:
    """The first row of a table that no rule sets off as its header."""
    below = table.header_line + 1
    if below < len(lines) and _RULE.match(lines[below].strip()):
        return ()
    return (TableRow(table.header_line, split_cells(lines[table.header_line]) or ()),)


def _covers(tree: Tree, slug: str) -> Iterator[Cover]:
    folder = folder_of("board-index", slug)
    for name in tree.list(folder):
        path = f"{folder}/{name}"
        data = _bytes(tree, path) if TASK_NAME.match(name) else None
        if data is None or b"(covers:" not in data:
            continue
        for box in parse_boxes(decode(data)):
            clause = box.text[len(without_covers(box.text)) :]
            yield from (Cover(named, f"{path}:{box.line + 1}") for named in _REQUIREMENT.findall(clause))


def _map(tree: Tree, kind: str, slug: str) -> Map | None:
    """The contract, by its markdown where there is one, else by its older JSON form."""
    path = path_of(kind, slug)
    older = f"{path.rpartition('/')[0]}/{stem_at(path)}.json"
    for place in (path, older):
        try:
            data = tree.read(place)
        except (Unreadable, OSError) as stop:
            return Map(place, ParsedContract(kind, {}, (), {}), "", ((place, unread_fault(place, stop).what),))
        if data is not None:
            return _read_map(kind, place, data)
    return None


def _read_map(kind: str, path: str, data: bytes) -> Map:
    text = decode(data)
    if path.endswith(".md"):
        contract = parse_contract(kind, text, path)
        unread = [(f"{path}:{part.line}", unreadable_clause(part)) for part in contract.unreadable]
        if contract.fault:
            unread.append((path, contract.fault.what))
        return Map(path, contract, text, tuple(unread))
    read = parse_strict(data, path)
    if read.fault or not isinstance(read.value, dict):
        reason = read.fault.what if read.fault else "it is no JSON object"
        return Map(path, ParsedContract(kind, {}, (), {}), text, ((path, reason),))
    keys = {key: _value(item) for key, item in read.value.items()}
    entries = read.value.get("entries")
    rows = tuple(_row(item) for item in entries if isinstance(item, dict)) if isinstance(entries, list) else ()
    return Map(path, ParsedContract(kind, keys, rows, {}), text)


def _row(item: dict[str, object]) -> Row:
    return {key: value for key, one in item.items() if (value := _value(one)) is not None}


def _value(item: object) -> Value:
    if isinstance(item, list):
        return tuple(one for one in item if isinstance(one, str))
    return item if isinstance(item, str | int | bool) else None


def _bytes(tree: Tree, path: str) -> bytes | None:
    try:
        return tree.read(path)
    except (Unreadable, OSError):
        return None
