"""pre-receive in a bare repository: every new commit of a push is judged before a ref moves. Source: targets 20, 21, rulings A3, E5, E11.

It runs inside git's quarantine, sees the new objects through the environment git gives it, and writes nothing.
Needs no `.shapeup/`. Light module: standard library only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hooks.git import GitFailed
from hooks.range.commits import Commit, stream_commits

if TYPE_CHECKING:
    from hooks.objects import Objects
    from hooks.range.judge import Judged


class Update(NamedTuple):
    """One line of what git tells the hook: a ref and what it was and is to be; empty where there is nothing."""

    old: str
    new: str
    ref: str


def parse_updates(stdin: bytes) -> tuple[Update, ...]:
    """The lines `<old> <new> <ref>`; a name of zeros is nothing."""
    found = []
    for line in stdin.split(b"\n"):
        if line:
            old, new, ref = line.decode("utf-8", "surrogateescape").split(" ", 2)
            found.append(Update(old.strip("0") and old, new.strip("0") and new, ref))
    return tuple(found)


def pre_receive(stdin: bytes) -> int:
    """0: the push may go on. 1: it is refused, and stderr says why and what to do."""
    updates = tuple(update for update in parse_updates(stdin) if update.new)
    try:
        # git reads while Python loads the rules.
        commits = stream_commits(tuple(dict.fromkeys(update.new for update in updates)), without=("--all",))
        from hooks.objects import Objects

        with Objects() as objects:
            judged, count, faults = judge_push(updates, commits, objects)
    except GitFailed as failed:
        print(f"shapeupd: the push is refused, as it cannot be judged: git says {failed}", file=sys.stderr)
        return 1
    for fault in faults:
        print(f"shapeupd: {fault}", file=sys.stderr)
    if not judged:
        return 0
    print(refusal(judged, count, updates[0]), file=sys.stderr)
    return 1


def judge_push(
    updates: Sequence[Update], new: Iterator[Commit], objects: Objects
) -> tuple[tuple[Judged, ...], int, tuple[str, ...]]:
    """The new commits that break something, how many new ones there are, and what is wrong in the settings."""
    import parsers.contracts  # noqa: F401  # wanted by nearly every push, and git is still reading
    from hooks.range.committed import CommittedContracts
    from hooks.range.judge import RangeJudge
    from hooks.range.pushed_refs import judge_refs
    from hooks.range.terms import CommittedTerms

    settings = CommittedTerms(objects)
    asked = [(settings.terms_for(update.ref, update.old), update.new) for update in updates]
    commits = tuple(new)
    judge = RangeJudge(commits, CommittedContracts(objects, commits), objects)
    return judge_refs(judge, asked, commits, objects), len(commits), settings.faults


def refusal(judged: Sequence[Judged], count: int, first: Update) -> str:
    """What the pusher reads, each line behind git's `remote: `."""
    from hooks.range.refusals import counted, render_range

    base = first.old[:12] if first.old else "<the branch it started from>"
    head = f"shapeupd: the push is refused, nothing was taken in: {counted(len(judged), count)} a rule"
    return f"{head}\n{render_range(judged, f'shapeupd check --range {base}..{first.new[:12]}')}"
