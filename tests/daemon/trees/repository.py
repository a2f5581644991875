"""A real git repository in which scopes build, and a picture of all in it that is nobody's business but its user's."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from daemon.trees.kept import Scope
from daemon.trees.site import Site, find_site
from hooks.git import scrubbed_env

AT = datetime(2036, 4, 1, 12, tzinfo=UTC)
SLUG = "checkout"
ENV = {
    **scrubbed_env(),
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}

Files = dict[str, "bytes | None"]
Picture = dict[str, tuple[str, bytes]]


def git(root: Path, *words: str, stdin: bytes = b"") -> str:
    done = subprocess.run(
        ["git", "-C", os.fspath(root), *words], input=stdin, capture_output=True, env=ENV, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode(errors="surrogateescape").strip()


def make(root: Path, *init: str, **files: str) -> Site:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main", *init)
    for name, text in {"src__cart__a.py": "a\n", "src__mail__m.py": "m\n", "README.md": "read\n", **files}.items():
        put(root, name.replace("__", "/"), text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "start")
    site = find_site(root)
    assert site is not None
    return site


def put(root: Path, path: str, text: str | bytes, *, mode: int | None = None) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if isinstance(text, bytes) else text.encode())
    if mode is not None:
        target.chmod(mode)


def scope(scope_id: str, *allowed: str) -> Scope:
    return Scope(SLUG, scope_id, allowed or (f"src/{scope_id}/**",))


def nobody(path: str) -> bool:
    return False


def picture(root: Path, below: str = "") -> Picture:
    """Kind and bytes of all files and links below, by path; `.git` apart."""
    found: Picture = {}
    for folder, folders, names in os.walk(root / below if below else root):
        if ".git" in folders:
            folders.remove(".git")
        for name in (*names, *folders):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            key = os.path.relpath(path, root)
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", os.fsencode(os.readlink(path)))
            elif stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    found[key] = ("program" if status.st_mode & 0o100 else "file", file.read())
            elif not stat.S_ISDIR(status.st_mode):
                found[key] = ("odd", b"")
    return found


def users(root: Path) -> dict[str, str]:
    """What must never change: index, HEAD, its log, every ref but ours, the stash, the settings, the list of worktrees."""
    common = Path(git(root, "rev-parse", "--path-format=absolute", "--git-common-dir"))
    own = Path(git(root, "rev-parse", "--absolute-git-dir"))
    files = [own / "index", own / "HEAD", own / "logs/HEAD", common / "config", common / "logs/refs/stash"]
    found = {os.fspath(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.exists()}
    refs = git(root, "for-each-ref").splitlines()
    return found | {"refs": "\n".join(ref for ref in refs if "refs/shapeup/" not in ref)}
