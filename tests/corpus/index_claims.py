"""What must hold of a board index, whatever the reference did: a view of the task files, in the planner's words. Source: W-18-W-20, C8."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tests.corpus.oracle_text import GLYPH, TaskFile, read_task, table_rows

_WORDS = re.compile(r"(?<![\w-])(ready|in[- ]progress|blocked|done|cut)(?![\w-])", re.I)
_PROGRESS = re.compile(r"[⬜🔄✅]?\s*\d+\s*/\s*\d+(?= tasks complete)")
_GLYPHS = re.compile("[⬜🔄🚫⏳✅]")
COLUMNS = ["ID", "Title", "Package", "Status", "Priority", "Depends On", "Est."]
_FIXED = frozenset({"W-28"})


def index_complaints(
    before: bytes | None, now: bytes | None, files: Mapping[str, bytes], *, must_exist: bool
) -> Iterator[str]:
    """What is wrong with an index, given the planner's text it began as and the task files it stands beside."""
    tasks = _tasks(files)
    if now is None:
        if must_exist:
            yield "the index is missing"
    elif before is None:
        yield from _created(now.decode(), tasks)
    else:
        yield from _followed(before.decode(), now.decode(), tasks)


def _tasks(files: Mapping[str, bytes]) -> dict[str, TaskFile]:
    names = {path: PurePosixPath(path).name for path in sorted(files)}
    return {
        name: read_task(name, files[path].decode("utf-8", "replace"), _FIXED)
        for path, name in names.items()
        if name.startswith("TASK-") and name.endswith(".md")
    }


def _followed(before: str, now: str, tasks: Mapping[str, TaskFile]) -> Iterator[str]:
    """Only Status cells of rows that name a task, and the progress line, may differ; each tells what the file says."""
    old, new, rows = before.split("\n"), now.split("\n"), dict(table_rows(before))
    if len(old) != len(new):
        yield f"{len(old)} lines became {len(new)}"
        return
    named = {rows_key: line for line, (rows_key, _, _) in reversed(rows.items())}
    owner: dict[int, TaskFile] = {}
    for name, task in tasks.items():
        line = named.get(task.id, named.get(name.removesuffix(".md")))
        if line is not None:
            owner[line] = task
    progress = next((at for at, line in enumerate(old) if _PROGRESS.search(line)), None)
    for at, (was, line) in enumerate(zip(old, new, strict=True)):
        if at in owner and owner[at].status:
            yield from _told(was, line, rows[at].start, rows[at].end, owner[at])
        elif at == progress:
            done = sum(task.status == "done" for task in tasks.values())
            numbers = re.search(r"(\d+)\s*/\s*(\d+) tasks complete", line)
            if not numbers or [int(numbers[1]), int(numbers[2])] != [done, len(tasks)]:
                yield f"{line!r} tells another progress than {done} / {len(tasks)}"
            if _PROGRESS.sub("", was, count=1) != _PROGRESS.sub("", line, count=1):
                yield f"more than the progress changed in {line!r}"
        elif was != line:
            yield f"{was!r} became {line!r}"


def _told(was: str, line: str, start: int, end: int, task: TaskFile) -> Iterator[str]:
    tail = len(was) - end
    cell, old = line[start : len(line) - tail], was[start:end]
    if line[:start] != was[:start] or line[len(line) - tail :] != was[end:]:
        yield f"more than the Status cell changed: {was!r} became {line!r}"
    words = {word.lower().replace(" ", "-") for word in _WORDS.findall(cell)}
    glyphs = set(_GLYPHS.findall(cell)) - ({"⏳"} if task.status == "blocked" else set())
    if (
        not words <= {task.status}
        or not glyphs <= {GLYPH.get(task.status, "")}
        or (task.status in GLYPH and not (words or _GLYPHS.search(cell)))
    ):
        yield f"{task.id} is {task.status}, its cell says {cell!r}"
    if task.status in GLYPH and _GLYPHS.search(old) and bool(_WORDS.search(old)) != bool(words):
        yield f"{task.id}: a cell with{'' if _WORDS.search(old) else 'out'} words became {cell!r}"


def _created(now: str, tasks: Mapping[str, TaskFile]) -> Iterator[str]:
    """Each task has one row, in the columns of C8, saying what its file says."""
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in now.split("\n") if line.startswith("|")]
    cells = [[cell.strip() for cell in line] for line in lines]
    if not cells or cells[0] != COLUMNS:
        yield f"its columns are {cells[0] if cells else None}"
        return
    rows = list(cells[2:])
    if sorted(row[0] for row in rows) != sorted(task.id for task in tasks.values()):
        yield f"its rows are {[row[0] for row in rows]}"
        return
    for task in tasks.values():
        row = next(row for row in rows if row[0] == task.id)
        wanted = [task.title.replace("|", "\\|"), f"{GLYPH.get(task.status, '')} {task.status}".strip()]
        wanted.append(", ".join(task.depends_on) or "—")
        if [row[1], row[3], row[5]] != wanted:
            yield f"{task.id}: its row says {row}, the file {wanted}"
