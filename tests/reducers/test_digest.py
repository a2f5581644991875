"""Output to triples: the protocol's four patterns, Python, pytest, and hostile output. Source: protocol §5.12."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.aegis import AegisTriple, parse_triples, triple_rows
from reducers.digest import MAX_LINE, MAX_MESSAGE, digest

FRAME, TEST, DIAGNOSTIC, MESSAGE = "stack-frame", "test-failure", "compiler-diagnostic", "error-message"


def told(output: str | bytes) -> list[tuple[str | None, int | None, str]]:
    return [triple[:3] for triple in digest(output)]


@pytest.mark.parametrize(
    ("line", "file", "number", "kind"),
    [
        ("    at fn (src/a.js:12:34)", "src/a.js", 12, FRAME),
        ("    at new Foo (src/a.js:1:1)", "src/a.js", 1, FRAME),
        ("    at async f [as g] (C:\\x\\a.js:1:1)", "C:\\x\\a.js", 1, FRAME),
        ("at src/a.js:3:4", "src/a.js", 3, FRAME),
        ("  at <anonymous> (a (b).js:3:4)  ", "a (b).js", 3, FRAME),
        ("at (a.js:1:2)", "(a.js", 1, FRAME),
        ("✗ adds (tests/a.js:12)", "tests/a.js", 12, TEST),
        ("not ok 3 - adds (tests/a.js:9)", "tests/a.js", 9, TEST),
        ("not ok 3 ) x (tests/a.js:9)", "tests/a.js", 9, TEST),
        ("src/x.ts:12:34 - error TS2345: bad", "src/x.ts", 12, DIAGNOSTIC),
        ("src/x.ts:12:34–warning", "src/x.ts", 12, DIAGNOSTIC),
        ("tests/a.py:3: AssertionError", "tests/a.py", 3, TEST),
        ("src/a.py:7: shop.cart.CartError", "src/a.py", 7, TEST),
        ("a.py:7: KeyError: 'x'", "a.py", 7, TEST),
    ],
)
def test_a_line_that_names_a_place(line: str, file: str, number: int, kind: str) -> None:
    (triple,) = digest(line)
    assert triple == AegisTriple(file, number, " ".join(line.split()), kind)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "   ",
        "ok 1 - fine (tests/x.js:1)",
        " ✗ leading space (a.js:1)",
        "✗ ) first (a.js:1)",
        "not okay (a.js:1)",
        "attic (a.js:1:1)",
        "src/x.ts(12,34): error TS2345: bad",
        "src/x.ts:12:34 - errors",
        ":1:2 - error",
        "a.py:3: in f",
        "a.py:3: note",
        "at f (a.js:1:" + "9" * 99 + "x)",
        "at f (a.js:" + "9" * 99 + ":1)",
    ],
)
def test_a_line_that_names_none(line: str) -> None:
    assert digest(line) == ()


def test_a_message_belongs_to_the_next_place_and_stands_alone_where_another_line_comes_first() -> None:
    assert told("TypeError: x is  no function\n\n  at f (a.js:1:1)\n  at g (b.js:2:2)") == [
        ("a.js", 1, "x is no function"),
        ("b.js", 2, "at g (b.js:2:2)"),
    ]
    assert told("Error: alone\nmore\n  at f (a.js:1:1)") == [(None, None, "alone"), ("a.js", 1, "at f (a.js:1:1)")]
    assert told("Error: first\nError: second") == [(None, None, "second")]


def test_messages_are_cut_and_told_once() -> None:
    twice = f"Error: {'x' * 300}\n  at f (a.js:1:1)\r\n" * 2
    assert told(twice) == [("a.js", 1, "x" * MAX_MESSAGE)]


def test_of_a_long_line_only_the_start_is_looked_at() -> None:
    assert told(f"at {'f' * MAX_LINE} (a.js:1:1)") == []
    assert told(f"Error: {'x' * 2 * MAX_LINE}") == [(None, None, "x" * MAX_MESSAGE)]


TRACEBACK = """\
Traceback (most recent call last):
  File "run.py", line 9, in <module>
    main()
    ~~~~^^
  File "shop/cart.py", line 3, in main

    raise KeyError("x")
KeyError: 'x'
"""


def test_of_a_python_traceback_the_innermost_frame_has_the_message_and_comes_first() -> None:
    outer = ("run.py", 9, 'File "run.py", line 9, in <module>')
    assert told(TRACEBACK) == [("shop/cart.py", 3, "KeyError: 'x'"), outer]
    again = "\nDuring handling of the above exception, another exception occurred:\n\n"
    assert told(TRACEBACK + again + TRACEBACK.replace("KeyError: 'x'", "shop.CartError")) == [
        ("shop/cart.py", 3, "KeyError: 'x'"),
        outer,
        ("shop/cart.py", 3, "shop.CartError"),
    ]


def test_a_traceback_that_was_cut_off_still_tells_its_places() -> None:
    cut = TRACEBACK.rpartition("KeyError")[0]
    frames = [
        ("shop/cart.py", 3, 'File "shop/cart.py", line 3, in main'),
        ("run.py", 9, 'File "run.py", line 9, in <module>'),
    ]
    assert told(cut) == frames
    assert told(cut + "  at f (a.js:1:1)") == [*frames, ("a.js", 1, "at f (a.js:1:1)")]
    assert told(cut + "2 tests failed") == frames


def test_a_pytest_failure_has_the_first_of_its_messages() -> None:
    output = """\
    def test_total():
>       assert total() == 2
E       assert 1 == 2
E        +  where 1 = total()

tests/test_cart.py:4: AssertionError
_____ test_other _____
tests/test_cart.py:9: Failed
"""
    assert told(output) == [
        ("tests/test_cart.py", 4, "assert 1 == 2"),
        ("tests/test_cart.py", 9, "tests/test_cart.py:9: Failed"),
    ]


WORDS = [
    "at ",
    "f ",
    "(",
    ")",
    ":1",
    ":2",
    "✗",
    "not ok",
    " - error",
    "Error: ",
    "x",
    '  File "a", line 3',
    "E  ",
    "a.py",
]
WORDS += ["\n", "\r\n", "\x00", "\ud800", "\u2028", " ", "KeyError", "9" * 30]


@given(st.lists(st.sampled_from(WORDS), max_size=30).map("".join) | st.text() | st.binary())
def test_no_output_makes_it_raise_and_every_triple_can_be_carried_by_json(output: str | bytes) -> None:
    found = digest(output)
    assert len({triple[:3] for triple in found}) == len(found)
    for triple in found:
        assert len(triple.core_message) <= MAX_MESSAGE
        assert "\n" not in triple.core_message
        assert (triple.file is None) == (triple.line is None) == (triple.kind == MESSAGE)
    carried = json.dumps(triple_rows(found), ensure_ascii=False).encode()
    assert parse_triples(json.loads(carried)) == found
    assert b"\\u0000" not in carried


@pytest.mark.parametrize("piece", ["1:", "at a ", "(", ":1:1 ", "9", "not ok (", 'File "', "E ", "a.", "\ud800", ": "])
def test_a_megabyte_of_one_hostile_line_or_many_ends(piece: str) -> None:
    """Here a pattern that backtracks would not end at all: each would need more than 10^11 steps."""
    for line in (piece * (1 << 17), "at " + piece * (1 << 17), "✗" + piece * (1 << 17)):
        digest(line)
    whole = piece * (MAX_LINE // len(piece))
    digest("\n".join(["at " + whole, whole, "not ok" + whole] * 150))
