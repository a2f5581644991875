"""What the demo tells of the clock: a run out of time trips its own breaker, goes to GATE H, and is given more. Source: issue 4, design §5."""

from __future__ import annotations

import json

from daemon import clock
from daemon.demo.stage import Failed, Stage
from parsers.addresses import mint_run_id
from parsers.layout import path_of

SLUG = "refunds"
BUDGET_S = 2.0


def run_out_of_time(stage: Stage) -> None:
    """Open a second run with two seconds to live; raises Failed where it does not end as it claims."""
    print("\n== A second run with two seconds of time: its deadline trips by itself, once")
    started_at = clock.iso(clock.now())
    receipt = {"slug": SLUG, "started_at": started_at, "run_id": mint_run_id(SLUG, started_at, None)}
    stage.write(path_of("receipt", SLUG), {**receipt, "config": {"wall_clock_budget_s": BUDGET_S}})
    _order(stage, "refund-r1-a1", "task-executor", "execute")
    stage.wait_for("order.admitted", f"{SLUG}/refund-r1-a1")
    stage.wait_for("breaker.warned", SLUG)
    stage.wait_for("breaker.tripped", SLUG)
    stage.wait_for("gate_h.queued", SLUG)
    print("\n== No new build order after that; the evaluator may still judge what is there")
    _order(stage, "refund-r1-a2", "task-executor", "execute")
    refused = stage.wait_for("order.refused")
    if refused["code"] != "E-BREAKER":
        raise Failed(f"refused for another reason: {refused['code']}")
    _order(stage, "evaluate-r1", "spec-evaluator", "evaluate")
    stage.wait_for("order.admitted", f"{SLUG}/evaluate-r1")
    stage.sync()
    stage.shapeupd("gate-h", SLUG)
    rows = (stage.root / path_of("breakers", SLUG)).read_text(encoding="utf-8").splitlines()
    trips = [row for row in map(json.loads, rows) if row["status"] == "trip"]
    if len(trips) != 1:
        raise Failed(f"{len(trips)} trips are recorded")
    print("\n== A person grants more time: the order that was refused is admitted")
    stage.shapeupd("budget", SLUG, "--extend", "10m", "--by", "demo")
    stage.wait_for("order.admitted", f"{SLUG}/refund-r1-a2")


def _order(stage: Stage, stem: str, worker: str, operation: str) -> None:
    order = {
        "schema_version": 1,
        "order_id": f"{SLUG}/{stem}",
        "compiled_at": clock.iso(clock.now()),
        "worker": worker,
        "mode": "standalone",
        "operation": operation,
        "payload": {},
    }
    stage.write(path_of("order", SLUG, stem), order)
