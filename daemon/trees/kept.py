"""Keeps the tree of an attempt, brings it back, and undoes that. Source: protocol §6.5, W-50..W-54, W-68, rulings G1, G2, G9.

A kept tree holds the scope's own files and nothing else: what a restore may change, as its bytes lay on disk. Never the
whole HEAD: that belongs to people, moves on by itself, and would only be more to leave alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from daemon.trees.adopting import adopt_tree
from daemon.trees.finishing import Restored, finish
from daemon.trees.intents import Intent, forget_intent, write_intent
from daemon.trees.listing import (
    IGNORE_FILE,
    IGNORED,
    NESTED,
    Listing,
    Nested,
    id_length,
    ignored_by,
    list_files,
    read_tree,
)
from daemon.trees.looking import Found, Odd, look_at, store_files
from daemon.trees.objects import Area, Entry, Note, render_note
from daemon.trees.refs import Kept, read_kept, read_refs
from daemon.trees.site import Site, TreeFailed, kept_ref, lock_scope, told, undo_ref
from daemon.trees.steps import UNKNOWN, UNTRACKED, Plan, domain_of, plan_steps
from daemon.trees.store import Moving, Tip

IsOthers = Callable[[str], bool]


class Scope(NamedTuple):
    """One scope of one feature, and the globs of its `allowed_file_substrate`."""

    slug: str
    scope_id: str
    allowed: tuple[str, ...]


class Stored(NamedTuple):
    """A tree just kept: under which ref, as which commit; how many files. `left`: what is no part of it, and why."""

    ref: str
    commit: str
    files: int
    left: tuple[tuple[str, str], ...]


def keep(site: Site, scope: Scope, trial: int, at: datetime, *, run_id: str | None = None) -> Stored:
    """Keep the scope's files as they are now. Index, stash, HEAD, branches and worktree stay as they are. Raises TreeFailed."""
    ref, area = kept_ref(scope.slug, scope.scope_id), Area((scope.allowed,))
    with told(), lock_scope(site, scope.slug, scope.scope_id):
        known = read_kept(site, scope.slug, scope.scope_id)
        listing = list_files(site, area)
        note = Note("kept", scope.slug, scope.scope_id, trial, area.areas, run_id=run_id)
        old = read_tree(site, known.commit) if known else {}
        tip = Tip(ref, render_note(note), at, ())
        found, commit = store_files(site, listing.files, _blobs(old), id_length(site), tip)
        # A restore that a death interrupted is void now: what stands there was measured since.
        forget_intent(site, scope.slug, scope.scope_id)
        return Stored(ref, commit, len(found.entries), tuple(sorted({**listing.left, **found.odd}.items())))


def find_kept(site: Site, slug: str, scope_id: str) -> Kept | None:
    """The scope's kept tree; None where none is kept. Raises TreeFailed."""
    with told():
        return read_kept(site, slug, scope_id)


def restore(site: Site, scope: Scope, trial: int, at: datetime, *, is_others: IsOthers) -> Restored:
    """Make the scope's files its kept tree, exactly. `is_others`: whether another live order may write the path.

    What was there is stored before, under the trial's undo ref. Raises TreeFailed, nothing touched, where no tree is kept
    or the present state could not be stored; FsyncFailed where the disk did not confirm (finished at the next start).
    """
    with told(), lock_scope(site, scope.slug, scope.scope_id):
        kept = read_kept(site, scope.slug, scope.scope_id)
        if kept is None:
            raise TreeFailed(f"no tree of {scope.slug}/{scope.scope_id} is kept")
        if kept.note is None:
            kept = adopt_tree(site, kept, scope.slug, scope.scope_id, scope.allowed, at, id_length(site))
        ref = undo_ref(scope.slug, scope.scope_id, trial)
        return _bring_back(site, scope, kept, Aim(trial, at, is_others, ref, "before the restore of", kept.commit))


def undo(site: Site, slug: str, scope_id: str, trial: int, at: datetime, *, is_others: IsOthers) -> Restored:
    """Bring back what the restore of this trial replaced; what stands there now is stored under `undo/<trial>-undone`.

    Raises TreeFailed as `restore` does.
    """
    with told(), lock_scope(site, slug, scope_id):
        ref, kept_at = undo_ref(slug, scope_id, trial), kept_ref(slug, scope_id)
        found = read_refs(site, (ref, kept_at))
        stored = found.get(ref)
        if stored is None or stored.note is None or not stored.note.areas:
            raise TreeFailed(f"nothing is stored for trial {trial} of {slug}/{scope_id}")
        scope = Scope(slug, scope_id, stored.note.areas[0])
        kept = found[kept_at].commit if kept_at in found else ""
        own = undo_ref(slug, scope_id, trial, "undone")
        return _bring_back(site, scope, stored, Aim(trial, at, is_others, own, "before the undo of", kept))


class Aim(NamedTuple):
    """How one tree is brought back: for which trial, when, past whom; where what it replaces is stored, and as what."""

    trial: int
    at: datetime
    is_others: IsOthers
    ref: str
    kind: str
    kept: str


def _bring_back(site: Site, scope: Scope, stored: Kept, aim: Aim) -> Restored:
    now, length = Area((scope.allowed,)), id_length(site)
    listing, target = list_files(site, now), read_tree(site, stored.commit)
    domain, closed = domain_of(listing.files | target.keys(), now, stored.note, aim.is_others)
    areas = (now.areas[0], *(stored.note.areas if stored.note else ()))
    then_left = tuple(path for path, why in closed.items() if why != UNKNOWN)
    note = Note(aim.kind, scope.slug, scope.scope_id, aim.trial, tuple(dict.fromkeys(areas)), then_left)
    nested = Nested(site)
    inner = {path: NESTED for path in domain if nested.above(path)}
    parents = [undo.commit for undo in read_refs(site, (aim.ref,)).values()]  # one of this number stays within reach
    tip = Tip(aim.ref, render_note(note), aim.at, parents)
    present, commit = store_files(site, sorted({*domain} - inner.keys()), _blobs(target), length, tip)
    plan = _plan(site, domain, present, target, stored, inner, listing)
    left = {**listing.left, **_differing(site, closed, target, length), **plan.left}
    intent = Intent(
        os.fspath(site.top),
        scope.slug,
        scope.scope_id,
        aim.trial,
        aim.ref,
        commit,
        aim.kept,
        plan._replace(left=left, folders=tuple(filter(now.holds_folder, plan.folders))),
    )
    if plan.steps:
        write_intent(site, intent)
    return finish(site, intent, aim.at)


def _plan(
    site: Site,
    domain: tuple[str, ...],
    present: Found,
    target: Mapping[str, Entry],
    stored: Kept,
    inner: Mapping[str, str],
    listing: Listing,
) -> Plan:
    reasons = {**inner, **present.odd}
    if stored.note is not None and stored.note.tracked_only:
        reasons |= {path: UNTRACKED for path in domain if path not in target and path not in listing.tracked}
    plan = plan_steps(domain, present.entries, target, reasons)
    rules = {step.path: step.to for step in plan.steps if step.path.rpartition("/")[2] == IGNORE_FILE}
    gone = [step.path for step in plan.steps if step.to is None and step.path not in listing.tracked]
    if rules and gone:  # what the rules that are to stand hide is no part of any tree, though today's do not hide it
        hidden = ignored_by(site, gone, rules)
        plan = plan_steps(domain, present.entries, target, {**reasons, **dict.fromkeys(hidden, IGNORED)})
    return plan


def _differing(site: Site, closed: Mapping[str, str], target: Mapping[str, Entry], length: int) -> dict[str, str]:
    """Those of the closed paths that would otherwise be changed."""
    found = {}
    for path, why in closed.items():
        try:
            stays = look_at(site, path, length) == target.get(path)
        except (Odd, Moving, OSError):
            stays = False
        if not stays:
            found[path] = why
    return found


def _blobs(entries: Mapping[str, Entry]) -> frozenset[str]:
    return frozenset(entry.blob for entry in entries.values())
