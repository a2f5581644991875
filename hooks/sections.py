"""A section of a markdown file, and whether a change keeps it or only lets it grow. Pure. Source: W-09, W-12, design §4, ruling G6.

A section runs from a heading line whose text is the one named, up to the next heading of the same or a higher level.
What stands inside a code fence is no heading. A section that is not there counts as empty. Light module.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from parsers.markdown import BOM, decode, parse_heading, scan_lines

_MAY_MATTER = f"#`~ {BOM}"  # what a heading or a fence begins with


class Heading(NamedTuple):
    """A heading line: its index among the lines, its level and its text."""

    at: int
    level: int
    text: str


class Outline(NamedTuple):
    """A text as lines, each with its line end, and its headings."""

    lines: tuple[str, ...]
    headings: tuple[Heading, ...]


class Span(NamedTuple):
    """The lines `start` to `end` (left out) of a section, and the heading that names it."""

    heading: str
    start: int
    end: int


NOTHING = Outline((), ())


def read_outline(data: bytes | None) -> Outline:
    """The text's lines and headings; None, where no file is, reads as an empty one."""
    if not data:
        return NOTHING
    *ended, last = decode(data).split("\n")
    lines = (*(f"{line}\n" for line in ended), *([last] if last else []))
    # Only these lines can open, close or be anything, so a large text is not walked line by line.
    places = [at for at, line in enumerate(lines) if not at or line[0] in _MAY_MATTER]
    headings = []
    for line in scan_lines([lines[at].removesuffix("\n") for at in places]):
        found = None if line.fenced else parse_heading(line.text)
        if found:
            headings.append(Heading(places[line.at], *found))
    return Outline(lines, tuple(headings))


def spans_of(outline: Outline, names: Collection[str]) -> tuple[Span, ...]:
    """The sections under these headings, in order. One that lies inside another of them is part of that one."""
    spans: list[Span] = []
    opened: Heading | None = None
    for heading in outline.headings:
        if opened and heading.level <= opened.level:
            spans.append(Span(opened.text, opened.at, heading.at))
            opened = None
        if opened is None and heading.text in names:
            opened = heading
    if opened:
        spans.append(Span(opened.text, opened.at, len(outline.lines)))
    return tuple(spans)


def is_kept(before: Outline, after: Outline, name: str) -> bool:
    """Whether every section of that name has the same bytes on both sides (frozen).

    One exception, without which nothing could ever be put behind a frozen section: where it was the file's last one,
    blank lines may follow it once something else does.
    """
    old, new = _texts(before, (name,)), _texts(after, (name,))
    if old.keys() != new.keys():
        return False
    for key, was in old.items():
        now = new[key]
        if was.ends_file and not now.ends_file:
            kept = was.lines[: _settled(was.lines)]
            if not _fit(kept, now.lines[: _settled(now.lines)]):
                return False
        elif was.lines != now.lines:
            return False
    return True


def is_growth(before: Outline, after: Outline, growing: Collection[str], free: Collection[str] = ()) -> bool:
    """Whether the change stays inside the named sections: the `growing` ones start with what they were, trailing blank
    lines aside, the `free` ones hold anything, and every line outside is what it was.

    A section may be created; blank lines before it are then no change of what stands there.
    """
    names = {*growing, *free}
    old, new = _texts(before, names), _texts(after, names)
    for key, was in old.items():
        start = was.lines[: _settled(was.lines)]
        if key[0] in growing and not _fit(start, new[key].lines[: len(start)] if key in new else ()):
            return False
    outside, _ = _outside(before, old, new)
    return _is_same_but_for_seams(outside, *_outside(after, new, old))


def only_grows(before: bytes | None, after: bytes | None) -> bool:
    """Whether the new bytes are the old ones and what follows them; a file that is gone has shrunk."""
    return after is not None and after.startswith(before or b"")


_Key = tuple[str, int]  # the heading's text, and the how manieth section it names


class _Text(NamedTuple):
    """A section's place and lines."""

    span: Span
    lines: tuple[str, ...]
    ends_file: bool


def _texts(outline: Outline, names: Collection[str]) -> dict[_Key, _Text]:
    texts: dict[_Key, _Text] = {}
    counts: dict[str, int] = {}
    for span in spans_of(outline, names):
        number = counts[span.heading] = counts.get(span.heading, -1) + 1
        lines = outline.lines[span.start : span.end]
        texts[span.heading, number] = _Text(span, lines, span.end == len(outline.lines))
    return texts


class _Seam(NamedTuple):
    """Where a section was cut out that the other side does not have, and the blank lines that it ended in."""

    at: int
    blanks: int


def _outside(outline: Outline, own: dict[_Key, _Text], other: dict[_Key, _Text]) -> tuple[list[str], list[_Seam]]:
    """The lines outside the sections, a mark in the place of each that both sides have, and the seams that others left."""
    lines: list[str] = []
    seams: list[_Seam] = []
    at = 0
    for key, text in own.items():
        lines += outline.lines[at : text.span.start]
        at = text.span.end
        if key in other:
            lines.append(f"\n\n{key}")  # no line begins so
        else:
            seams.append(_Seam(len(lines), len(text.lines) - _settled(text.lines)))
    return [*lines, *outline.lines[at:]], seams


def _is_same_but_for_seams(old: Sequence[str], new: Sequence[str], seams: Sequence[_Seam]) -> bool:
    """Whether the lines are the same, blank ones beside a seam aside."""
    was = now = 0
    for seam in seams:
        run = new[now : seam.at]
        run = run[: _settled(run)]
        if not _fit(old[was : was + len(run)], run):
            return False
        blanks = _blanks_at(old, was + len(run))
        if blanks > seam.at - now - len(run) + seam.blanks:
            return False
        was, now = was + len(run) + blanks, seam.at
    return old[was:] == new[now:]


def _fit(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the lines are the same; a file's last line without its end may have got one."""
    if old == new:
        return True
    if not old or len(old) != len(new) or old[-1].endswith("\n"):
        return False
    return old[:-1] == new[:-1] and new[-1].rstrip("\r\n") == old[-1].rstrip("\r")


def _settled(lines: Sequence[str]) -> int:
    """How many lines stand before the blank ones at the end."""
    count = len(lines)
    while count and not lines[count - 1].strip():
        count -= 1
    return count


def _blanks_at(lines: Sequence[str], start: int) -> int:
    """How many blank lines stand there."""
    return next((at for at in range(start, len(lines)) if lines[at].strip()), len(lines)) - start
