"""Stray writes as the daemon's loop sees them: a patrol while an order constrains, its findings as log events. Source: ruling E7, design §4.

The patrol has a thread of its own, so that a slow git keeps no result waiting. It touches no file of the working tree.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from daemon import clock
from daemon.bug_report import report_bug
from daemon.log import Log
from daemon.place import Place
from daemon.stray.memory import Memory, Told, forget_memory, read_memory, write_memory
from daemon.stray.patrol import RETRY_S, Moment, Patrol, Poll, git_trouble
from hooks.git import GitFailed
from parsers.policy_file import Policy

HUNG_S = 10.0
JOIN_S = 1.0


class Strays:
    """Outside git it does nothing. `policy` gives the policy of the moment, from any thread; `wake` asks for a `tick` at once."""

    def __init__(
        self,
        place: Place,
        policy: Callable[[], Policy],
        log: Log,
        wake: Callable[[], None] = lambda: None,
        *,
        poll: Poll = "auto",
        allow_paths: tuple[str, ...] = (),
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self._place = place
        self._policy = policy
        self._log = log
        self._wake = wake
        self._poll = poll
        self._allow_paths = allow_paths
        self._now = now
        self._running: _Running | None = None
        self._has_ticked = False
        self._guard = threading.Lock()
        self._remembers: Moment | None = None  # since when orders are live; None: nothing may be remembered

    @property
    def patrol(self) -> Patrol | None:
        """The patrol under way; None while no order constrains."""
        return self._running.patrol if self._running else None

    def tick(self, at: float) -> None:
        """Start or end the patrol as orders demand, and log what it found. `at`: when the turn began that brought the orders."""
        if self._place.git_dir is None:
            return
        running = self._running
        if not self._policy().is_constraining:
            if running or not self._has_ticked:
                with self._guard:  # a patrol that is still judging must not write it again
                    self._remembers = None
                    forget_memory(self._place.git_dir)
            if running:
                running.end()
            self._running = None
        elif running is None or not running.is_alive:
            self._running = self._start(at, is_first=not self._has_ticked)
        else:
            running.tick(at)
        self._has_ticked = True

    def close(self) -> None:
        """End the patrol; what it has found is logged."""
        if self._running is not None:
            self._running.end()
            self._running.join()
            self._running.tell()
            self._running = None

    def _start(self, at: float, *, is_first: bool) -> _Running:
        """Begin. Orders that were live when the last daemon ended are live since then, not since now."""
        git_dir = self._place.git_dir
        assert git_dir is not None
        wall_ns = int((self._now().timestamp() - (clock.monotonic() - at)) * 1e9)
        memory = read_memory(git_dir) if is_first or self._running else None
        memory = memory or Memory(wall_ns, {})
        write_memory(git_dir, memory)
        since = self._remembers = Moment(at, memory.since_ns)

        def keep(told: Told) -> None:
            with self._guard:
                if self._remembers is since:
                    write_memory(git_dir, Memory(memory.since_ns, told))

        def patrol(say: Callable[[str, Mapping[str, object]], None]) -> Patrol:
            return Patrol(
                self._place,
                self._policy,
                say,
                since=since,
                told=memory.told,
                keep=keep,
                poll=self._poll,
                allow_paths=self._allow_paths,
                now=self._now,
            )

        return _Running(patrol, self._log, self._wake)


class _Running:
    """A patrol in its thread, and what it has said that the loop has not yet logged."""

    def __init__(
        self,
        patrol: Callable[[Callable[[str, Mapping[str, object]], None]], Patrol],
        log: Log,
        wake: Callable[[], None],
    ) -> None:
        self._log = log
        self._wake = wake
        self._said: deque[tuple[str, Mapping[str, object]]] = deque()
        self._ended = threading.Event()
        self._trouble = ""
        self._is_hung = False
        self.patrol = patrol(self._say)
        self._thread = threading.Thread(target=self._run, name="strays", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        """Ask the thread to end, and wait for nothing."""
        self._ended.set()
        self.patrol.end()

    def join(self) -> None:
        """Wait a little: git may be slow, and the thread keeps nobody alive."""
        self._thread.join(JOIN_S)

    def tick(self, at: float) -> None:
        """Log what was found; say so when git hangs."""
        self.tell()
        since = self.patrol.busy_since
        was_hung, self._is_hung = self._is_hung, since is not None and at - since > HUNG_S
        if self._is_hung and not was_hung:
            self._say("daemon.error", git_trouble(f"git has not answered for {HUNG_S:g} s"))

    def tell(self) -> None:
        """Log what was found."""
        while self._said:
            event, fields = self._said.popleft()
            more: dict[str, Any] = dict(fields)
            self._log.write(event, level="error" if event == "daemon.error" else "warn", **more)

    def _say(self, event: str, fields: Mapping[str, object]) -> None:
        self._said.append((event, fields))
        self._wake()

    def _run(self) -> None:
        failures = 0
        while not self._ended.is_set():
            started_at = clock.monotonic()
            try:
                self.patrol.run()
                break
            except (GitFailed, OSError) as error:  # the worktrees cannot be listed
                what, bug = str(error) or type(error).__name__, None
            except Exception as error:  # a bug here must not end the watch for strays
                what, bug = repr(error), error
            if clock.monotonic() - started_at > RETRY_S[1]:
                failures, self._trouble = 0, ""
            self._fail(what, bug)
            self._ended.wait(min(RETRY_S[0] * 2 ** min(failures, 8), RETRY_S[1]))
            failures += 1
        self.patrol.close()

    def _fail(self, what: str, bug: Exception | None = None) -> None:
        """Said once until all went well for a while."""
        if what == self._trouble:
            return
        self._trouble = what
        if bug is not None:
            report_bug(self._log, bug, "looking for stray writes")
        else:
            self._say("daemon.error", git_trouble(what))
