"""Stores blobs, a tree and a commit under a shadow ref: through pygit2, or through `git fast-import` where it cannot go. Source: protocol §6.5, W-51, design §4.

Neither way knows an index. fast-import takes the bytes from us, so no link is followed and any name goes, and a stream
that breaks off (we die) leaves no ref.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from io import FileIO
from typing import NamedTuple, Protocol

from daemon.git import open_object_writer
from daemon.trees.objects import WRITER, Entry, hasher, render_commit, write_trees
from daemon.trees.site import Site, git_env, settings
from hooks.git import GitFailed, run_git

PIECE = 1 << 20
STALE_S = 1.0


class Moving(Exception):
    """The file changed while it was read."""


class Tip(NamedTuple):
    """A commit that is to be made: where, what it says, when, after which."""

    ref: str
    message: bytes
    at: datetime
    parents: Sequence[str]

    @property
    def seconds(self) -> int:
        return int(self.at.timestamp())


class ObjectStore(Protocol):
    """Takes blobs as they are found, then all entries at once."""

    def add(self, data: bytes, blob: str) -> None:
        """Store the bytes, whose id the caller has computed."""

    def add_file(self, file: FileIO, size: int, blob: str) -> None:
        """Store what the file holds from where it stands. Raises Moving where that is no longer of this size and id."""

    def commit(self, entries: Mapping[str, Entry], tip: Tip) -> str:
        """Make the commit, point the ref at it, and return its id."""

    def close(self) -> None:
        """Let go; what was not committed is nothing."""


def clear_ref(site: Site, ref: str) -> None:
    """Remove the lock that a death left on the ref. The scope's lock is held, so only a git that was orphaned may still
    hold it, for milliseconds. Raises OSError."""
    lock = site.common / f"{ref}.lock"
    until = time.monotonic() + STALE_S
    while os.path.lexists(lock):
        if time.monotonic() > until:
            os.unlink(lock)
            return
        time.sleep(0.01)


class FastObjects:
    """Through pygit2. Raises whatever pygit2 raises."""

    def __init__(self, site: Site) -> None:
        writer = open_object_writer(site.common)
        if writer is None:
            raise GitFailed("pygit2 cannot open it")
        self._writer = writer

    def add(self, data: bytes, blob: str) -> None:
        if self._writer.write("blob", data) != blob:
            raise GitFailed("another kind of ids")

    def add_file(self, file: FileIO, size: int, blob: str) -> None:
        if self._writer.write_stream(file) != blob:
            raise Moving

    def commit(self, entries: Mapping[str, Entry], tip: Tip) -> str:
        tree = write_trees(entries, lambda data: self._writer.write("tree", data))
        commit = self._writer.write("commit", render_commit(tree, tip.parents, tip.seconds, tip.message))
        self._writer.point(tip.ref, commit)
        return commit

    def close(self) -> None:
        self._writer.close()


class SureObjects:
    """Through the command line. Raises GitFailed."""

    def __init__(self, site: Site) -> None:
        self._git = ("git", f"--git-dir={site.common}", *settings())
        self._common = site.common
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - held as long as the process
        self._process = subprocess.Popen(
            [*self._git, "fast-import", "--quiet", "--force", "--done", "--date-format=raw"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            env=git_env(),
        )

    def add(self, data: bytes, blob: str) -> None:
        self._send(b"blob\ndata %d\n" % len(data), data, b"\n")

    def add_file(self, file: FileIO, size: int, blob: str) -> None:
        self._send(b"blob\ndata %d\n" % size)
        take, left, told = hasher(len(blob), size), size, ""
        while left and (piece := file.read(min(left, PIECE))):
            told, left = take(piece), left - len(piece)
            self._send(piece)
        if left or told != blob:
            raise Moving
        self._send(b"\n")

    def commit(self, entries: Mapping[str, Entry], tip: Tip) -> str:
        who = WRITER + b" %d +0000" % tip.seconds
        first, *others = [parent.encode() for parent in tip.parents] or [b""]
        lines = [b"commit " + tip.ref.encode(), b"author " + who, b"committer " + who]
        lines += [b"data %d" % len(tip.message), tip.message]
        lines += [b"from " + first] if first else []
        lines += [b"merge " + parent for parent in others] + [b"deleteall"]
        for path, entry in entries.items():
            lines.append(f"M {entry.mode} {entry.blob} ".encode() + _quoted(path))
        self._send(b"\n".join(lines), b"\n\ndone\n")
        self._end()
        ran = run_git(*self._git[1:], "rev-parse", "--verify", tip.ref, env=git_env())
        if ran.status:
            raise GitFailed(f"{tip.ref} was not written")
        return ran.out.decode("ascii").strip()

    def _send(self, *pieces: bytes) -> None:
        assert self._process.stdin is not None
        try:
            for piece in pieces:
                self._process.stdin.write(piece)
        except BrokenPipeError:
            self._end()
            raise GitFailed("git fast-import ended before its time") from None

    def _end(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # how it ended is told below
        if self._process.wait():
            self._forget_report()
            self._said.seek(0)
            lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
            raise GitFailed(
                next(filter(lambda line: line.startswith(("fatal:", "error:")), lines), "git fast-import failed")
            )

    def _forget_report(self) -> None:
        """fast-import leaves a file about its own end in the git folder; what it says is told already."""
        try:
            os.unlink(self._common / f"fast_import_crash_{self._process.pid}")
        except OSError:
            pass

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except BrokenPipeError:
                pass
        self._said.close()


def _quoted(path: str) -> bytes:
    data = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + data + b'"'


STORES = (FastObjects, SureObjects)  # in this order: what the first stumbles over, the second may know
