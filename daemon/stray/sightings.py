"""Which dirty paths of a worktree are new, and when one has stood long enough to be judged. No I/O; time is passed. Source: ruling E7.

A path is told once until it changes; what was dirty when the first order became live is nobody's. A path is judged when it
is seen a second time as it was: git makes files dirty for a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

SETTLE_S = 0.3  # a path that stays as it is for so long is no passing one
RESTLESS_S = 1.0  # nor is one that is dirty so long, though it changes all the time
KEPT = 50_000  # paths that are not dirty any more are remembered in case git brings them back as they were
PAUSE_S = (2.0, 60.0)  # between two words about one path: at once the first time, then twice as long each time

Mark = tuple[int, ...]  # what the file system tells apart; () where nothing lies
GONE: Mark = ()


class Candidate(NamedTuple):
    """A dirty path that was not judged as it is. `since`: dirty that long; `still_since`: as it is that long."""

    mark: Mark
    since: float
    still_since: float


class Told(NamedTuple):
    """How often a path was told in a row, and until when it is not told again."""

    times: int
    until: float
    calm_at: float  # from then on it counts as told for the first time


class Sightings:
    """What is known of the dirty paths of one worktree."""

    def __init__(self) -> None:
        self._known: dict[bytes, Mark] = {}
        self._candidates: dict[bytes, Candidate] = {}
        self._told: dict[bytes, Told] = {}

    def look(
        self,
        found: Mapping[bytes, Mark],
        at: float,
        is_written: Callable[[bytes], bool],
        is_asked: Callable[[bytes], bool] = lambda path: True,
    ) -> None:
        """All that is dirty now, among the paths that were asked about. `is_written` says of a path that is dirty for the
        first time, or otherwise than before, whether somebody wrote it: git may have moved its own view instead."""
        for path in self._candidates.keys() - found.keys():
            if is_asked(path):
                del self._candidates[path]
        for path, mark in found.items():
            if self._known.get(path) == mark:
                self._candidates.pop(path, None)
            elif path in self._candidates or is_written(path):
                self.see(path, mark, at)
            else:
                self._known[path] = mark
        if len(self._known) > KEPT + len(found):
            self._known = {path: mark for path, mark in self._known.items() if path in found}
            self._told = {path: told for path, told in self._told.items() if told.calm_at > at}

    def unknown(self, found: Mapping[bytes, Mark]) -> tuple[bytes, ...]:
        """The paths that are dirty for the first time, or otherwise than before."""
        return tuple(path for path, mark in found.items() if self._known.get(path) != mark)

    def see(self, path: bytes, mark: Mark, at: float) -> None:
        """One candidate, looked at again."""
        seen = self._candidates.get(path)
        if seen is None:
            self._candidates[path] = Candidate(mark, at, at)
        elif seen.mark != mark:
            self._candidates[path] = seen._replace(mark=mark, still_since=at)

    def postpone(self, paths: Iterable[bytes], at: float) -> None:
        """git is at work: whatever it leaves is to stand for a while from now on."""
        for path in paths:
            seen = self._candidates[path]
            self._candidates[path] = Candidate(seen.mark, at, at)

    def forget(self, path: bytes) -> None:
        """The path is not dirty any more."""
        self._candidates.pop(path, None)

    def ripe(self, at: float) -> tuple[bytes, ...]:
        """The paths that are to be judged now."""
        return tuple(path for path in self._candidates if self._ripe_at(path) <= at)

    def due_at(self) -> float | None:
        """When the next path is to be judged; None: none waits."""
        return min(map(self._ripe_at, self._candidates), default=None)

    def awaits(self, path: bytes) -> bool:
        """Whether the path is dirty and not judged as it is."""
        return path in self._candidates

    def judged(self, path: bytes, mark: Mark) -> None:
        """The path was judged as it is."""
        self._known[path] = mark
        self._candidates.pop(path, None)

    def told(self, path: bytes, at: float) -> None:
        """The path was told as a stray."""
        before = self._told.get(path)
        times = before.times + 1 if before and at < before.calm_at else 1
        pause_s = min(PAUSE_S[0] * 2 ** (times - 2), PAUSE_S[1]) if times > 1 else 0.0
        self._told[path] = Told(times, at + pause_s, at + pause_s + PAUSE_S[1])

    def _ripe_at(self, path: bytes) -> float:
        seen = self._candidates[path]
        told = self._told.get(path)
        return max(min(seen.still_since + SETTLE_S, seen.since + RESTLESS_S), told.until if told else 0.0)
