"""Notices changes in the two trees: events as hints, rescans as the truth. Source: design §3, targets 1, 2, 11, 34.

The watcher supervises a listener, rescans, and says so when events cannot be trusted. It decides nothing: what may have
changed is handed on as a path. Spurious marks are fine, missed ones are not. Time is what the caller's ticks say.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from daemon.listener import OVERFLOW, Ailment, Heard, Listener, is_folder, silence_watchdog, warnings_silenced
from daemon.scan import (
    FOLDERS,
    NETWORK_FILESYSTEMS,
    Fingerprint,
    Known,
    Survey,
    filesystem_of,
    fingerprint,
    is_fact_path,
    survey,
)

POLL_S = 1.0  # never shorter: polling a big tree costs a core
CANARY_S = 2.0
UNARMED_S = 1.0  # a folder made a moment ago may not be armed yet
RETRY_S = 60.0
SWAP_S = 0.05  # between two re-armings because a tree came or went


class Backoff:
    """Lets three attempts within 10 s through at once, then spaces them 0.1 s doubling to 5 s until 10 s are calm."""

    def __init__(self) -> None:
        self._recent: list[float] = []
        self._pause_s = 0.0

    def is_calm(self, now: float) -> bool:
        return not self._recent or now - self._recent[-1] > 10

    def wait_s(self, now: float) -> float:
        """Seconds until the next attempt may be made; 0 when it may be made now."""
        if self.is_calm(now):
            self._recent, self._pause_s = [], 0.0
            return 0.0
        return max(0.0, self._recent[-1] + self._pause_s - now)

    def took(self, now: float) -> None:
        """An attempt was made."""
        self._recent = [at for at in self._recent if now - at <= 10] + [now]
        if len(self._recent) >= 3 or self._pause_s:
            self._pause_s = min(5.0, max(0.1, self._pause_s * 2))


class Watcher:
    """Marks every path below the two trees that may have changed since it was last seen.

    `mark(paths)` is called from any thread and must only enqueue. `notice(event, fields)` gets watch.overflow,
    watch.rescan (changes that no event told of) and watch.degraded. `wake()` asks for a `tick` at once. `counts(path)` says
    whether a change there that no event told of is worth a word: a log that is held open and appended to never tells.
    """

    def __init__(
        self,
        root: Path,
        mark: Callable[[Iterable[str]], None],
        notice: Callable[[str, dict[str, object]], None],
        *,
        rescan_s: float = 2.0,
        poll: Literal["auto", "on", "off"] = "auto",
        wake: Callable[[], None] = lambda: None,
        counts: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._root = os.path.abspath(root)
        self._mark = mark
        self._notice = notice
        self._rescan_s = rescan_s
        self._poll = poll
        self._wake = wake
        self._counts = counts
        self._turn = threading.RLock()  # one start, tick, rescan or stop at a time; never held by event threads
        self._count_lock = threading.Lock()
        self._known = Known()
        self._listener: Listener | None = None
        self._backoff = Backoff()
        self._reasons: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}
        self._unarmed: set[str] = set()
        self._unarmed_since: float | None = None
        self._canary = f".shapeup/.shapeupd-canary-{os.getpid()}"
        self._canary_state: Literal["none", "sent", "back"] = "none"
        self._canary_until: float | None = None
        self._canaries = 0  # that came back
        self._is_awaited = False
        self._next_rescan: float | None = None
        self._next_rearm: float | None = None
        self._armed_at = float("-inf")
        self._retry_at: float | None = None
        self.counters = dict.fromkeys(
            ("events", "rescans", "missed", "rearms", "overflows", "degraded", "unreadable", "warnings"), 0
        )

    @property
    def degraded(self) -> str | None:
        """Why changes are found by polling; None while events are trusted (or `watch.poll` is off)."""
        return None if self._poll == "off" else next(iter(self._reasons.values()), None)

    @property
    def alive(self) -> bool:
        """Whether every watching thread lives and watches what is there now. Polling counts as alive."""
        return self._listener is None or self._listener.ailment() is None

    def start(self) -> None:
        """Arm first, then scan, so that nothing falls between; marks every file found."""
        with self._turn:
            silence_watchdog()
            if self._poll == "on":
                self._degrade("set", "watch.poll is on")
            else:
                self._arm()
            self._look(everything=True, is_timed=False)

    def stop(self) -> None:
        """Let go of every watch and thread; safe to call twice."""
        with self._turn:
            if self._listener is not None:
                self._listener.close()
                self._listener = None

    def tick(self, now_monotonic: float) -> None:
        """Supervise, and rescan when it is time. To be called when `due_s` says so and after each `wake`."""
        with self._turn:
            now = now_monotonic
            if self._supervise(now):
                self._judge_canary(now)
                self._judge_unarmed(now)
                self._retry(now)
            if self._next_rescan is None:  # the first tick: start has just looked
                self._next_rescan = now + self._period_s
            elif now >= self._next_rescan:
                self.rescan()
                self._next_rescan = now + self._period_s
            self._next_rescan = min(self._next_rescan, now + self._period_s)

    def due_s(self, now_monotonic: float) -> float:
        """Seconds until the next tick is due, at most 1 so that a dead thread is noticed within a second."""
        due = (now_monotonic + 1.0, self._next_rescan, self._next_rearm)
        return max(0.0, min(at for at in due if at is not None) - now_monotonic)

    def rescan(self, *, is_timed: bool = True) -> set[str]:
        """Look at everything now; marks and returns what differs from the table of known fingerprints.

        `is_timed` False: somebody asked for it, so an event may still be on its way and nothing counts as missed.
        """
        with self._turn:
            return self._look(everything=False, is_timed=is_timed)

    def send_cookie(self) -> Callable[[], bool]:
        """Begin a round trip; the function says whether it worked. `wake` is called when the cookie comes back.

        Where no cookie can be sent or events are not trusted, the next look at everything takes its place.
        """
        with self._turn:
            canaries, rescans = self._canaries, self.counters["rescans"]
            self._is_awaited = True
            self._send_canary()
            is_sent = self._canary_state != "none"

        def came_back() -> bool:
            is_by_event = is_sent and self.degraded is None
            return self._canaries > canaries if is_by_event else self.counters["rescans"] > rescans

        return came_back

    def see(self, path: str, seen: Fingerprint | None = None) -> None:
        """The reconciler has handled this path, so a rescan need not mark it again.

        `seen` is the fingerprint taken before it read the file; without one the file is looked at now, which is right
        only for a file that the caller has just written itself.
        """
        if is_fact_path(path):
            self._known.see(path, seen or fingerprint(f"{self._root}/{path}"))

    @property
    def _period_s(self) -> float:
        return POLL_S if self.degraded else self._rescan_s

    # --- events (watchdog's threads) ----------------------------------------------------------------------------------

    def _on_event(self, heard: Heard) -> None:
        dirty: set[str] = set()
        for path in (heard.gone, heard.come):
            if path == self._canary:
                self._canary_state = "back"
                self._canary_came()
            elif path is None or path in FOLDERS or not is_fact_path(path, is_folder=heard.is_folder):
                continue
            elif not heard.is_folder:
                dirty.add(path)
            elif path == heard.gone:
                dirty |= self._known.below(path)  # a folder that is moved out takes its files along without a word
            else:
                # The folder was armed before this event was sent: what the watch missed, this look finds.
                dirty |= survey(self._root, (path,)).files.keys()
                self._mark((path,))  # a folder in a file's place is for the reconciler to refuse
        if dirty:
            self._count("events", len(dirty))
            self._known.hear(dirty)
            self._mark(dirty)

    def _canary_came(self) -> None:
        with self._count_lock:
            self._canaries += 1
            is_awaited, self._is_awaited = self._is_awaited, False
        if is_awaited:
            self._wake()

    # --- rescans ------------------------------------------------------------------------------------------------------

    def _look(self, *, everything: bool, is_timed: bool) -> set[str]:
        """Compare the disk with the table. `everything` marks unchanged files too: events are known to be lost."""
        found = survey(self._root)
        table, differs = self._known.compare(found)
        if everything or differs:
            self._mark(differs | table.keys() if everything else differs)
        # After the mark: if that raised, the next look tries again. What stood there at the start was not missed.
        late = self._known.replace(table, differs if self.counters["rescans"] else set(), is_timed=is_timed)
        missed = set(filter(self._counts, late))
        self._count("rescans", 1)
        self.counters["warnings"] = warnings_silenced()
        self._report_unreadable(found)
        if self._listener is not None:
            self._unarmed = found.folders - self._listener.armed()
            if missed and not self.degraded:
                self._count("missed", len(missed))
                self._notice("watch.rescan", {"count": len(missed), "paths": sorted(missed)[:5]})
                self._send_canary()
        return differs

    def _report_unreadable(self, found: Survey) -> None:
        for folder in found.unreadable.keys() - self._unreadable.keys():
            self._count("unreadable", 1)
            self._notice("watch.degraded", {"reason": f"cannot read {folder}: {found.unreadable[folder]}"})
        self._unreadable = found.unreadable

    # --- arming and trust ---------------------------------------------------------------------------------------------

    def _supervise(self, now: float) -> bool:
        """Replace a listener that is no longer good, as often as is wise; returns whether it is good now."""
        ailment = self._listener.ailment() if self._listener else None
        if self._backoff.is_calm(now):
            self._recover("storm")
        if ailment is None:
            self._next_rearm = None
            return True
        wait_s = self._backoff.wait_s(now) if ailment.is_fault else max(0.0, self._armed_at + SWAP_S - now)
        if wait_s:
            # What a broken listener does not see or watch proves nothing about the next one.
            self._canary_state, self._unarmed_since = "none", None
            self._next_rearm = now + wait_s
            if ailment.is_fault:
                self._degrade("storm", f"watching breaks again and again: {ailment.reason}")
            return False
        if ailment.is_fault:
            self._backoff.took(now)
        self._rearm(now, ailment)
        return self._listener is None or self._listener.trouble is None

    def _arm(self) -> None:
        self._listener = Listener(self._root, self._on_event, self._wake)
        self._listener.open()
        if self._listener.trouble:
            self._degrade("start", self._listener.trouble)
        else:
            self._recover("start")
        kind = filesystem_of(self._root)
        if kind in NETWORK_FILESYSTEMS:  # a canary proves nothing here: only our own writes are reported
            self._degrade("network", f"a {kind} file system reports no changes made elsewhere")
        self._send_canary()

    def _rearm(self, now: float, ailment: Ailment) -> None:
        self._canary_state = "none"
        self._count("rearms", 1)
        if ailment.reason == OVERFLOW:
            self._count("overflows", 1)
            self._notice("watch.overflow", {"rearms": self.counters["rearms"]})
        if self._listener is not None:
            self._listener.close()
        self._arm()
        self._look(everything=ailment.is_fault, is_timed=False)
        self._next_rescan, self._next_rearm, self._armed_at = now + self._period_s, None, now

    def _send_canary(self) -> None:
        """Make and remove a hidden file; its event must come back. Without a writable tree there is nothing to prove."""
        if self._poll != "auto" or self._listener is None or self._canary_state == "sent":
            return
        path = f"{self._root}/{self._canary}"
        self._canary_state, self._canary_until = "sent", None
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            os.unlink(path)
        except OSError:
            self._canary_state = "none"

    def _judge_canary(self, now: float) -> None:
        if self._canary_state == "back":
            self._canary_state = "none"
            self._recover("silent")
        elif self._canary_state == "sent" and self._canary_until is None:
            self._canary_until = now + CANARY_S
        elif self._canary_state == "sent" and self._canary_until is not None and now >= self._canary_until:
            self._canary_state = "none"
            self._degrade("silent", f"events do not arrive: a test file was not seen within {CANARY_S:g} s")

    def _judge_unarmed(self, now: float) -> None:
        """Folders that stand on disk and are not watched: more than a moment means a limit was reached."""
        if self._listener is None:
            return
        if self._unarmed:
            armed = self._listener.armed()
            self._unarmed = {f for f in self._unarmed - armed if is_folder(f"{self._root}/{f}")}
        if not self._unarmed:
            self._unarmed_since = None
            self._recover("limit")
        elif self._unarmed_since is None:
            self._unarmed_since = now
        elif now - self._unarmed_since >= UNARMED_S and "limit" not in self._reasons:
            self._degrade("limit", f"{len(self._unarmed)} folders are not watched (see fs.inotify.max_user_watches)")
            self._retry_at = now  # perhaps watchdog only lost track of them: arm once more before giving up

    def _retry(self, now: float) -> None:
        """While polling for a reason that may pass, arm anew from time to time."""
        if self._listener is None or not {"limit", "silent"} & self._reasons.keys():
            self._retry_at = None
        elif self._retry_at is None:
            self._retry_at = now + RETRY_S
        elif now >= self._retry_at:
            self._retry_at = now + RETRY_S
            self._rearm(now, Ailment("a new attempt", is_fault=False))

    def _degrade(self, kind: str, reason: str) -> None:
        if kind not in self._reasons:
            self._reasons[kind] = reason
            self._count("degraded", 1)
            self._notice("watch.degraded", {"reason": reason})

    def _recover(self, kind: str) -> None:
        if self._reasons.pop(kind, None) is not None and not self._reasons:
            self._notice("watch.degraded", {"reason": None})

    def _count(self, name: str, more: int) -> None:
        with self._count_lock:
            self.counters[name] += more
