"""One attempt of a scope: measured, judged, its tree kept or restored, its evidence on disk. Source: protocol §6, W-48, W-54, rulings G1, G2, G5, G9.

Attempts of one scope follow one another; those of different scopes run side by side. What was measured is written down
first (`recovery.py`), then the artifact, then the tree, then the row: a death between them is made good by the next attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from daemon.disk import DiskTree
from daemon.run_orders import read_run_orders
from daemon.t0.contract import FoundContract
from daemon.t0.fixtures import Progress, Runner, measure_contract
from daemon.t0.graders import find_changed
from daemon.t0.ledger import append_row
from daemon.t0.neighbours import Neighbours, build_order_id, grants, read_neighbours
from daemon.t0.recovery import Pending, complete_attempt, forget, hold_scope, next_artifact, place_artifact, write_down
from daemon.trees.finishing import Finished, Restored, finish_restores
from daemon.trees.kept import Scope, keep, restore
from daemon.trees.site import Site, TreeFailed, find_site, kept_ref
from parsers.facts import sha256_of
from parsers.layout import path_of
from parsers.ledgers import render_row
from parsers.receipts import parse_receipt
from parsers.t0_verdict import Seesaw, T0Verdict
from parsers.times import render_time
from parsers.tree import Tree
from parsers.trials import Trial, parse_trials, trial_row
from reducers.ratchet import Outcome, judge_trial
from reducers.t0_judgement import ROW_DIGEST, Judgement, Measurement, judge, t0_verdict

NO_GIT = "no tree is kept: this is no git repository"


class Attempt(NamedTuple):
    """What is to be measured: the contract, where its code lies (`top`), where the records lie (`root`), and how."""

    root: Path
    top: Path
    found: FoundContract
    round: int
    attempt: int
    timeout_s: float
    now: Callable[[], datetime]
    with_seesaw: bool = True
    with_ratchet: bool = True
    registry: tuple[Tree, str] | None = None  # None: the run's own
    progress: Progress = lambda step, measured: None
    say: Callable[[str], None] = lambda text: None

    @property
    def scope_id(self) -> str:
        return self.found.contract.scope_id


class Scored(NamedTuple):
    """What an attempt came to. `trial` None: no row was written (--no-ratchet). `restored` None: nothing was put back.

    `tree_ref`: the ref of the kept tree, where the tree was kept or restored as the row says; else None. `notes` are for people.
    """

    path: str
    sha256: str
    verdict: T0Verdict
    seesaw: Seesaw
    changed_graders: tuple[str, ...]
    trial: Trial | None
    tree_ref: str | None = None
    restored: Restored | None = None
    notes: tuple[str, ...] = ()


def run_attempt(attempt: Attempt) -> Scored:
    """Measure the scope as it stands now, and do what follows. Raises Unreadable, OSError, FsyncFailed."""
    slug, scope_id = attempt.found.slug, attempt.scope_id
    site = find_site(attempt.top)
    with hold_scope(
        attempt.root, slug, scope_id, lambda: attempt.say(f"another t0 of {scope_id} runs; waiting for it")
    ):
        notes = _make_good(attempt, site)
        orders = read_run_orders(DiskTree(attempt.root), slug)
        order_id = build_order_id(slug, scope_id, attempt.round, attempt.attempt)
        contract = attempt.found.contract
        changed = find_changed(
            attempt.root, attempt.top, slug, order_id, contract, lambda path: grants(orders, order_id, contract, path)
        )
        registry = attempt.registry or (DiskTree(attempt.root), path_of("seesaw", slug))
        measurement = measure_contract(
            contract,
            Runner(attempt.top, attempt.timeout_s, attempt.progress),
            registry=registry if attempt.with_seesaw else None,
            changed_graders=changed,
        )
        return _record(attempt, site, measurement, notes)


def _make_good(attempt: Attempt, site: Site | None) -> tuple[str, ...]:
    """Finish what a death left half done: restores first, so that the tree that is measured is a whole one."""
    finished: tuple[Finished, ...] = ()
    if site is not None:
        neighbours = read_neighbours(attempt.root)
        try:
            finished = finish_restores(site, attempt.now(), others=neighbours.may_write)
        except TreeFailed as error:
            attempt.say(f"an interrupted restore could not be finished: {error}")
    made_good = complete_attempt(attempt.root, attempt.found.slug, attempt.scope_id, site, finished)
    return (made_good,) if made_good else ()


def _record(attempt: Attempt, site: Site | None, measurement: Measurement, notes: tuple[str, ...]) -> Scored:
    """Judge, and put the evidence on disk."""
    slug, judgement, at = attempt.found.slug, judge(measurement), attempt.now()
    receipt = DiskTree(attempt.root).read(path_of("receipt", slug))
    run_id = parse_receipt(receipt, path_of("receipt", slug)).run_id if receipt else None
    outcome = None
    if attempt.with_ratchet:
        rows = parse_trials(DiskTree(attempt.root).read(path_of("trials", slug)) or b"")
        crashed, is_void = judgement.crashed, judgement.is_void
        outcome = judge_trial(rows, attempt.scope_id, judgement.score, crashed=crashed, is_void=is_void)

    verdict = t0_verdict(
        measurement,
        judgement,
        scope_id=attempt.scope_id,
        round_=attempt.round,
        attempt=attempt.attempt,
        trial=next_artifact(attempt.root, slug, attempt.round, attempt.attempt),
        at=render_time(at),
        run_id=run_id,
    )
    pending = Pending(verdict, _trial(attempt, outcome, judgement, at, run_id) if outcome else None)
    write_down(attempt.root, slug, attempt.scope_id, pending)
    pending, path, data = place_artifact(attempt.root, slug, attempt.scope_id, pending)
    scored = Scored(
        path, sha256_of(data), pending.verdict, measurement.seesaw, measurement.changed_graders, None, notes=notes
    )
    if outcome is not None and pending.trial is not None:
        scored = _act(attempt, site, outcome, scored)
        trial = pending.trial._replace(tree_ref=scored.tree_ref)
        append_row(attempt.root, path_of("trials", slug), render_row(trial_row(trial)))
        scored = scored._replace(trial=trial)
    forget(attempt.root, slug, attempt.scope_id)
    return scored


def _trial(attempt: Attempt, outcome: Outcome, judgement: Judgement, at: datetime, run_id: str | None) -> Trial:
    """The row as far as it is known before the tree is touched; the artifact's name and hash follow."""
    return Trial(
        attempt.scope_id,
        outcome.decision.status,
        attempt.round,
        attempt.attempt,
        outcome.number,
        run_id,
        judgement.score,
        render_time(at),
        baseline_trial=outcome.baseline.trial if outcome.baseline else None,
        delta=outcome.delta,
        digest=judgement.discovered[:ROW_DIGEST],
    )


def _act(attempt: Attempt, site: Site | None, outcome: Outcome, scored: Scored) -> Scored:
    """Keep the tree or put the kept one back; what fails is said, and shows as a row without a tree."""
    if outcome.decision.action == "restore" and outcome.baseline is None:
        return scored._replace(notes=(*scored.notes, "nothing is restored: no tree was kept yet"))
    if site is None:
        return scored._replace(notes=(*scored.notes, NO_GIT))
    contract = attempt.found.contract
    scope = Scope(attempt.found.slug, contract.scope_id, contract.allowed)
    try:
        if outcome.decision.action == "keep":
            run_id = scored.verdict.run_id
            stored = keep(site, scope, outcome.number, attempt.now(), run_id=run_id)
            left = tuple(f"{path} is not part of the kept tree: {why}" for path, why in stored.left)
            return scored._replace(tree_ref=stored.ref, notes=(*scored.notes, *left))
        return _restored(attempt, site, scope, outcome.number, scored)
    except TreeFailed as error:
        word = "kept" if outcome.decision.action == "keep" else "restored"
        return scored._replace(notes=(*scored.notes, f"the tree is not {word}: {error}"))


def _restored(attempt: Attempt, site: Site, scope: Scope, number: int, scored: Scored) -> Scored:
    neighbours: Neighbours = read_neighbours(attempt.root)

    def is_others(path: str) -> bool:
        return neighbours.may_write(scope.slug, scope.scope_id, path)

    done = restore(site, scope, number, attempt.now(), is_others=is_others)
    return scored._replace(tree_ref=kept_ref(scope.slug, scope.scope_id) if done.is_whole else None, restored=done)
