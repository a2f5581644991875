"""The hill as an SVG picture: the curve with a dot for each scope, and below it how each came there. Source: cli §2 `hill --svg`, G4.

One file that needs nothing else: no script, no font, no reference; every foreign text is escaped, and the colours follow the reader's
light or dark scheme. The labels form a stair on either side of the crest, so that no label meets another one or its pole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from parsers.hill_shards import PHASES
from reducers.hill_curve import CREST, DOWNHILL_WORDS, PHASE_WORDS, STRETCHES, UPHILL_WORDS, Dot, height_at
from reducers.hill_lanes import render_lanes
from reducers.svg_text import CHAR, LABEL, columns, element, escape, shorten, text_at

WIDTH, MARGIN, HILL_WIDTH, HILL_HEIGHT = 1080, 190, 700, 230
HEAD, FOOT = 84, 66  # room above the labels, and from the hill's foot to what follows
STEP, POLE = 24, 28  # from one label to the next one up, and the least length of a pole
NAME_CHARS = 22
GHOST_DEPTH = 10  # how far inside the hill a former place is marked
COLOURS = dict(zip(PHASES, ("#d97706", "#8b5cf6", "#2f6fed", "#16a34a"), strict=True))

_STYLE = """
svg { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.page { fill: #ffffff; } .ink { fill: #1f2937; } .dim { fill: #6b7280; }
.line { stroke: #374151; } .faint { stroke: #d1d5db; } .under { fill: #64748b; fill-opacity: .09; } .ring { stroke: #ffffff; }
@media (prefers-color-scheme: dark) {
.page { fill: #0f1620; } .ink { fill: #e5e7eb; } .dim { fill: #9ca3af; }
.line { stroke: #cbd5e1; } .faint { stroke: #374151; } .under { fill: #94a3b8; fill-opacity: .12; } .ring { stroke: #0f1620; }
}
"""


class Label(NamedTuple):
    """A dot's label: its text ends (`is_left`) or begins at `x`, on the line `y`; y counts down from the hill's top."""

    dot: Dot
    x: float
    y: float
    is_left: bool
    text: str

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of the written text, the age included."""
        width = columns(self.text) * CHAR * LABEL
        left = self.x - 8 - width if self.is_left else self.x + 8
        return left, self.y - LABEL, left + width, self.y + 4


def render_hill_svg(title: str, dots: Sequence[Dot], now: datetime) -> str:
    """The picture of one feature at the moment `now`, an aware one; it grows with the number of dots."""
    labels = place_labels(dots)
    top = HEAD - min([0.0, *(label.y - LABEL for label in labels)])  # the y of the crest
    foot = top + HILL_HEIGHT
    lanes, lanes_height = render_lanes(dots, now, foot + FOOT, COLOURS)
    height = round(foot + FOOT + lanes_height)
    told = f"{len(dots)} {'areas' if any(dot.is_area for dot in dots) else 'scopes'} on the hill of {title}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f"<title>{escape(told)}</title>",
        f"<style>{_STYLE}</style>",
        element("rect", {"class": "page", "width": WIDTH, "height": height}),
        text_at(32, 40, shorten(title, 70), size=20, weight="600"),
        text_at(WIDTH - 32, 40, f"as of {now:%Y-%m-%d %H:%M} UTC", classes="dim", anchor="end"),
        *_hill(top, foot),
        *_ghosts(dots, top),
        *(line for label in labels for line in _label(label, top)),
        *lanes,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def place_labels(dots: Sequence[Dot]) -> tuple[Label, ...]:
    """The labels of all dots: on either side each one up the slope stands a step higher than the last."""
    left = sorted((dot for dot in dots if dot.x < CREST), key=lambda dot: dot.x)
    right = sorted((dot for dot in dots if dot.x >= CREST), key=lambda dot: -dot.x)
    labels = []
    for side, is_left in ((left, True), (right, False)):
        above = float(HILL_HEIGHT)
        for dot in side:
            above = min(_y(dot.x) - POLE, above - STEP)
            name = shorten(dot.name, NAME_CHARS)
            labels.append(Label(dot, _x(dot.x), above, is_left, f"{name} {dot.age}" if dot.age else name))
    return tuple(labels)


def _x(x: float) -> float:
    return MARGIN + x * HILL_WIDTH


def _y(x: float) -> float:
    """How far below the crest the hill is at x."""
    return (1 - height_at(x)) * HILL_HEIGHT


def _hill(top: float, foot: float) -> Iterator[str]:
    points = [f"{_x(at / 100):.1f},{top + _y(at / 100):.1f}" for at in range(101)]
    left, right, middle = _x(0), _x(1), _x(CREST)
    yield element("path", {"class": "under", "d": f"M{left:.1f},{foot:.1f} L{' L'.join(points)} Z"})
    yield element("line", {"class": "faint", "x1": 32, "x2": WIDTH - 32, "y1": f"{foot:.1f}", "y2": f"{foot:.1f}"})
    dashes = {"class": "faint", "stroke-dasharray": "3 5", "x1": middle, "x2": middle}
    yield element("line", {**dashes, "y1": f"{top + 6:.1f}", "y2": f"{foot:.1f}"})
    curve = {"class": "line", "fill": "none", "stroke-width": 2.5, "stroke-linecap": "round"}
    yield element("path", {**curve, "d": f"M{' L'.join(points)}"})
    for phase, (low, high) in STRETCHES.items():
        x = _x((low + high) / 2)
        yield element("circle", {"cx": f"{x:.1f}", "cy": f"{foot + 13:.1f}", "r": 3, "fill": COLOURS[phase]})
        yield text_at(x, foot + 30, PHASE_WORDS[phase], anchor="middle", size=12)
    for words, x in ((UPHILL_WORDS, (left + middle) / 2), (DOWNHILL_WORDS, (middle + right) / 2)):
        yield text_at(x, foot - 10, words, classes="dim", anchor="middle", size=11)


def _ghosts(dots: Sequence[Dot], top: float) -> Iterator[str]:
    """Small dots inside the hill where a scope stood before, each in a place of its own."""
    for index, dot in enumerate(dots):
        for at, phase in dot.trail[:-1]:
            low, high = STRETCHES[phase]
            x = low + (high - low) * (index + 0.5) / len(dots)
            told = f"{dot.name}: {PHASE_WORDS[phase]} from {at}"
            place = {"cx": f"{_x(x):.1f}", "cy": f"{top + _y(x) + GHOST_DEPTH:.1f}", "r": 2.5, "fill": COLOURS[phase]}
            yield element("circle", {**place, "fill-opacity": 0.6}, f"<title>{escape(told)}</title>")


def _label(label: Label, top: float) -> Iterator[str]:
    dot, x = label.dot, f"{label.x:.1f}"
    y, end = top + _y(dot.x), top + label.y
    yield element("line", {"class": "faint", "x1": x, "x2": x, "y1": f"{y:.1f}", "y2": f"{end - 9:.1f}"})
    shape: dict[str, object] = {
        "class": "ring",
        "cx": x,
        "cy": f"{y:.1f}",
        "r": 7,
        "fill": COLOURS[dot.phase],
        "stroke-width": 2,
    }
    told = f"{dot.name}: {PHASE_WORDS[dot.phase]}" + (f" since {dot.since}" if dot.since else "") + f"\n{dot.why}"
    yield element("circle", shape, f"<title>{escape(told)}</title>")
    name = label.text.removesuffix(f" {dot.age}") if dot.age else label.text
    age = f' <tspan class="dim">{escape(dot.age)}</tspan>' if dot.age else ""
    yield text_at(
        label.x + (-8 if label.is_left else 8), end, name, anchor="end" if label.is_left else "start", after=age
    )
