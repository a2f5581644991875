"""The daemon's reconciler on a folder, driven by hand with a clock of its own: the fast way to replay a case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from daemon.log import Log
from daemon.reconciler import Reconciler
from daemon.scan import scan
from parsers.settings import Settings
from reducers.run import Attestation
from tests.corpus.explain import Outcome
from tests.corpus.footprint import Footprint, footprint
from tests.corpus.logical_state import counts
from tests.corpus.real_daemon import land
from tests.corpus.replay_cases import MEMORY, files_below, load_case, write_files

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class InProcess:
    """A reconciler that has settled what lay in the folder when it began."""

    def __init__(self, root: Path, attestation: Attestation) -> None:
        self.root = root
        self._monotonic = 0.0
        (root / ".shapeup").mkdir(parents=True, exist_ok=True)
        settings = Settings(ingest_attestation=attestation)
        log = Log(root / ".shapeup", lambda: NOW)
        self.reconciler = Reconciler(root, settings, log, now=lambda: NOW, monotonic=lambda: self._monotonic)
        self.mark(scan(root))

    def mark(self, paths: Iterable[str]) -> None:
        """Mark the paths and settle until nothing is left to do; waiting only moves our own clock."""
        self.reconciler.mark(paths)
        while (wait_s := self.reconciler.due_s()) is not None:
            self._monotonic += wait_s
            self.reconciler.settle()

    def drop(self, path: str, data: bytes) -> Outcome:
        """Let a result land and settle it."""
        land(self.root, path, data)
        self.mark([path])
        return self.outcome(path)

    def outcome(self, path: str) -> Outcome:
        for run in self.reconciler.runs():
            if path in run.results:
                settled = run.results[path]
                return Outcome(settled.outcome, frozenset(fault.code for fault in settled.faults))
        return Outcome("unseen", frozenset())

    def close(self) -> None:
        self.reconciler.close()


class Replayed(NamedTuple):
    """A case replayed one by one: what came of each step, and the orders that were not admitted."""

    outcomes: tuple[Outcome, ...]
    states: tuple[Mapping[str, bytes], ...]
    footprints: tuple[Footprint, ...]
    refused_orders: frozenset[str]


@cache
def replay(folder: Path, *, checked: bool) -> Replayed:
    """Drop the case's results one by one; a step without a file drops nothing."""
    case = load_case(folder)
    outcomes, states, footprints = [], [], []
    with TemporaryDirectory(prefix="replay-", dir=MEMORY) as name:
        root = Path(name)
        write_files(root, case.before)
        daemon = InProcess(root, "require" if checked else "off")
        for step in case.checked if checked else case.steps:
            data = case.results.get(step.path)
            outcomes.append(Outcome("", frozenset()) if data is None else daemon.drop(step.path, data))
            states.append({path: content for path, content in files_below(root).items() if counts(path)})
            footprints.append(footprint(root))
        daemon.close()
        rejected = root.glob(".shapeup/*/rejections/order-*.json")
        refused = frozenset(f".shapeup/{p.parts[-3]}/orders/{p.name.removeprefix('order-')}" for p in rejected)
    return Replayed(tuple(outcomes), tuple(states), tuple(footprints), refused)
