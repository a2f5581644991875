"""How fast and how completely changes are noticed: prints the figures of targets 1, 2, 12 and 37. Not part of the suite.

    .venv/bin/python tests/benchmarks/bench_watcher.py [--quick]

Latencies are in ms from the end of the write (own writes) or the file's mtime (cp, git; clock steps of up to 4 ms) to the
mark. Every series says how much of it was marked; anything but 100 % is a defect, not a slow run.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from daemon.scan import Known, survey  # noqa: E402
from daemon.watcher import Watcher  # noqa: E402

UNCLEAN = ("NODE_EXTRA_CA_CERTS", "PYTHON", "GIT_")


def wall_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


class Marks:
    """When each path was first marked since the last `clear`."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.at: dict[str, int] = {}
        self.woken = threading.Event()

    def mark(self, paths: Iterable[str]) -> None:
        now = wall_ns()
        with self.changed:
            for path in paths:
                self.at.setdefault(path, now)
            self.changed.notify_all()

    def wait(self, paths: Iterable[str], limit_s: float = 60) -> bool:
        wanted = set(paths)
        with self.changed:
            return self.changed.wait_for(lambda: wanted <= self.at.keys(), limit_s)

    def clear(self) -> None:
        with self.changed:
            self.at = {}


@contextmanager
def watched(root: Path) -> Iterator[tuple[Watcher, Marks]]:
    marks, done = Marks(), threading.Event()
    watcher = Watcher(root, marks.mark, lambda event, fields: None, wake=marks.woken.set)
    watcher.start()

    def loop() -> None:
        while not done.is_set():
            watcher.tick(time.monotonic())
            marks.woken.wait(watcher.due_s(time.monotonic()))
            marks.woken.clear()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield watcher, marks
    finally:
        done.set()
        marks.woken.set()
        thread.join()
        watcher.stop()


def write(root: Path, path: str) -> str:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"{}\n")
    return path


def report(name: str, samples: list[float], whole: int) -> None:
    samples.sort()
    share = 100 * len(samples) / whole
    p50, p99 = samples[len(samples) // 2], samples[min(len(samples) - 1, int(len(samples) * 0.99))]
    print(f"{name:<52} n={whole:<6} {share:6.2f} %   p50 {p50:8.3f}   p99 {p99:8.3f}   max {samples[-1]:8.3f}")


def delays(marks: Marks, written: dict[str, int]) -> list[float]:
    return [max(0.0, (marks.at[path] - at) / 1e6) for path, at in written.items() if path in marks.at]


def one_by_one(root: Path, name: str, count: int, prepare: Callable[[int], None], act: Callable[[int], str]) -> None:
    """Each change is made, and waited for, before the next; timed from just before its last system call."""
    samples: list[float] = []
    with watched(root) as (_, marks):
        for n in range(count):
            prepare(n)
            marks.clear()
            at = wall_ns()
            path = act(n)
            if marks.wait([path]):
                samples.append(max(0.0, (marks.at[path] - at) / 1e6))
    report(name, samples, count)


def bench_renames(root: Path, count: int) -> None:
    (root / "shapeup").mkdir()

    def make(n: int) -> None:
        (root / "new").write_bytes(b"{}\n")

    def rename_in(n: int) -> str:
        (root / "new").rename(root / "shapeup/fact.json")
        return "shapeup/fact.json"

    def rename_out_and_in(n: int) -> str:
        (root / "shapeup/fact.json").rename(root / "taken")
        return rename_in(n)

    one_by_one(root, "rename-in to mark", count, make, rename_in)
    one_by_one(root, "rename-in after rename-out to mark", count // 10, make, rename_out_and_in)


def bench_races(root: Path, count: int) -> None:
    (root / ".shapeup").mkdir()
    with watched(root) as (watcher, marks):
        written = {write(root, f".shapeup/m{n}/a/b/r{n}.json"): wall_ns() for n in range(count)}
        marks.wait(written)
        report("mkdir -p + write", delays(marks, written), len(written))
        report_of_copy(root, marks, 3 * count)
        report_of_folders(root, marks, count // 5)
        print(f"{'':<52} found by rescans only: {watcher.counters['missed']}")


def report_of_copy(root: Path, marks: Marks, count: int) -> None:
    for n in range(count):
        write(root, f"source/d{n % 50}/f{n}.json")
    subprocess.run(["cp", "-r", root / "source", root / ".shapeup/copied"], check=True)
    paths = [f".shapeup/copied/d{n % 50}/f{n}.json" for n in range(count)]
    marks.wait(paths)
    report("cp -r", delays(marks, {path: (root / path).stat().st_mtime_ns for path in paths}), count)


def report_of_folders(root: Path, marks: Marks, count: int) -> None:
    written: dict[str, int] = {}
    for n in range(count):
        for inner in ("a.json", "deep/b.json"):
            write(root, f"outside/{inner}")
        (root / "outside").rename(root / f".shapeup/in{n}")
        written |= dict.fromkeys((f".shapeup/in{n}/a.json", f".shapeup/in{n}/deep/b.json"), wall_ns())
    marks.wait(written)
    report("folder rename-in", delays(marks, written), len(written))


def bench_checkout(root: Path, folders: int) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=b", "-c", "user.email=b@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)

    git("init", "-q", "-b", "empty")
    git("commit", "-q", "--allow-empty", "-m", "empty")
    git("checkout", "-q", "-b", "full")
    paths = [write(root, f"shapeup/s{n}/scopes/s{n}.md") for n in range(folders)]
    git("add", "shapeup")
    git("commit", "-q", "-m", "full")
    git("checkout", "-q", "empty")
    samples: list[float] = []
    with watched(root) as (watcher, marks):
        for _ in range(5):
            marks.clear()
            git("checkout", "-q", "full")
            marks.wait(paths)
            samples += delays(marks, {path: (root / path).stat().st_mtime_ns for path in paths})
            marks.clear()
            git("checkout", "-q", "empty")
            marks.wait(paths)
        print(f"{'':<52} found by rescans only: {watcher.counters['missed']}, re-armed: {watcher.counters['rearms']}")
    report(f"git checkout of {folders} folders x5", samples, 5 * folders)


def bench_roots(root: Path, count: int) -> None:
    def remake(n: int) -> str:
        shutil.rmtree(root / ".shapeup", ignore_errors=True)
        return write(root, f".shapeup/checkout/results/r{n}.json")

    def rename_away(n: int) -> str:
        (root / ".shapeup").rename(root / f"gone{n}")
        return write(root, f".shapeup/checkout/results/r{n}.json")

    def calm(n: int) -> None:
        return None

    one_by_one(root, "root deleted and made again", count, calm, remake)
    one_by_one(root, "root renamed and made again", count, calm, rename_away)


def bench_rescans(root: Path, files: int) -> None:
    for n in range(files):
        write(root, f".shapeup/s{n % (files // 40)}/results/cart-r{n}-a1.json")
    known = Known()
    known.replace(survey(root).files, set())
    series: tuple[list[float], list[float]] = ([], [])
    cpu = 0.0
    for n in range(60):
        started, used = time.perf_counter(), time.process_time()
        table, differs = known.compare(survey(root))
        known.replace(table, differs)
        series[n % 2].append((time.perf_counter() - started) * 1e3)
        cpu += time.process_time() - used
        assert not differs
    both = sorted(series[0] + series[1])
    control = min(series[0]) / min(series[1])
    print(
        f"{'no-change rescan':<52} n={files:<6} min {both[0]:.2f}   median {both[len(both) // 2]:.2f}   "
        f"cpu every 2 s {cpu / 60 / 2 * 100:.2f} %   A/A {control:.2f}"
    )


def bench_stopped(root: Path, files: int) -> None:
    """Files made while the watching process is stopped, far beyond the kernel's queue."""
    (root / ".shapeup/checkout/results").mkdir(parents=True)
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        with watched(root) as (watcher, marks):
            os.write(ready[1], b"r")
            marks.wait([f".shapeup/checkout/results/r{n}.json" for n in range(files)])
            at = max(marks.at.values())
            os.write(done[1], f"{len(marks.at)} {at} {watcher.counters['overflows']}".encode())
        os._exit(0)
    os.read(ready[0], 1)
    os.kill(child, signal.SIGSTOP)
    os.waitid(os.P_PID, child, os.WSTOPPED)
    for n in range(files):
        (root / f".shapeup/checkout/results/r{n}.json").write_bytes(b"")
    resumed = wall_ns()
    os.kill(child, signal.SIGCONT)
    marked, at, overflows = map(int, os.read(done[0], 100).split())
    os.waitpid(child, 0)
    share, took_ms = 100 * marked / files, (at - resumed) / 1e6
    print(f"{'made under SIGSTOP':<52} n={files:<6} {share:6.2f} %   all after {took_ms:.0f}   overflows {overflows}")


def main() -> int:
    unclean = [name for name in os.environ if name.startswith(UNCLEAN)]
    if unclean:
        print(f"refusing to measure in an unclean environment: {' '.join(unclean)}", file=sys.stderr)
        return 2
    scale = 10 if "--quick" in sys.argv else 1
    print(f"python {platform.python_version()}, watchdog {version('watchdog')}, {platform.release()}, times in ms")
    steps: list[tuple[Callable[[Path, int], None], int]] = [
        (bench_stopped, 30_000 // scale),
        (bench_renames, 2000 // scale),
        (bench_races, 1000 // scale),
        (bench_checkout, 300 // scale),
        (bench_roots, 30 // scale),
        (bench_rescans, 2000),
        (bench_rescans, 10_000),
    ]
    for bench, size in steps:
        with tempfile.TemporaryDirectory() as folder:
            bench(Path(folder), size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
