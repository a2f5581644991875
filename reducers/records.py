"""The ledger rows of one ingest: discoveries, verdict lines, the leg and the ingest record. Source: protocol §2.11, §4.6, §4.7, rulings J."""

from __future__ import annotations

import re
from datetime import datetime

from parsers.addresses import parse_address, stem_of
from parsers.domain import Discovery
from parsers.facts import OrderFact, ResultFact
from parsers.faults import fault_row
from parsers.layout import classify, path_of
from parsers.ledgers import newest_run, render_row
from parsers.times import parse_time, render_date, render_time
from reducers.changes import Append
from reducers.identity import run_id_for
from reducers.run import Judgement, Run
from reducers.task_results import inert

SCHEMA_VERSION = 1
_FORGED_MARKER = re.compile(r"(?<=[\n\r]) {0,3}(?=[+~] )")
_DETAILS = (
    ("repro", "repro"),
    ("severity-hint", "severity_hint"),
    ("test-gap", "test_gap"),
    ("contradicts", "contradicts"),
)


def reduce_discoveries(run: Run, fact: ResultFact, now: datetime) -> tuple[Append, ...]:
    """One block in the discovery ledger per result that has discoveries. Source: protocol §4.6."""
    found = fact.result.discoveries or ()
    if not found:
        return ()
    lines = "\n".join(_discovery(item) for item in found)
    block = f"\n## Discovered — {fact.result.order_id} ({render_date(now)})\n{inert(lines)}\n"
    header = f"---\nfeature: {run.slug}\n---\n# Discovery Ledger — {run.slug}\n"
    return (Append(path_of("discovery-ledger", run.slug), block, header),)


def _discovery(item: Discovery) -> str:
    """One discovery as lines; no line of its text but the first can start like another discovery, as ruling L7 has it."""
    return _FORGED_MARKER.sub("    ", _discovery_lines(item))


def _discovery_lines(item: Discovery) -> str:
    lens = f"[lens:{item.lens}] " if item.lens else ""
    lines = [f"{item.marker} {lens}{item.line}"]
    lines += [f"    {label}: {getattr(item, key)}" for label, key in _DETAILS if getattr(item, key)]
    if item.traces_to:
        lines.append(f"    traces_to: {', '.join(item.traces_to)}")
    return "\n".join(lines)


def reduce_verdict(run: Run, fact: ResultFact, now: datetime) -> tuple[tuple[Append, ...], int]:
    """The verdict lines of a result as one append, and how many they are. Source: protocol §4.7."""
    criteria = (fact.result.verdict.criteria if fact.result.verdict else None) or ()
    if not criteria:
        return (), 0
    path = path_of("verdict-ledger", run.slug, (stem_of(fact.result.order_id) or "run").split("/")[0])
    number = newest_run(run.tree.read(path) or b"") + 1
    rows = []
    for item in criteria:
        row: dict[str, object] = {
            "run": number,
            "dimension": item.dimension or "spec-conformance",
            "criterion": item.criterion,
            "verdict": item.verdict,
        }
        if item.confidence is not None:
            row["confidence"] = item.confidence
        rows.append(row | {"reprobed": bool(item.reprobed), "evidence": item.evidence or "", "at": render_time(now)})
    return (Append(path, "".join(map(render_row, rows))),), len(rows)


def leg_row(run: Run, order: OrderFact, dispatched_at: str | None, now: datetime) -> Append:
    """The leg an answered order leaves. Source: protocol §2.11, W-26."""
    compiled = order.order
    address = parse_address(compiled.order_id)
    started_at = dispatched_at or compiled.compiled_at
    start = parse_time(started_at)
    row = {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id_for(run, order),
        "order_id": compiled.order_id,
        "worker": compiled.worker,
        "operation": compiled.operation,
        "mode": compiled.mode,
        "scope_id": address.name,
        "round": address.round,
        "attempt": address.attempt,
        "compiled_at": compiled.compiled_at,
        "dispatched_at": dispatched_at,
        "ingested_at": render_time(now),
        "started_from": "dispatch-receipt" if dispatched_at else "compiled_at" if compiled.compiled_at else None,
        "duration_ms": round((now - start).total_seconds() * 1000) if start else None,
        "attested": dispatched_at is not None,
    }
    return Append(path_of("legs", run.slug), render_row(row))


def ingest_row(
    judged: Judgement, path: str, sha256: str, order: OrderFact | None, verdict: str | None, now: datetime
) -> Append:
    """The record that makes this ingest happen once. Source: rulings J, design §3."""
    row: dict[str, object] = {
        "at": render_time(now),
        "run_id": judged.run_id,
        "order_id": judged.order_id,
        "order_sha256": order.sha256 if order else None,
        "result": path,
        "sha256": sha256,
        "outcome": judged.outcome,
    }
    if judged.code:
        row |= {"code": judged.code, "errors": [fault_row(fault) for fault in judged.faults]}
    if judged.summary.misses:
        row["misses"] = list(judged.summary.misses)
    if verdict is not None:
        row["verdict"] = verdict
    return Append(path_of("ingest-record", slug_of_path(path)), render_row(row))


def slug_of_path(path: str) -> str:
    """The feature a result's path lies in."""
    place = classify(path)
    assert place is not None  # only results reach here
    assert place.slug is not None
    return place.slug
