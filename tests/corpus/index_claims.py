"""What must hold of a board index, whatever the reference did: a view of the task files, in the planner's words. Source: W-18-W-20, C8."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tests.corpus.oracle_text import GLYPH, TaskFile, read_task, table_rows

_WORDS = re.compile(r"(?<![\w-])(ready|in[- ]progress|blocked|done|cut)(?![\w-])", re.I)
_PROGRESS = re.compile(r"[⬜🔄✅]?\s*\d+\s*/\s*\d+(?= tasks complete)")
_GLYPHS = re.compile("[⬜🔄🚫⏳✅]")
COLUMNS = ["ID", "Title", "Package", "Status", "Priority", "Depends On", "Est."]
_FIXED = frozenset({"W-28"})


def index_complaints(
    path: str, before: Mapping[str, bytes], now: Mapping[str, bytes], *, must_exist: bool
) -> Iterator[str]:
    """What is wrong with an index, given the tree it began in, with the planner's text, and the tree it stands in."""
    tasks = _tasks(path, now)
    if path not in now:
        if must_exist:
            yield "the index is missing"
    elif path not in before:
        yield from _created(now[path].decode(), tasks)
    else:
        began = {name: task.status for name, task in _tasks(path, before).items()}
        yield from _followed(before[path].decode(), now[path].decode(), tasks, began)


def _tasks(index: str, files: Mapping[str, bytes]) -> dict[str, TaskFile]:
    folder = PurePosixPath(index).parent
    names = {path: PurePosixPath(path).name for path in sorted(files) if PurePosixPath(path).parent == folder}
    return {
        name: read_task(name, files[path].decode("utf-8", "replace"), _FIXED)
        for path, name in names.items()
        if name.startswith("TASK-") and name.endswith(".md")
    }


def _followed(before: str, now: str, tasks: Mapping[str, TaskFile], began: Mapping[str, str]) -> Iterator[str]:
    """Only Status cells of rows that name a task, and the progress line, may differ; each tells what the file says."""
    old, new, rows = before.split("\n"), now.split("\n"), dict(table_rows(before))
    if len(old) != len(new):
        yield f"{len(old)} lines became {len(new)}"
        return
    named = {row.key: line for line, row in reversed(rows.items())}
    owner: dict[int, str] = {}
    for name, task in tasks.items():
        line = named.get(task.id, named.get(name.removesuffix(".md")))
        if line is not None and task.status:
            owner[line] = name
    progress = next((at for at, line in enumerate(old) if at not in rows and _PROGRESS.search(line)), None)
    for at, (was, line) in enumerate(zip(old, new, strict=True)):
        if at in owner:
            keeps_manner = began.get(owner[at]) in GLYPH
            yield from _told(was, line, rows[at].start, rows[at].end, tasks[owner[at]], keeps_manner)
        elif at == progress:
            yield from _counted(was, line, tasks)
        elif was != line:
            yield f"{was!r} became {line!r}"


def _counted(was: str, line: str, tasks: Mapping[str, TaskFile]) -> Iterator[str]:
    done = sum(task.status == "done" for task in tasks.values())
    numbers = re.search(r"(\d+)\s*/\s*(\d+) tasks complete", line)
    if not numbers or [int(numbers[1]), int(numbers[2])] != [done, len(tasks)]:
        yield f"{line!r} tells another progress than {done} / {len(tasks)}"
    if _PROGRESS.sub("", was, count=1) != _PROGRESS.sub("", line, count=1):
        yield f"more than the progress changed in {line!r}"


def _told(was: str, line: str, start: int, end: int, task: TaskFile, keeps_manner: bool) -> Iterator[str]:
    """The cell tells the status in glyph, word or both. A status that has no glyph is a word, which ends a glyph-only manner."""
    tail = len(was) - end
    cell, old = line[start : len(line) - tail], was[start:end]
    if line[:start] != was[:start] or line[len(line) - tail :] != was[end:]:
        yield f"more than the Status cell changed: {was!r} became {line!r}"
    if task.status not in GLYPH:
        if task.status not in cell:
            yield f"{task.id} is {task.status}, its cell says {cell!r}"
        return
    words = {word.lower().replace(" ", "-") for word in _WORDS.findall(cell)}
    glyphs = set(_GLYPHS.findall(cell)) - ({"⏳"} if task.status == "blocked" else set())
    tells = bool(words or _GLYPHS.search(cell))
    if not tells or not words <= {task.status} or not glyphs <= {GLYPH[task.status]}:
        yield f"{task.id} is {task.status}, its cell says {cell!r}"
    if keeps_manner and _GLYPHS.search(old) and bool(_WORDS.search(old)) != bool(words):
        yield f"{task.id}: a cell with{'' if _WORDS.search(old) else 'out'} words became {cell!r}"


def _created(now: str, tasks: Mapping[str, TaskFile]) -> Iterator[str]:
    """Each task has one row, in the columns of C8, saying what its file says."""
    lines = [re.split(r"(?<!\\)\|", line)[1:-1] for line in now.split("\n") if line.startswith("|")]
    cells = [[cell.strip() for cell in line] for line in lines]
    if not cells or cells[0] != COLUMNS:
        yield f"its columns are {cells[0] if cells else None}"
        return
    rows, ids = cells[2:], Counter(task.id for task in tasks.values())
    if Counter(row[0] for row in rows) != ids:
        yield f"its rows are {[row[0] for row in rows]}"
        return
    for task in (task for task in tasks.values() if ids[task.id] == 1):
        row = next(row for row in rows if row[0] == task.id)
        wanted = [task.title.replace("|", "\\|"), ", ".join(task.depends_on) or "—"]
        told = {f"{GLYPH.get(task.status, '')} {task.status}".strip(), task.status}  # once cut, a row goes on in words
        if [row[1], row[5]] != wanted or row[3] not in told:
            yield f"{task.id}: its row says {row}, the file {wanted} and {task.status}"
