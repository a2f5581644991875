"""The task index against a naive recomputation, under any sequence of changes. Source: protocol §4.5, W-21, W-28."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.faults import Fault
from parsers.layout import folder_of
from parsers.tasks import Task, parse_task
from parsers.tree import DictTree, Unreadable
from reducers.task_index import TaskIndex, is_task_name

FOLDER = folder_of("board-index", "s")
IDS = ["TASK-1", "TASK-10", "TASK-2", "A", ""]
STEMS = ["TASK-1", "TASK-1-x", "TASK-1.y", "TASK-10", "TASK-1-x-y", "TASK-2"]
CONTENTS = st.builds(
    lambda own, status, needs, whole: (
        "\n".join(
            [
                "---",
                f"id: {own}",
                f"status: {status}",
                "depends_on:",
                *(f"- {need}" for need in needs),
                *["---"] * whole,
            ]
        )
    ).encode(),
    st.sampled_from(IDS),
    st.sampled_from(["ready", "blocked", "done", "blocked"]),
    st.lists(st.sampled_from(IDS[:-1]), max_size=2),
    st.integers(0, 4).map(lambda n: min(n, 1)),  # now and then a block that nobody closed
)
STEPS = st.lists(st.tuples(st.sampled_from(STEMS), st.none() | CONTENTS), max_size=10)


def path_in(stem: str) -> str:
    return f"{FOLDER}/{stem}.md"


class Naive:
    """The same answers, read off all tasks each time."""

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self.tasks = tasks

    def find(self, task_id: str) -> list[str]:
        own = [path for path, task in self.tasks.items() if task.id == task_id]
        stems = {path: path.rsplit("/", 1)[-1].removesuffix(".md") for path in self.tasks}
        named = [
            path
            for path, stem in stems.items()
            if task_id and (stem == task_id or stem[: len(task_id) + 1] in (f"{task_id}-", f"{task_id}."))
        ]
        return sorted(own or named)

    def unblocked_by(self, statuses: Mapping[str, str]) -> list[str]:
        now = {path: statuses.get(path, task.status) for path, task in self.tasks.items()}
        done = {task.id for path, task in self.tasks.items() if task.has_frontmatter and now[path] == "done"}
        return sorted(
            path
            for path, task in self.tasks.items()
            if task.has_frontmatter and now[path] == "blocked" and task.depends_on and set(task.depends_on) <= done
        )


@given(STEPS, st.dictionaries(st.sampled_from(STEMS), st.sampled_from(["ready", "blocked", "done"]), max_size=3))
def test_any_sequence_of_changes_ends_where_reading_everything_does(
    steps: list[tuple[str, bytes | None]], edits: dict[str, str]
) -> None:
    """W-21, W-28."""
    tree = DictTree({})
    index = TaskIndex()
    for stem, data in steps:
        path = path_in(stem)
        if data is None:
            tree.files.pop(path, None)
            index.drop(path)
        else:
            tree.files[path] = data
            index.look(tree, path)
        naive = Naive({path: parse_task(path, data)[0] for path, data in tree.files.items()})
        read = TaskIndex.read(tree, "s")
        statuses = {path_in(stem): status for stem, status in edits.items() if path_in(stem) in tree.files}
        for one in (index, read):
            assert (len(one), one.done) == (
                len(naive.tasks),
                sum(task.status == "done" for task in naive.tasks.values()),
            )
            assert list(one) == [naive.tasks[path] for path in sorted(naive.tasks)]
            assert [task.path for task in one.unblocked_by(statuses)] == naive.unblocked_by(statuses)
            assert [task.path for task in one.unblocked_by({})] == naive.unblocked_by({})
            for task_id in (*IDS, *STEMS, "TASK", "TASK-1-", "1"):
                assert [task.path for task in one.find(task_id)] == naive.find(task_id)


def test_a_file_without_frontmatter_unblocks_nothing() -> None:
    """Ruling C11."""
    bare = parse_task(path_in("TASK-1"), b"status: done\n")[0]
    waiting = parse_task(path_in("TASK-2"), b"---\nid: TASK-2\nstatus: blocked\ndepends_on: [TASK-1]\n---\n")[0]
    index = TaskIndex([waiting, bare])
    assert index.unblocked_by({}) == index.unblocked_by({bare.path: "done"}) == ()


def test_a_block_of_two_waiting_for_each_other_stays_one() -> None:
    """W-29."""
    tasks = [
        parse_task(
            path_in(f"TASK-{n}"), f"---\nid: TASK-{n}\nstatus: blocked\ndepends_on: [TASK-{3 - n}]\n---\n".encode()
        )[0]
        for n in (1, 2)
    ]
    assert TaskIndex(tasks).unblocked_by({}) == ()


@pytest.mark.parametrize(
    "name", ["_index.md", "README.md", "task-1.md", "TASK-1.txt", ".TASK-1.md.shapeupd-tmp", "notes-TASK-1.md"]
)
def test_only_task_files_are_tasks_however_they_come_in(name: str) -> None:
    """§1.7: a note that a planner leaves in the folder gets no row, neither at a start nor when it lands."""
    tree = DictTree({f"{FOLDER}/{name}": b"---\nid: TASK-1\nstatus: done\n---\n"})
    assert not is_task_name(name)
    index = TaskIndex.read(tree, "s")
    index.look(tree, f"{FOLDER}/{name}")
    assert len(index) == 0


def test_what_is_no_plain_file_is_known_by_its_name_and_states_nothing() -> None:
    """Whoever means to edit it is told what stands there, instead of that there is no such task."""

    class Linked(DictTree):
        def read(self, path: str) -> bytes | None:
            raise Unreadable(Fault("E-SYMLINK", path, "it is a symbolic link", "", ""))

    index = TaskIndex.read(Linked({path_in("TASK-1-x"): b""}), "s")
    (task,) = index.find("TASK-1")
    assert (task.status, task.has_frontmatter, index.done) == ("", False, 0)


def test_unknown_ids_on_a_large_board_cost_one_look_each() -> None:
    index = TaskIndex(parse_task(path_in(f"TASK-{n}-name"), b"")[0] for n in range(10_000))
    assert all(index.find(f"NO-{n}") == () for n in range(30_000))
    assert [task.path for task in index.find("TASK-77")] == [path_in("TASK-77-name")]
