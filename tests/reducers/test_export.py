"""Fact tables: columns, joins, and null for what is not said. Source: protocol §5.11, W-01, ruling K."""

from __future__ import annotations

from typing import Any

import pytest

from reducers.export import TABLES, fact_tables, manifest_document, typed
from reducers.run_records import Filed, RunRecords
from tests.reducers.a_run import RUN, artifact, order, records, result, trial

OTHER = "cart-20250101T100000Z-0a1b2c3d"


def rows(run: RunRecords, name: str) -> tuple[dict[str, Any], ...]:
    return next(table.rows for table in fact_tables(run) if table.name == name)


def test_every_row_has_the_columns_of_its_table_in_order() -> None:
    run = records(
        orders=(order("core-r1-a1", "core"),),
        results=(result("core-r1-a1", discoveries=[{"marker": "+"}], files_touched=[{"path": "a", "extra": 1}]),),
        artifacts=(artifact("r1-a1-t1", "core"),),
        ledgers=(("evaluate-r1", ({"run": 1, "dimension": "d"},)),),
    )
    for table in fact_tables(run):
        assert all(list(row) == [name for name, _ in table.columns] for row in table.rows), table.name
    assert [table.name for table in fact_tables(run)] == list(TABLES)


def test_an_order_that_nobody_answered_has_null_for_what_a_result_says() -> None:
    (row,) = rows(records(orders=(order("core-r1-a2", "core", compiled_at=7),)), "dispatch")
    assert (row["answered"], row["result_status"], row["task_results"], row["lines_touched"]) == (False, None, 0, None)
    assert (row["round"], row["attempt"], row["scope_id"], row["compiled_at"]) == (1, 2, "core", None)
    assert (row["tasks_ordered"], row["has_verdict"], row["verdict_overall"]) == (1, False, None)


def test_a_result_is_joined_by_its_order_id_and_not_by_its_file_name() -> None:
    answer = Filed("evaluate-r1", {"order_id": "cart/evaluate", "status": "done"})
    (row,) = rows(records(orders=(order("evaluate-r1"),), results=(answer,)), "dispatch")
    assert row["answered"] is False


def test_criteria_files_and_lines_are_counted() -> None:
    acs = [{"ac": "x", "result": said, "evidence": " "} for said in ("pass", "pass", "fail", "skipped", "maybe")]
    told = result(
        "core-r1-a1",
        task_results=[{"task_id": "TASK-1", "ac_results": acs}, "junk"],
        files_touched=[{"path": "a.py", "lines": 3}, {"path": "b.py", "lines": "many"}],
        verdict={"overall": "PASS"},
    )
    run = records(orders=(order("core-r1-a1", "core"),), results=(told,))
    (row,) = rows(run, "dispatch")
    assert [row[f"ac_{end}"] for end in ("pass", "fail", "skipped")] == [2, 1, 1]
    assert (row["task_results"], row["files_touched"], row["lines_touched"], row["verdict_overall"]) == (
        2,
        2,
        3,
        "PASS",
    )
    assert [found["has_evidence"] for found in rows(run, "ac_result")] == [False] * 5
    assert [found["lines"] for found in rows(run, "file_touched")] == [3, None]


def test_another_runs_rows_are_no_facts_of_this_one() -> None:
    run = records(
        orders=(order("core-r1-a1", run_id=OTHER), order("orient")),
        results=(result("core-r1-a1", discoveries=[{"marker": "+"}]),),
        artifacts=(artifact("r1-a1-t1", "core", run_id=OTHER),),
        trial_rows=(trial(1, run_id=OTHER), {"scope_id": "core", "more": 1}),
        decisions=({"hook": "a", "run_id": OTHER}, {"hook": "b", "run_id": RUN}, {"hook": "c", "run_id": None}),
    )
    assert [row["stem"] for row in rows(run, "dispatch")] == ["orient"]
    assert (rows(run, "discovery"), rows(run, "t0_verdict")) == ((), ())
    assert rows(run, "trial") == ({"scope_id": "core", "more": 1, "run_id": RUN},)
    assert rows(run, "hook_decision") == ({"hook": "b", "run_id": RUN},)


def test_the_run_is_as_harness_run_says_it_and_else_as_it_was_opened() -> None:
    config = {"max_rounds": 3, "attempt_budget": 5, "eval_dimensions": ["a", "b"], "auto_level": "auto"}
    harness = {"max_rounds": 2, "lane": "full (overridden from tiny)", "rounds_used": "two", "final_verdict": None}
    (row,) = rows(records(receipt={"config": config, "intake_chars": 9}, harness=harness), "run")
    assert (row["max_rounds"], row["attempt_budget"], row["eval_dimensions"]) == (2, 5, "a b")
    assert (row["lane"], row["lane_overridden_from"], row["rounds_used"], row["final_verdict"]) == (
        "full",
        "tiny",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("value", "kind", "told"),
    [(2.0, "whole", 2), (True, "whole", None), ("2", "whole", None), (1, "flag", None), (True, "number", None)],
)
def test_a_value_of_another_type_reads_as_null(value: object, kind: Any, told: object) -> None:
    assert typed(value, kind) == told


def test_the_manifest_counts_rows_and_what_was_skipped() -> None:
    run = records(orders=(order("orient"),), skipped=2)
    manifest = manifest_document(run, fact_tables(run), "now", "jsonl", {"jsonl": "jsonl"})
    assert (manifest["rows_total"], manifest["records_skipped"], manifest["run_id"]) == (2, 2, RUN)
    assert manifest["tables"][1] == {"name": "dispatch", "file": "dispatch.jsonl", "rows": 1}  # type: ignore[index]
