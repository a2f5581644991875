"""A real daemon and a real git: a write outside every live substrate is told once, with the command that takes it back. Source: ruling E7."""

import os
import shutil
import subprocess
from datetime import UTC, datetime

import pytest

from hooks.git import scrubbed_env
from tests.e2e.living import SmallRun, daemon, shapeupd

ENV = {
    **scrubbed_env(),
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_EDITOR": "true",
}
FENCE = "zz-fence"  # a stray of its own: everything written before it has been judged when it is told


class Repository:
    """A git repository with one commit, and the run of living.py in it."""

    def __init__(self, root):
        root.mkdir()
        self.root = root
        self.git("init", "-q", "-b", "main")
        self.write(".gitignore", ".shapeup/\n*.log\nbuild/\n")
        for path in ("src/other.py", "src/cart/a.py", "docs/a.md", "docs/b.md"):
            self.write(path, "1\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "base")
        self.fences = 0

    def git(self, *words, cwd=None):
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.root, capture_output=True, text=True, env=ENV, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def write(self, path, text, root=None):
        target = (root or self.root) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def order(self, stem="a-r1-a1", **more):
        """An order that is live from now on."""
        at = datetime.now(UTC).isoformat()  # noqa: TID251
        substrate = {"allowed": ["src/cart/**"], "shared": [], "frozen": [], "append_only": []}
        SmallRun(self.root).order(stem, compiled_at=at, substrate=substrate | more)

    def dirty(self, cwd=None):
        return self.git("status", "--porcelain", cwd=cwd).splitlines()

    def fence(self, living, folder=""):
        """Wait until everything written before is judged: strays are judged in the order in which they settle."""
        self.fences += 1
        name = f"{folder}{FENCE}{self.fences}"
        self.write(name, "x")
        living.wait_for("writer.stray", name)
        (self.root / name).unlink()


def govern(living, repository, **substrate):
    repository.order(**substrate)
    living.wait_for("order.admitted")
    living.sync()


def told(living):
    """What was told, fences apart."""
    return [row["subject"] for row in living.events("writer.stray") if not row["subject"].startswith(FENCE)]


def undo(row):
    """Run the command as somebody would who reads it in the log, in whatever folder."""
    done = subprocess.run(["sh", "-c", row["undo"]], cwd="/", capture_output=True, text=True, env=ENV, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repo")


def test_a_stray_write_is_told_once_with_an_undo_that_works_and_told_again_when_it_changes(repository):
    with daemon(repository.root) as living:
        govern(living, repository)
        repository.write("src/cart/a.py", "allowed\n")
        repository.write("build/x", "ignored")
        repository.write("src/debug.log", "ignored")
        repository.write("src/other.py", "stray\n")
        row = living.wait_for("writer.stray", "src/other.py")
        assert (row["rule"], row["live_orders"], row["worktree"]) == ("OUTSIDE", ["cart/a-r1-a1"], None)
        assert row["level"] == "warn"
        assert (repository.root / "src/other.py").read_text() == "stray\n"
        undo(row)
        assert repository.dirty() == [" M src/cart/a.py"]
        repository.fence(living)

        repository.write("src/other.py", "stray again\n")
        living.wait_for("writer.stray", "src/other.py", count=2)
        repository.fence(living)
        assert told(living) == ["src/other.py", "src/other.py"]
        shown = shapeupd("--repo", os.fspath(repository.root), "log", "-n", "50").stdout
        assert f"undo: git -C {repository.root} restore -- src/other.py" in shown
        assert living.events("daemon.error") == []


def test_every_way_to_stray_has_an_undo_that_leaves_git_status_clean(repository):
    odd = "docs/it's $HOME\n*.md"
    with daemon(repository.root) as living:
        govern(living, repository)
        repository.write("new.py", "untracked")
        repository.write(odd, "an odd name")
        repository.write("staged.py", "added")
        repository.write("both.py", "added")
        repository.write("docs/a.md", "staged")
        repository.git("add", "staged.py", "both.py", "docs/a.md")
        repository.write("both.py", "added, then changed")
        (repository.root / "docs/b.md").unlink()
        (repository.root / "src/other.py").chmod(0o755)
        (repository.root / "link").symlink_to("/etc/passwd")
        subjects = ["new.py", "staged.py", "both.py", "docs/a.md", "docs/b.md", "src/other.py", "link"]
        for subject in subjects:
            undo(living.wait_for("writer.stray", subject))
        (row,) = [row for row in living.events("writer.stray") if "$HOME" in row["subject"]] or [
            living.wait_for("writer.stray", '"docs/it\'s $HOME\\n*.md"')
        ]
        undo(row)
        assert repository.dirty() == []


def test_what_was_dirty_before_the_order_is_nobodys_until_it_changes(repository):
    repository.write("src/other.py", "a person's\n")
    repository.write("notes.txt", "a person's")
    with daemon(repository.root) as living:
        govern(living, repository)
        repository.fence(living)
        assert told(living) == []
        repository.write("notes.txt", "somebody's")
        living.wait_for("writer.stray", "notes.txt")
        assert told(living) == ["notes.txt"]


def test_paths_of_people_and_an_answered_order_are_silent(repository):
    (repository.root / ".shapeupd.toml").write_text('[gate]\nhuman_globs = ["notes/**"]\n')
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "settings")
    with daemon(repository.root) as living:
        govern(living, repository)
        repository.write("notes/a", "1")
        repository.fence(living)
        assert told(living) == []
        SmallRun(repository.root).result("a-r1-a1")
        living.wait_for("order.answered")
        living.sync()
        repository.write("src/other.py", "nobody's order is live")
        repository.order("b-r1-a1")
        living.wait_for("order.admitted", "cart/b-r1-a1")
        living.sync()
        repository.fence(living)
        assert told(living) == []


def test_linked_worktrees_are_watched_too_those_that_come_later_included(repository, tmp_path):
    early, late, inside = tmp_path / "early", tmp_path / "late", repository.root / "trees" / "inside"
    repository.git("worktree", "add", "-q", "--detach", os.fspath(early))
    with daemon(repository.root) as living:
        govern(living, repository)
        repository.write("src/other.py", "stray", root=early)
        row = living.wait_for("writer.stray", "src/other.py")
        assert row["worktree"] == os.fspath(early)
        undo(row)
        assert repository.dirty(cwd=early) == []
        for name, root in (("late.py", late), ("inside.py", inside)):
            repository.git("worktree", "add", "-q", "--detach", os.fspath(root))
            repository.write(name, "stray", root=root)
            row = living.wait_for("writer.stray", name)
            assert row["worktree"] == os.fspath(root)
        repository.fence(living)
        assert told(living) == ["src/other.py", "late.py", "inside.py"]
        repository.git("worktree", "remove", "--force", os.fspath(late))
        repository.fence(living)
        assert living.events("daemon.error") == []


def test_a_worktree_that_git_cannot_read_is_one_error_and_hides_no_stray_in_another(repository, tmp_path):
    for name in ("broken", "gone", "well"):
        repository.git("worktree", "add", "-q", "--detach", os.fspath(tmp_path / name))
    (repository.root / ".git/worktrees/broken/index").write_bytes(b"no index")
    with daemon(repository.root) as living:
        govern(living, repository)
        row = living.wait_for("daemon.error")
        assert (row["code"], row["level"]) == ("E-GIT", "error")
        assert f"stray writes are not seen: in {tmp_path}/broken: " in row["error"]
        shutil.rmtree(tmp_path / "gone")
        for number, root in enumerate((tmp_path / "well", repository.root, tmp_path / "well")):
            repository.write("x", "stray", root=tmp_path / "broken")
            repository.write(f"{number}.py", "stray", root=root)
            living.wait_for("writer.stray", f"{number}.py")
        assert len(living.events("daemon.error")) == 1


def test_a_file_or_a_folder_renamed_into_place_is_told(repository, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "deep").mkdir()
    (tmp_path / "made" / "deep" / "x.py").write_text("old")
    (tmp_path / "one.py").write_text("old")
    with daemon(repository.root) as living:
        govern(living, repository)
        (tmp_path / "one.py").rename(repository.root / "src" / "one.py")
        (tmp_path / "made").rename(repository.root / "src" / "made")
        living.wait_for("writer.stray", "src/one.py")
        living.wait_for("writer.stray", "src/made/deep/x.py")
        repository.write("src/made/deep/y.py", "in a folder that came")
        living.wait_for("writer.stray", "src/made/deep/y.py")
        repository.git("mv", "docs", "papers")
        for subject in ("docs/a.md", "docs/b.md", "papers/a.md", "papers/b.md"):
            living.wait_for("writer.stray", subject)


def test_what_git_itself_puts_there_is_no_stray(repository):
    repository.git("checkout", "-q", "-b", "wide")
    for number in range(2000):
        repository.write(f"wide/{number % 50}/{number}", str(number))
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "wide")
    repository.git("checkout", "-q", "-b", "clash", "main")
    repository.write("docs/a.md", "theirs\n")
    repository.write("docs/c.md", "theirs\n")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "theirs")
    repository.git("checkout", "-q", "main")
    repository.write("docs/a.md", "ours\n")
    repository.git("commit", "-q", "-a", "-m", "ours")
    with daemon(repository.root) as living:
        govern(living, repository)
        repository.git("checkout", "-q", "wide")
        repository.fence(living)
        repository.git("checkout", "-q", "main")
        subprocess.run(["git", "merge", "-q", "clash"], cwd=repository.root, capture_output=True, env=ENV, check=False)
        assert "UU docs/a.md" in repository.dirty()
        repository.fence(living)
        repository.git("merge", "--abort")
        repository.git("reset", "-q", "--soft", "HEAD~1")
        repository.fence(living)
        repository.git("reset", "-q", "--hard")
        repository.git("reset", "-q", "--mixed", "clash")
        repository.fence(living)
        assert told(living) == []


def test_a_crowd_of_strays_is_told_by_twenty_and_a_count(repository, tmp_path):
    for number in range(60):
        repository.write(f"crowd/{number:02}", "x", root=tmp_path)
    with daemon(repository.root) as living:
        govern(living, repository)
        shutil.move(tmp_path / "crowd", repository.root / "crowd")
        row = living.wait_for("writer.stray", os.fspath(repository.root))
        assert row["path_count"] == 40
        assert len(told(living)) == 21


def test_strays_made_while_no_daemon_lives_are_told_and_none_is_told_twice(repository):
    with daemon(repository.root) as living:
        govern(living, repository)
        repository.write("src/other.py", "stray\n")
        living.wait_for("writer.stray", "src/other.py")
        assert living.stop() == 0
    repository.write("docs/a.md", "stray\n")
    with daemon(repository.root) as living:
        living.wait_for("writer.stray", "docs/a.md")
        repository.fence(living)
        assert told(living) == ["docs/a.md"]


def test_a_restless_file_is_told_though_it_never_stands_still(repository):
    with daemon(repository.root) as living:
        govern(living, repository)
        writer = subprocess.Popen(
            ["sh", "-c", "while :; do echo x >> trace.txt; sleep 0.05; done"], cwd=repository.root, env=ENV
        )
        try:
            living.wait_for("writer.stray", "trace.txt")
        finally:
            writer.kill()
            writer.wait()


def test_polling_sees_the_same_and_a_repository_that_git_cannot_read_is_one_error(repository, tmp_path, monkeypatch):
    config = tmp_path / "config" / "shapeupd" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[watch]\npoll = "on"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(tmp_path / "config"))
    with daemon(repository.root) as living:
        govern(living, repository)
        index = repository.root / ".git" / "index"
        kept = index.read_bytes()
        index.write_bytes(b"no index")
        living.wait_for("daemon.error")
        index.write_bytes(kept)
        repository.write("src/other.py", "stray\n")
        living.wait_for("writer.stray", "src/other.py")
        repository.write("src/cart/a.py", "allowed\n")
        repository.fence(living)
        assert told(living) == ["src/other.py"]
        assert len(living.events("daemon.error")) == 1


def test_outside_git_nobody_patrols(tmp_path):
    with daemon(tmp_path) as living:
        SmallRun(tmp_path).order(
            "a-r1-a1", substrate={"allowed": ["src/**"], "shared": [], "frozen": [], "append_only": []}
        )
        living.wait_for("order.admitted")
        (tmp_path / "stray").write_text("x")
        living.sync()
        assert living.events("writer.stray") == living.events("daemon.error") == []
