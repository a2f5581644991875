"""How scopes move over the hill: what to record, how long each has stood, and which should be split. Source: ruling G4, R-47."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from parsers.addresses import scope_stem
from parsers.hill_trail import HillRow
from parsers.times import parse_time
from reducers.hill import FINISHED, HillFacts, ScopePhase, derive_hill

STUCK_ROUNDS = 3


class HillMove(NamedTuple):
    """A change that the trail does not know yet. `from_phase` None: the scope is new to it."""

    scope_id: str
    from_phase: str | None
    to_phase: str
    why: str

    def row(self, at: str) -> HillRow:
        """The row of hill.jsonl."""
        return HillRow(at, self.scope_id, self.from_phase, self.to_phase, self.why)


class Stay(NamedTuple):
    """How long a scope has been in its phase. `since` None where nothing tells it; then `stalled_s` is None too.

    `trail`: its recorded changes, the oldest first.
    """

    scope_id: str
    since: str | None
    stalled_s: float | None
    trail: tuple[HillRow, ...]


class SplitProposal(NamedTuple):
    """A scope that three rounds of work did not move: GATE H is asked to have it split."""

    scope_id: str
    phase: str
    rounds: tuple[int, ...]

    @property
    def why(self) -> str:
        """The proposal as one sentence."""
        rounds = ", ".join(map(str, self.rounds))
        return f"it stood at {self.phase} at the end of rounds {rounds}, in each of which it was worked on: split it"


def derive_moves(facts: HillFacts, phases: Sequence[ScopePhase]) -> tuple[HillMove, ...]:
    """The changes between the recorded trail and the phases; each is to be appended to hill.jsonl once."""
    known = {row.scope_id: row.to_phase for row in facts.trail}
    return tuple(
        HillMove(one.scope_id, known.get(one.scope_id), one.phase, one.why)
        for one in phases
        if known.get(one.scope_id) != one.phase
    )


def derive_stay(facts: HillFacts, phase: ScopePhase, now: datetime) -> Stay:
    """Since when the scope is where it is: by its newest row if that led here, else by the artifact that decides."""
    trail = tuple(row for row in facts.trail if row.scope_id == phase.scope_id)
    is_recorded = bool(trail) and trail[-1].to_phase == phase.phase
    since = (trail[-1].at if is_recorded else None) or phase.at
    moment = parse_time(since)
    return Stay(
        phase.scope_id,
        since if moment else None,
        max(0.0, (now - moment).total_seconds()) if moment else None,
        trail,
    )


def propose_splits(facts: HillFacts) -> tuple[SplitProposal, ...]:
    """The scopes that ended each of the last three rounds in which they were worked on at one and the same phase.

    FINISHED scopes are never among them, nor those that were split already. Only rounds with work count: a scope that waits,
    green, while others are fixed is not stuck.
    """
    rounds = sorted({one.round for one in facts.measured} | {round_ for _, round_ in facts.worked})
    ended = {round_: {one.scope_id: one.phase for one in derive_hill(facts, round_)} for round_ in rounds}
    now = {one.scope_id: one.phase for one in derive_hill(facts)}
    found = []
    for scope in sorted(facts.scopes):
        own = {one.round for one in facts.measured if one.scope_id == scope.scope_id}
        own |= {round_ for name, round_ in facts.worked if name == scope_stem(scope.scope_id)}
        last = sorted(own)[-STUCK_ROUNDS:]
        phases = {now.get(scope.scope_id), *(ended[round_].get(scope.scope_id) for round_ in last)}
        phase = now.get(scope.scope_id)
        is_stuck = len(last) == STUCK_ROUNDS and len(phases) == 1 and phase != FINISHED
        if phase and is_stuck and not scope.superseded_by:
            found.append(SplitProposal(scope.scope_id, phase, tuple(last)))
    return tuple(found)
