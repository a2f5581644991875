"""Which set speaks at a gate, what follows, and the rows that record it. Source: protocol §8.3-8.6, F7, W-59, W-60, W-66."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.answers import GATES, ON_MISSING, PRESETS, Answer, AnswerSet
from parsers.round_ledger import Decision
from reducers.gates import (
    AUTO_LEVELS,
    MACHINE_ANSWERS,
    RUN_ANSWERS,
    Candidate,
    OpenGate,
    Resolution,
    choose,
    crossing_of,
    gates_row,
    has_paused,
    ledger_row,
    open_gates,
    render_block,
    required_gates,
    resolution_document,
    resolve,
    verification_document,
    verify,
)

RUN = "cart-20260301T090000Z-00ff00ff"
AT = "2026-03-01T10:00:00.000Z"


def answers_of(*, on_missing: str = "ask", by: str | None = "ada", **answers: Answer) -> AnswerSet:
    return AnswerSet("custom", answers, on_missing, by)  # type: ignore[arg-type]


def machine(answers: AnswerSet | None) -> Candidate:
    return Candidate("file:.shapeup/gate-answers.json", MACHINE_ANSWERS, answers)


def of_run(answers: AnswerSet | None) -> Candidate:
    return Candidate("file:.shapeup/cart/gate-answers.json", RUN_ANSWERS, answers, is_of_run=True)


def preset(name: str) -> Candidate:
    return Candidate(f"preset:{name}", f"preset:{name}", PRESETS[name])


def resolved(gate: str, answers: AnswerSet, run_max_rounds: int | None = None) -> Resolution:
    return resolve(GATES[gate], machine(answers), answers, run_max_rounds)


def row(
    gate: str, status: str, *, round_: object = None, run_id: str | None = RUN, **more: object
) -> dict[str, object]:
    return {"gate": gate, "status": status, "round": round_, "run_id": run_id} | more


# --- which set speaks ------------------------------------------------------------------------------------------------


def test_the_first_set_that_is_there_speaks_alone() -> None:
    """Sets are never merged: what the first does not answer, no later one does."""
    first, second = of_run(answers_of()), machine(answers_of(L0=Answer("proceed")))
    assert choose((first, second), "L0") is first
    assert choose((), "L0") is None


def test_a_broken_set_speaks_too_and_is_not_passed_over() -> None:
    broken = of_run(None)
    assert choose((broken, machine(answers_of())), "L0") is broken


def test_a_paused_gate_is_looked_up_in_the_runs_own_file_first() -> None:
    """W-66: what a person put there after a pause was ignored, because the run was launched with a preset."""
    guarded, own = preset("guarded"), of_run(answers_of(L1b=Answer("proceed")))
    assert choose((guarded, own), "L1b", is_paused=True) is own
    assert choose((guarded, own), "L1b") is guarded
    assert choose((guarded, own), "H", is_paused=True) is guarded
    assert choose((guarded, machine(answers_of(L1b=Answer("proceed")))), "L1b", is_paused=True) is guarded
    assert choose((guarded, of_run(None)), "L1b", is_paused=True) == of_run(None)


def test_a_gate_has_paused_in_its_own_run_and_round() -> None:
    rows = (row("L2", "ask", round_=1), row("L2", "ok", round_=1))
    assert has_paused(rows, "L2", 1, RUN)
    assert not has_paused(rows, "L2", 2, RUN)
    assert not has_paused(rows, "L2", None, RUN)
    assert not has_paused(rows, "L2", 1, "cart-20260401T090000Z-00ff00ff")
    assert not has_paused(rows, "L3", 1, RUN)
    assert has_paused((row("L1b", "ask", run_id=None),), "L1b", None, RUN)  # as the reference writes it


# --- what follows ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("on_missing", ON_MISSING)
def test_a_missing_answer_crosses_only_where_proceed_means_something(gate: str, on_missing: str) -> None:
    """W-59."""
    found = resolved(gate, answers_of(on_missing=on_missing))
    crosses = on_missing == "proceed" and "proceed" in GATES[gate].decisions
    assert found.status == ("ok" if crosses else "abort" if on_missing == "abort" else "ask")
    assert found.decision == ("proceed" if crosses else None)
    assert (found.reason is None) == crosses
    assert ledger_row(found) is None
    assert found.source.endswith(" (on_missing:proceed)") == crosses


@pytest.mark.parametrize(("gate", "decision"), [(gate.id, word) for gate in GATES.values() for word in gate.decisions])
def test_every_valid_decision_crosses_but_ask_and_abort(gate: str, decision: str) -> None:
    found = resolved(gate, AnswerSet("custom", {gate: Answer(decision, "why")}, "ask", "ada"))
    assert found.status == {"ask": "ask", "abort": "abort"}.get(decision, "ok")
    assert resolution_document(found)["decision"] == decision
    assert resolution_document(found)["note"] == "why"
    assert list(resolution_document(found))[-1] == "ok"


@pytest.mark.parametrize(("own", "run", "wanted"), [(2, 3, 2), (5, 3, 3), (5, None, 5), (None, 3, None)])
def test_the_rounds_of_an_answer_never_exceed_those_of_the_run(
    own: int | None, run: int | None, wanted: int | None
) -> None:
    """W-60."""
    found = resolved("L3", answers_of(L3=Answer("loop", None, own)), run)
    assert found.max_rounds == wanted
    assert resolution_document(found).get("max_rounds") == wanted


# --- records ---------------------------------------------------------------------------------------------------------


def test_a_row_of_gates_has_the_protocols_keys_then_ours() -> None:
    """Protocol §2.13; the note of a gate that says nothing is the reason."""
    found = resolved("L4", answers_of(L4=Answer("ask")))
    written = gates_row(found, 2, AT, RUN)
    assert list(written) == ["gate", "status", "decision", "source", "note", "round", "at", "run_id"]
    assert written["note"] == found.reason
    assert (written["round"], written["at"], written["run_id"]) == (2, AT, RUN)


def test_the_four_cells_are_one_line() -> None:
    found = resolved("L0", answers_of(L0=Answer("proceed", "a|b\nc")))
    assert ledger_row(found) == "| L0 | proceed | file:.shapeup/gate-answers.json | a\\|b c |"


def test_a_crossing_is_committed_without_a_local_path() -> None:
    """F7."""
    answers = answers_of(L2=Answer("proceed"))
    by_machine = resolve(GATES["L2"], machine(answers), answers)
    by_run = resolve(GATES["L2"], of_run(answers), answers)
    assert crossing_of(by_machine, 2) == Decision("2", "—", "gate", "GATE L2", "proceed", "file:machine answers (ada)")
    assert crossing_of(by_run, None) == Decision("—", "—", "gate", "GATE L2", "proceed", "file:run answers (ada)")


def test_a_crossing_by_default_is_committed_as_one() -> None:
    found = resolved("L0", answers_of(on_missing="proceed", by=None))
    crossing = crossing_of(found, None)
    assert crossing is not None
    assert crossing.resolved_by == "file:machine answers (on_missing:proceed)"


@pytest.mark.parametrize("decision", ["ask", "abort"])
def test_what_does_not_cross_is_not_committed(decision: str) -> None:
    assert crossing_of(resolved("L0", answers_of(L0=Answer(decision))), 1) is None


def test_the_gates_that_wait_are_those_whose_newest_row_asks() -> None:
    rows = (
        row("L1b", "ask", source="preset:guarded", note="look", at=AT),
        row("L2", "ask", round_=1),
        row("L2", "ask", round_=2),
        row("L2", "ok", round_=1),
        row("H", "ask", run_id="cart-20260401T090000Z-00ff00ff"),
        row("L4", "abort"),
        {"status": "ask"},
    )
    assert open_gates(rows, RUN) == (
        OpenGate("L1b", None, "preset:guarded", "look", AT),
        OpenGate("L2", 2, "", "", None),
    )


# --- the other modes -------------------------------------------------------------------------------------------------


def test_the_gates_of_each_lane() -> None:
    """Protocol §8.5."""
    every = tuple(GATES)
    assert required_gates("unattended", is_tiny=False, has_qa=True) == every
    assert required_gates("auto", is_tiny=False, has_qa=True) == every[:-1]
    assert required_gates("interactive", is_tiny=False, has_qa=False) == tuple(
        gate for gate in every[:-1] if gate != "QA"
    )
    assert {required_gates(level, is_tiny=True, has_qa=True) for level in AUTO_LEVELS} == {("L0", "L4")}


def test_a_set_that_asks_fails_only_where_nobody_is_there() -> None:
    for level in AUTO_LEVELS:
        found = verify(PRESETS["guarded"], level, is_tiny=False, has_qa=True)
        assert (found.reason is None) == (level != "unattended")
        assert found.will_ask[:3] == ("L1b", "H", "L4")


def test_a_set_that_misses_an_answer_fails_anywhere() -> None:
    answers = answers_of(L0=Answer("proceed"))
    found = verify(answers, "interactive", is_tiny=True, has_qa=True)
    assert found.missing == ("L4",)
    assert verification_document("file:x", answers, found)["ok"] is False


def test_the_block_begins_with_the_gate() -> None:
    """Protocol §8.6."""
    block = render_block(GATES["L1b"], {"reason": "lóok\nhere", "valid_decisions": ["proceed"]})
    assert block == '⏸ GATE L1b — Board Review\nreason: "lóok\\nhere"\nvalid_decisions: ["proceed"]'


# --- whatever the set ------------------------------------------------------------------------------------------------

_SETS = st.builds(
    AnswerSet,
    st.just("custom"),
    st.dictionaries(
        st.sampled_from(list(GATES)), st.sampled_from(["proceed", "ask", "abort", "loop", "ship"]).map(Answer)
    ).map(lambda given_: {gate: answer for gate, answer in given_.items() if answer.decision in GATES[gate].decisions}),
    st.sampled_from(ON_MISSING),
    st.none() | st.text(max_size=5),
)


@given(st.sampled_from(list(GATES)), _SETS)
def test_nothing_crosses_with_a_decision_that_its_gate_does_not_know(gate: str, answers: AnswerSet) -> None:
    found = resolved(gate, answers)
    assert (found.status == "ok") == (found.reason is None) == (crossing_of(found, 1) is not None)
    if found.status == "ok":
        assert found.decision in GATES[gate].decisions
        assert found.decision not in ("ask", "abort")
