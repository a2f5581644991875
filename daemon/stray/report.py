"""Judges writes in a working tree and says how each is taken back. Source: rulings E3, E4, E7, E15, design §4."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from daemon.stray.worktree_status import Checkout, Dirty
from hooks.blobs import Blobs, WorkingTree
from hooks.changes import git_dir_and_head
from hooks.git import scrubbed_env
from hooks.path_change import GITLINK_MODE, Content, PathChange
from hooks.policy import judge
from hooks.refusals import shell_word
from hooks.returns import returns_of
from hooks.specs import SpecVerdict, judge_specs
from hooks.verdict import quote_path
from parsers.policy_file import Policy

SHOWN = 20  # strays that one look tells one by one


class Stray(NamedTuple):
    """One write outside every live substrate. `undo` is one command for a POSIX shell, whatever folder it stands in."""

    path: bytes
    rule: str
    order_id: str | None  # the order that the rule speaks of
    why: str
    undo: str


def judge_strays(
    checkout: Checkout,
    dirty: Mapping[bytes, Dirty],
    policy: Policy,
    *,
    allow_paths: tuple[str, ...] = (),
    since_s: int | None = None,
) -> tuple[Stray, ...]:
    """The strays among what is dirty, in its order. `since_s`: what was committed before
    orders were live, in seconds since 1970, slipped past nobody (E15). Raises GitFailed."""
    # A write is no commit: it is a stray or it is not, and a commit is refused later for want of a live order.
    judged = policy if policy.no_live_order == "allow" else policy._replace(no_live_order="allow")
    changes = [it.change for it in dirty.values()]
    blobs = Blobs(checkout.git_dir)
    content = WorkingTree(checkout.top, blobs)
    try:
        found = judge(changes, judged, content, allow_paths=allow_paths, specs=_owned_by_content)
    finally:
        blobs.close()
    is_return = _is_return(checkout, [dirty[broken.path].change for broken in found], since_s)
    strays = []
    for broken in found:
        it = dirty[broken.path]
        if not is_return(it.change):
            strays.append(Stray(broken.path, broken.rule, broken.order_id, broken.why, undo_of(checkout.top, it)))
    return tuple(strays)


def stray_fields(stray: Stray, policy: Policy, checkout: Checkout) -> dict[str, object]:
    """The log event of one stray."""
    live = [contract.order_id for contract in policy.contracts if contract.is_constraining]
    return {
        "subject": quote_path(stray.path),
        "rule": stray.rule,
        "order_id": stray.order_id,
        "live_orders": live,
        "worktree": checkout.top if checkout.is_linked else None,
        "reason": stray.why,
        "undo": stray.undo,
    }


def rest_fields(strays: Sequence[Stray], policy: Policy, checkout: Checkout) -> dict[str, object]:
    """One log event for all strays of a look that are not told one by one."""
    live = [contract.order_id for contract in policy.contracts if contract.is_constraining]
    top = shell_word(os.fsencode(checkout.top), for_git=False)
    return {
        "subject": checkout.top,
        "paths": [quote_path(stray.path) for stray in strays[:SHOWN]],
        "path_count": len(strays),
        "live_orders": live,
        "worktree": checkout.top if checkout.is_linked else None,
        "undo": f"git -C {top} status --untracked-files=all lists them; `shapeupd explain PATH` says who may write one",
    }


def undo_of(top: str, dirty: Dirty) -> str:
    """The command that brings the path, in the index too, back to what HEAD has."""
    change, at = dirty.change, f"git -C {shell_word(os.fsencode(top), for_git=False)}"
    if dirty.letters == "??":
        words = "rm -rf --" if change.new_mode == GITLINK_MODE else "rm --"
        return f"{words} {shell_word(os.path.join(os.fsencode(top), change.path), for_git=False)}"
    if change.status == "A":
        return f"{at} rm -rfq -- {shell_word(change.path)}"
    staged = "" if dirty.letters[0] == "." else "--staged --worktree "
    return f"{at} restore {staged}-- {shell_word(change.path)}"


def _is_return(checkout: Checkout, changes: Sequence[PathChange], since_s: int | None) -> Callable[[PathChange], bool]:
    if not changes:
        return lambda change: False
    _, head = git_dir_and_head(env=scrubbed_env(), repo=checkout.top)
    return returns_of(head, changes, since=since_s, env=scrubbed_env(), repo=checkout.top)


def _owned_by_content(changes: Sequence[PathChange], content: Content, policy: Policy) -> SpecVerdict:
    """What passes by what it holds. What else the rules over specs find is for the commit: no write is a stray for its wording."""
    return SpecVerdict((), judge_specs(changes, content, policy).passed)
