"""SVG elements as text: escaping, and how much room a text takes. Source: cli §2 `hill --svg`."""

from __future__ import annotations

from collections.abc import Mapping
from unicodedata import east_asian_width

CHAR = 0.602  # the width of a character in a monospaced font, for a size of 1
LABEL = 13  # the size of a label, in pixels

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


def escape(text: str) -> str:
    """The text as XML takes it, in an element or an attribute; what no XML file may hold, or no eye can see, is a `?`."""
    return "".join(_ESCAPES.get(char) or (char if char.isprintable() or char == "\n" else "?") for char in text)


def columns(text: str) -> int:
    """How many characters' room the text takes: a wide one takes two."""
    return len(text) + sum(east_asian_width(char) in "WF" for char in text)


def shorten(text: str, limit: int) -> str:
    """The text in at most so many columns: the middle goes, for names differ at their ends."""
    kept = len(text)
    shown = text
    while columns(shown) > limit:
        kept -= 1
        tail = kept // 2
        shown = f"{text[: kept - tail]}…{text[len(text) - tail :]}"
    return shown


def element(name: str, attributes: Mapping[str, object], inside: str = "") -> str:
    """One element; `inside` is markup already."""
    told = "".join(f' {key}="{escape(str(value))}"' for key, value in attributes.items())
    return f"<{name}{told}>{inside}</{name}>" if inside else f"<{name}{told}/>"


def text_at(
    x: float,
    y: float,
    text: str,
    *,
    classes: str = "ink",
    anchor: str = "start",
    size: int = LABEL,
    weight: str = "",
    after: str = "",
) -> str:
    """One line of text; `after` is markup that goes on behind it."""
    attributes: dict[str, object] = {"class": classes, "x": f"{x:.1f}", "y": f"{y:.1f}", "font-size": size}
    attributes |= {"text-anchor": anchor} if anchor != "start" else {}
    attributes |= {"font-weight": weight} if weight else {}
    return element("text", attributes, escape(text) + after)
