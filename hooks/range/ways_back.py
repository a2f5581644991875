"""Which changes of a range only bring a path back to what it was before it slipped in. Source: ruling E15.

Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from hooks.objects import Objects
from hooks.path_change import PathChange
from hooks.range.commits import Commit
from hooks.range.judge import Recorded
from hooks.returns import State, returns_of
from hooks.verdict import Violation

MOST_BASES = (
    8  # commits before the range whose history is read; each takes one git process, and only for what is refused
)


class WaysBack:
    """What the paths of a range were before commits that no wall let pass. Told of each commit, the oldest first."""

    def __init__(
        self,
        commits: Iterable[Commit],
        objects: Objects,
        record: Mapping[str, Recorded],
        broken: Mapping[str, tuple[Violation, ...]],
    ) -> None:
        self._commits = {commit.id: commit for commit in commits}
        self._governed = _Governed(objects, record)
        self._asked = tuple(change for name in broken for change in self._commits[name].changes)
        self._ways: dict[bytes, set[State]] = {}
        self._ended: set[bytes] = set()  # a commit that a wall let pass changed them in this range
        self._bases: dict[str, str | None] = {}  # by commit: the commit before the range that it stands on
        for commit in reversed(self._commits.values()):
            parent = next(iter(commit.parents), None)
            self._bases[commit.id] = self._bases.get(parent, parent) if parent else None
        self._before: dict[str, Callable[[PathChange], bool]] = {}

    def pass_by(self, commit: Commit, *, is_governed: bool) -> None:
        """Take in what the commit changed. `is_governed`: a wall judged it and let it pass, so nothing slipped in by it."""
        for change in commit.changes:
            if is_governed:
                self._ways.pop(change.path, None)
                self._ended.add(change.path)
            else:
                self._ways.setdefault(change.path, set()).add((change.old_mode, change.old_blob))

    def is_return(self, commit: Commit) -> Callable[[PathChange], bool]:
        """Whether a change of this commit is a return."""

        def claim(change: PathChange) -> bool:
            if (change.new_mode, change.new_blob) in self._ways.get(change.path, ()):
                return True
            base = self._bases[commit.id]
            if base is None or change.path in self._ended:
                return False
            if base not in self._before:
                if len(self._before) == MOST_BASES:
                    return False
                self._before[base] = returns_of(base, self._asked, accepted=self._governed)
            return self._before[base](change)

        return claim


class _Governed(Collection[str]):
    """The commits that a wall judged: those with a good record here, and those that name an order."""

    def __init__(self, objects: Objects, record: Mapping[str, Recorded]) -> None:
        self._objects, self._record = objects, record

    def __contains__(self, commit: object) -> bool:
        recorded = self._record.get(str(commit))
        if recorded is not None:
            return recorded.verdict != "bypassed"
        found = self._objects.read(str(commit))
        return found is not None and b"\nshapeup-order:" in found[2].lower()

    def __iter__(self) -> Iterator[str]:
        return iter(self._record)

    def __len__(self) -> int:
        return len(self._record)
