"""The daemon of one repository: one loop that watches, settles, answers and keeps time. Source: design §3, §6, targets 10, 11.

Only the loop touches the state. Watcher and socket threads leave paths and requests, and wake it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Any

from daemon import clock
from daemon.bug_report import report_bug
from daemon.commits.auditing import Auditing
from daemon.exits import BUG, DONE
from daemon.instance import render_daemon_json
from daemon.journal import FsyncFailed
from daemon.liveness import Liveness
from daemon.log import Log
from daemon.notify import this_manager
from daemon.place import Place, server_socket
from daemon.policy_writer import PolicyWriter
from daemon.reconciler import LOCK_POLL_S, Reconciler, is_routed
from daemon.requests import WAITING, Request, answer_status
from daemon.sockets import Message, Server
from daemon.stray.strays import Strays
from daemon.t0.auto import AutoT0
from daemon.t0.torn import finish_torn_restores
from daemon.timekeeping import Timekeeping
from daemon.watcher import Watcher
from daemon.writes import remove_file, replace_file
from parsers.layout import path_of
from parsers.settings import Settings
from parsers.tree import Unreadable

CHECKPOINT_IDLE_S = 1.0
CHECKPOINT_MOST_S = 30.0


class Service:
    """Watches one repository until `stop`."""

    def __init__(self, place: Place, settings: Settings, log: Log, now: Callable[[], datetime] = clock.now) -> None:
        party = this_manager().join()  # first: others keep an environment for their children from here on
        self.place = place
        self.log = log
        self._now = now
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._requests: deque[Request] = deque()
        self._open: list[Request] = []
        self.reconciler = Reconciler(place.root, settings, log, now=now, wake=self._woken.set)
        self.policy = PolicyWriter(place, self.reconciler.run_orders, log)
        self.reconciler.policy = self.policy
        self.timekeeping = Timekeeping(self.reconciler, self._woken.set, log)
        self.auditing = Auditing(place, self.reconciler.run_orders, log, now)
        self.strays = Strays(
            place,
            lambda: self.policy.policy,
            log,
            self._woken.set,
            poll=settings.watch_poll,
            allow_paths=settings.gate_allow_paths,
            now=now,
        )
        self._waiting = {**WAITING, "audit": self.auditing.answer}
        self.watcher = Watcher(
            place.root,
            self.reconciler.mark,
            self._notice,
            rescan_s=settings.watch_rescan_s,
            poll=settings.watch_poll,
            wake=self._call_watcher,
            counts=is_routed,
        )
        self._auto_t0 = AutoT0(place, log) if settings.t0_auto else None
        self.liveness = Liveness(self.watcher, party, log, self.timekeeping.is_alive)
        self._watcher_called = True
        self._tick_at = 0.0
        self._reason = "an error"
        self.started_at = now()
        self._unsynced_since: float | None = None
        self._active_at = 0.0

    def stop(self, reason: str = "asked to") -> None:
        """Ask the loop to end; safe from a signal handler and from any thread."""
        self._reason = reason
        self._stopping.set()
        self._woken.set()

    def _call_watcher(self) -> None:
        self._watcher_called = True
        self._woken.set()

    def _notice(self, event: str, fields: dict[str, Any]) -> None:
        self.log.write(event, level="warn" if event != "watch.rescan" else "info", **fields)

    def run(self) -> int:
        """Watch until stopped; returns the exit status. The caller holds the instance lock."""
        self.log.write("daemon.starting", root=str(self.place.root))
        server: Server | None = None
        status = DONE
        try:
            self.watcher.start()
            finish_torn_restores(self.place, self.log, self._now())
            self.reconciler.settle()
            self._keep_policy(clock.monotonic())
            server = self._serve()
            self.log.write("daemon.ready", runs=len(self.reconciler.runs()), degraded=self.watcher.degraded)
            self.liveness.ready(clock.monotonic(), f"watching {self.place.root}")
            self.timekeeping.turn(clock.monotonic(), has_settled=True)
            self._measure()
            while not self._stopping.is_set():
                self._turn()
            self.reconciler.checkpoint()
        except FsyncFailed as error:
            status = BUG
            fix = "look at the disk; on the next start every committed fact is rolled forward"
            self.log.write(
                "daemon.error", level="error", code="E-FSYNC", error=f"{error}; nothing more is promised. fix: {fix}"
            )
        finally:
            self._shut_down(server)
        return status

    def _turn(self) -> None:
        """One turn of the loop: wait, settle, answer, supervise."""
        at = clock.monotonic()
        waits = [max(0.0, self._tick_at - at), self.reconciler.due_s(), LOCK_POLL_S if self._open else None]
        waits += [self.auditing.due_s(at), self.timekeeping.due_s(at), self.liveness.due_s(at)]
        if self.policy.due_at is not None:
            waits.append(max(0.0, self.policy.due_at - at))
        self._woken.wait(min(wait for wait in waits if wait is not None))
        self._woken.clear()
        at = clock.monotonic()
        try:
            is_news = not self.reconciler.is_quiet()
            if is_news:
                self._active_at = at
                self.reconciler.settle()
                self._measure()
            self.timekeeping.turn(at, has_settled=is_news)
            self._take_requests()
            self._keep_policy(at)
            self.strays.tick(at)
            self.auditing.turn(at)
            if self._watcher_called or at >= self._tick_at:
                self._watcher_called = False
                self.watcher.tick(at)
                self._tick_at = at + self.watcher.due_s(at)
            self._answer_open()
            self._checkpoint()
            self.liveness.turn(at)  # last: a turn that fails proves nothing
        except FsyncFailed:
            raise
        except Exception as bug:  # the loop outlives a bug; what it was doing is marked still and done next turn
            report_bug(self.log, bug, "turning the loop")

    def _measure(self) -> None:
        """Have measured what was answered, where this machine is to do that by itself."""
        if self._auto_t0 is not None:
            self._auto_t0.note(self.reconciler.unmeasured())

    def _keep_policy(self, at: float) -> None:
        """Bring the hooks' policy up to date; at once where somebody waits for everything to be settled."""
        self.policy.tick(at)
        self.policy.write(None if self._open else at)

    def _checkpoint(self) -> None:
        """Put files on disk when things are calm, or after half a minute of none."""
        at = clock.monotonic()
        if self._unsynced_since is None:
            self._unsynced_since = at
        if at - self._active_at < CHECKPOINT_IDLE_S and at - self._unsynced_since < CHECKPOINT_MOST_S:
            return
        self.reconciler.checkpoint()
        self._unsynced_since = None

    def _serve(self) -> Server | None:
        """Open the socket and say where, in daemon.json; without one the daemon still watches."""
        try:
            server = Server(
                server_socket(self.place.root), self._handle, lambda bug: report_bug(self.log, bug, "answering")
            )
            server.start()
            document = render_daemon_json(server.path, self.started_at)
            replace_file(self.place.root, path_of("daemon"), document)
        except (OSError, IndexError, Unreadable) as error:
            what = f"no socket: {error}; status and sync cannot ask this daemon. fix: set XDG_RUNTIME_DIR to a private folder"
            self.log.write("daemon.error", level="error", code="E-SOCKET", error=what)
            return None
        return server

    def _shut_down(self, server: Server | None) -> None:
        self.log.write("daemon.stopping", reason=self._reason)
        self.liveness.stopping(self._reason)
        self.watcher.stop()
        for request in (*self._open, *self._requests):
            request.answer({"error": "the daemon is stopping"})
        if server:
            server.stop()
        if self._auto_t0 is not None:
            self._auto_t0.close()
        self.timekeeping.close()
        self.auditing.close()
        self.strays.close()
        self.reconciler.close()
        try:
            remove_file(self.place.root, path_of("daemon"))
        except Unreadable:
            pass  # somebody put a link in the folder's place: not ours to follow

    # --- requests -----------------------------------------------------------------------------------------------------

    def _handle(self, message: Message) -> Message:
        """Called in a socket thread: leave the request for the loop and wait for its answer."""
        request = Request(message, clock.monotonic())
        if self._stopping.is_set():
            return {"error": "the daemon is stopping"}
        self._requests.append(request)
        self._woken.set()
        return request.wait()

    def _take_requests(self) -> None:
        while self._requests:
            request = self._requests.popleft()
            if request.verb == "status":
                root, counters = self.place.root, self.log.counters
                request.answer(answer_status(root, self.started_at, self.watcher, self.reconciler, counters))
            elif request.verb in self._waiting:
                self.watcher.rescan(is_timed=False)
                self.reconciler.settle()
                request.since = clock.monotonic()  # what landed before is settled by now, or known to wait
                self._open.append(request)
            else:
                request.answer({"error": f"this daemon knows no verb {request.verb!r}"})

    def _answer_open(self) -> None:
        """Answer what can be answered by now: a sync once nothing is left to settle, an ingest once the lock is free."""
        for request in tuple(self._open):
            answer = self._waiting[str(request.verb)](self.reconciler, self.place.root, request)
            if answer is not None:
                request.answer(answer)
                self._open.remove(request)
