"""A small run as records, for the reducers of the read plane."""

from __future__ import annotations

import json
from typing import Any

from parsers.t0_verdict import T0Verdict, parse_t0_verdict
from parsers.trials import Trial, parse_trials
from reducers.run_records import ArtifactFile, Filed, RunRecords, ScopeRecord

RUN = "cart-20260301T100000Z-0a1b2c3d"
GREEN = {"regressions": 0, "fixtures_passed": 2, "fixtures_total": 2, "db_probe": None}


def order(stem: str, scope: str | None = None, **more: Any) -> Filed:
    payload = {} if scope is None else {"scope_contract": {"scope_id": scope}, "tasks": [{"id": "TASK-1"}]}
    document = {"order_id": f"cart/{stem}", "run_id": RUN, "worker": "task-executor", "operation": "execute"}
    return Filed(stem, {**document, "payload": payload, **more})


def result(stem: str, **more: Any) -> Filed:
    return Filed(stem, {"order_id": f"cart/{stem}", "status": "done", **more})


def artifact(stem: str, scope: str, overall: str = "green", **more: Any) -> ArtifactFile:
    document = {"scope_id": scope, "overall": overall, "regression": False, "run_id": RUN, "fixtures": [], **more}
    verdict = parse_t0_verdict(json.dumps(document).encode(), f"{stem}.json")
    assert isinstance(verdict, T0Verdict)
    return ArtifactFile(stem, verdict)


def trial(number: int, scope: str = "core", status: str = "kept", **more: Any) -> dict[str, Any]:
    row = {"schema_version": 1, "trial": number, "run_id": RUN, "round": 1, "attempt": number, "scope_id": scope}
    return {**row, "artifact": f"t0/verdicts/r1-a{number}-t1.json", "score": GREEN, "status": status, **more}


def trials(*rows: dict[str, Any]) -> tuple[Trial, ...]:
    return parse_trials("\n".join(map(json.dumps, rows)).encode())


def scope(scope_id: str, **more: Any) -> ScopeRecord:
    return ScopeRecord(scope_id, None, 2, ("[[usecases/UC-A.md]]",), ("req-1",), ())._replace(**more)


def records(**more: Any) -> RunRecords:
    receipt = {"run_id": RUN, "started_at": "2026-03-01T10:00:00.000Z", "intake_sha256": "0" * 64, "config": {}}
    return RunRecords("cart", RUN, receipt)._replace(**more)
