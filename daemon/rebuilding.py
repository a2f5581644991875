"""Looks at every run of a repository and tells what a rebuild would change, without touching anything. Source: ruling D2."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from daemon.disk import DiskTree
from daemon.journal import Journal
from parsers.addresses import SLUG
from parsers.layout import LOCAL_ROOT, NOT_A_SLUG
from reducers.rebuild import Repair, rebuild_run


def slugs_of(root: Path) -> tuple[str, ...]:
    """The features that have LOCAL state."""
    return tuple(name for name in DiskTree(root).list(LOCAL_ROOT) if SLUG.match(name) and name not in NOT_A_SLUG)


def verify_all(root: Path) -> tuple[Repair, ...]:
    """What would change, over all runs; nothing is written."""
    tree = DiskTree(root)
    repairs: list[Repair] = []
    for slug in slugs_of(root):
        repairs += rebuild_run(tree, slug, Journal(root, slug).entries(heal=False))
    return tuple(repairs)


def repair_rows(repairs: Iterable[Repair]) -> list[dict[str, object]]:
    """{path, was_bytes, now_bytes}: `was_bytes` None where the file is missing."""
    return [
        {
            "path": repair.path,
            "was_bytes": None if repair.was is None else len(repair.was),
            "now_bytes": len(repair.now),
        }
        for repair in repairs
    ]
