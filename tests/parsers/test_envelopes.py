"""Envelopes: exact error texts, typed values, field rights, and a fuzzer over every record. Source: protocol §2.3-2.9, §2.15, rulings B8, C1, C6."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers import domain, envelopes, records
from parsers.envelopes import (
    COMPILED_FOR_EVERYONE,
    IN_NO_COLUMN,
    PAYLOAD_RIGHTS,
    RESULT_RIGHTS,
    WorkOrder,
    WorkOrderPayload,
    WorkResult,
    order_errors,
    parse_order,
    parse_result,
    payload_findings,
    result_errors,
    result_right_faults,
)
from parsers.schema import Node, Record, node_of, shape_errors, typed
from parsers.strict_json import parse_strict

DATA = Path(__file__).parent.parent / "data" / "envelopes"
ORDER: dict[str, Any] = json.loads((DATA / "order.json").read_bytes())
RESULT: dict[str, Any] = json.loads((DATA / "result.json").read_bytes())
CASES: list[dict[str, Any]] = json.loads((DATA / "cases.json").read_bytes())


def changed(value: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The value with each dotted path set."""
    result = copy.deepcopy(value)
    for path, new in change.items():
        *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        place: Any = result
        for part in parents:
            place = place[part]
        place[last] = new
    return result


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']} {json.dumps(case['set'])[:60]}")
def test_error_texts_are_the_references(case: dict[str, Any]) -> None:
    is_order = case["kind"] == "order"
    value = changed(ORDER if is_order else RESULT, case["set"])
    assert list((order_errors if is_order else result_errors)(value)) == case["errors"]


def test_an_order_is_typed() -> None:
    order = parse_order(ORDER)
    assert order.order_id == "mail/outbox-r1-a2"
    assert order.substrate is not None
    assert order.substrate.allowed == ("src/outbox/**",)
    assert order.payload.tasks[0].acceptance_criteria[1] == domain.AcceptanceCriterion(
        text="retries", covers=("REQ-2",)
    )
    assert order.payload.trial_history[0].score.db_probe is None
    assert order.payload.bugs == ({"id": "BUG-1"}, "a line of text")
    assert order.payload.scope_id is None


def test_a_result_is_typed() -> None:
    result = parse_result(RESULT)
    assert result.task_results[0].ac_results[1].result == "fail"
    assert result.verdict is not None
    assert isinstance(result.verdict.criteria[0], domain.PassedCriterion)
    assert isinstance(result.verdict.criteria[1], domain.FailedCriterion)
    assert result.deviations == ()


def test_evidence_of_a_megabyte_is_searched_in_linear_time() -> None:
    value = changed(RESULT, {"verdict.criteria.1.evidence": "a" * 1_000_000})
    assert len(result_errors(value)) == 1
    assert result_errors(changed(RESULT, {"verdict.criteria.1.evidence": "a" * 1_000_000 + ":7"})) == ()


# --- field rights ----------------------------------------------------------------------------------------------------


def test_every_worker_has_a_row_and_every_right_is_a_field() -> None:
    node = dict(node_of(WorkOrder).properties)["worker"]
    workers = {*node.enum, *node.unlisted}
    assert set(PAYLOAD_RIGHTS) == set(RESULT_RIGHTS) == workers
    fields = set(WorkOrderPayload.model_fields)
    assert frozenset().union(*PAYLOAD_RIGHTS.values()) | IN_NO_COLUMN == fields
    assert fields >= COMPILED_FOR_EVERYONE
    assert frozenset().union(*RESULT_RIGHTS.values()) <= set(WorkResult.model_fields)


def order_for(worker: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {**ORDER, "worker": worker, "payload": payload}


def test_a_field_of_another_worker_is_refused() -> None:
    faults, warnings = payload_findings(order_for("orient", {"pitch": "p", "tasks": [], "breaker": "outer"}), "o.json")
    assert [fault.code for fault in faults] == ["E-FIELD-RIGHTS"]
    assert '"tasks", "breaker"' in faults[0].what
    assert faults[0].where == "o.json:$.payload"
    assert warnings == ()


def test_a_field_of_nobody_is_tolerated_with_a_warning() -> None:
    faults, warnings = payload_findings(order_for("scope-hammer", {"qa_findings": 3, "round": 1}), "o.json")
    assert faults == ()
    assert ["qa_findings" in warning.what for warning in warnings] == [True]


def test_what_the_reference_compiles_into_every_order_is_tolerated_with_a_warning() -> None:
    payload = {"trial_history": [], "feature": "mail", "decisions": []}
    faults, warnings = payload_findings(order_for("spec-evaluator", payload), "o.json")
    assert faults == ()
    assert ['"trial_history", "decisions"' in warning.what for warning in warnings] == [True]


def test_a_thousand_unknown_fields_make_one_short_warning() -> None:
    faults, warnings = payload_findings(order_for("coach", {f"x{i}": 1 for i in range(1000)}), "o.json")
    assert faults == ()
    assert len(warnings) == 1
    assert "and 980 more" in warnings[0].what


@pytest.mark.parametrize("worker", RESULT_RIGHTS)
@pytest.mark.parametrize(
    ("field", "value"), [("task_results", [{}]), ("discoveries", [{}]), ("verdict", {"overall": "PASS"})]
)
def test_a_result_may_carry_what_its_worker_may_return(worker: str, field: str, value: object) -> None:
    faults = result_right_faults({"status": "done", field: value}, worker, "r.json")
    assert [fault.code for fault in faults] == ([] if field in RESULT_RIGHTS[worker] else ["E-FIELD-RIGHTS"])
    assert result_right_faults({"status": "done", field: type(value)(), "surprise": 1}, worker, "r.json") == ()


def test_a_result_of_another_worker_is_told_once() -> None:
    value = {"worker": "orient", "verdict": {"overall": "PASS"}}
    assert [fault.code for fault in result_right_faults(value, "coach", "r.json")] == ["E-WORKER"]
    assert result_right_faults({"worker": "coach"}, "coach", "r.json") == ()
    assert result_right_faults({}, "coach", "r.json") == ()


# --- fuzzing: 300 examples in the suite, SHAPEUP_FUZZ_EXAMPLES for more ----------------------------------------------

fuzzed = settings(max_examples=int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "300")), deadline=None)

MODELS = sorted(
    {
        model
        for module in (domain, envelopes, records)
        for model in vars(module).values()
        if isinstance(model, type) and issubclass(model, Record) and model is not Record
    },
    key=lambda model: model.__name__,
)
SCALARS = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        -1,
        2.0,
        1.5,
        1e18,
        2**63 - 1,
        "",
        "x",
        "done",
        "PASS",
        "a/b",
        "src/a.py:1",
        [],
        {},
        [1],
        {"id": 1},
    ]
)
ANY_JSON = st.recursive(
    SCALARS | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e18, 1e18) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def fitting(node: Node) -> st.SearchStrategy[Any]:
    """Values that the node accepts."""
    if node.any_of:
        return st.one_of([fitting(branch) for branch in node.any_of])
    if node.enum:
        return st.sampled_from([*node.enum, *node.unlisted])
    if node.pattern is not None:
        return st.from_regex(node.pattern.accepts).filter(lambda text: "\x00" not in text)
    return st.one_of([of_type(node, name) for name in node.types]) if node.types else ANY_JSON


def of_type(node: Node, name: str) -> st.SearchStrategy[Any]:
    match name:
        case "string":
            return st.text(max_size=8)
        case "integer":
            return st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**40), 2**40).map(float)
        case "number":
            return st.integers(-9, 9) | st.floats(-1e9, 1e9)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            return st.lists(fitting(node.items) if node.items is not None else ANY_JSON, max_size=3)
    required = {name: fitting(inner) for name, inner in node.properties if name in node.required}
    optional = {name: fitting(inner) for name, inner in node.properties if name not in node.required}
    return st.fixed_dictionaries(required, optional=optional)


FITTING = {model: fitting(node_of(model)) for model in MODELS}


@st.composite
def mutated(draw: st.DrawFn, value: Any) -> Any:
    """The value with up to three places replaced, removed or added."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(0, 3))):
        place = value
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from(keys)) if keys else None
            inner = place[key] if key is not None else None
            if not (isinstance(inner, dict | list) and inner and draw(st.booleans())):
                break
            place = inner
        change = draw(st.sampled_from(["replace", "remove", "add"]))
        if change == "add" or key is None:
            new = copy.deepcopy(draw(ANY_JSON))  # sampled lists are shared: a later round may write into this one
            place.append(new) if isinstance(place, list) else place.__setitem__(draw(st.text(max_size=5)), new)
        elif change == "remove":
            del place[key]
        else:
            place[key] = copy.deepcopy(draw(ANY_JSON))
    return value


def judge(model: type[Record], value: Any) -> tuple[str, ...]:
    """Errors of the value; what has none can be typed, whether or not strict reading stands between."""
    errors = shape_errors(model, value)
    assert errors[:1] == shape_errors(model, value, limit=1)
    if not errors:
        typed(model, value)
        read = parse_strict(json.dumps(value).encode(), "fuzz.json")
        if read.fault is None:
            typed(model, read.value)
    return errors


@pytest.mark.parametrize("model", [WorkOrder, WorkResult])
@fuzzed
@given(st.data())
def test_a_mutated_envelope_never_raises_and_is_typed_when_it_has_the_shape(
    model: type[Record], data: st.DataObject
) -> None:
    value = data.draw(mutated(ORDER if model is WorkOrder else RESULT))
    errors = judge(model, value)
    if model is WorkOrder and not errors:
        payload_findings(value, "o.json")
    if model is WorkResult and not errors:
        result_right_faults(value, "task-executor", "r.json")


@fuzzed
@given(st.sampled_from(MODELS), st.data())
def test_a_value_made_from_a_model_has_its_shape_and_is_typed(model: type[Record], data: st.DataObject) -> None:
    value = data.draw(FITTING[model])
    assert judge(model, value) == ()
    judge(model, data.draw(mutated(value)))


@fuzzed
@given(ANY_JSON)
def test_arbitrary_json_never_raises(value: Any) -> None:
    judge(WorkOrder, value)
    judge(WorkResult, value)
