"""WorkOrder and WorkResult: their shape, and which worker may use which field. Source: protocol §2.3-2.9, rulings B8, C1, C6, D-13.

`order_errors` and `result_errors` answer exactly as the reference's schema check does; `parse_order` and `parse_result`
type what passed it. What is stricter (field rights) is told apart, as faults, and acts at admission or ingest only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from parsers.domain import (
    AegisTriple,
    Breaker,
    Constraints,
    Decision,
    Discovery,
    FileTouched,
    Operation,
    OrderId,
    RunId,
    ScopeContract,
    TaskRef,
    TaskResult,
    TrialRow,
    Verdict,
    VerifySpec,
    WorkerName,
)
from parsers.faults import Fault
from parsers.js_text import js_json
from parsers.schema import Many, Maybe, One, Record, Whole, node_of, shape_errors, typed

_NAMES_SHOWN = 20


class Interaction(Record):
    pause_gates: Maybe[bool] = None
    max_questions: Maybe[Whole] = None


class Substrate(Record):
    """Globs of what a worker may write. Four empty lists constrain nothing (§3.3)."""

    allowed: Many[str] = ()
    shared: Many[str] = ()
    append_only: Many[str] = ()
    frozen: Many[str] = ()


class WorkOrderPayload(Record):
    """`bugs` is untyped, as in REF. The last two fields are extensions for scope-architect and advisor-protocol."""

    scope_contract: Maybe[ScopeContract] = None
    tasks: Many[TaskRef] = ()
    decisions: Many[Decision] = ()
    digested_errors: Many[AegisTriple] = ()
    trial_history: Many[TrialRow] = ()
    kb_rules_path: Maybe[str] = None
    verify: Maybe[VerifySpec] = None
    constraints: Maybe[Constraints] = None
    bugs: Many[Any] = ()
    spec_folder: Maybe[str] = None
    feature: Maybe[str] = None
    pitch: Maybe[str] = None
    lens: Maybe[Literal["lite", "standard", "cross-context"]] = None
    orient_dir: Maybe[str] = None
    stack: Maybe[str] = None
    discovered_ledger: Maybe[str] = None
    requirements: Maybe[str] = None
    project_profile: Maybe[str] = None
    scope_id: Maybe[str] = None
    dimensions: Many[str] = ()
    run_cmd: Maybe[str] = None
    t0_artifacts: Many[str] = ()
    browser: Maybe[Literal["cli", "mcp", "none"]] = None
    eval_report: Maybe[str] = None
    app_url: str | None = None
    ledger: Maybe[str] = None
    round: Maybe[Whole] = None
    baseline: Maybe[str] = None
    breaker: Maybe[Breaker] = None
    feedback: Maybe[str] = None
    intake: Many[str] = ()
    glossary: Maybe[str] = None
    add_shared_substrate: Many[str] = ()
    escalate: Any = None


class WorkOrder(Record):
    """`run_id` and `compiled_at` are None on an order compiled without a receipt; no `substrate` constrains nothing."""

    schema_version: One
    order_id: OrderId
    run_id: Maybe[RunId] = None
    compiled_at: Maybe[str] = None
    worker: WorkerName
    mode: Literal["orchestrated", "standalone"]
    operation: Maybe[Operation] = None
    interaction: Maybe[Interaction] = None
    substrate: Maybe[Substrate] = None
    payload: WorkOrderPayload


class WorkResult(Record):
    """`worker` is whatever the worker wrote; `deviations[0]` of an escalated result is its one question."""

    schema_version: One
    order_id: str
    status: Literal["done", "partial", "escalated", "failed"]
    worker: Maybe[str] = None
    task_results: Many[TaskResult] = ()
    files_touched: Many[FileTouched] = ()
    discoveries: Many[Discovery] = ()
    verdict: Maybe[Verdict] = None
    artifacts: Many[str] = ()
    assumptions: Many[str] = ()
    deviations: Many[str] = ()


# Derived here, so that the first fact to land does not pay for it.
for _envelope in (WorkOrder, WorkResult):
    node_of(_envelope)


def order_errors(value: object, limit: int | None = None) -> tuple[str, ...]:
    """The §2.15 error texts of a WorkOrder, at most `limit` of them; empty when it has the shape."""
    return shape_errors(WorkOrder, value, limit)


def result_errors(value: object, limit: int | None = None) -> tuple[str, ...]:
    """The §2.15 error texts of a WorkResult, at most `limit` of them; empty when it has the shape."""
    return shape_errors(WorkResult, value, limit)


def parse_order(value: object) -> WorkOrder:
    """The order, typed. Only for a value of parse_strict that `order_errors` finds nothing in."""
    return typed(WorkOrder, value)


def parse_result(value: object) -> WorkResult:
    """The result, typed. Only for a value of parse_strict that `result_errors` finds nothing in."""
    return typed(WorkResult, value)


# --- who may use what (§2.9) -----------------------------------------------------------------------------------------

PAYLOAD_RIGHTS: Mapping[str, frozenset[str]] = {
    "task-executor": frozenset(
        {
            "tasks",
            "scope_contract",
            "decisions",
            "digested_errors",
            "trial_history",
            "verify",
            "kb_rules_path",
            "constraints",
            "bugs",
        }
    ),
    "spec-evaluator": frozenset(
        {"spec_folder", "feature", "dimensions", "run_cmd", "t0_artifacts", "browser", "tasks"}
    ),
    "ba-pitch-analyzer": frozenset(
        {"pitch", "lens", "orient_dir", "spec_folder", "feature", "discovered_ledger", "kb_rules_path"}
    ),
    "scope-architect": frozenset({"feature", "spec_folder", "tasks", "scope_id", "add_shared_substrate", "decisions"}),
    "solution-architect": frozenset({"feature", "spec_folder", "project_profile"}),
    "orient": frozenset({"pitch", "stack", "spec_folder", "feature"}),
    "qa-edge-hunter": frozenset({"feature", "spec_folder", "eval_report", "app_url", "ledger", "kb_rules_path"}),
    "translator": frozenset({"intake", "glossary"}),
    "scope-hammer": frozenset({"feature", "baseline", "breaker", "scope_id"}),
    "coach": frozenset({"feedback"}),
    "advisor-protocol": frozenset({"ledger", "escalate", "scope_id", "round"}),
}

# The reference compiles these into orders of every worker: `feature` and `spec_folder` are filled in wherever they are
# missing (§2.5), the other three are W-04.
COMPILED_FOR_EVERYONE = frozenset({"feature", "spec_folder", "decisions", "digested_errors", "trial_history"})
# In the payload's schema (§2.8), in no worker's column of §2.9: registered for nobody else, so open to all.
IN_NO_COLUMN = frozenset({"round", "requirements"})

# Beside these, everyone returns files_touched, artifacts, assumptions, deviations, worker and the required three.
RESULT_RIGHTS: Mapping[str, frozenset[str]] = {
    "task-executor": frozenset({"task_results", "discoveries"}),
    "spec-evaluator": frozenset({"verdict"}),
    "ba-pitch-analyzer": frozenset({"discoveries"}),
    "scope-architect": frozenset(),
    "solution-architect": frozenset(),
    "orient": frozenset({"discoveries"}),
    "qa-edge-hunter": frozenset({"discoveries"}),
    "translator": frozenset(),
    "scope-hammer": frozenset(),
    "coach": frozenset(),
    "advisor-protocol": frozenset(),
}
_RESTRICTED_RESULT_FIELDS = ("task_results", "discoveries", "verdict")
_PAYLOAD_FIELDS = frozenset(WorkOrderPayload.model_fields)


def payload_findings(order_value: Mapping[str, Any], where: str) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    """(faults, warnings) on whose fields the payload of a schema-valid order carries. Source: ruling B8.

    A field registered for other workers is a fault. Two kinds are warnings instead. Fields that nobody registered. And
    `feature`, `spec_folder`, `decisions`, `digested_errors`, `trial_history` in a foreign column: the reference
    compiles them into every order (§2.5, W-04), so the real runs carry `trial_history` on evaluate, hunt and hammer
    orders, `spec_folder` on hammer orders and both folder fields on every build order. Refusing them would refuse the
    reference's own orders and with them most of each recorded run; a worker still must not rely on them.
    """
    worker = str(order_value["worker"])
    own = PAYLOAD_RIGHTS[worker] | IN_NO_COLUMN
    carried = [name for name in order_value["payload"] if name not in own]
    foreign = [name for name in carried if name in _PAYLOAD_FIELDS and name not in COMPILED_FOR_EVERYONE]
    compiled = [name for name in carried if name in COMPILED_FOR_EVERYONE]
    unknown = [name for name in carried if name not in _PAYLOAD_FIELDS]
    place = f"{where}:$.payload"
    faults = _rights_faults(
        place,
        foreign,
        f"registered for workers other than {worker}",
        "remove it, or name in `worker` whom the order is for",
    )
    warnings = _rights_faults(place, compiled, f"compiled into every order, though not for {worker}", "leave it out")
    warnings += _rights_faults(
        place, unknown, "registered for no worker", "leave it out, or spell it as the registry does"
    )
    return faults, warnings


def result_right_faults(result_value: Mapping[str, Any], order_worker: str, where: str) -> tuple[Fault, ...]:
    """What a schema-valid result claims beyond the rights of its order's worker. Source: W-06, ruling C6.

    A `worker` other than the order's is E-WORKER and ends the look. Otherwise non-empty `task_results`, `discoveries`
    and `verdict` must be the order's worker's to return; empty ones and unknown keys are nobody's business.
    """
    named = result_value.get("worker")
    if named is not None and named != order_worker:
        return (
            Fault(
                code="E-WORKER",
                where=f"{where}:$.worker",
                what=f"the result is by {_shown(str(named))}, the order is for {order_worker}",
                why="an order is answered by the worker it was dispatched to",
                fix=f"have {order_worker} answer the order, or compile one for the other worker",
            ),
        )
    rights = RESULT_RIGHTS.get(order_worker, frozenset())
    carried = [name for name in _RESTRICTED_RESULT_FIELDS if result_value.get(name) and name not in rights]
    return _rights_faults(where, carried, f"not {order_worker}'s to return", "remove it, and say it in `deviations`")


def _rights_faults(where: str, names: list[str], what: str, fix: str) -> tuple[Fault, ...]:
    """One fault for all names, the first of them listed; none for none."""
    if not names:
        return ()
    listed = ", ".join(_shown(name) for name in names[:_NAMES_SHOWN])
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    why = "each worker is given, and may answer with, the fields of its row in the domain registry"
    return (Fault(code="E-FIELD-RIGHTS", where=where, what=f"{listed}{more}: {what}", why=why, fix=fix),)


def _shown(name: str) -> str:
    return js_json(name if len(name) <= 60 else f"{name[:60]}…")
