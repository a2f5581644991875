"""What people decided: in the round ledger in time, in every later order, and with a name behind it. Source: protocol §1.8, §9 R-30 to R-32, advisor J1, J3, ruling I3.

That several rows of different rounds came in one write (R-30) is told by whoever watches the file, not by its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from parsers.addresses import scope_stem
from parsers.layout import path_of
from parsers.receipts import whole_number
from parsers.round_ledger import NUMBERED_KINDS, UNSET, Decision
from parsers.times import parse_time
from reducers.rules.arrivals import OrderArrival
from reducers.rules.evaluation import listed
from reducers.rules.findings import Finding, finding
from reducers.rules.loop_facts import LoopFacts

CARRIED = NUMBERED_KINDS | {"cut", "other"}
_ANY_SCOPE = frozenset({"", "*", "-", UNSET})
_NO_NAME = ("preset:", "file:")


def decisions_reach_later_orders(arrival: OrderArrival) -> Iterator[Finding]:
    """R-31. Judged where the ledger is older than the order: then the order could carry what stands there."""
    facts = arrival.facts
    compiled = parse_time(arrival.order.compiled_at)
    is_older = facts.decided_at is not None and compiled is not None and facts.decided_at <= compiled
    if not arrival.is_build or arrival.is_past or not is_older:
        return
    carried = {_plain(decision.answer) for decision in arrival.order.payload.decisions}
    missing = [
        decision for decision in effective(facts.decisions, arrival.scope) if _plain(decision.answer) not in carried
    ]
    if missing:
        told = f"it lacks what was decided: {listed([f'{one.question}: {one.answer}' for one in missing])}"
        yield arrival.finds(
            "R-31", told, f"compile it again, with the Decisions of {path_of('round-ledger', facts.slug)}"
        )


def effective(decisions: tuple[Decision, ...], scope: str) -> list[Decision]:
    """The decisions that hold for a scope (as in stems), oldest first: a later answer to a question replaces the earlier one."""
    newest: dict[tuple[str, str, str], Decision] = {}
    for decision in decisions:
        named = decision.scope.strip()
        if decision.kind not in CARRIED or not (named in _ANY_SCOPE or scope_stem(named) == scope):
            continue
        key = scope_stem(named), decision.kind, _plain(decision.question)
        newest.pop(key, None)
        newest[key] = decision
    return list(newest.values())


def answers_are_promoted_in_time(facts: LoopFacts) -> Iterator[Finding]:
    """R-30, of the whole run: an order was compiled after a gate was crossed, and the round ledger has no row of the crossing."""
    compiled = [parse_time(fact.order.compiled_at) for fact in facts.own_orders()]
    newest = max((moment for moment in compiled if moment), default=None)
    recorded = {(_gate_of(one), _round_of(one.round)) for one in facts.decisions if one.kind == "gate"}
    for row in facts.gates:
        gate, at, round_ = row.get("gate"), parse_time(str(row.get("at"))), whole_number(row.get("round"))
        if (
            row.get("status") != "ok"
            or row.get("run_id") != facts.run_id
            or at is None
            or newest is None
            or newest <= at
        ):
            continue
        if (gate, round_) not in recorded:
            told = (
                f"{gate} was answered `{row.get('decision')}`, an order followed, and the round ledger has no row of it"
            )
            path = path_of("round-ledger", facts.slug)
            yield finding("R-30", str(gate), path, told, "append the row to its Decisions table")


def consent_has_a_name(facts: LoopFacts) -> Iterator[Finding]:
    """R-32, of a shipped run: a gate row that names no source, or an answer set behind which nobody stands."""
    if not facts.is_shipped:
        return
    for row in facts.gates:
        if row.get("status") == "ok" and _is_own(facts, row) and not str(row.get("source") or "").strip():
            path = path_of("gates", facts.slug)
            told = f"{row.get('gate')} was crossed, and its row names no source"
            yield finding("R-32", str(row.get("gate")), path, told, "say in the round ledger who decided")
    for decision in facts.decisions:
        if decision.kind == "gate" and decision.resolved_by.startswith(_NO_NAME) and "(" not in decision.resolved_by:
            path = path_of("round-ledger", facts.slug)
            told = (
                f"{decision.question} was crossed by {decision.resolved_by}, and the set names nobody who authorized it"
            )
            yield finding("R-32", _gate_of(decision), path, told, "set `authorized_by` in the answer set")


def _is_own(facts: LoopFacts, row: Mapping[str, object]) -> bool:
    run_id = row.get("run_id")
    return facts.is_own(run_id if isinstance(run_id, str) else None)


def _gate_of(decision: Decision) -> str:
    return decision.question.strip().removeprefix("GATE ").strip()


def _round_of(cell: str) -> int | None:
    return int(cell) if cell.strip().isdecimal() else None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
