"""Every recorded envelope gets the reference's verdict and texts; every envelope of the runs is admitted. Source: protocol §2.15, rulings B8, C1, C6."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parsers.domain import TrialRow
from parsers.envelopes import (
    order_errors,
    parse_order,
    parse_result,
    payload_findings,
    result_errors,
    result_right_faults,
)
from parsers.faults import CODES
from parsers.records import (
    ActiveOrderPointer,
    ActiveScopePointer,
    DecisionRow,
    DispatchReceipt,
    GateRow,
    LegRow,
    Receipt,
    RunArgs,
    SeesawRegistry,
    T0Artifact,
    VerdictLedgerLine,
)
from parsers.schema import Record, shape_errors, typed
from parsers.strict_json import parse_lenient, parse_strict

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("SHAPEUP_CORPUS", ROOT.parent / "shared" / "corpus"))

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus at {CORPUS} (set SHAPEUP_CORPUS)"),
]


def recorded() -> dict[str, dict[str, Any]]:
    answers = CORPUS / "envelopes" / "expected.json"
    return json.loads(answers.read_bytes()) if answers.is_file() else {}


def errors_of(answer: dict[str, Any], value: object) -> tuple[str, ...]:
    return order_errors(value) if answer["schema"].startswith("work-order") else result_errors(value)


def facts(kind: str) -> Iterator[Path]:
    for base in ("runs/*", "replay/*/before"):
        yield from sorted(CORPUS.glob(f"{base}/.shapeup/*/{kind}/*.json"))


def shaped(path: Path) -> dict[str, Any] | None:
    """The envelope as ingest reads it, or None where it does not parse or lacks the shape."""
    value: Any = parse_strict(path.read_bytes(), path.name).value
    errors = order_errors if path.parent.name == "orders" else result_errors
    return None if errors(value) else value


@pytest.mark.parametrize("name", recorded())
def test_verdict_and_texts_are_the_references(name: str) -> None:
    answer = recorded()[name]
    parsed = parse_lenient((CORPUS / "envelopes" / name).read_bytes(), name)
    if answer.get("unparseable"):
        assert parsed.fault is not None
        assert not answer["valid"]
        return
    assert parsed.fault is None
    errors = errors_of(answer, parsed.value)
    assert list(errors) == answer["errors"]
    assert (not errors) == answer["valid"]


def test_what_ingest_refuses_beyond_the_schema_is_listed_with_a_code() -> None:
    """Prints, with -s, the files that `validate` accepts and admission or ingest would refuse."""
    for name, answer in recorded().items():
        if not answer["valid"]:
            continue
        parsed = parse_strict((CORPUS / "envelopes" / name).read_bytes(), name)
        value: Any = parsed.value
        if parsed.fault is not None:
            faults: tuple[Any, ...] = (parsed.fault,)
        elif name.startswith("orders/"):
            faults = payload_findings(value, name)[0]
            parse_order(value)
        else:
            # The recorded results stand alone: each is taken to answer an order for the worker it names.
            faults = result_right_faults(value, value.get("worker", "task-executor"), name)
            parse_result(value)
        for fault in faults:
            print(f"stricter: {fault.where}: {fault.code} {fault.what}")
            assert fault.code in CODES


def test_every_order_of_the_runs_that_has_the_shape_is_admitted() -> None:
    for path in facts("orders"):
        value = shaped(path)
        if value is not None:
            parse_order(value)
            assert payload_findings(value, str(path))[0] == ()


def test_no_result_of_the_runs_claims_more_than_its_worker_may() -> None:
    for path in facts("results"):
        value = shaped(path)
        order_path = path.parent.parent / "orders" / path.name
        order = shaped(order_path) if order_path.is_file() else None
        if value is not None and order is not None:
            parse_result(value)
            assert result_right_faults(value, order["worker"], str(path)) == ()


RECORDS: dict[str, type[Record]] = {
    ".shapeup/active-scope": ActiveScopePointer,
    ".shapeup/active-order": ActiveOrderPointer,
    ".shapeup/decisions.jsonl": DecisionRow,
    ".shapeup/*/receipt.json": Receipt,
    ".shapeup/*/run-args.json": RunArgs,
    ".shapeup/*/t0/verdicts/*.json": T0Artifact,
    ".shapeup/*/t0/trials.jsonl": TrialRow,
    ".shapeup/*/seesaw/registry.json": SeesawRegistry,
    ".shapeup/*/receipts/dispatch.jsonl": DispatchReceipt,
    ".shapeup/*/legs.jsonl": LegRow,
    ".shapeup/*/gates.jsonl": GateRow,
    ".shapeup/*/evaluation/.verdicts-*.jsonl": VerdictLedgerLine,
}


@pytest.mark.parametrize("pattern", RECORDS)
def test_every_record_of_the_runs_has_its_models_shape(pattern: str) -> None:
    model = RECORDS[pattern]
    for path in CORPUS.glob(f"runs/*/{pattern}"):
        data = path.read_bytes()
        for document in data.splitlines() if path.suffix == ".jsonl" else [data]:
            if document.strip():
                value = parse_strict(document, str(path)).value
                assert shape_errors(model, value) == (), path
                typed(model, value)
