"""pre-push: what goes to a remote for the first time is judged once more, whoever made it and however. Source: rulings E5, E6, E17, targets 14, 20.

Commits that a remote has are never judged. Light module: standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hooks.git import GitFailed, ask_git, scrubbed_env
from hooks.range.commits import Commit, stream_commits

if TYPE_CHECKING:
    from hooks.objects import Objects
    from hooks.range.judge import Judged, Recorded
    from parsers.policy_file import Policy
    from parsers.trailers import Trailers

AUDIT_S = 10.0  # what the daemon's audit may take before the push is judged by what is known


class PushedRef(NamedTuple):
    """One line of what git tells the hook. A name of zeros is empty: nothing is there, or is to be."""

    local_ref: str
    local: str
    remote_ref: str
    remote: str


def parse_pushed(stdin: bytes) -> tuple[PushedRef, ...]:
    """The lines `<local ref> <id> <remote ref> <id>`."""
    found = []
    for line in stdin.split(b"\n"):
        if line:
            local_ref, local, remote_ref, remote = line.decode("utf-8", "surrogateescape").rsplit(" ", 3)
            found.append(PushedRef(local_ref, local.strip("0") and local, remote_ref, remote.strip("0") and remote))
    return tuple(found)


def pre_push(root: str, args: Sequence[str], stdin: bytes) -> int:
    """0: the push may go on. 1: it is refused, and stderr says why and what to do. `root`: the main worktree's top."""
    pushed = tuple(ref for ref in parse_pushed(stdin) if ref.local)
    remote = args[0] if args else "origin"
    try:
        # git reads while Python loads the rules. What only the remote has is not here and reaches nothing that is.
        commits = stream_commits(
            tuple(dict.fromkeys(ref.local for ref in pushed)),
            without=("--remotes",),
            but=[ref.remote for ref in pushed if ref.remote],
            ignores_missing=True,
        )
        from hooks.objects import Objects

        with Objects() as objects:
            judged, count = judge_pushed(root, remote, pushed, commits, objects)
    except GitFailed as failed:
        print(f"shapeupd: the push is refused, as it cannot be judged: git says {failed}", file=sys.stderr)
        return 1
    if not judged:
        return 0
    from hooks.range.refusals import counted, render_range

    base = pushed[0].remote[:12] or f"{remote}/HEAD"
    print(f"shapeupd: the push is refused: {counted(len(judged), count)} a rule", file=sys.stderr)
    print(render_range(judged, f"shapeupd check --range {base}..{pushed[0].local[:12]}"), file=sys.stderr)
    return 1


def judge_pushed(
    root: str, remote: str, pushed: Sequence[PushedRef], new: Iterator[Commit], objects: Objects
) -> tuple[tuple[Judged, ...], int]:
    """The new commits that break something, the oldest first, and how many new ones there are."""
    from hooks.override import allow_paths
    from hooks.range.committed import CommittedContracts
    from hooks.range.judge import RangeJudge, read_trailers
    from hooks.range.local_orders import LocalContracts, read_policy, read_record
    from hooks.range.pushed_refs import judge_refs
    from hooks.range.terms import CommittedTerms

    policy = read_policy(root)
    settings = CommittedTerms(objects, (f"refs/remotes/{remote}/HEAD", "HEAD"))
    asked = [(settings.terms_for(ref.remote_ref, ref.remote, policy), ref.local) for ref in pushed]
    commits = tuple(new)
    names = frozenset(commit.id for commit in commits)
    record = read_record(root, names)
    known: dict[bytes, Trailers] = {}
    silent = [commit for commit in commits if commit.id not in record and not read_trailers(commit, known).order_id]
    unseen: frozenset[str] = frozenset()
    if silent and has_orders(root):
        is_audited = audit(root)
        record = read_record(root, names)
        unseen = _on_no_branch(silent) if is_audited else frozenset(commit.id for commit in silent)
    orders = LocalContracts(root, policy, CommittedContracts(objects, commits))
    at_hand = _AtHand(root, policy, unseen, record)
    judge = RangeJudge(commits, orders, objects, record, at_hand, allow_paths(root))
    return judge_refs(judge, asked, commits, objects), len(commits)


class _AtHand:
    """The policy for a bypassed commit, and for one that the audit has not seen if orders were live when it was made."""

    def __init__(
        self, root: str, policy: Policy | None, unseen: frozenset[str], record: Mapping[str, Recorded]
    ) -> None:
        self._root, self._policy, self._unseen, self._record = root, policy, unseen, record

    def __call__(self, commit: Commit) -> Policy | None:
        if self._policy is None or commit.id in self._record:
            return self._policy
        if commit.id not in self._unseen:
            return None
        from hooks.range.local_orders import live_at

        policy = live_at(self._root, self._policy, commit.committer_s)
        return policy if policy.is_constraining else None


def has_orders(root: str) -> bool:
    """Whether any run of this repository holds an order file."""
    from parsers.layout import LOCAL_ROOT, NOT_A_SLUG, folder_of

    try:
        slugs = [name for name in os.listdir(os.path.join(root, LOCAL_ROOT)) if name not in NOT_A_SLUG]
    except OSError:
        return False
    for slug in slugs:
        try:
            names = os.listdir(os.path.join(root, folder_of("order", slug)))
        except OSError:
            continue
        if any(name.endswith(".json") for name in names):
            return True
    return False


def audit(root: str) -> bool:
    """Bring the record of commits up to date; whether that was possible in time."""
    command = (sys.executable, "-I", "-m", "daemon", "--repo", root, "record", "--audit")
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    actions = [(os.POSIX_SPAWN_DUP2, nothing, fd) for fd in (0, 1, 2)]
    try:
        process = os.posix_spawn(sys.executable, command, scrubbed_env(), file_actions=actions)
    except OSError:
        return False
    finally:
        os.close(nothing)
    return _ends_well(process, AUDIT_S)


def _ends_well(process: int, limit_s: float) -> bool:
    """Whether the process ends with 0 in time; it is killed when it does not."""
    import select
    import signal

    watch = os.pidfd_open(process)
    try:
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        if not poll.poll(limit_s * 1000):
            os.kill(process, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    finally:
        os.close(watch)


def _on_no_branch(commits: Sequence[Commit]) -> frozenset[str]:
    """Those that no branch and no HEAD of this repository reaches: the audit does not look at them."""
    names = "\n".join(commit.id for commit in commits).encode() + b"\n"
    out = ask_git("rev-list", "--stdin", "--not", "--branches", "HEAD", stdin=names)
    return frozenset(out.decode("ascii").split()) & {commit.id for commit in commits}
