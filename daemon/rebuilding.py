"""Looks at every run of a repository and tells what a rebuild would change, without touching anything. Source: ruling D2."""

from __future__ import annotations

from pathlib import Path

from daemon.disk import DiskTree
from daemon.journal import Journal
from parsers.addresses import SLUG
from parsers.faults import Fault, render_fault
from parsers.layout import LOCAL_ROOT, NOT_A_SLUG, folder_of, path_of
from parsers.ledgers import parse_ingest_rows
from parsers.tree import Unreadable
from reducers.rebuild import Repair, rebuild_run


def slugs_of(root: Path) -> tuple[str, ...]:
    """The features that have LOCAL state."""
    return tuple(name for name in DiskTree(root).list(LOCAL_ROOT) if SLUG.match(name) and name not in NOT_A_SLUG)


def verify_all(root: Path, *, write_index: bool) -> tuple[tuple[Repair, ...], tuple[Fault, ...]]:
    """What would change over all runs, and what no rebuild can know; nothing is written."""
    tree = DiskTree(root)
    repairs: list[Repair] = []
    faults: list[Fault] = []
    for slug in slugs_of(root):
        journal = Journal(root, slug)
        entries = journal.entries(heal=False)
        try:
            repairs += rebuild_run(tree, slug, entries, write_index=write_index)
        except Unreadable as stop:
            faults.append(stop.fault)
        faults += journal.faults or _gone(tree, slug, has_entries=bool(entries))
    return tuple(repairs), tuple(faults)


def _gone(tree: DiskTree, slug: str, *, has_entries: bool) -> tuple[Fault, ...]:
    """A record of applied results with no journal beside it: somebody removed the journal."""
    record = path_of("ingest-record", slug)
    if has_entries or not parse_ingest_rows(tree.read(record) or b""):
        return ()
    what = f"there is no journal, though {record} tells of results"
    why = "what the journal does not say, no rebuild can bring back"
    fix = "put the journal folder back from a backup; results that land from now on are journaled anew"
    return (Fault("E-JOURNAL", folder_of("journal", slug), what, why, fix),)


def rebuild_document(root: Path, made: tuple[Repair, ...] | None, *, write_index: bool) -> dict[str, object]:
    """{repairs, damage}: `made` None looks at what would change; `damage` is what a rebuild cannot know, as printed."""
    found, faults = verify_all(root, write_index=write_index)
    repairs = [
        {
            "path": repair.path,
            "was_bytes": None if repair.was is None else len(repair.was),
            "now_bytes": len(repair.now),
        }
        for repair in (found if made is None else made)
    ]
    return {"repairs": repairs, "damage": [render_fault(fault) for fault in faults]}
