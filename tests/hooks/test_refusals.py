"""The way forward that a refusal names works, in a real shell and a real git, whatever the path holds. Source: cli §1, design §4."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hooks.refusals import REMOVE, RESTORE, UNADD, UNCOMMIT, UNSTAGE, shell_word, undo_with

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "LC_ALL": "C",
}
NAMES = [
    b"plain.py",
    b"deep/er/a.py",
    b"a b",
    b"it's",
    b'q"q',
    b"back\\slash",
    b"star*",
    b"[ab]",
    b"a?",
    b":(top)x",
    b":x",
    b"-n",
    b"$HOME",
    b"`id`",
    b"new\nline",
    b"line end\n",
    b"two\x1bline ends\n\n",
    b"tab\t",
    "é".encode(),
    b"\xff\xfe",
    b"%s%n",
    b"\x1b[31m",
    b"a;b&c|d",
    b"~x",
    b"#x",
    b"{path}",
]


def git(root: Path, *words: str | bytes) -> bytes:
    return subprocess.run(["git", "-C", root, *words], check=True, capture_output=True, env=ENV).stdout


def in_shell(root: Path, command: str) -> None:
    ran = subprocess.run(["/bin/sh", "-c", command], cwd=root, env=ENV, capture_output=True, check=False)
    assert ran.returncode == 0, (command, ran.stderr)


def write(root: Path, names: list[bytes], text: bytes) -> None:
    for name in names:
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text)


def staged(root: Path, against: str = "HEAD") -> set[bytes]:
    out = git(root, "diff-index", "--cached", "--name-only", "-z", "--no-renames", against)
    return set(out.split(b"\0")) - {b""}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    return tmp_path


@pytest.fixture
def started(root: Path) -> Path:
    write(root, [b"first", *NAMES[::2]], b"old\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "first")
    return root


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_one_word_for_a_shell(name: bytes) -> None:
    word = shell_word(name, for_git=False)
    assert word.replace("\n", "").isprintable()
    assert "\n" not in word or name.endswith(b"\n")
    said = subprocess.run(["/bin/sh", "-c", f"printf '<%s>' {word}"], capture_output=True, env=ENV, check=True).stdout
    assert said == b"<" + name + b">"


def test_unstaging_takes_out_that_path_and_no_other(started: Path) -> None:
    write(started, NAMES, b"new\n")  # half of them are new, half changed
    git(started, "add", "--all")
    left = staged(started)
    assert left == set(NAMES)
    for name in NAMES:
        in_shell(started, undo_with(UNSTAGE, name))
        left -= {name}
        assert staged(started) == left
    git(started, "rm", "--quiet", "--cached", "--", "plain.py")
    in_shell(started, undo_with(UNSTAGE, b"plain.py"))  # a deletion
    assert staged(started) == set()


def test_before_the_first_commit_a_path_is_taken_out_again(root: Path) -> None:
    write(root, NAMES, b"new\n")
    git(root, "add", "--all")
    empty = git(root, "hash-object", "-t", "tree", "/dev/null").decode().strip()
    for name in NAMES:
        in_shell(root, undo_with(UNADD, name))
    assert staged(root, empty) == set()


def test_a_committed_path_is_taken_out_of_the_newest_commit(started: Path) -> None:
    write(started, [b"kept", *NAMES[:6]], b"new\n")
    git(started, "add", "--all")
    git(started, "commit", "--quiet", "-m", "second")
    for name in NAMES[:6]:
        in_shell(started, undo_with(UNCOMMIT, name))
    changed = git(started, "diff-tree", "-r", "--name-only", "-z", "HEAD~1", "HEAD")
    assert changed == b"kept\0"


def test_a_write_in_the_working_tree_is_undone(started: Path) -> None:
    write(started, NAMES, b"stray\n")
    for at, name in enumerate(NAMES):
        in_shell(started, undo_with(REMOVE if at % 2 else RESTORE, name))
    assert git(started, "status", "--porcelain", "-z") == b""
