"""The runs as their files stand, for `status` while no daemon lives. Source: ruling H8.

A look, not a judgement: an order counts as open when no result lies beside it. Which orders are live the daemon knows.
"""

from __future__ import annotations

import re
from pathlib import Path

from parsers.addresses import SLUG, parse_address
from parsers.layout import LOCAL_ROOT, NOT_A_SLUG, folder_of, path_of
from parsers.receipts import parse_receipt

_STATUS = re.compile(rb"^status:[ \t]*(\S*)", re.MULTILINE)
_HEAD_BYTES = 1 << 16
_RECEIPT_BYTES = 1 << 20


def runs_on_disk(root: Path) -> list[dict[str, object]]:
    """One {slug, run_id, status, round, live_orders} for each feature folder that holds a receipt, orders or results."""
    local = root / LOCAL_ROOT
    if not local.is_dir():
        return []
    names = sorted(path.name for path in local.iterdir() if path.is_dir() and not path.is_symlink())
    found = (_run(root, name) for name in names if SLUG.match(name) and name not in NOT_A_SLUG)
    return [run for run in found if run is not None]


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
