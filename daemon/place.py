"""Finds the repository a command speaks about, and where its lock, socket and log lie. Source: rulings A1, D6, L4.

Reads git's own files instead of starting git: `status` must be cheap, and GIT_* variables must not mislead it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from parsers.layout import LOCAL_ROOT, SHARED_ROOT, path_of

SOCKET_LIMIT_BYTES = 107  # what sun_path holds, less its closing NUL


class Place(NamedTuple):
    """One repository. `root` is the main worktree; `git_dir` the common git dir, None outside git."""

    root: Path
    git_dir: Path | None

    @property
    def local(self) -> Path:
        """The folder of the LOCAL tree."""
        return self.root / LOCAL_ROOT

    @property
    def log(self) -> Path:
        return self.root / path_of("log")

    @property
    def lock(self) -> Path:
        """Outside the LOCAL tree where git gives us a place: wiping `.shapeup/` must not let a second daemon in."""
        return self.root / path_of("daemon-lock") if self.git_dir is None else self.git_dir / "shapeupd.lock"


def find_place(start: Path | None = None) -> Place:
    """The place that encloses `start` (the working directory when None). Raises FileNotFoundError where no folder is.

    In git: the main worktree, from any linked one. Outside git: the nearest folder upwards that holds
    one of the two trees, else `start` itself.
    """
    here = Path(os.path.realpath(start or os.getcwd()))
    if not here.is_dir():
        raise FileNotFoundError(f"{here} is not a folder")
    upwards = (here, *here.parents)
    for folder in upwards:
        git_dir = _git_dir(folder)
        if git_dir is not None:
            common = _common_dir(git_dir)
            return Place(_main_worktree(folder, git_dir, common), common)
    for folder in upwards:
        if (folder / LOCAL_ROOT).is_dir() or (folder / SHARED_ROOT).is_dir():
            return Place(folder, None)
    return Place(here, None)


def _git_dir(folder: Path) -> Path | None:
    """The git dir that `folder/.git` is or names; None where there is none that git itself would accept."""
    dot_git = folder / ".git"
    if dot_git.is_dir():
        return dot_git if _is_git_dir(dot_git) else None
    line = _first_line(dot_git)
    if line is None or not line.startswith("gitdir:"):
        return None
    named = Path(os.path.realpath(folder / line.removeprefix("gitdir:").strip()))
    return named if _is_git_dir(named) else None


def _is_git_dir(path: Path) -> bool:
    return os.path.lexists(path / "HEAD") and ((path / "objects").is_dir() or (path / "commondir").is_file())


def _common_dir(git_dir: Path) -> Path:
    line = _first_line(git_dir / "commondir")
    return Path(os.path.realpath(git_dir / line if line else git_dir))


def _main_worktree(folder: Path, git_dir: Path, common: Path) -> Path:
    """The main worktree of `common`; the worktree itself where a bare repository has no main one."""
    if Path(os.path.realpath(git_dir)) == common:
        return folder
    settings = _core_settings(common / "config")
    if "worktree" in settings:
        return Path(os.path.realpath(common / settings["worktree"]))
    if settings.get("bare", "").lower() in ("true", "yes", "on", "1"):
        return folder
    return common.parent


def _core_settings(config: Path) -> dict[str, str]:
    """The plain `key = value` lines of `[core]`; includes and line continuations do not occur in what git writes there."""
    try:
        text = config.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    found: dict[str, str] = {}
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.lower().replace(" ", "")
        elif section == "[core]" and "=" in line:
            key, value = line.split("=", 1)
            found[key.strip().lower()] = value.strip().strip('"')
    return found


def _first_line(path: Path) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(8192).rstrip("\n")
    except OSError:
        return None


def server_socket(root: Path) -> Path:
    """Where this repository's daemon listens: `$XDG_RUNTIME_DIR/shapeupd/<hash>.sock`, else below the temporary folder."""
    return _usable(_runtime_folders(), root)[0]


def client_sockets(root: Path) -> tuple[Path, ...]:
    """Where a client looks, in order: a daemon under systemd and a client under cron see different environments."""
    return _usable((*_runtime_folders(), Path(f"/run/user/{os.getuid()}/shapeupd")), root)


def _runtime_folders() -> tuple[Path, ...]:
    folders = []
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and _is_own_folder(runtime):
        folders.append(Path(runtime) / "shapeupd")
    for temporary in (os.environ.get("TMPDIR", ""), "/tmp"):
        if os.path.isabs(temporary):
            folders.append(Path(temporary) / f"shapeupd-{os.getuid()}")
    return tuple(folders)


def _is_own_folder(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _usable(folders: tuple[Path, ...], root: Path) -> tuple[Path, ...]:
    from hashlib import sha256  # costs a few ms, and hooks ask only for the root

    name = sha256(os.fsencode(root)).hexdigest()[:24] + ".sock"
    paths = dict.fromkeys(folder / name for folder in folders)
    return tuple(path for path in paths if len(os.fsencode(path)) <= SOCKET_LIMIT_BYTES)
