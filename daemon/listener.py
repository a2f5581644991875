"""File events: watchdog's inotify observer with its known weak places closed. Source: targets 3, 11, 12, hazards A.

The only module that imports watchdog. A listener is replaced, never mended: the watcher asks `ailment()` and, when there
is one, opens a new listener and looks at the disk. watchdog's private tables are read here because nothing else tells
which folders the kernel really watches.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
import warnings
from collections.abc import Callable
from typing import NamedTuple

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
    FileSystemMovedEvent,
)
from watchdog.observers import inotify_c
from watchdog.observers.inotify import InotifyEmitter, InotifyObserver, InotifyWatchGroup
from watchdog.observers.inotify_c import CallbackId, InotifyConstants, InotifyEvent, InotifyFD, Mask, WatchDescriptor
from watchdog.observers.inotify_move_event_grouper import InotifyMoveEventGrouper

from daemon.scan import FOLDERS

# Closing after a write, not modifying; and no opens or reads, so that our own reading never wakes us.
TREE_EVENTS: tuple[type[FileSystemEvent], ...] = (
    FileCreatedEvent,  # also what a rename from outside and a hard link look like
    FileMovedEvent,
    FileClosedEvent,
    FileDeletedEvent,
    DirCreatedEvent,  # without the folder events watchdog loses track of new folders
    DirMovedEvent,
    DirDeletedEvent,
)
FOLDER_EVENTS: frozenset[type[FileSystemEvent]] = frozenset({DirCreatedEvent, DirMovedEvent, DirDeletedEvent})

OVERFLOW = "overflow"
JOIN_S = 1.0

# A rename out of the tree holds back every event behind it for this long (watchdog: 0.5 s). Both ends of a move are
# dirty either way, so a pair that is torn apart costs nothing.
InotifyMoveEventGrouper.delay = 0.01

Identity = tuple[int, int] | None  # (st_dev, st_ino); None: nothing there


class Heard(NamedTuple):
    """One event: the path that went, the path that came (relative to the root), both for a move."""

    gone: str | None
    come: str | None
    is_folder: bool


class Ailment(NamedTuple):
    """Why a listener must be replaced. No fault: a tree came or went, which every branch switch may do."""

    reason: str
    is_fault: bool


class _CountedWarnings:
    """Stands in for `warnings` inside watchdog's inotify module, whose texts carry its whole watch table (25 KB)."""

    count = 0

    def warn(self, *_args: object, **_kwargs: object) -> None:
        self.count += 1


_warned = _CountedWarnings()


def silence_watchdog() -> None:
    """Keep watchdog's warnings out of the terminal, and from becoming exceptions that end its threads.

    Called on every start, not at import: whoever resets the filters in between (pytest does) would undo it.
    """
    warnings.filterwarnings("ignore", module="watchdog")
    setattr(inotify_c, "warnings", _warned)  # noqa: B010  (to mypy the module has no such attribute)


def warnings_silenced() -> int:
    """How many warnings watchdog has raised in this process."""
    return _warned.count


class Listener(FileSystemEventHandler):
    """One observer over the repository root (its own folders only) and each of the two trees; replaced, never mended.

    `hear` gets every event on watchdog's threads.
    """

    def __init__(self, root: str, hear: Callable[[Heard], None], wake: Callable[[], None]) -> None:
        self._root = root
        self._hear = hear
        self._wake = wake
        self._observer: InotifyObserver | None = None
        self._groups: list[InotifyWatchGroup] = []
        self._threads: list[threading.Thread] = []
        self._identities: dict[str, Identity] = {}
        self._log = _LogTap(self)
        self._swapped = False
        self.trouble: str | None = None

    def open(self) -> None:
        """Arm everything that is there; what cannot be armed becomes trouble or shows as not armed."""
        logging.getLogger("watchdog").addHandler(self._log)
        self._identities = {folder: identity_of(f"{self._root}/{folder}") for folder in ("", *FOLDERS)}
        try:
            observer = self._observer = InotifyObserver()
            # watchdog opens it inheritable; a git child must not keep the queue alive.
            os.set_inheritable(observer._inotify_fd._inotify_fd, False)
            observer.start()
        except (OSError, RuntimeError) as error:
            self.trouble = f"cannot start: {error}"
            return
        self._schedule(observer, self._root, FOLDER_EVENTS, recursive=False)
        for folder in FOLDERS:
            if is_folder(f"{self._root}/{folder}"):
                self._schedule(observer, f"{self._root}/{folder}", frozenset(TREE_EVENTS), recursive=True)
        emitters = [emitter for emitter in observer.emitters if isinstance(emitter, InotifyEmitter)]
        self._threads = [observer, observer._inotify_fd, *emitters]
        self._groups = [emitter._inotify for emitter in emitters if emitter._inotify]

    def _schedule(
        self, observer: InotifyObserver, path: str, kinds: frozenset[type[FileSystemEvent]], *, recursive: bool
    ) -> None:
        wanted = [kind for kind in TREE_EVENTS if kind in kinds]
        try:
            observer.schedule(self, path, recursive=recursive, event_filter=wanted)
        except (OSError, RuntimeError):
            return  # vanished (the identity tells) or over a limit (the table of armed folders tells)

    def close(self) -> None:
        """Take everything down, however broken it is."""
        observer, self._observer = self._observer, None
        if observer is not None:
            self._dismantle(observer)
        logging.getLogger("watchdog").removeHandler(self._log)

    def _dismantle(self, observer: InotifyObserver) -> None:
        # Each step stands alone: watchdog's own order stops at the first that raises and leaves threads behind.
        steps: list[Callable[[], object]] = [observer._inotify_fd.stop]
        steps += [group._move_event_grouper.close for group in self._groups]
        steps += [emitter.stop for emitter in list(observer.emitters)]
        steps += [observer.stop]
        for step in steps:
            try:
                step()
            except Exception:
                continue
        for thread in self._threads:
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join(JOIN_S)

    def ailment(self) -> Ailment | None:
        """Why this listener can no longer be trusted; None while it can."""
        if self.trouble:
            return Ailment(self.trouble, is_fault=True)
        if self._swapped:
            return Ailment("a tree came or went", is_fault=False)
        for folder, identity in self._identities.items():
            if identity_of(f"{self._root}/{folder}") != identity:
                return Ailment(f"{folder or 'the repository root'} was replaced", is_fault=False)
        for thread in self._threads:
            if not thread.is_alive():
                # An emitter ends itself when its tree is deleted; all other ends are accidents.
                is_fault = not (isinstance(thread, InotifyEmitter) and thread.stopped_event.is_set())
                return Ailment(f"{type(thread).__name__} ended", is_fault)
        return None

    def armed(self) -> set[str]:
        """Folders that the kernel watches for us, as far as watchdog's table tells."""
        start = len(self._root) + 1
        armed: set[str] = set()
        for group in self._groups:
            # dict.copy is atomic, iterating while watchdog's thread adds is not. wd -1: refused without an error.
            table = group._active_callbacks_by_watch.copy()
            armed.update(os.fsdecode(path)[start:] for wd, path in table.items() if wd >= 0)
        return armed

    def dispatch(self, event: FileSystemEvent) -> None:
        """Called by watchdog for each event. Catches everything: an exception here would end the dispatching thread."""
        try:
            heard = self._relative(event)
            if heard.is_folder and (heard.gone in FOLDERS or heard.come in FOLDERS):
                self._swapped = True  # not left to the identity: a tree made again may get the same inode
                self._wake()
            self._hear(heard)
        except Exception as error:
            self._report(f"a handler failed: {error!r}")

    def _relative(self, event: FileSystemEvent) -> Heard:
        start = len(self._root) + 1
        source = os.fsdecode(event.src_path)[start:]
        if isinstance(event, FileSystemMovedEvent):
            return Heard(source, os.fsdecode(event.dest_path)[start:], event.is_directory)
        if isinstance(event, FileDeletedEvent | DirDeletedEvent):
            return Heard(source, None, event.is_directory)
        return Heard(None, source, event.is_directory)

    def overflowed(self, thread: int | None) -> None:
        """watchdog says in its log, and nowhere else, that the kernel's queue ran over."""
        observer = self._observer
        if observer is not None and observer._inotify_fd.ident == thread:
            self._report(OVERFLOW)

    def _report(self, trouble: str) -> None:
        self.trouble = self.trouble or trouble
        self._wake()


_STIRS = Mask(
    InotifyConstants.IN_CREATE
    | InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_MOVED_FROM
    | InotifyConstants.IN_MOVED_TO
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_ATTRIB  # a mode is part of what git stores
    | InotifyConstants.IN_ONLYDIR
    | InotifyConstants.IN_DONT_FOLLOW
    | InotifyConstants.IN_EXCL_UNLINK
)


class Stir(NamedTuple):
    """Something in a folder changed. `folder` is the path it was armed under; None: it is not known any more."""

    folder: bytes | None
    name: bytes
    is_folder: bool
    came: bool  # it was made there or moved there


class TreeListener:
    """Listens to the folders that are handed to it, each by itself: whoever arms them knows what git ignores.

    Under watchdog's observers, which watch a tree with everything in it or not at all. `hear` gets every event on
    watchdog's thread, None where events were lost.
    """

    def __init__(self, hear: Callable[[Stir | None], None]) -> None:
        self._hear = hear
        self._queue: InotifyFD | None = None
        self._guard = threading.Lock()
        self._armed: dict[WatchDescriptor, bytes] = {}  # by the newest name that is known

    @property
    def is_alive(self) -> bool:
        return self._queue is not None and self._queue.is_alive()

    def __len__(self) -> int:
        return len(self._armed)

    def open(self) -> None:
        """Raises OSError where the kernel grants no more queues."""
        self._queue = InotifyFD()
        os.set_inheritable(self._queue._inotify_fd, False)  # watchdog opens it inheritable
        self._queue.start()

    def close(self) -> None:
        """Let go of all folders; safe to call twice."""
        queue, self._queue = self._queue, None
        if queue is None:
            return
        queue.stop()
        if queue is not threading.current_thread():
            queue.join(JOIN_S)

    def arm(self, path: bytes) -> None:
        """Listen to what happens directly in the folder. Nothing where no folder is, and nothing more where it is listened to.

        Raises OSError where a limit is reached.
        """
        queue = self._queue
        if queue is None:
            return
        with self._guard:  # until it is noted down: the folder may be gone again, and watchdog's thread says so
            try:
                # The kernel knows which folders it watches, by whatever name. `add_callback` would warn of each of them.
                with queue._lock:
                    watch = queue._get_or_create_watch(path, _STIRS)
                    watch.callbacks[CallbackId(id(self))] = self
            except (FileNotFoundError, NotADirectoryError):
                return
            if watch.wd >= 0:  # watchdog swallows a refused permission
                self._armed[watch.wd] = path

    def on_event(self, event: InotifyEvent) -> None:
        """Called by watchdog's thread, which an exception would end."""
        folder = self._armed.get(event.wd)
        try:
            self._hear(Stir(folder, event.name, event.is_directory, event.is_create or event.is_moved_to))
        except Exception:
            return  # a hint that is lost is found by the timed look

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """Called by watchdog when the folder is gone."""
        with self._guard:
            self._armed.pop(wd, None)

    def on_queue_overflow(self) -> None:
        """Called by watchdog when the kernel has dropped events."""
        self._hear(None)


class _LogTap(logging.Handler):
    """Reads watchdog's log for overflows; being a handler, it also keeps Python's last resort off stderr."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(logging.WARNING)
        self._listener = listener

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == inotify_c.logger.name and "overflow" in record.getMessage():
            self._listener.overflowed(record.thread)


def is_folder(path: str) -> bool:
    """Whether a real folder stands at the path, not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def identity_of(path: str) -> Identity:
    """(st_dev, st_ino) of what stands at the path itself; None when nothing does."""
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    return (seen.st_dev, seen.st_ino if stat.S_ISDIR(seen.st_mode) else -1)
