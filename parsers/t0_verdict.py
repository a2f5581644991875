"""The T0 verdict artifact, `t0/verdicts/r<N>-a<M>-t<T>.json`: reading, writing, naming. Source: protocol §6.2, §2.7 T0Artifact, W-40, W-48.

An artifact is immutable evidence: cited by the SHA-256 of its bytes, which nobody formats anew. Reading is tolerant, of version 1
and of older names too, but never kind: what an artifact does not say is None, and None is no pass. A file name does not name the
scope (W-48): `scope_id` inside does. Light module: standard library and light parsers only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from parsers.aegis import AegisTriple, parse_triples, triple_rows
from parsers.layout import stem_at
from parsers.ledgers import MAX_COUNT, escape_bytes
from parsers.strict_json import parse_strict
from parsers.trials import SCOPE_ID, Score, parse_score, score_row

SCHEMA_VERSION = 2
GREEN = "green"
RED = "red"
_NAME = re.compile(r"r(?P<round>[0-9]{1,9})-a(?P<attempt>[0-9]{1,9})(?:-t(?P<trial>[0-9]{1,9}))?\Z")


class CommandResult(NamedTuple):
    """One command that was run. `exit` is None where an artifact does not say it; a command that was killed has 1."""

    cmd: str
    exit: int | None
    passed: bool


class FailingScope(NamedTuple):
    """A finished scope whose fixtures no longer pass, and which of them; `fixtures` is empty where that is not said."""

    scope_id: str
    fixtures: tuple[CommandResult, ...] = ()


class Seesaw(NamedTuple):
    """The check of the finished scopes. Not run: `passed` is True and proves nothing. `error`: why the registry could not be read."""

    ran: bool
    passed: bool
    scopes_checked: tuple[str, ...] = ()
    failing: tuple[FailingScope, ...] = ()
    error: str | None = None


class T0Verdict(NamedTuple):
    """One artifact. `trial` is the T of the file name, counted per (round, attempt): not the trial number of a TrialRow.

    None: the artifact does not say it. `db_probe` None: the contract has no probe. `run_id` None: no run was open.
    `reason`: why a measurement that may be green is void; its key is written only then (ruling G5).
    """

    schema_version: int
    round: int | None
    attempt: int | None
    trial: int | None
    at: str | None
    run_id: str | None
    scope_id: str
    fixtures: tuple[CommandResult, ...]
    db_probe: CommandResult | None
    seesaw: Seesaw | None
    fixtures_green: bool | None
    db_probe_green: bool | None
    seesaw_green: bool | None
    overall: str | None
    regression: bool | None
    score: Score | None
    discovered_tasks: tuple[AegisTriple, ...]
    reason: str | None = None

    @property
    def is_green(self) -> bool:
        """Whether the artifact says that everything that ran passed."""
        return self.overall == GREEN

    @property
    def has_seesaw_passed(self) -> bool:
        """Whether the finished scopes were really checked, and all still pass. Source: protocol §5.4, W-37."""
        return self.seesaw is not None and self.seesaw.ran and self.seesaw.passed

    @property
    def address(self) -> tuple[int, int, int]:
        """(round, attempt, trial) to order artifacts by, 0 for what is not said: the highest is the newest. Source: W-35, W-40."""
        return self.round or 0, self.attempt or 0, self.trial or 0


def artifact_name(round_: int, attempt: int, trial: int) -> str:
    """The stem of an artifact's file: `r1-a2-t3`."""
    return f"r{round_}-a{attempt}-t{trial}"


def parse_artifact_name(stem: str) -> tuple[int, int, int | None] | None:
    """(round, attempt, trial) of a stem; trial None for the older unsuffixed names; None for any other name. Source: W-40."""
    found = _NAME.match(stem)
    if found is None:
        return None
    return int(found["round"]), int(found["attempt"]), int(found["trial"]) if found["trial"] else None


def parse_t0_verdict(data: bytes, path: str) -> T0Verdict | None:
    """The artifact in the file at `path`; None when it is none: no strict JSON object, or one that names no scope (ruling B6).

    Round, attempt and trial that the document does not say are those of its file name. Never raises.
    """
    document = parse_strict(data, path).value
    if not isinstance(document, dict):
        return None
    scope_id = _text(document, "scope_id")
    if scope_id is None or not SCOPE_ID.match(scope_id):
        return None
    named = parse_artifact_name(stem_at(path)) or (None, None, None)
    said = (_whole(document, key) for key in ("round", "attempt", "trial"))
    round_, attempt, trial = (name if value is None else value for value, name in zip(said, named, strict=True))
    overall = document.get("overall")
    return T0Verdict(
        schema_version=_whole(document, "schema_version") or 1,
        round=round_,
        attempt=attempt,
        trial=trial,
        at=_text(document, "at"),
        run_id=_text(document, "run_id"),
        scope_id=scope_id,
        fixtures=_commands(document.get("fixtures")),
        db_probe=_command(document.get("db_probe")),
        seesaw=_seesaw(document.get("seesaw")),
        fixtures_green=_flag(document, "fixtures_green"),
        db_probe_green=_flag(document, "db_probe_green"),
        seesaw_green=_flag(document, "seesaw_green"),
        overall=overall if overall in (GREEN, RED) else None,
        regression=_flag(document, "regression"),
        score=parse_score(document.get("score")),
        discovered_tasks=parse_triples(document.get("discovered_tasks")),
        reason=_text(document, "reason"),
    )


def render_t0_verdict(verdict: T0Verdict) -> bytes:
    """The artifact's bytes: keys in the order of §6.2, indented by two, no line break at the end; the hash covers exactly these."""
    document: dict[str, object] = {"schema_version": verdict.schema_version, "round": verdict.round}
    document |= {"attempt": verdict.attempt, "trial": verdict.trial, "at": verdict.at}
    if verdict.run_id is not None:
        document["run_id"] = verdict.run_id
    document |= {
        "scope_id": verdict.scope_id,
        "fixtures": [_command_row(fixture) for fixture in verdict.fixtures],
        "db_probe": _command_row(verdict.db_probe) if verdict.db_probe else None,
        "seesaw": _seesaw_row(verdict.seesaw) if verdict.seesaw else None,
        "fixtures_green": verdict.fixtures_green,
        "db_probe_green": verdict.db_probe_green,
        "seesaw_green": verdict.seesaw_green,
        "overall": verdict.overall,
        "regression": verdict.regression,
        "score": score_row(verdict.score) if verdict.score else None,
        "discovered_tasks": triple_rows(verdict.discovered_tasks),
    }
    if verdict.reason is not None:
        document["reason"] = verdict.reason
    return escape_bytes(json.dumps(document, ensure_ascii=False, indent=2)).encode()


def _command_row(result: CommandResult) -> dict[str, object]:
    return {"cmd": result.cmd, "exit": result.exit, "pass": result.passed}


def _seesaw_row(seesaw: Seesaw) -> dict[str, object]:
    failing: list[dict[str, object]] = []
    for scope in seesaw.failing:
        fixtures = {"fixtures": [_command_row(result) for result in scope.fixtures]} if scope.fixtures else {}
        failing.append({"scope_id": scope.scope_id, **fixtures})
    row: dict[str, object] = {"ran": seesaw.ran, "pass": seesaw.passed}
    row |= {"scopes_checked": list(seesaw.scopes_checked), "failing": failing}
    return row if seesaw.error is None else {**row, "error": seesaw.error}


def _commands(value: object) -> tuple[CommandResult, ...]:
    found = map(_command, value) if isinstance(value, list) else ()
    return tuple(result for result in found if result)


def _command(value: object) -> CommandResult | None:
    if not isinstance(value, dict):
        return None
    status = value.get("exit")
    is_status = isinstance(status, int) and not isinstance(status, bool) and abs(status) < MAX_COUNT
    return CommandResult(
        _text(value, "cmd") or "",
        status if is_status and isinstance(status, int) else None,
        value.get("pass") is True,
    )


def _seesaw(value: object) -> Seesaw | None:
    """Scopes that were only counted have no names here; a failing scope may stand there as an object or by its bare id."""
    if not isinstance(value, dict):
        return None
    checked, failing = value.get("scopes_checked"), value.get("failing")
    return Seesaw(
        value.get("ran") is True,
        value.get("pass") is True,
        tuple(scope for scope in checked if isinstance(scope, str)) if isinstance(checked, list) else (),
        tuple(map(_failing_scope, failing)) if isinstance(failing, list) else (),
        _text(value, "error"),
    )


def _failing_scope(value: object) -> FailingScope:
    """A scope whose id cannot be read still fails: it counts, without a name."""
    if isinstance(value, dict):
        return FailingScope(_text(value, "scope_id") or "", _commands(value.get("fixtures")))
    return FailingScope(value if isinstance(value, str) else "")


def _text(row: Mapping[str, object], key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) else None


def _flag(row: Mapping[str, object], key: str) -> bool | None:
    value = row.get(key)
    return value if isinstance(value, bool) else None


def _whole(row: Mapping[str, object], key: str) -> int | None:
    value = row.get(key)
    is_whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT
    return value if is_whole and isinstance(value, int) else None
