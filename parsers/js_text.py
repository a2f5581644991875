"""JSON text as the reference prints it in its errors: compact, numbers and key order as JavaScript has them. Source: protocol §2.15."""

from __future__ import annotations

import json
import math
import re

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_LARGEST_INDEX = 2**32 - 2


def js_json(value: object) -> str:
    """JSON.stringify of a JSON value. A value nested deeper than the interpreter's stack is told as `…`."""
    try:
        return _render(value)
    except RecursionError:
        return "…"


def js_number(number: int | float) -> str:
    """The number as JavaScript prints it: every number is a double, infinities are null in JSON."""
    if isinstance(number, int):
        if abs(number) <= 2**53:
            return str(number)
        try:
            number = float(number)
        except OverflowError:
            return "null"
    if not math.isfinite(number):
        return "null"
    if number == 0:
        return "0"
    return _shortest(number)


def _render(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case int() | float():
            return js_number(value)
        case list() | tuple():
            return "[" + ",".join([_render(item) for item in value]) + "]"
        case dict():
            return "{" + ",".join([f"{_quoted(str(key))}:{_render(value[key])}" for key in _own_order(value)]) + "}"
        case _:
            return "null"


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isascii():
        return quoted
    return _HALF_PAIR.sub(lambda half: f"\\u{ord(half[0]):04x}", quoted)


def _own_order(record: dict[str, object]) -> list[str]:
    """Keys as JavaScript orders them: array indices first, ascending, then the others as written."""
    indices = [key for key in record if _is_index(key)]
    if not indices:
        return list(record)
    return sorted(indices, key=int) + [key for key in record if not _is_index(key)]


def _is_index(key: str) -> bool:
    return (
        key.isascii()
        and key.isdigit()
        and len(key) <= 10
        and (key == "0" or key[0] != "0")
        and int(key) <= _LARGEST_INDEX
    )


def _shortest(number: float) -> str:
    """Python and JavaScript agree on the shortest digits and differ in where they switch to an exponent."""
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """The digits with the decimal point behind the first `point` of them. Source: ECMA-262, Number::toString."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return f"{digits}{power}" if count == 1 else f"{digits[0]}.{digits[1:]}{power}"
