"""Files on their way: an unparsable or missing one is judged once it has stayed so for 500 ms. Source: design §3, C12, targets A."""

from __future__ import annotations

from datetime import datetime

from daemon.scan import Fingerprint
from parsers.faults import Fault

SETTLE_S = 0.5

# What a file that is still being written can look like; a wrong shape is no such thing, its JSON is complete.
UNFINISHED = frozenset({"E-JSON", "E-ENCODING"})


class Settling:
    """Files that could not be parsed, or were not there, and may still be on their way."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[Fingerprint | None, float]] = {}

    def is_half_written(
        self, path: str, stamp: Fingerprint | None, fault: Fault, now: datetime, monotonic: float
    ) -> bool:
        """Whether to wait with a refusal; the file then counts as due again 500 ms after it last changed."""
        if fault.code not in UNFINISHED:
            return False
        seen, since = self._since.get(path, (None, monotonic))
        if seen != stamp:
            since = monotonic
            # A file that lay there unchanged before we came has had its time already.
            age_s = now.timestamp() - stamp.mtime_ns / 1e9 if stamp else 0.0
            if path not in self._since and age_s >= SETTLE_S:
                return False
        if monotonic - since >= SETTLE_S:
            return False
        self._since[path] = (stamp, since)
        return True

    def note_absent(self, path: str, monotonic: float) -> None:
        """The file is gone; it counts as gone once it has been for 500 ms: editors and git put files back."""
        seen, _ = self._since.get(path, (None, monotonic))
        if path not in self._since or seen is not None:
            self._since[path] = (None, monotonic)

    def is_waiting(self, path: str) -> bool:
        """Whether the file is on its way."""
        return path in self._since

    def forget(self, path: str) -> None:
        """The file has been dealt with: it parses, was refused, or is gone for good."""
        self._since.pop(path, None)

    def due(self, monotonic: float) -> list[str]:
        """Files whose time is up."""
        return [path for path, (_, since) in self._since.items() if monotonic - since >= SETTLE_S]

    def waits_since(self, before: float) -> bool:
        """Whether a file has been waiting since that moment or longer."""
        return any(since <= before for _, since in self._since.values())

    @property
    def due_at(self) -> float | None:
        """When the first of them is due; None when nothing waits."""
        return min((since + SETTLE_S for _, since in self._since.values()), default=None)
