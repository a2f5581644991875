"""Judges a range of commits for `shapeupd check`: here with what this machine knows, in CI with what is committed. Source: rulings E5, E11, A3."""

from __future__ import annotations

import os
from collections.abc import Callable

from daemon.check.formats import Finding
from daemon.exits import USAGE, Exit
from daemon.place import Place
from hooks.git import GitFailed, ask_git
from hooks.objects import Objects
from hooks.override import allow_paths
from hooks.range.commits import Commit, read_commits
from hooks.range.committed import CommittedContracts
from hooks.range.judge import RangeJudge
from hooks.range.local_orders import LocalContracts, read_policy, read_record
from hooks.range.terms import CommittedTerms
from parsers.policy_file import Policy

_DEPTH = "fetch the whole history: `git fetch --unshallow`, or fetch-depth: 0 for actions/checkout"


def judge_range(text: str, ref: str, place: Place) -> tuple[tuple[Finding, ...], str]:
    """The findings on every commit of `A..B` (or `A...B`: the same commits), and what was looked at, in words."""
    base, dots, tip = text.partition("...") if "..." in text else text.partition("..")
    if not dots:
        raise Exit(USAGE, f'"{text}" is no range; write --range A..B, or --commit {text} for one commit')
    with Objects() as objects:
        since, until = _commit(base or "HEAD", objects), _commit(tip or "HEAD", objects)
        commits = read_commits((until,), but=(since,))
        _refuse_cut_history(commits, objects)
        return _judge(commits, ref or _ref_of(tip or "HEAD"), since, place, objects)


def judge_commit(text: str, ref: str, place: Place) -> tuple[tuple[Finding, ...], str]:
    """The findings on one commit, and what was looked at."""
    with Objects() as objects:
        commit = _commit(text, objects)
        commits = read_commits((commit,), but=(f"{commit}^@",))
        _refuse_cut_history(commits, objects)
        return _judge(commits, ref, f"{commit}^", place, objects)


def _judge(
    commits: tuple[Commit, ...], ref: str, base: str, place: Place, objects: Objects
) -> tuple[tuple[Finding, ...], str]:
    committed = CommittedContracts(objects, commits)
    settings = CommittedTerms(objects, defaults=())
    if place.local.is_dir():
        root = os.fspath(place.root)
        policy = read_policy(root)
        record = read_record(root, frozenset(commit.id for commit in commits))
        orders = LocalContracts(root, policy, committed)
        judge = RangeJudge(commits, orders, objects, record, _PolicyThen(place), allow_paths(root))
        terms = settings.terms_for(_full(ref), base, policy)
    else:
        judge = RangeJudge(commits, committed, objects)
        terms = settings.terms_for(_full(ref), base)
    found = tuple(
        Finding(violation, each.commit.id, each.commit.subject)
        for each in judge.judge_all(terms)
        for violation in each.violations
    )
    return found, f"{len(commits)} commit{'' if len(commits) == 1 else 's'}"


class _PolicyThen:
    """The policy of the time a commit was made, for one that names no order and of which nothing was recorded."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._policy_at: Callable[[int], Policy] | None = None

    def __call__(self, commit: Commit) -> Policy | None:
        if self._policy_at is None:
            from daemon.check.policy import policy_by_time

            self._policy_at = policy_by_time(self._place)
        policy = self._policy_at(commit.committer_s)
        return policy if policy.is_constraining else None


def _commit(text: str, objects: Objects) -> str:
    """The id of the commit that a word names."""
    if text.strip("0") == "" and len(text) >= 40:
        raise Exit(USAGE, f"{text[:12]} names nothing: a new branch has no older tip; write --range origin/main..B")
    found = objects.read(f"{text}^{{commit}}")
    if found is not None:
        return found[0]
    if _is_shallow():
        raise Exit(USAGE, f'there is no commit "{text}" in this shallow clone; {_DEPTH}')
    raise Exit(USAGE, f'there is no commit "{text}" here; see `git log --oneline --all`')


def _refuse_cut_history(commits: tuple[Commit, ...], objects: Objects) -> None:
    """In a shallow clone the oldest commit seems to add all that it holds, which it did not."""
    for commit in commits:
        stored = None if commit.parents else objects.read(commit.id)
        if stored and b"\nparent " in stored[2].partition(b"\n\n")[0]:
            raise Exit(USAGE, f"the history before {commit.short} is not in this shallow clone; {_DEPTH}")


def _is_shallow() -> bool:
    return ask_git("rev-parse", "--is-shallow-repository").strip() == b"true"


def _ref_of(tip: str) -> str:
    """The ref that the range's end names; empty where it names none."""
    try:
        named = os.fsdecode(ask_git("rev-parse", "--symbolic-full-name", tip, "--")) if tip[0] != "-" else ""
    except GitFailed:
        return ""
    return next((line for line in named.split("\n") if line.startswith("refs/")), "")


def _full(ref: str) -> str:
    return ref if not ref or ref.startswith("refs/") else f"refs/heads/{ref}"
