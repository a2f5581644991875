"""Measures one attempt: every fixture, then the probe, then the finished scopes. Source: protocol §6.1, W-37, W-47, D-9, ruling G10.

Nothing stops early: what one command could not do says nothing about the next. Where nothing was run, nothing counts as passed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from daemon.t0.processes import Measured, run_command
from parsers.scope_contract import ScopeContract, declared_exit
from parsers.seesaw import FinishedScope, parse_seesaw
from parsers.t0_verdict import CommandResult, Seesaw
from parsers.tree import Tree, Unreadable
from reducers.t0_judgement import (
    MeasuredCommand,
    Measurement,
    check_seesaw,
    command_result,
    skipped_seesaw,
    wants_seesaw,
)

FIXTURE, PROBE, SEESAW = "fixture", "db_probe", "seesaw"


class Step(NamedTuple):
    """One command among those of its kind. `of` is their number; `scope_id` the finished scope, empty for the attempt's own."""

    kind: str
    number: int
    of: int
    cmd: str
    scope_id: str = ""


# Told of each command twice: before it runs (None) and after.
Progress = Callable[[Step, Measured | None], None]


class Runner(NamedTuple):
    """Where and how long commands run. `timeout_s` is for each of them."""

    folder: Path
    timeout_s: float
    progress: Progress = lambda step, measured: None

    def run(self, step: Step) -> Measured:
        """Run one command and tell of it."""
        self.progress(step, None)
        measured = run_command(step.cmd, self.folder, self.timeout_s)
        self.progress(step, measured)
        return measured


def measure_contract(
    contract: ScopeContract,
    runner: Runner,
    *,
    registry: tuple[Tree, str] | None,
    changed_graders: Sequence[str] = (),
) -> Measurement:
    """Run what the contract names. `registry`: where the finished scopes are listed; None: they are left out (--no-seesaw)."""
    count = len(contract.fixtures)
    steps = [Step(FIXTURE, number, count, cmd) for number, cmd in enumerate(contract.fixtures, 1)]
    fixtures = tuple(measured_command(runner.run(step)) for step in steps)
    probe = contract.db_probe
    measured = None if probe is None else measured_command(runner.run(Step(PROBE, 1, 1, probe)))
    wanted = registry is not None and wants_seesaw(fixtures)
    seesaw = _seesaw(runner, *registry) if registry is not None and wanted else skipped_seesaw()
    return Measurement(fixtures, measured, seesaw, tuple(changed_graders))


def measured_command(measured: Measured) -> MeasuredCommand:
    """What ran, as it is judged. A command that is meant to end with another status than 0 does not pass by ending with 0."""
    return MeasuredCommand(_result(measured), measured.output, measured.error)


def _result(measured: Measured) -> CommandResult:
    result = command_result(measured.cmd, None if measured.error else measured.exit)
    return result._replace(passed=False) if declared_exit(measured.cmd) is not None else result


def _seesaw(runner: Runner, tree: Tree, path: str) -> Seesaw:
    try:
        data = tree.read(path)
    except Unreadable as stop:
        return skipped_seesaw(f"{path}: {stop.fault.what}")
    if data is None:
        return skipped_seesaw()
    registry = parse_seesaw(data, path)
    if registry.fault:
        return skipped_seesaw(f"{registry.fault.where}: {registry.fault.what}")
    return check_seesaw([(scope.scope_id, _run_scope(runner, scope)) for scope in registry.scopes])


def _run_scope(runner: Runner, scope: FinishedScope) -> tuple[CommandResult, ...]:
    count = len(scope.fixtures)
    steps = (Step(SEESAW, number, count, cmd, scope.scope_id) for number, cmd in enumerate(scope.fixtures, 1))
    return tuple(_result(runner.run(step)) for step in steps)
