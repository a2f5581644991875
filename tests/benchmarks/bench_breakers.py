"""How late a deadline trips: prints the figures of target 31. Not part of the suite.

    .venv/bin/python tests/benchmarks/bench_breakers.py [--quick]

Real daemons one after another, each with ten runs whose deadlines fall in a row. Lateness is the trip's row in breakers.jsonl (durable) against
the deadline, by the boot clock that both are counted from; the clocks' own resolution in the rows is 1 ms.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import quantiles

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from daemon.boot_clock import read_clocks  # noqa: E402
from parsers.times import render_time  # noqa: E402
from tests.e2e.living import daemon  # noqa: E402

UNCLEAN = ("NODE_EXTRA_CA_CERTS", "PYTHON", "GIT_")
FIRST_S, STEP_S, RUNS = 3.0, 0.25, 10


def open_runs(root: Path) -> None:
    start = read_clocks().wall
    for number in range(RUNS):
        folder = root / f".shapeup/run-{number:03d}"
        (folder / "orders").mkdir(parents=True)
        budget_s = FIRST_S + number * STEP_S
        receipt = {"slug": folder.name, "started_at": render_time(start), "config": {"wall_clock_budget_s": budget_s}}
        (folder / "receipt.json").write_text(json.dumps(receipt))


def lateness_ms(root: Path) -> list[float]:
    found = []
    for path in sorted(root.glob(".shapeup/*/breakers.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        trips = [row for row in rows if row["status"] == "trip"]
        assert len(trips) == 1, path
        found.append((trips[0]["elapsed_s"] - trips[0]["budget_s"]) * 1000)
    return found


def main() -> None:
    unclean = [name for name in os.environ if name.startswith(UNCLEAN)]
    if unclean:
        raise SystemExit(f"not in a clean environment: {', '.join(unclean)}; run it under `env -i`")
    late: list[float] = []
    for _ in range(2 if "--quick" in sys.argv else 20):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            open_runs(root)
            with daemon(root) as living:
                living.wait_for("gate_h.queued", count=RUNS)
            late += lateness_ms(root)
    cuts = quantiles(late, n=100)
    print(f"{len(late)} deadlines, {RUNS} a daemon, {STEP_S * 1000:.0f} ms apart: every one tripped once")
    print(f"  lateness: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms (target 50), max {max(late):.1f} ms")
    print("  raw: " + " ".join(f"{ms:.0f}" for ms in late))


if __name__ == "__main__":
    main()
