"""One daemon per repository, whatever the lock file says. Source: rulings L4, targets 10."""

import json
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daemon.instance import Held, hold_instance, read_pid, render_daemon_json
from daemon.place import Place

HOLD = """
import sys
from pathlib import Path
from daemon.instance import hold_instance
from daemon.place import Place
root, git_dir = Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2] else None
hold_instance(Place(root, git_dir))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["git", "no git"])
def place(request, tmp_path):
    if request.param == "no git":
        return Place(tmp_path, None)
    (tmp_path / ".git").mkdir()
    return Place(tmp_path, tmp_path / ".git")


@pytest.fixture
def other(place):
    """Another process that holds the place."""
    words = [sys.executable, "-c", HOLD, str(place.root), str(place.git_dir or "")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_daemon_is_refused_and_told_the_pid(place, other):
    with pytest.raises(Held) as refusal:
        hold_instance(place)
    assert refusal.value.pid == other.pid


def test_after_kill_9_the_next_start_succeeds_at_once(place, other):
    other.send_signal(signal.SIGKILL)
    other.wait()
    with hold_instance(place):
        assert read_pid(place.lock) == os.getpid()


@pytest.mark.parametrize("content", [b"", b"garbage\n", b"\xff\x00", b"1\n", b"9" * 5000])
def test_what_the_lock_file_says_keeps_nobody_out(place, content):
    place.lock.parent.mkdir(exist_ok=True)
    place.lock.write_bytes(content)
    with hold_instance(place):
        assert place.lock.read_text() == f"{os.getpid()}\n"


def test_a_foreign_or_garbled_pid_never_stands_for_a_holder(place, other):
    place.lock.write_bytes(b"not a pid")
    with pytest.raises(Held) as refusal:
        hold_instance(place)
    assert refusal.value.pid is None


def test_wiping_the_local_tree_does_not_let_a_second_daemon_in(place, other):
    shutil.rmtree(place.local, ignore_errors=True)
    with pytest.raises(Held):
        hold_instance(place)


def test_release_leaves_the_file_and_frees_the_lock(place):
    first = hold_instance(place)
    first.release()
    first.release()
    assert place.lock.exists()
    hold_instance(place).release()


def test_children_do_not_inherit_the_lock(place):
    held = hold_instance(place)
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        held.release()
        hold_instance(place).release()
    finally:
        child.kill()
        child.wait()


def test_a_link_in_place_of_the_lock_is_not_followed(place, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    place.lock.parent.mkdir(exist_ok=True)
    place.lock.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        hold_instance(place)
    assert victim.read_text() == "precious"


def test_daemon_json_names_pid_socket_and_start():
    document = json.loads(render_daemon_json(Path("/run/x.sock"), datetime(2026, 3, 1, 12, tzinfo=UTC)))
    assert document["pid"] == os.getpid()
    assert document["socket"] == "/run/x.sock"
    assert document["started_at"] == "2026-03-01T12:00:00.000Z"
