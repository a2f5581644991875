"""Hints that something in a working tree was written: a watch on the folders that git does not ignore. Source: rulings E7, design §3.

Only a hint: what is written is told by git. `.git/`, `.shapeup/`, nested repositories and ignored folders are not watched.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from daemon.listener import Stir, TreeListener
from hooks.git import run_git, scrubbed_env
from parsers.layout import LOCAL_ROOT

MOST_FOLDERS = 8192
MOST_HINTS = 64  # paths that are named; more are worth a look at everything
SHARE = 4  # one part in so many of what the kernel grants a user: the daemon's own watch must not starve
LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")


def most_folders() -> int:
    """How many folders all worktrees together may take."""
    try:
        return min(MOST_FOLDERS, int(LIMIT.read_text()) // SHARE)
    except (OSError, ValueError):
        return MOST_FOLDERS


class WorktreeWatch:
    """The watch of the worktree with this top. `wake()` is called from another thread when something stirs.

    `most` is asked how many folders it may take. Where it cannot watch all of the tree, `trouble` says why, and it watches
    nothing.
    """

    def __init__(self, top: str, wake: Callable[[], None], most: Callable[[], int] = most_folders) -> None:
        self._top = os.fsencode(top)
        self._wake = wake
        self._most = most
        self._listener = TreeListener(self._hear)
        self._guard = threading.Lock()
        self._is_stirred = False
        self._hints: set[bytes] | None = set()
        self._new: set[bytes] = set()
        self._all_new = True
        self.trouble: str | None = None

    def __len__(self) -> int:
        return len(self._listener)

    def open(self) -> None:
        """Watch every folder there is."""
        try:
            self._listener.open()
        except OSError as error:
            self._give_up(f"cannot start: {error}")
            return
        self.catch_up()

    def close(self) -> None:
        """Let go of everything; safe to call twice."""
        self._listener.close()

    @property
    def is_stirred(self) -> bool:
        """Whether something was heard since `catch_up` was called last."""
        return self._is_stirred

    def catch_up(self) -> tuple[bytes, ...]:
        """Watch the folders that came; returns the paths, relative to the top, that were heard of. (): look at everything.

        Called before a look, so that what comes later is heard and what came before is seen.
        """
        if self.trouble:
            return ()
        if not self._listener.is_alive:
            self._give_up("the watching thread ended")
            return ()
        with self._guard:
            folders = {self._top} if self._all_new else self._new
            hints = () if self._all_new or self._hints is None else tuple(sorted(self._hints))
            self._new, self._all_new, self._is_stirred, self._hints = set(), False, False, set()
        try:
            self._arm(folders)
        except OSError as error:
            self._give_up(error.strerror or str(error))
        return hints

    def watch_anew(self) -> None:
        """Walk the whole tree at the next `catch_up`: something was not heard."""
        with self._guard:
            self._all_new = True

    def _hear(self, stir: Stir | None) -> None:
        with self._guard:
            was_stirred, self._is_stirred = self._is_stirred, True
            if stir is None or stir.folder is None or stir.name == b".gitignore":
                self._all_new = True
            else:
                self._take(os.path.join(stir.folder, stir.name), stir)
        if not was_stirred:
            self._wake()

    def _take(self, path: bytes, stir: Stir) -> None:
        if stir.is_folder:
            self._hints = None  # what lay in it may be named by its old place for a while
            if stir.came and stir.name != b".git" and path != os.path.join(self._top, LOCAL_ROOT.encode()):
                self._new.add(path)
        elif self._hints is not None:
            self._hints.add(path[len(self._top) + 1 :])
            if len(self._hints) > MOST_HINTS:
                self._hints = None

    def _arm(self, folders: Iterable[bytes]) -> None:
        """Level by level, as what lies in an ignored folder is not even listed. A folder is armed, then listed."""
        level, most = sorted(folders), self._most()
        while level:
            level = self._without_ignored(level)
            for folder in level:
                self._listener.arm(folder)
                if len(self._listener) > most:
                    self._give_up(f"more than {most} folders")
                    return
            level = [inner for folder in level for inner in self._inner(folder)]

    def _inner(self, folder: bytes) -> Iterator[bytes]:
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return
        for name in names:
            path = os.path.join(folder, name)
            is_ours = folder == self._top and name == LOCAL_ROOT.encode()
            if name != b".git" and not is_ours and not os.path.lexists(os.path.join(path, b".git")):
                yield path

    def _without_ignored(self, folders: list[bytes]) -> list[bytes]:
        start = len(self._top) + 1
        names = b"".join(folder[start:] + b"\0" for folder in folders if len(folder) > start)
        if not names:
            return folders
        ran = run_git(
            "-c",
            "core.fsmonitor=false",
            "-C",
            self._top,
            "check-ignore",
            "-z",
            "--stdin",
            stdin=names,
            env=scrubbed_env(),
        )
        ignored = set(ran.out.split(b"\0")) if ran.status == 0 else set()
        return [folder for folder in folders if folder[start:] not in ignored]

    def _give_up(self, why: str) -> None:
        self.trouble = why
        self._listener.close()
