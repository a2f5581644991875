"""One run's facts as the invariants look at them: a frozen value, and the few questions that many rules ask of it. Source: protocol §9 (P4), rulings F2, B1."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from parsers.addresses import parse_address, scope_stem
from parsers.breaker_ledger import Trip
from parsers.domain import Verdict
from parsers.envelopes import WorkOrder
from parsers.facts import OrderFact, ResultFact
from parsers.layout import path_of
from parsers.ledgers import IngestRow, LegRow
from parsers.receipts import RunConfig, whole_number
from parsers.round_ledger import Decision
from parsers.t0_verdict import T0Verdict
from parsers.times import parse_time
from parsers.trials import Trial
from reducers.bugs import ScopeArea
from reducers.identity import APPLIED
from reducers.task_index import TaskIndex

BUILDER, EVALUATOR, HUNTER = "task-executor", "spec-evaluator", "qa-edge-hunter"
EVALUATE = "evaluate"
SHIPPED = "shipped"

When = datetime | str | None
Counts = Callable[[When], bool]  # whether something of that moment had happened; what bears no time always had


def always(_: When) -> bool:
    """Everything on record has happened."""
    return True


class DispatchRow(NamedTuple):
    """One row of receipts/dispatch.jsonl as the rules read it."""

    order_id: str
    at: str | None
    agent_id: str | None
    run_id: str | None


class Artifact(NamedTuple):
    """One T0 artifact on disk. `verdict` None: it cannot be read as one."""

    path: str
    sha256: str
    verdict: T0Verdict | None


class Ruled(NamedTuple):
    """The verdict of one result file, with the hash of its bytes: it counts where the ingest record knows them."""

    sha256: str
    verdict: Verdict


class LoopFacts(NamedTuple):
    """One run. Mappings are looked at, never changed; `orders`, `landed`, `records` and `legs` may be the daemon's own.

    The last ones, from `results` on, are filled for a look at the whole run only (`judge_run_loop`); empty they say nothing.
    """

    slug: str
    run_id: str | None = None
    has_receipt: bool = True
    is_open: bool = True
    config: RunConfig = RunConfig()
    status: str = ""  # of harness-run.md
    final_verdict: str = ""
    deploy: str = ""
    orders: Mapping[str, OrderFact] = MappingProxyType({})  # admitted, by stem
    landed: Mapping[str, datetime] = MappingProxyType({})  # when each order file was written last, by stem
    records: Mapping[str, tuple[IngestRow, ...]] = MappingProxyType({})  # by order id
    legs: Mapping[str, tuple[LegRow, ...]] = MappingProxyType({})  # by order id
    tasks: TaskIndex = TaskIndex()
    dispatches: tuple[DispatchRow, ...] = ()
    gates: tuple[Mapping[str, object], ...] = ()
    trials: tuple[Trial, ...] = ()
    artifacts: Mapping[str, tuple[Artifact, ...]] = MappingProxyType({})  # by scope as in stems
    trips: tuple[Trip, ...] = ()
    decisions: tuple[Decision, ...] = ()
    decided_at: datetime | None = None  # when the round ledger was written last
    scopes: tuple[ScopeArea, ...] = ()
    phases: frozenset[str] = frozenset()  # those whose artifacts lie there (§5.5)
    has_profile: bool = False
    verdicts: Mapping[str, Ruled] = MappingProxyType({})  # of evaluate results, by stem
    discovered: frozenset[str] = frozenset()  # orders whose ledger block holds `+` lines
    results: Mapping[str, ResultFact] = MappingProxyType({})  # by stem
    results_landed: Mapping[str, datetime] = MappingProxyType({})  # when each result file was written last, by stem
    open_boxes: Mapping[str, int] = MappingProxyType({})  # unticked criteria of done tasks, by path
    statuses: Mapping[str, tuple[tuple[datetime | None, str], ...]] = MappingProxyType({})  # what results made of tasks

    def is_own(self, run_id: str | None) -> bool:
        """Whether a row that names this run is the run's; one that names none is any run's."""
        return run_id is None or self.run_id is None or run_id == self.run_id

    def applied(self, order_id: str) -> tuple[IngestRow, ...]:
        """What the ingest record holds of the order's applied results, in file order."""
        rows = self.records.get(order_id, ())
        return tuple(row for row in rows if row.outcome in APPLIED and self.is_own(row.run_id))

    def answered_at(self, row: IngestRow) -> datetime | None:
        """When the result had come: when it was recorded, or earlier, when its file landed."""
        said = (parse_time(row.at), self.results_landed.get(row.order_id.partition("/")[2]))
        return min((moment for moment in said if moment), default=None)

    def is_answered(self, fact: OrderFact, counts: Counts) -> bool:
        """Whether a result of these very bytes of the order was applied. Source: ruling B2."""
        rows = self.applied(fact.order.order_id)
        return any(row.order_sha256 == fact.sha256 and counts(self.answered_at(row)) for row in rows)

    def order_of(self, order_id: str) -> WorkOrder | None:
        """The admitted order of this id."""
        fact = self.orders.get(order_id.partition("/")[2])
        return fact.order if fact and fact.order.order_id == order_id else None

    def own_orders(self) -> Iterator[OrderFact]:
        """The run's admitted orders."""
        return (fact for fact in self.orders.values() if self.is_own(fact.order.run_id))

    @property
    def max_rounds(self) -> int:
        """The rounds that the run has: the receipt's, or what L3 leaves of them. Source: W-60."""
        granted = [
            rounds
            for row in self.gates_of("L3")
            if (rounds := whole_number(row.get("max_rounds"))) is not None and rounds >= 1
        ]
        return min([self.config.max_rounds, *granted[-1:]])

    def gates_of(self, gate: str, round_: int | None = None, counts: Counts = always) -> Iterator[Mapping[str, object]]:
        """The `ok` rows of a gate in this run; `round_`: those of this round, or of none."""
        for row in self.gates:
            run_id, at = row.get("run_id"), row.get("at")
            is_own = self.is_own(run_id if isinstance(run_id, str) else None)
            if row.get("gate") != gate or row.get("status") != "ok" or not is_own:
                continue
            if round_ is not None and whole_number(row.get("round")) not in (None, round_):
                continue
            if counts(at if isinstance(at, str) else None):
                yield row

    @property
    def is_shipped(self) -> bool:
        """Whether the run was shipped, by harness-run.md or by L4."""
        return self.status == SHIPPED or any(row.get("decision") == "ship" for row in self.gates_of("L4"))


def newest_artifact(
    facts: LoopFacts, scope: str, counts: Counts, rounds: Collection[int] | range | None = None
) -> Artifact | None:
    """The newest artifact of a scope (as in stems), of these rounds alone where they are given. Source: W-35, W-45."""
    found = [
        artifact
        for artifact in facts.artifacts.get(scope, ())
        if artifact.verdict
        and (rounds is None or artifact.verdict.round in rounds)
        and facts.is_own(artifact.verdict.run_id)
        and counts(artifact.verdict.at)
    ]
    return max(found, key=lambda artifact: artifact.verdict.address if artifact.verdict else (0, 0, 0), default=None)


def is_green(artifact: Artifact | None) -> bool:
    """Whether there is an artifact and it is green."""
    return artifact is not None and artifact.verdict is not None and artifact.verdict.is_green


# --- verdicts by round -----------------------------------------------------------------------------------------------


def overall_of(facts: LoopFacts, round_: int, counts: Counts) -> str | None:
    """PASS or FAIL of a round; None where no applied result evaluated it. The plain `evaluate` is the newest build round's (F2)."""
    found = [
        overall
        for row in facts.applied(f"{facts.slug}/{EVALUATE}-r{round_}")
        if counts(facts.answered_at(row)) and (overall := _overall(facts, row))
    ]
    bare = [
        overall
        for row in facts.applied(f"{facts.slug}/{EVALUATE}")
        if counts(facts.answered_at(row)) and _round_before(facts, row) == round_ and (overall := _overall(facts, row))
    ]
    return next(reversed(found or bare), None)


def verdict_of(facts: LoopFacts, round_: int) -> Verdict | None:
    """The verdict of a round with its bugs and criteria; None where its result does not lie there as it was applied."""
    for stem in (f"{EVALUATE}-r{round_}", EVALUATE):
        ruled = facts.verdicts.get(stem)
        if ruled is None:
            continue
        for row in facts.applied(f"{facts.slug}/{stem}"):
            if row.sha256 == ruled.sha256 and (stem != EVALUATE or _round_before(facts, row) == round_):
                return ruled.verdict
    return None


def newest_overall(facts: LoopFacts, counts: Counts) -> str | None:
    """PASS or FAIL of the newest evaluated round; None where nothing was evaluated."""
    rounds: set[int] = set()
    for order_id in facts.records:
        address = parse_address(order_id)
        if address.name == EVALUATE and address.attempt is None:
            rounds |= {address.round or _round_before(facts, row) for row in facts.applied(order_id)}
    told = (overall_of(facts, round_, counts) for round_ in sorted(rounds, reverse=True))
    return next((overall for overall in told if overall), None)


def _overall(facts: LoopFacts, row: IngestRow) -> str | None:
    if row.verdict is not None:
        return row.verdict
    ruled = facts.verdicts.get(row.order_id.partition("/")[2])
    return ruled.verdict.overall if ruled and ruled.sha256 == row.sha256 else None


def _round_before(facts: LoopFacts, row: IngestRow) -> int:
    """The newest build round that was applied before this row."""
    at = facts.answered_at(row)

    def counts(moment: datetime | None) -> bool:
        return at is None or moment is None or moment <= at

    return newest_build_round(facts, counts)


def newest_build_round(facts: LoopFacts, counts: Callable[[datetime | None], bool] = always) -> int:
    """The newest round of which a build result was applied; 1 before the first."""
    rounds = [1]
    for order_id in facts.records:
        address = parse_address(order_id)
        if address.attempt is not None and address.round is not None:
            rounds += [address.round for row in facts.applied(order_id) if counts(facts.answered_at(row))]
    return max(rounds)


# --- places ----------------------------------------------------------------------------------------------------------


def queued_scopes(facts: LoopFacts) -> frozenset[str]:
    """The scopes (as in stems) that wait for GATE H."""
    return frozenset(
        scope_stem(trip.scope_id)
        for trip in facts.trips
        if trip.status == "trip" and trip.scope_id is not None and facts.is_own(trip.run_id)
    )


def order_path(facts: LoopFacts, order_id: str) -> str:
    """The file of an order of this run."""
    return path_of("order", facts.slug, order_id.partition("/")[2])
