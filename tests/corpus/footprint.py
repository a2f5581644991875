"""What an ingest leaves behind, told so that two ways of running can be compared: the state, the record, the refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.corpus.logical_state import logical_state
from tests.corpus.replay_cases import files_below


class Footprint(NamedTuple):
    """The logical state by path, the ingest record's (order_id, outcome, code) in order, and the code of each rejection."""

    state: Mapping[str, object]
    record: tuple[tuple[str, str, str | None], ...]
    rejections: Mapping[str, str]


def footprint(root: Path) -> Footprint:
    files = files_below(root)
    record = []
    rejections = {}
    for path, data in sorted(files.items()):
        if path.endswith("/receipts/ingest.jsonl"):
            rows = [json.loads(line) for line in data.splitlines()]
            record += [(row["order_id"], row["outcome"], row.get("code")) for row in rows]
        elif "/rejections/" in path:
            rejections[path] = json.loads(data)["code"]
    return Footprint(logical_state(files), tuple(record), rejections)


def whole_tree(root: Path) -> dict[str, bytes]:
    """Every file but those that tell of the daemon itself: its log, its address, its locks, how much of a journal is on disk."""
    own = re.compile(
        r"\.shapeup/(shapeupd\.log.*|daemon\.(json|lock)|[^/]+/journal/checkpoint\.json|[^/]+/\.ingest\.lock/.*)"
    )
    return {path: data for path, data in files_below(root).items() if not own.fullmatch(path)}


def changed_paths(before: Mapping[str, bytes], now: Mapping[str, bytes]) -> list[str]:
    """Paths that were added, removed or have other bytes."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
