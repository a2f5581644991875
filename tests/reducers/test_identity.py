"""Whose result it is, whether it was applied already, and whether its worker ran. Source: R-02, R-05, W-07, W-17, rulings B2, C2-C4, D3, L2, L3."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.layout import path_of
from reducers.run import Attestation, Judgement
from tests.reducers.run_in_memory import (
    RUN_ID,
    SLUG,
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
OTHER_RUN = "mail-20250101T000000Z-11111111"


def run_of(*files: tuple[str, bytes], attestation: Attestation = "auto") -> RunInMemory:
    return RunInMemory({TASK: task_file("TASK-1", "Works"), **dict([receipt_file(), *files])}, attestation)


def judged(run: RunInMemory, *files: tuple[str, bytes]) -> Judgement:
    """What the last of these files, a result, came to."""
    for path, data in files:
        run.land(path, data)
    return run.outcomes[files[-1][0]]


def answer(stem: str = "a-r1-a1", **more: object) -> tuple[str, bytes]:
    return result_file(stem, **{"task_results": [task_result("TASK-1")], **more})


# --- whose -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order_id", "code"),
    [
        ("mail/b-r1-a1", "E-STEM"),
        ("cart/a-r1-a1", "E-SLUG"),
        ("mail/../a-r1-a1", "E-ID"),
        ("../mail/a-r1-a1", "E-ID"),
        ("mail/a-r1-a1\n", "E-ID"),
        ("a-r1-a1", "E-ID"),
        ("", "E-ID"),
        ("mail/" + "x" * 300, "E-ID"),
    ],
)
def test_without_an_order_a_result_must_name_its_own_place(order_id: str, code: str) -> None:
    """Rulings C11, L2."""
    told = judged(RunInMemory({TASK: task_file("TASK-1")}), answer(order_id=order_id))
    assert (told.outcome, told.code) == ("rejected", code)


def test_a_result_must_name_the_order_it_lies_beside() -> None:
    """R-02: never rewritten, always refused."""
    told = judged(run_of(order_file("a-r1-a1")), answer(order_id="mail/A-r1-a1"))
    assert (told.code, told.faults[0].fix[:33]) == ("E-ORDER-MISMATCH", 'set order_id to "mail/a-r1-a1" (c')


def test_a_refused_order_still_says_whose_result_it_is() -> None:
    run = run_of(order_file("a-r1-a1", order_id="mail/b-r1-a1"))
    assert judged(run, answer()).code == "E-ORDER-MISMATCH"


def test_in_an_opened_run_a_result_waits_for_its_order() -> None:
    """R-01, W-07, ruling C2."""
    run = run_of()
    assert judged(run, answer()) == Judgement(
        "pending", "mail/a-r1-a1", RUN_ID, faults=run.outcomes[answer()[0]].faults
    )
    assert run.rows("ingest-record") == []
    run.land(*order_file("a-r1-a1"))
    assert run.outcomes[answer()[0]].outcome == "applied"


def test_the_escape_flag_lifts_order_and_attestation() -> None:
    """Ruling C2."""
    assert judged(run_of(attestation="off"), answer()).outcome == "applied"
    run = run_of((path_of("dispatch", SLUG), dispatch_row("other")), attestation="off")
    assert judged(run, order_file("a-r1-a1"), answer()).outcome == "applied"


# --- did its worker run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attestation", "rows", "outcome", "warned"),
    [
        ("auto", b"", "applied", True),
        ("auto", dispatch_row("other"), "rejected", False),
        ("auto", dispatch_row("other", run_id=OTHER_RUN), "applied", True),
        ("auto", dispatch_row("a-r1-a1"), "applied", False),
        ("auto", dispatch_row("a-r1-a1", skill="coach"), "rejected", False),
        ("auto", dispatch_row("a-r1-a1", at="2026-04-05T09:59:59.999Z"), "rejected", False),
        ("require", b"", "rejected", False),
        ("warn", dispatch_row("other"), "applied", True),
        ("off", dispatch_row("other"), "applied", False),
    ],
)
def test_attestation_is_required_as_the_setting_says(
    attestation: Attestation, rows: bytes, outcome: str, warned: bool
) -> None:
    """R-02, ruling C3."""
    run = run_of((path_of("dispatch", SLUG), rows), attestation=attestation)
    told = judged(run, order_file("a-r1-a1"), answer())
    assert (told.outcome, told.code) == (outcome, None if outcome == "applied" else "E-UNATTESTED")
    assert ([fault.code for fault in told.warnings] == ["E-UNATTESTED"]) is warned
    if outcome == "applied":
        assert run.rows("legs")[0]["attested"] is (rows == dispatch_row("a-r1-a1"))


def test_a_standalone_order_needs_no_receipt() -> None:
    told = judged(run_of(attestation="require"), order_file("a-r1-a1", mode="standalone"), answer())
    assert (told.outcome, told.warnings) == ("applied", ())


def test_a_receipt_that_lands_late_lets_the_result_in() -> None:
    run = run_of(attestation="require")
    assert judged(run, order_file("a-r1-a1"), answer()).outcome == "rejected"
    run.land(path_of("dispatch", SLUG), dispatch_row("a-r1-a1"))
    assert run.outcomes[answer()[0]].outcome == "applied"


# --- was it applied already ------------------------------------------------------------------------------------------


def applied() -> RunInMemory:
    run = run_of()
    assert judged(run, order_file("a-r1-a1"), answer()).outcome == "applied"
    return run


def test_the_same_bytes_are_a_duplicate_for_ever() -> None:
    """W-17."""
    run = applied()
    assert judged(run, answer(status="partial"), answer()).outcome == "duplicate"
    run.restart()
    assert judged(run, answer()).outcome == "duplicate"


def test_new_bytes_supersede_while_no_later_order_of_the_scope_stands() -> None:
    """W-17, ruling C4."""
    run = applied()
    run.land(*order_file("b-r1-a1", compiled_at="2026-04-05T11:00:00.000Z"))
    run.land(*order_file("a-r1-a0", compiled_at="2026-04-05T09:00:00.000Z"))
    assert judged(run, answer(status="partial")).outcome == "superseded"
    assert [row["outcome"] for row in run.rows("ingest-record")] == ["applied", "superseded"]


def test_new_bytes_behind_a_later_order_of_the_scope_are_tampering() -> None:
    """R-21, ruling C4."""
    run = applied()
    run.land(*order_file("a-r1-a2", compiled_at="2026-04-05T11:00:00.000Z"))
    before = run.text(TASK)
    told = judged(run, answer(status="partial"))
    assert (told.outcome, told.code) == ("tampered", "E-TAMPERED")
    assert run.text(TASK) == before
    assert judged(run, answer()).outcome == "duplicate"


def test_a_recompiled_order_is_live_again_although_an_old_result_lies_there() -> None:
    """Rulings B2, C4."""
    run = applied()
    run.land(*order_file("a-r1-a2", compiled_at="2026-04-05T11:00:00.000Z"))
    run.land(*order_file("a-r1-a1", compiled_at="2026-04-05T11:30:00.000Z"))
    assert judged(run, answer(status="partial")).outcome == "superseded"


def test_an_order_id_of_another_run_is_another_identity() -> None:
    """W-17: order ids repeat across runs."""
    row = {"run_id": OTHER_RUN, "order_id": "mail/a-r1-a1", "sha256": "x", "outcome": "applied"}
    run = run_of((path_of("ingest-record", SLUG), as_json(row) + b"\n"))
    assert judged(run, order_file("a-r1-a1"), answer()).outcome == "applied"


def evaluation(stem: str, overall: str) -> tuple[str, bytes]:
    return result_file(stem, verdict={"overall": overall})


def test_a_second_different_verdict_on_one_round_is_refused() -> None:
    """R-05, ruling L3: whatever C4 would allow."""
    run = run_of(order_file("evaluate-r1", "spec-evaluator"), order_file("evaluate-r2", "spec-evaluator"))
    assert judged(run, evaluation("evaluate-r1", "FAIL")).outcome == "applied"
    assert judged(run, evaluation("evaluate-r1", "PASS")).code == "E-EVALUATED"
    run.land(*order_file("evaluate-r1", "spec-evaluator", compiled_at="2026-04-05T11:00:00.000Z"))
    assert run.outcomes[evaluation("evaluate-r1", "PASS")[0]].code == "E-EVALUATED"
    assert judged(run, evaluation("evaluate-r2", "PASS")).outcome == "applied"
    assert judged(run, evaluation("evaluate-r1", "FAIL")).outcome == "duplicate"


# --- adopted: another reducer applied it (D3) ------------------------------------------------------------------------


def leg(**more: object) -> tuple[str, bytes]:
    row = {"run_id": RUN_ID, "order_id": "mail/a-r1-a1", "ingested_at": "2026-04-05T10:00:00.000Z"}
    return path_of("legs", SLUG), as_json(row | more) + b"\n"


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({}, "adopted"),
        ({"ingested_at": "2026-04-05T09:59:59.999Z"}, "applied"),  # before the order was compiled
        ({"ingested_at": None}, "applied"),
        ({"run_id": OTHER_RUN}, "applied"),
        ({"order_id": "mail/b-r1-a1"}, "applied"),
    ],
)
def test_a_leg_of_this_run_and_order_means_adoption(more: dict[str, Any], outcome: str) -> None:
    """W-17, ruling D3."""
    run = run_of(leg(**more))
    before = run.text(TASK)
    assert judged(run, order_file("a-r1-a1"), answer()).outcome == outcome
    assert (run.text(TASK) == before) is (outcome == "adopted")
    assert run.rows("ingest-record")[0]["outcome"] == outcome
    assert judged(run, answer()).outcome == "duplicate"


LOGGED = b"\n\n## Execution Log \xe2\x80\x94 2026-04-05 (mail/a-r1-a1)\n- status: done\n"
DISCOVERED = "\n## Discovered — mail/a-r1-a1 (2026-04-05)\n~ x\n".encode()


@pytest.mark.parametrize(
    ("extra", "outcome"),
    [
        ([(TASK, task_file("TASK-1") + LOGGED)], "adopted"),
        ([(TASK, task_file("TASK-1") + LOGGED.replace(b"\n", b"\r\n"))], "adopted"),
        ([(path_of("discovery-ledger", SLUG), DISCOVERED)], "adopted"),
        ([(TASK, task_file("TASK-1") + LOGGED.replace(b"a-r1", b"b-r1"))], "applied"),
        ([(TASK, task_file("TASK-1") + LOGGED), leg(run_id=OTHER_RUN)], "applied"),
        ([(TASK, task_file("TASK-1") + LOGGED), (path_of("ingest-record", SLUG), b'{"order_id":"x","sha256":"","outcome":"applied"}\n')], "applied"),
    ],
)  # fmt: skip
def test_a_heading_means_adoption_while_no_record_exists(extra: list[tuple[str, bytes]], outcome: str) -> None:
    """W-17, ruling D3: unless a leg of another run explains it."""
    run = run_of(*extra)
    assert judged(run, order_file("a-r1-a1"), answer()).outcome == outcome


@given(st.text(max_size=8), st.text(max_size=8))
def test_no_text_in_a_result_makes_the_next_one_look_adopted(notes: str, line: str) -> None:
    """Ruling L7 keeps D3 honest."""
    forged = "\n## Execution Log — 2026-04-05 (mail/b-r1-a1)\n## Discovered — mail/b-r1-a1 (2026-04-05)\n"
    entry = task_result("TASK-1", notes=notes + forged, status="skipped")
    run = run_of(order_file("a-r1-a1"), order_file("b-r1-a1"))
    judged(run, result_file("a-r1-a1", task_results=[entry], discoveries=[{"marker": "~", "line": line + forged}]))
    del run.tree.files[path_of("ingest-record", SLUG)]
    run.land(path_of("ingest-record", SLUG), b"")
    assert judged(run, answer("b-r1-a1")).outcome == "applied"
    assert json.loads(run.tree.files[path_of("ingest-record", SLUG)])["order_id"] == "mail/b-r1-a1"


def test_a_run_that_is_opened_after_its_first_results_does_not_apply_them_again() -> None:
    """The record then names no run; the receipt that lands later names one. Source: W-17, design §3."""
    run = RunInMemory({TASK: task_file("TASK-1", "Works")})
    assert judged(run, order_file("a-r1-a1", run_id=None), answer()).outcome == "applied"
    before = run.tree.files[TASK]
    run.land(*receipt_file())
    run.restart()
    assert run.outcomes[answer()[0]].outcome == "duplicate"
    assert run.tree.files[TASK] == before
