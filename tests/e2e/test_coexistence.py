"""Beside a plain hook and the real pre-commit, lefthook and husky: both sides run, and each can stop the commit. Source: targets 24.

A file `refuse-<who>` in the repository makes that side refuse, so that order and exit status show without any order of work.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hooks.install.disk_nodes import read_node
from hooks.install.stub_text import SAVED, is_of_lefthook, is_of_pre_commit, is_stub
from tests.e2e.hook_tools import command, tool
from tests.hooks.history import ENV, History
from tests.hooks.installing import Picture, picture

PRE_COMMIT_CONFIG = """\
repos:
  - repo: local
    hooks:
      - {id: theirs, name: theirs, language: system, entry: sh theirs.sh, always_run: true, pass_filenames: false}
"""
LEFTHOOK_CONFIG = """\
pre-commit:
  jobs:
    - name: theirs
      run: ": {files}; sh theirs.sh"
      files: echo theirs.sh
pre-push:
  commands:
    theirs:
      use_stdin: true
      files: echo theirs.sh
      run: ": {files}; cat >>\\"$SAID\\""
"""
THEIRS = 'echo theirs >>"$SAID"\n[ ! -e refuse-theirs ]\n'


class World:
    """A repository with hooks of somebody else, and a word of every side that ran."""

    def __init__(self, root: Path, home: Path, *tools: Path) -> None:
        self.said = home / "said"
        path = os.pathsep.join([*map(os.fspath, tools), os.environ["PATH"]])
        self.env = ENV | {
            "PATH": path,
            "HOME": os.fspath(home),
            "SAID": os.fspath(self.said),
            "PRE_COMMIT_HOME": os.fspath(home / "pre-commit"),
            "NO_COLOR": "1",
        }
        self.env.pop("CI", None)
        for name in ("HUSKY", "LEFTHOOK", "SKIP"):
            self.env.pop(name, None)
        self.repo = History(root)
        self.root = root
        self.repo.write("theirs.sh", THEIRS)
        self._unspied: dict[Path, bytes] = {}

    def run(self, *words: str, at: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=at or self.root, env=self.env | env, capture_output=True, text=True, check=False, timeout=120
        )

    def must(self, *words: str, at: Path | None = None) -> str:
        done = self.run(*words, at=at)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def commit(self, *words: str, at: Path | None = None, **env: str) -> tuple[int, list[str]]:
        """One commit: how it ended, and who ran, in order. Our side is known by what it leaves in `accepts`."""
        self.said.write_text("")
        with open((at or self.root) / "changing", "a") as file:
            file.write("x")
        self.must("git", "add", "changing", at=at)
        done = self.run("git", "commit", "-qm", "a change", *words, at=at, **env)
        return done.returncode, self.said.read_text().split()

    def hook(self, name: str) -> Path:
        return self.root / ".git" / "hooks" / name

    def spy(self) -> None:
        """Let our stubs say that they ran, and refuse where `refuse-gate` lies; the rest of them stays what it is."""
        folders = [self.root / ".git" / "hooks", self.root / ".git" / "shapeupd" / "hooks"]
        word = b'\n[ "$hook" != pre-commit ] || { echo gate >>"$SAID"; [ ! -e refuse-gate ] || exit 1; }\nsaved='
        for path in (path for folder in folders if folder.exists() for path in folder.iterdir()):
            if not path.is_symlink() and is_stub(read_node(os.fspath(path))):
                self._unspied[path] = path.read_bytes()
                path.write_bytes(path.read_bytes().replace(b"\nsaved=", word, 1))

    def unspy(self) -> None:
        """Make the stubs again what install made them."""
        for path, data in self._unspied.items():
            path.write_bytes(data)

    def picture(self) -> Picture:
        common = self.root / ".git"
        found: Picture = {}
        for path in (common / "hooks", common / "info", common / "config", common / "shapeupd"):
            found |= picture(path)
        for path in self.root.iterdir():
            if path.name not in (".git", "node_modules", "changing"):
                found |= picture(path)
        return {name: row for name, row in found.items() if not name.endswith("lefthook.checksum")}  # lefthook's own


@pytest.fixture(autouse=True)
def _no_variables_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("GIT_", "SHAPEUP_ORDER", "XDG_CONFIG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")


def _install(world: World, *, status: int = 0) -> str:
    done = command("install", cwd=world.root)
    assert done.returncode == status, done.stderr
    return done.stdout


def _is_reversible(world: World) -> None:
    """Three installs are one, and uninstall restores hooks, config and modes byte for byte. Ends installed."""
    before = world.picture()
    _install(world)
    once = world.picture()
    for _ in range(2):
        assert _install(world).splitlines()[-1] == "nothing to change"
    assert world.picture() == once
    assert command("uninstall", cwd=world.root).returncode == 0
    assert world.picture() == before
    _install(world)


def _both_run_and_both_refuse(world: World, order: list[str], *, stops: bool) -> None:
    """`stops`: a refusal of ours keeps theirs from running at all."""
    world.spy()
    assert world.commit() == (0, order)
    (world.root / "refuse-theirs").touch()
    status, ran = world.commit()
    assert (status, set(ran)) == (1, {"gate", "theirs"})
    (world.root / "refuse-theirs").unlink()
    (world.root / "refuse-gate").touch()
    status, ran = world.commit()
    assert status == 1
    assert ran == (["gate"] if stops else order)
    (world.root / "refuse-gate").unlink()
    assert world.commit()[0] == 0


# --- a plain hook -----------------------------------------------------------------------------------------------------


@pytest.fixture
def plain(tmp_path: Path) -> World:
    (tmp_path / "home").mkdir()
    world = World(tmp_path / "repo", tmp_path / "home")
    world.hook("pre-commit").write_text("#!/bin/sh\n" + THEIRS)
    world.hook("pre-commit").chmod(0o755)
    return world


def test_a_plain_hook_runs_after_ours(plain: World) -> None:
    _is_reversible(plain)
    _both_run_and_both_refuse(plain, ["gate", "theirs"], stops=True)


def test_a_plain_hook_gets_its_stdin_arguments_and_status_through(plain: World, tmp_path: Path) -> None:
    pre_push = plain.hook("pre-push")
    pre_push.write_text('#!/bin/sh\necho "$1" >>"$SAID"\ncat >>"$SAID"\nexit 7\n')
    pre_push.chmod(0o755)
    _install(plain)
    plain.commit()
    plain.must("git", "init", "-q", "--bare", os.fspath(tmp_path / "bare"))
    plain.said.write_text("")
    assert plain.run("git", "push", "-q", os.fspath(tmp_path / "bare"), "HEAD:refs/heads/x").returncode != 0
    first, second = plain.said.read_text().splitlines()
    assert first == os.fspath(tmp_path / "bare")
    assert second.split()[:3:2] == ["HEAD", "refs/heads/x"]
    head = plain.repo.head
    assert plain.run(".git/hooks/pre-push", "origin", "url").returncode == 7
    assert head == plain.repo.head


# --- pre-commit -------------------------------------------------------------------------------------------------------


@pytest.fixture
def pre_commit(tmp_path: Path) -> World:
    bin_folder = tool("pre-commit")
    (tmp_path / "home").mkdir()
    world = World(tmp_path / "repo", tmp_path / "home", bin_folder)
    world.repo.write(".pre-commit-config.yaml", PRE_COMMIT_CONFIG)
    world.repo.commit("config")
    return world


def test_pre_commit_runs_after_ours(pre_commit: World) -> None:
    pre_commit.must("pre-commit", "install")
    _is_reversible(pre_commit)
    _both_run_and_both_refuse(pre_commit, ["gate", "theirs"], stops=True)


def test_pre_commit_installed_after_us_runs_us_too(pre_commit: World) -> None:
    _install(pre_commit)
    pre_commit.must("pre-commit", "install")
    assert is_of_pre_commit(read_node(os.fspath(pre_commit.hook("pre-commit"))))
    pre_commit.spy()
    assert pre_commit.commit() == (0, ["gate", "theirs"])
    (pre_commit.root / "refuse-gate").touch()
    assert pre_commit.commit()[0] == 1
    (pre_commit.root / "refuse-gate").unlink()


def test_installing_again_over_pre_commit_takes_the_front_and_runs_nobody_twice(pre_commit: World) -> None:
    pre_commit.hook("pre-commit").write_text('#!/bin/sh\necho plain >>"$SAID"\n')
    pre_commit.hook("pre-commit").chmod(0o755)
    _install(pre_commit)
    pre_commit.must("pre-commit", "install")
    _install(pre_commit)
    assert is_of_pre_commit(read_node(os.fspath(pre_commit.hook("pre-commit" + SAVED))))
    pre_commit.spy()
    assert pre_commit.commit() == (0, ["gate", "plain", "theirs"])


def test_pre_commit_installed_again_after_us_does_not_go_round(pre_commit: World) -> None:
    pre_commit.must("pre-commit", "install")
    _install(pre_commit)
    pre_commit.must("pre-commit", "install")
    pre_commit.spy()
    assert pre_commit.commit() == (0, ["gate", "theirs"])
    pre_commit.unspy()
    assert command("uninstall", cwd=pre_commit.root).returncode == 0
    assert pre_commit.commit() == (0, ["theirs"])


def test_our_own_hooks_file_works_through_the_real_pre_commit(pre_commit: World) -> None:
    """What `.pre-commit-hooks.yaml` offers, as a local hook of the system language."""
    offered = Path(__file__).parents[2] / ".pre-commit-hooks.yaml"
    if not offered.exists():
        pytest.skip("no .pre-commit-hooks.yaml in the project")
    import sys

    from daemon.yaml_file import read_yaml

    rows = read_yaml(offered.read_bytes())
    assert isinstance(rows, list)
    binaries = Path(sys.executable).parent
    pre_commit.env["PATH"] = f"{binaries}{os.pathsep}{pre_commit.env['PATH']}"
    for row in rows:
        stages = row.get("stages", ["pre-commit"])
        lines = [f"{key}: {_yaml(value)}" for key, value in row.items() if key != "language"]
        hook = "".join(f"        {line}\n" for line in ["language: system", *lines])
        config = "repos:\n  - repo: local\n    hooks:\n      -\n" + hook
        pre_commit.repo.write(".pre-commit-config.yaml", config)
        pre_commit.must("git", "add", "-A")
        words = ("pre-commit", "run", "--hook-stage", stages[0], row["id"])
        if stages[0] in ("pre-commit", "manual"):
            done = pre_commit.run(*words)
            assert done.returncode == 0, done.stdout + done.stderr


def _yaml(value: object) -> str:
    import json

    return json.dumps(value)


# --- lefthook ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def lefthook(tmp_path: Path) -> World:
    bin_folder = tool("lefthook")
    (tmp_path / "home").mkdir()
    world = World(tmp_path / "repo", tmp_path / "home", bin_folder)
    world.repo.write("lefthook.yml", LEFTHOOK_CONFIG)
    world.repo.commit("config")
    world.must("lefthook", "install")
    return world


def test_lefthook_runs_ours_among_its_commands(lefthook: World) -> None:
    _is_reversible(lefthook)
    assert is_of_lefthook(read_node(os.fspath(lefthook.hook("pre-commit"))))
    assert lefthook.must("git", "status", "--porcelain") == "?? .shapeupd.toml\n"  # its local file is ignored
    _both_run_and_both_refuse(lefthook, ["theirs", "gate"], stops=False)


def test_lefthook_writing_its_hooks_anew_does_not_lose_us(lefthook: World) -> None:
    _install(lefthook)
    lefthook.repo.write("lefthook.yml", LEFTHOOK_CONFIG + "post-merge:\n  commands:\n    x:\n      run: 'true'\n")
    lefthook.must("lefthook", "install")
    lefthook.spy()
    assert "gate" in lefthook.commit()[1]
    lefthook.unspy()
    _install(lefthook)


def test_lefthook_does_not_leave_us_out_of_commits_without_files(lefthook: World) -> None:
    _install(lefthook)
    lefthook.commit()
    lefthook.spy()
    lefthook.must("git", "rm", "-q", "changing")
    for words in (("only deletes",), ("nothing", "--allow-empty"), ("amended", "--allow-empty", "--amend")):
        lefthook.said.write_text("")
        lefthook.must("git", "commit", "-qm", *words)
        assert "gate" in lefthook.said.read_text(), words


def test_lefthook_hands_a_push_to_both(lefthook: World, tmp_path: Path) -> None:
    _install(lefthook)
    lefthook.commit()
    lefthook.must("git", "init", "-q", "--bare", os.fspath(tmp_path / "bare"))
    lefthook.said.write_text("")
    lefthook.must("git", "push", "-q", os.fspath(tmp_path / "bare"), "HEAD:refs/heads/x")
    assert "refs/heads/x" in lefthook.said.read_text()


def test_messages_reach_us_through_lefthook(lefthook: World) -> None:
    """prepare-commit-msg with one, two and three arguments, and a path with spaces in a linked worktree."""
    config = LEFTHOOK_CONFIG + "prepare-commit-msg:\n  commands:\n    x:\n      run: 'true'\n"
    lefthook.repo.write("lefthook.yml", config)
    lefthook.must("lefthook", "install")
    lefthook.repo.commit("config")
    _install(lefthook)
    copy = lefthook.root / ".git" / "shapeupd" / "hooks" / "prepare-commit-msg"
    copy.write_text('#!/bin/sh\nprintf "<%s>" "${1##*/}" "${2-}" "${3-}" "$#" >>"$SAID"\n[ -f "$1" ]\n')
    lefthook.said.write_text("")
    lefthook.must("git", "commit", "-q", "--allow-empty", "-m", "x")
    lefthook.must("git", "commit", "-q", "--allow-empty", "--amend", "--no-edit")
    assert "<COMMIT_EDITMSG><message><><2>" in lefthook.said.read_text()
    assert "<COMMIT_EDITMSG><commit><HEAD><3>" in lefthook.said.read_text()


def test_linked_worktrees_get_their_own_local_file(lefthook: World, tmp_path: Path) -> None:
    linked = tmp_path / "linked tree"
    lefthook.must("git", "worktree", "add", "-q", "-b", "linked", os.fspath(linked))
    _install(lefthook)
    assert (linked / "lefthook-local.yml").exists()
    lefthook.spy()
    assert "gate" in lefthook.commit(at=linked)[1]
    lefthook.unspy()
    assert command("uninstall", cwd=linked).returncode == 0
    assert not (linked / "lefthook-local.yml").exists()


@pytest.mark.parametrize(
    "local",
    [
        "# a comment\npre-commit:\n  # before the key\n  parallel: false\n\n  commands:\n    other:   # here\n      run: 'true'\n",
        "pre-commit:\n    commands:\n          other: {run: 'true'}\n",
        "pre-commit:\n",
        "pre-push:\n  commands:\n",
        "\n\n# nothing but comments",
        "output:\n  - meta\n",
        "pre-commit:\r\n  jobs:\r\n  - run: 'true'\r\n",
    ],
)
def test_a_local_file_keeps_every_other_byte(lefthook: World, local: str) -> None:
    path = lefthook.root / "lefthook-local.yml"
    path.write_bytes(local.encode())
    _is_reversible(lefthook)
    path.write_bytes(path.read_bytes() + b"# added later\n")
    lefthook.must("lefthook", "validate")
    lefthook.spy()
    assert "gate" in lefthook.commit()[1]
    lefthook.unspy()
    assert command("uninstall", cwd=lefthook.root).returncode == 0
    whole = local if local.endswith("\n") else local + "\n"
    assert path.read_bytes() == (whole + "# added later\n").encode()


@pytest.mark.parametrize(
    "local",
    [
        "pre-commit: {commands: {other: {run: 'true'}}}\n",
        "{}\n",
        "pre-commit:\n  commands:\n    shapeupd:\n      run: 'true'\n",
        "pre-commit: [\n",
        "a: &x\n  commands: {}\npre-commit: *x\n",
    ],
)
def test_a_local_file_that_cannot_take_a_line_is_left_and_named(lefthook: World, local: str) -> None:
    path = lefthook.root / "lefthook-local.yml"
    path.write_text(local)
    _install(lefthook, status=1)
    assert path.read_text() == local
    assert is_stub(read_node(os.fspath(lefthook.hook("commit-msg"))))


def test_lefthook_installed_after_us_leaves_our_other_hooks_and_installing_again_joins_it(tmp_path: Path) -> None:
    bin_folder = tool("lefthook")
    (tmp_path / "home").mkdir()
    world = World(tmp_path / "repo", tmp_path / "home", bin_folder)
    _install(world)
    world.repo.write("lefthook.yml", LEFTHOOK_CONFIG)
    world.must("lefthook", "install")
    assert is_stub(read_node(os.fspath(world.hook("pre-commit.old"))))
    _install(world)
    assert not world.hook("pre-commit.old").exists()
    world.spy()
    assert "gate" in world.commit()[1]


# --- husky ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def husky(tmp_path: Path) -> World:
    bin_folder = tool("husky")
    (tmp_path / "home").mkdir()
    world = World(tmp_path / "repo", tmp_path / "home", bin_folder)
    world.repo.write(".husky/pre-commit", THEIRS)
    world.repo.commit("hooks")
    world.must("husky")
    return world


def test_husky_runs_ours_first(husky: World) -> None:
    _is_reversible(husky)
    _both_run_and_both_refuse(husky, ["gate", "theirs"], stops=True)


def test_husky_made_anew_does_not_lose_us(husky: World) -> None:
    _install(husky)
    husky.must("husky")
    husky.spy()
    assert husky.commit() == (0, ["gate", "theirs"])


def test_a_pre_push_script_of_husky_still_reads_what_git_says(husky: World, tmp_path: Path) -> None:
    husky.repo.write(".husky/pre-push", 'while read -r line; do echo "$line" >>"$SAID"; done\nexit 5\n')
    _install(husky)
    husky.commit()
    husky.must("git", "init", "-q", "--bare", os.fspath(tmp_path / "bare"))
    husky.said.write_text("")
    assert husky.run("git", "push", "-q", os.fspath(tmp_path / "bare"), "HEAD:refs/heads/x").returncode != 0
    (line,) = husky.said.read_text().splitlines()
    assert line.split()[:3:2] == ["HEAD", "refs/heads/x"]
    husky.said.write_text("")
    assert husky.run(".husky/_/pre-push", "origin", "url").returncode == 5
    assert husky.said.read_text() == ""


def test_huskys_committed_lines_do_nothing_where_shapeupd_is_not_installed(husky: World, tmp_path: Path) -> None:
    _install(husky)
    husky.must("git", "add", "-A")
    husky.must("git", "commit", "-qm", "lines")
    clone = tmp_path / "clone"
    husky.must("git", "clone", "-q", os.fspath(husky.root), os.fspath(clone))
    husky.must("husky", at=clone)
    assert husky.commit(at=clone) == (0, ["theirs"])


def test_a_worktree_in_which_husky_was_never_run_is_said(husky: World, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    husky.must("git", "worktree", "add", "-q", "-b", "linked", os.fspath(linked))
    done = command("install", cwd=husky.root)
    assert f"note: {linked}: E-HOOKS core.hooksPath is relative" in done.stderr
