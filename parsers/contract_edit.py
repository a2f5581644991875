"""Writing contracts: a key or a table row is set and every other byte stays; a whole contract from its values. Source: protocol §10.2-10.4, ruling G6.

Everything written here was read back first: a value that no spelling of the dialect reads back as itself is not written at all
(None). A text that looks like something else, as `[a, b]`, is quoted, so that it stays a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from parsers.contracts import (
    CELL_EDGE,
    TABLE_FIELDS,
    ParsedContract,
    Row,
    Section,
    TableField,
    is_separator,
    parse_contract,
    parse_sections,
)
from parsers.frontmatter import (
    Frontmatter,
    Value,
    continues,
    parse_frontmatter,
    parse_inline_list,
    parse_scalar,
    scalar_text,
)
from parsers.markdown import BOM, newline_of


def spell_value(value: Value) -> str | None:
    """The value as the text behind a key or in a cell; None where no text on one line reads back as it."""
    if isinstance(value, tuple):
        return _spell_list(value)
    if isinstance(value, str):
        return _first_read_back(value, parse_scalar, value)
    text = "~" if value is None else json.dumps(value)
    return text if _is_same(parse_scalar(text), value) else None


def _is_same(value: Value, other: Value) -> bool:
    """Equal in kind too: true is not 1."""
    return value == other and type(value) is type(other)


def _spell_list(items: tuple[str, ...]) -> str | None:
    spelled = [_first_read_back(item, parse_inline_list, (item,)) for item in items]
    whole = [text for text in spelled if text is not None]
    text = f"[{', '.join(whole)}]"
    return text if len(whole) == len(items) and parse_scalar(text) == items else None


def _first_read_back(text: str, read: Callable[[str], object], wanted: object) -> str | None:
    return next((one for one in _spellings(text) if not _breaks(one) and read(one) == wanted), None)


def _spellings(text: str) -> Iterator[str]:
    yield text
    yield json.dumps(text, ensure_ascii=False)
    yield f"'{text}'"


def _breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _key_lines(key: str, value: Value) -> list[str] | None:
    """The lines of a key: one, or a block where an item has no place in an inline list."""
    spelled = spell_value(value)
    if spelled is not None:
        return [f"{key}: {spelled}"]
    if not isinstance(value, tuple):
        return None
    items = [_first_read_back(item, _read_item, item) for item in value]
    return None if None in items else [f"{key}:", *(f"  - {item}" for item in items)]


def _read_item(text: str) -> str:
    return scalar_text(parse_scalar(text))


def set_contract_key(text: str, key: str, value: Value) -> str | None:
    """The contract with the key set, below the others where it is new; what was indented below it goes with its old value.

    None: there is no frontmatter that reads, or the value cannot be written.
    """
    block = None if text.startswith(BOM) else parse_frontmatter(text, "")[0]
    wanted = _key_lines(key, value)
    if block is None or wanted is None:
        return None
    lines = text.split("\n")
    end = newline_of(text)[:-1]
    first, last = _span(lines, block, key)
    blanks = [line for line in lines[first + 1 : last] if not line.strip()]
    lines[first:last] = [*(line + end for line in wanted), *blanks]
    edited = "\n".join(lines)
    after = parse_frontmatter(edited, "")[0]
    is_set = after is not None and after.values == {**block.values, key: value}
    return edited if is_set else None


def _span(lines: Sequence[str], block: Frontmatter, key: str) -> tuple[int, int]:
    """The lines of the key, to the first that is not its own; for a new one, the place before the closing line."""
    if key not in block.lines:
        return block.last, block.last
    first = block.lines[key]
    last = first + 1
    while last < block.last and continues(lines[last]):
        last += 1
    return first, last


def set_contract_row(kind: str, text: str, row: Mapping[str, Value]) -> str | None:
    """The contract with the row in its table: in place of the row of the same name (first column), else behind the last one.

    A column that the row leaves out keeps its cell. None: the kind has no table, the row has no name, the table stands
    elsewhere or lacks a column, or a value cannot be written.
    """
    table = TABLE_FIELDS[kind]
    contract = parse_contract(kind, text)
    if table is None or contract.legacy_layout or row.get(table.signature[0]) is None:
        return None
    block = None if text.startswith(BOM) else parse_frontmatter(text, "")[0]
    sections = [part for part in parse_sections(text, block.last + 1 if block else 0) if part.text == table.heading]
    lines = text.split("\n")
    if not _write_row(lines, sections, table, row, newline_of(text)[:-1]):
        return None
    edited = "\n".join(lines)
    after = parse_contract(kind, edited)
    return edited if (after.rows, after.keys) == (_with_row(contract.rows, table, row), contract.keys) else None


def _with_row(rows: tuple[Row, ...], table: TableField, row: Mapping[str, Value]) -> tuple[Row, ...]:
    name = table.signature[0]
    at = next((at for at, one in enumerate(rows) if one.get(name) == row[name]), len(rows))
    wanted = {**(rows[at] if at < len(rows) else {}), **row}
    whole: Row = {column: value for column, value in wanted.items() if value is not None}
    return (*rows[:at], whole, *rows[at + 1 :])


def _write_row(
    lines: list[str], sections: list[Section], table: TableField, row: Mapping[str, Value], end: str
) -> bool:
    """Change the one line, or add one; whether that could be done."""
    last = None
    for part in sections:
        read = iter(part.rows)
        for line in part.lines:
            last = line
            if line.is_row and next(read).get(table.signature[0]) == row[table.signature[0]]:
                return _edit_line(lines, line.at, line.columns, row)
    if last is None:
        return _add_table(lines, table, row, end)
    cells = _spell_row(last.columns, row)
    if cells is None:
        return False
    at = last.at + 1
    while not last.is_row and at < len(lines) and lines[at].strip().startswith("|"):
        at += 1
    ends_file = at == len(lines)
    lines.insert(at, f"| {' | '.join(cells)} |" + ("" if ends_file else end))
    if ends_file:
        lines[at - 1] += end
    return True


def _edit_line(lines: list[str], at: int, columns: tuple[str, ...], row: Mapping[str, Value]) -> bool:
    parts = CELL_EDGE.split(lines[at])
    for column, value in row.items():
        spelled = _spell_cell(value)
        if column not in columns or spelled is None:
            return False
        place = columns.index(column) + 1
        while place > len(parts) - 2:
            parts.insert(-1, "  ")
        old = parts[place]
        if _is_same(_read_cell(old), value):
            continue
        is_blank = not old.strip()
        left = " " if is_blank else old[: len(old) - len(old.lstrip())]
        parts[place] = left + spelled + (" " if is_blank else old[len(old.rstrip()) :])
    lines[at] = "|".join(parts)
    return True


def _add_table(lines: list[str], table: TableField, row: Mapping[str, Value], end: str) -> bool:
    columns = tuple(dict.fromkeys((*table.signature, *row)))
    cells = _spell_row(columns, row)
    if cells is None:
        return False
    while lines and not lines[-1].strip():
        lines.pop()
    rows = (f"## {table.heading}", "", *_table_lines(columns, [cells]))
    lines[-1:] = [lines[-1].removesuffix("\r") + end] if lines else []
    lines += [*([end] if lines else []), *(text + end for text in rows), ""]
    return True


def _spell_row(columns: Sequence[str], row: Mapping[str, Value]) -> list[str] | None:
    """The cells of a row; None where a column is missing, or a value cannot be written."""
    if not row.keys() <= set(columns):
        return None
    cells = [_spell_cell(row.get(column)) for column in columns]
    whole = [cell for cell in cells if cell is not None]
    if len(whole) == len(cells) and is_separator(whole):
        whole = [f'"{cell}"' for cell in whole]
    return whole if len(whole) == len(cells) else None


def _spell_cell(value: Value) -> str | None:
    spelled = "" if value is None else spell_value(value)
    cell = None if spelled is None else spelled.replace("|", "\\|")
    return cell if cell is not None and _read_cell(cell) == value and not CELL_EDGE.search(cell) else None


def _read_cell(cell: str) -> Value:
    return parse_scalar(cell.replace("\\|", "|"))


def _table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    names = [column.replace("|", "\\|") for column in columns]
    return [
        f"| {' | '.join(names)} |",
        "|" + "---|" * len(columns),
        *(f"| {' | '.join(cells)} |" for cells in rows),
    ]


def render_contract(contract: ParsedContract) -> str | None:
    """The contract's values as a text of their own, without prose; a legacy wiring map comes out as one table (§10.5).

    None: no text reads as these values.
    """
    table = TABLE_FIELDS[contract.kind]
    lines = ["---"]
    for key, value in contract.keys.items():
        spelled = None if table and key == table.field and contract.rows else _key_lines(key, value)
        if spelled is None and not (table and key == table.field):
            return None
        lines += spelled or ()
    lines.append("---")
    if table and contract.rows:
        columns = tuple(dict.fromkeys(column for row in contract.rows for column in row)) or table.signature
        cells = [_spell_row(columns, row) for row in contract.rows]
        rows = [row for row in cells if row is not None]
        lines += ["", f"## {table.heading}", "", *_table_lines(columns, rows)]
    text = "\n".join([*lines, ""])
    after = parse_contract(contract.kind, text)
    kept = {key: value for key, value in contract.keys.items() if not (table and key == table.field and contract.rows)}
    return text if (after.keys, after.rows) == (kept, contract.rows) else None
