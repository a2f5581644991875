"""The shape of the hill and where on it a dot stands: one geometry for every picture. Source: ruling G4, R-47.

The slope up is what must be figured out, the slope down what must be done. Each phase has a stretch of it; the dots of one phase are
spread over their stretch by id, so that a picture depends on the facts alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from parsers.hill_shards import PHASES
from parsers.times import parse_time
from reducers.hill import DOWNHILL, FINISHED, SOLVED, UNKNOWN, HillFacts, ScopePhase
from reducers.hill_trail import Stay

CREST = 0.5
UPHILL_WORDS, DOWNHILL_WORDS = "figuring things out", "making it happen"
PHASE_WORDS = {UNKNOWN: "unknown", SOLVED: "solved", DOWNHILL: "in execution", FINISHED: "finished"}
STRETCHES = {UNKNOWN: (0.08, 0.26), SOLVED: (0.32, 0.47), DOWNHILL: (0.55, 0.76), FINISHED: (0.84, 0.96)}


class Dot(NamedTuple):
    """One dot: a scope, or an area before there are scopes. `x` runs from 0 at the left foot of the hill to 1 at the right one.

    `age` is the stall age in words; empty: not known, or finished.
    """

    name: str
    phase: str
    x: float
    why: str
    is_area: bool = False
    since: str | None = None
    age: str = ""
    trail: tuple[tuple[str, str], ...] = ()  # (moment, phase) of each recorded change, the oldest first

    @property
    def height(self) -> float:
        """How high it stands: 0 at the foot, 1 on the crest."""
        return height_at(self.x)


def height_at(x: float) -> float:
    """The height of the hill at x, both from 0 to 1."""
    return (1 - math.cos(2 * math.pi * min(max(x, 0.0), 1.0))) / 2


def place(phases: Iterable[ScopePhase], stays: Iterable[Stay] = ()) -> tuple[Dot, ...]:
    """The dots of the scopes, from the left to the right."""
    known = {stay.scope_id: stay for stay in stays}
    by_phase: dict[str, list[ScopePhase]] = {phase: [] for phase in PHASES}
    for one in sorted(phases):
        by_phase[one.phase].append(one)
    dots = []
    for phase, standing in by_phase.items():
        for one, x in zip(standing, _spread(phase, len(standing)), strict=True):
            stay = known.get(one.scope_id)
            age = age_text(stay.stalled_s) if stay and stay.stalled_s is not None and phase != FINISHED else ""
            rows = ((row.at, row.to_phase) for row in (stay.trail if stay else ()))
            trail = tuple((at, to) for at, to in rows if at and parse_time(at))
            dots.append(Dot(one.scope_id, phase, x, one.why, since=stay.since if stay else None, age=age, trail=trail))
    return tuple(dots)


def place_areas(facts: HillFacts) -> tuple[Dot, ...]:
    """The dots of the areas, where the feature has no scopes yet; one whose words name no position is left out. Source: ruling K."""
    if facts.scopes or facts.shards:
        return ()
    dots = []
    for phase in PHASES:
        standing = sorted(area for area in facts.areas if area.phase == phase)
        for area, x in zip(standing, _spread(phase, len(standing)), strict=True):
            dots.append(Dot(area.name, phase, x, area.told, is_area=True))
    return tuple(dots)


def _spread(phase: str, number: int) -> Sequence[float]:
    low, high = STRETCHES[phase]
    return [low + (high - low) * (at + 0.5) / number for at in range(number)]


def age_text(seconds: float) -> str:
    """A stall age in its two largest units: `3d 4h`, `2h 5m`, `40s`."""
    left = int(seconds)
    told: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or told:
            told.append(f"{count}{unit}" if count else "")
        if len(told) == 2:
            break
    return " ".join(part for part in told if part) or "0s"
