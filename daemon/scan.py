"""What is on disk: stat fingerprints of every file below the two trees, and what differs. Source: design §3, rulings L2.

The rescan is what the watcher falls back on, so it trusts nothing but `lstat`: no event, no order, no cache. Links are
entries of their own kind and are never followed; what vanishes while it is being looked at is simply not there.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

FOLDERS = (".shapeup", "shapeup")
NOISE_ENDINGS = ("~", ".tmp", ".swp", ".swo", ".swx")
NETWORK_FILESYSTEMS = frozenset(
    "9p afs ceph cifs coda drvfs fuse.sshfs fuse.s3fs fuse.rclone fuse.glusterfs lustre ncpfs nfs nfs4 prl_fs smb3 smbfs "
    "vboxsf virtiofs vmhgfs fuse.vmhgfs-fuse fuse.grpcfuse fakeowner".split()
)
_NOISE_LAST = frozenset("~p#ox3")  # how noise names end: one look spares nearly every name the full question
_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Fingerprint(NamedTuple):
    """What `lstat` says of one entry. ctime is in it because a rewrite can restore size and mtime, but not ctime."""

    dev: int
    ino: int
    mode_kind: int
    size: int
    mtime_ns: int
    ctime_ns: int


HEARD = Fingerprint(0, 0, 0, 0, 0, 0)  # named by an event, state not known: differs from all that can be found


class Survey(NamedTuple):
    """Files by path, the folders that were listed, and the folders that could not be, with the reason."""

    files: dict[str, Fingerprint]
    folders: set[str]
    unreadable: dict[str, str]


def is_noise(name: str) -> bool:
    """Whether a file of this name is never a fact: hidden, temporary, an editor's or a sync tool's copy. Source: L2."""
    if name.startswith(".") or name.endswith(NOISE_ENDINGS):
        return True
    if name == "4913" or (name.startswith("#") and name.endswith("#")):  # vim's write probe, Emacs' autosave
        return True
    return "conflict" in name and (".sync-conflict-" in name or (" (" in name and "conflicted copy" in name))


def is_fact_path(path: str, *, is_folder: bool = False) -> bool:
    """Whether `scan` would look at this path: inside one of the trees, and nothing below their roots hidden or noise."""
    tree, *inner = path.split("/")
    if tree not in FOLDERS or any(part.startswith(".") for part in inner[:-1]):
        return False
    return not inner or not (inner[-1].startswith(".") if is_folder else is_noise(inner[-1]))


def fingerprint(path: Path | str) -> Fingerprint | None:
    """The entry's fingerprint now; None when nothing is there (or nothing that may be looked at)."""
    try:
        return fingerprint_of(os.lstat(path))
    except OSError:
        return None


def survey(root: Path | str, folders: Iterable[str] = FOLDERS) -> Survey:
    """Look at every entry below the folders. A folder that is a link or a file is itself an entry."""
    found = Survey({}, set(), {})
    base = os.fspath(root)
    for folder in folders:
        try:
            seen = os.lstat(f"{base}/{folder}")
        except FileNotFoundError:
            continue
        except OSError as error:
            found.unreadable[folder] = error.strerror or str(error)
            continue
        if not stat.S_ISDIR(seen.st_mode):
            found.files[folder] = fingerprint_of(seen)
            continue
        waiting = [folder]
        while waiting:
            waiting.extend(_list(base, waiting.pop(), found))
    return found


def scan(root: Path | str, folders: tuple[str, ...] = FOLDERS) -> dict[str, Fingerprint]:
    """Every non-directory below the folders, by repository-relative POSIX path (surrogateescape), noise left out."""
    return survey(root, folders).files


def diff(old: Mapping[str, Fingerprint], new: Mapping[str, Fingerprint]) -> set[str]:
    """Paths that changed, appeared or vanished."""
    if old == new:
        return set()
    changed = {path for path, seen in new.items() if old.get(path) != seen}
    changed.update(old.keys() - new.keys())
    return changed


def filesystem_of(path: Path | str, mountinfo: Path | str = "/proc/self/mountinfo") -> str:
    """The type of the file system that holds the path, as the kernel names it; empty when that cannot be told."""
    real = os.fsencode(os.path.realpath(path)) + b"/"
    best, kind = b"", b""
    try:
        with open(mountinfo, "rb") as lines:
            for line in lines:
                mount, _, source = line.partition(b" - ")
                point = mount.split()[4].decode("unicode_escape").encode("latin-1").rstrip(b"/") + b"/"
                if real.startswith(point) and len(point) >= len(best):  # a later mount covers an earlier one
                    best, kind = point, source.split()[0]
    except (OSError, IndexError, ValueError):
        return ""
    return kind.decode("ascii", "replace")


class Known:
    """The table of fingerprints that were handed on, and which changes no event told of. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, Fingerprint] = {}
        self._heard: set[str] = set()
        self._unheard: set[str] = set()
        self._young: set[str] = set()  # found since the last timed rescan

    def hear(self, paths: Iterable[str]) -> None:
        """An event named these paths.

        A path that is new to the table enters it, so that its disappearance will show even if that event is lost.
        """
        with self._lock:
            for path in paths:
                self._heard.add(path)
                self._files.setdefault(path, HEARD)

    def see(self, path: str, seen: Fingerprint | None) -> None:
        """Somebody handled the path in this state; None: handled as absent."""
        with self._lock:
            if seen is None:
                self._files.pop(path, None)
            else:
                self._files[path] = seen

    def below(self, folder: str) -> set[str]:
        """Known paths inside the folder, and the folder's own path where it is known as an entry."""
        prefix = folder + "/"
        with self._lock:
            return {path for path in self._files if path.startswith(prefix) or path == folder}

    def compare(self, found: Survey) -> tuple[dict[str, Fingerprint], set[str]]:
        """The table as it would be after this survey, and the paths that differ from the table as it is.

        What lies below an unreadable folder is kept: not seen is not the same as gone.
        """
        with self._lock:
            table = found.files
            if found.unreadable:
                hidden = tuple(f"{folder}/" for folder in found.unreadable)
                table = {path: seen for path, seen in self._files.items() if path.startswith(hidden)} | table
            return table, diff(self._files, table)

    def replace(self, table: dict[str, Fingerprint], differs: set[str], *, is_timed: bool = True) -> set[str]:
        """Take the table over; returns what a timed rescan found before and no event has named since.

        An event may still be on its way while a rescan sees its file, so a change counts as missed one period later.
        """
        with self._lock:
            self._files = table
            self._young |= differs
            if not is_timed:
                return set()
            missed = self._unheard - self._heard
            self._unheard = self._young - self._heard
            self._young, self._heard = set(), set()
            return missed

    def __len__(self) -> int:
        return len(self._files)


def fingerprint_of(
    seen: os.stat_result, kind_of: Callable[[int], int] = stat.S_IFMT, new: Callable[..., Any] = tuple.__new__
) -> Fingerprint:
    """The fingerprint in a stat result that is at hand (an `fstat` of the very file that is read, say)."""
    # As Fingerprint(...), without the call by name that is a tenth of the whole rescan.
    fields = (seen.st_dev, seen.st_ino, kind_of(seen.st_mode), seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    fingerprint: Fingerprint = new(Fingerprint, fields)
    return fingerprint


def _list(base: str, folder: str, found: Survey) -> list[str]:
    """Enter one folder's files into the survey; returns its subfolders. Runs for every file every two seconds."""
    inner: list[str] = []
    files, prefix = found.files, folder + "/"
    try:
        # Opened without following, so a folder swapped for a link between two looks is not entered.
        handle = os.open(f"{base}/{folder}", _ENTER)
    except (FileNotFoundError, NotADirectoryError):
        return inner
    except OSError as error:
        found.unreadable[folder] = error.strerror or str(error)
        return inner
    try:
        with os.scandir(handle) as entries:
            found.folders.add(folder)
            for entry in entries:
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    if name[0] != ".":
                        inner.append(prefix + name)
                elif name[0] != "." and (
                    (name[-1] not in _NOISE_LAST and "conflict" not in name) or not is_noise(name)
                ):
                    try:
                        seen = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    files[prefix + name] = fingerprint_of(seen)
    except OSError as error:
        found.unreadable[folder] = error.strerror or str(error)
    finally:
        os.close(handle)
    return inner
