"""The real watcher on a real inotify: whatever happens to the trees, nothing is missed."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
)
from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper

from daemon import listener as listening
from tests.daemon.watching import MAX_QUEUED, REPOSITORY, SLEEPER, make_repo, ticking, watching, write

pytestmark = pytest.mark.skipif(not MAX_QUEUED.exists(), reason="needs inotify")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


@pytest.fixture
def patient_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renames are paired however loaded the machine is."""
    monkeypatch.setattr(InotifyMoveEventGrouper, "delay", 0.5)


# --- six races (target 2) ----------------------------------------------------------------------------------------------


def test_files_in_folders_made_a_moment_before_are_all_marked(repo: Path) -> None:
    with ticking(repo) as (_, recorder):
        recorder.wait_for(write(repo, f".shapeup/s{n}/a/b/results/r{n}.json") for n in range(1000))


def test_a_copied_tree_of_three_thousand_files_is_all_marked(repo: Path, tmp_path: Path) -> None:
    names = [f"d{n % 50}/e{n % 7}/f{n}.json" for n in range(3000)]
    for name in names:
        write(tmp_path / "source", name)
    with ticking(repo) as (_, recorder):
        subprocess.run(["cp", "-r", tmp_path / "source", repo / ".shapeup/copied"], check=True)
        recorder.wait_for(f".shapeup/copied/{name}" for name in names)


def test_folders_renamed_into_the_tree_are_marked_with_all_they_hold(repo: Path, tmp_path: Path) -> None:
    with ticking(repo) as (_, recorder):
        for n in range(200):
            for inner in ("a.json", "deep/b.json", "deep/er/c.json"):
                write(tmp_path, f"outside{n}/{inner}")
            (tmp_path / f"outside{n}").rename(repo / f".shapeup/in{n}")
        recorder.wait_for(
            f".shapeup/in{n}/{inner}" for n in range(200) for inner in ("a.json", "deep/b.json", "deep/er/c.json")
        )


def test_a_branch_switch_marks_all_that_came_and_all_that_went(repo: Path) -> None:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")

    def git(*words: str) -> None:
        subprocess.run(["git", *identity, *words], cwd=repo, env=quiet, check=True, capture_output=True)

    branches = [[f"shapeup/b{b}d{n}/scopes/s{n}.md" for n in range(300)] for b in range(5)]
    git("init", "-q", "-b", "empty")
    git("commit", "-q", "--allow-empty", "-m", "empty")
    for b, paths in enumerate(branches):
        git("checkout", "-q", "-b", f"b{b}", "empty")
        for path in paths:
            write(repo, path)
        git("add", "shapeup")
        git("commit", "-q", "-m", f"b{b}")
    git("checkout", "-q", "empty")
    with ticking(repo) as (_, recorder):
        before: list[str] = []
        for b, paths in enumerate(branches):
            recorder.clear()
            git("checkout", "-q", f"b{b}")
            recorder.wait_for(paths)
            recorder.wait_for(before)
            before = paths


def test_a_tree_that_is_deleted_and_made_again_is_watched_again(repo: Path) -> None:
    with ticking(repo) as (watcher, recorder):
        for n in range(5):
            shutil.rmtree(repo / ".shapeup")
            recorder.wait_for([write(repo, f".shapeup/checkout/results/again{n}.json")])
        assert watcher.counters["rearms"] >= 1


def test_a_tree_that_is_renamed_away_and_made_again_is_watched_again(repo: Path) -> None:
    with ticking(repo) as (_, recorder):
        gone = write(repo, ".shapeup/checkout/results/first.json")
        recorder.wait_for([gone])
        for n in range(5):
            recorder.clear()
            (repo / ".shapeup").rename(repo / f".shapeup-{n}")
            new = write(repo, f".shapeup/checkout/results/again{n}.json")
            recorder.wait_for([gone, new])
            gone = new


def test_trees_that_do_not_exist_yet_are_noticed_when_they_come(tmp_path: Path) -> None:
    with ticking(tmp_path) as (_, recorder):
        recorder.wait_for([write(tmp_path, "shapeup/checkout/scopes/cart.md")])
        recorder.wait_for([write(tmp_path, ".shapeup/checkout/orders/cart-r1-a1.json")])


def test_the_rest_of_the_repository_is_not_watched(repo: Path) -> None:
    (repo / "src").mkdir()
    with watching(repo) as (watcher, recorder):
        assert watcher._listener is not None
        assert "src" not in watcher._listener.armed()
        write(repo, "src/main.py")
        write(repo, "README.md")
        recorder.wait_for([write(repo, "shapeup/last.md")])
        assert recorder.marks == {"shapeup/last.md"}


def test_at_the_start_every_file_is_marked(repo: Path) -> None:
    paths = {write(repo, f".shapeup/checkout/orders/o{n}.json") for n in range(20)}
    with watching(repo) as (_, recorder):
        assert recorder.marks == paths


# --- the event filter (target 3) ---------------------------------------------------------------------------------------


def test_reading_a_file_marks_nothing(repo: Path) -> None:
    path = repo / write(repo, "shapeup/checkout/pitch.md")
    with watching(repo) as (_, recorder):
        recorder.clear()
        for _ in range(1000):
            path.read_bytes()
            os.listdir(path.parent)
        recorder.wait_for([write(repo, "shapeup/checkout/last.md")])
        assert recorder.marks == {"shapeup/checkout/last.md"}


def test_the_filter_is_exactly_these_seven() -> None:
    assert set(listening.TREE_EVENTS) == {
        FileCreatedEvent,
        FileMovedEvent,
        FileClosedEvent,
        FileDeletedEvent,
        DirCreatedEvent,
        DirMovedEvent,
        DirDeletedEvent,
    }
    assert len(listening.TREE_EVENTS) == 7


def link_in(repo: Path) -> str:
    os.link(repo / "outside.json", repo / "shapeup/linked.json")
    return "shapeup/linked.json"


def rename_inside(repo: Path) -> str:
    (repo / "shapeup/old.json").rename(repo / "shapeup/new.json")
    return "shapeup/new.json"


def rewrite(repo: Path) -> str:
    return write(repo, "shapeup/old.json", "other")


def delete(repo: Path) -> str:
    (repo / "shapeup/old.json").unlink()
    return "shapeup/old.json"


def rename_folder_out(repo: Path) -> str:
    (repo / "shapeup/folder").rename(repo / "taken")
    return "shapeup/folder/inner.json"


@pytest.mark.usefixtures("patient_moves")
@pytest.mark.parametrize("dropped", [True, False])
@pytest.mark.parametrize(
    ("kind", "act"),
    [
        (FileCreatedEvent, link_in),
        (FileMovedEvent, rename_inside),
        (FileClosedEvent, rewrite),
        (FileDeletedEvent, delete),
        (DirDeletedEvent, rename_folder_out),
    ],
)
def test_without_any_one_kind_of_event_a_change_waits_for_the_rescan(
    repo: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[FileSystemEvent],
    act: Callable[[Path], str],
    dropped: bool,
) -> None:
    if dropped:
        monkeypatch.setattr(listening, "TREE_EVENTS", tuple(k for k in listening.TREE_EVENTS if k is not kind))
    write(repo, "outside.json")
    write(repo, "shapeup/old.json")
    write(repo, "shapeup/folder/inner.json")
    with watching(repo) as (watcher, recorder):
        recorder.clear()
        path = act(repo)
        recorder.wait_for([write(repo, "shapeup/last.json")])  # events of one tree come in order
        assert (path in recorder.marks) is not dropped
        assert path in watcher.rescan() or not dropped


@pytest.mark.usefixtures("patient_moves")
@pytest.mark.parametrize("dropped", [None, DirCreatedEvent, DirMovedEvent, DirDeletedEvent])
def test_without_any_one_kind_of_folder_event_a_tree_comes_or_goes_unnoticed_until_the_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropped: type[FileSystemEvent] | None
) -> None:
    kept = tuple(kind for kind in listening.TREE_EVENTS if kind is not dropped)
    monkeypatch.setattr(listening, "TREE_EVENTS", kept)
    with watching(tmp_path) as (_, recorder):
        (tmp_path / "shapeup").mkdir()
        (tmp_path / "shapeup").rename(tmp_path / "other")
        (tmp_path / "other").rename(tmp_path / "shapeup")
        (tmp_path / "shapeup").rmdir()
        lost = {DirCreatedEvent: 1, DirMovedEvent: 2, DirDeletedEvent: 1}
        expected = 4 - sum(count for kind, count in lost.items() if kind is dropped)
        # The order of events behind these is kept, so one more of another kind shows that none is still coming.
        if dropped is DirCreatedEvent:
            (tmp_path / "other").mkdir()
            (tmp_path / "other").rename(tmp_path / "shapeup")
        else:
            (tmp_path / "shapeup").mkdir()
        recorder.wait(lambda: recorder.wakes > expected, "the last wake")
        assert recorder.wakes == expected + 1


def test_both_ends_of_a_folder_move_are_marked(repo: Path) -> None:
    write(repo, "shapeup/one/deep/a.md")
    with watching(repo) as (_, recorder):
        recorder.clear()
        (repo / "shapeup/one").rename(repo / "shapeup/two")
        recorder.wait_for(["shapeup/one/deep/a.md", "shapeup/two/deep/a.md"])
        recorder.wait_for([write(repo, "shapeup/two/deep/b.md")])


def test_an_editors_rename_sequence_marks_the_file_and_never_its_helpers(repo: Path) -> None:
    write(repo, "shapeup/a.md")
    with watching(repo) as (_, recorder):
        recorder.clear()
        write(repo, "shapeup/4913")
        (repo / "shapeup/4913").unlink()
        (repo / "shapeup/a.md").rename(repo / "shapeup/a.md~")
        write(repo, "shapeup/a.md", "new")
        (repo / "shapeup/a.md~").unlink()
        write(repo, "shapeup/.a.md.tmp1")
        (repo / "shapeup/.a.md.tmp1").rename(repo / "shapeup/a.md")
        write(repo, ".shapeup/checkout/.ingest.lock/owner.json")
        recorder.wait_for(["shapeup/a.md", write(repo, "shapeup/last.md")])
        assert recorder.marks == {"shapeup/a.md", "shapeup/last.md"}


# --- links -------------------------------------------------------------------------------------------------------------


def test_a_linked_folder_is_marked_as_an_entry_and_never_followed(repo: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/a.json")
    with watching(repo) as (watcher, recorder):
        (repo / "shapeup/link").symlink_to(tmp_path / "outside")
        recorder.wait_for(["shapeup/link"])
        write(tmp_path, "outside/b.json")
        recorder.wait_for([write(repo, "shapeup/last.md")])
        assert watcher.rescan() <= {"shapeup/link", "shapeup/last.md"}
        assert recorder.marks == {"shapeup/link", "shapeup/last.md"}


def test_a_tree_swapped_for_a_link_is_one_entry_and_its_target_stays_unwatched(repo: Path, tmp_path: Path) -> None:
    write(repo, "shapeup/a.md")
    write(tmp_path, "outside/b.md")
    with watching(repo) as (watcher, recorder):
        shutil.rmtree(repo / "shapeup")
        (repo / "shapeup").symlink_to(tmp_path / "outside")
        recorder.clear()
        watcher.tick(0.0)
        assert {"shapeup", "shapeup/a.md"} <= recorder.marks
        assert not any("b.md" in path for path in recorder.marks)
        assert watcher._listener is not None
        assert not any(path.startswith("shapeup") for path in watcher._listener.armed())
        assert watcher.degraded is None


# --- overflow (target 1) -----------------------------------------------------------------------------------------------


def test_files_made_while_the_process_is_stopped_are_all_marked_though_the_queue_ran_over(repo: Path) -> None:
    count = int(MAX_QUEUED.read_text()) // 2 + 3000  # each file is two events
    if count > 100_000:
        pytest.skip(f"max_queued_events is {MAX_QUEUED.read_text().strip()}: overflowing it takes too long here")
    child = subprocess.Popen(
        [sys.executable, "-c", SLEEPER, str(repo), str(count), "watch.overflow"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        for n in range(count):
            with open(f"{repo}/.shapeup/checkout/results/r{n}.json", "w"):
                pass
        os.kill(child.pid, signal.SIGCONT)
        told = json.loads(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()
    assert told["marks"] == count
    assert told["rescanned"] == 0
    assert told["counters"]["overflows"] >= 1
    assert [fields for event, fields in told["notices"] if event == "watch.overflow"]


# --- structure ---------------------------------------------------------------------------------------------------------


def test_one_module_imports_watchdog() -> None:
    def imports_watchdog(path: Path) -> bool:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            if any(name.split(".")[0] == "watchdog" for name in names):
                return True
        return False

    folders = ("daemon", "hooks", "parsers", "reducers")
    modules = [path for folder in folders for path in (REPOSITORY / folder).rglob("*.py")]
    assert [str(path.relative_to(REPOSITORY)) for path in modules if imports_watchdog(path)] == ["daemon/listener.py"]
