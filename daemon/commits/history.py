"""What the daemon asks of a repository's history, whoever reads it. Source: design §4, rulings E6, targets 16, 17, 23."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from hooks.range.commits import Commit


class Refs(NamedTuple):
    """Where the repository stands. Ids are full hex; what leads to no commit is left out.

    `tips` holds every branch as `refs/heads/<name>`, and the HEAD of every worktree as `HEAD` (the main one) or
    `worktrees/<name>/HEAD`; names that are not UTF-8 keep their bytes as half surrogates.
    """

    tips: dict[str, str]
    remotes: frozenset[str]  # what remotes had when they were last asked


class Step(NamedTuple):
    """One commit on a walk."""

    id: str
    parents: tuple[str, ...]


class Touch(NamedTuple):
    """One commit that changed a path, and what stood there before it: an octal mode and an object id, zeros for nothing."""

    commit: str
    old_mode: str
    old_blob: str


class Git(Protocol):
    """A repository's history. Commits that are not here are left out of every answer."""

    def refs(self) -> Refs:
        """The branches, the HEAD of every worktree, and the remotes' branches."""

    def tags(self) -> frozenset[str]:
        """The commits that tags lead to."""

    def walk(self, tips: Iterable[str], hidden: Iterable[str], since: int | None = None) -> tuple[Step, ...]:
        """The commits that the tips reach and the hidden ones do not, parents before children.

        `since`: none committed before that second, nor what only such commits lead to.
        """

    def read(self, ids: Sequence[str]) -> tuple[Commit, ...]:
        """These commits with all they change, in this order."""

    def author(self, commit: str) -> bytes:
        """The author as the commit spells it: `Name <mail>`; empty where the commit is not here."""

    def touches(self, tip: str, path: bytes, limit: int) -> tuple[Touch, ...]:
        """The newest commits that changed the path, along first parents from the tip, newest first."""

    def entries(self, commits: Sequence[str], path: str) -> tuple[str, ...]:
        """The object id of the file at a path in each of these commits; empty where no file is."""

    def blob(self, blob: str) -> bytes | None:
        """A file's bytes; None where there is no such file here."""

    def close(self) -> None:
        """Let go of open packs."""


def author_of(raw: bytes) -> bytes:
    """The author's name and mail in a commit object's bytes. Source: git's commit format."""
    for line in raw.split(b"\n"):
        if line.startswith(b"author "):
            return line.removeprefix(b"author ").rpartition(b">")[0] + b">"
        if not line:
            break
    return b""
