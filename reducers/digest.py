"""Error output to triples: where, and what it said. Source: protocol §5.12.

The four patterns of the protocol come first and answer as they always did; Python tracebacks and pytest lines are read only
where none of them matches. Each line is looked at in linear time, so hostile output costs no more than other output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from parsers.aegis import AegisTriple

MAX_MESSAGE = 200
MAX_LINE = 2048  # characters of a line that are looked at

_FRAME_HEAD = re.compile(r"[\w.$<>\[\] ]+", re.ASCII)
_FRAME_PLACE = re.compile(r"(?P<head>.*):(?P<line>[0-9]+):[0-9]+\Z")
_TEST_PLACE = re.compile(r"(?P<head>.*):(?P<line>[0-9]+)\)\Z")
_NOT_OK = re.compile(r"not ok\b", re.ASCII)
_DIAGNOSTIC = re.compile(r":(?P<line>[0-9]+):[0-9]+\s*[-–]\s*(?:error|warning)\b")
_ERROR = re.compile(r"\s*(?:Error|TypeError|ReferenceError|AssertionError)\s*:\s*(?P<message>\S.*)")
_PYTHON_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>[0-9]+)')
_PYTHON_ERROR = re.compile(r"[^\W\d][\w.]*(?::\s.*)?\Z")
_PYTEST_PLACE = re.compile(r"(?P<file>[^\s:][^:]*):(?P<line>[0-9]+): (?P<error>[^\W\d][\w.]*)(?:: .*)?\Z")
_PYTEST_MESSAGE = re.compile(r"E\s+(?P<message>\S.*)")
_ERROR_NAME = ("Error", "Exception", "Failed", "Exit", "Interrupt", "Warning", "Group", "StopIteration")
MAX_DIGITS = 15  # a line number with more is none


class _Place(NamedTuple):
    file: str
    line: int
    kind: str


def digest(output: str | bytes) -> tuple[AegisTriple, ...]:
    """The errors in a command's output in their order, each once. Never raises; bytes that are not UTF-8 become U+FFFD.

    A message without a place has file and line None. Of a Python traceback the innermost frame, which carries the message,
    comes first, as it does where other languages print it first.
    """
    found: dict[tuple[str | None, int | None, str], AegisTriple] = {}
    for triple in _triples(_readable(output)):
        found.setdefault(triple[:3], triple)
    return tuple(found.values())


def _readable(output: str | bytes) -> str:
    """The output as text that a JSON document can carry."""
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\x00", "\ufffd")


def _triples(text: str) -> Iterator[AegisTriple]:
    held = _Held()
    for raw in text.split("\n"):
        line = raw[:MAX_LINE]
        if not line.strip():
            continue
        if place := _place(line):
            yield from held.flush_python()
            yield AegisTriple(place.file, place.line, held.take_message() or _one_line(line), place.kind)
        elif held.is_in_traceback and (python := held.python(line)) is not None:
            yield from python
        elif found := _ERROR.match(line):
            held.message = _one_line(found["message"])
        else:
            yield from held.flush()
            yield from held.unmatched(line)
    yield from held.flush()


class _Held:
    """What was read and waits for the line that completes it."""

    def __init__(self) -> None:
        self.message: str | None = None  # of an error whose place is still to come
        self._frames: list[AegisTriple] = []  # of a Python traceback, outermost first
        self._pytest: str | None = None  # the first `E` line of a failing test

    @property
    def is_in_traceback(self) -> bool:
        return bool(self._frames)

    def take_message(self) -> str | None:
        message, self.message = self.message, None
        return message

    def flush(self) -> Iterator[AegisTriple]:
        """What waits and will not be completed."""
        yield from self.flush_python()
        if message := self.take_message():
            yield AegisTriple(None, None, message, "error-message")

    def flush_python(self, message: str | None = None) -> Iterator[AegisTriple]:
        """The frames of a traceback, innermost first; the message is that one's."""
        frames, self._frames = self._frames, []
        for position, frame in enumerate(reversed(frames)):
            yield frame._replace(core_message=message) if message and position == 0 else frame

    def python(self, line: str) -> Iterator[AegisTriple] | None:
        """What a line of a traceback comes to; None: the traceback has ended before it."""
        if self._is_frame(line) or line[0].isspace():
            return iter(())
        if _PYTHON_ERROR.match(line.rstrip()):
            return self.flush_python(_one_line(line))
        return None

    def unmatched(self, line: str) -> Iterator[AegisTriple]:
        """A line that the protocol's patterns do not know: Python's and pytest's are."""
        if self._is_frame(line):
            return
        if found := _PYTEST_MESSAGE.match(line):
            self._pytest = self._pytest or _one_line(found["message"])
        elif (found := _PYTEST_PLACE.match(line.rstrip())) and found["error"].endswith(_ERROR_NAME):
            message, self._pytest = self._pytest or _one_line(line), None
            if (number := _number(found["line"])) is not None:
                yield AegisTriple(found["file"], number, message, "test-failure")

    def _is_frame(self, line: str) -> bool:
        found = _PYTHON_FRAME.match(line)
        number = _number(found["line"]) if found else None
        if found is None or number is None:
            return False
        self._frames.append(AegisTriple(found["file"], number, _one_line(line), "stack-frame"))
        return True


def _one_line(text: str) -> str:
    return " ".join(text.split())[:MAX_MESSAGE]


def _number(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_DIGITS else None


def _place(line: str) -> _Place | None:
    return _stack_frame(line) or _test_failure(line) or _diagnostic(line)


def _stack_frame(line: str) -> _Place | None:
    """`at f (file:line:column)` or `at file:line:column`."""
    text = line.strip()
    if not text.startswith("at") or not text[2:3].isspace():
        return None
    found = _FRAME_PLACE.match(text[3:].lstrip().removesuffix(")"))
    if found is None:
        return None
    head = found["head"]
    name, bracket, file = head.partition("(")
    is_named = bracket and name[-1:].isspace() and _FRAME_HEAD.fullmatch(name.rstrip()) and file
    return _at(file if is_named else head, found["line"], "stack-frame")


def _test_failure(line: str) -> _Place | None:
    """`✗ name (file:line)` or `not ok … (file:line)`."""
    text = line.rstrip()
    if text.startswith("✗"):
        name, bracket, rest = text.partition("(")
        bracket = "" if ")" in name else bracket
    elif _NOT_OK.match(text):
        _, bracket, rest = text.partition("(")
    else:
        return None
    found = _TEST_PLACE.match(rest) if bracket else None
    return _at(found["head"], found["line"], "test-failure") if found else None


def _diagnostic(line: str) -> _Place | None:
    """`file:line:column - error …`."""
    found = _DIAGNOSTIC.search(line, 1)
    return _at(line[: found.start()], found["line"], "compiler-diagnostic") if found else None


def _at(file: str, digits: str, kind: str) -> _Place | None:
    line = _number(digits)
    return _Place(file, line, kind) if file and line is not None else None
