"""What a patrol says, and what it survives: a git that is not there, a bug, a tree too large to watch. Source: ruling E7."""

import os
import subprocess
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon import clock
from daemon.log import Log
from daemon.place import Place
from daemon.stray.memory import NAME, Memory, forget_memory, read_memory, write_memory
from daemon.stray.patrol import Moment
from daemon.stray.report import judge_strays
from daemon.stray.sightings import RESTLESS_S, Sightings
from daemon.stray.strays import Strays
from daemon.stray.worktree_status import dirty_paths, find_checkouts
from hooks.git import scrubbed_env
from parsers.policy_file import Contract, Policy
from tests.hooks.gated import Gated

PATIENCE_S = 30.0
NOTHING_SLIPPED_PAST = 4_000_000_000
ORDER = Contract("cart/a-r1-a1", "execute", allowed=("src/cart/**",))
POLICY = Policy("digest", (ORDER,), human_globs=("notes/**",))


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 2).map(lambda n: (n,))), max_size=30))
def test_no_state_of_a_path_is_judged_twice_in_a_row_and_none_that_stands_is_forgotten(states):
    sightings, at, last = Sightings(), 0.0, {}
    for found in states:
        at += 1.0
        sightings.look({path.encode(): mark for path, mark in found.items()}, at, lambda _: True)
        at += RESTLESS_S
        for path in sightings.ripe(at):
            name = path.decode()
            assert last.get(name) != found[name]
            last[name] = found[name]
            sightings.judged(path, found[name])
        assert all(last.get(name) == mark for name, mark in found.items())


def test_a_moment_is_earlier_on_a_clock_that_was_set_back():
    moment = Moment(100.0, 5_000_000_000)
    assert moment.as_of(Moment(101.0, 6_000_000_000)) == 5_000_000_000
    assert moment.as_of(Moment(101.0, 2_000_000_000)) == 1_000_000_000


# --- judged by hand ---------------------------------------------------------------------------------------------------


@pytest.fixture
def gated(tmp_path):
    return Gated(tmp_path / "repo", hooks=())


def rules(gated, policy=POLICY, **more):
    (checkout,) = find_checkouts(Place(gated.root, gated.root / ".git"))
    found = judge_strays(checkout, dirty_paths(checkout), policy, since_s=NOTHING_SLIPPED_PAST, **more)
    return {stray.path.decode(): stray.rule for stray in found}


def test_each_rule_of_writing_makes_a_stray_and_no_rule_of_wording_does(gated):
    for path in ("docs/log.md", "src/other.py", "shapeup/cart/scopes/a.md"):
        gated.write(path, "# Log\n\n1\n")
    gated.git("add", "-A")
    gated.git("commit", "-q", "-m", "more")
    order = ORDER._replace(
        allowed=("src/cart/**", "shapeup/**"), frozen=("src/cart/kept.py",), append_only=("docs/log.md",)
    )
    policy = POLICY._replace(no_live_order="deny", has_open_run=True, contracts=(order,))
    gated.write("src/cart/ok.py", "1")
    gated.write("src/cart/kept.py", "1")
    gated.write("notes/a", "a person's")
    gated.write("docs/log.md", "rewritten\n")
    gated.write("shapeup/cart/scopes/a.md", "no contract at all\n")
    gated.write("shapeup/notes.md", "names TASK-001, a board id\n")
    gated.write(".shapeup/cart/x", "local")
    (gated.root / "src/cart/link").symlink_to("/etc/passwd")
    (gated.root / "src/other.py").unlink()
    assert rules(gated, policy) == {
        "src/cart/kept.py": "FROZEN",
        "docs/log.md": "APPEND-ONLY",
        "src/cart/link": "SYMLINK",
        "src/other.py": "OUTSIDE",
        "shapeup/cart/scopes/a.md": "R-19",
    }
    gated.write("docs/log.md", "# Log\n\n1\n2\n")
    assert "docs/log.md" not in rules(gated, policy, allow_paths=("src/other.*",))
    assert "src/other.py" not in rules(gated, policy, allow_paths=("src/other.*",))


def test_before_the_first_commit_all_that_lies_outside_is_a_stray_with_an_undo(tmp_path):
    root = tmp_path / "new"
    root.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=root, env=scrubbed_env(), check=True)
    (root / "staged").write_text("1")
    (root / "lying").write_text("1")
    subprocess.run(["git", "add", "staged"], cwd=root, env=scrubbed_env(), check=True)
    (checkout,) = find_checkouts(Place(root, root / ".git"))
    for stray in judge_strays(checkout, dirty_paths(checkout), POLICY):
        subprocess.run(["sh", "-c", stray.undo], cwd="/", env=scrubbed_env(), check=True)
    assert os.listdir(root) == [".git"]


def test_looking_writes_nothing_into_the_git_folder(gated):
    gated.write("src/stray", "2")
    os.utime(next(path for path in gated.root.iterdir() if path.is_file()))  # what git would like to note in its index
    before = {path: path.lstat().st_mtime_ns for path in (gated.root / ".git").rglob("*")}
    assert rules(gated) == {"src/stray": "OUTSIDE"}
    assert {path: path.lstat().st_mtime_ns for path in (gated.root / ".git").rglob("*")} == before


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"since_ns": 1}', '{"since_ns": 1, "told": {"a": {"!": [1]}}}', '{"since_ns": 1, "told": []}'],
)
def test_a_damaged_memory_is_none(tmp_path, text):
    (tmp_path / NAME).write_text(text)
    assert read_memory(tmp_path) is None


def test_a_link_in_the_memorys_place_is_not_followed(tmp_path):
    (tmp_path / "git").mkdir()
    (tmp_path / "elsewhere").write_text("kept")
    (tmp_path / "git" / NAME).symlink_to(tmp_path / "elsewhere")
    assert read_memory(tmp_path / "git") is None
    write_memory(tmp_path / "git", Memory(1, {}))
    assert (tmp_path / "elsewhere").read_text() == "kept"
    forget_memory(tmp_path / "git")
    assert os.listdir(tmp_path / "git") == []


# --- a patrol under way -----------------------------------------------------------------------------------------------


class Loop:
    """Turns as the daemon does, until something is said."""

    def __init__(self, root):
        self.woken = threading.Event()
        self.log = Log(root / ".shapeup", clock.now)
        self.rows = []
        write = self.log.write
        self.log.write = lambda event, **fields: self.rows.append(write(event, **fields))
        self.policy = POLICY
        self.strays = Strays(Place(root, root / ".git"), lambda: self.policy, self.log, self.woken.set)
        self.strays.tick(clock.monotonic())

    def wait_for(self, event, subject=None):
        until = clock.monotonic() + PATIENCE_S
        while clock.monotonic() < until:
            self.strays.tick(clock.monotonic())
            for row in self.rows:
                if row["event"] == event and subject in (None, row["subject"]):
                    return row
            self.woken.wait(0.5)
            self.woken.clear()
        raise AssertionError(f"no {event} {subject} in {self.rows}")


@pytest.fixture
def start(gated):
    loops = []

    def begin():
        loops.append(Loop(gated.root))
        return loops[-1]

    yield begin
    for loop in loops:
        loop.strays.close()
        loop.log.close()


def test_a_git_that_is_not_there_is_one_error_and_the_watch_goes_on_when_it_is_back(gated, start, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    loop = start()
    row = loop.wait_for("daemon.error")
    assert (row["code"], row["level"]) == ("E-GIT", "error")
    monkeypatch.undo()
    gated.write("stray", "1")
    loop.wait_for("writer.stray", "stray")
    assert [row["event"] for row in loop.rows].count("daemon.error") == 1


def test_a_tree_with_too_many_folders_is_said_once_and_polled(gated, start, monkeypatch):
    monkeypatch.setattr("daemon.stray.patrol.most_folders", lambda: 1)
    for name in ("one", "two", "three"):
        gated.write(f"src/cart/{name}/a", "allowed")
    loop = start()
    assert "more than 1 folders" in loop.wait_for("watch.degraded")["reason"]
    gated.write("src/stray", "1")
    loop.wait_for("writer.stray", "src/stray")
    assert [row["event"] for row in loop.rows] == ["watch.degraded", "writer.stray"]


def test_a_bug_in_judging_is_reported_and_blinds_nothing_that_comes_after(gated, start, monkeypatch):
    def fail(*_, **__):
        monkeypatch.undo()
        raise ValueError("a bug")

    monkeypatch.setattr("daemon.stray.patrol.judge_strays", fail)
    loop = start()
    gated.write("first", "1")
    assert loop.wait_for("daemon.error")["code"] == "E-BUG"
    gated.write("second", "1")
    loop.wait_for("writer.stray", "second")
    assert [row["subject"] for row in loop.rows if row["event"] == "writer.stray"] == ["second"]


def test_a_patrol_that_still_judges_when_no_order_is_live_any_more_leaves_no_memory(gated, start, monkeypatch):
    judging, go_on = threading.Event(), threading.Event()

    def judge_late(*args, **more):
        found = judge_strays(*args, **more)
        judging.set()
        assert go_on.wait(PATIENCE_S)
        return found

    monkeypatch.setattr("daemon.stray.patrol.judge_strays", judge_late)
    loop = start()
    gated.write("stray", "1")
    assert judging.wait(PATIENCE_S)
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "strays")
    loop.policy = Policy("")
    loop.strays.tick(clock.monotonic())
    go_on.set()
    thread.join(PATIENCE_S)
    assert not (gated.root / ".git" / NAME).exists()
    assert loop.rows == []
