"""Answer sets: three presets, and files that answer nothing unless every word of them means something. Source: protocol §8.1, §8.2, W-58."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.answers import (
    GATES,
    ON_MISSING,
    PRESETS,
    Answer,
    AnswerSet,
    answers_document,
    parse_answers,
    render_answers,
    run_max_rounds,
)
from parsers.faults import CODES

WHERE = ".shapeup/gate-answers.json"


def document(**more: Any) -> dict[str, Any]:
    return {"version": 1, "preset": "custom", "answers": {}} | more


def parsed(value: object) -> tuple[AnswerSet | None, list[str]]:
    answers, faults = parse_answers(json.dumps(value).encode(), WHERE)
    assert all(fault.code in CODES and fault.where.startswith(WHERE) and fault.fix for fault in faults)
    assert (answers is None) == bool(faults)
    return answers, [fault.where.removeprefix(f"{WHERE}:") for fault in faults]


def answered(gate: str, **answer: Any) -> list[str]:
    """Where the faults of a set with this one answer are."""
    return parsed(document(answers={gate: answer}))[1]


# --- the table -------------------------------------------------------------------------------------------------------


def test_the_presets_answer_every_gate_with_what_the_table_says() -> None:
    """Protocol §8.1."""
    table = {name: [answer.decision for answer in one.answers.values()] for name, one in PRESETS.items()}
    proceed = ["proceed"] * 3
    assert table["ci"] == [*proceed, "proceed", "proceed", "loop", "run", "accept-cut-list", "ship", "skip"]
    assert table["guarded"] == [*proceed, "ask", "proceed", "loop", "run", "ask", "ask", "ask"]
    assert table["interactive"] == ["ask"] * len(GATES)
    assert all(list(one.answers) == list(GATES) for one in PRESETS.values())
    assert [one.on_missing for one in PRESETS.values()] == ["abort", "ask", "ask"]
    assert [one.authorized_by for one in PRESETS.values()] == [
        "unattended lane (--unattended)",
        "auto lane (--auto)",
        None,
    ]


def test_only_the_verdict_gate_of_a_preset_limits_rounds() -> None:
    limits = {
        gate: answer.max_rounds for one in PRESETS.values() for gate, answer in one.answers.items() if answer.max_rounds
    }
    assert limits == {"L3": 3}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_written_to_a_file_is_read_as_itself(preset: str) -> None:
    assert parse_answers(render_answers(PRESETS[preset]), WHERE) == (PRESETS[preset], ())


def test_what_is_not_said_has_no_key() -> None:
    said = answers_document(PRESETS["interactive"])
    assert "authorized_by" not in said
    assert said["answers"]["COACH-1"] == {"decision": "ask"}  # type: ignore[index]


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_file_without_on_missing_asks() -> None:
    answers, _ = parsed(document(answers={"L0": {"decision": "proceed"}}))
    assert answers == AnswerSet("custom", {"L0": Answer("proceed")})


def test_everything_a_file_may_say() -> None:
    escalation = {"default": "conservative", "budget_per_scope_per_round": 3}
    given_ = {"decision": "loop", "note": "twice", "max_rounds": 2.0}
    answers, _ = parsed(
        document(
            preset="guarded", authorized_by="ada", on_missing="proceed", escalation=escalation, answers={"L3": given_}
        )
    )
    assert answers == AnswerSet("guarded", {"L3": Answer("loop", "twice", 2)}, "proceed", "ada")


@pytest.mark.parametrize(
    ("gate", "decision"),
    [(gate, word) for gate in GATES for word in ("proceed", "loop", "ship", "hold", "abort", "skip", "")],
)
def test_a_decision_that_its_gate_does_not_know_is_refused(gate: str, decision: str) -> None:
    """Among them `proceed` at L4: valid at its neighbours, and it would ship."""
    wanted = [] if decision in GATES[gate].decisions else [f"$.answers.{gate}.decision"]
    assert answered(gate, decision=decision) == wanted


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([], ["$"]),
        (None, ["$"]),
        ("x", ["$"]),
        ({}, ["$.version", "$.preset", "$.answers"]),
        (document(version=2), ["$.version"]),
        (document(version=True), ["$.version"]),
        (document(version="1"), ["$.version"]),
        (document(preset="mine"), ["$.preset"]),
        (document(preset=["ci"]), ["$.preset"]),
        (document(on_missing="skip"), ["$.on_missing"]),
        (document(on_missing=None), ["$.on_missing"]),
        (document(authorized_by=7), ["$.authorized_by"]),
        (document(escalation=[]), ["$.escalation"]),
        (document(escalation={"mode": 1}), ["$.escalation.mode"]),
        (document(answers=[]), ["$.answers"]),
        (document(anwsers={}), ["$.anwsers"]),
        (document(answers={"L9": {"decision": "proceed"}}), ["$.answers.L9"]),
        (document(answers={"l0": {"decision": "proceed"}}), ["$.answers.l0"]),
        (document(answers={"L0": "proceed", "L4": None, "H": {}}), ["$.answers.L0", "$.answers.L4", "$.answers.H"]),
    ],
)
def test_what_is_wrong_with_a_set_is_told_in_full(value: object, where: list[str]) -> None:
    assert parsed(value) == (None, where)


@pytest.mark.parametrize("rounds", [0, -1, 1.5, True, "3", None])
def test_rounds_are_a_whole_number_of_at_least_one(rounds: object) -> None:
    """W-58: the reference takes 0 and drops it."""
    assert answered("L3", decision="loop", max_rounds=rounds) == ["$.answers.L3.max_rounds"]


def test_rounds_mean_something_at_the_verdict_gate_alone() -> None:
    assert answered("L0", decision="proceed", max_rounds=2) == ["$.answers.L0.max_rounds"]


def test_notes_are_text_and_answers_hold_nothing_else() -> None:
    """W-58."""
    assert answered("L0", decision="proceed", note=["x"]) == ["$.answers.L0.note"]
    assert answered("L0", decision="proceed", by="ada") == ["$.answers.L0.by"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (
            b'{"version":1,"preset":"ci","answers":{"L4":{"decision":"ask"},"L4":{"decision":"ship"}}}',
            "E-DUPLICATE-KEY",
        ),
        (b'{"version":1,"preset":"ci","answers":{}', "E-JSON"),
        (b'{"version":1e999}', "E-NUMBER"),
        (b"\xef\xbb\xbf{}", "E-ENCODING"),
        (b"[" * 100, "E-DEPTH"),
        (b'{"a":"' + b"x" * (1 << 20) + b'"}', "E-TOO-LARGE"),
        (b'{"a":"\\ud800"}', "E-SURROGATE"),
        (b"", "E-JSON"),
    ],
)
def test_hostile_json_answers_nothing(data: bytes, code: str) -> None:
    answers, faults = parse_answers(data, WHERE)
    assert (answers, [fault.code for fault in faults]) == (None, [code])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_ANSWERS = st.dictionaries(
    st.sampled_from([*GATES, "L9"]),
    _JSON
    | st.fixed_dictionaries(
        {"decision": st.sampled_from([*{word for gate in GATES.values() for word in gate.decisions}]) | _JSON},
        optional={"note": _JSON, "max_rounds": _JSON, "x": _JSON},
    ),
    max_size=4,
)
_SETS = st.fixed_dictionaries(
    {
        "version": st.just(1) | _JSON,
        "preset": st.sampled_from([*PRESETS, "custom"]) | _JSON,
        "answers": _ANSWERS | _JSON,
    },
    optional={
        "on_missing": st.sampled_from(ON_MISSING) | _JSON,
        "authorized_by": _JSON,
        "escalation": _JSON,
        "x": _JSON,
    },
)


@given(_SETS | _JSON)
def test_a_set_that_is_read_says_only_what_its_gates_know_and_survives_a_file(value: object) -> None:
    answers, faults = parse_answers(json.dumps(value).encode(), WHERE)
    assert (answers is None) == bool(faults)
    if answers is not None:
        assert all(answer.decision in GATES[gate].decisions for gate, answer in answers.answers.items())
        assert parse_answers(render_answers(answers), WHERE) == (answers, ())


@given(st.binary(max_size=80))
def test_any_bytes_end_in_a_set_or_in_faults(data: bytes) -> None:
    answers, faults = parse_answers(data, WHERE)
    assert (answers is None) == bool(faults)


@pytest.mark.parametrize(
    ("receipt", "rounds"),
    [
        ({"config": {"max_rounds": 5}}, 5),
        ({"config": {"max_rounds": 0}}, 3),
        ({"config": {"max_rounds": True}}, 3),
        ({"config": []}, 3),
        ({}, 3),
        (None, 3),
    ],
)
def test_a_run_has_three_rounds_where_its_receipt_says_nothing_usable(receipt: object, rounds: int) -> None:
    assert run_max_rounds(receipt) == rounds
