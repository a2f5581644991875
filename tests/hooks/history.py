"""A real repository whose history a test writes: files, commits with trailers, merges. Nothing of the caller's git leaks in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENV = {
    key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "SHAPEUP", "XDG_", "GITHUB_"))
} | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_EDITOR": "true"}
ENV |= {
    f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in (("NAME", "a"), ("EMAIL", "a@b"))
}


class History:
    """One repository, `main` checked out."""

    def __init__(self, root: Path, *init: str) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main", *init)

    def try_git(self, *args: str | bytes, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
        """One git command, however it ends."""
        command = ["git", *args]
        return subprocess.run(
            command, cwd=self.root, env=ENV | env, input=stdin, capture_output=True, check=False, timeout=60
        )

    def git(self, *args: str | bytes, stdin: bytes = b"", **env: str) -> str:
        """What one git command prints, that must end well."""
        done = self.try_git(*args, stdin=stdin, **env)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, path: str | bytes, data: str | bytes = "x\n") -> None:
        """One file; a path of raw bytes may hold anything that git allows."""
        target = os.path.join(os.fsencode(self.root), os.fsencode(path))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)

    def commit(self, message: str, *trailers: str, **files: str) -> str:
        """Everything that lies there, committed; `files` first written, `__` in a name a slash and `_dot_` a dot."""
        for name, text in files.items():
            self.write(name.replace("__", "/").replace("_dot_", "."), text)
        self.git("add", "-A")
        body = message + ("\n\n" + "\n".join(trailers) if trailers else "")
        self.git("commit", "-q", "--allow-empty", "-F", "-", stdin=body.encode())
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")
