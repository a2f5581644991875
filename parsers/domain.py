"""The entities that envelopes embed, one model each, fields in the registry's order. Source: protocol §2.7, advisor §7 S4.

A field typed `Maybe[...] = None` was absent when it is None; one typed `... | None = None` was absent or null. An absent
array reads as `()`. Where the registry marks a field required and a recorded envelope without it validates, the record
wins (rulings H2): `T0Score.db_probe`. Unknown keys are dropped here; whoever rewrites a document keeps its own copy.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from parsers.schema import Many, Matches, Maybe, One, Record, Unlisted, Whole

WorkerName = Annotated[
    Literal[
        "task-executor",
        "spec-evaluator",
        "ba-pitch-analyzer",
        "scope-architect",
        "solution-architect",
        "orient",
        "qa-edge-hunter",
        "translator",
        "scope-hammer",
        "coach",
        "advisor-protocol",
    ],
    Unlisted("advisor-protocol"),
]
Operation = Annotated[
    Literal[
        "execute",
        "fix",
        "spike",
        "analyze",
        "reconcile",
        "retrofit-surface",
        "coverage",
        "map-scopes",
        "wire",
        "evaluate",
        "orient",
        "hunt",
        "translate",
        "hammer",
        "coach",
        "adjudicate",
    ],
    Unlisted("adjudicate"),
]
Breaker = Annotated[Literal["outer", "inner", "deadline"], Unlisted("deadline")]
HillPhase = Literal["UPHILL_UNKNOWN", "UPHILL_SOLVED", "DOWNHILL_EXECUTION", "FINISHED"]
RequirementId = Annotated[str, Matches("^REQ-[0-9]+$")]
RunId = Annotated[str, Matches("^[a-z0-9][a-z0-9-]*-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$")]
OrderId = Annotated[str, Matches("^[a-z0-9][a-z0-9-]*/[a-z0-9][A-Za-z0-9.-]*$")]
Sha256 = Annotated[str, Matches("^[a-f0-9]{64}$")]
# The printed pattern backtracks over the whole text at each of its characters; it matches exactly where the short one does.
FileAndLine = Annotated[str, Matches(r"[\w./\-]+:[0-9]+", search=r"[\w./\-]:[0-9]")]
DbProbe = Whole | None


# --- what an order carries -------------------------------------------------------------------------------------------


class AcceptanceCriterion(Record):
    text: str
    covers: Many[RequirementId] = ()


class TaskRef(Record):
    id: str
    title: Maybe[str] = None
    body_path: Maybe[str] = None
    acceptance_criteria: Many[str | AcceptanceCriterion] = ()
    status: Maybe[str] = None
    priority: Maybe[Whole] = None
    depends_on: Many[str] = ()
    use_case_refs: Many[str] = ()
    scope_id: Maybe[str] = None


class Decision(Record):
    id: str
    answer: str


class AegisTriple(Record):
    """One digested error. `file` and `line` are null where the output named none."""

    file: str | None = None
    line: Whole | None = None
    core_message: Maybe[str] = None
    kind: Maybe[str] = None


class VerifySpec(Record):
    test_cmd: Maybe[str] = None
    env: Many[str] = ()


class Constraints(Record):
    non_go: Many[str] = ()
    ui_layers: Maybe[dict[str, Any]] = None


class AffordanceEntry(Record):
    test_id: Maybe[str] = None
    role: Maybe[str] = None
    required_states: Many[str] = ()


class UseCase(Record):
    id: str
    title: Maybe[str] = None
    invariants: Many[str] = ()


class ScopeContract(Record):
    scope_id: str
    topology_type: Maybe[Literal["LAYER_CAKE", "ICEBERG", "CHOWDER"]] = None
    use_cases: Many[str] = ()
    covers: Many[str] = ()
    depends_on: Many[str] = ()
    allowed_file_substrate: Many[str] = ()
    shared_substrate: Many[str] = ()
    affordance_manifest: Many[AffordanceEntry] = ()
    e2e_verification_fixtures: Many[str] = ()
    db_probe: Maybe[str] = None
    hill_phase: Maybe[HillPhase] = None
    superseded_by: Many[str] = ()
    business_goal: Maybe[str] = None


class T0Score(Record):
    regressions: Whole
    fixtures_passed: Whole
    fixtures_total: Whole
    db_probe: DbProbe = None


class TrialRow(Record):
    """One trial of a scope. Trials count from 1; on read a 0 validates, as minima are ignored (§2.15)."""

    schema_version: One
    trial: Whole
    run_id: Maybe[str] = None
    round: Maybe[Whole] = None
    attempt: Maybe[Whole] = None
    scope_id: str
    at: Maybe[str] = None
    artifact: Maybe[str] = None
    sha256: Maybe[str] = None
    score: T0Score
    status: Literal["kept", "reverted", "rebased", "crash"]
    baseline_trial: Whole | None = None
    delta: Maybe[str] = None
    tree_ref: str | None = None
    digest: Many[AegisTriple] = ()


# --- what a result carries -------------------------------------------------------------------------------------------


class AcResult(Record):
    """`ac` is the checkbox text, verbatim."""

    ac: str
    result: Literal["pass", "fail", "skipped"]
    evidence: Maybe[str] = None


class TaskResult(Record):
    task_id: str
    status: Literal["done", "partial", "failed", "skipped"]
    ac_results: Many[AcResult] = ()
    notes: Maybe[str] = None


class FileTouched(Record):
    path: str
    change: Literal["created", "modified", "deleted"]
    lines: Maybe[Whole] = None


class Discovery(Record):
    marker: Literal["+", "~"]
    line: str
    lens: Maybe[str] = None
    repro: Maybe[str] = None
    severity_hint: Maybe[str] = None
    test_gap: Maybe[str] = None
    contradicts: Maybe[str] = None
    traces_to: Many[RequirementId] = ()


class T0Citation(Record):
    scope_id: str
    path: str
    sha256: Sha256


class PassedCriterion(Record):
    criterion: str
    verdict: Literal["PASS"]
    dimension: Maybe[str] = None
    confidence: Maybe[Literal["high", "medium", "low"]] = None
    reprobed: Maybe[bool] = None
    evidence: Maybe[str] = None
    traces_to: Many[RequirementId] = ()


class FailedCriterion(Record):
    """A FAIL names a file and a line somewhere in its evidence."""

    criterion: str
    verdict: Literal["FAIL"]
    evidence: FileAndLine
    dimension: Maybe[str] = None
    confidence: Maybe[Literal["high", "medium", "low"]] = None
    reprobed: Maybe[bool] = None
    traces_to: Many[RequirementId] = ()


CriterionVerdict = PassedCriterion | FailedCriterion


class RefutedAc(Record):
    task_id: str
    ac: str


class Verdict(Record):
    """`bugs` are untyped; by convention objects with id, severity, criterion, location, repro, expected, actual,
    fix_hint, scope_id."""

    overall: Maybe[Literal["PASS", "FAIL"]] = None
    report_path: Maybe[str] = None
    t0_citations: Many[T0Citation] = ()
    criteria: Many[CriterionVerdict] = ()
    refuted: Many[RefutedAc] = ()
    bugs: Many[Any] = ()
