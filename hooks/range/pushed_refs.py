"""Several refs of one push, each with its own settings, judged with each new commit read once. Source: targets 20, 21, ruling A3.

Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hooks.objects import Objects
from hooks.range.commits import Commit
from hooks.range.judge import Judged, RangeJudge, Terms


def judge_refs(
    judge: RangeJudge, refs: Iterable[tuple[Terms, str]], commits: Sequence[Commit], objects: Objects
) -> tuple[Judged, ...]:
    """The commits that break something, the oldest first. A commit is held to the terms of every ref that comes to reach it.

    `refs`: the terms and the new tip of each. `commits`: the range, newest first.
    """
    groups: dict[Terms, list[str]] = {}
    for terms, tip in refs:
        groups.setdefault(terms, []).append(tip)
    found: dict[str, Judged] = {}
    for terms, tips in groups.items():
        chosen = None if len(groups) == 1 else reached_from(tips, commits, objects)
        for each in judge.judge_all(terms, chosen):
            known = found.get(each.commit.id, each)
            both = tuple(dict.fromkeys((*known.violations, *each.violations)))
            found[each.commit.id] = each._replace(violations=both)
    return tuple(found[commit.id] for commit in reversed(commits) if commit.id in found)


def reached_from(tips: Iterable[str], commits: Iterable[Commit], objects: Objects) -> frozenset[str]:
    """The commits of the range that the tips reach. A tag is followed to what it names."""
    parents: Mapping[str, tuple[str, ...]] = {commit.id: commit.parents for commit in commits}
    waiting = [tip if tip in parents else _peeled(tip, objects) for tip in tips]
    reached: set[str] = set()
    while waiting:
        commit = waiting.pop()
        if commit in parents and commit not in reached:
            reached.add(commit)
            waiting.extend(parents[commit])
    return frozenset(reached)


def _peeled(tip: str, objects: Objects) -> str:
    found = objects.read(f"{tip}^{{}}")
    return found[0] if found else tip
