"""The watch of a working tree follows what changes under it, and says when it cannot. Source: ruling E7."""

import os
import subprocess
import threading

import pytest

from daemon.stray.worktree_watch import WorktreeWatch
from hooks.git import scrubbed_env

PATIENCE_S = 30.0


class Watched:
    """An open watch, and a way to wait until it has heard of a path."""

    def __init__(self, root, most=8192):
        self.woken = threading.Event()
        self.root = root
        self.watch = WorktreeWatch(os.fspath(root), self.woken.set, lambda: most)
        self.watch.open()

    def folders(self):
        """The folders that are watched, relative to the root."""
        start = len(os.fspath(self.root)) + 1
        return {os.fsdecode(path)[start:] for path in self.watch._listener._armed.values()}

    def hear(self, path=None):
        """Wait for the next hint, and catch up until the path was named; None: until everything is to be looked at."""
        heard = set()
        while True:
            assert self.woken.wait(PATIENCE_S), f"never heard of {path}, but of {heard}"
            self.woken.clear()
            hints = {os.fsdecode(hint) for hint in self.watch.catch_up()}
            heard |= hints
            if (path is None and not hints) or path in heard:
                return heard


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", os.fspath(root)], env=scrubbed_env(), check=True)
    for folder in ("src/deep", "node_modules/a/b", "sub/node_modules", ".shapeup/cart", "nested", "shapeup"):
        (root / folder).mkdir(parents=True)
    (root / ".gitignore").write_text("node_modules/\n.shapeup/\n")
    subprocess.run(["git", "init", "-q", os.fspath(root / "nested")], env=scrubbed_env(), check=True)
    return root


@pytest.fixture
def watched(root):
    opened = Watched(root)
    yield opened
    opened.watch.close()


def test_new_ignore_rules_are_followed(root, watched):
    (root / ".gitignore").write_text(".shapeup/\n")
    watched.hear()
    assert {"node_modules", "node_modules/a/b", "sub/node_modules"} <= watched.folders()


def test_lost_events_ask_for_a_look_at_everything(watched):
    watched.watch._listener.on_queue_overflow()
    assert watched.watch.is_stirred
    assert watched.watch.catch_up() == ()


def test_too_many_folders_or_a_thread_that_ended_is_trouble_and_watches_nothing(root):
    watched = Watched(root, most=3)
    assert watched.watch.trouble == "more than 3 folders"
    assert not watched.watch._listener.is_alive
    watched = Watched(root)
    watched.watch._listener._queue.stop()
    watched.watch._listener._queue.join()
    watched.watch.catch_up()
    assert watched.watch.trouble == "the watching thread ended"
    watched.watch.close()


def test_a_limit_of_the_kernel_is_trouble_and_not_an_error(root, monkeypatch):
    def refuse(self, *_):
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr("daemon.listener.InotifyFD._get_or_create_watch", refuse)
    watched = Watched(root)
    assert watched.watch.trouble == "inotify watch limit reached"
    monkeypatch.setattr("daemon.listener.InotifyFD.__init__", refuse)
    assert "inotify watch limit reached" in Watched(root).watch.trouble
