"""What a landed result costs, against `node -e 0` in the same run: prints the figures of targets 35, 36, 37. Not part of the suite.

    .venv/bin/python tests/benchmarks/bench_ingest.py [--quick]

Every sample is a real `shapeupd run` in a clean environment: a result is renamed into place, and the clock stops when the
board index has been replaced. Samples of the peer (`node -e 0`) are taken between them, and once more against itself (A/A).
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from daemon.sockets import ask  # noqa: E402

SLUG = "bench"
CLEAN = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}
PATIENCE_S = 120.0


def envelope(stem: str, **more: Any) -> str:
    return json.dumps({"schema_version": 1, "order_id": f"{SLUG}/{stem}", "worker": "task-executor", **more})


class Bench:
    """One repository with a board of `tasks` tasks and a daemon beside it."""

    def __init__(self, root: Path, tasks: int, results: int) -> None:
        self.root = root
        self.local = root / ".shapeup" / SLUG
        self.index = self.local / "tasks" / "_index.md"
        self.waiting = root / "waiting"
        for folder in (self.local / "tasks", self.local / "orders", self.local / "results", self.waiting):
            folder.mkdir(parents=True)
        rows = ["| ID | Title | Status | Depends On |", "|---|---|---|---|"]
        for n in range(tasks):
            rows.append(f"| TASK-{n:05d} | Task number {n} | ⬜ ready | — |")
            boxes = "".join(f"- [ ] criterion {c} holds\n" for c in range(8))
            head = f"---\nid: TASK-{n:05d}\ntitle: Task number {n}\nstatus: ready\ndepends_on: []\n---\n"
            (self.local / "tasks" / f"TASK-{n:05d}.md").write_text(f"{head}\n## Acceptance Criteria\n\n{boxes}")
        self.index.write_text("\n".join(rows) + "\n")
        self.stems = [f"scope-r1-a{n}" for n in range(1, results + 1)]
        for n, stem in enumerate(self.stems):
            order = envelope(stem, mode="standalone", payload={"tasks": [{"id": f"TASK-{n % tasks:05d}"}]})
            (self.local / "orders" / f"{stem}.json").write_text(order)
            acs = [{"ac": f"criterion {c} holds", "result": "pass", "evidence": "suite.test.ts"} for c in range(8)]
            # Each lap over the board turns its tasks over, so that every result moves a row.
            status = "done" if n // tasks % 2 == 0 else "partial"
            task = {"task_id": f"TASK-{n % tasks:05d}", "status": status, "ac_results": acs}
            (self.waiting / f"{stem}.json").write_text(envelope(stem, status="done", task_results=[task]))
        self.daemon: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self) -> Iterator[float]:
        """The daemon beside the repository; gives the seconds until it was ready."""
        command = [sys.executable, "-I", "-m", "daemon", "run", "--repo", str(self.root), "--log-format", "json"]
        started = time.perf_counter()
        self.daemon = subprocess.Popen(command, env=CLEAN, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert self.daemon.stderr is not None
        try:
            for line in self.daemon.stderr:
                if b'"daemon.ready"' in line:
                    break
            ready_s = time.perf_counter() - started
            subprocess.Popen(["cat"], stdin=self.daemon.stderr, stdout=subprocess.DEVNULL)
            yield ready_s
        finally:
            self.daemon.terminate()
            self.daemon.wait(60)

    def land(self, stem: str) -> float:
        """Milliseconds from the rename into place until the board index has been replaced."""
        before = os.stat(self.index)[1]
        target = self.local / "results" / f"{stem}.json"
        source = self.waiting / f"{stem}.json"
        started = time.perf_counter_ns()
        os.rename(source, target)
        while os.stat(self.index)[1] == before:
            if time.perf_counter_ns() - started > PATIENCE_S * 1e9:
                raise TimeoutError(stem)
        return (time.perf_counter_ns() - started) / 1e6

    def sync(self) -> dict[str, Any]:
        answer = ask(self.root, "sync", timeout_s=PATIENCE_S)
        assert answer is not None
        return answer

    def status_kb(self, key: str) -> int:
        assert self.daemon is not None
        text = Path(f"/proc/{self.daemon.pid}/status").read_text()
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith(key)))

    def cpu_ticks(self) -> int:
        assert self.daemon is not None
        fields = Path(f"/proc/{self.daemon.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])


def node_ms() -> float:
    started = time.perf_counter_ns()
    subprocess.run(["node", "-e", "0"], env=CLEAN, check=True, stdin=subprocess.DEVNULL)
    return (time.perf_counter_ns() - started) / 1e6


def shown(name: str, samples: Sequence[float], unit: str = "ms") -> str:
    low, mid = min(samples), statistics.median(samples)
    return f"{name:<44} min {low:8.3f}  median {mid:8.3f} {unit}  (n={len(samples)})"


def ratio(mine: Sequence[float], peer: Sequence[float]) -> str:
    return f"{min(mine) / min(peer):.3f}x min, {statistics.median(mine) / statistics.median(peer):.3f}x median"


@contextmanager
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="shapeupd-bench-")).resolve()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def bench_one_result(count: int) -> tuple[list[float], list[float]]:
    """Target 35: one result against `node -e 0`, in turn."""
    ours, node, again = [], [], []
    with folder() as root:
        bench = Bench(root, 10, count + 5)
        with bench.running():
            for n, stem in enumerate(bench.stems):
                peer, mine, control = node_ms(), bench.land(stem), node_ms()
                if n >= 5:  # the first ones warm both up
                    node.append(peer)
                    ours.append(mine)
                    again.append(control)
    print(shown("one result, landing to durable board", ours))
    print(shown("node -e 0", node))
    print(f"{'  ratio (target <= 0.18x min)':<44} {ratio(ours, node)}")
    print(f"{'  A/A control (must be 0.9 to 1.1)':<44} {ratio(node, again)}")
    print("  raw ms: " + " ".join(f"{sample:.2f}" for sample in ours[:60]))
    return ours, node


def bench_burst(count: int, node: Sequence[float]) -> None:
    """Target 36: a burst, against the serial rate of a peer whose ingest costs 2.11 x `node -e 0`."""
    with folder() as root:
        bench = Bench(root, 200, count)
        with bench.running():
            started = time.perf_counter()
            for stem in bench.stems:
                os.rename(bench.waiting / f"{stem}.json", bench.local / "results" / f"{stem}.json")
            tally = bench.sync()
            took_s = time.perf_counter() - started
            rss_mb = bench.status_kb("VmHWM") / 1024
    peer_ms = 2.11 * min(node)
    print(
        f"burst of {count}: {took_s * 1000 / count:.3f} ms a result, {count / took_s:.0f}/s, peak RSS {rss_mb:.0f} MB, tally {tally}"
    )
    print(f"{'  against the serial peer (target >= 30x)':<44} {peer_ms / (took_s * 1000 / count):.1f}x")


def bench_board_sizes(sizes: Sequence[int], count: int) -> None:
    """The cost of a result must not grow with the board: at most 1.5x from 10 to 10,000 tasks."""
    medians = {}
    for size in sizes:
        with folder() as root:
            bench = Bench(root, size, count)
            with bench.running():
                samples = [bench.land(stem) for stem in bench.stems][5:]
            medians[size] = (min(samples), statistics.median(samples))
            print(shown(f"one result on a board of {size} tasks", samples))
    low, high = medians[sizes[0]], medians[sizes[-1]]
    print(f"{'  growth (target <= 1.5x)':<44} {high[0] / low[0]:.2f}x min, {high[1] / low[1]:.2f}x median")


def bench_idle(sizes: Sequence[int], seconds: float, node: Sequence[float]) -> None:
    """Target 37: idle CPU with rescans, resident size, time until ready."""
    for size in sizes:
        with folder() as root:
            bench = Bench(root, size, 1)
            with bench.running() as ready_s:
                bench.sync()
                before, started = bench.cpu_ticks(), time.perf_counter()
                time.sleep(seconds)
                used_s = (bench.cpu_ticks() - before) / os.sysconf("SC_CLK_TCK")
                share = 100 * used_s / (time.perf_counter() - started)
                print(
                    f"idle with {size} files: {share:.2f} % of a core, RSS {bench.status_kb('VmRSS') / 1024:.0f} MB, "
                    f"ready after {ready_s * 1000:.0f} ms = {ready_s * 1000 / min(node):.1f}x node"
                )


def main() -> None:
    quick = "--quick" in sys.argv
    unclean = [key for key in os.environ if key == "NODE_EXTRA_CA_CERTS" or key.startswith(("PYTHON", "GIT_"))]
    if unclean:
        print(f"measured in a clean environment instead of one with {', '.join(sorted(unclean))}")
        os.execve(sys.executable, [sys.executable, *sys.argv], CLEAN)
    node_version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(
        f"Python {platform.python_version()}, node {node_version}, Linux {platform.release()}, {os.cpu_count()} cores"
    )
    _, node = bench_one_result(20 if quick else 100)
    bench_burst(200 if quick else 1000, node)
    bench_board_sizes((10, 1000) if quick else (10, 1000, 10_000), 20 if quick else 60)
    bench_idle((2000,) if quick else (2000, 10_000), 4 if quick else 20, node)


if __name__ == "__main__":
    main()
