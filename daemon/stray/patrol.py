"""The thread that looks for stray writes: hints and timers ask for a look, git tells what is dirty, a second look confirms. Source: ruling E7.

Two looks, because git itself makes files dirty for a moment. All looks together take at most about a twentieth of one core.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from daemon import clock
from daemon.place import Place
from daemon.scan import NETWORK_FILESYSTEMS, filesystem_of
from daemon.stray.memory import Told
from daemon.stray.report import SHOWN, Stray, judge_strays, rest_fields, stray_fields
from daemon.stray.sightings import Mark, Sightings
from daemon.stray.worktree_status import (
    Checkout,
    Dirty,
    View,
    by_git,
    dirty_paths,
    find_checkouts,
    is_locked,
    is_mid_operation,
    left_behind,
    list_stamp,
    made_ns,
    mark_of,
    marks_of,
    view_of,
    visited,
    written_ns,
)
from daemon.stray.worktree_watch import WorktreeWatch, most_folders
from hooks.accepted import live_since_s
from hooks.git import GitFailed
from parsers.policy_file import Policy

GATHER_S = 0.05  # after the first hint, so that one look serves a burst
APART_S = 0.2
SHARE = 20  # the next look waits so many times as long as the last one took
LATE_S = 0.5  # for so long a second look may be put off to spread its cost
POLL_S = 1.0
TIMED_S = 10.0  # a look although nothing was heard
FIND_S = 1.0
LOCK_S = 30.0  # a lock that is older belongs to nobody
RETRY_S = (1.0, 60.0)
CLOCK_SLACK_NS = 20_000_000  # the clock of file times may lag by a tick

Poll = Literal["auto", "on", "off"]
Say = Callable[[str, Mapping[str, object]], None]


class Moment(NamedTuple):
    """One instant on both clocks."""

    monotonic: float
    wall_ns: int

    def as_of(self, later: Moment) -> int:
        """The instant as a wall clock shows it that may have been set back since."""
        return min(self.wall_ns, later.wall_ns - int((later.monotonic - self.monotonic) * 1e9))


def git_trouble(what: str) -> dict[str, object]:
    """The fields of the error that says so."""
    fix = "see what `git status` says there; it is tried again, less and less often"
    return {"code": "E-GIT", "error": f"stray writes are not seen: {what}\n  fix: {fix}"}


class Watched:
    """One worktree under watch."""

    def __init__(self, checkout: Checkout, watch: WorktreeWatch | None) -> None:
        self.checkout = checkout
        self.watch = watch
        self.sightings = Sightings()
        self.view: View | None = None
        self.looked: Moment | None = None  # at everything
        self.looked_at = float("-inf")  # at anything
        self.due_at = 0.0
        self.stirred_at: float | None = None
        self.locked_since: float | None = None
        self.failures = 0
        self.rests_until = 0.0
        self.trouble = ""

    def is_busy(self, at: float) -> bool:
        """Whether git holds the index, for no longer than git would."""
        if not is_locked(self.checkout):
            self.locked_since = None
            return False
        self.locked_since = at if self.locked_since is None else self.locked_since
        return at - self.locked_since < LOCK_S


class Patrol:
    """Looks at every worktree until it is ended. `say(event, fields)` is called on its thread.

    `since`: when orders became live; what was dirty before is nobody's stray. `policy` is asked at each judgement. `told`: what
    an earlier daemon told, by top and path; `keep(told)` is called when more is.
    """

    def __init__(
        self,
        place: Place,
        policy: Callable[[], Policy],
        say: Say,
        *,
        since: Moment,
        told: Told,
        keep: Callable[[Told], object],
        poll: Poll = "auto",
        allow_paths: tuple[str, ...] = (),
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self._place = place
        self._policy = policy
        self._say = say
        self._since = since
        self._told = told
        self._keep = keep
        self._poll = poll
        self._allow_paths = allow_paths
        self._now = now
        self._watched: dict[Checkout, Watched] = {}
        self._woken = threading.Event()
        self._is_ending = False
        self._paid_at = 0.0
        self._listed: object = None
        self._told_limit = False
        self.busy_since: float | None = None
        self.cost_s = 0.0

    def wake(self) -> None:
        """Something may have been written; safe from any thread."""
        self._woken.set()

    def end(self) -> None:
        """Ask `run` to return; safe from any thread."""
        self._is_ending = True
        self._woken.set()

    def close(self) -> None:
        """Let go of all watches."""
        for watched in self._watched.values():
            if watched.watch is not None:
                watched.watch.close()
        self._watched = {}

    def run(self) -> None:
        """Look until ended. Raises what git or the disk raises; it may be called again after that."""
        while not self._is_ending:
            try:
                self._turn(clock.monotonic())
            finally:
                self.busy_since = None
            self._woken.wait(self._wait_s(clock.monotonic()))
            self._woken.clear()

    def _wait_s(self, at: float) -> float:
        due = [at + FIND_S]
        for watched in self._watched.values():
            due.append(max(self._look_at(watched), self._paid_at))
            due.append(self._confirm_at(watched))
        return max(0.0, min(due) - at)

    def _look_at(self, watched: Watched) -> float:
        """When the worktree is to be looked at next; a hint hastens it."""
        if watched.watch is None or watched.watch.trouble:
            return max(watched.looked_at + POLL_S, watched.rests_until)
        if not watched.watch.is_stirred:
            return max(watched.due_at, watched.rests_until)
        watched.stirred_at = clock.monotonic() if watched.stirred_at is None else watched.stirred_at
        heard_at = max(watched.stirred_at + GATHER_S, watched.looked_at + APART_S)
        return max(min(watched.due_at, heard_at), watched.rests_until)

    def _confirm_at(self, watched: Watched) -> float:
        """When paths are to be looked at again; infinity: none waits."""
        ripe_at = watched.sightings.due_at()
        return (
            float("inf") if ripe_at is None else max(ripe_at, watched.rests_until, min(self._paid_at, ripe_at + LATE_S))
        )

    def _turn(self, at: float) -> None:
        self.busy_since = at
        self._find()
        for watched in list(self._watched.values()):
            if self._is_ending:
                return
            if clock.monotonic() >= self._confirm_at(watched):
                self._pay(self._confirm, watched)
            at = clock.monotonic()
            if at >= max(self._look_at(watched), self._paid_at):
                self._pay(self._look, watched)

    def _pay(self, act: Callable[[Watched], None], watched: Watched) -> None:
        self.busy_since = start = clock.monotonic()
        try:
            act(watched)
        except (GitFailed, OSError) as error:
            self._fail(watched, str(error) or type(error).__name__)
        else:
            watched.failures, watched.trouble = 0, ""
        finally:
            cost_s = clock.monotonic() - start
            self._paid_at = max(self._paid_at, start) + SHARE * cost_s
            self.cost_s += cost_s

    def _fail(self, watched: Watched, what: str) -> None:
        """One worktree rests, longer each time; the others are looked at. Said once until a look succeeds."""
        watched.rests_until = clock.monotonic() + min(RETRY_S[0] * 2 ** min(watched.failures, 8), RETRY_S[1])
        watched.due_at = watched.rests_until  # then at everything: what was heard of is forgotten
        watched.failures += 1
        if what != watched.trouble and os.path.lexists(f"{watched.checkout.top}/.git"):  # else it went
            watched.trouble = what
            self._say("daemon.error", git_trouble(f"in {watched.checkout.top}: {what}"))

    # --- worktrees ----------------------------------------------------------------------------------------------------

    def _find(self) -> None:
        stamp = list_stamp(self._place)
        if stamp == self._listed:
            return
        found = find_checkouts(self._place)
        self._listed = stamp
        for checkout in self._watched.keys() - set(found):
            gone = self._watched.pop(checkout)
            if gone.watch is not None:
                gone.watch.close()
        for checkout in found:
            if checkout not in self._watched:
                self._watched[checkout] = self._begin(checkout)

    def _begin(self, checkout: Checkout) -> Watched:
        watch = None
        if self._poll != "on" and filesystem_of(checkout.top) not in NETWORK_FILESYSTEMS:
            watch = WorktreeWatch(checkout.top, self.wake, lambda: self._folders_for(checkout))
            watch.open()
            self._tell_trouble(watch, checkout)
        watched = Watched(checkout, watch)
        for path, mark in self._told.get(checkout.top, {}).items():
            watched.sightings.judged(path, mark)
        return watched

    def _folders_for(self, checkout: Checkout) -> int:
        others = (it.watch for it in self._watched.values() if it.checkout != checkout)
        return most_folders() - sum(len(watch) for watch in others if watch is not None)

    def _tell_trouble(self, watch: WorktreeWatch, checkout: Checkout) -> None:
        if watch.trouble and not self._told_limit:
            self._told_limit = True
            reason = (
                f"{checkout.top} is not watched for stray writes ({watch.trouble}); git is asked every second instead"
            )
            self._say("watch.degraded", {"reason": reason})

    # --- looks --------------------------------------------------------------------------------------------------------

    def _look(self, watched: Watched) -> None:
        """Find what is dirty: at the paths that were heard of, or everywhere when it is time or git has moved its view."""
        watch, at = watched.watch, self._moment()
        was_stirred = watched.stirred_at is not None
        hints: tuple[bytes, ...] = ()
        if watch is not None and not watch.trouble:
            hints = watch.catch_up()
            self._tell_trouble(watch, watched.checkout)
        watched.looked_at, watched.stirred_at = at.monotonic, None
        if hints and at.monotonic < watched.due_at and self._look_there(watched, hints, at):
            return
        self._look_everywhere(watched, at)
        watched.due_at = at.monotonic + TIMED_S
        if watch is not None and not was_stirred and watched.sightings.due_at() is not None:
            watch.watch_anew()  # nobody told

    def _look_there(self, watched: Watched, hints: Sequence[bytes], at: Moment) -> bool:
        """Whether these paths could be looked at by themselves."""
        checkout = watched.checkout
        if view_of(checkout) != watched.view:
            return False
        marks = marks_of(checkout, dirty_paths(checkout, hints))
        if view_of(checkout) != watched.view:
            return False
        within = tuple(hint + b"/" for hint in hints)

        def is_asked(path: bytes) -> bool:
            return path in hints or path.startswith(within)

        watched.sightings.look(marks, at.monotonic, lambda path: True, is_asked)
        return True

    def _look_everywhere(self, watched: Watched, at: Moment) -> None:
        """The first time what was dirty before orders were live is taken as given."""
        checkout, before = watched.checkout, view_of(watched.checkout)
        marks = marks_of(checkout, dirty_paths(checkout))
        after = view_of(checkout)
        is_same_view = watched.view == before == after
        commits = visited(checkout, watched.view) if watched.view and watched.view.log != after.log else ()
        for path in left_behind(checkout, watched.sightings.unknown(marks), commits):
            watched.sightings.judged(path, marks[path])
        since = watched.looked or (Moment(at.monotonic, 0) if self._is_new(checkout, at) else self._since)
        since_ns = since.as_of(at) - (CLOCK_SLACK_NS if watched.looked else 0)

        def is_written(path: bytes) -> bool:
            return is_same_view or written_ns(checkout.top, path) > since_ns

        watched.sightings.look(marks, at.monotonic, is_written)
        watched.view, watched.looked = before, at

    def _is_new(self, checkout: Checkout, at: Moment) -> bool:
        """Whether the worktree was added while orders were live: it came clean."""
        return made_ns(checkout) > self._since.as_of(at)

    def _moment(self) -> Moment:
        return Moment(clock.monotonic(), int(self._now().timestamp() * 1e9))

    def _confirm(self, watched: Watched) -> None:
        """Look again at the paths that have stood for a while, and judge those that still stand."""
        at, checkout, sightings = clock.monotonic(), watched.checkout, watched.sightings
        if watched.is_busy(at):
            sightings.postpone(sightings.ripe(at), at)
            return
        if view_of(checkout) != watched.view:  # what is dirty, and against what, may be another now
            self._look_everywhere(watched, self._moment())
        marks = self._see_again(watched, sightings.ripe(at), at)
        if not marks:
            return
        is_mid, dirty = is_mid_operation(checkout), dirty_paths(checkout, tuple(marks))
        if watched.is_busy(at) or view_of(checkout) != watched.view:
            sightings.postpone(marks, at)
            return
        for path, mark in marks.items():
            if path not in dirty:
                sightings.forget(path)
            elif by_git(dirty[path].letters, is_mid_operation=is_mid):
                sightings.judged(path, mark)
        judged = {path: mark for path, mark in marks.items() if sightings.awaits(path)}
        self._judge(watched, judged, {path: dirty[path] for path in judged})

    def _see_again(self, watched: Watched, paths: Iterable[bytes], at: float) -> dict[bytes, Mark]:
        """The marks of the paths that are still ripe as they are now."""
        marks = {path: mark_of(watched.checkout.top, path) for path in paths}
        for path, mark in marks.items():
            watched.sightings.see(path, mark, at)
        ripe = set(watched.sightings.ripe(at))
        return {path: mark for path, mark in marks.items() if path in ripe}

    def _judge(self, watched: Watched, marks: Mapping[bytes, Mark], dirty: Mapping[bytes, Dirty]) -> None:
        policy, checkout = self._policy(), watched.checkout
        strays: tuple[Stray, ...] = ()
        try:
            if policy.is_constraining and dirty:
                since_s = live_since_s(os.fspath(self._place.root), policy) or self._since.wall_ns // 10**9
                strays = judge_strays(checkout, dirty, policy, allow_paths=self._allow_paths, since_s=since_s)
        except (GitFailed, OSError):
            raise  # they are judged when git answers again
        except Exception:  # a bug must not meet the same paths for ever
            for path, mark in marks.items():
                watched.sightings.judged(path, mark)
            raise
        at = clock.monotonic()
        for path, mark in marks.items():
            watched.sightings.judged(path, mark)
        for stray in strays:
            watched.sightings.told(stray.path, at)
        for stray in strays[:SHOWN]:
            self._say("writer.stray", stray_fields(stray, policy, checkout))
        if len(strays) > SHOWN:
            self._say("writer.stray", rest_fields(strays[SHOWN:], policy, checkout))
        if strays:
            before = self._told.get(checkout.top, {})
            more = {stray.path: marks[stray.path] for stray in strays}
            self._told = {**self._told, checkout.top: {**before, **more}}
            self._keep(self._told)
