"""The patrol as the loop starts, ends and supervises it: on a real repository, with a policy made by hand."""

import json
import os
import threading

import pytest

from daemon import clock
from daemon.log import Log
from daemon.place import Place
from daemon.stray.memory import NAME, Memory, read_memory, write_memory
from daemon.stray.strays import HUNG_S, Strays
from parsers.policy_file import Contract, Policy
from tests.hooks.gated import Gated

PATIENCE_S = 30.0
LIVE = Policy("digest", contracts=(Contract("cart/a-r1-a1", "execute", allowed=("src/cart/**",)),))
NONE = Policy("digest")


class World:
    """One repository, its log, and the loop's part of the work."""

    def __init__(self, root):
        self.gated = Gated(root, hooks=())
        self.policy = LIVE
        self.log = Log(root / ".shapeup", clock.now)
        self.woken = threading.Event()
        self.strays = Strays(Place(root, root / ".git"), lambda: self.policy, self.log, self.woken.set)

    def wait_for(self, event):
        """Turn as the loop does, until the log has said it."""
        until = clock.monotonic() + PATIENCE_S
        while clock.monotonic() < until:
            self.woken.wait(0.1)
            self.woken.clear()
            self.strays.tick(clock.monotonic())
            found = [row for row in self.logged() if row["event"] == event]
            if found:
                return found[0]
        raise AssertionError(self.logged())

    def logged(self):
        path = self.gated.root / ".shapeup/shapeupd.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path / "repo")
    yield world
    world.strays.close()
    world.log.close()


def patrols():
    return [thread for thread in threading.enumerate() if thread.name == "strays"]


def test_a_patrol_lives_while_an_order_constrains_and_leaves_nothing_behind(world):
    world.policy = NONE
    world.strays.tick(clock.monotonic())
    assert (world.strays.patrol, patrols()) == (None, [])
    world.policy = LIVE
    world.strays.tick(clock.monotonic())
    (thread,) = patrols()
    world.gated.write("docs/a", "stray\n")
    assert world.wait_for("writer.stray")["subject"] == "docs/a"
    assert (world.gated.root / ".git" / NAME).exists()
    world.policy = NONE
    world.strays.tick(clock.monotonic())
    thread.join(PATIENCE_S)
    assert (world.strays.patrol, patrols()) == (None, [])
    assert not (world.gated.root / ".git" / NAME).exists()


def test_outside_git_there_is_no_patrol(tmp_path):
    strays = Strays(Place(tmp_path, None), lambda: LIVE, Log(tmp_path / ".shapeup", clock.now))
    strays.tick(clock.monotonic())
    strays.close()
    assert (strays.patrol, patrols()) == (None, [])


def test_a_git_that_hangs_is_told_once_and_closing_does_not_wait_for_it(world, tmp_path, monkeypatch):
    fifo, shim = tmp_path / "fifo", tmp_path / "bin" / "git"
    os.mkfifo(fifo)
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\nread line < {fifo}\nexit 1\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    world.strays.tick(clock.monotonic())
    (thread,) = patrols()
    with open(fifo, "w"):  # opens once git has begun to read
        at = clock.monotonic() + HUNG_S + 1
        for later in range(3):
            world.strays.tick(at + later)
        (row,) = world.logged()
        assert (row["event"], row["code"]) == ("daemon.error", "E-GIT")
        assert "git has not answered" in row["error"]
        world.strays.close()
        assert thread.is_alive()
    thread.join(PATIENCE_S)
    assert patrols() == []


def test_what_is_remembered_is_read_back_and_what_is_no_memory_is_none(tmp_path):
    memory = Memory(12, {"/a top": {b"\xff\n": (1, 2, 3), b"gone": ()}})
    assert read_memory(tmp_path) is None
    write_memory(tmp_path, memory)
    assert read_memory(tmp_path) == memory
    assert os.listdir(tmp_path) == [NAME]
    for text in (
        "",
        "[]",
        "{}",
        '{"since_ns": "x", "told": {}}',
        '{"since_ns": 1, "told": {"a": {"!": [1]}}}',
        "[" * 9999,
    ):
        (tmp_path / NAME).write_text(text)
        assert read_memory(tmp_path) is None
