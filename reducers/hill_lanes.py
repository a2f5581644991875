"""The lower half of the hill picture: one lane for each scope, its phases over time and its stall age. Source: ruling G4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from parsers.times import parse_time
from reducers.hill_curve import PHASE_WORDS, Dot
from reducers.svg_text import element, escape, shorten, text_at

LANE_HEIGHT = 24
_LEFT, _START, _END, _RIGHT = 32, 300, 900, 1048
_NAME_CHARS = 32

Span = tuple[float, float, str]  # from, to (seconds since 1970) and the phase


def render_lanes(dots: Sequence[Dot], now: datetime, top: float, colours: Mapping[str, str]) -> tuple[list[str], float]:
    """The lanes from `top` on, and how high they are; nothing is drawn where no dot is a scope."""
    scopes = [dot for dot in dots if not dot.is_area]
    if not scopes:
        return [], 8
    spans = {dot: tuple(_spans(dot, now)) for dot in scopes}
    until = now.timestamp()
    first = min((span[0] for found in spans.values() for span in found), default=until)
    lines = [text_at(_LEFT, top, "how they came there", classes="dim", size=12)]
    if first < until:
        lines.append(text_at(_START, top, _moment(first), classes="dim", size=11))
        lines.append(text_at(_END, top, _moment(until), classes="dim", size=11, anchor="end"))
    lines.append(text_at(_RIGHT, top, "stalled for", classes="dim", size=12, anchor="end"))
    for index, dot in enumerate(scopes):
        middle = top + (index + 1) * LANE_HEIGHT
        lines.append(text_at(_LEFT, middle + 4, shorten(dot.name, _NAME_CHARS)))
        lines += _lane(dot, spans[dot], middle, first, until, colours)
        told = dot.age or ("" if dot.since or dot.phase == list(PHASE_WORDS)[-1] else "not known")
        lines.append(text_at(_RIGHT, middle + 4, told, classes="ink" if dot.age else "dim", anchor="end"))
    return lines, (len(scopes) + 1) * LANE_HEIGHT + 12


def _spans(dot: Dot, now: datetime) -> Iterator[Span]:
    """What the trail tells, each phase until the next; without a trail the present phase since it began."""
    rows = list(dot.trail)
    if not rows or rows[-1][1] != dot.phase:
        rows += [(dot.since, dot.phase)] if dot.since else []
    moments = [(moment.timestamp(), phase) for at, phase in rows if (moment := parse_time(at))]
    ends = [at for at, _ in moments[1:]] + [now.timestamp()]
    for (start, phase), end in zip(moments, ends[: len(moments)], strict=True):
        yield min(start, now.timestamp()), max(start, min(end, now.timestamp())), phase


def _lane(
    dot: Dot, spans: Sequence[Span], middle: float, first: float, until: float, colours: Mapping[str, str]
) -> Iterator[str]:
    scale = (_END - _START) / (until - first) if until > first else 0.0
    y = f"{middle:.1f}"
    yield element("line", {"class": "faint", "x1": _START, "x2": _END, "y1": y, "y2": y, "stroke-dasharray": "2 4"})
    for start, end, phase in spans:
        left = _START + (start - first) * scale
        width = max((end - start) * scale, 3.0)
        bar: dict[str, object] = {
            "x": f"{min(left, _END - 3.0):.1f}",
            "y": f"{middle - 5:.1f}",
            "width": f"{width:.1f}",
        }
        bar |= {"height": 10, "rx": 2, "fill": colours[phase]}
        told = f"{dot.name}: {PHASE_WORDS[phase]} from {_moment(start)}"
        yield element("rect", bar, f"<title>{escape(told)}</title>")


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
