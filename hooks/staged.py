"""Judges what the next commit would change, and says no in words. Source: design §4, rulings E1, E2, E8, E15, E19.

Light module: standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hooks.blobs import Blobs
from hooks.changes import StagedChange, index_changes, parse_raw, staged_changes
from hooks.derived import specs_judge
from hooks.entry import Call
from hooks.freshness import NoPolicy, policy_for
from hooks.git import GitFailed
from hooks.override import HOW, NO_TERMINAL, VARIABLE, allow_paths, has_terminal, override_reason
from hooks.path_change import PathChange
from hooks.policy import judge
from hooks.record import record
from hooks.refusals import SHELVE, UNADD, UNSTAGE
from hooks.verdict import Violation, quote_path, render_refusal, render_violation
from parsers.policy_file import Contract, Policy

ALL_WITH = "shapeupd check --staged"
NO_POLICY = "shapeupd run --once"
CANARY = b".shapeup/shapeupd-canary"  # what `shapeupd doctor` stages to see it refused; that is no event

if TYPE_CHECKING:
    from hooks.policy import SpecsJudge


class Judgement(NamedTuple):
    """What was judged, by which policy, and what it breaks. `pardoned`: what only `gate.allow_paths` lets pass."""

    policy: Policy
    staged: StagedChange
    violations: tuple[Violation, ...]
    pardoned: tuple[Violation, ...] = ()


def judge_staged(call: Call, order_id: str | None) -> Judgement | None:
    """The verdict on the index; None where there is nothing to judge by. Raises NoPolicy, GitFailed."""
    policy = policy_for(call.root, order_id)
    if policy is None:
        if os.environ.get("SHAPEUPD_CANARY") != "1":
            return None
        policy = Policy("")
    staged = _staged(call)
    undo = _undo(staged)
    warnings: list[Violation] = []
    specs = specs_judge(call.root)
    found = judge(
        staged.changes,
        policy,
        staged.content,
        order_id=order_id,
        specs=specs,
        undo=undo,
        on_warning=warnings.append,
    )
    if found:
        found, pardoned = _second_look(call.root, policy, staged, order_id, specs, undo)
    else:
        pardoned = ()
    for warning in warnings if call.hook in ("pre-commit", "pre-merge-commit") else ():
        print(f"shapeupd: warning: {render_violation(warning)}", file=sys.stderr)
    return Judgement(policy, staged, found, pardoned)


def _staged(call: Call) -> StagedChange:
    """What git is about to commit; without asking it for HEAD where the folder shows that HEAD is the one parent."""
    git_dir = os.environ.get("GIT_DIR") or ".git"
    is_plain = os.path.isfile(f"{git_dir}/HEAD") and not os.path.lexists(f"{git_dir}/MERGE_HEAD")
    if is_plain and call.hook != "pre-merge-commit" and not os.path.isdir(f"{git_dir}/reftable"):
        try:
            changes = _told(call.raw) or index_changes(("HEAD",))
            return StagedChange(changes, Blobs(git_dir), ("HEAD",))
        except GitFailed:
            pass  # no commit yet, or something that is told better below
    return staged_changes(in_pre_merge=call.hook == "pre-merge-commit")


def _told(raw: bytes) -> tuple[PathChange, ...]:
    """The changes as the stub read them a moment ago; none where anything else stands among them."""
    lines = raw.rstrip(b"\n").split(b"\n")
    if not all(line[:1] == b":" and b"\t" in line and b'"' not in line for line in lines):
        return ()
    return tuple(parse_raw(b"".join(line.replace(b"\t", b"\0", 1) + b"\0" for line in lines)))


def _undo(staged: StagedChange) -> str:
    """How a path is taken out of this change. `commit -a` and `commit PATH` judge an index that git then throws away."""
    if not staged.parents:
        return UNADD
    return SHELVE if os.environ.get("GIT_INDEX_FILE", "").endswith(".lock") else UNSTAGE


def _second_look(
    root: str, policy: Policy, staged: StagedChange, order_id: str | None, specs: SpecsJudge, undo: str
) -> tuple[tuple[Violation, ...], tuple[Violation, ...]]:
    """What stays after the ways back (E15) and the user's own paths (A2) are known; they cost more and are seldom asked for."""
    from hooks.accepted import accepted_commits, live_since_s
    from hooks.returns import returns_of

    head = staged.parents[0] if staged.parents else None
    is_return: Callable[[PathChange], bool] = returns_of(
        head, staged.changes, since=live_since_s(root, policy), accepted=accepted_commits(root)
    )
    strict = judge(
        staged.changes, policy, staged.content, order_id=order_id, is_return=is_return, specs=specs, undo=undo
    )
    globs = allow_paths(root) if strict else ()
    if not globs:
        return strict, ()
    left = judge(
        staged.changes,
        policy,
        staged.content,
        order_id=order_id,
        is_return=is_return,
        specs=specs,
        undo=undo,
        allow_paths=globs,
    )
    return left, tuple(violation for violation in strict if violation not in left)


def owner_of(judgement: Judgement) -> Contract | None:
    """The one live order that covers the whole change by itself, else the one answered order; None where none does, or several."""
    policy, staged = judgement.policy, judgement.staged
    if not staged.changes or not policy.is_constraining:
        return None
    policy = policy._replace(human_globs=())  # what people may always write is no order's doing
    covering = [
        contract
        for contract in policy.contracts
        if contract.permits and not judge(staged.changes, policy, staged.content, order_id=contract.order_id)
    ]
    live = [contract for contract in covering if not contract.answered]
    found = live or covering
    return found[0] if len(found) == 1 else None


def refuse(call: Call, violations: Sequence[Violation], order_id: str | None) -> int:
    """Says no, and why. A person at a terminal may have said otherwise: then 0."""
    reason = override_reason()
    is_final = any(violation.rule == "R-37" for violation in violations)  # nobody may commit the local tier
    if reason is not None and has_terminal() and not is_final:
        return _overridden(call, violations, order_id, reason)
    paths = len({violation.path for violation in violations if violation.path})
    print(f"shapeupd: this commit is refused ({paths} path{'' if paths == 1 else 's'})", file=sys.stderr)
    print(render_refusal(violations, ALL_WITH), file=sys.stderr)
    if not is_final:
        print(NO_TERMINAL if reason is not None else HOW, file=sys.stderr)
    if os.environ.get("SHAPEUPD_CANARY") != "1" or {violation.path for violation in violations} != {CANARY}:
        record(call.root, "commit.rejected", call.hook, violations, order_id=order_id)
    return 1


def _overridden(call: Call, violations: Sequence[Violation], order_id: str | None, reason: str) -> int:
    """Said and recorded by prepare-commit-msg, which comes after pre-commit for every commit."""
    if call.hook not in ("pre-commit", "pre-merge-commit"):
        rules = ", ".join(sorted({violation.rule for violation in violations}))
        print(f"shapeupd: {rules} overridden by {VARIABLE}: {reason}", file=sys.stderr)
        record(call.root, "hook.override", call.hook, violations, order_id=order_id, reason=reason)
    return 0


def tell_pardoned(call: Call, pardoned: Sequence[Violation], order_id: str | None) -> None:
    """What only the user's own `gate.allow_paths` let pass is said, and recorded."""
    if pardoned and call.hook == "prepare-commit-msg":
        paths = ", ".join(quote_path(violation.path) for violation in pardoned[:3])
        more = f" and {len(pardoned) - 3} more" if len(pardoned) > 3 else ""
        print(f"shapeupd: gate.allow_paths of your own settings lets {paths}{more} pass; recorded", file=sys.stderr)
        record(call.root, "hook.override", call.hook, pardoned, order_id=order_id, reason="gate.allow_paths")


def refuse_unjudged(call: Call, error: NoPolicy | GitFailed | FileNotFoundError) -> int:
    """Where the change cannot be judged at all."""
    reason = override_reason()
    if reason is not None and has_terminal():
        return _overridden(call, (), None, reason)
    match error:
        case NoPolicy():
            what, fix = str(error), f"run `{NO_POLICY}` (or keep `shapeupd run` running) and try again"
        case GitFailed():
            what, fix = f"git says: {error}", "heed what git says and try again"
        case _:
            what, fix = "there is no git on PATH", "put git on PATH"
    print("shapeupd: this commit is refused: it cannot be judged", file=sys.stderr)
    print(f"  why: {what}\n  fix: {fix}\n{NO_TERMINAL if reason is not None else HOW}", file=sys.stderr)
    return 1
