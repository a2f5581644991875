"""The logical state of a tree: everything two ingests of the same results must agree on. Source: ruling C10.

Dates are masked, times of legs and verdict rows are left out, legs are a set. Every other file counts byte for byte, so a
stray write anywhere in the tree is a difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

Logical = Mapping[str, object]

# Files that shapeupd keeps beside the reference's: no part of the state that both derive. The lock is held now and then, even
# where nothing is written. `conflicts/` is not among them: nothing here may end in one.
OWN_FILES = re.compile(
    r"\.shapeup/(shapeupd\.log[.0-9]*|shapeupd\.toml|daemon\.(json|lock)|policy\.(json|paths)"
    r"|[^/]+/(receipts/ingest\.jsonl|(rejections|journal|\.ingest\.lock)/.*|clock\.json|breakers\.jsonl|gate-h\.(jsonl|md)"
    r"|orders/hammer-(outer|inner|deadline)[^/]*\.json|hill\.jsonl|seesaw/registry\.json|receipts/graders\.jsonl))"
    r"|shapeup/[^/]+/(hill/[^/]+\.yml|hill-chart\.md)|\.shapeupd\.toml"
)
_RESULT = re.compile(r"\.shapeup/[^/]+/results/[^/]+")
_DATE = r"(?:\d{4}-\d{2}-\d{2}|<DATE>)"
_MASKS = (
    (re.compile(rf"^(completed_at|eval_at): {_DATE}(?=\r?$)", re.M), r"\1: <DATE>"),
    (re.compile(rf"^(## Execution Log — ){_DATE}( \()", re.M), r"\1<DATE>\2"),
    (re.compile(rf"^(## Discovered — .* \(){_DATE}(\)\r?)$", re.M), r"\1<DATE>\2"),
)
_LEG_TIMES = frozenset({"ingested_at", "duration_ms"})


def logical_state(files: Mapping[str, bytes]) -> dict[str, object]:
    """What counts of these files, by path."""
    return {path: _viewer(path)(data) for path, data in files.items() if counts(path)}


def counts(path: str) -> bool:
    return not OWN_FILES.fullmatch(path) and not _RESULT.fullmatch(path)


def is_index(path: str) -> bool:
    return path.endswith("/tasks/_index.md")


def is_task(path: str) -> bool:
    name = PurePosixPath(path)
    return name.parent.name == "tasks" and name.suffix == ".md" and name.name.startswith("TASK-")


def is_legs(path: str) -> bool:
    return path.endswith("/legs.jsonl")


def is_verdicts(path: str) -> bool:
    return bool(re.search(r"/evaluation/\.verdicts-[^/]*\.jsonl\Z", path))


def _viewer(path: str) -> Callable[[bytes], object]:
    if is_legs(path):
        return lambda data: sorted(rows_without(data, _LEG_TIMES))
    if is_verdicts(path):
        return lambda data: rows_without(data, frozenset({"at"}))
    if is_task(path) or path.endswith("discovery/ledger.md"):
        return masked
    return lambda data: data


def masked(data: bytes) -> str:
    """The text with the dates that ingest writes masked."""
    text = data.decode("utf-8", "surrogateescape")
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


def rows_without(data: bytes, keys: frozenset[str]) -> list[str]:
    """The rows of a JSON-lines file in one spelling, without these keys; what is no object stays as it stands."""
    rows = []
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict):
            rows.append(json.dumps({key: row[key] for key in sorted(row) if key not in keys}, ensure_ascii=False))
        elif line.strip():
            rows.append(line)
    return rows
