"""Sections of the reports that workers wrote, made fit for a committed file. Source: protocol §5.8, W-33, §1.1."""

from __future__ import annotations

import re

from parsers.markdown import encode, parse_heading, scan_lines

# As parsers/tier_direction.py finds them, whole.
_BOARD_ID = re.compile(r"\bTASK-[A-Za-z0-9][\w.-]*", re.ASCII)
_LOCAL_PATH = re.compile(r"\.shapeup/[^\s`\"'()<>|\]]+")
_ANY_LOCAL = re.compile(r"\.shapeup/(?=\S)")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Markup that goes on until it is closed, so that the rest of a report would not be shown.
_OPEN_ENDED = re.compile(r"<(?=[!?]|/?(?:details|pre|script|style|summary|table|template|textarea)\b)", re.IGNORECASE)
_NEARLY_HEADING = re.compile(
    r" {1,3}#{1,6}(?:[ \t]|\Z)"
)  # a heading to whoever renders the file, though not to our scanner
_DEEPEST = 6


def committed(text: str) -> str:
    """The text as a committed file may hold it: valid UTF-8 without control characters or markup that hides what follows,
    naming no board id and no path of the local tier (W-33)."""
    plain = _OPEN_ENDED.sub("&lt;", _CONTROL.sub("", encode(text).decode("utf-8", "replace")))
    pathless = _ANY_LOCAL.sub("the local tree", _LOCAL_PATH.sub("a local run file", plain))
    return _BOARD_ID.sub("the task", pathless)  # last: what stands in a path's place may complete an id


def find_section(text: str, *names: str, level: int) -> str:
    """The section below the first heading that contains one of the names, the earlier name first; empty where there is none.

    Its lines up to the next heading of the same or a higher level, trimmed, as a committed file may hold them. Its own headings are moved so far down that they
    stay below one of `level`, and a fence that nobody closed is closed, so that the section can forge no other.
    """
    lines = committed(text).split("\n")
    headings = [
        (line.at, *found) for line in scan_lines(lines) if not line.fenced and (found := parse_heading(line.text))
    ]
    for name in names:
        for at, depth, title in headings:
            if name.casefold() in title.casefold():
                end = next((other for other, above, _ in headings if other > at and above <= depth), len(lines))
                return _below(lines[at + 1 : end], level)
    return ""


def _below(lines: list[str], level: int) -> str:
    shown = list(lines)
    depths = []
    for line in scan_lines(lines):
        if not line.fenced and (found := parse_heading(line.text)):
            depths.append((line.at, found[0]))
        elif not line.fenced and _NEARLY_HEADING.match(line.text):
            shown[line.at] = f"    {line.text.lstrip(' ')}"
    down = max(0, level + 1 - min((depth for _, depth in depths), default=_DEEPEST))
    for at, depth in depths:
        shown[at] = "#" * min(depth + down, _DEEPEST) + shown[at].lstrip("#")
    return close_fence("\n".join(shown).strip("\n").rstrip())


def close_fence(text: str) -> str:
    """The text with an end to a code fence that was left open."""
    probe = "\n# end of text"
    last = list(scan_lines((text + probe).split("\n")))[-1]
    if not last.fenced:
        return text
    runs = re.findall(r"^ {0,3}(`{3,}|~{3,})", text, re.MULTILINE)
    for run in sorted(set(runs), key=len, reverse=True):
        if not list(scan_lines((f"{text}\n{run}{probe}").split("\n")))[-1].fenced:
            return f"{text}\n{run}"
    return text
