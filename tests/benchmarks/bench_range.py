"""What a push of 1,000 commits costs at both walls, against a bare `git log` over the same commits: the figures of target 20.

    .venv/bin/python tests/benchmarks/bench_range.py [--quick]

Every sample is a whole process: the hook as its stub starts it, with the lines git would hand it. Samples of the peer
(`git log -z --name-only -m`) are taken between them, and once more against itself (A/A). The git processes of a run are counted
by git's own trace. Part of a hook's time is Python's start; a push of one commit shows how much.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLEAN = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}
CLEAN |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
HOOK = (sys.executable, "-I", "-S", os.fspath(ROOT / "hooks" / "__main__.py"))
CONTRACT = b"---\nscope_id: core\nallowed_file_substrate: [src/**]\n---\n"
ZEROS = "0" * 40


def git(folder: Path, *args: str, stdin: bytes = b"") -> str:
    done = subprocess.run(["git", *args], cwd=folder, env=CLEAN, input=stdin, capture_output=True, check=True)
    return done.stdout.decode().strip()


def history(commits: int, files: int, distinct: int) -> bytes:
    """A fast-import stream: `main` with a scope contract, and `work` with the commits on top of it."""
    parts = [b"commit refs/heads/main\ncommitter a <a@b> 1699999999 +0000\ndata 4\nbase\n"]
    parts.append(b"M 100644 inline shapeup/cart/scopes/core.md\ndata %d\n%s\n" % (len(CONTRACT), CONTRACT))
    for n in range(commits):
        message = f"commit {n}\n\nShapeup-Order: cart/core-r1-a1\n".encode()
        parts.append(b"commit refs/heads/work\ncommitter a <a@b> %d +0000\n" % (1_700_000_000 + n))
        parts.append(b"data %d\n%s\n%s" % (len(message), message, b"from refs/heads/main\n" if n == 0 else b""))
        for at in range(n * files, n * files + files):
            text = b"%d %d\n" % (n, at)
            path = b"src/d%d/f%d.txt" % (at % 20, at % distinct)
            parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path, len(text), text))
    return b"".join(parts)


class Site:
    """A bare repository that holds the new commits as a push would show them to its hook, and a clone that would push them."""

    def __init__(self, root: Path, commits: int, distinct: int) -> None:
        self.server, self.clone = root / "server.git", root / "clone"
        git(root, "init", "-q", "--bare", "-b", "main", str(self.server))
        git(root, "init", "-q", "-b", "main", str(self.clone))
        stream = history(commits, 3, distinct)
        for folder in (self.server, self.clone):
            git(folder, "fast-import", "--quiet", stdin=stream)
        self.tip = git(self.server, "rev-parse", "work")
        git(self.server, "update-ref", "-d", "refs/heads/work")
        git(self.clone, "update-ref", "refs/remotes/origin/main", "main")
        order = {"order_id": "cart/core-r1-a1", "operation": "execute", "substrate": {"allowed": ["src/**"]}}
        orders = self.clone / ".shapeup" / "cart" / "orders"
        orders.mkdir(parents=True)
        (orders / "core-r1-a1.json").write_text(json.dumps(order))

    def receive(self, **env: str) -> float:
        return timed([*HOOK, "pre-receive"], self.server, f"{ZEROS} {self.tip} refs/heads/work\n", **env)

    def push(self, **env: str) -> float:
        line = f"refs/heads/work {self.tip} refs/heads/work {ZEROS}\n"
        return timed([*HOOK, "pre-push", "--root", str(self.clone), "--", "origin", "url"], self.clone, line, **env)

    def log(self) -> float:
        command = ["git", "log", "-z", "--name-only", "-m", self.tip, "--not", "--all"]
        return timed(command, self.server, "")


def timed(command: Sequence[str], folder: Path, stdin: str, **env: str) -> float:
    """Milliseconds of one process that must end with 0."""
    started = time.perf_counter_ns()
    done = subprocess.run(command, cwd=folder, env=CLEAN | env, input=stdin.encode(), capture_output=True, check=False)
    took = (time.perf_counter_ns() - started) / 1e6
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stderr.decode()}")
    return took


def processes(run: Callable[..., float], folder: Path) -> int:
    """How many git processes one run starts."""
    trace = folder / "trace"
    trace.unlink(missing_ok=True)
    run(GIT_TRACE2_EVENT=str(trace))
    return trace.read_text().count('"event":"start"')


def shown(name: str, samples: Sequence[float]) -> str:
    return f"{name:<52} min {min(samples):8.2f}  median {statistics.median(samples):8.2f} ms  (n={len(samples)})"


def ratio(mine: Sequence[float], peer: Sequence[float]) -> str:
    return f"{min(mine) / min(peer):.2f}x min, {statistics.median(mine) / statistics.median(peer):.2f}x median"


@contextmanager
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="shapeupd-bench-")).resolve()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def bench(count: int, distinct: int) -> None:
    with folder() as root:
        site = Site(root, 1000, distinct)
        (root / "one").mkdir()
        single = Site(root / "one", 1, distinct)
        runs: dict[str, Callable[[], float]] = {
            "git log -z --name-only -m": site.log,
            "pre-receive": site.receive,
            "pre-push": site.push,
            "git log again (A/A)": site.log,
            "git log, one commit": single.log,
            "pre-receive, one commit": single.receive,
            "pre-push, one commit": single.push,
        }
        samples: dict[str, list[float]] = {name: [] for name in runs}
        for turn in range(count + 2):
            for name, run in runs.items():
                took = run()
                if turn >= 2:  # the first ones warm the caches
                    samples[name].append(took)
        print(f"1,000 commits x 3 files, {distinct} distinct paths")
        for name, taken in samples.items():
            print(f"  {shown(name, taken)}")
        peer = samples["git log -z --name-only -m"]
        for wall in ("pre-receive", "pre-push"):
            print(f"  {wall + ' / git log (target <= 2.5x)':<52} {ratio(samples[wall], peer)}")
            start = samples[f"{wall}, one commit"]
            grown, base = [a - b for a, b in zip(samples[wall], start, strict=True)], samples["git log, one commit"]
            alone = [a - b for a, b in zip(peer, base, strict=True)]
            print(f"  {'  of that, what the 999 further commits cost':<52} {ratio(grown, alone)}")
        print(f"  {'A/A control (must be 0.9 to 1.1)':<52} {ratio(samples['git log again (A/A)'], peer)}")
        for wall, thousand, one in (
            ("pre-receive", site.receive, single.receive),
            ("pre-push", site.push, single.push),
        ):
            counts = processes(thousand, root), processes(one, root)
            print(f"  git processes of {wall}: {counts[0]} for 1,000 commits, {counts[1]} for one")
        print("  raw ms, pre-receive: " + " ".join(f"{sample:.1f}" for sample in samples["pre-receive"][:40]))


def main() -> None:
    quick = "--quick" in sys.argv
    unclean = [key for key in os.environ if key == "NODE_EXTRA_CA_CERTS" or key.startswith(("PYTHON", "GIT_"))]
    if unclean:
        print(f"measured in a clean environment instead of one with {', '.join(sorted(unclean))}")
        os.execve(sys.executable, [sys.executable, *sys.argv], CLEAN)
    version = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"Python {platform.python_version()}, {version}, Linux {platform.release()}, {os.cpu_count()} cores")
    for distinct in (300, 3000):
        bench(7 if quick else 31, distinct)


if __name__ == "__main__":
    main()
