"""The words in which a range of commits is refused, and how a commit that exists already is mended. Pure. Source: cli §1, rulings E5, E8, E19.

Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence

from hooks.range.commits import Commit
from hooks.range.judge import Judged, Recorded, Unresolved
from hooks.verdict import SHOWN, Violation, quote_path, render_violation


def unknown(order_id: str, reason: Unresolved) -> Violation:
    return Violation("TRAILER-UNKNOWN", b"", order_id, reason.what, reason.why, reason.fix)


def missing() -> Violation:
    what = "the commit names no order"
    why = "on this ref every commit must say under which order it was made (gate.require_trailer)"
    return Violation(
        "TRAILER-MISSING", b"", None, what, why, "reword it with a line Shapeup-Order: <feature>/<stem> at its end"
    )


def not_here() -> Violation:
    what = "its Shapeup-Override trailer does not let it pass"
    why = "overrides hold on the machine that recorded them, and on a server where gate.accept_overrides says so"
    return Violation(
        "OVERRIDE", b"", None, what, why, "let a person who may accept overrides push it, or drop the commit"
    )


def way_forward(commit: Commit, *, is_tip: bool = False) -> str:
    """How a path (`{path}`) is taken out of a commit that exists already."""
    amend = "git restore --source=HEAD^ --staged --worktree -- {path} && git commit --amend --no-edit --allow-empty"
    if not commit.parents:
        amend = "git rm --cached -- {path} && git commit --amend --no-edit --allow-empty"
    if is_tip:
        return f"with {commit.short} checked out: {amend}"
    start = f"git rebase -i {commit.parents[0][:12] if commit.parents else '--root'}"
    if len(commit.parents) > 1:
        start = f'{start} --rebase-merges, add a line "break" behind the merge {commit.short}'
        return f"{start}, then {amend} && git rebase --continue"
    return f'{start}, mark {commit.short} as "edit", then {amend} && git rebase --continue'


def bypassed(commit: Commit, recorded: Recorded) -> Violation:
    """The policy has moved on since, so what was recorded is all there is to tell."""
    paths = ", ".join(quote_path(change.path) for change in commit.changes[:SHOWN])
    what = f"it was made past the hooks and broke {', '.join(recorded.rules) or 'the policy of its time'}"
    why = f"the daemon's audit says so; it changes {paths or 'no path'}"
    fix = f"git rebase -i {commit.parents[0][:12] if commit.parents else '--root'}, and drop or amend {commit.short}"
    return Violation("BYPASSED", b"", None, what, why, fix)


def counted(broken: int, new: int) -> str:
    """How many of the new commits break, as the subject and verb of a sentence."""
    commits = f"{broken} of {new} new commits" if new > 1 else "the new commit"
    return f"{commits} {'break' if broken > 1 else 'breaks'}"


def render_range(judged: Sequence[Judged], all_with: str) -> str:
    """The violations under their commits: at most SHOWN of them, then how many more and the command that lists all."""
    lines: list[str] = []
    left = SHOWN
    for each in judged:
        shown = each.violations[:left]
        left -= len(shown)
        if shown:
            subject = quote_path(each.commit.subject.encode("utf-8", "replace"))
            lines.append(f"commit {each.commit.short} {subject}".rstrip())
            lines.extend(map(render_violation, shown))
    if more := sum(len(each.violations) for each in judged) - SHOWN + left:
        lines.append(f"… and {more} more; all of them: {all_with}")
    return "\n".join(lines)
