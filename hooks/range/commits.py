"""Reads a range of commits with one git process, whatever its length. Source: targets 16, 17, 20, rulings E5, E13.

Replacement objects and grafts are switched off: what is judged is what is pushed, not what a local ref paints over it.
Light module: standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hooks.git import GitFailed, hook_env
from hooks.path_change import ABSENT_MODE, PathChange

# Every setting of the user's or the repository's that could hide or bend a path is named here.
LOG_OPTIONS = (
    "--no-replace-objects",
    "log",
    "--stdin",
    "-z",
    "--raw",
    "-c",  # of a merge: only what differs from every parent, found without listing all that the other side brought
    "--root",
    "--no-renames",
    "--no-abbrev",
    "--no-relative",
    "-O/dev/null",
    "--ignore-submodules=none",
    "--no-show-signature",
    "--encoding=UTF-8",
    "--format=%x01%H%n%P%n%at%n%ct%n%B",
)


class Commit(NamedTuple):
    """One commit and what it changes: for a merge, the paths that differ from every parent, their old side the first parent's.

    Times are seconds since 1970, 0 where the commit holds none that git can read. `others`: for a merge, what each path
    was in the second and later parents, as (mode, object id) in their order.
    """

    id: str
    parents: tuple[str, ...]
    author_s: int
    committer_s: int
    message: bytes
    changes: tuple[PathChange, ...] = ()
    others: tuple[tuple[tuple[str, str], ...], ...] = ()  # one entry a change; empty where it is no merge

    @property
    def short(self) -> str:
        """The id as people read it."""
        return self.id[:12]

    @property
    def subject(self) -> str:
        """The message's first line; bytes that are no UTF-8 replaced."""
        return self.message.lstrip(b"\n").split(b"\n", 1)[0].decode("utf-8", "replace")

    def views(self) -> Iterator[tuple[PathChange, ...]]:
        """What the commit changes as each of its parents sees it, the first one's view first."""
        yield self.changes
        for parent in range(len(self.parents) - 1 if self.others else 0):
            seen = []
            for change, others in zip(self.changes, self.others, strict=True):
                mode, blob = others[parent]
                status = "A" if mode == ABSENT_MODE else "D" if change.new_mode == ABSENT_MODE else "M"
                seen.append(change._replace(status=status, old_mode=mode, old_blob=blob))
            yield tuple(seen)


def read_commits(
    tips: Sequence[str],
    *,
    without: Sequence[str] = (),
    but: Iterable[str] = (),
    at: tuple[str, ...] = (),
    ignores_missing: bool = False,
) -> tuple[Commit, ...]:
    """The commits that the tips reach, newest first. Left out is what `without` reaches (`--all`, `--remotes`: options of
    git log) and what the commits `but` reach. `at`: options before the verb, as `-C <dir>`.

    Tips that are no commits (a tag of a file) reach none. Raises GitFailed for a tip or one of `but` that is not here;
    `ignores_missing`: those are left out.
    """
    return tuple(stream_commits(tips, without=without, but=but, at=at, ignores_missing=ignores_missing))


def stream_commits(
    tips: Sequence[str],
    *,
    without: Sequence[str] = (),
    but: Iterable[str] = (),
    at: tuple[str, ...] = (),
    ignores_missing: bool = False,
) -> Iterator[Commit]:
    """As read_commits, one by one. git starts at once, so that the caller can do something else before it asks for the first."""
    if not tips:
        return iter(())
    verb = (*LOG_OPTIONS[:2], *(("--ignore-missing",) if ignores_missing else ()))  # it counts for what comes behind it
    command = ("git", *at, *verb, *LOG_OPTIONS[2:], *(("--not", *without) if without else ()))
    names = "\n".join((*tips, *(f"^{commit}" for commit in but), "")).encode()
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    said = os.memfd_create("git's stderr")
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate((in_read, out_write, said))]
    try:
        process = os.posix_spawnp("git", command, log_env(), file_actions=actions)
    except OSError:
        for fd in (in_write, out_read, said):
            os.close(fd)
        raise
    finally:
        os.close(in_read)
        os.close(out_write)
    _write_all(in_write, names)  # git reads all of it before it writes anything
    return _streamed(process, out_read, said)


def _write_all(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except BrokenPipeError:
        pass  # git ended early; its status tells
    finally:
        os.close(fd)


def _streamed(process: int, out: int, said: int) -> Iterator[Commit]:
    status = -1
    try:
        yield from _parse(_tokens(out))
    finally:
        os.close(out)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        words = os.pread(said, 4096, 0).decode("utf-8", "replace").strip().splitlines() if status else []
        os.close(said)
    if status:
        raise GitFailed(words[-1] if words else f"git log ended with {status}")


def _tokens(fd: int) -> Iterator[bytes]:
    """What stands between NULs, as it comes. What is long is put together once."""
    parts: list[bytes] = []
    while chunk := os.read(fd, 1 << 16):
        first, *tokens = chunk.split(b"\0")
        parts.append(first)
        if tokens:
            yield b"".join(parts)
            parts = [tokens.pop()]
            yield from tokens
    yield b"".join(parts)


def log_env() -> dict[str, str]:
    """The environment of a git that reads history as it is: the hook's own, without grafts."""
    return {**hook_env(), "GIT_GRAFT_FILE": "/dev/null"}


def parse_log(out: bytes) -> Iterator[Commit]:
    """The commits of a `git log -z --raw -c` in the format above, one by one."""
    return _parse(iter(out.split(b"\0")))


def _parse(tokens: Iterator[bytes]) -> Iterator[Commit]:
    commit: Commit | None = None
    changes: list[PathChange] = []
    others: list[tuple[tuple[str, str], ...]] = []
    for token in tokens:
        if token[:1] == b"\x01":
            if commit is not None:
                yield commit._replace(changes=tuple(changes), others=tuple(others))
            commit, changes, others = _header(token), [], []
        elif token[-1:].isalpha():
            meta = token.lstrip(b"\n").decode("ascii")
            if meta[1] == ":":
                change, rest = _combined(meta, next(tokens))
                others.append(rest)
            else:
                old_mode, new_mode, old_blob, new_blob, status = meta[1:].split(" ")
                change = PathChange(status, next(tokens), old_mode, new_mode, old_blob, new_blob)
            changes.append(change)
    if commit is not None:
        yield commit._replace(changes=tuple(changes), others=tuple(others))


def _header(token: bytes) -> Commit:
    name, parents, author, committer, message = token[1:].split(b"\n", 4)
    return Commit(
        name.decode("ascii"),
        tuple(parents.decode("ascii").split()),
        int(author or b"0"),
        int(committer or b"0"),
        message,
    )


def _combined(meta: str, path: bytes) -> tuple[PathChange, tuple[tuple[str, str], ...]]:
    """`::<mode of each parent> <mode> <id in each parent> <id> <letter for each parent>` as a change against the first parent."""
    fields = meta.lstrip(":").split(" ")
    parents = (len(fields) - 3) // 2
    modes, blobs, letters = fields[: parents + 1], fields[parents + 1 : -1], fields[-1]
    change = PathChange(letters[0], path, modes[0], modes[-1], blobs[0], blobs[-1])
    return change, tuple(zip(modes[1:-1], blobs[1:-1], strict=True))
