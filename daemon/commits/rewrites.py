"""Which commits took the place of others: rebased, amended, squashed. Source: rulings E16, E17.

The candidates are what branches held at the last audit and no branch holds now, and what a rebase under way replaces.
They are read only when a commit breaks the policy: most never do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property

from daemon.commits.history import Git
from hooks.path_change import PathChange
from hooks.range.commits import Commit
from reducers.commit_verdicts import Verdict

CANDIDATES = 1000  # replaced commits that are looked at, the newest


class Rewrites:
    """`tips` is where branches stand, `left` where they stood; `rebased` maps the old tip of each rebase to its HEAD now.

    `unjudged`: commits that are new themselves, so nothing was said of them yet.
    """

    def __init__(
        self,
        git: Git,
        tips: Collection[str],
        left: Iterable[str],
        rebased: Mapping[str, str],
        unjudged: Collection[str],
    ) -> None:
        self._git = git
        self._tips = tips
        self._left = tuple(left)
        self._rebased = rebased
        self._unjudged = unjudged

    @cached_property
    def _replaced(self) -> tuple[Commit, ...]:
        steps = dict.fromkeys(step.id for step in self._git.walk(self._left, self._tips)) if self._left else {}
        for old, head in self._rebased.items():
            steps |= dict.fromkeys(step.id for step in self._git.walk((old,), (head,)))
        return self._git.read([commit for commit in steps if commit not in self._unjudged][-CANDIDATES:])

    def is_amend(self, commit: Commit) -> bool:
        """Whether it took the place of a commit with the same parents."""
        return any(old.parents == commit.parents for old in self._replaced if old.id != commit.id)

    def origins(self, commit: Commit) -> tuple[Commit, ...]:
        """The commits whose place it took, the one like it first, all it changes among their changes; empty where none is.

        Like it: same author, author time and subject. On the same parents bytes must be the same too: what stands
        there now was not judged with the one before.
        """
        found = [self._covering(old, commit) for old in self._replaced if self._is_like(old, commit)]
        return min(filter(None, found), key=len, default=())

    def _covering(self, first: Commit, commit: Commit) -> tuple[Commit, ...]:
        """`first`, and what was squashed into it; empty where some change is in none of them."""
        claim = _claim_of_bytes if first.parents == commit.parents else _claim_of_path
        missing = set(map(claim, commit.changes)) - set(map(claim, first.changes))
        parts = [first]
        for old in self._replaced:
            if covered := missing & set(map(claim, old.changes)):
                parts.append(old)
                missing -= covered
        return () if missing else tuple(parts)

    def _is_like(self, old: Commit, commit: Commit) -> bool:
        if old.id == commit.id or (old.author_s, old.subject) != (commit.author_s, commit.subject):
            return False
        return self._git.author(old.id) == self._git.author(commit.id)


def _claim_of_path(change: PathChange) -> tuple[bytes, str, str]:
    return change.path, "", ""


def _claim_of_bytes(change: PathChange) -> tuple[bytes, str, str]:
    return change.path, change.new_mode, change.new_blob


def inherited(origins: tuple[Commit, ...], verdict_of: Callable[[str], Verdict | None]) -> Verdict | None:
    """What was said of the commits whose place was taken: bypassed if any was, else what was said of the first."""
    verdicts = [verdict_of(commit.id) for commit in origins]
    return "bypassed" if "bypassed" in verdicts else verdicts[0]
