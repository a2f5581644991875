"""A request and a run's facts to one WorkOrder: whole, valid and addressed; or why there is none. Source: protocol §2.3-2.5, W-02, W-04, rulings B6, B8."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal, NamedTuple

from parsers.addresses import MAX_ORDER_ID, scope_stem
from parsers.facts import OrderFact, read_order
from parsers.faults import Fault
from parsers.layout import folder_of, path_of
from parsers.substrates import BUILD
from parsers.tasks import Task
from parsers.trials import SCOPE_ID
from reducers.compile.payload import Aim, area_of, assemble_payload, payload_faults, routed_bugs
from reducers.compile.request import CompileFacts, Contract, Request
from reducers.compile.stems import WORKERS, order_stem
from reducers.compile.substrate import substrate_of
from reducers.compile.tasks import CUT, DONE, next_task, owners_of, partition_conflicts, scope_tasks

_SHOWN = 12


class Refused(NamedTuple):
    """No order. `kind`: what was asked for cannot be read or meant (`input`), or what came of it is no valid order (`invalid`)."""

    kind: Literal["input", "invalid"]
    faults: tuple[Fault, ...]


class Compiled(NamedTuple):
    """An order that may be written: `data` are its bytes, `fact` is how they will be read."""

    document: dict[str, object]
    data: bytes
    fact: OrderFact
    warnings: tuple[Fault, ...]


class _Stop(Exception):
    """Ends the look at a request."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__()
        self.faults = faults


def compile_order(facts: CompileFacts, request: Request, compiled_at: str) -> Compiled | Refused:
    """The order that is asked for. Whether it may be written (a live order, a breaker, a rule) is asked by whoever writes it."""
    try:
        aim = _aim(facts, request)
        faults, warnings = payload_faults(request, aim.worker)
        if faults:
            raise _Stop(*faults)
        stem = _stem(request, aim)
    except _Stop as stop:
        return Refused("input", stop.faults)
    document = _document(facts, request, aim, stem, compiled_at)
    data = render_order(document)
    read = read_order(path_of("order", facts.slug, stem), data)
    if read.fact is None:
        return Refused("invalid", read.faults)
    return Compiled(document, data, read.fact, (*warnings, *_warnings(facts, request, aim)))


def render_order(document: dict[str, object]) -> bytes:
    """The file's bytes: two spaces, nothing escaped, a closing LF."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _document(facts: CompileFacts, request: Request, aim: Aim, stem: str, compiled_at: str) -> dict[str, object]:
    return {
        "schema_version": 1,
        "order_id": f"{facts.slug}/{stem}",
        **({"run_id": facts.run_id} if facts.run_id is not None else {}),
        "compiled_at": compiled_at,
        "worker": aim.worker,
        "mode": "orchestrated",
        "operation": aim.operation,
        "interaction": {"pause_gates": False},
        "substrate": substrate_of(aim.operation, facts.slug, request.spec_dir or facts.spec_dir, area_of(aim.contract)),
        "payload": assemble_payload(facts, request, aim),
    }


# --- what is meant ---------------------------------------------------------------------------------------------------


def _aim(facts: CompileFacts, request: Request) -> Aim:
    _check(request)
    builds = request.operation in BUILD if request.operation else True
    if request.is_task:
        return _task_aim(facts, request)
    if request.scope is not None:
        return _scope_aim(facts, request, builds)
    if request.operation is None or (builds and not request.payload.get("tasks")):
        fix = "say --scope ID, --task ID or --next" + ("" if request.operation else ", or an operation")
        why = "an order to build names a scope or a task"
        raise _Stop(Fault("E-NO-TASK", "compile", "nothing is named that could be built", why, fix))
    return Aim(request.operation, _worker(request, request.operation))


def _check(request: Request) -> None:
    """What the request's words must be before anything is looked up."""
    forms = [request.scope is not None, request.task is not None, request.is_next]
    if sum(forms) > 1 and not (forms[0] and sum(forms[1:]) == 1):
        raise _Stop(_usage("--task and --next exclude each other", "give one of them"))
    if request.attempt is not None and request.round is None:
        raise _Stop(_usage("--attempt counts within a round", "give --round N too"))
    if request.operation is not None and request.operation not in WORKERS:
        raise _Stop(_usage(f"there is no operation {request.operation!r}", f"use one of {', '.join(WORKERS)}"))
    spec = request.spec_dir
    if spec is not None and (spec.startswith("/") or ".." in spec.split("/") or not spec.strip("/.")):
        raise _Stop(_usage(f"--spec {spec!r} leaves the repository", "name a folder relative to its top"))


def _usage(what: str, fix: str) -> Fault:
    return Fault("E-SCHEMA", "compile", what, "an order is compiled for one worker, to do one thing", fix)


def _worker(request: Request, operation: str) -> str:
    worker = request.worker or WORKERS[operation]
    if worker not in WORKERS.values():
        raise _Stop(_usage(f"there is no worker {worker!r}", f"use one of {', '.join(sorted(set(WORKERS.values())))}"))
    return worker


def _scope_aim(facts: CompileFacts, request: Request, builds: bool) -> Aim:
    named = request.scope or ""
    contract = facts.contracts.get(scope_stem(named))
    if builds or contract is not None:
        contract = _readable(facts, named)
    elif not SCOPE_ID.match(named):
        raise _Stop(_no_scope(facts, named))
    scope_id = contract.area.scope_id if contract else named
    bugs = routed_bugs(facts, scope_id, request.round) if builds else ()
    operation = request.operation or ("fix" if bugs or request.payload.get("bugs") else "execute")
    tasks = scope_tasks(facts.tasks, contract) if contract else None
    worker = _worker(request, operation)
    return Aim(operation, worker, contract, scope_id, tasks, bugs, is_scope=builds)


def _task_aim(facts: CompileFacts, request: Request) -> Aim:
    task = _task(facts, request)
    operation = request.operation or ("fix" if request.payload.get("bugs") else "execute")
    contract = _contract_of(facts, request, task) if operation in BUILD else None
    scope_id = contract.area.scope_id if contract else None
    return Aim(operation, _worker(request, operation), contract, scope_id, (task,))


def _task(facts: CompileFacts, request: Request) -> Task:
    board = folder_of("task", facts.slug)
    if request.task is None:
        found = next_task(facts.tasks)
        if found is None:
            raise _Stop(_none_ready(facts, board))
        return found
    named = [task for task in facts.tasks if task.id == request.task]
    if len(named) == 1:
        return named[0]
    if named:
        files = ", ".join(task.path for task in named[:_SHOWN])
        why = "an order names its task by its id alone"
        raise _Stop(
            Fault("E-TASK-AMBIGUOUS", board, f"several files are {request.task}: {files}", why, "rename all but one")
        )
    known = ", ".join(task.id for task in facts.tasks[:_SHOWN])
    fix = f"name one that is there: {known}" if known else f"let the planner write it: {board}/{request.task}.md"
    raise _Stop(
        Fault("E-NO-TASK", board, f"there is no task {request.task}", "an order builds a task of the board", fix)
    )


def _none_ready(facts: CompileFacts, board: str) -> Fault:
    open_ = [task for task in facts.tasks if task.status not in (DONE, CUT)]
    if not facts.tasks:
        what, fix = "there are no tasks", f"let the planner write them: {board}/TASK-….md"
    elif not open_:
        what, fix = "every task is done or cut", "go on to evaluate: `shapeupd compile evaluate --round N`"
    else:
        what = "no task is ready with all it depends on done"
        fix = f"finish or unblock one of: {', '.join(f'{task.id} ({task.status})' for task in open_[:_SHOWN])}"
    return Fault("E-NO-TASK", board, what, "--next takes the first ready task by priority", fix)


def _contract_of(facts: CompileFacts, request: Request, task: Task) -> Contract | None:
    """The contract that says where the task may be built; None only where the feature has none at all."""
    if request.scope is not None:
        return _readable(facts, request.scope)
    if not facts.contracts:
        return None
    current = [contract for contract in facts.contracts.values() if not contract.successors]
    owners = owners_of(task, current, is_stamped=any(one.scope_id for one in facts.tasks))
    if len(owners) == 1:
        return _readable(facts, owners[0])
    told = f"belongs to {', '.join(owners)}" if owners else "belongs to no scope"
    fix = "say which one: --scope ID" if owners else "stamp it with `scope_id:`, or say --scope ID"
    raise _Stop(
        Fault("E-NO-CONTRACT", task.path, f"{task.id} {told}", "its contract says which files it may write", fix)
    )


def _readable(facts: CompileFacts, named: str) -> Contract:
    contract = facts.contracts.get(scope_stem(named))
    if contract is None:
        raise _Stop(_no_scope(facts, named))
    if contract.faults:
        raise _Stop(*contract.faults)
    return contract


def _no_scope(facts: CompileFacts, named: str) -> Fault:
    folder = folder_of("scope-contract", facts.slug)
    known = ", ".join(sorted(contract.area.scope_id for contract in facts.contracts.values())[:_SHOWN])
    fix = f"name one of: {known}" if known else "map the scopes first: `shapeupd compile map-scopes`"
    return Fault(
        "E-NO-CONTRACT", folder, f"there is no contract of a scope {named!r}", "it says what may be written", fix
    )


def _stem(request: Request, aim: Aim) -> str:
    task_id = aim.tasks[0].id if request.is_task and aim.tasks else None
    stem = order_stem(aim.operation, aim.scope_id, request.round, request.attempt, task_id)
    if len(stem) + len(request.slug) + 1 > MAX_ORDER_ID:
        what = f"the order's id would have more than {MAX_ORDER_ID} characters"
        raise _Stop(Fault("E-ID", "compile", what, "file names are made from it", "shorten the scope's name"))
    return stem


# --- what is odd -----------------------------------------------------------------------------------------------------


def _warnings(facts: CompileFacts, request: Request, aim: Aim) -> Iterator[Fault]:
    contract = aim.contract
    if aim.worker != WORKERS[aim.operation]:
        what = f"{aim.operation} is the work of {WORKERS[aim.operation]}, and this order is for {aim.worker}"
        yield Fault("E-WORKER", "compile", what, "a worker returns only what its own row allows", "leave --worker out")
    if contract and contract.successors:
        what = f"{contract.area.scope_id} was superseded by {', '.join(contract.successors)}"
        yield Fault("E-NO-CONTRACT", contract.path, what, "its successors are built now", "compile for one of them")
    if contract and aim.tasks:
        own = {task.id for task in aim.tasks}
        areas = [one.area for one in facts.contracts.values() if not one.successors]
        for task_id, scopes in partition_conflicts(facts.tasks, areas):
            if task_id in own:
                what = f"{task_id} belongs to several scopes: {', '.join(scopes)}"
                why = "two orders would build the same task"
                yield Fault("SCOPE-PARTITION", contract.path, what, why, "stamp the task with `scope_id:`")
    if aim.operation in BUILD and contract is None:
        what = "the feature has no scope contract, so the order opens the spikes folder alone"
        why = "a build order takes what may be written from a contract"
        fix = "map the scopes first: `shapeupd compile map-scopes`"
        yield Fault("E-NO-CONTRACT", folder_of("scope-contract", facts.slug), what, why, fix)
