"""Envelope files as facts: bytes of an order or a result to a typed fact with its hash. Source: design §2, rulings C1, L2."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from parsers.addresses import MAX_ORDER_ID, slug_of, stem_of
from parsers.envelopes import (
    WorkOrder,
    WorkResult,
    order_errors,
    parse_order,
    parse_result,
    payload_findings,
    result_errors,
)
from parsers.faults import Fault
from parsers.layout import classify, stem_at
from parsers.strict_json import parse_strict

PROTOCOL_SHAPE = "a malformed envelope changes nothing"
ERRORS_SHOWN = 20  # a hostile file can have half a million


class OrderFact(NamedTuple):
    """An admissible order with the hash of its bytes."""

    path: str
    stem: str
    sha256: str
    order: WorkOrder


class ResultFact(NamedTuple):
    """A result whose shape is right, with the hash of its bytes."""

    path: str
    stem: str
    sha256: str
    result: WorkResult
    value: Mapping[str, Any]  # the JSON behind it: field rights tell an empty field from an absent one


class ReadOrder(NamedTuple):
    """An order file as read: the fact, or why it is none. `claimed` is the order_id it names, even when refused."""

    fact: OrderFact | None
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]
    claimed: str | None


class ReadResult(NamedTuple):
    """A result file as read: the fact, or why it is none; or an `abandoned` marker that answers nothing (W-01)."""

    fact: ResultFact | None
    faults: tuple[Fault, ...]
    is_abandoned: bool = False


def sha256_of(data: bytes) -> str:
    """The hash a fact is remembered by."""
    return hashlib.sha256(data).hexdigest()


def read_order(path: str, data: bytes) -> ReadOrder:
    """An order file judged for admission: hostile bytes, shape, place, payload rights."""
    parsed = parse_strict(data, path)
    if parsed.fault:
        return ReadOrder(None, (parsed.fault,), (), None)
    value = parsed.value
    claimed = value.get("order_id") if isinstance(value, dict) else None
    named = claimed if isinstance(claimed, str) else None
    errors = order_errors(value, ERRORS_SHOWN)
    if errors:
        return ReadOrder(None, _shape_faults(path, errors), (), named)
    assert isinstance(value, dict)
    order = parse_order(value)
    misplaced = _misplaced(path, order.order_id)
    faults, warnings = payload_findings(value, path)
    if misplaced or faults:
        return ReadOrder(None, (*misplaced, *faults), tuple(warnings), named)
    return ReadOrder(OrderFact(path, stem_at(path), sha256_of(data), order), (), tuple(warnings), named)


def read_result(path: str, data: bytes) -> ReadResult:
    """A result file judged for its bytes and shape; whose it is, the reducers ask."""
    parsed = parse_strict(data, path)
    if parsed.fault:
        return ReadResult(None, (parsed.fault,))
    value = parsed.value
    if isinstance(value, dict) and value.get("synthetic") is True:
        return ReadResult(None, (), is_abandoned=True)
    errors = result_errors(value, ERRORS_SHOWN)
    if errors:
        return ReadResult(None, _shape_faults(path, errors))
    assert isinstance(value, dict)
    return ReadResult(ResultFact(path, stem_at(path), sha256_of(data), parse_result(value), value), ())


def _shape_faults(path: str, errors: tuple[str, ...]) -> tuple[Fault, ...]:
    """One fault per protocol error text, which is `<json path>: <what>`."""
    faults = []
    for error in errors:
        at, _, what = error.partition(": ")
        faults.append(Fault("E-SCHEMA", f"{path}:{at}", what, PROTOCOL_SHAPE, _shape_fix(at, what, path)))
    return tuple(faults)


def _shape_fix(at: str, what: str, path: str) -> str:
    """What to do about one protocol error. A quoted value comes before the words looked for, so the last ones count."""
    if what.startswith("missing required field "):
        return f"add {what.removeprefix('missing required field ')}; see `shapeupd validate {path}`"
    if what.startswith("expected "):
        types = what.removeprefix("expected ").partition(", got ")[0].split("|")
        return "make it " + " or ".join(_TYPE_WORDS.get(name, name) for name in types)
    _, found, listed = what.rpartition(" not in enum [")
    if found:
        return f"use one of {listed.removesuffix(']')}"
    _, found, pattern = what.rpartition(" does not match pattern ")
    if found:
        return f"match the pattern {pattern}"
    return f"correct {at} and save the file again"


_TYPE_WORDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
}


def _misplaced(path: str, order_id: str) -> tuple[Fault, ...]:
    """An order must lie in its feature's folder under its own stem. Source: rulings C11, L2."""
    place = classify(path)
    where = f"{path}:$.order_id"
    if len(order_id) > MAX_ORDER_ID:
        what = f"{len(order_id)} characters; at most {MAX_ORDER_ID} are read"
        why = "file names are made from it, and a file system takes no longer ones"
        return (Fault("E-ID", where, what, why, "shorten the scope's name"),)
    if place and place.slug != slug_of(order_id):
        what = f'"{order_id}" belongs to feature {slug_of(order_id)}, the file lies in {place.slug}'
        why = "an order opens files only for the run whose folder it lies in"
        return (Fault("E-SLUG", where, what, why, "move the file or correct order_id"),)
    if stem_of(order_id) != stem_at(path):
        what = f'"{order_id}" does not match the file name {stem_at(path)}.json'
        why = "order and result are joined by their file name"
        return (Fault("E-STEM", where, what, why, f"rename the file to {stem_of(order_id)}.json or correct order_id"),)
    return ()
