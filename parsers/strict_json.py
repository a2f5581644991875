"""JSON bytes to values, twice: as JSON.parse reads them, and within our own limits. Source: targets 26, rulings C1, C12, L1.

`parse_lenient` accepts what the reference accepts and serves `validate`. `parse_strict` is the reader of facts: each
hostile input gets ONE stable code. A document with several faults is told the first of this order: size, encoding,
depth, number of containers, JSON, duplicate key, number, surrogate, NUL.

A megabyte of hostile input must stay cheap, so nothing here loops over characters in Python: the text is measured with
C-speed bytes operations before it is parsed, and what is costly (a walk over all numbers, a dump to find half
surrogate pairs) runs only where the text holds something that could make it necessary. Light module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from parsers.faults import Fault

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
# 1 MiB of `[],[],` would cost 25 MB of empty lists. A real document spends 24 bytes and more on each object it holds
# ({"id":"D1","answer":"x"}), so one of 1 MiB stays well below this.
MAX_CONTAINERS = 1 << 16
# The brackets that are looked at for depth: past this many, either the depth or the container limit has been passed.
_BRACKETS_READ = 2 * MAX_CONTAINERS + 2

# Floats on purpose: comparing a float with an integer of 63 bits is slow, and integers compare exactly with these.
_INT64_LOW = -(2.0**63)
_INT64_HIGH = 2.0**63

_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
# Numbers are looked for in the text with each digit as `0` and each exponent as `e`: a plain search, whatever the input.
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789E", b"000000000e")
# CPython reads a number's digits in more than linear time and refuses integers of 4,300 digits with an error of its own.
_LONG_NUMBER = b"0" * 400
_NINETEEN_DIGITS = b"0" * 19
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")

_UTF8 = "save the file as UTF-8 without BOM"


class Parsed(NamedTuple):
    """What a reader returns: `fault` is None and `value` holds the document, or `fault` says why there is none."""

    value: object
    fault: Fault | None


class _NotJson(Exception):
    """A constant that the json module knows and JSON.parse does not."""


def parse_lenient(data: bytes, where: str) -> Parsed:
    """The document as JSON.parse reads it: the last of two equal keys wins, numbers beyond 2^53 become floats.

    Bytes that are not UTF-8 become U+FFFD, as the reference's file reader does; a byte order mark stays and is refused,
    and so are NaN and Infinity. Nesting that overflows the interpreter's stack is refused with E-DEPTH. Never raises.
    """
    text = data.decode("utf-8", "replace")
    try:
        return Parsed(json.loads(text, parse_int=_as_javascript_reads, parse_constant=_refuse_constant), None)
    except json.JSONDecodeError as error:
        return Parsed(None, _not_json(error, where))
    except _NotJson as constant:
        return Parsed(None, _fault("E-JSON", where, f"{constant} is no JSON value", "write null or a string"))
    except RecursionError:
        return Parsed(None, _too_deep(where))


def parse_strict(data: bytes, where: str) -> Parsed:
    """The document within our limits, or one fault. Never raises. Strings hold neither NUL nor half surrogate pairs,
    numbers fit in 64 bits, no object names a key twice, nothing nests deeper than 64 levels."""
    if len(data) > MAX_BYTES:
        what = f"{len(data)} bytes; at most {MAX_BYTES} are read"
        return Parsed(None, _fault("E-TOO-LARGE", where, what, "move long text into a file and name it in `artifacts`"))
    text = _decoded(data)
    if text is None:
        return Parsed(None, _fault("E-ENCODING", where, "the bytes are not UTF-8 without BOM", _UTF8))
    fault = _structure_fault(data, where)
    if fault is not None:
        return Parsed(None, fault)
    zeros = data.translate(_DIGITS_AS_ZERO)
    if _LONG_NUMBER in zeros and _LONG_NUMBER in _outside_strings(data).translate(_DIGITS_AS_ZERO):
        return Parsed(None, _number_fault("a number of 400 digits and more", where))
    # Only a number of 19 digits or one with an exponent can leave 64 bits; text in strings may match and costs a walk.
    return _parse_measured(text, _NINETEEN_DIGITS in zeros or b"0e" in zeros, where)


def _parse_measured(text: str, may_leave_64_bits: bool, where: str) -> Parsed:
    """Parse text whose size, encoding and depth are known to be within the limits."""
    twice: list[str] = []
    constants: list[str] = []

    def as_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs) and not twice:
            twice.append(_first_duplicate(pairs))
        return found

    try:
        value = json.loads(text, object_pairs_hook=as_object, parse_constant=constants.append)
    except json.JSONDecodeError as error:
        return Parsed(None, _not_json(error, where))
    except RecursionError:
        return Parsed(None, _too_deep(where))
    if twice:
        what = f"one object names the key {json.dumps(twice[0][:80])} twice"
        return Parsed(None, _fault("E-DUPLICATE-KEY", where, what, "keep one of the two"))
    if constants:
        return Parsed(None, _number_fault(constants[0], where))
    number = next(_numbers_outside_64_bits(value), None) if may_leave_64_bits else None
    if number is not None:
        return Parsed(None, _number_fault(str(number), where))
    fault = _string_fault(value, text, where)
    return Parsed(None, fault) if fault is not None else Parsed(value, None)


def _string_fault(value: object, text: str, where: str) -> Fault | None:
    """The first string, in a document that is JSON, that no ledger line could carry."""
    if _SURROGATE_ESCAPE.search(text) and not _is_unicode(value):
        what = "a string holds half of a surrogate pair"
        return _fault("E-SURROGATE", where, what, "write the character itself, or both halves")
    # Pairs of backslashes first: an escaped backslash with `u0000` behind it is six harmless characters.
    if "\\u0000" in text.replace("\\\\", "__"):
        return _fault("E-NUL", where, "a string holds the character U+0000", "remove it")
    return None


def _decoded(data: bytes) -> str | None:
    """The text, or None for a byte order mark, UTF-16, UTF-32 or bytes that are not UTF-8.

    A NUL among the first four bytes is how UTF-16 and UTF-32 without a mark look (RFC 4627 §3), and a file whose
    blocks were never written after a crash.
    """
    if data.startswith(_BOMS) or b"\x00" in data[:4]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _outside_strings(data: bytes) -> bytes:
    """The document without its strings. What follows an unclosed quote counts as a string."""
    # Pairs of backslashes first: what is then left before a quote really escapes it.
    bare = data.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    return b" ".join(bare.split(b'"')[::2])


def _structure_fault(data: bytes, where: str) -> Fault | None:
    """E-DEPTH or E-TOO-LARGE from the brackets alone, before anything is built from them."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return None
    brackets = _outside_strings(data).translate(None, _NOT_BRACKETS)
    if max(accumulate(map(_STEP.__getitem__, brackets[:_BRACKETS_READ])), default=0) > MAX_DEPTH:
        return _too_deep(where)
    containers = brackets.count(b"[") + brackets.count(b"{")
    if containers > MAX_CONTAINERS:
        what = f"{containers} arrays and objects; at most {MAX_CONTAINERS} are read"
        return _fault("E-TOO-LARGE", where, what, "split the document, or move the data into a file of its own")
    return None


def _numbers_outside_64_bits(value: object) -> Iterator[int | float]:
    """Numbers that a signed 64-bit integer cannot hold, infinities included, level by level."""
    level: list[object] = [value]
    while level:
        for item in level:
            if (type(item) is int or type(item) is float) and not _INT64_LOW <= item < _INT64_HIGH:
                yield item
        level = _children(level)


def _children(level: list[object]) -> list[object]:
    inner: list[object] = []
    for item in level:
        if type(item) is list:
            inner += item
        elif type(item) is dict:
            inner += item.values()
    return inner


def _is_unicode(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _first_duplicate(pairs: list[tuple[str, object]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _as_javascript_reads(digits: str) -> int | float:
    # 15 digits and a sign are exact in both languages; beyond 2^53 JSON.parse yields the nearest float.
    if len(digits) <= 16:
        return int(digits)
    return float(digits)


def _refuse_constant(name: str) -> object:
    raise _NotJson(name)


def _not_json(error: json.JSONDecodeError, where: str) -> Fault:
    what = f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
    return _fault("E-JSON", f"{where}:{error.lineno}:{error.colno}", what, "write the whole file as one JSON document")


def _too_deep(where: str) -> Fault:
    return _fault("E-DEPTH", where, f"more than {MAX_DEPTH} levels of arrays and objects", "flatten the document")


def _number_fault(number: str, where: str) -> Fault:
    return _fault("E-NUMBER", where, f"{number[:40]} is no 64-bit number", "write it as a string, or leave it out")


_WHY = {
    "E-TOO-LARGE": "facts are read whole, and one must not be able to fill the memory",
    "E-ENCODING": "the two trees are UTF-8; other encodings read differently in each tool",
    "E-JSON": "a fact is one JSON document",
    "E-DEPTH": "no record of the protocol nests that deep, and readers overflow their stack",
    "E-DUPLICATE-KEY": "readers disagree on which of the two counts",
    "E-NUMBER": "such a number reads differently in each tool",
    "E-SURROGATE": "it is no character and cannot be written to a ledger as UTF-8",
    "E-NUL": "it ends a string early in other tools",
}


def _fault(code: str, where: str, what: str, fix: str) -> Fault:
    return Fault(code=code, where=where, what=what, why=_WHY[code], fix=fix)
