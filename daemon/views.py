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
from parsers.layout import path_of, stem_at
from parsers.tasks import Task
from parsers.times import render_time
from parsers.tree import Unreadable
from reducers.board import INDEX_BASE, derive_index, needs_base, standing_index

MAX_NAME_BYTES = 200


class BoardView:
    """The board index of one run. Keeps the parsed index, so that one changed task costs one row, not the whole table."""

    def __init__(self) -> None:
        self._index: BoardIndex | None = None
        self._stamp: Fingerprint | None = None
        self._unkept: bytes | None = None  # an index that is not our last write: its text may be a planner's

    def derive(self, state: RunState, changed: Iterable[Task] | None, *, create: bool) -> bool:
        """Bring the index in step; `changed` None means every task. Whether it was written. Raises Unreadable."""
        path = path_of("board-index", state.slug)
        stamp = state.disk.stamp(path)
        is_remade = False  # whether it goes on from the kept text instead of what stands there
        if stamp is None or self._index is None or stamp != self._stamp:
            self._unkept = state.disk.read(path)
            data = standing_index(self._unkept, self._base(state))
            if self._unkept is None and not (create and len(state.tasks)):
                return False
            is_remade = data is not self._unkept
            if is_remade:
                self._unkept = None  # what stands there is gone or torn: nothing to keep
            self._index, self._stamp, changed = None if data is None else parse_index(data), stamp, None
        index = derive_index(self._index, state.slug, state.tasks, changed)
        if index is self._index and not is_remade:
            return False
        self._keep_base(state)
        state.store.write_view(path, render_index(index))
        state.remember_own(path)
        self._index, self._stamp = index, state.disk.stamp(path)
        return True

    def _base(self, state: RunState) -> bytes | None:
        return state.disk.read(path_of("journal", state.slug, INDEX_BASE))

    def _keep_base(self, state: RunState) -> None:
        """Before our first row goes into a planner's index, keep its text where a lost or torn index is made again from."""
        data, self._unkept = self._unkept, None
        if data is not None and needs_base(data, self._base(state)):
            state.store.write_view(path_of("journal", state.slug, INDEX_BASE), data, is_synced=True)


def write_rejection(
    state: RunState, kind: str, path: str, sha256: str, faults: tuple[Fault, ...], now: datetime
) -> bool:
    """Tell a refusal in `rejections/`; an equal one that stands there keeps its time. Whether it was written."""
    target = rejection_path(state.slug, kind, path)
    document: dict[str, Any] = {
        "at": render_time(now),
        "code": faults[0].code,
        "kind": kind,
        "path": path,
        "sha256": sha256,
        "errors": [fault_row(fault) for fault in faults],
    }
    if target in state.rejections and _stands(state, target, document):
        return False
    try:
        state.store.write_view(target, _render(document))
    except Unreadable as stop:
        state.store.tell_barred(stop)  # the log has the refusal all the same
        return False
    state.rejections.add(target)
    return True


def _render(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _stands(state: RunState, target: str, document: dict[str, Any]) -> bool:
    """Whether the file tells this very refusal, whenever it was told."""
    try:
        data = state.disk.read(target) or b"null"
        told = json.loads(data)
    except (ValueError, RecursionError, Unreadable):
        return False
    return isinstance(told, dict) and data == _render({**document, "at": told.get("at")})


def remove_rejection(state: RunState, kind: str, path: str) -> None:
    """Take back a refusal whose fact was fixed or is gone."""
    target = rejection_path(state.slug, kind, path)
    if target in state.rejections:
        try:
            state.store.remove_view(target)
        except Unreadable as stop:
            state.store.tell_barred(stop)
        state.rejections.discard(target)


def rejection_path(slug: str, kind: str, path: str) -> str:
    """`rejections/<kind>-<stem>.json`; a stem too long for a file name is cut and told apart by its hash."""
    stem = stem_at(path)
    if len(stem.encode("utf-8", "surrogateescape")) > MAX_NAME_BYTES:
        digest = hashlib.sha256(stem.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        stem = f"{stem[:40]}-{digest}"
    return path_of("rejection", slug, f"{kind}-{stem}")
