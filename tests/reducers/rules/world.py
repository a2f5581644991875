"""A run in values, for the rules alone: orders, results and rows are added one by one, at minutes of one morning."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from parsers.facts import OrderFact, ResultFact, read_order, read_result
from parsers.layout import path_of
from parsers.ledgers import IngestRow
from parsers.receipts import RunConfig
from parsers.round_ledger import Decision
from parsers.t0_verdict import parse_t0_verdict
from parsers.tasks import parse_task
from parsers.times import render_time
from parsers.trials import parse_trials
from reducers.bugs import ScopeArea
from reducers.rules.findings import Finding
from reducers.rules.loop_facts import Artifact, DispatchRow, LoopFacts, Ruled
from reducers.rules.orders import judge_order
from reducers.rules.results import judge_result
from reducers.rules.run import judge_run_loop
from reducers.task_index import TaskIndex

SLUG = "cart"
RUN_ID = "cart-20260405T090000Z-0badcafe"
START = datetime(2026, 4, 5, 9, 0, tzinfo=UTC)
ALL_PHASES = frozenset({"orient", "analyze", "wire", "map-scopes"})
HASH = "a" * 64

WORKERS = {
    "evaluate": ("spec-evaluator", "evaluate"),
    "hunt": ("qa-edge-hunter", "hunt"),
    "orient": ("orient", "orient"),
    "analyze": ("ba-pitch-analyzer", "analyze"),
    "reconcile": ("ba-pitch-analyzer", "reconcile"),
    "wire": ("solution-architect", "wire"),
    "map-scopes": ("scope-architect", "map-scopes"),
    "hammer": ("scope-hammer", "hammer"),
}


def at(minute: float) -> datetime:
    return START + timedelta(minutes=minute)


def iso(minute: float) -> str:
    return render_time(at(minute))


class World:
    """The facts as they grow. Every method adds to them and gives back what it made."""

    def __init__(self, **facts: Any) -> None:
        self.orders: dict[str, OrderFact] = {}
        self.results: dict[str, ResultFact] = {}
        self.records: dict[str, tuple[IngestRow, ...]] = {}
        self.artifacts: dict[str, tuple[Artifact, ...]] = {}
        self.dispatches: list[DispatchRow] = []
        self.gates: list[dict[str, object]] = []
        self.trials: list[dict[str, object]] = []
        self.decisions: list[Decision] = []
        self.tasks = TaskIndex()
        self.more: dict[str, Any] = {"phases": ALL_PHASES, "has_profile": True, **facts}

    def task(self, task_id: str, status: str = "ready", needs: Iterable[str] = (), **more: str) -> None:
        head = {"id": task_id, "status": status, "depends_on": f"[{', '.join(needs)}]", **more}
        lines = "\n".join(f"{key}: {value}" for key, value in head.items())
        path = path_of("task", SLUG, task_id)
        self.tasks.put(parse_task(path, f"---\n{lines}\n---\n".encode())[0])

    def order(self, stem: str, minute: float = 10, tasks: Iterable[str] = (), **more: Any) -> OrderFact:
        """An order; who it is for follows from its stem. `contract`: the scope and what it depends on."""
        worker, operation = next(
            (kind for name, kind in WORKERS.items() if stem.startswith(name)), ("task-executor", "execute")
        )
        payload: dict[str, Any] = {"tasks": [{"id": task} for task in tasks]} if tasks else {}
        if contract := more.pop("contract", None):
            payload["scope_contract"] = contract
        value = {
            "schema_version": 1,
            "order_id": f"{SLUG}/{stem}",
            "run_id": RUN_ID,
            "compiled_at": iso(minute),
            "worker": worker,
            "mode": "orchestrated",
            "operation": operation,
            "payload": payload | more.pop("payload", {}),
            **more,
        }
        read = read_order(path_of("order", SLUG, stem), json.dumps(value).encode())
        assert read.fact is not None, read.faults
        self.orders[stem] = read.fact
        return read.fact

    def result(self, stem: str, minute: float = 20, *, applied: bool = True, **more: Any) -> ResultFact:
        """A result, and the row of its ingest."""
        order = self.orders.get(stem)
        value = {"schema_version": 1, "order_id": f"{SLUG}/{stem}", "status": "done", **more}
        read = read_result(path_of("result", SLUG, stem), json.dumps(value).encode())
        assert read.fact is not None, read.faults
        verdict = read.fact.result.verdict
        if applied:
            row = IngestRow(
                RUN_ID,
                f"{SLUG}/{stem}",
                order.sha256 if order else None,
                read.fact.sha256,
                "applied",
                None,
                verdict.overall if verdict else None,
                iso(minute),
            )
            self.records[row.order_id] = (*self.records.get(row.order_id, ()), row)
            self.results[stem] = read.fact
        return read.fact

    def built(self, stem: str, minute: float = 10, **more: Any) -> None:
        """A build order, answered five minutes later."""
        self.order(stem, minute, **more)
        self.result(stem, minute + 5)

    def judged(self, stem: str, overall: str, minute: float = 30, **verdict: Any) -> ResultFact:
        """An evaluation, answered five minutes later; a FAIL names one bug unless told otherwise."""
        self.order(stem, minute)
        named = {"bugs": [{"id": "B1", "location": "src/core/a.py:3"}]} if overall == "FAIL" else {}
        return self.result(stem, minute + 5, verdict={"overall": overall, **named, **verdict})

    def artifact(self, name: str, scope: str, overall: str = "green", minute: float = 15) -> Artifact:
        path = path_of("t0-verdict", SLUG, name)
        data = json.dumps({"scope_id": scope, "overall": overall, "at": iso(minute)}).encode()
        made = Artifact(path, hashlib.sha256(data).hexdigest(), parse_t0_verdict(data, path))
        self.artifacts[scope] = (*self.artifacts.get(scope, ()), made)
        return made

    def trial(self, artifact: Artifact, number: int = 1, status: str = "kept", **more: Any) -> None:
        """The row of an artifact's trial; green where the artifact is."""
        verdict = artifact.verdict
        assert verdict is not None
        score = {"regressions": 0, "fixtures_passed": int(verdict.is_green), "fixtures_total": 1}
        row = {"scope_id": verdict.scope_id, "trial": number, "round": verdict.round, "attempt": verdict.attempt}
        row |= {"artifact": artifact.path.split(f"{SLUG}/")[1], "sha256": artifact.sha256, "status": status}
        self.trials.append(row | {"score": score, "tree_ref": "refs/shapeup/x", "run_id": RUN_ID} | more)

    def gate(
        self, gate: str, decision: str = "proceed", round_: int | None = None, minute: float = 5, **more: Any
    ) -> None:
        row = {"gate": gate, "status": "ok", "decision": decision, "source": "preset:ci", "round": round_}
        self.gates.append(row | {"at": iso(minute), "run_id": RUN_ID} | more)

    def dispatched(self, stem: str, minute: float, agent: str | None = None) -> None:
        self.dispatches.append(DispatchRow(f"{SLUG}/{stem}", iso(minute), agent, RUN_ID))

    def decided(self, question: str, answer: str, scope: str = "—", kind: str = "other", **more: str) -> None:
        row = Decision(more.get("round", "1"), scope, kind, question, answer, more.get("by", "PO (interactive)"))
        self.decisions.append(row)

    def scope(self, scope_id: str, *allowed: str, **more: tuple[str, ...]) -> None:
        self.more["scopes"] = (*self.more.get("scopes", ()), ScopeArea(scope_id, allowed, **more))

    def facts(self, **more: Any) -> LoopFacts:
        verdicts = {stem: fact for stem, fact in self.results.items() if fact.result.verdict}
        facts = LoopFacts(
            SLUG,
            RUN_ID,
            orders=self.orders,
            records=self.records,
            results=self.results,
            tasks=self.tasks,
            artifacts=self.artifacts,
            dispatches=tuple(self.dispatches),
            gates=tuple(self.gates),
            trials=parse_trials("".join(json.dumps(row) + "\n" for row in self.trials).encode()),
            decisions=tuple(self.decisions),
            verdicts={
                stem: Ruled(fact.sha256, fact.result.verdict) for stem, fact in verdicts.items() if fact.result.verdict
            },
        )
        return facts._replace(**{**self.more, **more})

    def config(self, **config: Any) -> None:
        self.more["config"] = RunConfig(**config)

    def of_order(self, fact: OrderFact, minute: float | None = None) -> tuple[Finding, ...]:
        """What is found of an order that lands: now, or then."""
        return judge_order(self.facts(), fact, None if minute is None else at(minute))

    def of_result(self, fact: ResultFact, report: str = "") -> tuple[Finding, ...]:
        facts = self.facts()
        return judge_result(facts, fact, facts.order_of(fact.result.order_id), report)

    def of_run(self) -> tuple[Finding, ...]:
        return judge_run_loop(self.facts())


def has(found: Iterable[Finding], rule: str) -> bool:
    return any(one.rule == rule for one in found)


def whats(found: Iterable[Finding], rule: str) -> list[str]:
    return [one.what for one in found if one.rule == rule]
