"""The fact tables of a run: what its files say, one row each, in fixed columns. Source: protocol §5.11, W-01.

Nothing is guessed: what a file does not say, or says as something else than the column's type, is null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from parsers.addresses import parse_address, slug_of
from parsers.receipts import whole_number
from reducers.run_records import Document, Filed, RunRecords, count_at, object_at, objects_at, scope_of, text_at

Kind = Literal["text", "whole", "number", "flag", "json"]  # json: any value; as a column its text
Columns = tuple[tuple[str, Kind], ...]
Row = dict[str, object]

_LANE = re.compile(r"(\S+)(?: \(overridden from (\S+)\))?\Z")


def _columns(order: str, *, whole: str = "", flag: str = "", number: str = "", json: str = "") -> Columns:
    """The columns in this order; those that no list names are texts."""
    lists: tuple[tuple[Kind, str], ...] = (("whole", whole), ("flag", flag), ("number", number), ("json", json))
    kinds = {name: kind for kind, names in lists for name in names.split()}
    return tuple((name, kinds.get(name, "text")) for name in order.split())


TABLES: Mapping[str, Columns] = {
    "run": _columns(
        whole="intake_chars intake_lines max_rounds attempt_budget rounds_used",
        number="wall_clock_budget_s",
        order="run_id slug started_at closed_at intake_sha256 intake_chars intake_lines auto_level lens lane "
        "lane_overridden_from max_rounds attempt_budget wall_clock_budget_s eval_dimensions status final_verdict rounds_used",
    ),
    "dispatch": _columns(
        whole="round attempt tasks_ordered digested_errors task_results ac_pass ac_fail ac_skipped discoveries files_touched "
        "lines_touched assumptions deviations",
        flag="answered has_verdict",
        order="run_id order_id slug stem worker operation mode scope_id round attempt compiled_at tasks_ordered digested_errors "
        "result_status answered task_results ac_pass ac_fail ac_skipped discoveries files_touched lines_touched has_verdict "
        "verdict_overall assumptions deviations",
    ),
    "ac_result": _columns(flag="has_evidence", order="run_id order_id task_id ac result has_evidence"),
    "discovery": _columns(
        flag="has_repro",
        order="run_id order_id marker lens severity_hint test_gap contradicts has_repro line",
    ),
    "file_touched": _columns(whole="lines", order="run_id order_id path change lines"),
    "trial": _columns(
        whole="schema_version trial round attempt baseline_trial",
        json="score digest",
        order="schema_version trial run_id round attempt scope_id at artifact sha256 score status baseline_trial delta "
        "tree_ref digest",
    ),
    "t0_verdict": _columns(
        whole="round attempt trial fixtures_total fixtures_passed seesaw_failing discovered_tasks",
        flag="regression fixtures_green db_probe_green seesaw_green seesaw_ran",
        order="run_id scope_id round attempt trial at overall regression fixtures_green db_probe_green seesaw_green "
        "fixtures_total fixtures_passed seesaw_ran seesaw_failing discovered_tasks",
    ),
    "criterion_verdict": _columns(
        whole="run",
        flag="reprobed has_evidence",
        order="run_id target run dimension criterion verdict confidence reprobed has_evidence at",
    ),
    "hook_decision": _columns(whole="pid", order="at hook pid run_id event tool subject verdict reason rule"),
}
VERBATIM = frozenset({"trial", "hook_decision"})  # rows of a ledger as they stand: further keys stay


class Table(NamedTuple):
    """One table; `rows` have its columns in order, those of a verbatim one in the order of their ledger."""

    name: str
    rows: tuple[Row, ...]

    @property
    def columns(self) -> Columns:
        """The columns that every row can have."""
        return TABLES[self.name]


def fact_tables(records: RunRecords) -> tuple[Table, ...]:
    """All tables of a run, in their order. Orders and rows of another run are no facts of this one (ruling K)."""
    orders = [order for order in records.orders if order.order_id and records.is_own(order.document.get("run_id"))]
    foreign = {order.order_id for order in records.orders} - {order.order_id for order in orders}
    own = [result for result in records.results if result.order_id is not None and result.order_id not in foreign]
    rows: dict[str, Iterator[Row]] = {
        "run": iter([_run_row(records)]),
        "dispatch": _dispatch_rows(records, orders),
        "ac_result": _ac_rows(own),
        "discovery": _discovery_rows(own),
        "file_touched": _file_rows(own),
        "trial": ({**row, "run_id": row.get("run_id") or records.run_id} for row in _own_rows(records)),
        "t0_verdict": _t0_rows(records),
        "criterion_verdict": _criterion_rows(records),
        "hook_decision": (
            dict(row) for row in records.decisions if row.get("run_id") and row["run_id"] == records.run_id
        ),
    }
    return tuple(Table(name, tuple(_shaped(name, row, records.run_id) for row in rows[name])) for name in TABLES)


def _shaped(table: str, row: Row, run_id: str | None) -> Row:
    if table in VERBATIM:
        return row
    told = {"run_id": run_id, **row}
    return {name: typed(told.get(name), kind) for name, kind in TABLES[table]}


def typed(value: object, kind: Kind) -> object:
    """The value where it is of this kind; null for any other."""
    match kind:
        case "text":
            return value if isinstance(value, str) else None
        case "flag":
            return value if isinstance(value, bool) else None
        case "whole":
            return whole_number(value)
        case "number":
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return value if is_number else None
        case "json":
            return value


def _own_rows(records: RunRecords) -> Iterator[Document]:
    return (row for row in records.trial_rows if records.is_own(row.get("run_id")))


def _run_row(records: RunRecords) -> Row:
    """harness-run.md where it says it, else what the run was opened with."""
    told: Row = {**records.config, **{key: value for key, value in records.harness.items() if value is not None}}
    told |= {key: records.receipt.get(key) for key in ("started_at", "intake_sha256", "intake_chars", "intake_lines")}
    lane = _LANE.match(str(told.get("lane") or ""))
    dimensions = told.get("eval_dimensions")
    listed = [name for name in dimensions if isinstance(name, str)] if isinstance(dimensions, list | tuple) else None
    told["eval_dimensions"] = dimensions if listed is None else " ".join(listed)
    lanes = {"lane": lane[1] if lane else None, "lane_overridden_from": lane[2] if lane else None}
    return {**told, **lanes, "run_id": records.run_id, "slug": records.slug}


def _dispatch_rows(records: RunRecords, orders: Sequence[Filed]) -> Iterator[Row]:
    results = records.result_of
    for order in orders:
        order_id = str(order.order_id)
        address, payload = parse_address(order_id), object_at(order.document, "payload")
        result = results.get(order_id)
        yield {
            **{key: order.document.get(key) for key in ("worker", "operation", "mode", "compiled_at")},
            "order_id": order_id,
            "slug": slug_of(order_id),
            "stem": order.stem,
            "scope_id": scope_of(order.document),
            "round": address.round,
            "attempt": address.attempt,
            "tasks_ordered": count_at(payload, "tasks"),
            "digested_errors": count_at(payload, "digested_errors"),
            "answered": result is not None,
            **_answer(result.document if result else {}),
        }


def _answer(result: Document) -> Row:
    """What the result adds; of an order that nobody answered the counts are 0 and the rest null."""
    acs = [ac.get("result") for task in objects_at(result, "task_results") for ac in objects_at(task, "ac_results")]
    lines = [
        found for file in objects_at(result, "files_touched") if (found := whole_number(file.get("lines"))) is not None
    ]
    verdict = object_at(result, "verdict")
    counted = ("task_results", "discoveries", "files_touched", "assumptions", "deviations")
    return {
        "result_status": result.get("status"),
        **{key: count_at(result, key) for key in counted},
        **{f"ac_{end}": acs.count(said) for end, said in (("pass", "pass"), ("fail", "fail"), ("skipped", "skipped"))},
        "lines_touched": sum(lines) if lines else None,
        "has_verdict": bool(verdict),
        "verdict_overall": verdict.get("overall"),
    }


def _ac_rows(results: Sequence[Filed]) -> Iterator[Row]:
    for result in results:
        for task in objects_at(result.document, "task_results"):
            for ac in objects_at(task, "ac_results"):
                told = {"order_id": result.order_id, "task_id": task.get("task_id"), **ac}
                yield {**told, "has_evidence": _is_said(ac, "evidence")}


def _discovery_rows(results: Sequence[Filed]) -> Iterator[Row]:
    for result in results:
        for found in objects_at(result.document, "discoveries"):
            yield {**found, "order_id": result.order_id, "has_repro": _is_said(found, "repro")}


def _file_rows(results: Sequence[Filed]) -> Iterator[Row]:
    for result in results:
        yield from ({**file, "order_id": result.order_id} for file in objects_at(result.document, "files_touched"))


def _t0_rows(records: RunRecords) -> Iterator[Row]:
    for _, verdict in records.artifacts:
        if not records.is_own(verdict.run_id):
            continue
        told = {key: getattr(verdict, key) for key in ("scope_id", "round", "attempt", "trial", "at", "overall")}
        seesaw = verdict.seesaw
        yield {
            **told,
            "regression": verdict.regression,
            "fixtures_green": verdict.fixtures_green,
            "db_probe_green": verdict.db_probe_green,
            "seesaw_green": verdict.seesaw_green,
            "fixtures_total": len(verdict.fixtures),
            "fixtures_passed": sum(fixture.passed for fixture in verdict.fixtures),
            "seesaw_ran": None if seesaw is None else seesaw.ran,
            "seesaw_failing": None if seesaw is None else len(seesaw.failing),
            "discovered_tasks": len(verdict.discovered_tasks),
        }


def _criterion_rows(records: RunRecords) -> Iterator[Row]:
    for target, rows in records.ledgers:
        yield from ({**row, "target": target, "has_evidence": _is_said(row, "evidence")} for row in rows)


def _is_said(document: Document, key: str) -> bool:
    text = text_at(document, key)
    return text is not None and bool(text.strip())


def manifest_document(
    records: RunRecords, tables: Sequence[Table], generated_at: str, form: str, endings: Mapping[str, str]
) -> dict[str, object]:
    """The manifest; `form` names the format, `endings` the file ending of each format."""
    entries = [{"name": t.name, "file": f"{t.name}.{endings[form]}", "rows": len(t.rows)} for t in tables]
    return {
        "schema_version": 1,
        "run_id": records.run_id,
        "slug": records.slug,
        "generated_at": generated_at,
        "format": form,
        "tables": entries,
        "rows_total": sum(len(table.rows) for table in tables),
        "records_skipped": records.skipped,
    }
