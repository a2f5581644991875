"""Scope contracts, wiring maps and project profiles: markdown read as an object, and what in it could not be read. Source: protocol §10, W-63, W-73, W-74.

A contract that is read only in part says so: a field that silently parsed as absent would widen what its order may write.
Light module: hooks import it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from parsers.faults import Fault
from parsers.frontmatter import Frontmatter, Value, parse_frontmatter, parse_scalar, scalar_text
from parsers.markdown import BOM, parse_heading, scan_lines

Row = dict[str, Value]
ContractValue = Value | tuple[Row, ...]

UNREADABLE_KEY = "$unreadable_tables"
LEGACY_KEY = "$legacy_layout"

CELL_EDGE = re.compile(r"(?<!\\)\|")
_SEPARATOR = re.compile(r":?-{2,}:?\Z")
_BLANKS = re.compile(r"\s+")
_FIELD_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+\Z")
_USE_CASE = re.compile(r"UC-[A-Za-z0-9_.-]+")


class TableField(NamedTuple):
    """A field that is written as a table: its heading, and the columns by which the table is known elsewhere (§10.4)."""

    field: str
    heading: str
    signature: tuple[str, ...]


# The kinds of contract, as parsers/layout.py names them.
TABLE_FIELDS: Mapping[str, TableField | None] = {
    "scope-contract": TableField("affordance_manifest", "Affordances", ("test_id", "role")),
    "wiring-map": TableField("entries", "Wiring", ("use_case", "engine")),
    "project-profile": None,
}


class Unreadable(NamedTuple):
    """One part that parsed as absent, or beside its value (§10.5). `line` counts from 1; `rows` are what was found there.

    `case`: misplaced, both (an inline value and lines below it), indented, section, or use-cases (a per-use-case map).
    """

    case: str
    field: str
    expected_heading: str
    found_under: str
    rows: int
    line: int


class ParsedContract(NamedTuple):
    """A contract: `keys` of its frontmatter in file order, and the rows of its table field. `lines`: where each stands, from 1.

    `fault`: the frontmatter exceeds its limits, so nothing of it was read. `has_frontmatter` False: all of it is body.
    `near_miss`: a heading that would be the table's but for its spelling (W-63), and its line.
    """

    kind: str
    keys: dict[str, Value]
    rows: tuple[Row, ...]
    lines: dict[str, int]
    unreadable: tuple[Unreadable, ...] = ()
    has_frontmatter: bool = False
    legacy_layout: bool = False
    doubled: tuple[tuple[str, int], ...] = ()
    near_miss: tuple[str, int] | None = None
    fault: Fault | None = None

    def texts(self, field: str) -> tuple[str, ...]:
        """A list field's items; a single text is a list of one; () where the field is absent or no list of texts."""
        value = self.keys.get(field)
        return value if isinstance(value, tuple) else (value,) if isinstance(value, str) else ()

    @property
    def values(self) -> dict[str, ContractValue]:
        """All values: the table's rows count before a key of the same name, and stand behind the other keys."""
        table = TABLE_FIELDS[self.kind]
        return {**self.keys, table.field: self.rows} if table and self.rows else {**self.keys}


class TableLine(NamedTuple):
    """Where a table's line stands, counted from 0, and the columns it is read by; `is_row` False: the header itself."""

    at: int
    columns: tuple[str, ...]
    is_row: bool


class Section(NamedTuple):
    """A heading and the table rows whose nearest heading it is. `lines` are those of the tables, separators left out."""

    level: int
    text: str
    line: int
    rows: list[Row]
    lines: list[TableLine]


def parse_contract(kind: str, text: str, where: str = "") -> ParsedContract:
    """The contract of this kind (a key of TABLE_FIELDS); any text is one, at worst with nothing in it.

    A byte order mark hides the frontmatter: the block begins at byte 0 (§10.1; recorded, H2).
    """
    block, fault = (None, None) if text.startswith(BOM) else parse_frontmatter(text, where)
    sections = parse_sections(text, block.last + 1 if block else 0)
    keys = block.values if block else {}
    places = {key: at + 1 for key, at in block.lines.items()} if block else {}
    unreadable = list(_unread_keys(block)) if block else []
    rows: tuple[Row, ...] = ()
    legacy, near_miss = False, None
    if table := TABLE_FIELDS[kind]:
        rows, line, legacy = _table_rows(kind, table, sections, keys)
        if rows:
            places[table.field] = line
        elif table.field not in keys:
            unreadable += _misplaced(kind, table, sections)
            near_miss = next(((part.text, part.line) for part in sections if _is_near(part.text, table.heading)), None)
    unreadable += _fields_as_sections(table, sections, keys)
    return ParsedContract(
        kind,
        keys,
        rows,
        places,
        tuple(unreadable),
        block is not None,
        legacy,
        tuple((key, at + 1) for key, at in block.doubled) if block else (),
        near_miss,
        fault,
    )


def _unread_keys(block: Frontmatter) -> tuple[Unreadable, ...]:
    """The keys below which lines stand that the dialect cannot take in (§10.1)."""
    found = []
    for key, has_inline, rows, at in block.unread:
        if has_inline:
            expected, under = "an inline value OR an indented block, not both", "both"
        else:
            expected = f"{key}: [a, b]  (or an indented `- item` list)"
            under = "an indented block this dialect cannot read"
        found.append(Unreadable("both" if has_inline else "indented", key, expected, under, rows, at + 1))
    return tuple(found)


def parse_sections(text: str, start: int) -> list[Section]:
    """The headings of the body, which begins at line `start`, with their table rows.

    A blank line or a heading ends a table; prose does not (§10.4).
    """
    sections: list[Section] = []
    header: tuple[str, ...] | None = None
    for line in scan_lines(text.split("\n")[start:]):
        if line.fenced:
            continue
        if heading := parse_heading(line.text):
            sections.append(Section(*heading, start + line.at + 1, [], []))
            header = None
        elif not (row := line.text.strip()):
            header = None
        elif row.startswith("|") and sections:
            cells = [cell.replace("\\|", "|").strip() for cell in CELL_EDGE.split(row)[1:-1]]
            if is_separator(cells):
                continue
            is_row = header is not None
            if header is None:
                header = tuple(_BLANKS.sub("_", cell.lower()) for cell in cells)
            else:
                sections[-1].rows.append(_row(header, cells))
            sections[-1].lines.append(TableLine(start + line.at, header, is_row))
    return sections


def is_separator(cells: Iterable[str]) -> bool:
    """Whether a table line of these cells is the rule below a header, and so no row."""
    return all(_SEPARATOR.match(cell) for cell in cells)


def _row(header: tuple[str, ...], cells: list[str]) -> Row:
    read = ((name, parse_scalar(cell)) for name, cell in zip(header, cells, strict=False))
    return {name: value for name, value in read if value is not None}


def _table_rows(
    kind: str, table: TableField, sections: list[Section], keys: Mapping[str, Value]
) -> tuple[tuple[Row, ...], int, bool]:
    """The rows of the table field, the line of their heading, and whether they come from the legacy wiring layout."""
    own = [part for part in sections if part.text == table.heading and part.rows]
    if own or kind != "wiring-map" or table.field in keys:
        return tuple(row for part in own for row in part.rows), own[0].line if own else 0, False
    found = [(part.line, entry) for part in sections if (entry := _legacy_entry(part))]
    return tuple(entry for _, entry in found), found[0][0] if found else 0, bool(found)


def _legacy_entry(part: Section) -> Row | None:
    """The entry of one use case: its heading and the `Field | Value` table below; one for each heading (W-74)."""
    named = _USE_CASE.match(part.text)
    pairs = [row for row in part.rows if "field" in row]
    if not named or not pairs:
        return None
    entry: Row = {"use_case": named[0]}
    for row in pairs:
        if "value" in row:
            entry[_BLANKS.sub("_", scalar_text(row["field"]).lower().replace("`", "").strip())] = row["value"]
    return entry


def _misplaced(kind: str, table: TableField, sections: list[Section]) -> list[Unreadable]:
    """The table under another heading, the first such heading alone; else use case sections that hold no table."""
    grouped: dict[str, list[Row]] = {}
    for part in sections:
        grouped.setdefault(part.text, []).extend(part.rows)
    for part in sections:
        rows = grouped[part.text]
        if rows and all(name in rows[0] for name in table.signature):
            return [Unreadable("misplaced", table.field, table.heading, part.text, len(rows), part.line)]
    named = next((part.line for part in sections if _USE_CASE.match(part.text)), None)
    if kind != "wiring-map" or named is None:
        return []
    under = "per-entity sections whose tables this dialect could not read"
    return [Unreadable("use-cases", table.field, table.heading, under, 0, named)]


def _fields_as_sections(
    table: TableField | None, sections: list[Section], keys: Mapping[str, Value]
) -> list[Unreadable]:
    """Level-2 headings that are a field's name: they read as prose, so the field is absent."""
    found: dict[str, Unreadable] = {}
    for part in sections:
        name = part.text
        if part.level != 2 or not _FIELD_NAME.match(name) or name in keys or (table and name == table.field):
            continue
        under = f"a `## {name}` markdown section, which this dialect reads as prose"
        found.setdefault(name, Unreadable("section", name, name, under, 0, part.line))
    return list(found.values())


def _is_near(text: str, heading: str) -> bool:
    return text != heading and text.rstrip(" #:").casefold() == heading.casefold()


def contract_object(contract: ParsedContract) -> dict[str, object]:
    """The contract as the JSON object that envelopes carry: lists for tuples, diagnostics under their `$` keys (§10.5)."""
    found: dict[str, object] = {key: _json_value(value) for key, value in contract.values.items()}
    if contract.unreadable:
        found[UNREADABLE_KEY] = [
            {
                "field": part.field,
                "expected_heading": part.expected_heading,
                "found_under": part.found_under,
                "rows": part.rows,
            }
            for part in contract.unreadable
        ]
    if contract.legacy_layout:
        found[LEGACY_KEY] = True
    return found


def _json_value(value: ContractValue) -> object:
    if not isinstance(value, tuple):
        return value
    return [
        {name: _json_value(cell) for name, cell in item.items()} if isinstance(item, dict) else item for item in value
    ]


def unreadable_reason(contract: ParsedContract) -> str | None:
    """Why the contract does not read as a whole, one clause a part; None where it does."""
    return "; ".join(unreadable_clause(part) for part in contract.unreadable) or None


def unreadable_clause(part: Unreadable) -> str:
    """One unreadable part in words: the field, what was expected, what was found, what became of the value."""
    match part.case:
        case "both":
            return f"`{part.field}` has an inline value and {part.rows} line(s) below it; {part.expected_heading}: the line(s) below were not read"
        case "indented":
            return f"`{part.field}` has {part.rows} indented line(s) below it that this dialect cannot read, expected `{part.expected_heading}`; it parsed as ABSENT"
        case "section":
            return f"`{part.field}` stands in {part.found_under}; it must be a key of the frontmatter, and parsed as ABSENT"
        case "use-cases":
            return f"`{part.field}` must be a table under `## {part.expected_heading}`; there are {part.found_under}, so it parsed as ABSENT"
        case _:
            return f'`{part.field}` must be a table under `## {part.expected_heading}`; its {part.rows} row(s) stand under "{part.found_under}", so it parsed as ABSENT'
