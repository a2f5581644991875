"""Hints from the kernel: folders that are armed one by one, and the watch over a working tree that knows what git ignores."""

import os
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon.listener import TreeListener
from daemon.stray.worktree_watch import MOST_HINTS, WorktreeWatch, most_folders
from tests.hooks.gated import Gated

PATIENCE_S = 30.0


class Ear:
    """Collects stirs and lets a test wait for one."""

    def __init__(self):
        self.heard = []
        self.changed = threading.Condition()

    def __call__(self, stir):
        with self.changed:
            self.heard.append(stir)
            self.changed.notify_all()

    def wait_for(self, wanted):
        """The first stir of which `wanted` is true."""
        with self.changed:
            found = self.changed.wait_for(lambda: [stir for stir in self.heard if stir and wanted(stir)], PATIENCE_S)
        assert found, self.heard
        return found[0]


@contextmanager
def listening():
    ear = Ear()
    listener = TreeListener(ear)
    listener.open()
    try:
        yield listener, ear
    finally:
        listener.close()


def named(folder, name):
    return lambda stir: (stir.folder, stir.name) == (os.fsencode(folder), name)


WRITES = {
    "made": lambda folder: (folder / "x").touch(),
    "written": lambda folder: (folder / "old").write_text("new"),
    "removed": lambda folder: (folder / "old").unlink(),
    "moved in": lambda folder: (folder.parent / "outside").rename(folder / "x"),
    "moved out": lambda folder: (folder / "old").rename(folder.parent / "x"),
    "another mode": lambda folder: (folder / "old").chmod(0o755),
    "a link": lambda folder: (folder / "x").symlink_to("y"),
    "a hard link": lambda folder: os.link(folder / "old", folder / "x"),
    "a folder": lambda folder: (folder / "x").mkdir(),
}


@pytest.mark.parametrize("way", WRITES)
def test_each_way_to_write_is_heard(tmp_path, way):
    folder = tmp_path / "armed"
    folder.mkdir()
    (folder / "old").write_text("old")
    (tmp_path / "outside").touch()
    with listening() as (listener, ear):
        listener.arm(os.fsencode(folder))
        WRITES[way](folder)
        stir = ear.wait_for(lambda stir: stir.name in (b"x", b"old"))
        assert stir.folder == os.fsencode(folder)
        assert stir.is_folder == (way == "a folder")


def test_what_is_only_read_or_lies_deeper_is_not_heard(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "file").write_text("x")
    with listening() as (listener, ear):
        listener.arm(os.fsencode(tmp_path))
        (tmp_path / "file").read_text()
        list(tmp_path.iterdir())
        (tmp_path / "deep" / "x").touch()
        (tmp_path / "fence").touch()
        ear.wait_for(named(tmp_path, b"fence"))
        assert {stir.name for stir in ear.heard} == {b"fence"}


def test_a_folder_is_armed_once_and_known_by_its_newest_place(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    with listening() as (listener, ear):
        listener.arm(os.fsencode(old))
        listener.arm(os.fsencode(old))
        old.rename(new)
        listener.arm(os.fsencode(new))
        assert len(listener) == 1
        (new / "x").touch()
        ear.wait_for(named(new, b"x"))


def test_folders_that_come_and_go_under_one_name_are_each_heard_and_leave_nothing_behind(tmp_path):
    folder = tmp_path / "folder"
    with listening() as (listener, ear):
        for number in range(50):
            folder.mkdir()
            listener.arm(os.fsencode(folder))
            name = b"%d" % number
            Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).touch()
            ear.wait_for(named(folder, name))
            (folder / str(number)).unlink()
            folder.rmdir()
        listener.arm(os.fsencode(tmp_path))
        (tmp_path / "fence").touch()
        ear.wait_for(named(tmp_path, b"fence"))
        assert len(listener) == 1


def test_what_is_no_folder_is_not_armed(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    with listening() as (listener, _):
        for name in ("file", "link", "nothing"):
            listener.arm(os.fsencode(tmp_path / name))
        assert len(listener) == 0


def test_an_ear_that_raises_ends_nothing(tmp_path):
    heard = threading.Event()

    def hear(stir):
        if stir.name == b"second":
            heard.set()
        raise ValueError("a bug")

    listener = TreeListener(hear)
    listener.open()
    try:
        listener.arm(os.fsencode(tmp_path))
        (tmp_path / "first").touch()
        (tmp_path / "second").touch()
        assert heard.wait(PATIENCE_S)
        assert listener.is_alive
    finally:
        listener.close()


def test_a_lost_event_is_told_as_none(tmp_path):
    with listening() as (listener, ear):
        listener.on_queue_overflow()
        assert ear.heard == [None]


def test_closing_leaves_no_thread_and_no_open_file(tmp_path):
    threads, files = set(threading.enumerate()), sorted(os.listdir("/proc/self/fd"))
    with listening() as (listener, _):
        listener.arm(os.fsencode(tmp_path))
    listener.close()
    assert set(threading.enumerate()) == threads
    assert sorted(os.listdir("/proc/self/fd")) == files
    listener.arm(os.fsencode(tmp_path))
    assert not listener.is_alive


# --- the watch over a working tree ------------------------------------------------------------------------------------


class Woken:
    def __init__(self):
        self.event = threading.Event()

    def hints(self, watch):
        """The paths heard of, once there is something to hear."""
        assert self.event.wait(PATIENCE_S)
        self.event.clear()
        return watch.catch_up()


@pytest.fixture
def gated(tmp_path):
    gated = Gated(tmp_path / "repo", hooks=())
    gated.write(".gitignore", ".shapeup/\nbuild/\n*.log\n")
    gated.git("commit", "-qam", "ignore")
    return gated


@contextmanager
def watching(gated, most=lambda: 100):
    woken = Woken()
    watch = WorktreeWatch(os.fspath(gated.root), woken.event.set, most)
    watch.open()
    try:
        yield watch, woken
    finally:
        watch.close()


def heard_until(watch, woken, wanted):
    """What was named, looked for until this path is."""
    found = set()
    while wanted not in found:
        found.update(woken.hints(watch))
    return found


def test_a_write_is_named_and_ignored_folders_and_gits_own_are_not_watched(gated):
    for path in ("build/deep/x", ".shapeup/cart/x", "src/cart/build/x"):
        gated.write(path)
    with watching(gated) as (watch, woken):
        assert len(watch) == 5  # the top, src, src/cart, src/tax, docs
        gated.write("build/deep/x", "more")
        gated.write(".shapeup/cart/x", "more")
        gated.git("tag", "x")
        gated.write("src/cart/a", "more")
        assert heard_until(watch, woken, b"src/cart/a") == {b"src/cart/a"}
        assert not watch.is_stirred


def test_a_folder_that_comes_is_watched_with_all_that_lies_in_it_and_asks_for_a_look_at_everything(gated, tmp_path):
    (tmp_path / "made" / "deep").mkdir(parents=True)
    with watching(gated) as (watch, woken):
        (tmp_path / "made").rename(gated.root / "src" / "made")
        assert woken.hints(watch) == ()
        gated.write("src/made/deep/x")
        assert heard_until(watch, woken, b"src/made/deep/x")


def test_a_folder_that_moves_is_named_by_its_new_place(gated):
    with watching(gated) as (watch, woken):
        (gated.root / "src").rename(gated.root / "lib")
        assert woken.hints(watch) == ()
        before = len(watch)
        gated.write("lib/a")
        assert heard_until(watch, woken, b"lib/a")
        assert len(watch) == before


def test_a_changed_gitignore_and_another_mode_of_the_top_ask_for_a_look_at_everything(gated):
    gated.write("build/x")
    with watching(gated) as (watch, woken):
        before = len(watch)
        gated.write(".gitignore", ".shapeup/\n")
        assert woken.hints(watch) == ()
        while len(watch) == before:
            woken.hints(watch)
        gated.write("build/y")
        assert heard_until(watch, woken, b"build/y")
        gated.root.chmod(0o700)
        assert woken.hints(watch) == ()


def test_many_writes_at_once_ask_for_a_look_at_everything(gated):
    last = threading.Event()
    with watching(gated) as (watch, _):
        hear = watch._listener._hear

        def hear_and_tell(stir):
            hear(stir)
            if stir.name == b"last":
                last.set()

        watch._listener._hear = hear_and_tell
        for number in range(MOST_HINTS + 1):
            gated.write(f"docs/{number:03}")
        gated.write("docs/last")
        assert last.wait(PATIENCE_S)
        assert watch.catch_up() == ()


def test_a_strangers_repository_inside_is_not_watched(gated):
    gated.git("init", "-q", "inner")
    gated.write("inner/deep/x")
    with watching(gated) as (watch, _):
        assert len(watch) == 5


def test_a_tree_with_more_folders_than_may_be_taken_is_not_watched_and_says_why(gated):
    with watching(gated, most=lambda: 4) as (watch, _):
        assert watch.trouble == "more than 4 folders"
        assert watch.catch_up() == ()
        assert len(watch) == 0


def test_folders_that_are_watched_already_do_not_count_again(gated):
    with watching(gated, most=lambda: 5) as (watch, _):
        watch.watch_anew()
        watch.catch_up()
        assert (watch.trouble, len(watch)) == (None, 5)
        (gated.root / "more").mkdir()
        watch.watch_anew()
        watch.catch_up()
        assert watch.trouble == "more than 5 folders"


def test_the_watch_leaves_most_of_what_the_kernel_grants_to_others():
    assert 0 < most_folders() <= int(Path("/proc/sys/fs/inotify/max_user_watches").read_text()) // 4
