"""Judges one commit whole against its parents, by the policy of its time. Source: design §4, rulings E2, E6, E15, E16."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from functools import partial
from shlex import quote
from typing import NamedTuple, Protocol

from daemon.commits.history import Git
from daemon.commits.record import CommitRecord
from daemon.commits.rewrites import Rewrites, inherited
from hooks.path_change import ABSENT_MODE, GITLINK_MODE, PathChange
from hooks.policy import judge, requires_live_order
from hooks.range.commits import Commit
from hooks.verdict import Violation
from parsers.layout import LOCAL_ROOT, SHARED_ROOT
from parsers.policy_file import Policy
from parsers.trailers import Trailers, parse_trailers
from reducers.commit_verdicts import Evidence, Verdict, derive_verdict

STEPS_BACK = 20  # commits of one path, where a change may bring back what stood before a bypass
RESTORED = 5  # paths that a fix names one by one

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")
_OURS = (LOCAL_ROOT.encode() + b"/", SHARED_ROOT.encode() + b"/", LOCAL_ROOT.encode(), SHARED_ROOT.encode())


class Policies(Protocol):
    """The policies of one repository, as they were and are."""

    def at(self, at: datetime, order_id: str | None, settings: bytes | None) -> Policy:
        """The policy as it stood then. `order_id`: the contract of that order is in it too, if there ever was such an order.

        `settings`: the team's settings file as it was then; None where there was none.
        """

    def live_since(self) -> datetime | None:
        """When the oldest live order was compiled; None where none is live."""

    def allow_paths(self) -> tuple[str, ...]:
        """Globs that the user lets pass everywhere."""


class Judged(NamedTuple):
    """What was found about one commit; `verdict` None where nothing is to be said of it."""

    commit: Commit
    verdict: Verdict | None
    order_id: str | None = None
    violations: tuple[Violation, ...] = ()
    reason: str = ""


class Judges(NamedTuple):
    """What commits are judged by. `noted`: the commits that hooks let pass."""

    git: Git
    policies: Policies
    record: CommitRecord
    rewrites: Rewrites
    noted: Collection[str]


def judge_commit(
    commit: Commit, judges: Judges, settings: bytes | None, since: datetime | None, now: datetime
) -> Judged:
    """The verdict on one commit. `settings`: the team's settings file in its first parent (A3).

    `since`: it did not exist then, whatever its committer's clock said; None: believe that.
    """
    trailers = parse_trailers(commit.message)
    at = time_of(commit, since, now)
    policy = judges.policies.at(at, trailers.order_id, settings)
    if not _is_governed(commit, policy, bool(trailers.order_id or trailers.override)):
        return Judged(commit, None)
    violations = (
        *_disagreement(trailers, policy),
        *_violations(commit, judges, policy, trailers.order_id),
    )
    origins = judges.rewrites.origins(commit) if violations else ()
    evidence = Evidence(
        is_clean=not violations,
        is_noted=commit.id in judges.noted,
        is_amend=bool(violations) and judges.rewrites.is_amend(commit),
        is_override=bool(trailers.override),
        is_rewrite=bool(origins),
        original=inherited(origins, lambda old: row.verdict if (row := judges.record.of(old)) else None)
        if origins
        else None,
    )
    verdict = derive_verdict(evidence)
    return Judged(
        commit, verdict, trailers.order_id, violations, _reason(verdict, evidence, origins, trailers.override)
    )


def time_of(commit: Commit, since: datetime | None, now: datetime) -> datetime:
    """When the commit was made: what its committer's clock said, no earlier than `since` and no later than now.

    That clock has whole seconds; the end of the second is taken, so that an order is not missed that was compiled in it.
    """
    try:
        at = datetime.fromtimestamp(commit.committer_s, UTC) + timedelta(milliseconds=999)
    except (OverflowError, ValueError, OSError):
        at = now
    return min(at if since is None else max(at, since), now)


def _is_governed(commit: Commit, policy: Policy, is_named: bool) -> bool:
    """Whether any rule speaks of the commit; of most history none does."""
    if is_named or policy.is_constraining or requires_live_order(policy):
        return True
    return any(change.path.startswith(_OURS[:2]) or change.path in _OURS[2:] for change in commit.changes)


def _disagreement(trailers: Trailers, policy: Policy) -> tuple[Violation, ...]:
    """A trailer that names another operation than its order is for."""
    meant = next((contract for contract in policy.contracts if contract.order_id == trailers.order_id), None)
    if meant is None or not trailers.operation or meant.operation in ("", trailers.operation):
        return ()
    what = f'Shapeup-Operation is "{trailers.operation}", but the order is for {meant.operation}'
    fix = "amend the message: correct the trailer, or drop it"
    return (Violation("TRAILER-UNKNOWN", b"", meant.order_id, what, "a trailer tells what the order says", fix),)


def _violations(commit: Commit, judges: Judges, policy: Policy, order_id: str | None) -> tuple[Violation, ...]:
    """What the commit breaks. Whether a path only goes back to what it was is asked last: it costs a walk."""
    content, allowed = Bytes(judges.git), judges.policies.allow_paths()
    judged = partial(judge, policy=policy, content=content, order_id=order_id, allow_paths=allowed)
    found = _in_every_view(commit, judged)
    if not any(violation.path for violation in found):
        return found
    returns = {change for change in commit.changes if _is_return(commit, change, judges)}
    kept = frozenset((change.path, change.new_mode, change.new_blob) for change in returns)
    is_return = partial(_is_among, kept)
    return _in_every_view(commit, partial(judged, is_return=is_return)) if returns else found


def _is_among(kept: frozenset[tuple[bytes, str, str]], change: PathChange) -> bool:
    return (change.path, change.new_mode, change.new_blob) in kept


def _in_every_view(commit: Commit, judged: Callable[..., tuple[Violation, ...]]) -> tuple[Violation, ...]:
    """What it breaks; a merge only what it breaks against every parent."""
    found: tuple[Violation, ...] = ()
    for number, changes in enumerate(commit.views()):
        told = judged(changes)
        claims = {(violation.rule, violation.path) for violation in told}
        found = told if number == 0 else tuple(one for one in found if (one.rule, one.path) in claims)
        if not found:
            break
    return found


def _is_return(commit: Commit, change: PathChange, judges: Judges) -> bool:
    """Whether the path is as it was before it slipped in: before the commits that were bypassed, or that no wall knew of
    while an order was live. Source: ruling E15."""
    if not commit.parents:
        return False
    for touch in judges.git.touches(commit.parents[0], change.path, STEPS_BACK):
        row = judges.record.of(touch.commit)
        if row.verdict != "bypassed" if row else not _may_have_slipped(touch.commit, judges):
            return False
        if (touch.old_mode, touch.old_blob) == (change.new_mode, change.new_blob):
            return True
    return False


def _may_have_slipped(commit: str, judges: Judges) -> bool:
    """Whether a commit of which nothing is recorded was made since an order is live, and under none."""
    since = judges.policies.live_since()
    found = judges.git.read([commit])
    if since is None or not found or parse_trailers(found[0].message).order_id:
        return False
    return found[0].committer_s >= int(since.timestamp())


class Bytes:
    """The bytes on both sides of a commit's changes."""

    def __init__(self, git: Git) -> None:
        self._git = git

    def before(self, change: PathChange) -> bytes | None:
        return self._read(change.old_mode, change.old_blob)

    def after(self, change: PathChange) -> bytes | None:
        return self._read(change.new_mode, change.new_blob)

    def _read(self, mode: str, blob: str) -> bytes | None:
        return None if mode in (ABSENT_MODE, GITLINK_MODE) else self._git.blob(blob)


def _reason(verdict: Verdict | None, evidence: Evidence, origins: tuple[Commit, ...], override: str | None) -> str:
    if verdict == "overridden":
        return override or ""
    if evidence.is_rewrite and not (evidence.is_noted and verdict == "accepted"):
        return f"takes the place of {origins[0].short}"
    return ""


def fix_of(judged: Judged) -> str:
    """One way forward: commands that bring every path back, which any commit may do."""
    commit = judged.commit
    paths = dict.fromkeys(violation.path for violation in judged.violations if violation.path)
    if not paths:
        return judged.violations[0].fix
    names = [path.decode("utf-8", "surrogateescape") for path in paths]
    if len(names) > RESTORED or not commit.parents or not all(name.isprintable() for name in names):
        main = " -m 1" if len(commit.parents) > 1 else ""
        return f"git revert{main} {commit.short}"
    words = " ".join(f":/{name}" if _PLAIN.fullmatch(name) else quote(f":(top,literal){name}") for name in names)
    return f"git restore --source={commit.short}^ --staged --worktree -- {words} && git commit"
