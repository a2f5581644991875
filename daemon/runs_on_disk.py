"""The runs as their files stand, for `status` while no daemon lives. Source: ruling H8.

A look, not a judgement: an order counts as open when no result lies beside it. Which orders are live the daemon knows.
"""

from __future__ import annotations

import re
from pathlib import Path

from daemon.boot_clock import read_clocks
from daemon.clock_on_disk import is_run_open, run_document
from daemon.disk import DiskTree
from parsers.addresses import SLUG, parse_address
from parsers.layout import LOCAL_ROOT, NOT_A_SLUG, folder_of, path_of
from parsers.receipts import parse_receipt
from parsers.tree import Tree

_STATUS = re.compile(rb"^status:[ \t]*(\S*)", re.MULTILINE)
_HEAD_BYTES = 1 << 16
_RECEIPT_BYTES = 1 << 20


def slugs_on_disk(tree: Tree) -> tuple[str, ...]:
    """The features that have a folder in the LOCAL tree."""
    return tuple(name for name in tree.list(LOCAL_ROOT) if SLUG.match(name) and name not in NOT_A_SLUG)


def runs_on_disk(root: Path) -> list[dict[str, object]]:
    """One {slug, run_id, status, round, live_orders, clock, trips, open_gates} for each feature folder that holds a receipt, orders or results."""
    tree, clocks = DiskTree(root), read_clocks()
    found = (_run(root, slug) for slug in slugs_on_disk(tree) if not (root / folder_of("receipt", slug)).is_symlink())
    return [{**run, **run_document(tree, str(run["slug"]), clocks)} for run in found if run is not None]


def _run(root: Path, slug: str) -> dict[str, object] | None:
    receipt = _head(root / path_of("receipt", slug), _RECEIPT_BYTES)
    orders = _stems(root / folder_of("order", slug))
    answered = _stems(root / folder_of("result", slug))
    if receipt is None and not orders and not answered:
        return None
    rounds = [address.round for stem in orders if (address := parse_address(f"{slug}/{stem}")).round is not None]
    status = _STATUS.search(_head(root / path_of("harness-run", slug), _HEAD_BYTES) or b"")
    return {
        "slug": slug,
        "run_id": None if receipt is None else parse_receipt(receipt, path_of("receipt", slug)).run_id,
        "status": status[1].decode("utf-8", "replace") if status else None,
        "round": max(rounds, default=None),
        "live_orders": [f"{slug}/{stem}" for stem in sorted(orders - answered)],
    }


def _stems(folder: Path) -> set[str]:
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return set()
    return {name.removesuffix(".json") for name in names if name.endswith(".json") and not name.startswith(".")}


def _head(path: Path, size_bytes: int) -> bytes | None:
    """The first bytes of a plain file; None for anything else."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return file.read(size_bytes)
    except OSError:
        return None


def open_runs(root: Path, named: str | None = None) -> tuple[str, ...]:
    """The features with a receipt whose run goes on, or the named one whether it does or not."""
    tree = DiskTree(root)
    slugs = slugs_on_disk(tree) if named is None else (named,) if SLUG.match(named) and named not in NOT_A_SLUG else ()
    there = tuple(slug for slug in slugs if tree.stamp(path_of("receipt", slug)) is not None)
    return tuple(slug for slug in there if named is not None or is_run_open(tree, slug)) or there
