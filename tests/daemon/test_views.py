"""Views on disk: written where their bytes would differ, and only there. Source: design §2, rulings C8, D4, J."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.run_state import RunState
from daemon.views import BoardView, rejection_path, remove_rejection, write_rejection
from parsers.board import parse_index, render_index
from parsers.faults import Fault
from parsers.layout import path_of
from parsers.tasks import parse_task
from reducers.board import derive_index
from reducers.task_index import TaskIndex
from tests.reducers.run_in_memory import SLUG, START, task_file, task_path

INDEX = path_of("board-index", SLUG)
RESULT = path_of("result", SLUG, "a-r1-a1")
FAULT = Fault("E-SCHEMA", f"{RESULT}:$", "what", "why", "fix")


class World:
    """A run on disk, its state, and the notices it gave."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notices: list[tuple[str, dict[str, Any]]] = []
        (root / ".shapeup" / SLUG / "tasks").mkdir(parents=True)
        self.state = RunState.load(root, SLUG, lambda event, fields: self.notices.append((event, fields)))
        self.board = BoardView()

    def put(self, path: str, data: bytes) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)
        self.state.tasks.look(self.state.disk, path)

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def derive(self, *changed: str, create: bool = True) -> bool:
        tasks = [task for path in changed if (task := self.state.tasks.get(path))]
        return self.board.derive(self.state, tasks if changed else None, create=create)

    def refuse(self, path: str = RESULT, *faults: Fault, later_s: int = 0) -> bool:
        return write_rejection(self.state, "result", path, "ff", faults or (FAULT,), START + timedelta(seconds=later_s))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.state.store.close()


# --- the board index -------------------------------------------------------------------------------------------------


def test_an_index_is_made_only_when_asked_for_and_there_are_tasks(world: World) -> None:
    assert not world.derive()
    world.put(task_path("TASK-1"), task_file("TASK-1"))
    assert not world.derive(create=False)
    assert world.derive()
    assert "| TASK-1 | TASK-1 |  | ⬜ ready |" in world.read(INDEX)


def test_nothing_is_written_where_the_bytes_would_be_the_same(world: World) -> None:
    world.put(task_path("TASK-1"), task_file("TASK-1"))
    assert world.derive()
    before = os.stat(world.root / INDEX)
    assert not world.derive()
    assert not world.derive(task_path("TASK-1"))
    assert os.stat(world.root / INDEX).st_ino == before.st_ino
    assert world.state.own[INDEX].ino == before.st_ino


def test_a_changed_task_changes_its_row(world: World) -> None:
    """W-20."""
    world.put(INDEX, b"| ID | Status |\n|---|---|\n| TASK-1 | done |\n| TASK-2 | x |\n")
    world.put(task_path("TASK-1"), task_file("TASK-1", status="in-progress"))
    assert world.derive(task_path("TASK-1"))
    assert world.read(INDEX) == "| ID | Status |\n|---|---|\n| TASK-1 | in-progress |\n| TASK-2 | x |\n"


def test_an_index_that_someone_edited_is_read_again_as_a_whole(world: World) -> None:
    for n in (1, 2):
        world.put(task_path(f"TASK-{n}"), task_file(f"TASK-{n}"))
    assert world.derive()
    world.put(INDEX, b"| ID | Status |\n|---|---|\n| TASK-1 | done |\n| TASK-2 | done |\n")
    assert world.derive(task_path("TASK-1"))
    assert world.read(INDEX).count("ready") == 2


def test_an_index_that_someone_removed_is_made_again(world: World) -> None:
    world.put(task_path("TASK-1"), task_file("TASK-1"))
    assert world.derive()
    (world.root / INDEX).unlink()
    assert world.derive(task_path("TASK-1"))
    assert "TASK-1" in world.read(INDEX)


def test_a_note_in_the_folder_gets_no_row(world: World) -> None:
    world.put(task_path("TASK-1"), task_file("TASK-1"))
    world.put(f".shapeup/{SLUG}/tasks/README.md", b"---\nid: README\nstatus: ready\n---\n")
    assert world.derive()
    assert "README" not in world.read(INDEX)


FILES = st.lists(
    st.tuples(
        st.sampled_from(
            [("TASK-1-a", "TASK-1"), ("TASK-2-a", "TASK-2"), ("TASK-2-b", "TASK-2"), ("TASK-4-a", "TASK|4")]
        ),
        st.sampled_from(["ready", "done", "cut", "blocked", "odd | one"]),
    ),
    max_size=8,
)
PLANNERS = "⬜ 0 / 1 tasks complete\n\n| ID | Status |\n|---|---|\n| TASK-1 | ⬜ |\n| TASK-2 | ready |\n".encode()


@given(FILES, st.none() | st.just(PLANNERS))
def test_deriving_row_by_row_ends_where_deriving_the_whole_does(
    files: list[tuple[tuple[str, str], str]], data: bytes | None
) -> None:
    """A restart looks at every task, a running daemon at the changed ones: the bytes must be the same, also where two files
    claim one id."""
    tasks = TaskIndex()
    index = None if data is None else derive_index(parse_index(data), SLUG, tasks, None)
    for (stem, task_id), status in files:
        task = parse_task(task_path(stem), task_file(task_id, status=f'"{status}"'))[0]
        tasks.put(task)
        index = derive_index(index, SLUG, tasks, [task])
    if index is not None:
        again = derive_index(parse_index(render_index(index)), SLUG, tasks, None)
        assert render_index(again) == render_index(index)


# --- rejections ------------------------------------------------------------------------------------------------------


def test_a_rejection_has_the_keys_of_rulings_j(world: World) -> None:
    """Ruling D4, W-31: the refused fact is listed, and never touched."""
    other = FAULT._replace(where=f"{RESULT}:$.status")
    assert world.refuse(RESULT, FAULT, other)
    assert json.loads(world.read(path_of("rejection", SLUG, "result-a-r1-a1"))) == {
        "at": "2026-04-05T12:00:00.000Z",
        "code": "E-SCHEMA",
        "kind": "result",
        "path": RESULT,
        "sha256": "ff",
        "errors": [
            {"where": f"{RESULT}:$", "what": "what", "why": "why", "fix": "fix"},
            {"where": f"{RESULT}:$.status", "what": "what", "why": "why", "fix": "fix"},
        ],
    }


def test_an_equal_rejection_keeps_its_time_and_another_one_takes_its_place(world: World) -> None:
    assert world.refuse()
    before = world.read(rejection_path(SLUG, "result", RESULT))
    assert not world.refuse(later_s=9)
    assert world.read(rejection_path(SLUG, "result", RESULT)) == before
    assert world.refuse(RESULT, FAULT._replace(what="other"), later_s=9)
    assert '"at": "2026-04-05T12:00:09.000Z"' in world.read(rejection_path(SLUG, "result", RESULT))


@pytest.mark.parametrize("scribble", [b"", b"{", b"[]", b"[" * 100_000, b"\xff", b'{"at": 7}'])
def test_a_rejection_that_was_scribbled_on_is_told_again(world: World, scribble: bytes) -> None:
    assert world.refuse()
    (world.root / rejection_path(SLUG, "result", RESULT)).write_bytes(scribble)
    assert world.refuse()
    assert json.loads(world.read(rejection_path(SLUG, "result", RESULT)))["code"] == "E-SCHEMA"


def test_a_rejection_is_known_and_removed_after_a_restart(world: World, tmp_path: Path) -> None:
    assert world.refuse()
    again = RunState.load(tmp_path, SLUG, lambda event, fields: None)
    remove_rejection(again, "order", RESULT)
    assert (tmp_path / rejection_path(SLUG, "result", RESULT)).exists()
    remove_rejection(again, "result", RESULT)
    remove_rejection(again, "result", RESULT)
    assert not (tmp_path / rejection_path(SLUG, "result", RESULT)).exists()
    again.store.close()


def test_a_link_in_a_rejections_place_is_not_followed(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    target = tmp_path / rejection_path(SLUG, "result", RESULT)
    target.parent.mkdir()
    target.symlink_to(outside)
    assert not world.refuse()
    assert outside.read_text() == "mine"
    assert target.is_symlink()


@pytest.mark.parametrize("name", ["x" * 250, "é" * 125, "\udcff" * 250, "\udcff", "a b"])
def test_a_name_of_any_length_and_bytes_gets_a_rejection_of_its_own(world: World, name: str) -> None:
    path = path_of("result", SLUG, name)
    assert world.refuse(path)
    assert not world.refuse(path)
    target = rejection_path(SLUG, "result", path)
    assert len(os.fsencode(target.rsplit("/", 1)[-1])) <= 255
    assert target != rejection_path(SLUG, "result", path_of("result", SLUG, name[:-1] + "y"))
    assert target != rejection_path(SLUG, "order", path)
