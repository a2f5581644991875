"""What our hooks add to one `git commit`, against an empty sh hook and a `node -e 0` hook in the same run: targets 18, 19, 25, ruling E10.

    env -i PATH="$PATH" HOME="$HOME" .venv/bin/python tests/benchmarks/bench_hooks.py [--quick] [--raw]

Every sample is a real commit of one file in a real repository; the variants take turns, the order turning round by round.
Latency added = commit with the hooks less commit without. Not part of the suite.
"""

from __future__ import annotations

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
sys.path.insert(0, str(ROOT))

from parsers.policy_file import Contract, Policy  # noqa: E402
from tests.hooks.gated import HOOKS, PROJECT, STRICT, Gated, fill_stub  # noqa: E402

CLEAN = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}
ENV = {
    **CLEAN,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    **{f"GIT_{role}_{part}": "a@b" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")},
}
PEER = 1.6  # the reference's guard as a pre-commit hook costs this many `node -e 0` (targets 18)

Samples = dict[str, list[float]]


class Site:
    """A repository of so many files with so many live orders, and a folder of hooks for each variant."""

    def __init__(self, root: Path, files: int, orders: int) -> None:
        self.gated = Gated(root, hooks=())
        self.count = 0
        for n in range(files):
            path = root / f"src/d{n % 100}/e{n // 100 % 20}/f{n}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{n}\n")
        self.gated.git("config", "gc.auto", "0")
        self.gated.git("config", "maintenance.auto", "false")
        self.gated.git("add", "-A")
        self.gated.git("commit", "-qm", "files")
        contracts = tuple(
            Contract(
                f"cart/scope-{n:04d}-r1-a1", "execute", allowed=(f"src/scope-{n:04d}/**", f"tests/scope-{n:04d}/*.py")
            )
            for n in range(orders - 1)
        )
        contracts = (*contracts, Contract("cart/zz-r1-a1", "execute", allowed=("src/cart/**", "tests/cart/**")))
        self.gated.orders(*contracts, policy=Policy("digest", contracts, has_open_run=True))
        ours = fill_stub(root="../../..", main=str(PROJECT / "hooks" / "__main__.py"))
        node = shutil.which("node", path=CLEAN["PATH"]) or "node"
        self._hooks("none", (), "")
        self._hooks("none again", (), "")
        self._hooks("sh exit 0", ("pre-commit",), "#!/bin/sh\nexit 0\n")
        self._hooks("sh exit 1", ("pre-commit",), "#!/bin/sh\nexit 1\n")
        self._hooks("node -e 0", ("pre-commit",), f"#!/bin/sh\nexec {node} -e 0\n")
        self._hooks("ours: pre-commit", ("pre-commit",), ours)
        self._hooks("ours: all", HOOKS, ours)
        self._hooks("ours: strict", STRICT, ours)
        (root / ".git/shapeupd").mkdir(exist_ok=True)

    def _hooks(self, variant: str, names: Sequence[str], text: str) -> None:
        folder = self.gated.root / ".git/sets" / variant.replace(" ", "-").replace(":", "")
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    def commit(self, variant: str, path: str = "src/cart/a", *, refused: bool = False) -> float:
        """Milliseconds of one commit of one changed file."""
        self.count += 1
        self.gated.write(path, f"{self.count}\n")
        subprocess.run(["git", "add", "-f", path], cwd=self.gated.root, env=ENV, check=True)
        hooks = f".git/sets/{variant.replace(' ', '-').replace(':', '')}"
        command = ["git", "-c", f"core.hooksPath={hooks}", "commit", "-qm", "one change"]
        started = time.perf_counter_ns()
        done = subprocess.run(
            command, cwd=self.gated.root, env=ENV, check=False, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        took = (time.perf_counter_ns() - started) / 1e6
        assert (done.returncode != 0) == refused, (variant, done.stderr.decode())
        if refused:
            subprocess.run(["git", "reset", "-q", path], cwd=self.gated.root, env=ENV, check=True)
        return took


def take_turns(variants: Sequence[str], rounds: int, sample: Callable[[str], float]) -> Samples:
    """`rounds` samples of each, after three that warm up; the order turns."""
    found: Samples = {variant: [] for variant in variants}
    for turn in range(rounds + 3):
        start = turn % len(variants)
        for variant in (*variants[start:], *variants[:start]):
            took = sample(variant)
            if turn >= 3:
                found[variant].append(took)
    return found


def added(samples: Samples, variant: str, base: str = "none") -> tuple[float, float]:
    """What the variant adds: by the minima, and by the median of the paired differences."""
    pairs = zip(samples[variant], samples[base], strict=True)
    return min(samples[variant]) - min(samples[base]), statistics.median(mine - other for mine, other in pairs)


def told(name: str, mine: tuple[float, float], peer: tuple[float, float], limit: float, of: str) -> None:
    low, mid = mine[0] / peer[0], mine[1] / peer[1]
    verdict = "holds" if max(low, mid) <= limit else "MISSED"
    print(f"  {name:<34} {low:6.3f}x min {mid:6.3f}x median of {of:<14} (target <= {limit:.3f}x) {verdict}")


ALLOW = ("none", "sh exit 0", "node -e 0", "ours: pre-commit", "ours: all", "ours: strict", "none again")


def bench_allow(files: int, orders: int, rounds: int, *, raw: bool) -> None:
    """The allow path: E10 at 300 files, target 19 at 50,000."""
    with folder() as root:
        site = Site(root, files, orders)
        samples = take_turns(ALLOW, rounds, site.commit)
    print(f"allow, {files} files, {orders} live orders")
    print(f"  {'no hook':<34} min {min(samples['none']):7.2f}  median {statistics.median(samples['none']):7.2f} ms")
    found = {variant: added(samples, variant) for variant in ALLOW[1:-1]}
    for variant, (low, mid) in found.items():
        print(f"  {'+ ' + variant:<34} min {low:7.2f}  median {mid:7.2f} ms")
    node, empty = found["node -e 0"], found["sh exit 0"]
    told("pre-commit", found["ours: pre-commit"], node, 1 / 6 if files < 10_000 else 0.75, "node -e 0")
    if files < 10_000:
        told("pre-commit", found["ours: pre-commit"], empty, 4.0, "sh exit 0")
    told("all hooks", found["ours: all"], node, 0.5, "node -e 0")
    told("all hooks, strict", found["ours: strict"], node, 0.6, "node -e 0")
    control = min(samples["none again"]) / min(samples["none"])
    middle = statistics.median(samples["none again"]) / statistics.median(samples["none"])
    print(f"  A/A control {control:.3f} min, {middle:.3f} median (must be 0.9 to 1.1)")
    if raw:
        for variant, values in samples.items():
            print(f"  raw {variant}: " + " ".join(f"{value:.2f}" for value in values))


DENY = ("none", "sh exit 0", "node -e 0")
REFUSED = ("sh exit 1", "ours: pre-commit")


def bench_deny(files: int, orders: int, rounds: int, *, raw: bool) -> None:
    """The deny path with its explanation, against the reference's guard (1.6 node)."""
    with folder() as root:
        site = Site(root, files, orders)

        def sample(variant: str) -> float:
            is_refused = variant in REFUSED
            return site.commit(variant, "docs/new" if is_refused else "src/cart/a", refused=is_refused)

        samples = take_turns((*DENY, *REFUSED), rounds, sample)
    node = added(samples, "node -e 0")
    low, mid = added(samples, "ours: pre-commit", "sh exit 1")
    empty = added(samples, "sh exit 0")
    mine = (low + empty[0], mid + empty[1])
    print(f"deny, {files} files, {orders} live orders: + {mine[0]:.2f} min, + {mine[1]:.2f} median ms")
    told("deny, explained", mine, (PEER * node[0], PEER * node[1]), 0.6, "1.6 node -e 0")
    if raw:
        for variant, values in samples.items():
            print(f"  raw {variant}: " + " ".join(f"{value:.2f}" for value in values))


FETCH = ("sh exit 0", "ours", "sh exit 0 again")


def bench_fetch(rounds: int, *, raw: bool) -> None:
    """Target 25: a fetch of 100 tags under a reference-transaction hook, ours against an empty one."""
    with folder() as root:
        server = Gated(root, hooks=())
        for n in range(100):
            server.git("tag", f"v{n}")
        clone = root.parent / "clone"
        texts = {"sh exit 0": "#!/bin/sh\nexit 0\n", "ours": fill_stub(root="../../..")}
        for variant, text in {**texts, "sh exit 0 again": texts["sh exit 0"]}.items():
            hook = clone / ".git/sets" / variant.replace(" ", "-") / "reference-transaction"
            hook.parent.mkdir(parents=True)
            hook.write_text(text)
            hook.chmod(0o755)
        subprocess.run(["git", "init", "-q", str(clone)], env=ENV, check=True)
        (clone / ".shapeup").mkdir()

        def sample(variant: str) -> float:
            shutil.rmtree(clone / ".git/refs/tags")
            (clone / ".git/refs/tags").mkdir()
            hooks = f"core.hooksPath=.git/sets/{variant.replace(' ', '-')}"
            command = ["git", "-c", hooks, "fetch", "-q", "--tags", str(root), "main"]
            started = time.perf_counter_ns()
            subprocess.run(command, cwd=clone, env=ENV, check=True)
            return (time.perf_counter_ns() - started) / 1e6

        samples = take_turns(FETCH, rounds, sample)
    ours, empty = samples["ours"], samples["sh exit 0"]
    print("fetch of 100 tags, strict")
    whole = (min(ours), statistics.median(ours)), (min(empty), statistics.median(empty))
    told("reference-transaction", *whole, 1.2, "sh exit 0")
    again = min(samples["sh exit 0 again"]) / min(empty)
    print(f"  A/A control {again:.3f} min (must be 0.9 to 1.1)")
    if raw:
        for variant, values in samples.items():
            print(f"  raw {variant}: " + " ".join(f"{value:.2f}" for value in values))


@contextmanager
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="shapeupd-bench-")).resolve()
    try:
        yield path / "repo"
    finally:
        shutil.rmtree(path, ignore_errors=True)


def refuse_unclean() -> None:
    unclean = [key for key in os.environ if key == "NODE_EXTRA_CA_CERTS" or key.startswith(("PYTHON", "GIT_"))]
    if unclean:
        sys.exit(
            f"not measured: {', '.join(sorted(unclean))} would bend the figures; start it by env -i, as its head says"
        )
    if "shims" in Path(sys.executable).parts or "/shims/" in (shutil.which("node") or ""):
        sys.exit("not measured: a pyenv shim is in the way; name the interpreter itself")
    if shutil.which("node") is None:
        sys.exit("not measured: there is no node on PATH to measure against")


def version(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, env=CLEAN).stdout.strip()


def main() -> None:
    refuse_unclean()
    quick, raw = "--quick" in sys.argv, "--raw" in sys.argv or "--quick" not in sys.argv
    print(
        f"Python {platform.python_version()}, node {version('node', '--version')}, {version('git', '--version')}, "
        f"sh {os.path.realpath('/bin/sh')}, Linux {platform.release()}, {os.cpu_count()} cores"
    )
    rounds = 12 if quick else 40
    for files, orders in ((300, 1), (300, 1000)) if quick else ((300, 1), (300, 100), (300, 1000)):
        bench_allow(files, orders, rounds, raw=raw)
    for files, orders in ((50_000, 1),) if quick else ((50_000, 1), (50_000, 100), (50_000, 1000)):
        bench_allow(files, orders, 6 if quick else 15, raw=raw)
    for files, orders in ((300, 1),) if quick else ((300, 1), (300, 1000), (50_000, 1)):
        bench_deny(files, orders, rounds, raw=raw)
    bench_fetch(6 if quick else 20, raw=raw)


if __name__ == "__main__":
    main()
