"""The audit: every commit that appears on a branch or a HEAD is judged, whatever made it. Source: design §4, rulings E6, E16, targets 14.

Hooks can be skipped; this cannot. It looks every second and costs a few stats while nothing moves. New commits are judged
whole, by the policy of their time, some at a time so that results are not kept waiting. What was fetched is never judged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from daemon import clock
from daemon.bug_report import report_bug
from daemon.commits.history import Git, Step
from daemon.commits.judge import Judged, Judges, Policies, fix_of, judge_commit
from daemon.commits.memory import (
    Memory,
    accepts_path,
    fetched_tips,
    pushed_since,
    read_memory,
    read_notes,
    rebased_tips,
    shallow_commits,
    write_memory,
)
from daemon.commits.record import CommitRecord, CommitRow
from daemon.commits.ref_stamp import RefStamp, RefStamps
from daemon.commits.rewrites import Rewrites
from daemon.git import OpenGit
from daemon.journal import FsyncFailed
from daemon.log import Log
from daemon.place import Place
from daemon.scan import fingerprint
from hooks.git import GitFailed
from hooks.range.commits import Commit
from hooks.verdict import SHOWN, quote_path, render_violation
from parsers.layout import path_of
from parsers.times import render_time
from parsers.tree import Unreadable

BATCH = 200  # commits that are read at once
LOOK_S = 0.05  # what a look may take to judge them: results wait as long
GRACE_S = 0.9  # a hook's note follows the commit that it is about
YOUNG_S = 1.0  # refs written that lately may be written again without their stamp showing it
RETRY_S = (1.0, 60.0)
VIOLATIONS_SHOWN = 3


class Pass(NamedTuple):
    """One audit under way: the tips it looks at, the commits still to be judged, and what they are judged by."""

    tips: dict[str, str]
    steps: deque[Step]
    commits: deque[tuple[Commit, bytes | None]]  # read already, each with the settings file before it
    branches: dict[str, str]  # the tip that leads to each commit
    judges: Judges
    tagged: Collection[str]  # new here, but tags lead to them: they may be as old as they say
    since: datetime | None
    is_whole: bool  # false: the newest commits wait for the notes of their hooks


class Audit:
    """The audit of one repository. Used by the loop alone: `look` once a second.

    `policies` is asked at the start of each pass: the policies as the facts tell them then.
    """

    def __init__(self, place: Place, policies: Callable[[], Policies], log: Log) -> None:
        if place.git_dir is None:
            raise ValueError("only a git repository can be audited")
        self._place = place
        self._common = place.git_dir
        self._policies = policies
        self._log = log
        self._git: Git = OpenGit(place.git_dir)
        self._stamps = RefStamps(place.git_dir)
        self._memory: Memory | None = None
        self._record: CommitRecord | None = None
        self._stamp: RefStamp | None = None
        self._pass: Pass | None = None
        self._waiting: frozenset[str] = frozenset()  # commits seen before the notes of their hooks
        self._looked_at: datetime | None = None
        self._failures = 0
        self._retry_at: datetime | None = None
        self._trouble = ""

    @property
    def is_done(self) -> bool:
        """Whether all that was seen is judged."""
        return self._pass is None

    @property
    def trouble(self) -> str:
        """Why the last look failed; empty where it did not."""
        return self._trouble

    def look(self, now: datetime, *, is_asked: bool = False) -> None:
        """Judge what is new, as much of it as LOOK_S allows. `is_asked`: somebody waits, so no pause is kept.

        Raises FsyncFailed; every other failure is said once and tried again, less and less often.
        """
        if self._retry_at is not None and now < self._retry_at and not is_asked:
            return
        try:
            self._look(now, is_asked)
        except FsyncFailed:
            raise
        except (GitFailed, OSError, Unreadable) as error:
            self._fail(now, str(error) or type(error).__name__)
        except Exception as bug:  # the loop goes on, and so does the audit at the next change
            self._fail(now, "", bug)
        else:
            self._failures, self._retry_at, self._trouble = 0, None, ""

    def finish(self, now: datetime) -> None:
        """Judge all that is new. Raises FsyncFailed."""
        self.look(now, is_asked=True)
        while self._pass is not None:
            self.look(now, is_asked=True)

    def close(self) -> None:
        """Note when this audit last knew that nothing had moved. Called as the daemon ends."""
        if self._memory is None or self._pass is not None or self._looked_at is None or self._trouble:
            return
        try:
            write_memory(self._place.root, self._memory._replace(at=self._looked_at))
        except (OSError, Unreadable):
            pass  # what is written there already is older, and as good

    def _look(self, now: datetime, is_asked: bool) -> None:
        record = self._opened()
        if self._pass is None:
            stamp = self._stamps.take()
            if stamp == self._stamp:
                self._looked_at = now
                return
            if not self._begin(record, stamp, now, is_asked):
                return
        self._go_on(record, now)

    def _opened(self) -> CommitRecord:
        """The record; read anew, and everything forgotten, where somebody has removed it or the memory."""
        is_wiped = self._memory is not None and fingerprint(self._place.root / path_of("audit")) is None
        if self._record is None or is_wiped or self._record.is_gone():
            self._record = CommitRecord(self._place.root)
            self._memory = None if is_wiped or self._memory else read_memory(self._place.root)
            self._stamp = self._pass = None
        return self._record

    def _fail(self, now: datetime, what: str, bug: Exception | None = None) -> None:
        self._stamp = self._pass = None
        pause_s = min(RETRY_S[0] * 2**self._failures, RETRY_S[1])
        self._retry_at = now + timedelta(seconds=pause_s)
        self._failures = min(self._failures + 1, 16)
        said = repr(bug) if bug else what
        if said != self._trouble:
            self._trouble = said
            if bug:
                report_bug(self._log, bug, "auditing commits")
            else:
                why = f"new commits are not audited: {what}"
                fix = f"see what `git -C {self._place.root} fsck` says; the audit tries again by itself"
                self._log.write("daemon.error", level="error", code="E-GIT", error=f"{why}\n  fix: {fix}")
        self._git.close()

    # --- one pass -----------------------------------------------------------------------------------------------------

    def _begin(self, record: CommitRecord, stamp: RefStamp, now: datetime, is_asked: bool) -> bool:
        """Find what is new; False where there is nothing to judge now."""
        refs, policies = self._git.refs(), self._policies()
        since = None if self._memory else policies.live_since()
        if self._memory is None and since is None:
            self._end(refs.tips, stamp, now)  # no order was live before now, so nothing older can have broken one
            return False
        memory = self._memory or Memory(now, {})
        if refs.tips == memory.tips:
            self._end(refs.tips, stamp, now)
            return False
        pushed, before = pushed_since(self._common, memory.at)
        theirs = (refs.remotes - pushed) | before | self._fetched(refs.tips)
        hidden = {*memory.tips.values(), *memory.known, *theirs}
        after = None if since is None else int(since.timestamp())  # git knows whole seconds: a shared one counts
        shallow = shallow_commits(self._common)
        steps = [step for step in self._git.walk(refs.tips.values(), hidden, after) if step.id not in shallow]
        noted = read_notes(self._common) if steps else frozenset()
        ready = steps if is_asked else self._ready(steps, noted, stamp, now)
        if steps and not ready:
            return False
        new = frozenset(step.id for step in steps)
        self._pass = Pass(
            refs.tips,
            deque(ready),
            deque(),
            branches_of(refs.tips, steps),
            Judges(self._git, policies, record, self._rewrites(memory, refs.tips, new), noted),
            self._tagged(refs.tips, hidden, new) if self._memory else new,
            self._looked_at or (self._memory.at if self._memory else None),
            is_whole=len(ready) == len(steps),
        )
        self._stamp = stamp
        return True

    def _fetched(self, tips: dict[str, str]) -> frozenset[str]:
        return fetched_tips(self._place.root, {(self._common / name).parent for name in _heads(tips)} | {self._common})

    def _ready(self, steps: list[Step], noted: Collection[str], stamp: RefStamp, now: datetime) -> list[Step]:
        """The commits that no hook is about to say it let pass: noted ones, old ones, and what waited a second already."""
        is_young = abs(now.timestamp() - stamp.newest_ns / 1e9) < GRACE_S
        waited, self._waiting = self._waiting, frozenset()
        if not is_young or not accepts_path(self._common).parent.is_dir():
            return steps
        self._waiting = frozenset(step.id for step in steps)
        return [step for step in steps if step.id in noted or step.id in waited]

    def _rewrites(self, memory: Memory, tips: dict[str, str], new: frozenset[str]) -> Rewrites:
        left = {*memory.tips.values(), *memory.known} - set(tips.values())
        return Rewrites(self._git, set(tips.values()), sorted(left), rebased_tips(self._common, _heads(tips)), new)

    def _tagged(self, tips: dict[str, str], hidden: set[str], new: frozenset[str]) -> frozenset[str]:
        """The new commits that tags lead to."""
        tags = self._git.tags() if new else frozenset()
        return new - {step.id for step in self._git.walk(tips.values(), hidden | tags)} if tags else frozenset()

    def _go_on(self, record: CommitRecord, now: datetime) -> None:
        """Judge the next commits of the pass under way."""
        assert self._pass is not None
        steps, commits = self._pass.steps, self._pass.commits
        if not commits:
            batch = [steps.popleft() for _ in range(min(BATCH, len(steps)))]
            read = self._git.read([step.id for step in batch if record.of(step.id) is None])
            commits.extend(zip(read, self._settings(read), strict=True))
        started_at = clock.monotonic()
        while commits and clock.monotonic() - started_at < LOOK_S:
            commit, settings = commits.popleft()
            since = None if commit.id in self._pass.tagged else self._pass.since
            self._settle(record, judge_commit(commit, self._pass.judges, settings, since, now), now)
        if steps or commits:
            return
        if self._pass.is_whole:
            self._end(self._pass.tips, self._stamp, now)
        else:
            self._pass = self._stamp = None
            record.sync()

    def _settings(self, commits: Sequence[Commit]) -> Iterator[bytes | None]:
        """The team's settings file before each of these commits."""
        before = iter(self._git.entries([c.parents[0] for c in commits if c.parents], path_of("settings")))
        texts: dict[str, bytes | None] = {"": None}
        for commit in commits:
            blob = next(before) if commit.parents else ""
            if blob not in texts:
                texts[blob] = self._git.blob(blob)
            yield texts[blob]

    def _end(self, tips: dict[str, str], stamp: RefStamp | None, now: datetime) -> None:
        """Everything these tips lead to is judged: remember that, and how the refs looked."""
        self._pass = None
        if self._record is not None:
            self._record.sync()
        if self._memory is None or dict(self._memory.tips) != tips:
            memory = Memory(now, tips) if self._memory is None else self._memory.moved_to(now, tips)
            write_memory(self._place.root, memory)
            self._memory = memory
        self._looked_at = now
        is_young = stamp is not None and abs(now.timestamp() - stamp.newest_ns / 1e9) < YOUNG_S
        self._stamp = None if is_young else stamp
        self._git.close()

    # --- saying it ----------------------------------------------------------------------------------------------------

    def _settle(self, record: CommitRecord, judged: Judged, now: datetime) -> None:
        """Record the verdict, then say it: a restart in between says it once at most."""
        if judged.verdict is None:
            return
        rules = tuple(dict.fromkeys(violation.rule for violation in judged.violations))
        commit = judged.commit
        record.add(CommitRow(render_time(now), commit.id, judged.verdict, judged.order_id, rules, judged.reason))
        is_bypass = judged.verdict == "bypassed"
        branch = self._pass.branches.get(commit.id) if self._pass else None
        fields: dict[str, Any] = {"order_id": judged.order_id, "branch": branch}
        if rules:
            paths = dict.fromkeys(quote_path(violation.path) for violation in judged.violations if violation.path)
            fields |= {"rules": rules, "paths": tuple(paths)[:SHOWN], "path_count": len(paths)}
        if judged.reason:
            fields["reason"] = judged.reason
        if is_bypass:
            fields["error"] = render_bypass(judged)
        event = "commit.accepted" if judged.verdict == "overridden" else f"commit.{judged.verdict}"
        self._log.write(
            event,
            level="warn" if is_bypass else "info",
            subject=commit.id,
            detail=commit.subject,
            verdict=judged.verdict,
            **fields,
        )


def render_bypass(judged: Judged) -> str:
    """What is wrong with a commit that no hook let pass, and the one way forward."""
    lines = []
    for violation in judged.violations[:VIOLATIONS_SHOWN]:
        lines += render_violation(violation).splitlines()[:2]  # its own fix is for a commit not yet made
    if len(judged.violations) > VIOLATIONS_SHOWN:
        lines.append(f"… and {len(judged.violations) - VIOLATIONS_SHOWN} more")
    return "\n".join((*lines, f"  fix: {fix_of(judged)}"))


def _heads(tips: Mapping[str, str]) -> dict[str, str]:
    """The HEADs among the tips."""
    return {name: tip for name, tip in tips.items() if not name.startswith("refs/")}


def branches_of(tips: Mapping[str, str], steps: Iterable[Step]) -> dict[str, str]:
    """The tip that leads to each commit: a branch where one does, else a worktree's HEAD."""
    parents = {step.id: step.parents for step in steps}
    found: dict[str, str] = {}
    for name, tip in sorted(tips.items(), key=lambda item: (not item[0].startswith("refs/"), item[0])):
        for commit in _reached(tip, parents, found):
            found[commit] = name.removeprefix("refs/heads/")
    return found


def _reached(tip: str, parents: dict[str, tuple[str, ...]], found: dict[str, str]) -> Iterator[str]:
    stack = [tip]
    while stack:
        commit = stack.pop()
        if commit in parents and commit not in found:
            yield commit
            stack.extend(parents[commit])
