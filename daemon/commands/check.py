"""`shapeupd check`: the gate's rules over what is staged, a commit, a range or the working tree. Source: cli §2, rulings E5, E9, E19, J."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NamedTuple

from daemon.check.formats import FORMATS, Finding, Format, render
from daemon.exits import DONE, USAGE, WANTING, Exit
from daemon.place import Place, find_place
from daemon.terminal import complain, print_json
from hooks.git import GitFailed, ask_git
from hooks.path_change import Content, PathChange
from hooks.verdict import Violation, render_violation
from parsers.addresses import SLUG

HELP = """Judges changes by the rules of the gate; the hooks give the same verdicts in the same words.
Without an option it judges what is staged. A range or a commit is judged commit by commit: by the order that its
trailer names, else by what was recorded of it. That needs no .shapeup/, so it runs in CI.
Ends 0 when everything is allowed, 1 when something is not, 2 when that cannot be told."""
EXAMPLE = "shapeupd check --range origin/main..HEAD --format github"


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--staged", action="store_true", help="the index against HEAD (the default)")
    what.add_argument("--range", metavar="A..B", help="every commit that B reaches and A does not")
    what.add_argument("--commit", metavar="C", help="one commit against its parents")
    what.add_argument("--worktree", action="store_true", help="what lies in the working tree against HEAD")
    what.add_argument("--print-policy", action="store_true", help=argparse.SUPPRESS)
    what.add_argument("--print-hill", metavar="SLUG", help=argparse.SUPPRESS)
    what.add_argument("--print-scopes", metavar="SLUG", help=argparse.SUPPRESS)
    parser.add_argument("--index", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--index-git-dir", metavar="DIR", help=argparse.SUPPRESS)
    parser.add_argument("--top", metavar="DIR", help=argparse.SUPPRESS)
    parser.add_argument("--order", metavar="ID", help=argparse.SUPPRESS)
    parser.add_argument("--ref", metavar="REF", default="", help="the ref a range is for, where it names none itself")
    parser.add_argument("--format", choices=FORMATS, default="text", dest="form", help="what is printed")
    parser.add_argument("--json", action="store_const", const="json", dest="form", help="the same as --format json")


class Outcome(NamedTuple):
    """What was found, and what was looked at, in words."""

    findings: tuple[Finding, ...]
    looked_at: str


def run(args: argparse.Namespace) -> int:
    if args.repo:
        _enter(args.repo[0])
    place = find_place()
    if args.print_policy:
        return _print_policy(place, args.order)
    if args.print_hill is not None:
        return _print_hill(place, args.print_hill)
    if args.print_scopes is not None:
        return _print_scopes(place, args)
    if place.git_dir is None:
        raise Exit(USAGE, f"{place.root} is no git repository, so there is no commit to judge")
    try:
        outcome = _judge(args, place)
    except GitFailed as failed:
        raise Exit(USAGE, f"this cannot be judged: {failed}") from None
    except FileNotFoundError:
        raise Exit(USAGE, "this cannot be judged: there is no git on PATH") from None
    _print(outcome, args.form)
    return WANTING if outcome.findings else DONE


def _enter(folder: str) -> None:
    """The folder that was named counts, not the one a hook runs for."""
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        del os.environ[key]
    os.chdir(folder)


def _print_policy(place: Place, order_id: str | None) -> int:
    from daemon.policy_on_disk import policy_of
    from parsers.policy_file import render_policy

    print(render_policy(policy_of(place, order_id=order_id)), end="")
    return DONE


def _print_hill(place: Place, slug: str) -> int:
    """By scope, the phases that its shard may name in a commit. Source: E3."""
    from daemon.disk import DiskTree
    from daemon.hill_facts import read_hill_facts
    from reducers.hill_views import derived_phases

    if not SLUG.match(slug):
        raise Exit(USAGE, f"{slug!r} is no feature")
    print_json(derived_phases(read_hill_facts(DiskTree(place.root), slug)))
    return DONE


def _print_scopes(place: Place, args: argparse.Namespace) -> int:
    """By contract, the reds that it has among its neighbours: in an index, or in a working tree. Source: E9."""
    from daemon.lint_facts import scope_reds

    if not SLUG.match(args.print_scopes):
        raise Exit(USAGE, f"{args.print_scopes!r} is no feature")
    try:
        print_json(
            scope_reds(place.root, args.print_scopes, top=args.top, index=args.index, git_dir=args.index_git_dir)
        )
    except GitFailed as failed:
        raise Exit(USAGE, f"this cannot be judged: {failed}") from None
    return DONE


def _print(outcome: Outcome, form: Format) -> None:
    shown = render(outcome.findings, form)
    if shown:
        print(shown)
    if form == "text" and not outcome.findings:
        print(f"{outcome.looked_at}: nothing breaks a rule")


def _judge(args: argparse.Namespace, place: Place) -> Outcome:
    if args.range is not None:
        from daemon.check.range import judge_range

        return Outcome(*judge_range(args.range, args.ref, place))
    if args.commit is not None:
        from daemon.check.range import judge_commit

        return Outcome(*judge_commit(args.commit, args.ref, place))
    return _worktree(place) if args.worktree else _staged(place)


def _staged(place: Place) -> Outcome:
    from hooks.changes import staged_changes
    from hooks.refusals import UNADD, UNSTAGE

    staged = staged_changes()
    head = next(iter(staged.parents), None)
    looked_at = _counted(len(staged.changes), "staged path")
    return _judge_now(place, staged.changes, staged.content, head, UNSTAGE if staged.parents else UNADD, looked_at)


def _worktree(place: Place) -> Outcome:
    from hooks.blobs import Blobs, WorkingTree
    from hooks.changes import git_dir_and_head, worktree_changes

    top = os.fsdecode(ask_git("rev-parse", "--show-toplevel").removesuffix(b"\n"))
    os.chdir(top)
    changes = worktree_changes(top)
    git_dir, head = git_dir_and_head(repo=top)
    content = WorkingTree(top, Blobs(git_dir))
    undo = "git stash push --include-untracked -- {path}"
    looked_at = _counted(len(changes), "changed path")
    return _judge_now(place, changes, content, head, undo, looked_at, where=("--top", top))


def _judge_now(
    place: Place,
    changes: Sequence[PathChange],
    content: Content,
    head: str | None,
    undo: str,
    looked_at: str,
    where: Sequence[str] = (),
) -> Outcome:
    """By the policy in force, as pre-commit does: under SHAPEUP_ORDER by that order alone."""
    from daemon.check.policy import present_policy
    from hooks.accepted import accepted_commits, live_since_s
    from hooks.derived import specs_judge
    from hooks.override import allow_paths
    from hooks.policy import judge
    from hooks.returns import returns_of

    order_id = os.environ.get("SHAPEUP_ORDER") or None
    root = os.fspath(place.root)
    policy = present_policy(place, order_id)
    warnings: list[Violation] = []
    specs = specs_judge(root, where)
    found = judge(changes, policy, content, order_id=order_id, specs=specs, undo=undo, on_warning=warnings.append)
    if found:
        is_return = returns_of(head, changes, since=live_since_s(root, policy), accepted=accepted_commits(root))
        found = judge(
            changes,
            policy,
            content,
            order_id=order_id,
            specs=specs,
            undo=undo,
            is_return=is_return,
            allow_paths=allow_paths(root),
        )
    for warning in warnings:
        complain(f"warning: {render_violation(warning)}")
    return Outcome(tuple(map(Finding, found)), looked_at)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
