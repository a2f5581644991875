"""Gates and the answer sets that cross them: the ids, three presets, and files read strictly. Source: protocol §8.1, §8.2, W-58.

Light module: standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, cast

from parsers.faults import Fault
from parsers.strict_json import parse_strict

OnMissing = Literal["ask", "proceed", "abort"]

ASK, ABORT, PROCEED = "ask", "abort", "proceed"
CUSTOM = "custom"
ON_MISSING: tuple[OnMissing, ...] = ("ask", "proceed", "abort")


class Gate(NamedTuple):
    """One gate: its id, its title, and the decisions that may answer it."""

    id: str
    title: str
    decisions: tuple[str, ...]


_REVIEW = (PROCEED, ASK, ABORT)
GATES: Mapping[str, Gate] = {
    gate.id: gate
    for gate in (
        Gate("L0", "Intake & Run Config", _REVIEW),
        Gate("L1a", "Orient Review", _REVIEW),
        Gate("L1a.5", "Wiring Review", _REVIEW),
        Gate("L1b", "Board Review", _REVIEW),
        Gate("L2", "Build Round Complete", _REVIEW),
        Gate("L3", "Verdict & Loop", ("loop", "stop", ASK)),
        Gate("QA", "QA Edge Hunt", ("run", "skip", ASK)),
        Gate("H", "Decide When to Stop", ("accept-cut-list", "ship-all", ASK)),
        Gate("L4", "Ship Sign-Off", ("ship", "hold", ASK)),
        Gate("COACH-1", "feedback categories", ("skip", ASK)),
    )
}
ROUNDS_GATE = "L3"
DEFAULT_MAX_ROUNDS = 3


class Answer(NamedTuple):
    """One gate's answer. `note` None: nothing was said. `max_rounds` is at least 1, and None at every gate but L3."""

    decision: str
    note: str | None = None
    max_rounds: int | None = None


class AnswerSet(NamedTuple):
    """Answers given before anybody asks. `authorized_by` None: nobody put their name to it."""

    preset: str
    answers: Mapping[str, Answer]
    on_missing: OnMissing = "ask"
    authorized_by: str | None = None


_HEADLESS = "Answered ahead of time for a lane without a person; this row names who allowed it."
_CI = AnswerSet(
    "ci",
    {
        **{gate: Answer(PROCEED, _HEADLESS) for gate in ("L0", "L1a", "L1a.5", "L1b", "L2")},
        "L3": Answer("loop", "A FAIL is built again until the outer breaker trips.", 3),
        "QA": Answer("run", "The hunt finds; it blocks nothing."),
        "H": Answer("accept-cut-list", "The proposed cuts are taken as they are; the baseline is still compared."),
        "L4": Answer("ship", _HEADLESS),
        "COACH-1": Answer("skip", "Nobody is here to sort feedback, so no rule is filed."),
    },
    "abort",
    "unattended lane (--unattended)",
)
_GUARDED = AnswerSet(
    "guarded",
    {
        "L0": Answer(PROCEED, "Configuration only."),
        "L1a": Answer(PROCEED, "Read for information."),
        "L1a.5": Answer(PROCEED, "Read for information."),
        "L1b": Answer(ASK, "The board decides the scope: a person looks at it."),
        "L2": Answer(PROCEED, "Whether the board is green is checked by tools."),
        "L3": Answer("loop", "A FAIL is built again until the outer breaker trips.", 3),
        "QA": Answer("run"),
        "H": Answer(ASK, "Cuts change what ships: a person decides."),
        "L4": Answer(ASK, "A person signs what ships."),
        "COACH-1": Answer(ASK),
    },
    "ask",
    "auto lane (--auto)",
)
_INTERACTIVE = AnswerSet("interactive", {gate: Answer(ASK) for gate in GATES})
PRESETS: Mapping[str, AnswerSet] = {one.preset: one for one in (_CI, _GUARDED, _INTERACTIVE)}

_KEYS = ("version", "preset", "authorized_by", "on_missing", "escalation", "answers")
_ANSWER_KEYS = ("decision", "note", "max_rounds")
_ESCALATION_KEYS = ("default", "budget_per_scope_per_round")


def parse_answers(data: bytes, where: str) -> tuple[AnswerSet | None, tuple[Fault, ...]]:
    """The set, or every reason why the file is none. A set with one wrong answer answers nothing. Never raises."""
    document, fault = parse_strict(data, where)
    if fault is not None:
        return None, (fault,)
    if not isinstance(document, dict):
        return None, (_fault(where, "", "an answer set is a JSON object, and this is none", _START),)
    faults = tuple(_set_faults(document, where))
    return (None, faults) if faults else (_answer_set(document), ())


def answers_document(answers: AnswerSet) -> dict[str, object]:
    """The set as its file holds it; what is not said has no key."""
    return {
        "version": 1,
        "preset": answers.preset,
        **({"authorized_by": answers.authorized_by} if answers.authorized_by is not None else {}),
        "on_missing": answers.on_missing,
        "answers": {gate: _said(answer._asdict()) for gate, answer in answers.answers.items()},
    }


def render_answers(answers: AnswerSet) -> bytes:
    """The bytes of an answer file."""
    return (json.dumps(answers_document(answers), ensure_ascii=False, indent=2) + "\n").encode()


def run_max_rounds(receipt: object) -> int:
    """How many rounds the run of this receipt may take. Source: protocol §2.2 `config.max_rounds`."""
    config = receipt.get("config") if isinstance(receipt, dict) else None
    rounds = _whole(config.get("max_rounds")) if isinstance(config, dict) else None
    return rounds if rounds is not None and rounds >= 1 else DEFAULT_MAX_ROUNDS


def _said(fields: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in fields.items() if value is not None}


def _answer_set(document: Mapping[str, object]) -> AnswerSet:
    """A document without faults as a value."""
    answers = cast(Mapping[str, Mapping[str, object]], document["answers"])
    return AnswerSet(
        str(document["preset"]),
        {gate: _answer(value) for gate, value in answers.items()},
        cast(OnMissing, document.get("on_missing", "ask")),
        cast("str | None", document.get("authorized_by")),
    )


def _answer(value: Mapping[str, object]) -> Answer:
    rounds = value.get("max_rounds")
    note = cast("str | None", value.get("note"))
    return Answer(str(value["decision"]), note, int(rounds) if isinstance(rounds, int | float) else None)


def _set_faults(document: Mapping[str, object], where: str) -> Iterator[Fault]:
    """What is wrong with a set, in the order of its keys in the table of §8.2."""
    presets = (*PRESETS, CUSTOM)
    if _whole(document.get("version")) != 1:
        yield _fault(where, ".version", f"version is {_shown(document, 'version')}", "write `1`")
    if document.get("preset") not in presets:
        yield _fault(where, ".preset", f"preset is {_shown(document, 'preset')}", f"write one of {', '.join(presets)}")
    if document.get("authorized_by") is not None and not isinstance(document["authorized_by"], str):
        yield _fault(
            where, ".authorized_by", "authorized_by is no text", "name who allows these answers, or drop the key"
        )
    if document.get("on_missing", "ask") not in ON_MISSING:
        what = f"on_missing is {_shown(document, 'on_missing')}"
        yield _fault(where, ".on_missing", what, f"write one of {', '.join(ON_MISSING)}")
    yield from _escalation_faults(document.get("escalation"), where)
    answers = document.get("answers")
    if not isinstance(answers, dict):
        yield _fault(where, ".answers", "answers is missing, or no object", _START)
    else:
        for gate, value in answers.items():
            yield from _answer_faults(gate, value, where)
    yield from _unknown_keys(document, _KEYS, where, "")


def _escalation_faults(value: object, where: str) -> Iterator[Fault]:
    """The key is inert; what stands in it must still be what it says."""
    if value is None:
        return
    if not isinstance(value, dict):
        yield _fault(where, ".escalation", "escalation is no object", "drop it: nothing reads it")
        return
    yield from _unknown_keys(value, _ESCALATION_KEYS, where, ".escalation")


def _answer_faults(gate_id: str, value: object, where: str) -> Iterator[Fault]:
    gate = GATES.get(gate_id)
    at = f".answers.{gate_id[:40]}"
    if gate is None:
        yield _fault(where, at, "there is no such gate", f"the gates are {', '.join(GATES)}")
        return
    if not isinstance(value, dict) or not isinstance(value.get("decision"), str):
        yield _fault(
            where, at, "an answer is an object with a `decision`", f'write {{"decision": "{gate.decisions[0]}"}}'
        )
        return
    if value["decision"] not in gate.decisions:
        what = f"{_shown(value, 'decision')} decides nothing at this gate"
        yield _fault(where, f"{at}.decision", what, f"write one of {', '.join(gate.decisions)}")
    if value.get("note") is not None and not isinstance(value["note"], str):
        yield _fault(where, f"{at}.note", "a note is text", "write it as a string, or drop the key")
    if "max_rounds" in value and gate_id != ROUNDS_GATE:
        yield _fault(where, f"{at}.max_rounds", "max_rounds means something at L3 alone", "drop the key here")
    elif "max_rounds" in value and (_whole(value["max_rounds"]) or 0) < 1:
        what = f"max_rounds is {_shown(value, 'max_rounds')}"
        yield _fault(where, f"{at}.max_rounds", what, "write a whole number of at least 1, or drop the key")
    yield from _unknown_keys(value, _ANSWER_KEYS, where, at)


def _unknown_keys(value: Mapping[str, object], known: tuple[str, ...], where: str, at: str) -> Iterator[Fault]:
    for key in value:
        if key not in known:
            yield _fault(where, f"{at}.{key[:40]}", "nothing reads this key", f"the keys here are {', '.join(known)}")


def _whole(value: object) -> int | None:
    """The number, where it is a whole one; `2.0` is, `true` is not. Source: protocol §2.15."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        return None
    return int(value)


def _shown(value: Mapping[str, object], key: str) -> str:
    return json.dumps(value[key], ensure_ascii=False)[:60] if key in value else "missing"


_START = "`shapeupd gate init` writes a whole set to start from"


def _fault(where: str, at: str, what: str, fix: str) -> Fault:
    why = "a set that says something else than it means must not cross a gate"
    return Fault("E-SCHEMA", f"{where}:${at}", what, why, fix)
