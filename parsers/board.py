"""The board index `tasks/_index.md`: its task rows, status cells and progress line. Source: protocol §1.7, W-18-W-20, ruling C8.

A view: rows follow the task files. Only the Status cell of a row that answers to a task id is ever rewritten; the rest is
the planner's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from parsers.layout import stem_at
from parsers.markdown import decode, encode, parse_tables, scan_lines
from parsers.tasks import Task

GLYPHS = {"ready": "⬜", "in-progress": "🔄", "blocked": "🚫", "done": "✅"}
_MEANING = {**{glyph: status for status, glyph in GLYPHS.items()}, "⏳": "blocked"}
_WORD = re.compile(r"(?<![\w-])(in[ -]progress|ready|blocked|done|cut)(?![\w-])", re.IGNORECASE)
_WIKILINK = re.compile(r"\[\[([^\[\]|\\]*)(?:\\?\|[^\[\]]*)?\]\]")
_PROGRESS = re.compile(
    r"(?P<glyph>[⬜🔄✅])?(?P<gap>\s{0,9})(?<![0-9])(?P<done>[0-9]{1,9})\s{0,9}/\s{0,9}(?P<total>[0-9]{1,9})(?P<rest> tasks complete)"
)
_TOLD_BY_WORD = frozenset({*GLYPHS, "cut"})
_ANY_LINE_END = re.compile(r"[\r\n]+")
CREATED_COLUMNS = ("ID", "Title", "Package", "Status", "Priority", "Depends On", "Est.")
CREATED_MARK = "created_by: shapeupd"


class BoardIndex(NamedTuple):
    """The index as lines, with what can be edited: row line by task key, Status column by row line, progress line."""

    lines: tuple[str, ...]
    rows: Mapping[str, int]  # what the ID cell says (after `[[…|…]]` is stripped) → line index
    column: Mapping[int, int]  # line index of a row → index of its Status cell
    progress: int | None


def parse_index(data: bytes) -> BoardIndex:
    """The index: every table that has an ID and a Status column counts."""
    lines = decode(data).split("\n")
    rows: dict[str, int] = {}
    column: dict[int, int] = {}
    for table in parse_tables(lines):
        if "id" not in table.header or "status" not in table.header:
            continue
        id_at, status_at = table.header.index("id"), table.header.index("status")
        for row in table.rows:
            if len(row.cells) > max(id_at, status_at):
                rows.setdefault(_cell_key(row.cells[id_at]), row.line)
                column[row.line] = status_at
    told = (ln.at for ln in scan_lines(lines) if not ln.fenced and ln.at not in column and _PROGRESS.search(ln.text))
    progress = next(told, None)
    return BoardIndex(tuple(lines), rows, column, progress)


def _cell_key(cell: str) -> str:
    return _WIKILINK.sub(r"\1", cell).strip().strip("`*").strip()


def render_index(index: BoardIndex) -> bytes:
    """The bytes of the index."""
    return encode("\n".join(index.lines))


def row_of(index: BoardIndex, task: Task) -> int | None:
    """The line of the row that answers to this task: by id, or by the file's stem. Source: ruling C8."""
    stem = stem_at(task.path)
    for name in (_key_of(task.id), _key_of(stem)):
        if name and name in index.rows:
            return index.rows[name]
    return None


def _key_of(name: str) -> str:
    """A name as the ID cell of a row written for it reads."""
    return _cell_key(_escaped(name))


def set_statuses(index: BoardIndex, tasks: Iterable[Task], done: int, total: int) -> BoardIndex:
    """The index with the Status cell of each of these tasks, and the progress line, telling what the files say."""
    changed: dict[int, str] = {}
    for task in tasks:
        line = row_of(index, task)
        if line is not None and task.status:
            changed[line] = _with_status(index.lines[line], index.column[line], task.status)
    if index.progress is not None:
        changed[index.progress] = _with_progress(changed.get(index.progress, index.lines[index.progress]), done, total)
    if all(index.lines[line] == text for line, text in changed.items()):
        return index
    lines = list(index.lines)
    for line, text in changed.items():
        lines[line] = text
    return index._replace(lines=tuple(lines))


def _with_status(line: str, column: int, status: str) -> str:
    return _with_cell(line, column, lambda cell: status_cell(cell, status))


def _with_cell(line: str, column: int, rewrite: Callable[[str], str]) -> str:
    edges = [at.start() for at in re.finditer(r"(?<!\\)\|", line)]
    start, end = edges[column] + 1, edges[column + 1] if column + 1 < len(edges) else len(line.rstrip("\r"))
    return line[:start] + rewrite(line[start:end]) + line[end:]


def status_cell(cell: str, status: str) -> str:
    """The cell telling this status in its own manner: glyph-only stays glyph-only, words and spaces around stay.

    A status outside the protocol's words is told as it stands in the task file.
    """
    status = _escaped(status)
    if status not in _TOLD_BY_WORD:
        return cell if cell.strip() == status.strip() else f" {status} "
    told = {_MEANING[glyph] for glyph in _MEANING if glyph in cell}
    words = {word.lower().replace(" ", "-") for word in _WORD.findall(cell)}
    if (told | words) == {status}:
        return cell
    glyph = GLYPHS.get(status, "")
    for known in _MEANING:
        if known in cell:
            cell = cell.replace(known, glyph or "\0")
    had_glyph = bool(told)
    if words:
        cell = _WORD.sub(lambda _: status, cell, count=1)
    elif not glyph or not had_glyph:
        cell = f" {glyph} {status} " if glyph else f" {status} "
    return re.sub("\0 ?", "", cell)


def _with_progress(line: str, done: int, total: int) -> str:
    def tell(found: re.Match[str]) -> str:
        glyph = "" if found["glyph"] is None else GLYPHS["done" if done == total else "ready"]
        return f"{glyph}{found['gap']}{done} / {total}{found['rest']}"

    return _PROGRESS.sub(tell, line, count=1)


def create_index(slug: str, tasks: Iterable[Task]) -> bytes:
    """An index made from the task files, where no planner wrote one. Source: issue 2, ruling C8."""
    head = ["---", "type: task-board", f"feature: {slug}", CREATED_MARK, "---", "", f"# Task Board: {slug}", ""]
    table = [_row(CREATED_COLUMNS), "|" + "---|" * len(CREATED_COLUMNS)]
    rows = [_task_row(task) for task in sorted(tasks, key=lambda task: (task.id, task.path))]
    return encode("\n".join([*head, *table, *rows, ""]))


def is_created(data: bytes) -> bool:
    """Whether we made this index: then the task files hold all it says."""
    return CREATED_MARK in decode(data[:4096]).split("\n")[:8]


def planners_text(data: bytes) -> tuple[str, ...]:
    """The index's lines with nothing in the cells and numbers that are ours to write: what a planner meant by it."""
    index = parse_index(data)
    lines = list(index.lines)
    for line, column in index.column.items():
        lines[line] = _with_cell(lines[line], column, lambda _: "")
    if index.progress is not None:
        lines[index.progress] = _PROGRESS.sub("", lines[index.progress], count=1)
    return tuple(lines)


def add_rows(index: BoardIndex, tasks: Sequence[Task]) -> BoardIndex:
    """The index with a row for each task that has none, sorted in; only an index we created gets rows from us."""
    if CREATED_MARK not in index.lines[:8]:
        return index
    missing = [task for task in tasks if _key_of(task.id) and row_of(index, task) is None]
    lines = list(index.lines)
    keys = sorted(((line, key) for key, line in index.rows.items()), reverse=True)
    end = (keys[0][0] + 1) if keys else len(lines) - 1
    for task in sorted(missing, key=lambda task: (task.id, task.path), reverse=True):
        at = next((line + 1 for line, key in keys if key < task.id), keys[-1][0] if keys else end)
        lines.insert(at, _task_row(task))
    grown = parse_index(encode("\n".join(lines)))
    # Where the table itself is gone, a row would not be found again, and be added again for ever.
    return index if not missing or any(row_of(grown, task) is None for task in missing) else grown


def _task_row(task: Task) -> str:
    return _row(
        (
            _escaped(task.id),
            _escaped(task.title),
            _escaped(task.package),
            f"{GLYPHS.get(task.status, '')} {_escaped(task.status)}".strip(),
            str(task.priority),
            ", ".join(map(_escaped, task.depends_on)) or "—",
            f"{task.estimated_hours:g}h" if task.estimated_hours else "—",
        )
    )


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _escaped(text: str) -> str:
    """The text as it may stand in a cell: on one line, no pipe of its own."""
    return " ".join(_ANY_LINE_END.split(text)).replace("|", "\\|")
