"""Strict mode: the new commits of a branch are judged before the branch moves, as pre-push would judge them. Source: targets 14, 25, rulings E5, E17.

Light module: standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from hooks.accepted import accepted_commits
from hooks.entry import Call
from hooks.freshness import policy_for
from hooks.objects import Objects
from hooks.override import HOW, NO_TERMINAL, VARIABLE, has_terminal, override_reason
from hooks.range.commits import Commit, read_commits
from hooks.range.committed import CommittedContracts
from hooks.range.judge import Judged, RangeJudge, Recorded, Terms
from hooks.range.local_orders import LocalContracts, read_record
from hooks.record import record
from hooks.verdict import Violation, render_refusal
from parsers.policy_file import Contract, Policy
from parsers.trailers import parse_trailers

BRANCHES = "refs/heads/"


def judge_updates(call: Call, *, is_rebasing: bool) -> int:
    """0: the refs may move. 1: they stay, and stderr says why. `is_rebasing`: only commits that name an order count (E17)."""
    tips = new_tips(call.stdin)
    policy = policy_for(call.root) if tips else None
    if policy is None:
        return 0
    commits = read_commits(tips, without=("--branches", "--remotes"))
    if is_rebasing:
        commits = tuple(commit for commit in commits if parse_trailers(commit.message).order_id)
    judged = _judge(call.root, commits, policy) if commits else ()
    return _refuse(call, judged) if judged else 0


def new_tips(stdin: bytes) -> tuple[str, ...]:
    """What the branches are to hold: lines `<old> <new> <ref>`. A branch that goes or stays where it is has nothing new."""
    found: dict[str, None] = {}
    for line in stdin.decode("utf-8", "surrogateescape").split("\n"):
        old, _, rest = line.partition(" ")
        new, _, ref = rest.partition(" ")
        if ref.startswith(BRANCHES) and new != old and new.strip("0") and not new.startswith("ref:"):
            found[new] = None
    return tuple(found)


def _judge(root: str, commits: tuple[Commit, ...], policy: Policy) -> tuple[Judged, ...]:
    order_id = os.environ.get("SHAPEUP_ORDER")
    names = frozenset(commit.id for commit in commits)
    passed: Mapping[str, Recorded] = {name: Recorded("accepted", ()) for name in accepted_commits(root) & names}
    known = {**passed, **read_record(root, names)}
    terms = Terms(human_globs=policy.human_globs, tier_direction=policy.tier_direction)
    at_hand = policy if not order_id else policy._replace(contracts=_tied(policy, order_id))
    with Objects() as objects:
        orders = LocalContracts(root, policy, CommittedContracts(objects, commits))
        judge = RangeJudge(commits, orders, objects, known, lambda commit: at_hand)
        return judge.judge_all(terms)


def _tied(policy: Policy, order_id: str) -> tuple[Contract, ...]:
    """All freezes, and the permissions of one order."""
    return tuple(
        contract if contract.order_id == order_id else contract._replace(superseded=True)
        for contract in policy.contracts
    )


def _refuse(call: Call, judged: tuple[Judged, ...]) -> int:
    violations = tuple(_told(each.commit, violation) for each in judged for violation in each.violations)
    reason = override_reason()
    if reason is not None and has_terminal():
        print(f"shapeupd: the branch moves by {VARIABLE}: {reason}", file=sys.stderr)
        if not any(parse_trailers(each.commit.message).override for each in judged):
            record(call.root, "hook.override", call.hook, violations, reason=reason)
        return 0
    paths = len({violation.path for violation in violations if violation.path})
    count = f"{paths} path{'' if paths == 1 else 's'}"
    print(f"shapeupd: this is refused, no branch has moved ({count})", file=sys.stderr)
    tips = " ".join(new_tips(call.stdin))
    print(render_refusal(violations, f"shapeupd check --commit {tips[:12]}"), file=sys.stderr)
    print(NO_TERMINAL if reason is not None else HOW, file=sys.stderr)
    record(call.root, "commit.rejected", call.hook, violations)
    return 1


def _told(commit: Commit, violation: Violation) -> Violation:
    """The commit is on no branch yet, so nothing need be mended: it is made again without the path."""
    if not violation.path:
        return violation
    return violation._replace(fix=f"leave the branch where it is, or make {commit.short} again without this path")
