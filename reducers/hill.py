"""The hill: the phase of every scope, from evidence alone. Source: protocol §5.4, W-34 .. W-37, W-75, rulings G4, F2.

Nobody says where a scope stands. Green T0 evidence, a seesaw that ran and an evaluation that passed move it; a later red moves it back.
"""

from __future__ import annotations

from typing import NamedTuple

from parsers.addresses import scope_stem
from parsers.hill_shards import PHASES, HillShard
from parsers.hill_signal import Area
from parsers.hill_trail import HillRow
from reducers.breakers import Evaluation

UNKNOWN, SOLVED, DOWNHILL, FINISHED = PHASES
PASS = "PASS"


class HillScope(NamedTuple):
    """A scope contract as far as the hill and the seesaw need it. `superseded_by`: the scopes it was split into."""

    scope_id: str
    fixtures: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    use_cases: tuple[str, ...] = ()


class Measured(NamedTuple):
    """One T0 artifact that counts. `name` is its stem, `r1-a2-t3`; `at` None where it names no time.

    `flaw`: why an artifact counts as red whatever it says: it is gone, or no longer what its trial row recorded. Empty: it is sound.
    """

    scope_id: str
    round: int
    attempt: int
    trial: int
    name: str
    is_green: bool
    has_seesaw_passed: bool
    at: str | None = None
    flaw: str = ""

    @property
    def age(self) -> tuple[int, int, int]:
        """What artifacts of one scope are ordered by: the highest is the newest. Source: W-35, W-40."""
        return self.round, self.attempt, self.trial


class Unknowns(NamedTuple):
    """The `~` lines of one ledger block. `scope` is the name in its order id, as in stems; `round` 0 where the id has none."""

    scope: str
    round: int
    lines: int


class HillFacts(NamedTuple):
    """All that the hill of one feature follows from.

    `has_trace`: this machine knows the run. Without it nothing is derived, and the committed shards stand (W-36).
    `measured`: artifacts of reverted and crashed attempts are not among them (G4). `evaluations`: by round, the newest last.
    `worked`: (scope as in stems, round) of the build orders. `kept_green`: scopes whose newest surviving trial is kept and green.
    `live`: scopes, as in stems, that have a live order. `trail`, `shards`: what was recorded and what stands; they move nothing.
    `findings`: what could not be read, a sentence each.
    """

    slug: str
    has_trace: bool = True
    scopes: tuple[HillScope, ...] = ()
    measured: tuple[Measured, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    unknowns: tuple[Unknowns, ...] = ()
    worked: frozenset[tuple[str, int]] = frozenset()
    kept_green: frozenset[str] = frozenset()
    live: frozenset[str] = frozenset()
    trail: tuple[HillRow, ...] = ()
    shards: tuple[HillShard, ...] = ()
    areas: tuple[Area, ...] = ()
    findings: tuple[str, ...] = ()


class ScopePhase(NamedTuple):
    """Where a scope stands, and the sentence that says why. `at`: since when T0 evidence has said the same, where it says so."""

    scope_id: str
    phase: str
    why: str
    at: str | None = None


def derive_hill(facts: HillFacts, until: int | None = None) -> tuple[ScopePhase, ...]:
    """The phase of each scope, by id; () without a local trace. `until`: as it was when that round had ended."""
    if not facts.has_trace:
        return ()
    scopes = sorted(facts.scopes, key=lambda scope: scope.scope_id)
    return tuple(_derive(facts, scope.scope_id, until) for scope in scopes)


def standing_hill(facts: HillFacts) -> tuple[ScopePhase, ...]:
    """The derived hill; without a local trace, the one that the committed shards tell. Source: W-36."""
    if facts.has_trace:
        return derive_hill(facts)
    why = "as committed: this machine has no trace of the run"
    return tuple(ScopePhase(shard.scope_id, shard.phase, why) for shard in sorted(facts.shards))


def _derive(facts: HillFacts, scope_id: str, until: int | None) -> ScopePhase:
    t0 = newest_measured(facts, scope_id, until)
    if t0 is None or not t0.is_green:
        return _uphill(facts, scope_id, t0, until)
    since = _since(facts, t0)
    evaluation = next((one for one in reversed(facts.evaluations) if until is None or one.round <= until), None)
    wanting = [] if t0.has_seesaw_passed else ["its seesaw did not run"]
    if evaluation is None:
        wanting.append("no round was evaluated yet")
    elif evaluation.overall != PASS:
        wanting.append(f"the evaluation of round {evaluation.round} says {evaluation.overall}")
    if wanting or evaluation is None:
        return ScopePhase(scope_id, DOWNHILL, f"T0 {t0.name} is green, but {' and '.join(wanting)}", since)
    told = f"T0 {t0.name} is green, its seesaw ran and passed, and the evaluation of round {evaluation.round} says PASS"
    return ScopePhase(scope_id, FINISHED, told, t0.at or since)


def _uphill(facts: HillFacts, scope_id: str, t0: Measured | None, until: int | None) -> ScopePhase:
    state = "no T0 was measured" if t0 is None else f"T0 {t0.name} {t0.flaw or 'is red'}"
    unknowns = sum(one.lines for one in facts.unknowns if one.scope == scope_stem(scope_id) and _by(one.round, until))
    at = _since(facts, t0) if t0 else None
    if unknowns:
        noun = "unknown" if unknowns == 1 else "unknowns"
        return ScopePhase(scope_id, UNKNOWN, f"{state}, and the discovery ledger holds {unknowns} {noun}", at)
    return ScopePhase(scope_id, SOLVED, f"{state}, and the discovery ledger holds no unknown", at)


def _since(facts: HillFacts, newest: Measured) -> str | None:
    """When the newest artifacts began to be all green, or all red again; red from the first one on tells nothing."""
    own = sorted((one for one in facts.measured if one.scope_id == newest.scope_id), key=lambda one: one.age)
    turned = None
    for before, one in zip((None, *own), own, strict=False):
        if one.age <= newest.age and one.is_green != (before is not None and before.is_green):
            turned = one
    return turned.at if turned else None


def newest_measured(facts: HillFacts, scope_id: str, until: int | None = None) -> Measured | None:
    """The newest artifact of the newest round in which the scope has one. Source: W-35."""
    own = (one for one in facts.measured if one.scope_id == scope_id and _by(one.round, until))
    return max(own, key=lambda one: one.age, default=None)


def _by(round_: int, until: int | None) -> bool:
    return until is None or round_ <= until
