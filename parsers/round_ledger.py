"""The Decisions table of the committed round ledger: read it, and add rows that change no other byte. Source: protocol §1.8, advisor §10-11, F7.

Light module: standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from parsers.markdown import BOM, decode, encode, newline_of, parse_heading, scan_lines

COLUMNS = ("Round", "Scope", "Kind", "Question", "Answer", "Resolved by")
UNSET = "—"
NUMBERED_KINDS = frozenset({"design-decision", "spec-ambiguity", "substrate-expansion"})
KINDS = NUMBERED_KINDS | {"gate", "cut", "other"}

_HEADER = f"| {' | '.join(COLUMNS)} |"
_DELIMITER = f"|{'|'.join('-' * (len(name) + 2) for name in COLUMNS)}|"
_NAMES = tuple(name.casefold() for name in COLUMNS)
_MARK = re.compile(r"\\[|\\]|\|")
_SEPARATOR = re.compile(r":?-+:?\Z")
_ESC_ID = re.compile(r"ESC-([0-9]{1,9})\Z")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_BOARD_ID = re.compile(r"TASK-[A-Za-z0-9][\w.-]*", re.ASCII)
_LOCAL_PATH = re.compile(r"\.shapeup/\S*")
_FENCE_RUN = {mark: re.compile(rf"^ {{0,3}}({re.escape(mark)}{{3,}})", re.MULTILINE) for mark in "`~"}


class Decision(NamedTuple):
    """One decision; the fields are the six columns, as plain text. An unset cell is `—`."""

    round: str
    scope: str
    kind: str
    question: str
    answer: str
    resolved_by: str


class DecisionRow(NamedTuple):
    """One row of the table. `line` counts from 1, `cells` are unescaped and trimmed, in the order they stand in.

    `decision` is the row by its header's names; None where the header has not all six, or the row not as many cells as it.
    """

    line: int
    cells: tuple[str, ...]
    decision: Decision | None


class RoundLedger(NamedTuple):
    """The first table under a heading `Decisions`. `header` is empty where there is none."""

    header: tuple[str, ...]
    rows: tuple[DecisionRow, ...]


class _Spot(NamedTuple):
    """Where the table stands, as line indexes; None where there is none."""

    heading: int | None
    header: int | None
    last: int


def parse_round_ledger(data: bytes) -> RoundLedger:
    """The table with its rows in file order; tables elsewhere and in code fences are passed over. Never raises."""
    lines = decode(data).split("\n")
    spot = _find(lines)
    if spot.header is None:
        return RoundLedger((), ())
    header = parse_cells(lines[spot.header])
    columns = _columns(header)
    numbered = ((at, parse_cells(lines[at])) for at in range(spot.header + 1, spot.last + 1))
    rows = [DecisionRow(at + 1, cells, _decision(cells, columns, len(header))) for at, cells in numbered]
    has_delimiter = bool(rows) and bool(rows[0].cells) and all(map(_SEPARATOR.match, rows[0].cells))
    return RoundLedger(header, tuple(rows[has_delimiter:]))


def parse_cells(line: str) -> tuple[str, ...]:
    r"""The cells of a `|` line, trimmed, `\|` and `\\` unescaped; any other backslash stands for itself. Source: advisor P3."""
    text = line.strip().removeprefix("|")
    cells, cell, at = [], "", 0
    for found in _MARK.finditer(text):
        cell += text[at : found.start()] + found[0][1:]
        at = found.end()
        if found[0] == "|":
            cells.append(cell.strip())
            cell = ""
    cell = (cell + text[at:]).strip()
    return (*cells, cell) if cell else tuple(cells)


def render_cells(cells: Sequence[str]) -> str:
    """One row without its line end: the cells escaped, an empty one as `—`. Source: advisor P1, P2."""
    return f"| {' | '.join(_escaped(committed_text(cell)) or UNSET for cell in cells)} |"


def render_decision(decision: Decision) -> str:
    """The decision as a row of the six columns."""
    return render_cells(decision)


def committed_text(text: str) -> str:
    """The text as one line that a committed file may hold: it names no board id and no path of the local tier.

    Control characters that are no blanks are left out. Source: advisor P2, P10, TIER-DIRECTION.
    """
    words = _CONTROL.sub("", " ".join(text.split()))
    return " ".join(_BOARD_ID.sub("the task", _LOCAL_PATH.sub("a local run file", words)).split())


def plain_decision(decision: Decision) -> Decision:
    """The decision as it will be read again: what `append_decisions` writes gives exactly this."""
    return Decision(*(committed_text(cell) or UNSET for cell in decision))


def append_decisions(data: bytes | None, feature: str, decisions: Sequence[Decision]) -> bytes:
    """The ledger with the rows behind the table's last one; `data` None or empty: a new ledger of this feature.

    No other byte changes. Where the table is missing it is put under its heading, where that is missing at the end.
    Source: advisor P4.
    """
    if not decisions:
        return data or b""
    if not data:
        return encode(f"---\ntype: round-ledger\nfeature: {feature}\n---\n\n" + _section(decisions, "\n"))
    text = decode(data)
    lines = text.split("\n")
    spot = _find(lines)
    newline = newline_of(text)
    if spot.header is not None:
        header = parse_cells(lines[spot.header])
        rows = _rows_for(header, lines[spot.header + 1 : spot.last + 1], decisions)
        return encode(_insert(lines, spot.last, "".join(row + newline for row in rows), newline))
    if spot.heading is not None:
        table = newline + _table(decisions, newline)
        is_followed = spot.heading + 1 < len(lines) and lines[spot.heading + 1].strip() != ""
        return encode(_insert(lines, spot.heading, table + newline * is_followed, newline))
    return encode(_with_section(text, decisions, newline))


def _with_section(text: str, decisions: Sequence[Decision], newline: str) -> str:
    """The text with a Decisions section at its end; a code fence that nobody closed is closed first."""
    start = text if text.endswith("\n") else text + newline
    ended = start + newline + _section(decisions, newline)
    if _find(ended.split("\n")).header is not None:
        return ended
    longest = {mark: max(map(len, pattern.findall(start)), default=3) for mark, pattern in _FENCE_RUN.items()}
    closed = (
        start + mark * length + newline + newline + _section(decisions, newline) for mark, length in longest.items()
    )
    return next((tried for tried in closed if _find(tried.split("\n")).header is not None), ended)


def _section(decisions: Sequence[Decision], newline: str) -> str:
    return f"## Decisions{newline}{newline}{_table(decisions, newline)}"


def _table(decisions: Sequence[Decision], newline: str) -> str:
    return "".join(line + newline for line in (_HEADER, _DELIMITER, *map(render_decision, decisions)))


def _insert(lines: list[str], after: int, added: str, newline: str) -> str:
    """The text with whole lines put behind the line at this index."""
    if after + 1 == len(lines):  # the last line has no end
        return "\n".join(lines) + newline + added
    return "\n".join(lines[: after + 1]) + "\n" + added + "\n".join(lines[after + 1 :])


def _find(lines: list[str]) -> _Spot:
    heading: int | None = None
    header: int | None = None
    last, is_below = 0, False
    start = _body_start(lines)
    for line in scan_lines(lines):
        if line.at < start:
            continue
        if not line.fenced and (found := parse_heading(line.text)):
            is_below = found[1].casefold() == "decisions"
            heading = line.at if is_below and heading is None else heading
        if is_below and not line.fenced and line.text.lstrip().startswith("|"):
            header, last = (line.at if header is None else header), line.at
        elif header is not None:
            break
    return _Spot(heading, header, last)


def _body_start(lines: list[str]) -> int:
    """The index of the first line behind the frontmatter, where a `#` begins a comment."""
    if lines[0].removeprefix(BOM).rstrip() != "---":
        return 0
    return next((at + 1 for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)


def _columns(header: tuple[str, ...]) -> Mapping[str, int] | None:
    """Where each of the six columns stands; None where one is missing. Source: advisor I4, W-11."""
    names = [cell.casefold() for cell in header]
    return {name: names.index(name) for name in _NAMES} if set(_NAMES) <= set(names) else None


def _decision(cells: tuple[str, ...], columns: Mapping[str, int] | None, width: int) -> Decision | None:
    if columns is None or len(cells) != width:
        return None
    return Decision(*(cells[columns[name]] for name in _NAMES))


def _rows_for(header: tuple[str, ...], below: list[str], decisions: Sequence[Decision]) -> Iterator[str]:
    """The rows in the order of the table's own columns; a further column of ESC ids gets the next ones. Source: advisor I4."""
    columns = _columns(header)
    if columns is None:
        yield from map(render_decision, decisions)
        return
    ids = _esc_ids(map(parse_cells, below), frozenset(columns.values()))
    for decision in decisions:
        cells = [UNSET] * len(header)
        for cell, name in zip(decision, _NAMES, strict=True):
            cells[columns[name]] = cell
        if ids and decision.kind in NUMBERED_KINDS:
            column, highest = max(ids.items(), key=lambda item: item[1])
            ids[column] = highest + 1
            cells[column] = f"ESC-{highest + 1:02d}"
        yield render_cells(cells)


def _esc_ids(rows: Iterator[tuple[str, ...]], named: frozenset[int]) -> dict[int, int]:
    """The highest id of each column that holds ESC ids, the six named columns apart."""
    highest: dict[int, int] = {}
    for cells in rows:
        for column, cell in enumerate(cells):
            if column not in named and (found := _ESC_ID.match(cell)):
                highest[column] = max(highest.get(column, 0), int(found[1]))
    return highest


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")
