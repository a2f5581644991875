"""How a gate is answered: which answer set speaks, what follows from it, and the rows that record it. Source: protocol §8.3-8.6, §2.13, F7, W-59, W-60, W-66."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from parsers.answers import ABORT, ASK, GATES, PROCEED, ROUNDS_GATE, AnswerSet, Gate
from parsers.faults import Fault
from parsers.round_ledger import UNSET, Decision

Status = Literal["ok", "ask", "abort"]
AutoLevel = Literal["interactive", "auto", "unattended"]

AUTO_LEVELS: tuple[AutoLevel, ...] = ("interactive", "auto", "unattended")
RUN_ANSWERS, MACHINE_ANSWERS = "file:run answers", "file:machine answers"


class Candidate(NamedTuple):
    """One answer set that is there. `answers` is None where it cannot be read, and `faults` say why.

    `source` is told and written into LOCAL rows; `committed` is its name in committed ones, which hold no local path.
    """

    source: str
    committed: str
    answers: AnswerSet | None
    faults: tuple[Fault, ...] = ()
    is_of_run: bool = False  # the run's own file, into which answers are merged after a pause


class Resolution(NamedTuple):
    """What becomes of one gate. `decision` None: nobody gave one. `reason` says why nothing crosses, None where it does.

    `by` is who authorized the set. `is_answered`: the set holds an answer for this gate.
    """

    gate: Gate
    status: Status
    source: str
    committed: str
    by: str | None
    is_answered: bool
    decision: str | None = None
    note: str | None = None
    reason: str | None = None
    max_rounds: int | None = None


def choose(candidates: Sequence[Candidate], gate_id: str = "", *, is_paused: bool = False) -> Candidate | None:
    """The set that speaks: the first that is there, sets are never merged. Source: protocol §8.3.

    A gate at which the run has paused is looked up in the run's own file first: the answer was put there (W-66).
    """
    if is_paused:
        for candidate in candidates:
            if candidate.is_of_run and (candidate.answers is None or gate_id in candidate.answers.answers):
                return candidate
    return candidates[0] if candidates else None


def resolve(gate: Gate, candidate: Candidate, answers: AnswerSet, run_max_rounds: int | None = None) -> Resolution:
    """What the set says at this gate. `run_max_rounds` None: no run caps the rounds. Source: protocol §8.4."""
    answer = answers.answers.get(gate.id)
    found = Resolution(gate, "ok", candidate.source, candidate.committed, answers.authorized_by, answer is not None)
    if answer is None:
        return _resolve_missing(found, answers)
    found = found._replace(decision=answer.decision, note=answer.note)
    if answer.decision == ASK:
        return found._replace(status="ask", reason=f"GATE {gate.id} is to be asked: put its block to the PO and wait.")
    if answer.decision == ABORT:
        return found._replace(status="abort", reason=f"the answer at GATE {gate.id} is to abort.")
    limits = [limit for limit in (answer.max_rounds, run_max_rounds) if limit is not None]
    is_capped = gate.id == ROUNDS_GATE and answer.max_rounds is not None
    return found._replace(max_rounds=min(limits) if is_capped else None)  # W-60


def _resolve_missing(found: Resolution, answers: AnswerSet) -> Resolution:
    gate = found.gate
    nothing = f"nothing answers GATE {gate.id}"
    if answers.on_missing == "abort":
        why = f"{nothing}, and this set aborts where it has no answer: add one, or run where a person can be asked."
        return found._replace(status="abort", reason=why)
    if answers.on_missing == "ask":
        return found._replace(status="ask", reason=f"{nothing}: put its block to the PO and wait.")
    if PROCEED not in gate.decisions:  # W-59
        why = (
            f"{nothing}, and `{PROCEED}`, which this set falls back on, decides nothing there: put its block to the PO."
        )
        return found._replace(status="ask", reason=why)
    suffix = f" (on_missing:{PROCEED})"
    return found._replace(
        source=found.source + suffix,
        committed=found.committed + suffix,
        decision=PROCEED,
        note="no answer of its own; the set proceeds where it has none",
    )


def resolution_document(found: Resolution) -> dict[str, object]:
    """What is printed; what is not said has no key. Source: protocol §8.4."""
    named: dict[str, object | None] = {"gate": found.gate.id, "status": found.status}
    if found.status == "ok":
        named |= {"decision": found.decision, "source": found.source, "note": found.note}
        named |= {"max_rounds": found.max_rounds, "ledger_row": ledger_row(found)}
    else:
        named |= {"source": found.source, "decision": found.decision, "note": found.note, "reason": found.reason}
    named["ok"] = found.status == "ok"
    return {key: value for key, value in named.items() if value is not None}


def ledger_row(found: Resolution) -> str | None:
    """The four cells for the table of harness-run.md; None where the set had no answer. Source: protocol §8.6."""
    if found.status != "ok" or not found.is_answered:
        return None
    cells = (found.gate.id, found.decision or "", found.source, found.note or "")
    shown = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(shown)} |"


def gates_row(found: Resolution, round_: int | None, at: str, run_id: str | None) -> dict[str, object]:
    """The row of gates.jsonl; `at`, `run_id` and the `max_rounds` of an answer at L3 are ours. Source: protocol §2.13, W-60."""
    return {
        "gate": found.gate.id,
        "status": found.status,
        "decision": found.decision,
        "source": found.source,
        "note": found.note if found.note is not None else found.reason,
        "round": round_,
        "at": at,
        "run_id": run_id,
        **({"max_rounds": found.max_rounds} if found.max_rounds is not None else {}),
    }


def crossing_of(found: Resolution, round_: int | None) -> Decision | None:
    """The Decisions row of a gate that was crossed; None where it was not. Source: protocol §1.8, F7."""
    if found.status != "ok" or found.decision is None:
        return None
    by = f" ({found.by})" if found.by else ""
    shown = UNSET if round_ is None else str(round_)
    return Decision(shown, UNSET, "gate", f"GATE {found.gate.id}", found.decision, found.committed + by)


class OpenGate(NamedTuple):
    """A gate at which the run waits for a person. `round` None: the gate was asked without one."""

    gate: str
    round: int | None
    source: str
    note: str
    at: str | None


def open_gates(rows: Iterable[Mapping[str, object]], run_id: str | None) -> tuple[OpenGate, ...]:
    """The gates whose newest row in this run asks, in the order in which they were asked. A row without a run is any run's."""
    newest: dict[tuple[object, object], Mapping[str, object]] = {}
    for row in rows:
        if isinstance(row.get("gate"), str) and row.get("run_id") in (None, run_id):
            key = row["gate"], _round_of(row)
            newest.pop(key, None)
            newest[key] = row
    return tuple(_open_gate(row) for row in newest.values() if row.get("status") == "ask")


def _open_gate(row: Mapping[str, object]) -> OpenGate:
    at = row.get("at")
    source, note = (str(row.get(key) or "") for key in ("source", "note"))
    return OpenGate(str(row["gate"]), _round_of(row), source, note, at if isinstance(at, str) else None)


def has_paused(rows: Iterable[Mapping[str, object]], gate_id: str, round_: int | None, run_id: str | None) -> bool:
    """Whether this run has ever been told to ask at this gate, in this round. Source: W-66."""
    return any(
        row.get("gate") == gate_id
        and row.get("status") == "ask"
        and _round_of(row) == round_
        and row.get("run_id") in (None, run_id)
        for row in rows
    )


def _round_of(row: Mapping[str, object]) -> int | None:
    round_ = row.get("round")
    return round_ if isinstance(round_, int) and not isinstance(round_, bool) else None


class Verification(NamedTuple):
    """Whether a set answers every gate of a lane. `reason` is None where it does."""

    required: tuple[str, ...]
    missing: tuple[str, ...]
    will_ask: tuple[str, ...]
    reason: str | None


def verify(answers: AnswerSet, auto_level: AutoLevel, *, is_tiny: bool, has_qa: bool) -> Verification:
    """Hold a set against the gates of a lane. Source: protocol §8.5."""
    required = required_gates(auto_level, is_tiny=is_tiny, has_qa=has_qa)
    missing = tuple(gate for gate in required if gate not in answers.answers)
    asks = tuple(gate for gate in required if gate in answers.answers and answers.answers[gate].decision == ASK)
    reason = None
    if missing:
        reason = f"the set has no answer for {', '.join(missing)}."
    elif asks and auto_level == "unattended":
        reason = f"the set asks at {', '.join(asks)}, and nobody is there: take --preset ci, or run where a person can be asked."
    return Verification(required, missing, asks, reason)


def required_gates(auto_level: AutoLevel, *, is_tiny: bool, has_qa: bool) -> tuple[str, ...]:
    """The gates that a lane passes, in run order."""
    if is_tiny:
        return ("L0", "L4")
    left_out = set() if has_qa else {"QA"}
    if auto_level != "unattended":
        left_out.add("COACH-1")
    return tuple(gate for gate in GATES if gate not in left_out)


def verification_document(source: str, answers: AnswerSet, found: Verification) -> dict[str, object]:
    """What is printed. Source: protocol §8.5."""
    return {
        "source": source,
        "preset": answers.preset,
        "required_gates": list(found.required),
        "missing": list(found.missing),
        "will_ask": list(found.will_ask),
        **({"reason": found.reason} if found.reason else {}),
        "ok": found.reason is None,
    }


def render_block(gate: Gate, context: Mapping[str, object]) -> str:
    """The block that is put to the PO before any narrative. Source: protocol §8.6."""
    told = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in context.items())
    return "\n".join((f"⏸ GATE {gate.id} — {gate.title}", *told))
