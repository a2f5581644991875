"""Reads git's objects through one `git cat-file --batch`, however many are asked for. Source: targets 20, 21, 23.

It sees what the running hook sees: the quarantine, the alternates. Replacement objects are switched off.
Light module: standard library only.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import BinaryIO, NamedTuple

from hooks.git import GitFailed
from hooks.range.commits import log_env


class Entry(NamedTuple):
    """One line of a tree object. `mode` is six octal digits."""

    mode: str
    name: bytes
    id: str


class Objects:
    """A reader to be closed; git starts with the first question. `at`: options before the verb, as `-C <dir>`."""

    def __init__(self, at: tuple[str, ...] = ()) -> None:
        self._at = at
        self._process = 0
        self._questions: int | None = None
        self._answers: BinaryIO | None = None
        self._trees: dict[str, tuple[Entry, ...] | None] = {}

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def read(self, name: str) -> tuple[str, str, bytes] | None:
        """Id, kind (blob, tree, commit, tag) and bytes of an object named as git names them; None where there is none."""
        if "\n" in name:
            return None
        answers = self._start()
        assert self._questions is not None
        try:
            _write_all(self._questions, os.fsencode(name) + b"\n")
        except BrokenPipeError:
            raise GitFailed("git cat-file ended early") from None
        header = answers.readline()
        if not header:
            raise GitFailed("git cat-file ended early")
        fields = header.split()
        if len(fields) != 3 or not fields[2].isdigit():
            return None
        size = int(fields[2])
        data = answers.read(size + 1)
        if len(data) != size + 1:
            raise GitFailed("git cat-file ended early")
        return fields[0].decode("ascii"), fields[1].decode("ascii"), data[:-1]

    def blob(self, name: str) -> bytes | None:
        """The bytes of a file; None where nothing stands, or something else."""
        found = self.read(name)
        return found[2] if found and found[1] == "blob" else None

    def own_blob(self, blob: str) -> bytes:
        """The bytes of a blob that a tree names. Raises GitFailed where it is not here: a file that cannot be read is not absent."""
        data = self.blob(blob)
        if data is None:
            raise GitFailed(f"{blob} is not in this clone; `git cat-file -e {blob}` fetches it")
        return data

    def tree(self, name: str) -> tuple[Entry, ...] | None:
        """The entries of a folder, in git's order; None where nothing stands, or something else."""
        if name not in self._trees:
            found = self.read(name)
            self._trees[name] = _entries(found[2], len(found[0]) // 2) if found and found[1] == "tree" else None
        return self._trees[name]

    def entry(self, commit: str, path: bytes) -> Entry | None:
        """What stands at a path of any bytes in a commit; None where nothing does."""
        found: Entry | None = None
        folder = f"{commit}^{{tree}}"
        for name in path.split(b"/"):
            if found is not None and found.mode != "040000":
                return None
            found = next((entry for entry in self.tree(folder) or () if entry.name == name), None)
            if found is None:
                return None
            folder = found.id
        return found

    def close(self) -> None:
        """End git, if it was ever started."""
        if self._answers is None or self._questions is None:
            return
        os.close(self._questions)
        self._answers.close()
        os.waitpid(self._process, 0)
        self._answers = self._questions = None

    def _start(self) -> BinaryIO:
        if self._answers is not None:
            return self._answers
        in_read, self._questions = os.pipe()
        out_read, out_write = os.pipe()
        nothing = os.open(os.devnull, os.O_WRONLY)
        actions = [
            (os.POSIX_SPAWN_DUP2, in_read, 0),
            (os.POSIX_SPAWN_DUP2, out_write, 1),
            (os.POSIX_SPAWN_DUP2, nothing, 2),
        ]
        command = ("git", *self._at, "--no-replace-objects", "cat-file", "--batch")
        try:
            self._process = os.posix_spawnp("git", command, log_env(), file_actions=actions)
        except OSError:
            os.close(self._questions)
            os.close(out_read)
            raise
        finally:
            for fd in (in_read, out_write, nothing):
                os.close(fd)
        self._answers = os.fdopen(out_read, "rb")
        return self._answers


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _entries(data: bytes, id_bytes: int) -> tuple[Entry, ...]:
    found = []
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        last = end + 1 + id_bytes
        found.append(Entry(data[at:space].decode("ascii").zfill(6), data[space + 1 : end], data[end + 1 : last].hex()))
        at = last
    return tuple(found)
