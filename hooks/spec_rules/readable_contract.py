"""CONTRACT-UNREADABLE: a committed contract reads as a whole, or every part that does not is named. Source: protocol §10.5, §5.2, ruling E9.

Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator

from hooks.verdict import Violation
from parsers.contracts import ParsedContract, Unreadable, unreadable_clause
from parsers.markdown import BOM

RULE = "CONTRACT-UNREADABLE"
_WHY = "what does not read counts as absent, and orders, T0 and the gate would go on without it"
_LONGEST_CLAUSE = 300


def judge_readable(path: bytes, text: str, contract: ParsedContract) -> Iterator[Violation]:
    """One finding for every part of the contract that cannot be read, by line."""
    if not text.isascii() and any("\udc80" <= char <= "\udcff" for char in text):
        line = text.count("\n", 0, next(at for at, char in enumerate(text) if "\udc80" <= char <= "\udcff")) + 1
        yield unreadable(path, f"line {line}: the bytes are not UTF-8", "save the file as UTF-8")
    if contract.fault:
        yield unreadable(path, contract.fault.what, contract.fault.fix)
    elif not contract.has_frontmatter and _looks_like_frontmatter(text):
        what = "the frontmatter is not read: it must begin at the first byte and end with a line `---`"
        yield unreadable(path, what, "remove what stands before the first `---`, and close the block with `---`")
    for key, line in contract.doubled:
        what = f"line {line}: `{key}` stands in the frontmatter a second time"
        yield unreadable(path, what, "keep one of the two: readers differ in which one counts")
    for part in contract.unreadable:
        yield unreadable(path, f"line {part.line}: {unreadable_clause(part)}", _fix(part))


def _looks_like_frontmatter(text: str) -> bool:
    """Whether the first line that is not blank opens a block; the reader takes such a text for body alone."""
    return text[:4096].lstrip(BOM + " \t\r\n").replace("\r", "\n").partition("\n")[0].rstrip() == "---"


def _fix(part: Unreadable) -> str:
    match part.case:
        case "both":
            return f"write all of it after `{part.field}:`, or leave that line empty and indent one `- item` a line below it"
        case "indented":
            return f"write `{part.field}: [a, b]`, or indent one `- item` a line below it"
        case "section":
            return f"move it into the frontmatter: `{part.field}: [a, b]`, or one indented `- item` a line"
        case "use-cases":
            return f"write one table under `## {part.expected_heading}`, with the columns use_case and engine"
        case _:
            return f"put the table under a heading that reads exactly `## {part.expected_heading}`"


def unreadable(path: bytes, what: str, fix: str) -> Violation:
    """A finding of this rule; what the file says is shown with control characters escaped, and cut."""
    return Violation(RULE, path, None, printable(what), _WHY, printable(fix))


def printable(text: str) -> str:
    """Text of a file for people and JSON: no control characters, no half surrogates, no end without an end."""
    cut = text if len(text) <= _LONGEST_CLAUSE else text[:_LONGEST_CLAUSE] + "…"
    return cut if cut.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in cut)


def _escape(char: str) -> str:
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")
