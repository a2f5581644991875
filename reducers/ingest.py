"""Ingest: one result judged against its order and its run, and reduced into changes. Source: protocol §4.1.

Pure: the same run, result and clock give the same judgement.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from parsers.envelopes import result_right_faults
from parsers.facts import OrderFact, ResultFact
from parsers.faults import Fault
from parsers.layout import path_of, stem_at
from parsers.tree import Unreadable
from reducers.changes import Change
from reducers.identity import attestation, earlier_outcome, evaluated_fault, identity_faults, run_id_for
from reducers.records import ingest_row, leg_row, reduce_discoveries, reduce_verdict
from reducers.run import Judgement, Outcome, Run, Summary
from reducers.task_results import AMBIGUOUS, reduce_tasks

MAX_ENTRIES = 16  # per task and result: real ones have one
MAX_REFUTED = 256


def reduce_result(run: Run, fact: ResultFact, now: datetime) -> Judgement:
    """The judgement on one result whose shape is right, with every change it wants.

    Only `duplicate`, `pending` and `abandoned` want no change; a refusal wants its row in the ingest record.
    """
    order = run.orders.get(fact.stem)
    faults = tuple(identity_faults(run, fact, order))
    if faults:
        return _refused(run, fact, faults, now)
    past = earlier_outcome(run, fact, order)
    match past:
        case "duplicate":
            return Judgement("duplicate", fact.result.order_id, run_id_for(run, order))
        case "adopted":
            adopted = Judgement("adopted", fact.result.order_id, run_id_for(run, order))
            return _recorded(fact, order, adopted, now)
    evaluated = evaluated_fault(run, fact, order)
    if evaluated:
        return _refused(run, fact, (evaluated,), now)
    if past == "tampered":
        return _refused(run, fact, (_tampered(fact),), now)
    try:
        return _reduce(run, fact, order, "superseded" if past == "superseded" else "applied", now)
    except Unreadable as stop:
        return _refused(run, fact, (stop.fault,), now)


def _reduce(run: Run, fact: ResultFact, order: OrderFact | None, outcome: Outcome, now: datetime) -> Judgement:
    warnings: list[Fault] = []
    dispatched_at: str | None = None
    if order is None:
        missing = _no_order(run, fact)
        if run.has_receipt and run.attestation != "off":
            return Judgement("pending", fact.result.order_id, run.run_id, faults=(missing,))
        warnings.append(missing)
    else:
        rights = tuple(result_right_faults(fact.value, order.order.worker, fact.path))
        if rights:
            return _refused(run, fact, rights, now)
        dispatched_at, refusal, warning = attestation(run, fact, order)
        if refusal:
            return _refused(run, fact, (refusal,), now)
        warnings += [warning] if warning else []
    repeated = _repeated(fact)
    if repeated:
        return _refused(run, fact, (repeated,), now)
    tasks = reduce_tasks(run, fact, now)
    discoveries = reduce_discoveries(run, fact, now)
    verdict, verdict_lines = reduce_verdict(run, fact, now)
    if fact.result.task_results and not tasks.is_known and not discoveries and not verdict:
        return _refused(run, fact, (_no_task(run, fact, tasks.misses),), now)
    summary = Summary(
        tasks.updated,
        tasks.ticked,
        tasks.unblocked,
        len(fact.result.discoveries or ()),
        verdict_lines,
        tasks.unticked,
        tasks.misses,
    )
    changes: tuple[Change, ...] = (*tasks.edits, *discoveries, *verdict)
    if order:
        changes = (*changes, leg_row(run, order, dispatched_at, now))
    judged = Judgement(outcome, fact.result.order_id, run_id_for(run, order), changes, (), tuple(warnings), summary)
    return _recorded(fact, order, judged, now)


def _recorded(fact: ResultFact, order: OrderFact | None, judged: Judgement, now: datetime) -> Judgement:
    verdict = fact.result.verdict.overall if fact.result.verdict else None
    return judged._replace(changes=(*judged.changes, ingest_row(judged, fact.path, fact.sha256, order, verdict, now)))


def _refused(run: Run, fact: ResultFact, faults: tuple[Fault, ...], now: datetime) -> Judgement:
    return refuse_result(run, fact.path, fact.sha256, faults, now, fact.result.order_id)


def refuse_result(
    run: Run, path: str, sha256: str, faults: tuple[Fault, ...], now: datetime, order_id: str | None = None
) -> Judgement:
    """The refusal of a result, recorded unless the same refusal of the same bytes already stands in the record.

    `order_id` None: the result could not be read far enough to know it, so it is known by its place.
    """
    stem = stem_at(path)
    order = run.orders.get(stem)
    outcome: Outcome = "tampered" if faults[0].code == "E-TAMPERED" else "rejected"
    judged = Judgement(outcome, order_id or f"{run.slug}/{stem}", run_id_for(run, order), faults=faults)
    rows = run.records.get(judged.order_id, ())
    if any(row.sha256 == sha256 and row.code == judged.code and row.run_id == judged.run_id for row in rows):
        return judged
    return judged._replace(changes=(ingest_row(judged, path, sha256, order, None, now),))


def _repeated(fact: ResultFact) -> Fault | None:
    """A result that says the same thing of one task hundreds of times would grow its file, and the time to read it, without end."""
    verdict = fact.result.verdict
    entries = Counter(entry.task_id for entry in fact.result.task_results)
    refuted = Counter(item.task_id for item in verdict.refuted) if verdict else Counter[str]()
    for what, counts, most in (("task_results", entries, MAX_ENTRIES), ("verdict.refuted", refuted, MAX_REFUTED)):
        for task_id, count in counts.most_common(1):
            if count > most:
                return Fault(
                    "E-TOO-LARGE",
                    f"{fact.path}:$.{what}",
                    f"it speaks of {task_id} {count} times, more than {most}",
                    "one entry per task says all there is to say about an attempt",
                    "merge the entries of each task into one",
                )
    return None


def _no_order(run: Run, fact: ResultFact) -> Fault:
    if fact.stem in run.claimed:
        why = path_of("rejection", run.slug, f"order-{fact.stem}")
        told = "its order stands refused, so nobody was to answer it"
        return Fault(
            "E-NO-ORDER", fact.path, told, "every result answers one admitted order", f"do what {why} asks for"
        )
    return Fault(
        "E-NO-ORDER",
        fact.path,
        f"no order {path_of('order', run.slug, fact.stem)} stands beside it",
        "every result answers exactly one compiled order",
        "compile the order, or ingest once with --no-receipt-check",
    )


def _no_task(run: Run, fact: ResultFact, misses: tuple[str, ...]) -> Fault:
    return Fault(
        "E-TASK-AMBIGUOUS" if any(AMBIGUOUS in miss for miss in misses) else "E-NO-TASK",
        f"{fact.path}:$.task_results",
        "none of its tasks can be told on the board: " + "; ".join(misses),
        "a result moves the board through its task ids alone",
        f"correct the task ids, or add the task files under {path_of('board-index', run.slug).rsplit('/', 1)[0]}/",
    )


def _tampered(fact: ResultFact) -> Fault:
    return Fault(
        "E-TAMPERED",
        fact.path,
        "the result was changed after a later order had been given",
        "an applied result is a fact of the past; later work may already rest on it",
        "put the first bytes back, or compile the order again and answer that",
    )
