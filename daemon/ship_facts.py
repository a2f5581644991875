"""Reads what the ship report says from the disk and from git; nothing is written. Source: protocol §5.8, §5.9, D-1."""

from __future__ import annotations

from datetime import datetime

from daemon.disk import DiskTree
from daemon.leftovers import read_additions
from daemon.place import Place
from daemon.read_facts import read_bytes, read_run_records
from parsers.layout import LOCAL_ROOT, SHARED_ROOT, path_of
from parsers.markdown import decode
from parsers.round_ledger import Decision, parse_round_ledger
from parsers.times import render_date
from reducers.run_records import RunRecords
from reducers.ship.facts import Documents, ShipFacts, ship_facts
from reducers.ship.leftovers import find_leftovers
from reducers.task_index import TaskIndex


def read_ship_facts(
    place: Place, slug: str, now: datetime, verdict: str | None = None, qa: str | None = None
) -> tuple[ShipFacts, RunRecords] | None:
    """The facts of a report written now, with the records they come from; None where there is no run."""
    tree = DiskTree(place.root)
    records = read_run_records(tree, slug)
    if records is None:
        return None
    leftovers = find_leftovers(read_additions(tree, records, is_git=place.git_dir is not None))
    tasks = sorted(TaskIndex.read(tree, slug), key=lambda task: (task.id, task.path))
    facts = ship_facts(records, render_date(now), tasks, _documents(tree, slug), leftovers, verdict, qa)
    return facts, records


def _documents(tree: DiskTree, slug: str) -> Documents:
    hunt = read_bytes(tree, path_of("qa", slug, "hunt-report"))
    return Documents(
        evaluation=decode(read_bytes(tree, path_of("evaluation", slug, f"EVAL-FEATURE-{slug}")) or b""),
        hunt=None if hunt is None else decode(hunt),
        discoveries=decode(read_bytes(tree, path_of("discovery-ledger", slug)) or b""),
        decisions=_decisions(tree, slug),
    )


def _decisions(tree: DiskTree, slug: str) -> tuple[Decision, ...]:
    """The rows of the committed round ledger, then those of the local one that it lacks. Source: D-1."""
    shared = path_of("round-ledger", slug)
    local = LOCAL_ROOT + shared.removeprefix(SHARED_ROOT)
    rows = (row.decision for path in (shared, local) for row in parse_round_ledger(read_bytes(tree, path) or b"").rows)
    return tuple(dict.fromkeys(row for row in rows if row))
