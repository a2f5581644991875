"""When watching itself breaks: it is noticed, mended or replaced by polling, and nothing is missed meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daemon import listener as listening
from daemon.listener import Listener
from daemon.scan import fingerprint
from daemon.watcher import Backoff, Watcher
from tests.daemon.watching import MAX_QUEUED, REPOSITORY, SLEEPER, Recorder, make_repo, watching, write

pytestmark = pytest.mark.skipif(not MAX_QUEUED.exists(), reason="needs inotify")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


# --- supervision (target 11) -------------------------------------------------------------------------------------------


def parts(watcher: Watcher) -> Listener:
    assert watcher._listener is not None
    return watcher._listener


def stop_emitter(watcher: Watcher, recorder: Recorder, root: Path) -> None:
    observer = parts(watcher)._observer
    assert observer is not None
    for emitter in list(observer.emitters):
        emitter.stop()
        emitter.join()


def crash_emitter(watcher: Watcher, recorder: Recorder, root: Path) -> None:
    observer = parts(watcher)._observer
    assert observer is not None
    for emitter in list(observer.emitters):
        emitter.build_and_queue_event = None  # type: ignore[attr-defined]
    write(root, "shapeup/fatal.md")
    for emitter in list(observer.emitters):
        if emitter.watch.path.endswith("/shapeup"):
            emitter.join()


def stop_reader(watcher: Watcher, recorder: Recorder, root: Path) -> None:
    observer = parts(watcher)._observer
    assert observer is not None
    observer._inotify_fd.stop()
    observer._inotify_fd.join()


def end_dispatcher(watcher: Watcher, recorder: Recorder, root: Path) -> None:
    observer = parts(watcher)._observer
    assert observer is not None
    recorder.fail = SystemExit()
    write(root, "shapeup/fatal.md")
    observer.join()


def raise_in_handler(watcher: Watcher, recorder: Recorder, root: Path) -> None:
    recorder.fail = RuntimeError("the handler broke")
    write(root, "shapeup/unlucky.md")
    recorder.wait(lambda: recorder.fail is None, "the handler to break")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("fault", [stop_emitter, crash_emitter, stop_reader, end_dispatcher, raise_in_handler])
def test_after_a_fault_in_the_watching_threads_the_next_tick_has_everything(
    repo: Path, fault: Callable[[Watcher, Recorder, Path], None]
) -> None:
    with watching(repo) as (watcher, recorder):
        for n in range(25):
            recorder.clear()
            fault(watcher, recorder, repo)
            deaf = write(repo, f".shapeup/checkout/results/deaf{n}.json")
            if fault is raise_in_handler:
                recorder.wait_for([deaf])
                deaf = "shapeup/unlucky.md"
            watcher.tick(n * 20.0)
            assert deaf in recorder.marks
            assert watcher.alive
            recorder.wait_for([write(repo, f".shapeup/checkout/results/heard{n}.json")])
        assert watcher.counters["rearms"] == 25


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_reader_that_dies_of_a_folder_moved_out_remade_and_removed_is_replaced(repo: Path) -> None:
    (repo / "shapeup/moved").mkdir()
    with watching(repo) as (watcher, recorder):
        observer = parts(watcher)._observer
        assert observer is not None
        (repo / "shapeup/moved").rename(repo / "elsewhere")
        (repo / "shapeup/moved").mkdir()
        recorder.wait_for([write(repo, "shapeup/moved/a.md")])
        shutil.rmtree(repo / "shapeup/moved")
        (repo / "elsewhere").rmdir()  # watchdog 7.1.0 still holds it under its old path: KeyError in its thread
        observer._inotify_fd.join(2)
        deaf = write(repo, "shapeup/deaf.md")
        watcher.tick(0.0)
        recorder.wait_for([deaf, write(repo, "shapeup/heard.md")])
        assert watcher.alive


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_no_thread_and_no_descriptor_is_left_behind(repo: Path) -> None:
    def open_now() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    before = open_now()
    with watching(repo) as (watcher, recorder):
        for n, fault in enumerate([stop_emitter, stop_reader, end_dispatcher] * 3):
            fault(watcher, recorder, repo)
            watcher.tick(n * 20.0)
    assert open_now() == before


def test_children_do_not_inherit_the_event_queue(repo: Path) -> None:
    with watching(repo) as (watcher, _):
        observer = parts(watcher)._observer
        assert observer is not None
        assert not os.get_inheritable(observer._inotify_fd._inotify_fd)


def test_a_watcher_that_breaks_all_the_time_is_rearmed_ever_more_rarely_and_says_so(repo: Path) -> None:
    with watching(repo) as (watcher, recorder):
        now, rearms = 0.0, []
        while now < 60:
            before = watcher.counters["rearms"]
            stop_reader(watcher, recorder, repo)
            path = write(repo, f".shapeup/checkout/results/at{int(now * 10)}.json")
            watcher.tick(now)
            if watcher.counters["rearms"] > before:
                rearms.append(now)
                assert path in recorder.marks
            now += 0.5
        assert rearms[:3] == [0.0, 0.5, 1.0]
        assert rearms[-1] - rearms[-2] == 5.0
        assert watcher.degraded is not None
        assert "again and again" in watcher.degraded
        watcher.tick(now + 5)
        recorder.wait_for([write(repo, ".shapeup/mended.json")])
        watcher.tick(now + 10)
        assert watcher.degraded is not None  # not calm for 10 s yet
        watcher.tick(now + 16)
        assert watcher.degraded is None


def test_a_tree_that_comes_and_goes_is_no_fault_and_is_followed_at_once(repo: Path) -> None:
    with watching(repo) as (watcher, recorder):
        for n in range(20):
            shutil.rmtree(repo / "shapeup")
            path = write(repo, f"shapeup/made{n}.md")
            recorder.wait(lambda: not watcher.alive, "the swap to be noticed")
            watcher.tick(n * 0.1)
            assert path in recorder.marks
            assert watcher.alive
        assert watcher.degraded is None
        assert watcher.due_s(1.9) == 1.0


def test_backoff_spaces_attempts_from_a_tenth_of_a_second_to_five() -> None:
    backoff, now, waits = Backoff(), 100.0, []
    for _ in range(12):
        waits.append(round(backoff.wait_s(now), 3))
        now += waits[-1]
        backoff.took(now)
    assert waits == [0, 0, 0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert backoff.wait_s(now + 10.1) == 0


# --- rescans -----------------------------------------------------------------------------------------------------------


def go_deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listener, "dispatch", lambda self, event: None)


def test_a_change_that_no_event_told_of_is_marked_by_the_rescan_and_then_reported(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watching(repo) as (watcher, recorder):
        recorder.wait_for([write(repo, ".shapeup/heard.json")])  # and so the self-test before it
        watcher.tick(0.0)
        go_deaf(monkeypatch)
        path = write(repo, "shapeup/silent.md")
        watcher.tick(1.9)
        assert path not in recorder.marks
        watcher.tick(2.0)
        assert path in recorder.marks
        assert recorder.named("watch.rescan") == []
        watcher.tick(4.0)
        assert recorder.named("watch.rescan") == [{"count": 1, "paths": [path]}]


def test_a_rescan_that_finds_what_events_told_of_or_the_start_reports_nothing(repo: Path) -> None:
    write(repo, "shapeup/there before.md")
    with watching(repo) as (watcher, recorder):
        recorder.wait_for([write(repo, "shapeup/a.md")])
        watcher.rescan()
        watcher.rescan()
        assert recorder.notices == []


def test_a_rescan_after_nothing_happened_marks_nothing(repo: Path) -> None:
    write(repo, "shapeup/a.md")
    with watching(repo) as (watcher, recorder):
        recorder.clear()
        assert watcher.rescan() == set()
        assert recorder.batches == []


def test_what_the_reconciler_has_handled_is_not_marked_again(repo: Path) -> None:
    with watching(repo) as (watcher, recorder):
        own = write(repo, ".shapeup/checkout/board.md")
        recorder.wait_for([own])
        watcher.see(own)
        assert own not in watcher.rescan()
        other = write(repo, "shapeup/a.md")
        recorder.wait_for([other])
        assert other in watcher.rescan()


def test_a_change_after_the_fingerprint_that_was_handled_is_marked(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(repo, "shapeup/a.md", "one")
    with watching(repo) as (watcher, recorder):
        handled = fingerprint(repo / path)
        assert handled is not None
        go_deaf(monkeypatch)
        write(repo, path, "later and longer")
        watcher.see(path, handled)
        recorder.clear()
        assert watcher.rescan() == {path}
        assert recorder.marks == {path}


def test_a_mark_that_failed_in_a_rescan_is_made_again_by_the_next(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watching(repo) as (watcher, recorder):
        go_deaf(monkeypatch)
        path = write(repo, "shapeup/a.md")
        recorder.fail = RuntimeError("queue closed")
        with pytest.raises(RuntimeError):
            watcher.rescan()
        assert watcher.rescan() == {path}


def test_a_folder_that_cannot_be_read_is_said_once(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(repo, "shapeup/closed/a.md")
    with watching(repo) as (watcher, recorder):
        recorder.clear()
        real = os.open

        def deny(path: Any, flags: int, *rest: Any, **more: Any) -> int:
            if str(path).endswith("/closed"):
                raise PermissionError(13, "Permission denied")
            return real(path, flags, *rest, **more)

        monkeypatch.setattr("daemon.scan.os.open", deny)
        assert watcher.rescan() == set()
        assert watcher.rescan() == set()
        assert recorder.named("watch.degraded") == [{"reason": "cannot read shapeup/closed: Permission denied"}]
        assert watcher.degraded is None


# --- polling (target 34) -----------------------------------------------------------------------------------------------


def test_where_events_do_not_arrive_the_watcher_polls_every_second_and_returns_when_they_do(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as deaf:
        go_deaf(deaf)
        with watching(repo, rescan_s=30) as (watcher, recorder):
            watcher.tick(0.0)
            assert watcher.degraded is None
            watcher.tick(2.0)
            assert watcher.degraded is not None
            assert "do not arrive" in watcher.degraded
            path = write(repo, "shapeup/polled.md")
            watcher.tick(3.0)
            assert path in recorder.marks
            deaf.undo()
            watcher.tick(62.0)  # tries once more
            recorder.wait_for([write(repo, ".shapeup/after.json")])  # behind the test file, in order
            watcher.tick(63.0)
            assert watcher.degraded is None
            assert recorder.named("watch.degraded")[-1] == {"reason": None}


def test_where_events_arrive_the_self_test_leaves_nothing_behind_and_nothing_degraded(repo: Path) -> None:
    with watching(repo) as (watcher, recorder):
        recorder.wait_for([write(repo, ".shapeup/after.json")])  # events of one tree come in order
        watcher.tick(0.0)
        watcher.tick(100.0)
        assert watcher.degraded is None
        assert sorted(os.listdir(repo / ".shapeup")) == ["after.json", "checkout"]


def test_folders_that_are_not_armed_make_it_poll(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Listener.armed
    with monkeypatch.context() as limited:
        limited.setattr(Listener, "armed", lambda self: real(self) - {"shapeup/checkout"})
        with watching(repo, rescan_s=30) as (watcher, recorder):
            recorder.wait_for([write(repo, ".shapeup/settled.json")])
            watcher.tick(0.0)
            watcher.tick(1.0)
            assert watcher.degraded is not None
            assert "1 folders are not watched" in watcher.degraded
            watcher.tick(2.0)
            assert len(recorder.named("watch.degraded")) == 1
            limited.undo()
            recorder.wait_for([write(repo, ".shapeup/settled.md")])
            watcher.tick(62.0)
            watcher.tick(63.0)
            assert watcher.degraded is None


LIMITED = """
echo 50 > /proc/sys/user/max_inotify_watches || exit 77
exec "$0" -c "$1" "$2" "$3" "$4"
"""


def test_with_fifty_watches_for_two_hundred_folders_every_file_is_still_marked(repo: Path) -> None:
    folders = [f"shapeup/d{n}" for n in range(200)]
    for folder in folders:
        (repo / folder).mkdir()
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("needs unshare")
    child = subprocess.Popen(
        [unshare, "-U", "-r", "sh", "-c", LIMITED, sys.executable, SLEEPER, str(repo), "200", "watch.degraded"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        if child.stdout.readline() != "ready\n":
            pytest.skip("no user namespace with its own inotify limit here")
        for folder in folders:
            write(repo, f"{folder}/a.md")
        told = json.loads(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()
    assert told["marks"] == 200
    assert "folders are not watched" in told["degraded"]


def test_when_no_observer_can_be_had_it_polls_at_once(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError(24, "inotify instance limit reached")

    monkeypatch.setattr(listening, "InotifyObserver", refuse)
    with watching(repo, rescan_s=30) as (watcher, recorder):
        assert watcher.degraded is not None
        assert "instance limit" in watcher.degraded
        path = write(repo, "shapeup/a.md")
        watcher.tick(0.0)
        watcher.tick(1.0)
        assert path in recorder.marks


def test_on_a_network_file_system_it_polls_although_its_own_events_arrive(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daemon.watcher.filesystem_of", lambda path: "nfs4")
    with watching(repo) as (watcher, recorder):
        assert watcher.degraded == "a nfs4 file system reports no changes made elsewhere"
        assert recorder.named("watch.degraded") == [{"reason": watcher.degraded}]
        recorder.wait_for([write(repo, "shapeup/a.md")])


def test_with_polling_set_there_is_no_observer_and_every_change_is_found(repo: Path) -> None:
    with watching(repo, poll="on") as (watcher, recorder):
        assert watcher._listener is None
        assert watcher.degraded == "watch.poll is on"
        watcher.tick(0.0)
        path = write(repo, "shapeup/a.md")
        watcher.tick(0.9)
        assert path not in recorder.marks
        watcher.tick(1.0)
        assert path in recorder.marks
        assert watcher.alive


def test_with_polling_forbidden_it_never_polls_but_still_rescans(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_deaf(monkeypatch)
    with watching(repo, poll="off") as (watcher, recorder):
        watcher.tick(0.0)
        path = write(repo, "shapeup/a.md")
        watcher.tick(1.9)
        assert watcher.degraded is None
        watcher.tick(2.0)
        assert path in recorder.marks


def test_the_next_tick_is_due_within_a_second(repo: Path) -> None:
    with watching(repo) as (watcher, _):
        watcher.tick(0.0)
        assert watcher.due_s(0.0) == 1.0
        assert watcher.due_s(1.5) == 0.5
        assert watcher.due_s(7.0) == 0.0
