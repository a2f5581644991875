"""What a restore would do, path by path, decided before anything is touched. Pure. Source: protocol §6.5, W-50, W-53, ruling G2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from daemon.trees.objects import Area, Entry, Note, folders_above

OTHERS = "another live order may write it"
UNKNOWN = "it was no path of the scope when that tree was stored"
THEN_LEFT = "another live order could write it when that state was stored"
UNTRACKED = "the tool that kept the tree stored no untracked files, so it may belong to it"


class Step(NamedTuple):
    """One path: what stands there, what is to stand there; None for nothing."""

    path: str
    was: Entry | None
    to: Entry | None


class Plan(NamedTuple):
    """Steps in path order; the folders that go where they become empty; the paths left as they are, with the reason."""

    steps: tuple[Step, ...]
    folders: tuple[str, ...]
    left: Mapping[str, str]


def domain_of(
    paths: Iterable[str], now: Area, note: Note | None, is_others: Callable[[str], bool]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The paths that the tree of this note may change now, and why each other one may not."""
    then = Area(note.areas if note else ())
    told = frozenset(note.left if note else ())
    mine, left = [], {}
    for path in sorted(paths):
        if not now.holds(path):
            continue
        if is_others(path):
            left[path] = OTHERS
        elif path in told:
            left[path] = THEN_LEFT
        elif not then.holds(path):
            left[path] = UNKNOWN
        else:
            mine.append(path)
    return tuple(mine), left


def plan_steps(
    domain: Iterable[str], present: Mapping[str, Entry], target: Mapping[str, Entry], reasons: Mapping[str, str]
) -> Plan:
    """The steps from what is present to the target. `reasons`: paths of the domain that must stay, and why."""
    steps, left = [], {}
    for path in domain:
        step = Step(path, present.get(path), target.get(path))
        if path in reasons:
            if step.was != step.to or step.was is None:
                left[path] = reasons[path]
        elif step.was != step.to:
            steps.append(step)
    standing = {folder for path in target for folder in folders_above(path)}
    emptied = {folder for step in steps if step.to is None for folder in folders_above(step.path)}
    return Plan(tuple(steps), tuple(sorted(emptied - standing)), left)
