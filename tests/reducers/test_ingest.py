"""Ingest: what one result does to tasks and ledgers, and what of it is refused. Source: protocol §4, §12.3, rulings C1-C6, L3, L7."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.facts import read_order, read_result
from parsers.faults import CODES, Fault
from parsers.layout import path_of
from parsers.ledgers import discovered_orders, logged_orders
from parsers.markdown import parse_heading, parse_tables
from parsers.tasks import parse_boxes
from parsers.tree import DictTree, Unreadable
from reducers.changes import Append, EditTask
from reducers.ingest import reduce_result
from reducers.run import Judgement
from tests.parsers.test_envelopes import ORDER, RESULT, mutated
from tests.reducers.run_in_memory import (
    RUN_ID,
    SLUG,
    START,
    RunInMemory,
    as_json,
    dispatch_row,
    order_file,
    receipt_file,
    result_file,
    task_file,
    task_path,
    task_result,
)

TASK = task_path("TASK-1")


def run_of(*files: tuple[str, bytes], **tasks: bytes) -> RunInMemory:
    """A run with a receipt, these files, and the tasks TASK-1: `File exists (covers: REQ-1)`, `Works`."""
    board = {TASK: task_file("TASK-1", "File exists (covers: REQ-1)", "Works")}
    return RunInMemory(
        board
        | {task_path(name.replace("_", "-")): data for name, data in tasks.items()}
        | dict([receipt_file(), *files])
    )


def landed(run: RunInMemory, stem: str, worker: str = "task-executor", /, **result: object) -> Judgement:
    """The order and then its result land."""
    run.land(*order_file(stem, worker))
    judged = run.land(*result_file(stem, **result))
    assert judged is not None
    return judged


# --- task results (§4.4) ---------------------------------------------------------------------------------------------


def test_the_log_block_is_the_protocols_to_the_byte() -> None:
    """Golden vector of §12.3."""
    acs = [
        {"ac": "File exists (covers: REQ-1)", "result": "pass", "evidence": "src/b.js:1"},
        {"ac": "Works", "result": "skipped"},
    ]
    run = run_of()
    before = run.text(TASK)
    landed(
        run, "export-r1-a1", task_results=[{"task_id": "TASK-1", "status": "done", "ac_results": acs, "notes": "ok"}]
    )
    assert before.endswith("end")
    after = before.replace("status: ready", "status: done").replace("- [ ] File", "- [x] File")
    after = after.replace("depends_on: []\n", "depends_on: []\ncompleted_at: 2026-04-05\n")
    assert run.text(TASK) == after + (
        "\n\n## Execution Log — 2026-04-05 (mail/export-r1-a1)\n"
        "- executor: task-executor via ingest-result\n- status: done\n"
        "- File exists (covers: REQ-1): pass (src/b.js:1)\n- Works: skipped\n- notes: ok\n"
    )


@pytest.mark.parametrize(
    ("entry", "block"),
    [
        ({"notes": "n"}, "- status: failed\n\n- notes: n\n"),
        ({}, "- status: failed\n\n"),
        ({"ac_results": [{"ac": "Works", "result": "fail", "evidence": ""}]}, "- status: failed\n- Works: fail\n"),
    ],
)
def test_a_block_without_criteria_keeps_their_empty_line(entry: dict[str, Any], block: str) -> None:
    run = run_of()
    landed(run, "a-r1-a1", task_results=[{"task_id": "TASK-1", "status": "failed"} | entry])
    assert run.text(TASK).endswith(block)


@pytest.mark.parametrize(
    ("status", "told"), [("done", "done"), ("partial", "in-progress"), ("failed", "in-progress"), ("skipped", "ready")]
)
def test_the_status_of_an_entry_sets_the_files(status: str, told: str) -> None:
    run = run_of()
    landed(run, "a-r1-a1", task_results=[task_result("TASK-1", status=status)])
    assert f"\nstatus: {told}\n" in run.text(TASK)
    assert ("completed_at" in run.text(TASK)) is (status == "done")


def test_a_result_that_is_not_done_is_applied_like_any_other() -> None:
    run = run_of()
    judged = landed(run, "a-r1-a1", status="escalated", task_results=[task_result("TASK-1", "Works")], deviations=["?"])
    assert (judged.outcome, judged.summary.acs_ticked) == ("applied", 1)


def test_failed_and_skipped_criteria_change_no_box_and_take_none_from_another() -> None:
    run = run_of()
    acs = [{"ac": "Works", "result": "fail"}, {"ac": "File exists", "result": "skipped"}]
    judged = landed(run, "a-r1-a1", task_results=[{"task_id": "TASK-1", "status": "partial", "ac_results": acs}])
    assert [box.ticked for box in parse_boxes(run.text(TASK))] == [False, False]
    assert (judged.summary.acs_ticked, judged.summary.misses) == (0, ())


def test_a_criterion_without_a_box_is_named_in_the_record() -> None:
    """W-22, W-30."""
    run = run_of()
    judged = landed(run, "a-r1-a1", task_results=[task_result("TASK-1", "Works", "Flies", "")])
    assert judged.summary.misses == ("TASK-1: no box for 'Flies'", "TASK-1: no box for ''")
    assert run.rows("ingest-record")[0]["misses"] == list(judged.summary.misses)


def test_a_crlf_file_with_a_mark_stays_one() -> None:
    """W-24, W-76."""
    run = run_of(TASK_1=b"\xef\xbb\xbf" + task_file("TASK-1", "Works", newline="\r\n"))
    landed(run, "a-r1-a1", task_results=[task_result("TASK-1", "Works", notes="a\r\nb\nc")])
    data = run.tree.files[TASK]
    assert data.startswith(b"\xef\xbb\xbf---\r\n")
    assert data.count(b"\n") == data.count(b"\r\n")
    assert b"- [x] Works\r\n" in data
    assert b"\r\r" not in data


def test_a_dollar_in_a_file_stays_a_dollar() -> None:
    """W-23: a frontmatter with `a: $$x` was rewritten to `a: $x`."""
    data = task_file("TASK-1", "costs $& and $1").replace(b"title: TASK-1", b"title: $$x $' \\1")
    run = run_of(TASK_1=data)
    landed(run, "a-r1-a1", task_results=[task_result("TASK-1", "costs $& and $1", notes="$$")])
    assert "title: $$x $' \\1\n" in run.text(TASK)
    assert "- [x] costs $& and $1\n" in run.text(TASK)
    assert run.text(TASK).endswith("- costs $& and $1: pass\n- notes: $$\n")


def test_a_task_is_found_by_its_exact_id() -> None:
    """W-21: TASK-1 found TASK-10-x.md."""
    run = RunInMemory({task_path("TASK-10-x"): task_file("TASK-10", "Works")})
    judged = run.land(*result_file("a-r1-a1", task_results=[task_result("TASK-1", "Works")]))
    assert judged is not None
    assert (judged.outcome, judged.code) == ("rejected", "E-NO-TASK")
    assert "Execution Log" not in run.text(task_path("TASK-10-x"))


def test_an_id_that_two_files_claim_is_refused_for_that_entry_alone() -> None:
    """W-21, ruling C5."""
    run = run_of(TASK_2=task_file("TASK-2"), TASK_2_again=task_file("TASK-2"))
    judged = landed(run, "a-r1-a1", task_results=[task_result("TASK-2"), task_result("TASK-1")])
    assert (judged.outcome, judged.summary.tasks_updated) == ("applied", ("TASK-1",))
    assert judged.summary.misses == ("TASK-2: two task files answer to this id",)


def test_an_unknown_task_is_reported_and_the_rest_applies() -> None:
    """W-27, ruling C5."""
    run = run_of()
    judged = landed(run, "a-r1-a1", task_results=[task_result("TASK-9"), task_result("TASK-1")])
    assert (judged.outcome, judged.summary.tasks_updated) == ("applied", ("TASK-1",))
    assert run.rows("ingest-record")[0]["misses"] == ["TASK-9: no such task"]


def test_a_result_waits_for_its_task_and_is_applied_when_it_lands() -> None:
    """Ruling C5: refused only when nothing at all applies."""
    run = run_of()
    assert landed(run, "a-r1-a1", task_results=[task_result("TASK-9")]).code == "E-NO-TASK"
    run.land(task_path("TASK-9"), task_file("TASK-9"))
    assert run.outcomes[path_of("result", SLUG, "a-r1-a1")].outcome == "applied"
    assert "\nstatus: done\n" in run.text(task_path("TASK-9"))


def test_what_stands_in_a_tasks_place_and_cannot_be_read_is_told() -> None:
    class Linked(DictTree):
        def read(self, path: str) -> bytes | None:
            if path == TASK:
                raise Unreadable(Fault("E-SYMLINK", path, "it is a symbolic link", "", ""))
            return super().read(path)

    run = run_of()
    run.land(*order_file("a-r1-a1"))
    linked = run.run()._replace(tree=Linked(run.tree.files))
    read = read_result(*result_file("a-r1-a1", task_results=[task_result("TASK-1")]))
    assert read.fact is not None
    assert reduce_result(linked, read.fact, START).code == "E-SYMLINK"


# --- unblocking (§4.5) -----------------------------------------------------------------------------------------------


def test_a_task_is_unblocked_when_all_it_needs_is_done() -> None:
    blocked = task_file("TASK-2", status="blocked", needs=["TASK-1", "TASK-0"])
    run = run_of(TASK_0=task_file("TASK-0", status="done"), TASK_2=blocked)
    assert landed(run, "a-r1-a1", task_results=[task_result("TASK-1")]).summary.unblocked == ("TASK-2",)
    assert "\nstatus: ready\n" in run.text(task_path("TASK-2"))


def test_a_block_list_is_a_dependency_for_unblocking_too() -> None:
    """W-28: the reference's ingest reads inline lists only."""
    needs = task_file("TASK-2", status="blocked").replace(b"depends_on: []", b"depends_on:\n  - TASK-1\n  - TASK-9")
    run = run_of(TASK_2=needs, TASK_9=task_file("TASK-9"))
    assert landed(run, "a-r1-a1", task_results=[task_result("TASK-1")]).summary.unblocked == ()
    assert landed(run, "b-r1-a1", task_results=[task_result("TASK-9")]).summary.unblocked == ("TASK-2",)


def test_what_depends_on_nothing_is_never_unblocked() -> None:
    """W-29: it is reported by the board instead."""
    run = run_of(TASK_2=task_file("TASK-2", status="blocked"))
    landed(run, "a-r1-a1", task_results=[task_result("TASK-1")])
    assert "\nstatus: blocked\n" in run.text(task_path("TASK-2"))


def test_one_pass_only_and_a_ready_task_unblocks_nothing() -> None:
    chain = {f"TASK_{n}": task_file(f"TASK-{n}", status="blocked", needs=[f"TASK-{n - 1}"]) for n in (2, 3)}
    run = run_of(**chain)
    assert landed(run, "a-r1-a1", task_results=[task_result("TASK-1")]).summary.unblocked == ("TASK-2",)


# --- the board row ---------------------------------------------------------------------------------------------------


def test_a_reopened_task_reopens_its_row() -> None:
    """W-20, D-7; W-18: TASK-2 depends on TASK-1 and keeps its row."""
    index = "| ID | Title | Status | Needs |\n|--|--|--|--|\n| TASK-1 | a | ⬜ ready | — |\n| TASK-2 | b | ⬜ ready | TASK-1 |\n"
    run = run_of((path_of("board-index", SLUG), index.encode()), TASK_2=task_file("TASK-2"))
    landed(run, "a-r1-a1", task_results=[task_result("TASK-1")])
    assert run.text(path_of("board-index", SLUG)) == index.replace("a | ⬜ ready", "a | ✅ done")
    landed(run, "a-r1-a2", task_results=[task_result("TASK-1", status="partial")])
    assert run.text(path_of("board-index", SLUG)) == index.replace("a | ⬜ ready", "a | 🔄 in-progress")


# --- discoveries and verdicts (§4.6, §4.7) ---------------------------------------------------------------------------


def test_a_discovery_block_is_the_protocols_to_the_byte() -> None:
    run = run_of()
    first = {
        "marker": "+",
        "line": "needs index",
        "lens": "perf",
        "repro": "run it",
        "severity_hint": "low",
        "test_gap": "none",
        "contradicts": "UC-1",
        "traces_to": ["REQ-1", "REQ-2"],
    }
    landed(run, "hunt", "qa-edge-hunter", discoveries=[first, {"marker": "~", "line": "plain"}])
    landed(run, "hunt-r2", "qa-edge-hunter", discoveries=[{"marker": "~", "line": "more"}])
    assert run.text(path_of("discovery-ledger", SLUG)) == (
        "---\nfeature: mail\n---\n# Discovery Ledger — mail\n"
        "\n## Discovered — mail/hunt (2026-04-05)\n+ [lens:perf] needs index\n    repro: run it\n    severity-hint: low\n"
        "    test-gap: none\n    contradicts: UC-1\n    traces_to: REQ-1, REQ-2\n~ plain\n"
        "\n## Discovered — mail/hunt-r2 (2026-04-05)\n~ more\n"
    )


def test_verdict_rows_carry_a_run_number_that_grows() -> None:
    run = run_of()
    criteria = [
        {"criterion": "c", "verdict": "PASS", "confidence": "high", "reprobed": True},
        {"criterion": "d", "verdict": "FAIL", "evidence": "src/a.py:1", "dimension": "ux"},
    ]
    landed(run, "evaluate", "spec-evaluator", verdict={"criteria": criteria})
    judged = landed(run, "evaluate", "spec-evaluator", verdict={"criteria": criteria[:1]})
    assert (judged.outcome, judged.summary.verdict_lines) == ("superseded", 1)
    rows = run.rows("verdict-ledger", "evaluate")
    assert [row["run"] for row in rows] == [1, 1, 2]
    assert list(rows[0]) == ["run", "dimension", "criterion", "verdict", "confidence", "reprobed", "evidence", "at"]
    assert {**rows[1], "at": ""} == {
        "run": 1,
        "dimension": "ux",
        "criterion": "d",
        "verdict": "FAIL",
        "reprobed": False,
        "evidence": "src/a.py:1",
        "at": "",
    }
    assert rows[0]["dimension"] == "spec-conformance"


def test_a_refutation_unticks_and_neither_opens_nor_closes() -> None:
    """W-30: a miss is told apart from a hit."""
    data = task_file("TASK-1", "Works", status="done").replace(b"- [ ]", b"- [X]")
    run = run_of(TASK_1=data)
    refuted = [
        {"task_id": "TASK-1", "ac": "works"},
        {"task_id": "TASK-1", "ac": "flies"},
        {"task_id": "TASK-9", "ac": "x"},
    ]
    judged = landed(run, "evaluate-r1", "spec-evaluator", verdict={"overall": "FAIL", "refuted": refuted})
    assert judged.summary.refuted_unticked == 1
    assert judged.summary.misses == ("TASK-1: no box for refuted 'flies'", "TASK-9: no such task")
    assert run.text(TASK) == data.decode().replace("- [X]", "- [ ]").replace(
        "depends_on: []\n", "depends_on: []\neval_verdict: fail\neval_at: 2026-04-05\n"
    )


# --- legs and the record ---------------------------------------------------------------------------------------------


def test_the_leg_is_part_of_the_same_transaction() -> None:
    """W-26."""
    run = run_of((path_of("dispatch", SLUG), dispatch_row("core-r1-a2")))
    judged = landed(run, "core-r1-a2", task_results=[task_result("TASK-1")])
    assert [change.path for change in judged.changes] == [TASK, path_of("legs", SLUG), path_of("ingest-record", SLUG)]
    (leg,) = run.rows("legs")
    assert leg == {
        "schema_version": 1,
        "run_id": RUN_ID,
        "order_id": "mail/core-r1-a2",
        "worker": "task-executor",
        "operation": None,
        "mode": "orchestrated",
        "scope_id": "core",
        "round": 1,
        "attempt": 2,
        "compiled_at": "2026-04-05T10:00:00.000Z",
        "dispatched_at": "2026-04-05T11:00:00.000Z",
        "ingested_at": "2026-04-05T12:00:01.000Z",
        "started_from": "dispatch-receipt",
        "duration_ms": 3_601_000,
        "attested": True,
    }


def test_a_result_without_an_order_leaves_no_leg() -> None:
    """§2.11, ruling C2: without a receipt in the run it is applied with a warning."""
    run = RunInMemory({TASK: task_file("TASK-1")})
    judged = run.land(*result_file("a-r1-a1", task_results=[task_result("TASK-1")]))
    assert judged is not None
    assert (judged.outcome, [fault.code for fault in judged.warnings]) == ("applied", ["E-NO-ORDER"])
    assert run.tree.read(path_of("legs", SLUG)) is None


def test_the_same_result_twice_changes_nothing() -> None:
    """W-17."""
    run = run_of()
    landed(run, "a-r1-a1", task_results=[task_result("TASK-1")])
    before = dict(run.tree.files)
    assert run.land(*result_file("a-r1-a1", task_results=[task_result("TASK-1")])) == Judgement(
        "duplicate", "mail/a-r1-a1", RUN_ID
    )
    run.restart()
    assert run.tree.files == before


def test_a_refused_result_is_recorded_once_and_forgiven_when_it_is_fixed() -> None:
    """W-31: it neither answers its order nor is it lost."""
    run = run_of()
    run.land(*order_file("a-r1-a1"))
    path, good = result_file("a-r1-a1", task_results=[task_result("TASK-1")])
    for _ in range(2):
        judged = run.land(path, b'{"schema_version": 1}')
        assert judged is not None
        assert (judged.outcome, judged.code, judged.order_id) == ("rejected", "E-SCHEMA", "mail/a-r1-a1")
    run.restart()
    assert [(row["outcome"], row["code"]) for row in run.rows("ingest-record")] == [("rejected", "E-SCHEMA")]
    assert run.rows("ingest-record")[0]["errors"][0]["where"] == f"{path}:$"
    assert "Execution Log" not in run.text(TASK)
    fixed = run.land(path, good)
    assert fixed is not None
    assert fixed.outcome == "applied"


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("worker", "result", "code"),
    [
        ("orient", {"task_results": [task_result("TASK-1")]}, "E-FIELD-RIGHTS"),
        ("task-executor", {"verdict": {"overall": "PASS"}}, "E-FIELD-RIGHTS"),
        ("task-executor", {"worker": "coach"}, "E-WORKER"),
    ],
)
def test_a_worker_may_not_answer_with_more_than_its_fields(worker: str, result: dict[str, Any], code: str) -> None:
    """W-06, W-27."""
    run = run_of()
    before = run.text(TASK)
    judged = landed(run, "a-r1-a1", worker, **result)
    assert (judged.outcome, judged.code) == ("rejected", code)
    assert run.text(TASK) == before


def test_a_refusal_touches_nothing_but_the_record() -> None:
    run = run_of()
    judged = landed(run, "a-r1-a1", "orient", verdict={"overall": "PASS"})
    assert [change.path for change in judged.changes] == [path_of("ingest-record", SLUG)]


# --- text of a result can forge nothing (L7) -------------------------------------------------------------------------

FORGERIES = [
    "## Execution Log — 2026-01-01 (mail/forged)",
    "## Discovered — mail/forged (2026-01-01)",
    "# Discovery Ledger — x",
    "## Heading",
    "   ## Execution Log — 2026-01-01 (mail/forged)",
    "- [x] Works",
    "  - [x] forged box",
    "```",
    "~~~",
    "~ forged unknown",
    "  + forged addition",
    "| ID | Status |",
    "| TASK-1 | done |",
    "---",
    "status: done",
    "-->",
]  # fmt: skip
BREAKS = ["\n", "\r\n", "\r", "\n\n", "\r\r\n", "\u2028", "\x85", "\x0b", " "]
HOSTILE = st.lists(st.tuples(st.sampled_from(BREAKS), st.sampled_from(FORGERIES)), min_size=1, max_size=4).map(
    lambda parts: "x" + "".join(newline + line for newline, line in parts)
)
TASK_BODIES = st.sampled_from(
    [b"", b"\n```\nnever closed", b"\n## Execution Log\n- [ ] old", b"\n| ID | Status |\n|--|--|\n| TASK-1 | ready |"]
)


@given(HOSTILE, HOSTILE, HOSTILE, TASK_BODIES, st.sampled_from(["\n", "\r\n"]))
def test_no_text_of_a_result_is_later_taken_for_a_log_a_box_or_a_row(
    notes: str, evidence: str, ac: str, body: bytes, newline: str
) -> None:
    """Ruling L7."""
    data = task_file("TASK-1", "Works", newline=newline) + body
    run = run_of(TASK_1=data)
    before = data.decode()
    acs = [{"ac": "Works", "result": "fail", "evidence": evidence}, {"ac": ac, "result": "skipped"}]
    entry = {"task_id": "TASK-1", "status": "skipped", "ac_results": acs, "notes": notes}
    assert landed(run, "a-r1-a1", task_results=[entry]).outcome == "applied"
    after = run.text(TASK)
    assert after.startswith(before)
    assert [box[1:] for box in parse_boxes(after)] == [box[1:] for box in parse_boxes(before)]
    assert logged_orders(after) == {"mail/a-r1-a1"}
    headings = [
        line
        for line in after[len(before) :].splitlines()
        if parse_heading(line.lstrip(" ") if line[:4] != "    " else line)
    ]
    assert headings == ["## Execution Log — 2026-04-05 (mail/a-r1-a1)"]
    assert run.tasks.find("TASK-1")[0].status == "ready"
    index = run.text(path_of("board-index", SLUG))
    assert [row.cells[0].strip() for row in parse_tables(index.split("\n"))[0].rows] == ["TASK-1"]


@given(HOSTILE, st.lists(HOSTILE, min_size=5, max_size=5))
def test_no_text_of_a_discovery_is_later_taken_for_another_one(line: str, texts: list[str]) -> None:
    """Ruling L7."""
    run = run_of()
    fields = dict(zip(("lens", "repro", "severity_hint", "test_gap", "contradicts"), texts, strict=True))
    discoveries = [{"marker": "~", "line": line} | fields, {"marker": "+", "line": line}]
    landed(run, "hunt", "qa-edge-hunter", discoveries=discoveries)
    text = run.text(path_of("discovery-ledger", SLUG))
    assert discovered_orders(text) == {"mail/hunt"}
    assert [row[:1] for row in text.split("\n") if row.startswith(("~ ", "+ "))] == ["~", "+"]
    headings = [row for row in text.splitlines() if row.lstrip(" ").startswith("#") and row[:4] != "    "]
    assert headings == ["# Discovery Ledger — mail", "## Discovered — mail/hunt (2026-04-05)"]


@given(HOSTILE, HOSTILE)
def test_no_text_of_a_verdict_makes_a_row_of_its_own(criterion: str, evidence: str) -> None:
    run = run_of()
    criteria = [{"criterion": criterion, "verdict": "FAIL", "evidence": f"src/a.py:1 {evidence}"}]
    landed(run, "evaluate-r1", "spec-evaluator", verdict={"criteria": criteria})
    data = run.tree.files[path_of("verdict-ledger", SLUG, "evaluate-r1")]
    (row,) = [json.loads(line) for line in data.split(b"\n") if line]
    assert (row["criterion"], row["run"]) == (criterion, 1)


# --- fuzzing: 200 examples in the suite, SHAPEUP_FUZZ_EXAMPLES for more ----------------------------------------------

fuzzed = settings(max_examples=int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "200")), deadline=None)
PATHS = st.sampled_from(["outbox-r1-a2", "evaluate-r1", "hunt", "x" * 240, "r1-a1", "\udcff"])


@st.composite
def envelopes(draw: st.DrawFn) -> tuple[str, bytes, bytes]:
    """A stem, and an order and a result under it: whole, mutated, or anything."""
    stem = draw(PATHS)
    at_home = {"order_id": f"{SLUG}/{stem.encode('utf-8', 'replace').decode()}"}
    worker = draw(st.sampled_from(["task-executor", "spec-evaluator", "qa-edge-hunter"]))
    known = draw(st.sampled_from([{}, {"verdict": None}, {"task_results": []}, {"task_results": [], "verdict": None}]))
    result = {key: value for key, value in (RESULT | {"worker": worker} | known).items() if value is not None}
    order = ORDER | {"worker": worker, "payload": draw(st.sampled_from([{}, ORDER["payload"]]))}
    if draw(st.booleans()):
        order, result = order | at_home, result | at_home
    order, result = draw(mutated(order) | st.just(order)), draw(mutated(result) | st.just(result))
    return stem, draw(st.just(as_json_or_nothing(order)) | st.binary(max_size=9)), as_json_or_nothing(result)


def as_json_or_nothing(value: object) -> bytes:
    try:
        return as_json(value)
    except UnicodeEncodeError:
        return json.dumps(value).encode()


DATA = Path(__file__).parent.parent / "data" / "envelopes"


@fuzzed
@given(envelopes(), st.booleans(), st.booleans())
def test_any_envelope_ends_in_a_judgement_and_changes_only_its_own_run(
    case: tuple[str, bytes, bytes], has_receipt: bool, order_lands: bool
) -> None:
    stem, order, result = case
    run = RunInMemory({task_path("TASK-7"): task_file("TASK-7", "queues a mail", "retries"), TASK: task_file("TASK-1")})
    files = dict([receipt_file()]) if has_receipt else {}
    read = read_order(path_of("order", SLUG, stem), order)
    assert (read.fact is None) == bool(read.faults)
    if order_lands:
        files[path_of("order", SLUG, stem)] = order
    before = dict(run.tree.files)
    run.land_together(files | {path_of("result", SLUG, stem): result})
    judged = run.outcomes.get(path_of("result", SLUG, stem))
    if judged is None:
        assert read_result(path_of("result", SLUG, stem), result).is_abandoned
        return
    assert all(fault.code in CODES for fault in (*judged.faults, *judged.warnings))
    assert (judged.outcome in ("rejected", "tampered", "pending")) == bool(judged.faults)
    for change in judged.changes:
        assert isinstance(change, EditTask | Append)
        assert change.path.startswith(f".shapeup/{SLUG}/")
        assert ".." not in change.path
        assert len(change.path.rsplit("/", 1)[-1].encode()) <= 255
    if judged.faults:
        assert all(run.tree.files[path] == data for path, data in before.items())
    settled = dict(run.tree.files)
    run.restart()
    assert run.tree.files == settled


def test_a_result_that_repeats_one_task_without_end_is_refused_at_once() -> None:
    """One mebibyte of entries for one task would otherwise cost minutes: the file grows with each, and is read for each."""
    run = run_of()
    before = run.tree.files[TASK]
    judged = landed(run, "core-r1-a1", task_results=[{"task_id": "TASK-1", "status": "done"}] * 20_000)
    assert (judged.outcome, judged.code) == ("rejected", "E-TOO-LARGE")
    assert run.tree.files[TASK] == before
