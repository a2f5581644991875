"""Reads history through git's own command line: the reference, and the only way into sha256 and reftable. Source: targets 23, hazards B."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from daemon.commits.history import Refs, Step, Touch, author_of
from hooks.git import GitFailed, Ran, run_git, scrubbed_env
from hooks.range.commits import LOG_OPTIONS, Commit, parse_log

_TOUCHES = ("log", "-z", "--raw", "--no-renames", "--no-abbrev", "--first-parent", "-m", "--root", "--format=%x01%H")


class CommandLine:
    """The repository of this common git dir. Raises GitFailed where git refuses."""

    def __init__(self, common_dir: Path) -> None:
        self._dir = os.fspath(common_dir)
        self._env = {
            **scrubbed_env(),
            "GIT_NO_REPLACE_OBJECTS": "1",  # what is judged is what is there, not what a local ref paints over it
            "GIT_GRAFT_FILE": os.devnull,
            "GIT_NO_LAZY_FETCH": "1",
        }

    def refs(self) -> Refs:
        listed = self._ask("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/remotes")
        lines = os.fsdecode(listed).split("\n")[:-1]
        named = {name: commit for commit, _, name in (line.partition(" ") for line in lines)}
        named |= {name: name for name in head_names(Path(self._dir))}
        commits = dict(zip(named, self._commits(named.values()), strict=True))
        tips = {name: commit for name, commit in commits.items() if commit and not name.startswith("refs/remotes/")}
        remotes = (commit for name, commit in commits.items() if commit and name not in tips)
        return Refs(tips, frozenset(remotes))

    def _commits(self, names: Iterable[str]) -> list[str]:
        """The id behind each name; empty where it is no commit, or not here."""
        asked = os.fsencode("".join(f"{name}\n" for name in names))
        told = self._ask("cat-file", "--batch-check=%(objecttype) %(objectname)", stdin=asked).decode(
            "utf-8", "replace"
        )
        return [line.removeprefix("commit ") if line.startswith("commit ") else "" for line in told.split("\n")[:-1]]

    def tags(self) -> frozenset[str]:
        form = "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname)"
        words = (line.split() for line in self._ask("for-each-ref", form, "refs/tags").decode("ascii").splitlines())
        return frozenset(line[-1] for line in words if line[-2] == "commit")

    def walk(self, tips: Iterable[str], hidden: Iterable[str], since: int | None = None) -> tuple[Step, ...]:
        wanted = list(tips)
        if not wanted:
            return ()
        lines = "".join(f"{line}\n" for line in (*wanted, *(f"^{commit}" for commit in hidden)))
        options = ["--ignore-missing", "--topo-order", "--reverse", "--parents"]
        if since is not None:
            options.append(f"--max-age={since}")
        listed = self._ask("rev-list", *options, "--stdin", stdin=lines.encode()).decode("ascii")
        return tuple(Step(commit, tuple(parents)) for commit, *parents in map(str.split, listed.splitlines()))

    def read(self, ids: Sequence[str]) -> tuple[Commit, ...]:
        if not ids:
            return ()
        asked = "".join(f"{commit}\n" for commit in ids).encode()
        log = self._ask(*LOG_OPTIONS[:2], "--ignore-missing", "--no-walk=unsorted", *LOG_OPTIONS[2:], stdin=asked)
        found = {commit.id: commit for commit in parse_log(log)}
        return tuple(found[commit] for commit in ids if commit in found)

    def author(self, commit: str) -> bytes:
        ran = self._run("cat-file", "commit", commit)
        return b"" if ran.status else author_of(ran.out)

    def touches(self, tip: str, path: bytes, limit: int) -> tuple[Touch, ...]:
        log = self._ask(*_TOUCHES, f"--max-count={limit}", "--ignore-missing", tip, "--", b":(top,literal)" + path)
        found, commit, tokens = [], "", iter(log.split(b"\0"))
        for token in tokens:
            text = token.lstrip(b"\n").decode("ascii", "replace")
            if text.startswith("\x01"):
                commit = text[1:].strip()
            elif text.startswith(":") and next(tokens) == path:  # not what lies below a folder of that name
                old_mode, _, old_blob, _, _ = text[1:].split(" ")
                found.append(Touch(commit, old_mode, old_blob))
        return tuple(found)

    def entries(self, commits: Sequence[str], path: str) -> tuple[str, ...]:
        asked = "".join(f"{commit}:{path}\n" for commit in commits).encode("utf-8", "surrogateescape")
        told = self._ask("cat-file", "--batch-check=%(objecttype) %(objectname)", stdin=asked).decode(
            "utf-8", "replace"
        )
        return tuple(line.removeprefix("blob ") if line.startswith("blob ") else "" for line in told.split("\n")[:-1])

    def blob(self, blob: str) -> bytes | None:
        ran = self._run("cat-file", "blob", blob)
        return None if ran.status else ran.out

    def close(self) -> None:
        """Nothing is held."""

    def _run(self, *args: str | bytes, stdin: bytes = b"") -> Ran:
        # An explicit git dir: a repository of another owner opens too, since whoever runs the daemon named it.
        return run_git(f"--git-dir={self._dir}", "--no-pager", *args, stdin=stdin, env=self._env)

    def _ask(self, *args: str | bytes, stdin: bytes = b"") -> bytes:
        ran = self._run(*args, stdin=stdin)
        if ran.status:
            lines = ran.err.decode("utf-8", "replace").strip().splitlines()
            raise GitFailed(lines[-1] if lines else f"git {os.fsdecode(args[0])} ended with {ran.status}")
        return ran.out


def head_names(common_dir: Path) -> tuple[str, ...]:
    """How git names the HEAD of each worktree, the main one first."""
    try:
        names = sorted(os.listdir(common_dir / "worktrees"))
    except OSError:
        names = []
    return ("HEAD", *(f"worktrees/{name}/HEAD" for name in names if "\n" not in name))
