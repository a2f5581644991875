"""The order's payload: what the worker may rely on, and nothing of another worker's. Source: protocol §2.5, §2.8, §2.9, §6.8, §6.9, W-04, ruling B8."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from parsers.addresses import scope_stem
from parsers.envelopes import IN_NO_COLUMN, PAYLOAD_RIGHTS, WorkOrderPayload
from parsers.faults import Fault
from parsers.layout import folder_of, path_of
from parsers.substrates import BUILD
from parsers.tasks import Task
from reducers.bugs import ScopeArea, bugs_for_scope, verdict_bugs
from reducers.compile.decisions import project_decisions
from reducers.compile.errors import digested_errors
from reducers.compile.request import CompileFacts, Contract, Request
from reducers.compile.tasks import task_rows
from reducers.trial_history import select_trial_history

TAUGHT = frozenset({"task-executor", "ba-pitch-analyzer", "qa-edge-hunter"})  # who reads a knowledge base
_FILLED_IN = frozenset({"feature", "spec_folder"})  # callers of the reference add them for everybody
_REGISTERED = frozenset(WorkOrderPayload.model_fields)


class Aim(NamedTuple):
    """What the order is for, once it is settled. `contract` None: it works by none. `is_scope`: it builds a whole scope."""

    operation: str
    worker: str
    contract: Contract | None = None
    scope_id: str | None = None
    tasks: tuple[Task, ...] | None = None
    bugs: tuple[Mapping[str, object], ...] = ()
    is_scope: bool = False


def routed_bugs(facts: CompileFacts, scope_id: str, round_: int | None) -> tuple[dict[str, object], ...]:
    """The bugs of the round before that go to this scope. A scope that others took the place of owns nothing any more."""
    if round_ is None or round_ < 2:
        return ()
    areas = [contract.area for contract in facts.contracts.values() if not contract.successors]
    return bugs_for_scope(verdict_bugs(facts.verdict_of(round_ - 1)), scope_id, areas, facts.has_file)


def payload_faults(request: Request, worker: str) -> tuple[tuple[Fault, ...], tuple[Fault, ...]]:
    """(faults, warnings) on what the caller adds: a field of another worker's is refused, one of nobody's is carried. Source: B8."""
    own = PAYLOAD_RIGHTS.get(worker, frozenset()) | IN_NO_COLUMN
    other = [name for name in request.payload if name not in own]
    foreign = [name for name in other if name in _REGISTERED and name not in _FILLED_IN]
    left_out = [name for name in other if name in _FILLED_IN]
    unknown = [name for name in other if name not in _REGISTERED]
    why = "each worker is given the fields of its row in the domain registry"
    faults = [
        Fault("E-FIELD-RIGHTS", f"--payload:$.{name}", f"{worker} may not have it", why, "leave it out of --payload")
        for name in foreign
    ]
    if request.test_cmd is not None and "verify" not in own:
        faults.append(Fault("E-FIELD-RIGHTS", "--test-cmd", f"{worker} may not have it", why, "leave --test-cmd out"))
    warnings = [
        Fault("E-FIELD-RIGHTS", f"--payload:$.{name}", f"left out: {worker} may not have it", why, "leave it out")
        for name in left_out
    ]
    fix = "leave it out, or spell it as the registry does"
    warnings += [
        Fault("E-FIELD-RIGHTS", f"--payload:$.{name}", "registered for no worker", why, fix) for name in unknown
    ]
    return tuple(faults), tuple(warnings)


def assemble_payload(facts: CompileFacts, request: Request, aim: Aim) -> dict[str, object]:
    """The payload, keys in the order of assembly; what comes later wins. An empty list that is derived is left out."""
    rights = PAYLOAD_RIGHTS.get(aim.worker, frozenset()) | IN_NO_COLUMN
    derived = {key: value for key, value in _derived(facts, request, aim) if key in rights and value is not None}
    added = {key: value for key, value in request.payload.items() if key in rights or key not in _REGISTERED}
    payload = {**derived, **added}
    for key, value in _filled_in(facts, request, aim):
        if key in rights and value is not None:
            payload.setdefault(key, value)
    if aim.worker in TAUGHT:
        payload["kb_rules_path"] = path_of("knowledge-base", stem=aim.worker)
    return payload


def _derived(facts: CompileFacts, request: Request, aim: Aim) -> Iterator[tuple[str, object]]:
    if aim.operation in BUILD and aim.contract:
        yield "scope_contract", dict(aim.contract.document)
    if aim.tasks:
        yield "tasks", task_rows(aim.tasks, facts.criteria, facts.root)
    if decisions := project_decisions(*facts.ledgers, aim.scope_id):
        yield "decisions", decisions
    if aim.is_scope and aim.scope_id:
        yield from _of_attempts(facts, request, aim.scope_id)
    if aim.bugs:
        yield "bugs", [dict(bug) for bug in aim.bugs]
    if request.test_cmd is not None:
        yield "verify", {"test_cmd": request.test_cmd, "env": []}


def _of_attempts(facts: CompileFacts, request: Request, scope_id: str) -> Iterator[tuple[str, object]]:
    history = select_trial_history(facts.trials, scope_id, request.round)
    digests = digested_errors(facts.trials, history, facts.artifacts, scope_id, request.round, request.attempt)
    if digests:
        yield "digested_errors", digests
    if history:
        yield "trial_history", history


def _filled_in(facts: CompileFacts, request: Request, aim: Aim) -> Iterator[tuple[str, object]]:
    """What the caller may leave out, because the run's own files say it."""
    slug, here = facts.slug, facts.root
    match aim.operation:
        case "orient" | "analyze":
            intake = path_of("intake", slug)
            yield "pitch", f"{here}/{intake}" if facts.has_file(intake) else None
            yield "lens", facts.lens
            yield "orient_dir", f"{folder_of('orient', slug)}/" if aim.operation == "analyze" else None
        case "wire":
            profile = path_of("project-profile", slug)
            yield "project_profile", f"{here}/{profile}" if facts.has_file(profile) else None
        case "reconcile":
            ledger = path_of("discovery-ledger", slug)
            yield "discovered_ledger", ledger if facts.has_file(ledger) else None
        case "evaluate":
            yield "dimensions", list(facts.dimensions) or None
            yield "round", request.round
            yield "t0_artifacts", _newest_green(facts, request.round) or None
        case "hammer":
            yield "scope_id", aim.scope_id
    if aim.worker == "scope-architect" and request.scope:
        yield "scope_id", aim.scope_id
    yield "spec_folder", spec_folder(facts, request, aim.operation)
    yield "feature", slug


def spec_folder(facts: CompileFacts, request: Request, operation: str) -> str | None:
    """The spec's folder without a closing `/`; None where none is known, but those who lay it out are told where."""
    named = request.spec_dir or facts.spec_dir
    if named is None and operation in ("orient", "analyze"):
        return folder_of("spec", facts.slug)
    return named.rstrip("/") if named else None


def _newest_green(facts: CompileFacts, round_: int | None) -> list[str]:
    """The artifacts a verdict on the round may cite: each scope's newest, where it is green. By scope."""
    newest: dict[str, tuple[tuple[int, int, int], bool, str]] = {}
    for artifact in facts.artifacts:
        if round_ is None or artifact.address[0] <= round_:
            seen = (artifact.address, artifact.is_green, artifact.path)
            scope = scope_stem(artifact.scope_id)
            newest[scope] = max(newest.get(scope, seen), seen)
    return [path for _, (_, is_green, path) in sorted(newest.items()) if is_green]


def area_of(contract: Contract | None) -> ScopeArea | None:
    """What the contract draws."""
    return contract.area if contract else None
