"""Carries out a recorded restore: at once, or at the next start where a death came between. Source: ruling G2, targets 6, 8.

Doing it again changes nothing. What somebody changed in the meantime is stored under `undo/<trial>-edited` first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from daemon.trees.carrying import CHANGING, carry_out
from daemon.trees.intents import Intent, forget_intent, list_intents, read_intent
from daemon.trees.listing import NESTED, Nested, id_length
from daemon.trees.looking import Odd, look_at, store_files
from daemon.trees.objects import Entry, Note, render_note
from daemon.trees.refs import read_refs
from daemon.trees.site import Site, TreeFailed, find_site, kept_ref, lock_scope, told, undo_ref
from daemon.trees.steps import OTHERS, Step
from daemon.trees.store import Moving, Tip

# A git that was being started when its parent died holds the parent's lock until it is a git.
PATIENCE_S = 2.0

Others = Callable[[str, str, str], bool]  # slug, scope id, path


class Restored(NamedTuple):
    """What a restore did. Paths with a reason: `left` as they were, `failed` to become what they should.

    `undo_ref` holds what it replaced. `edited_ref`: what somebody changed between the decision and the deed; None: nothing.
    """

    written: tuple[str, ...]
    deleted: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    failed: tuple[tuple[str, str], ...]
    undo_ref: str
    undo_commit: str
    edited_ref: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every path that the restore may change is as it should be."""
        return not self.failed


class Finished(NamedTuple):
    """An interrupted restore that was met at a start. `restored` None: nothing was done, for the reason in `why`."""

    slug: str
    scope_id: str
    trial: int
    restored: Restored | None
    why: str


def finish(site: Site, intent: Intent, at: datetime) -> Restored:
    """Carry the restore out; the scope's lock is held. Raises TreeFailed, FsyncFailed: it stays to be finished."""
    with told():
        length = id_length(site)
        seen, edited = _look(site, intent, length)
        edited_ref = _set_aside(site, intent, edited, at, length) if edited else None
        done = carry_out(site, intent.plan, seen, length)
        forget_intent(site, intent.slug, intent.scope_id)
        left, failed = tuple(sorted(done.left.items())), tuple(sorted(done.failed.items()))
        return Restored(done.written, done.deleted, left, failed, intent.undo_ref, intent.undo_commit, edited_ref)


def _look(site: Site, intent: Intent, length: int) -> tuple[dict[str, Entry | None], tuple[str, ...]]:
    """What stands at the paths of the restore, and those where it is neither what was there nor what is to be."""
    seen: dict[str, Entry | None] = {}
    for step in intent.plan.steps:
        try:
            seen[step.path] = look_at(site, step.path, length)
        except Odd:
            seen[step.path] = None  # it is met again, and left
        except Moving:
            raise TreeFailed(f"{step.path}: {CHANGING}") from None
    return seen, tuple(step.path for step in intent.plan.steps if seen[step.path] not in (None, step.was, step.to))


def _set_aside(site: Site, intent: Intent, edited: tuple[str, ...], at: datetime, length: int) -> str:
    ref = undo_ref(intent.slug, intent.scope_id, intent.trial, "edited")
    note = Note("edited during the restore of", intent.slug, intent.scope_id, intent.trial, (edited,))
    parents = [earlier.commit for earlier in read_refs(site, (ref,)).values()]
    store_files(site, edited, (), length, Tip(ref, render_note(note), at, parents))
    return ref


def finish_restores(site: Site, at: datetime, *, others: Others | None = None) -> tuple[Finished, ...]:
    """Finish every restore that a death interrupted, in whatever worktree; one whose process lives is left to it.

    `others`: whether a live order of another scope may write the path by now. To be called at a start, before anything
    measures or compares. Raises TreeFailed where git itself fails, FsyncFailed.
    """
    with told():
        return tuple(done for intent in list_intents(site) if (done := _finish_one(site, intent, at, others)))


def _finish_one(site: Site, listed: Intent, at: datetime, others: Others | None) -> Finished | None:
    slug, scope_id = listed.slug, listed.scope_id
    with lock_scope(site, slug, scope_id, patience_s=PATIENCE_S) as is_ours:
        intent = read_intent(site, slug, scope_id) if is_ours else None
        if intent is None:
            return None
        name = (slug, scope_id, intent.trial)
        own = _site_of(site, intent)
        if own is None:
            forget_intent(site, slug, scope_id)
            return Finished(*name, None, f"its worktree {intent.top} is gone")
        kept = read_refs(site, (kept_ref(slug, scope_id),))
        if [found.commit for found in kept.values()] != [intent.kept] * bool(intent.kept):
            forget_intent(site, slug, scope_id)
            return Finished(*name, None, "another tree of the scope was kept since")
        try:
            return Finished(*name, finish(own, _narrowed(own, intent, others), at), "")
        except TreeFailed as error:
            return Finished(*name, None, str(error))


def _site_of(site: Site, intent: Intent) -> Site | None:
    try:
        own = find_site(Path(intent.top))
    except FileNotFoundError:
        return None
    return own if own is not None and os.fspath(own.top) == intent.top and own.common == site.common else None


def _narrowed(site: Site, intent: Intent, others: Others | None) -> Intent:
    """The restore without the paths that have become another's since."""
    nested = Nested(site)
    left: dict[str, str] = dict(intent.plan.left)
    steps: list[Step] = []
    for step in intent.plan.steps:
        if others is not None and others(intent.slug, intent.scope_id, step.path):
            left[step.path] = OTHERS
        elif nested.above(step.path):
            left[step.path] = NESTED
        else:
            steps.append(step)
    return intent._replace(plan=intent.plan._replace(steps=tuple(steps), left=left))
