"""Carries a planned restore out on disk; done again after a death it ends in the same bytes. Source: protocol §6.5, rulings G2, D1, targets 8, 29.

Each file is written beside its place and renamed over it, in folders reached without following a link.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from daemon.disk import open_folder
from daemon.journal import fsync
from daemon.trees.looking import Looker, Odd, folder_of
from daemon.trees.objects import LINK, PROGRAM, Entry, folders_above
from daemon.trees.site import Site, git_env, settings
from daemon.trees.steps import Plan, Step
from daemon.trees.store import PIECE, Moving
from daemon.writes import TEMP_SUFFIX, short_name
from hooks.git import GitFailed
from parsers.tree import Unreadable

BARRED = "a link or a file outside the scope's paths stands where its folder was"
OCCUPIED = "files that stay lie in a folder of that name"
CHANGING = "it is being changed just now"


class Carried(NamedTuple):
    """Paths that now are as planned, written or deleted; paths left, and paths that could not be changed, with the reason."""

    written: tuple[str, ...]
    deleted: tuple[str, ...]
    left: Mapping[str, str]
    failed: Mapping[str, str]


class Stays(Exception):
    """The path is left as it is; the text says why."""


class Blobs:
    """Reads blobs as they are stored, piece by piece, from one git process."""

    def __init__(self, site: Site) -> None:
        self._process = subprocess.Popen(
            ["git", f"--git-dir={site.common}", *settings(), "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=git_env(),
        )

    def read(self, blob: str, take: Callable[[bytes], object]) -> None:
        """Hand the bytes of the blob on, piece by piece. Raises GitFailed, and what `take` raises."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(blob.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise GitFailed("git cat-file ended before its time") from None
        words = self._process.stdout.readline().split()
        if len(words) != 3 or words[1] != b"blob":
            raise GitFailed(f"the stored file {blob} is not in the repository")
        self._hand_on(int(words[2]), take)

    def _hand_on(self, left: int, take: Callable[[bytes], object]) -> None:
        assert self._process.stdout is not None
        failure: BaseException | None = None
        while left:
            piece = self._process.stdout.read(min(left, PIECE))
            if not piece:
                raise GitFailed("git cat-file ended before its time")
            left -= len(piece)
            try:
                if failure is None:
                    take(piece)
            except BaseException as error:  # the rest is read all the same, or the next answer would begin in it
                failure = error
        self._process.stdout.read(1)
        if failure is not None:
            raise failure

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        self._process.stdout.close()


@contextmanager
def reading_blobs(site: Site) -> Iterator[Blobs]:
    """A reader of blobs."""
    blobs = Blobs(site)
    try:
        yield blobs
    finally:
        blobs.close()


def carry_out(site: Site, plan: Plan, expected: Mapping[str, Entry | None], id_length: int) -> Carried:
    """Do what the plan says wherever what stands there is as `expected` (by path), or done already.

    Deletions come first, the deepest paths before the others, so that a folder can make place for a file. Raises
    FsyncFailed: then what reached the disk is unknown, and the restore is to be finished at the next start.
    """
    done = Carried((), (), {}, {})
    looker, left, failed = Looker(id_length), dict(plan.left), dict[str, str]()
    written, deleted = list[str](), list[str]()
    with reading_blobs(site) as blobs:
        for step in _in_order(plan.steps):
            try:
                if step.to is None:
                    _delete(site, step, expected[step.path], looker)
                    deleted.append(step.path)
                else:
                    _write(site, step, step.to, expected[step.path], looker, blobs)
                    written.append(step.path)
            except (Stays, Odd) as error:
                left[step.path] = str(error)
            except (Moving, BlockingIOError):
                failed[step.path] = CHANGING
            except (OSError, GitFailed) as error:
                failed[step.path] = getattr(error, "strerror", None) or str(error)
            if step.to is None:
                _tidy(site, step.path, plan.folders)
    _sync_folders(site, (*written, *deleted))
    return done._replace(written=tuple(sorted(written)), deleted=tuple(sorted(deleted)), left=left, failed=failed)


def _in_order(steps: Iterable[Step]) -> Iterator[Step]:
    ordered = sorted(steps, key=lambda step: step.path)
    yield from (step for step in reversed(ordered) if step.to is None)
    yield from (step for step in ordered if step.to is not None)


def _delete(site: Site, step: Step, expected: Entry | None, looker: Looker) -> None:
    try:
        with folder_of(site, step.path) as (fd, name):
            seen = looker.look(fd, name)
            if seen is None:
                return
            if seen != expected:
                raise BlockingIOError
            os.unlink(name, dir_fd=fd)
    except (FileNotFoundError, Unreadable):
        return  # nothing of ours lies behind a link


def _write(site: Site, step: Step, to: Entry, expected: Entry | None, looker: Looker, blobs: Blobs) -> None:
    try:
        with folder_of(site, step.path, create=True) as (fd, name):
            temp = f".{short_name(name)}{TEMP_SUFFIX}"
            _forget(fd, temp)
            if looker.look(fd, name) == to:
                return
            _write_temp(fd, temp, to, _mode_of(fd, name, to), blobs, step.path)
            try:
                if looker.look(fd, name) != expected:
                    raise BlockingIOError
                _clear_folder(fd, name)
                os.rename(temp, name, src_dir_fd=fd, dst_dir_fd=fd)
            except BaseException:
                _forget(fd, temp)
                raise
    except Unreadable:
        raise Stays(BARRED) from None


def _forget(fd: int, temp: str) -> None:
    """Remove our own temporary file, which a death may have left."""
    try:
        os.unlink(temp, dir_fd=fd)
    except FileNotFoundError:
        pass


def _mode_of(fd: int, name: str, to: Entry) -> int | None:
    """The permissions that the file has already, executable or not as it is to be; None where there is no file."""
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    mode = stat.S_IMODE(status.st_mode) & 0o777
    return mode | ((mode & 0o444) >> 2) | 0o100 if to.mode == PROGRAM else mode & ~0o111


def _write_temp(fd: int, temp: str, to: Entry, mode: int | None, blobs: Blobs, path: str) -> None:
    if to.mode == LINK:
        target = bytearray()
        blobs.read(to.blob, target.extend)
        os.symlink(bytes(target), os.fsencode(temp), dir_fd=fd)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(temp, flags, 0o777 if to.mode == PROGRAM else 0o666, dir_fd=fd)
    try:
        blobs.read(to.blob, partial(_write_all, file))
        if mode is not None:
            os.fchmod(file, mode)
        fsync(file, path)
    except BaseException:
        _forget(fd, temp)
        raise
    finally:
        os.close(file)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _clear_folder(fd: int, name: str) -> None:
    """Remove the folder that stands where the file is to be, if nothing but empty folders is in it. Raises Stays."""
    try:
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError:
        return  # a link: the rename takes its place
    try:
        for below in os.listdir(inner):
            if not stat.S_ISDIR(os.stat(below, dir_fd=inner, follow_symlinks=False).st_mode):
                raise Stays(OCCUPIED)
            _clear_folder(inner, below)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=fd)


def _tidy(site: Site, path: str, folders: Iterable[str]) -> None:
    """Remove the folders above a deleted path that are empty now, as far as they may go."""
    may_go = frozenset(folders)
    for folder in folders_above(path):
        if folder not in may_go:
            return
        try:
            with folder_of(site, folder) as (fd, name):
                os.rmdir(name, dir_fd=fd)
        except FileNotFoundError:
            continue
        except (OSError, Unreadable):
            return  # something lies in it


def _sync_folders(site: Site, paths: Iterable[str]) -> None:
    for folder in sorted({folder for path in paths for folder in (*folders_above(path), "")}):
        try:
            with open_folder(site.top, folder) as fd:
                fsync(fd, folder)
        except (FileNotFoundError, Unreadable):
            continue
