"""The registry's other records: what lies in the two trees beside envelopes, one model each. Source: protocol §1.3, §2.2, §2.7, §2.10-2.14.

Read with `schema.shape_errors` and `schema.typed`, as envelopes are. The registry marks few fields of these as
required, and older releases left some out, so a missing one reads as None. A cell that the protocol fills with null
when it has nothing to say is typed `... | None`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from parsers.domain import AegisTriple, HillPhase, RequirementId, RunId, Sha256, T0Score
from parsers.schema import Many, Maybe, One, Record, Whole, whole_number

Lane = Literal["tiny", "normal", "full"]
OneOrTwo = Annotated[Literal[1, 2], BeforeValidator(whole_number)]


# --- the run ---------------------------------------------------------------------------------------------------------


class PluginInfo(Record):
    name: str | None = None
    version: str | None = None
    root: str | None = None


class RunConfig(Record):
    """`wall_clock_budget_s` is in seconds; None means the deadline breaker is off."""

    auto_level: str | None = None
    lens: str | None = None
    eval_dimensions: Many[str] = ()
    max_rounds: Whole | None = None
    attempt_budget: Whole | None = None
    spec_folder: str | None = None
    gate_answers: str | None = None
    tiny_lane: bool | None = None
    fit: dict[str, Any] | None = None
    wall_clock_budget_s: Whole | None = None


class Receipt(Record):
    """`receipt.json`: the run was opened. `started` is what the zero-work gate looks at."""

    receipt_version: One
    type: Literal["harness-run-receipt"]
    slug: str
    run_id: RunId
    started_at: str
    intake_sha256: Sha256
    intake_chars: Whole
    intake_lines: Whole
    started: bool
    plugin: PluginInfo | None = None
    config: RunConfig


class RunModels(Record):
    exec: str | None = None
    eval: str | None = None
    qa: str | None = None


class RunBudgets(Record):
    max_rounds: Whole | None = Field(default=None, alias="maxRounds")
    attempt_budget: Whole | None = Field(default=None, alias="attemptBudget")
    wall_clock_s: Whole | None = Field(default=None, alias="wallClockS")


class RunArgs(Record):
    """`run-args.json`: how the round loop was launched. `answers` is a preset's name or a file."""

    slug: str
    run_id: str | None = Field(default=None, alias="runId")
    auto_level: str = Field(alias="autoLevel")
    answers: str | None = None
    models: RunModels
    budgets: RunBudgets
    plugin_root: str = Field(alias="pluginRoot")
    started_at: str = Field(alias="startedAt")
    lane: Maybe[Lane] = None
    no_eval: Maybe[bool] = Field(default=None, alias="noEval")
    no_qa: Maybe[bool] = Field(default=None, alias="noQa")
    max_parallel_scopes: Whole = Field(default=4, alias="maxParallelScopes")
    adversarial_verify: Maybe[bool] = Field(default=None, alias="adversarialVerify")


class RunReturn(Record):
    """What the round loop hands back; in memory only."""

    status: Literal["shipped", "paused", "aborted", "gate_h", "ok"]
    verdict: str | None = None
    rounds_used: Whole | None = None
    dims_not_evaluated: Many[str] = ()
    qa_findings: Any = None
    report: str | None = None
    state_warnings: Many[str] = ()
    round: Whole | None = None
    paused_at: str | None = None
    block: str | None = None
    valid_decisions: Many[str] = ()
    context: Any = None
    aborted_at: str | None = None
    reason: str | None = None
    breaker: Maybe[Literal["outer", "inner", "deadline"]] = None
    hammer_proposals: Many[Any] = ()
    green_scopes: Many[str] = ()


class ActiveScopePointer(Record):
    """`.shapeup/active-scope`. Older files name a `scope_id` (D-12); `started_at` may then be missing."""

    slug: str
    started_at: Maybe[str] = None


class ActiveOrderPointer(Record):
    slug: str
    order_path: str


class SafetyOverrides(Record):
    """`allow_commands` are regex sources, `allow_secret_paths` globs."""

    schema_version: One
    allow_commands: Many[str] = ()
    allow_secret_paths: Many[str] = ()
    note: Maybe[str] = None


# --- T0 and the ratchet ----------------------------------------------------------------------------------------------


class CommandResult(Record):
    cmd: Maybe[str] = None
    exit: Whole | None = None
    passed: Maybe[bool] = Field(default=None, alias="pass")


class SeesawCheck(Record):
    ran: Maybe[bool] = None
    passed: Maybe[bool] = Field(default=None, alias="pass")
    scopes_checked: Many[str] = ()
    failing: Many[Any] = ()


class T0Artifact(Record):
    """One T0 run of a scope, immutable. Version 1 knows no trial and no score."""

    schema_version: Maybe[OneOrTwo] = None
    round: Maybe[Whole] = None
    attempt: Maybe[Whole] = None
    trial: Maybe[Whole] = None
    at: Maybe[str] = None
    run_id: Maybe[str] = None
    scope_id: Maybe[str] = None
    fixtures: Many[CommandResult] = ()
    db_probe: CommandResult | None = None
    seesaw: Maybe[SeesawCheck] = None
    fixtures_green: Maybe[bool] = None
    db_probe_green: Maybe[bool] = None
    seesaw_green: Maybe[bool] = None
    overall: Maybe[Literal["green", "red"]] = None
    regression: Maybe[bool] = None
    score: Maybe[T0Score] = None
    discovered_tasks: Many[AegisTriple] = ()


class SeesawScope(Record):
    scope_id: Maybe[str] = None
    fixtures: Many[str] = ()


class SeesawRegistry(Record):
    scopes: Many[SeesawScope] = ()


# --- ledgers ---------------------------------------------------------------------------------------------------------


class DispatchReceipt(Record):
    """A row of `receipts/dispatch.jsonl`. `skill_invoked` equal to the order's worker is what attests."""

    at: str | None = None
    order_id: str | None = None
    run_id: str | None = None
    worker_declared: str | None = None
    skill_invoked: str | None = None
    dispatch_ok: bool | None = None
    tool: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None


class LegRow(Record):
    """A row of `legs.jsonl`: one applied result."""

    schema_version: One
    run_id: str | None = None
    order_id: str | None = None
    worker: str | None = None
    operation: str | None = None
    mode: str | None = None
    scope_id: str | None = None
    round: Whole | None = None
    attempt: Whole | None = None
    compiled_at: str | None = None
    dispatched_at: str | None = None
    ingested_at: str | None = None
    started_from: Literal["dispatch-receipt", "compiled_at"] | None = None
    duration_ms: Whole | None = None
    attested: bool | None = None


class DecisionRow(Record):
    """A row of `decisions.jsonl`: one evaluation of an agent hook, permits included."""

    at: str | None = None
    hook: str | None = None
    pid: Whole | None = None
    run_id: str | None = None
    event: str | None = None
    tool: str | None = None
    subject: str | None = None
    verdict: Literal["allow", "deny", "block", "warn", "error"] | None = None
    reason: str | None = None
    rule: str | None = None


class GateRow(Record):
    """A row of `gates.jsonl`. `at` and `run_id` are ours; the reference's rows lack them."""

    gate: str
    status: Literal["ok", "ask", "abort"]
    decision: str | None = None
    source: str | None = None
    note: str | None = None
    round: Whole | None = None
    at: str | None = None
    run_id: str | None = None


class VerdictLedgerLine(Record):
    """A row of `evaluation/.verdicts-<stem>.jsonl`. Only an integer `run` counts (rulings C11)."""

    run: Any = None
    dimension: Maybe[str] = None
    criterion: Maybe[str] = None
    verdict: Maybe[str] = None
    confidence: Maybe[str] = None
    reprobed: Maybe[bool] = None
    evidence: Maybe[str] = None
    at: Maybe[str] = None


class QaFindings(Record):
    total: Whole | None = None
    promoted: Whole | None = None
    held: Whole | None = None


class RatchetMetrics(Record):
    trials: Whole | None = None
    scopes_multi_trial: Whole | None = None
    improvement_rate: float | None = None
    monotone_rate: float | None = None
    sawtooth_count: Whole | None = None
    mean_trials_to_green: float | None = None


class HookMetrics(Record):
    evaluations: Whole | None = None
    denials: Whole | None = None
    errors: Whole | None = None
    per_hook: dict[str, Any] | None = None


class MetricsRow(Record):
    """The harvest of one run. A row without `feature_slug` or `terminal_state` is malformed (§2.14). Any string is a
    terminal state on read (D-11); `final_audit_score` is copied, whatever it is."""

    schema_version: One
    at: Maybe[str] = None
    run_id: str | None = None
    feature_slug: str
    terminal_state: str
    round_count: Whole | None = None
    final_audit_score: Any = None
    surprise_count: Whole | None = None
    spike_unresolved_count: Whole | None = None
    scope_cut_count: Whole | None = None
    attempt_exhaustions: Any = None
    qa_findings: QaFindings | None = None
    slice_count: Whole | None = None
    ratchet: RatchetMetrics | None = None
    hooks: HookMetrics | None = None
    sources: Many[str] = ()


class PathologyRow(Record):
    """A row of the metrics file written by a hook. PA3 fills the first three details, SAFETY the others."""

    schema_version: One
    at: Maybe[str] = None
    kind: Literal["pathology"]
    pathology: str
    order: Maybe[str] = None
    slug: Maybe[str] = None
    blocked_paths: Many[str] = ()
    category: Maybe[str] = None
    tool: Maybe[str] = None
    path: Maybe[str] = None
    command: Maybe[str] = None
    note: Maybe[str] = None


# --- the committed tree ----------------------------------------------------------------------------------------------


class HillShard(Record):
    scope_id: str
    phase: HillPhase


class ScopeBoard(Record):
    rows: Many[Any] = ()


class RequirementClause(Record):
    id: RequirementId
    clause: str
    source: Maybe[str] = None
    status: Literal["covered", "CUT (PO-approved)"]
    note: Maybe[str] = None


class WiringEntry(Record):
    use_case: str
    engine: str
    wiring_seam: Maybe[str] = None
    entry_call_site: Maybe[str] = None
    affordance: Maybe[str] = None


class WiringMap(Record):
    schema_version: One
    feature: str
    entry_point: Maybe[str] = None
    entries: Many[WiringEntry]


class Seam(Record):
    seam: Maybe[str] = None
    engine: Maybe[str] = None
    entry_point: Maybe[str] = None


class ProjectProfile(Record):
    schema_version: One
    archetype: Literal["client-only-game", "web-service", "mobile", "library", "data-pipeline"]
    entry_point: str
    note: Maybe[str] = None
