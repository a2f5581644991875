"""What the ship report says, before it is written: the outcome, the surviving trials, who has unfinished work. Source: protocol §5.8, W-33, W-42, R-41, R-45, G8."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from parsers.receipts import whole_number
from parsers.round_ledger import Decision
from parsers.tasks import Task
from parsers.trials import Trial
from reducers.board import Scope, tasks_for_scope, use_case_id
from reducers.ratchet_stats import RatchetReport, ratchet_report
from reducers.run_records import RunRecords, object_at, objects_at, text_at
from reducers.ship.leftovers import Leftover

# Every dimension there is; what was not evaluated is named, never passed over (R-41, G8).
DIMENSIONS = (
    "spec-conformance",
    "tdd-surface",
    "integration",
    "completeness",
    "test-surface-conformance",
    "security",
    "performance",
)
NOT_EVALUATED = "not-evaluated"
PASS = "PASS"
SURVIVING = frozenset({"kept", "rebased"})
CLOSED = frozenset({"done", "cut"})
AMEND = "amend"


class ScopeTrials(NamedTuple):
    """The trials of a scope: how many, and the surviving one, which describes the code on the branch; None: none survived."""

    scope_id: str
    trials: int
    surviving: Trial | None


class Amendment(NamedTuple):
    """A granted change of the spec; `is_applied` False: its order was not answered yet. Source: rulings K, I5."""

    title: str
    what: str
    is_applied: bool


class ShipFacts(NamedTuple):
    """All that the report says. Texts of workers are as they wrote them; the report makes them fit to commit.

    `verdict`: the one given, else the run's own, else not-evaluated (W-42). `unfinished`: (scope or use case, tasks) and never
    an id (W-33). `warnings`: what the report must not leave unsaid.
    """

    slug: str
    date: str
    verdict: str
    rounds_used: int | None
    qa: str
    intake_sha256: str | None
    tasks: int = 0
    done: int = 0
    cut: int = 0
    artifacts: int = 0
    unfinished: tuple[tuple[str, int], ...] = ()
    not_evaluated: tuple[str, ...] = DIMENSIONS
    warnings: tuple[str, ...] = ()
    leftovers: tuple[Leftover, ...] = ()
    scopes: tuple[ScopeTrials, ...] = ()
    ratchet: RatchetReport | None = None
    evaluation: str = ""  # the evaluator's report
    hunt: str = ""  # the hunter's report
    decisions: tuple[Decision, ...] = ()
    amendments: tuple[Amendment, ...] = ()
    discoveries: tuple[tuple[str, str], ...] = ()  # (order id, lines) of each block


class Documents(NamedTuple):
    """The prose beside the records; `hunt` None: nobody hunted."""

    evaluation: str = ""
    hunt: str | None = None
    discoveries: str = ""
    decisions: tuple[Decision, ...] = ()


def ship_facts(
    records: RunRecords,
    date: str,
    tasks: Sequence[Task],
    documents: Documents,
    leftovers: tuple[Leftover, ...] = (),
    verdict: str | None = None,
    qa: str | None = None,
) -> ShipFacts:
    """The facts of a report written on this date; `verdict` and `qa` are what was given by hand."""
    own = text_at(records.harness, "final_verdict")
    said = verdict or (own.strip() if own else "") or NOT_EVALUATED
    trials = tuple(trial for trial in records.trials if records.is_own(trial.run_id))
    return ShipFacts(
        slug=records.slug,
        date=date,
        verdict=said,
        rounds_used=rounds_used(records),
        qa=qa or ("skipped" if documents.hunt is None else "run"),
        intake_sha256=text_at(records.receipt, "intake_sha256"),
        tasks=len(tasks),
        done=sum(task.status == "done" for task in tasks),
        cut=sum(task.status == "cut" for task in tasks),
        artifacts=sum(records.is_own(artifact.verdict.run_id) for artifact in records.artifacts),
        unfinished=unfinished(records, tasks),
        not_evaluated=not_evaluated(records),
        warnings=tuple(_warnings(records, said)),
        leftovers=leftovers,
        scopes=tuple(_scope_trials(trials)),
        ratchet=ratchet_report((records.slug, trial) for trial in trials) if trials else None,
        evaluation=documents.evaluation,
        hunt=documents.hunt or "",
        decisions=documents.decisions,
        amendments=tuple(_amendments(records)),
        discoveries=tuple(discovered_blocks(documents.discoveries)),
    )


def rounds_used(records: RunRecords) -> int | None:
    """The highest evaluated round, else what harness-run.md counts; None where neither says."""
    rounds = [round_ for round_, _ in records.evaluations if round_]
    return max(rounds) if rounds else whole_number(records.harness.get("rounds_used"))


def not_evaluated(records: RunRecords) -> tuple[str, ...]:
    """The dimensions that no criterion of the newest evaluation belongs to, those of the run's own config among them."""
    wanted = dict.fromkeys(DIMENSIONS)
    configured = records.harness.get("eval_dimensions") or records.config.get("eval_dimensions")
    named = configured if isinstance(configured, list | tuple) else ()
    wanted |= dict.fromkeys(name for name in named if isinstance(name, str) and name)
    newest = records.evaluations[-1][1] if records.evaluations else {}
    judged = {text_at(found, "dimension") or DIMENSIONS[0] for found in objects_at(newest, "criteria")}
    return tuple(name for name in wanted if name not in judged)


def unfinished(records: RunRecords, tasks: Sequence[Task]) -> tuple[tuple[str, int], ...]:
    """How many tasks of which scope, else of which use case, are neither done nor cut."""
    owners: dict[str, str] = {}
    for scope in records.scopes:
        for task in tasks_for_scope(tasks, Scope(scope.scope_id, scope.use_cases, False, False)):
            owners.setdefault(task.path, scope.scope_id)
    open_ = [task for task in tasks if task.status not in CLOSED]
    return tuple(Counter(owners.get(task.path) or _use_case(task) or "no scope" for task in open_).items())


def _use_case(task: Task) -> str | None:
    return task.scope_id or next(map(use_case_id, task.use_case_refs), None)


def _warnings(records: RunRecords, verdict: str) -> Iterator[str]:
    """R-41: a pass that nobody judged."""
    overall = text_at(records.evaluations[-1][1], "overall") if records.evaluations else None
    if verdict.casefold() == PASS.casefold() and overall != PASS:
        told = "no applied evaluation of this run" if overall is None else f"the newest evaluation, which is {overall},"
        yield f"The verdict says {verdict}, and {told} does not (R-41)."


def _scope_trials(trials: Sequence[Trial]) -> Iterator[ScopeTrials]:
    by_scope: dict[str, list[Trial]] = {}
    for trial in trials:
        by_scope.setdefault(trial.scope_id, []).append(trial)
    for scope_id in sorted(by_scope):
        own = by_scope[scope_id]
        surviving = next((trial for trial in reversed(own) if trial.status in SURVIVING), None)
        yield ScopeTrials(scope_id, len(own), surviving)


def _amendments(records: RunRecords) -> Iterator[Amendment]:
    """The items of the amend orders: such an order is compiled for granted items alone. Source: gauntlet M8, ruling I5."""
    applied = {result.order_id for result in records.results if result.is_applied}
    for order in records.orders:
        if text_at(order.document, "operation") == AMEND and records.is_own(order.document.get("run_id")):
            for item in objects_at(object_at(order.document, "payload"), "amendments"):
                title, what = (text_at(item, key) or "" for key in ("title", "what"))
                yield Amendment(title, what, order.order_id in applied)


def discovered_blocks(ledger: str) -> Iterator[tuple[str, str]]:
    """(order id, text) of every block of the discovery ledger, not of the first alone (W-43)."""
    order_id, lines = "", list[str]()
    for line in (*ledger.split("\n"), "## "):
        if line.startswith("## "):
            if order_id and (text := "\n".join(lines).strip()):
                yield order_id, text
            mark, _, rest = line.removeprefix("## ").partition(" — ")
            order_id = rest.partition(" ")[0] if mark == "Discovered" else ""
            lines = []
        else:
            lines.append(line.rstrip("\r"))


def is_frozen(records: RunRecords) -> bool:
    """Whether the report of this run may not change any more: L4 was crossed with `ship`, or the run is shipped. Source: R-45."""
    if text_at(records.harness, "status") == "shipped":
        return True
    return any(_ships(records, row) for row in records.gates)


def _ships(records: RunRecords, row: Mapping[str, object]) -> bool:
    is_l4 = row.get("gate") == "L4" and row.get("status") == "ok" and row.get("decision") == "ship"
    return is_l4 and records.is_own(row.get("run_id"))
