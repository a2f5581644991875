"""From measured commands to a T0 verdict: green or red, what regressed, what crashed, what is void.
Source: protocol §6.1, §6.2, ruling G5.

An absence is never a pass: no fixture, or a registry that could not be read, is red.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from parsers.aegis import AegisTriple
from parsers.t0_verdict import GREEN, RED, SCHEMA_VERSION, CommandResult, FailingScope, Seesaw, T0Verdict
from parsers.trials import Score
from reducers.digest import digest
from reducers.ratchet import score_of

GRADER_CHANGED = "grader-changed"
SEESAW_UNREADABLE = "seesaw-unreadable"
MAX_DISCOVERED = 64  # triples in one artifact, so that it stays below the size that readers take in
ROW_DIGEST = 8


class MeasuredCommand(NamedTuple):
    """One command as it ran. `output` is the tail of stdout, LF, stderr; `error` says why nothing was measured: not started,
    or not ended in time. A command that a shell does not find exits with 127 and is no error."""

    result: CommandResult
    output: str | bytes = ""
    error: str | None = None


class Measurement(NamedTuple):
    """All that was measured of one attempt. `db_probe` None: the contract has none. `changed_graders`: paths (ruling G5)."""

    fixtures: tuple[MeasuredCommand, ...]
    db_probe: MeasuredCommand | None
    seesaw: Seesaw
    changed_graders: tuple[str, ...] = ()


class Colours(NamedTuple):
    """The verdict proper."""

    fixtures_green: bool
    db_probe_green: bool
    seesaw_green: bool
    regression: bool

    @property
    def overall(self) -> str:
        """`green` iff all three are."""
        return GREEN if self.fixtures_green and self.db_probe_green and self.seesaw_green else RED


class Judgement(NamedTuple):
    """What a measurement comes to. `reason` is a token where the verdict is red for something else than a failing command."""

    colours: Colours
    score: Score
    crashed: bool
    reason: str | None
    discovered: tuple[AegisTriple, ...]

    @property
    def is_void(self) -> bool:
        """The graders are not those of the order, so what passed proves nothing."""
        return self.reason == GRADER_CHANGED


def command_result(cmd: str, status: int | None) -> CommandResult:
    """The result of a command by its exit status; None: it was killed or never started, which is recorded as 1."""
    return CommandResult(cmd, 1 if status is None else status, status == 0)


def check_seesaw(scopes: Iterable[tuple[str, tuple[CommandResult, ...]]]) -> Seesaw:
    """The seesaw over (scope, results of its fixtures): a scope without a fixture fails; no scope at all ran and passed (W-37)."""
    checked = tuple(scopes)
    failing = tuple(
        FailingScope(scope_id, tuple(result for result in results if not result.passed))
        for scope_id, results in checked
        if not _all_pass(results)
    )
    return Seesaw(True, not failing, tuple(scope_id for scope_id, _ in checked), failing)


def skipped_seesaw(error: str | None = None) -> Seesaw:
    """A seesaw that did not run; `error`: because its registry could not be read, which is red."""
    return Seesaw(False, True, error=error)


def wants_seesaw(fixtures: tuple[MeasuredCommand, ...]) -> bool:
    """Whether the finished scopes are looked at: only behind fixtures that pass; the probe does not matter."""
    return _all_pass(tuple(fixture.result for fixture in fixtures))


def _all_pass(results: tuple[CommandResult, ...]) -> bool:
    return bool(results) and all(result.passed for result in results)


def compute_verdict(fixtures_pass: bool, db_probe_pass: bool | None, seesaw: Seesaw) -> Colours:
    """The colours of what ran; `db_probe_pass` None: there is no probe. A regression needs scopes that were really checked."""
    db_probe_green = db_probe_pass is not False
    seesaw_green = seesaw.error is None and (not seesaw.ran or seesaw.passed)
    regressed = seesaw.ran and not seesaw_green
    return Colours(fixtures_pass, db_probe_green, seesaw_green, fixtures_pass and db_probe_green and regressed)


def judge(measurement: Measurement) -> Judgement:
    """The judgement of one measurement. Where a grader was changed no fixture counts as passed, so nothing downstream, which
    sees the score alone, takes it for green."""
    results = tuple(fixture.result for fixture in measurement.fixtures)
    probe = measurement.db_probe
    is_void = bool(measurement.changed_graders)
    score = score_of(results, probe.result if probe else None, measurement.seesaw)
    passed = _all_pass(results) and not is_void
    colours = compute_verdict(passed, probe.result.passed if probe else None, measurement.seesaw)
    reason = GRADER_CHANGED if is_void else SEESAW_UNREADABLE if measurement.seesaw.error is not None else None
    commands = (*measurement.fixtures, probe) if probe else measurement.fixtures
    return Judgement(
        colours,
        score._replace(fixtures_passed=0) if is_void else score,
        any(command.error is not None for command in commands),
        reason,
        _discovered(commands),
    )


def _discovered(commands: Iterable[MeasuredCommand]) -> tuple[AegisTriple, ...]:
    """What the failing commands printed, digested; each error once. What the seesaw printed is not looked at."""
    found = (triple for command in commands if not command.result.passed for triple in digest(command.output))
    return tuple(dict.fromkeys(found))[:MAX_DISCOVERED]


def t0_verdict(
    measurement: Measurement,
    judgement: Judgement,
    *,
    scope_id: str,
    round_: int,
    attempt: int,
    trial: int,
    at: str,
    run_id: str | None,
) -> T0Verdict:
    """The artifact of a judged measurement. `trial` is the T of its file name."""
    colours = judgement.colours
    return T0Verdict(
        schema_version=SCHEMA_VERSION,
        round=round_,
        attempt=attempt,
        trial=trial,
        at=at,
        run_id=run_id,
        scope_id=scope_id,
        fixtures=tuple(fixture.result for fixture in measurement.fixtures),
        db_probe=measurement.db_probe.result if measurement.db_probe else None,
        seesaw=measurement.seesaw,
        fixtures_green=colours.fixtures_green,
        db_probe_green=colours.db_probe_green,
        seesaw_green=colours.seesaw_green,
        overall=colours.overall,
        regression=colours.regression,
        score=judgement.score,
        discovered_tasks=judgement.discovered,
        reason=judgement.reason,
    )
