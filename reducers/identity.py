"""Whose result is this, was it applied already, and did its worker run? Source: protocol §2.10, §4.8 W-17, rulings C2-C4, D3, L3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from parsers.addresses import MAX_ORDER_ID, ORDER_ID, parse_address, slug_of, stem_of
from parsers.facts import OrderFact, ResultFact
from parsers.faults import Fault
from parsers.layout import path_of
from parsers.ledgers import IngestRow, discovered_orders, logged_orders, parse_rows
from parsers.markdown import decode, encode
from parsers.receipts import attest
from parsers.times import parse_time
from parsers.tree import Unreadable
from reducers.run import Outcome, Run

APPLIED: frozenset[str] = frozenset({"applied", "superseded", "adopted"})


def identity_faults(run: Run, fact: ResultFact, order: OrderFact | None) -> Iterator[Fault]:
    """A result must name its own order, in this folder, under its own file name. Source: R-02, rulings C11, L2."""
    order_id = fact.result.order_id
    expected = order.order.order_id if order else run.claimed.get(fact.stem, order_id)
    if order_id != expected:
        yield Fault(
            "E-ORDER-MISMATCH",
            f"{fact.path}:$.order_id",
            f'it answers order "{expected}" but claims "{order_id}"',
            "a result reaches its run through order_id alone; another id would book it to another order",
            f'set order_id to "{expected}" (copy it from {path_of("order", run.slug, fact.stem)})',
        )
    elif not ORDER_ID.match(order_id) or len(order_id) > MAX_ORDER_ID:
        yield Fault(
            "E-ID",
            f"{fact.path}:$.order_id",
            f"{order_id[:80]!r} is not an order id",
            f"paths are built from it, so it must be <slug>/<stem> in the closed alphabet, {MAX_ORDER_ID} characters at most",
            f'set order_id to "{run.slug}/{fact.stem}"',
        )
    elif slug_of(order_id) != run.slug:
        yield Fault(
            "E-SLUG",
            f"{fact.path}:$.order_id",
            f'"{order_id}" belongs to feature {slug_of(order_id)}, the file lies in {run.slug}',
            "a result changes only the run whose folder it lies in",
            f"move the file to {path_of('result', slug_of(order_id), fact.stem)} or correct order_id",
        )
    elif stem_of(order_id) != fact.stem:
        yield Fault(
            "E-STEM",
            f"{fact.path}:$.order_id",
            f'"{order_id}" does not match the file name {fact.stem}.json',
            "order and result are joined by their file name",
            f"rename the file to {stem_of(order_id)}.json or correct order_id",
        )


def earlier_outcome(run: Run, fact: ResultFact, order: OrderFact | None) -> Outcome | None:
    """How the past already answered this result: duplicate, adopted, superseded or tampered; None when it is new."""
    rows = [row for row in run.records.get(fact.result.order_id, ()) if _same_run(run, order, row)]
    if any(row.sha256 == fact.sha256 and row.outcome in APPLIED for row in rows):
        return "duplicate"
    answered = [row for row in rows if row.outcome in APPLIED]
    if answered:
        recompiled = order is not None and order.sha256 not in {row.order_sha256 for row in answered}
        return "superseded" if recompiled or not _overtaken(run, fact, order) else "tampered"
    return "adopted" if _is_adopted(run, fact, order) else None


def run_id_for(run: Run, order: OrderFact | None) -> str | None:
    """The run a result belongs to: what its order says, else the receipt's. Source: protocol §2.11."""
    return (order.order.run_id if order else None) or run.run_id


def _same_run(run: Run, order: OrderFact | None, row: IngestRow) -> bool:
    """Whether a record row speaks of this run. One without a run_id was written before the run was opened (or after its
    receipt was lost), so it is no other run's: opening a run must not apply again what lies there."""
    return row.run_id == run_id_for(run, order) or None in (row.run_id, run_id_for(run, order))


def _overtaken(run: Run, fact: ResultFact, order: OrderFact | None) -> bool:
    """Whether a later order of the same scope (or operation, where there is no scope) stands. Source: ruling C4."""
    if order is None:
        return False
    name = parse_address(fact.result.order_id).name
    compiled = parse_time(order.order.compiled_at)
    for other in run.orders.values():
        later = parse_time(other.order.compiled_at)
        if other.stem == fact.stem or compiled is None or later is None or later <= compiled:
            continue
        if parse_address(other.order.order_id).name == name:
            return True
    return False


def evaluated_fault(run: Run, fact: ResultFact, order: OrderFact | None) -> Fault | None:
    """A second, different verdict on one round is refused, whatever C4 would allow. Source: R-05, ruling L3."""
    if fact.result.verdict is None or parse_address(fact.result.order_id).round is None:
        return None
    rows = [row for row in run.records.get(fact.result.order_id, ()) if _same_run(run, order, row)]
    if not any(row.outcome in APPLIED and row.verdict is not None and row.sha256 != fact.sha256 for row in rows):
        return None
    return Fault(
        "E-EVALUATED",
        fact.path,
        f"{fact.result.order_id} already has a verdict, and this one is different",
        "a round is evaluated exactly once",
        "put the first verdict back, or open the next round for another evaluation",
    )


def _is_adopted(run: Run, fact: ResultFact, order: OrderFact | None) -> bool:
    """Whether another reducer applied it before shapeupd kept records. Source: ruling D3."""
    order_id = fact.result.order_id
    legs = run.legs.get(order_id, ())
    compiled = parse_time(order.order.compiled_at) if order else None
    for leg in legs:
        ingested = parse_time(leg.ingested_at)
        if leg.run_id == run_id_for(run, order) and ingested and (compiled is None or ingested >= compiled):
            return True
    named = {leg.run_id for leg in legs} | {row.run_id for row in run.records.get(order_id, ())}
    if named - {run_id_for(run, order)} or not _predates_records(run, compiled):
        return False
    return order_id in _told_by_headings(run, fact) or _told_by_verdicts(run, fact)


def _predates_records(run: Run, compiled: datetime | None) -> bool:
    """Whether another reducer may have answered an order compiled then, before shapeupd kept a record. Source: W-17, D3.

    The first results of an adopted tree start the record for the rest, and a crash may end it there: so it is the time of
    the first row that tells, not whether there are rows.
    """
    if not run.has_records:
        return True
    return compiled is not None and run.records_since is not None and compiled < run.records_since


def _told_by_verdicts(run: Run, fact: ResultFact) -> bool:
    """Whether the verdict ledger of this stem holds exactly this result's criteria as one of its runs."""
    criteria = (fact.result.verdict.criteria if fact.result.verdict else None) or ()
    runs: dict[object, list[tuple[object, ...]]] = {}
    for row in parse_rows(encode(_read(run, path_of("verdict-ledger", run.slug, fact.stem)))):
        number = row.get("run")
        if isinstance(number, int):
            runs.setdefault(number, []).append(tuple(map(row.get, ("dimension", "criterion", "verdict", "evidence"))))
    told = [(c.dimension or "spec-conformance", c.criterion, c.verdict, c.evidence or "") for c in criteria]
    return bool(told) and told in runs.values()


def _told_by_headings(run: Run, fact: ResultFact) -> frozenset[str]:
    """Order ids that the logs of this result's tasks and the discovery ledger name."""
    told = discovered_orders(_read(run, path_of("discovery-ledger", run.slug)))
    for task in _tasks_of(run, fact):
        told |= logged_orders(_read(run, task))
    return told


def _tasks_of(run: Run, fact: ResultFact) -> Iterable[str]:
    for entry in fact.result.task_results or ():
        for task in run.tasks.find(entry.task_id):
            yield task.path


def _read(run: Run, path: str) -> str:
    try:
        return decode(run.tree.read(path) or b"")
    except Unreadable:
        return ""


def attestation(run: Run, fact: ResultFact, order: OrderFact) -> tuple[str | None, Fault | None, Fault | None]:
    """(dispatched_at, fault, warning) for a result whose order is known. Source: protocol §2.10, ruling C3.

    `auto` requires a receipt where this run has dispatch receipts at all, and warns elsewhere. Standalone orders need none.
    """
    compiled = order.order
    found = attest(run.dispatches, compiled.order_id, compiled.worker, compiled.compiled_at)
    if found.why_not is None or compiled.mode != "orchestrated" or run.attestation == "off":
        return found.dispatched_at, None, None
    run_id = run_id_for(run, order)
    required = run.attestation == "require" or (run.attestation == "auto" and run_id in run.dispatches.run_ids)
    fault = Fault(
        "E-UNATTESTED",
        fact.path,
        f"result not attested: {found.why_not}",
        f"{path_of('dispatch', run.slug)} must show that worker {compiled.worker} was dispatched for {compiled.order_id}",
        f"dispatch the order with the skill {compiled.worker}, or ingest once with --no-receipt-check",
    )
    return (found.dispatched_at, fault, None) if required else (found.dispatched_at, None, fault)
