"""The board index: only Status cells and the progress line ever change. Source: protocol §1.7, §4.8, ruling C8."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.board import (
    CREATED_MARK,
    BoardIndex,
    add_rows,
    create_index,
    parse_index,
    render_index,
    row_of,
    set_statuses,
    status_cell,
)
from parsers.tasks import Task, parse_task

STATUSES = ("ready", "in-progress", "blocked", "done", "cut", "weird", "not done yet")


def task(task_id: str, status: str = "done", **more: str) -> Task:
    lines = [f"id: {task_id}", f"status: {status}", *(f"{key}: {value}" for key, value in more.items())]
    return parse_task(f".shapeup/s/tasks/{task_id}-x.md", "\n".join(["---", *lines, "---", ""]).encode())[0]


def told(text: str, *tasks: Task, done: int = 1, total: int = 2) -> str:
    return render_index(set_statuses(parse_index(text.encode()), tasks, done, total)).decode()


# --- which row, which cell -------------------------------------------------------------------------------------------

TABLE = "| ID | Title | Status | Depends On |\n|---|---|---|---|\n"


def test_an_id_in_another_column_is_not_the_row() -> None:
    """W-18: finishing TASK-1 marked TASK-2, which depends on it."""
    text = TABLE + "| TASK-1 | a | ⬜ ready | — |\n| TASK-2 | b | ⬜ ready | TASK-1 |\n\nTASK-1 is ready | blocked\n"
    assert told(text, task("TASK-1")) == text.replace("a | ⬜ ready", "a | ✅ done")


def test_an_id_that_begins_another_is_not_the_row() -> None:
    """W-18: TASK-1 also hit TASK-10."""
    text = TABLE + "| TASK-10 | a | 🚫 blocked | — |\n"
    assert told(text, task("TASK-1")) == text


def test_words_of_a_status_in_a_title_stay() -> None:
    """W-19."""
    text = TABLE + "| TASK-1 | ready the blocked list | ⏳ Blocked | done |\n"
    assert told(text, task("TASK-1", "ready")) == text.replace("⏳ Blocked", "⬜ ready")


@pytest.mark.parametrize("status", ["ready", "in-progress", "blocked", "done"])
def test_every_status_is_told_also_backwards(status: str) -> None:
    """W-20: partial, failed, un-ticks and re-opens never changed the row."""
    glyph = {"ready": "⬜", "in-progress": "🔄", "blocked": "🚫", "done": "✅"}[status]
    for cell in ("✅ done", "🔄 in progress", "", "🚫 blocked"):
        text = TABLE + f"| TASK-1 | a | {cell} | — |\n"
        assert told(text, task("TASK-1", status)).splitlines()[2] in (
            f"| TASK-1 | a | {glyph} {status} | — |",
            text.splitlines()[2],  # told already, in the planner's own spelling
        )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("⬜ 0 / 9 tasks complete", "⬜ 1 / 2 tasks complete"),
        ("✅ 2/2 tasks complete.", "⬜ 1 / 2 tasks complete."),
        ("Progress: 0 / 2 tasks complete", "Progress: 1 / 2 tasks complete"),
    ],
)
def test_the_progress_line_counts(line: str, expected: str) -> None:
    """W-20."""
    assert told(f"{line}\n{TABLE}") == f"{expected}\n{TABLE}"
    assert told(f"{line}\n", done=2).split(" ")[0] in ("✅", "Progress:")


def test_a_title_or_a_fence_that_reads_like_a_progress_line_is_none() -> None:
    text = TABLE + "| TASK-1 | show 1 / 9 tasks complete | ✅ done | — |\n```\n3 / 9 tasks complete\n```\n"
    assert told(text, task("TASK-1")) == text


@pytest.mark.parametrize(
    "cell",
    ["TASK-1", "`TASK-1`", "**TASK-1**", r"[[TASK-1\|first]]", "[[TASK-1]]", r"[[TASK-1-x\|TASK-1]]", "TASK-1-x"],
)
def test_a_row_answers_by_id_or_file_stem_however_it_is_dressed(cell: str) -> None:
    """Ruling C8."""
    text = TABLE + f"| {cell} | a | ⬜ | — |\n"
    assert told(text, task("TASK-1")) == text.replace("⬜", "✅")


def test_tables_without_an_id_and_a_status_column_are_left_alone() -> None:
    text = "| ID | State |\n|---|---|\n| TASK-1 | ready |\n\n| Status | Note |\n|---|---|\n| ready | TASK-1 |\n"
    assert told(text, task("TASK-1")) == text


def test_newlines_and_the_mark_of_a_file_stay() -> None:
    """W-24, ruling L1."""
    text = "\ufeff" + (TABLE + "| TASK-1 | a \\| b | ⬜ ready | — |  \nx").replace("\n", "\r\n")
    assert told(text, task("TASK-1")) == text.replace("⬜ ready", "✅ done")


@pytest.mark.parametrize(
    "line",
    ["[[" * 500_000, " " * 1_000_000 + "x", "1" * 1_000_000, "| " + "[[" * 500_000 + " | a | ready |", "1 / " * 250_000, "⬜" * 300_000],
)  # fmt: skip
def test_a_megabyte_in_one_line_is_read_in_linear_time(line: str) -> None:
    index = parse_index((TABLE + line + "\n").encode())
    assert set_statuses(index, [task("TASK-1")], 1, 2) == index


# --- cells -----------------------------------------------------------------------------------------------------------

CELLS = st.lists(
    st.sampled_from(
        ["⬜", "🔄", "🚫", "⏳", "✅", "ready", "Blocked", "in progress", "done", "cut", "x", " ", "\\|", "already"]
    )
).map(" ".join)


@given(CELLS, st.sampled_from(STATUSES))
def test_a_cell_that_was_told_stays_as_it_is(cell: str, status: str) -> None:
    once = status_cell(cell, status)
    assert status_cell(once, status) == once


@given(
    st.lists(st.sampled_from(["⬜", "🔄", "🚫", "⏳", "✅", " "]), min_size=1).filter(lambda cell: set(cell) != {" "})
)
def test_a_cell_of_glyphs_alone_stays_one(glyphs: list[str]) -> None:
    """Ruling C8."""
    for status in ("ready", "in-progress", "blocked", "done"):
        assert not any(char.isalpha() for char in status_cell("".join(glyphs), status))


@given(CELLS, st.lists(st.sampled_from(STATUSES), min_size=1, max_size=4))
def test_the_last_status_is_what_a_reader_finds(cell: str, statuses: list[str]) -> None:
    for status in statuses:
        cell = status_cell(cell, status)
    glyph = {"ready": "⬜", "in-progress": "🔄", "blocked": "🚫", "done": "✅"}.get(statuses[-1])
    spoken = cell.lower().replace("in progress", "in-progress").replace("⏳", "🚫")
    assert statuses[-1] in spoken or (glyph and glyph in spoken)


# --- whole indexes ---------------------------------------------------------------------------------------------------

IDS = st.sampled_from(
    ["TASK-1", "TASK-10", "TASK-2", "T|3", "`", "TASK-4\r\n| x | y |", "[[TASK-5|a]]", "*", "\\", "ID", "---"]
)
TASKS = st.builds(
    lambda task_id, name, title, status, needs: Task(
        f".shapeup/s/tasks/TASK-{name}.md", task_id, title, status, tuple(needs), (), 1, None, title, 0.5, (), True
    ),
    IDS,
    st.integers(0, 9),
    st.sampled_from(["a", "| TASK-2 | b | ready |", "x\n| y", "1 / 2 tasks complete", "```"]),
    st.sampled_from([*STATUSES, "", "a|b", "x\ny"]),
    st.lists(IDS, max_size=2),
)
ROWS = st.lists(st.tuples(IDS, CELLS, CELLS), max_size=5)


def index_of(rows: list[tuple[str, str, str]], newline: str) -> bytes:
    body = [f"| {one} | {title} | {cell} |" for one, title, cell in rows if "\n" not in one]
    lines = ["# Board", "⬜ 0 / 3 tasks complete", "", "| ID | Title | Status |", "|---|---|---|", *body, "", "end"]
    return newline.join(lines).encode()


@given(ROWS, st.sampled_from(["\n", "\r\n"]), st.lists(TASKS, max_size=4))
def test_only_status_cells_and_the_progress_line_change(
    rows: list[tuple[str, str, str]], newline: str, tasks: list[Task]
) -> None:
    """W-18, W-19."""
    index = parse_index(index_of(rows, newline))
    after = set_statuses(index, tasks, 1, 3)
    assert set_statuses(parse_index(render_index(after)), tasks, 1, 3).lines == after.lines
    mine = {row_of(index, one) for one in tasks}
    for at, (was, now) in enumerate(zip(index.lines, after.lines, strict=True)):
        if at == 1:
            assert now.rstrip("\r") == "⬜ 1 / 3 tasks complete"
        elif was != now:
            assert at in mine
            assert without_status(was, index.column[at]) == without_status(now, index.column[at])


def without_status(line: str, column: int) -> list[str]:
    cells = line.replace("\\|", "\0").split("|")
    return cells[: column + 1] + cells[column + 2 :]


def settled(index: BoardIndex, tasks: list[Task]) -> BoardIndex:
    missing = [one for one in tasks if row_of(index, one) is None]
    return set_statuses(add_rows(index, missing), tasks, 0, len(tasks))


@given(st.lists(TASKS, max_size=6), st.lists(TASKS, max_size=3))
def test_a_created_index_takes_new_rows_once(first: list[Task], later: list[Task]) -> None:
    index = settled(parse_index(create_index("s", first)), [*first, *later])
    again = settled(parse_index(render_index(index)), [*first, *later])
    assert again.lines == index.lines
    for one in (*first, *later):
        assert row_of(index, one) is not None or not one.id.strip("`*")
    assert not index.lines[-1]


@given(st.sets(st.integers(100, 999), max_size=8), st.sets(st.integers(100, 999), max_size=8))
def test_rows_are_sorted_in(first: set[int], later: set[int]) -> None:
    tasks = [task(f"TASK-{n}") for n in sorted(first | later)]
    index = parse_index(create_index("s", [task(f"TASK-{n}") for n in first]))
    grown = add_rows(index, [one for one in tasks if row_of(index, one) is None])
    assert list(grown.rows) == [one.id for one in tasks]
    assert render_index(grown) == create_index("s", tasks)


def test_an_index_of_a_planner_gets_no_rows_of_ours() -> None:
    """Ruling C8: the planner's text wins."""
    index = parse_index((TABLE + "| TASK-1 | a | ready | — |\n").encode())
    assert add_rows(index, [task("TASK-2")]) is index


def test_no_row_is_added_where_the_table_is_gone() -> None:
    """It would not be found again, and be added at each look for ever."""
    index = parse_index(f"---\n{CREATED_MARK}\n---\n\nnothing here\n".encode())
    assert add_rows(index, [task("TASK-2")]) is index


def test_a_created_index_has_the_columns_of_a_planners() -> None:
    """Ruling C8."""
    one = task(
        "TASK-1", "blocked", title="Show a | b", package="cli", depends_on="[TASK-0, TASK-9]", estimated_hours="1.5"
    )
    other = task("TASK-2", "cut")
    assert create_index("cart", [other, one]).decode().splitlines()[6:] == [
        "# Task Board: cart",
        "",
        "| ID | Title | Package | Status | Priority | Depends On | Est. |",
        "|---|---|---|---|---|---|---|",
        r"| TASK-1 | Show a \| b | cli | 🚫 blocked | 999 | TASK-0, TASK-9 | 1.5h |",
        "| TASK-2 |  |  | cut | 999 | — | — |",
    ]


@given(st.binary(max_size=200))
def test_any_bytes_come_back(data: bytes) -> None:
    assert render_index(parse_index(data)) == data
