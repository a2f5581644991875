"""Tells of T0 artifacts that are not what their trial row says: they are immutable, and verdicts rest on them. Source: design §3 "Tampering", R-21, W-35.

Nothing is derived from a changed artifact: for the hill it is red, and a verdict that cites it is refused (R-18).
"""

from __future__ import annotations

from collections.abc import Iterable

from daemon.log import Log
from daemon.run_state import RunState
from parsers.facts import sha256_of
from parsers.layout import folder_of
from parsers.tree import Unreadable
from parsers.trials import Trial


class EvidenceWatch:
    """The artifacts of one run. Each state of one is told once."""

    def __init__(self, state: RunState, log: Log) -> None:
        self._state = state
        self._log = log
        self._told: dict[str, str | None] = {}

    def look(self, trials: Iterable[Trial]) -> None:
        """Hold the artifacts that these rows name against the hashes in them."""
        folder = folder_of("t0-verdict", self._state.slug)
        for trial in trials:
            name = (trial.artifact or "").rpartition("/")[2]
            if not name or trial.sha256 is None:
                continue
            path = f"{folder}/{name}"
            found = self._hash(path)
            if found != trial.sha256 and (path not in self._told or self._told[path] != found):
                self._tell(path, trial, found)
            self._told[path] = found

    def _hash(self, path: str) -> str | None:
        try:
            data = self._state.disk.read(path)
        except Unreadable:
            return None
        return None if data is None else sha256_of(data)

    def _tell(self, path: str, trial: Trial, found: str | None) -> None:
        what = "it is gone" if found is None else "it was changed after it was written"
        note = f"{what}; {trial.scope_id} counts as red until a new attempt is measured, or the file is back as it was"
        self._log.write("artifact.tampered", level="warn", slug=self._state.slug, subject=path, note=note)
