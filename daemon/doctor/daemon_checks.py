"""Whether the daemon lives, sees what is written, and has told the hooks what holds. Source: cli §2, targets 33, 34, ruling E1."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

from daemon import clock
from daemon.configuration import load_settings
from daemon.doctor.checks import Check
from daemon.exits import Exit
from daemon.place import Place
from daemon.sockets import ask
from daemon.version import VERSION
from parsers.layout import LOCAL_ROOT, path_of
from parsers.policy_file import parse_policy

WATCH_S = 5.0  # two of the slowest polls
_LOOK_S = 0.02
_POLICY_PATHS = f"{LOCAL_ROOT}/policy.paths"


def check_daemon(place: Place) -> Iterator[Check]:
    """The daemon, and whether a canary file in the watched tree is seen."""
    try:
        answer = ask(place.root, "status")
    except TimeoutError:
        yield Check("daemon", False, "one listens and does not answer", "see `shapeupd log`, then restart it")
        yield Check("watch", False, "the daemon cannot be asked", "restart the daemon")
        return
    daemon = answer.get("daemon") if answer else None
    if not isinstance(daemon, dict):
        yield Check("daemon", False, f"none runs for {place.root}", "start `shapeupd run` there, and leave it running")
        yield Check("watch", False, "nobody watches", "start `shapeupd run`")
        return
    version, pid = daemon.get("version"), daemon.get("pid")
    if version != VERSION:
        fix = "restart the daemon"
        yield Check("daemon", False, f"pid {pid} is version {version}, this command is {VERSION}", fix)
    else:
        yield Check("daemon", True, f"version {version}, pid {pid}")
    yield _check_watch(place, daemon.get("degraded"))


def _check_watch(place: Place, degraded: object) -> Check:
    """Events: their count must move when a file appears. Polling: a look at everything must follow."""
    if degraded and not _polls_on_purpose(place):
        fix = "sudo sysctl fs.inotify.max_user_watches=524288, or set watch.poll to on where no events can come"
        return Check("watch", False, f"polling: {degraded}", fix)
    counter = "watch.rescans" if degraded else "watch.events"
    if not os.path.isdir(place.local) or place.local.is_symlink():
        return Check("watch", False, f"{place.local} is no folder", "restart the daemon; it makes one")
    canary = f"{place.local}/shapeupd-canary-{os.getpid()}"
    before = _count(place, counter)
    began = clock.monotonic()
    try:
        os.close(os.open(canary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        seen_s = _seen_after(place, counter, before, began)
    except OSError as error:
        return Check("watch", False, f"{canary}: {error.strerror}", "make the folder writable for this user")
    finally:
        _remove(canary)
    if seen_s is None:
        what = f"a canary file in {LOCAL_ROOT}/ was not seen within {WATCH_S:g} s"
        return Check("watch", False, what, "restart the daemon; if that does not help, set watch.poll to on")
    how = "found by polling" if degraded else "seen"
    return Check("watch", True, f"a canary file was {how} after {seen_s * 1000:.0f} ms")


def _polls_on_purpose(place: Place) -> bool:
    try:
        return load_settings(place)[0].watch_poll == "on"
    except Exit:
        return False


def _seen_after(place: Place, counter: str, before: int, began: float) -> float | None:
    while clock.monotonic() - began < WATCH_S:
        if _count(place, counter) > before:
            return clock.monotonic() - began
        time.sleep(_LOOK_S)
    return None


def _count(place: Place, counter: str) -> int:
    try:
        answer = ask(place.root, "status") or {}
    except TimeoutError:
        return 0
    counters = answer.get("counters")
    value = counters.get(counter) if isinstance(counters, Mapping) else None
    return value if isinstance(value, int) else 0


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def check_policy(place: Place) -> Iterator[Check]:
    """Whether the policy that the hooks read is the one that the orders on disk give."""
    from daemon.policy_on_disk import policy_of  # pydantic, by way of the orders

    wanted = policy_of(place)
    written = _bytes(place.root / path_of("policy"))
    again = "run `shapeupd sync`; without a daemon, start `shapeupd run`"
    if written is None:
        if not wanted.contracts and not wanted.has_open_run:
            yield Check("policy", True, "no order is live, so none is needed")
        else:
            what = f"{path_of('policy')} is missing while orders are on disk"
            yield Check("policy", False, what, again)
        return
    policy = parse_policy(written)
    first = (_bytes(place.root / _POLICY_PATHS) or b"").split(b"\n", 1)[0].decode("ascii", "replace").split()
    if policy is None:
        yield Check("policy", False, f"{path_of('policy')} does not parse", again)
    elif policy != wanted:
        yield Check("policy", False, f"{path_of('policy')} is not what the orders and settings on disk say", again)
    elif policy.orders_digest not in first:
        yield Check("policy", False, f"{_POLICY_PATHS} speaks of other orders than {path_of('policy')}", again)
    else:
        yield Check("policy", True, f"fresh, {len(policy.contracts)} contracts")


def _bytes(path: os.PathLike[str]) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        return file.read()
