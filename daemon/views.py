"""Derives the views of a run and writes them only where their bytes would differ: board index, rejections. Source: design §2."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from daemon.run_state import RunState
from daemon.scan import Fingerprint
from parsers.board import BoardIndex, parse_index, render_index
from parsers.faults import Fault, fault_row
from parsers.layout import path_of
from parsers.tasks import Task
from parsers.tree import Unreadable
from reducers.board import derive_index
from reducers.records import iso

MAX_NAME_BYTES = 200


class BoardView:
    """The board index of one run. Keeps the parsed index, so that one changed task costs one row, not the whole table."""

    def __init__(self) -> None:
        self._index: BoardIndex | None = None
        self._stamp: Fingerprint | None = None

    def derive(self, state: RunState, changed: Iterable[Task] | None, *, create: bool) -> bool:
        """Bring the index in step; `changed` None means every task. Whether it was written. Raises Unreadable."""
        path = path_of("board-index", state.slug)
        stamp = state.disk.stamp(path)
        if stamp is None or self._index is None or stamp != self._stamp:
            data = state.disk.read(path)
            if data is None and not (create and len(state.tasks)):
                return False
            self._index, self._stamp, changed = None if data is None else parse_index(data), stamp, None
        index = derive_index(self._index, state.slug, state.tasks, changed)
        if index is self._index:
            return False
        state.store.write_view(path, render_index(index))
        state.remember_own(path)
        self._index, self._stamp = index, state.disk.stamp(path)
        return True


def write_rejection(
    state: RunState, kind: str, path: str, sha256: str, faults: tuple[Fault, ...], now: datetime
) -> bool:
    """Tell a refusal in `rejections/`; an equal one that stands there keeps its time. Whether it was written."""
    target = rejection_path(state.slug, kind, path)
    document: dict[str, Any] = {
        "at": iso(now),
        "code": faults[0].code,
        "kind": kind,
        "path": path,
        "sha256": sha256,
        "errors": [fault_row(fault) for fault in faults],
    }
    if target in state.rejections and _says(state, target) == {**document, "at": None}:
        return False
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    state.store.write_view(target, text.encode("utf-8", "replace"))
    state.rejections.add(target)
    return True


def _says(state: RunState, target: str) -> dict[str, Any] | None:
    try:
        value = json.loads(state.disk.read(target) or b"null")
    except (ValueError, Unreadable):
        return None
    return {**value, "at": None} if isinstance(value, dict) else None


def remove_rejection(state: RunState, kind: str, path: str) -> None:
    """Take back a refusal whose fact was fixed or is gone."""
    target = rejection_path(state.slug, kind, path)
    if target in state.rejections:
        state.store.remove_view(target)
        state.rejections.discard(target)


def rejection_path(slug: str, kind: str, path: str) -> str:
    """`rejections/<kind>-<stem>.json`; a stem too long for a file name is cut and told apart by its hash."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".json")
    if len(stem.encode("utf-8", "surrogateescape")) > MAX_NAME_BYTES:
        digest = hashlib.sha256(stem.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        stem = f"{stem[:40]}-{digest}"
    return path_of("rejection", slug, f"{kind}-{stem}")
