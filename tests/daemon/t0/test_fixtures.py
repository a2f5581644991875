"""What is run of a contract, in which order, and that nothing counts as passed which did not run. Source: protocol §6.1, W-37, D-9."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daemon.disk import DiskTree
from daemon.t0.fixtures import FIXTURE, PROBE, SEESAW, Runner, Step, measure_contract
from daemon.t0.processes import Measured
from parsers.scope_contract import ScopeContract
from reducers.t0_judgement import Measurement, judge

PATIENCE_S = 60.0
REGISTRY = "registry.json"


def measure(folder: Path, *fixtures: str, probe: str | None = None, registry: object = None) -> Measurement:
    if registry is not None:
        (folder / REGISTRY).write_text(registry if isinstance(registry, str) else json.dumps(registry))
    contract = ScopeContract("core", "core.md", fixtures, probe)
    return measure_contract(contract, Runner(folder, PATIENCE_S), registry=(DiskTree(folder), REGISTRY))


def scopes(**fixtures: list[str]) -> dict[str, object]:
    return {"scopes": [{"scope_id": name, "fixtures": commands} for name, commands in fixtures.items()]}


def test_every_fixture_runs_whatever_the_others_did(tmp_path: Path) -> None:
    found = measure(tmp_path, "exit 2", "true", "no-such-command", probe="exit 1")
    assert [one.result.exit for one in found.fixtures] == [2, 0, 127]
    assert found.db_probe is not None
    assert found.db_probe.result.exit == 1
    assert not judge(found).crashed


def test_a_fixture_that_cannot_end_is_a_crash(tmp_path: Path) -> None:
    contract = ScopeContract("core", "core.md", ("sleep 1000", "true"))
    found = measure_contract(contract, Runner(tmp_path, 0.1), registry=None)
    assert [(one.result.exit, one.result.passed) for one in found.fixtures] == [(1, False), (0, True)]
    assert judge(found).crashed


def test_a_scope_without_a_fixture_is_red(tmp_path: Path) -> None:
    assert judge(measure(tmp_path, probe="true")).colours.overall == "red"


@pytest.mark.parametrize("cmd", ["true # exit 2", "true; # must exit 1"])
def test_a_fixture_that_is_meant_to_fail_never_passes(cmd: str, tmp_path: Path) -> None:
    found = measure(tmp_path, cmd)
    assert not found.fixtures[0].result.passed
    assert judge(found).colours.overall == "red"


def test_no_registry_is_no_check_and_no_fault(tmp_path: Path) -> None:
    found = measure(tmp_path, "true")
    assert (found.seesaw.ran, found.seesaw.error) == (False, None)
    assert judge(found).colours.overall == "green"


def test_an_empty_registry_ran(tmp_path: Path) -> None:
    found = measure(tmp_path, "true", registry=scopes())
    assert (found.seesaw.ran, found.seesaw.passed) == (True, True)


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"scopes": {}}', '{"scopes": [{"scope_id": "a", "fixtures": "true"}]}']
)
def test_a_registry_that_does_not_read_is_said_and_red(text: str, tmp_path: Path) -> None:
    found = measure(tmp_path, "true", registry=text)
    assert not found.seesaw.ran
    assert found.seesaw.error is not None
    assert judge(found).colours.overall == "red"


def test_a_link_in_place_of_the_registry_is_red(tmp_path: Path) -> None:
    (tmp_path / REGISTRY).symlink_to("/dev/null")
    assert judge(measure(tmp_path, "true")).colours.overall == "red"


def test_a_finished_scope_that_fails_is_a_regression_named(tmp_path: Path) -> None:
    found = measure(tmp_path, "true", registry=scopes(good=["true"], bad=["true", "exit 4"], empty=[]))
    assert [scope.scope_id for scope in found.seesaw.failing] == ["bad", "empty"]
    assert found.seesaw.failing[0].fixtures[0].exit == 4
    judged = judge(found)
    assert (judged.colours.regression, judged.score.regressions) == (True, 2)


@pytest.mark.parametrize(("fixture", "probe", "ran"), [("exit 1", None, False), ("true", "exit 1", True)])
def test_finished_scopes_are_looked_at_behind_passing_fixtures_alone(
    fixture: str, probe: str | None, ran: bool, tmp_path: Path
) -> None:
    assert measure(tmp_path, fixture, probe=probe, registry=scopes(good=["true"])).seesaw.ran is ran


def test_each_command_is_told_before_and_after(tmp_path: Path) -> None:
    told: list[tuple[Step, bool | None]] = []

    def tell(step: Step, measured: Measured | None) -> None:
        told.append((step, measured and measured.passed))

    (tmp_path / REGISTRY).write_text(json.dumps(scopes(good=["true"])))
    contract = ScopeContract("core", "core.md", ("true",), "true")
    measure_contract(contract, Runner(tmp_path, PATIENCE_S, tell), registry=(DiskTree(tmp_path), REGISTRY))
    steps = [Step(FIXTURE, 1, 1, "true"), Step(PROBE, 1, 1, "true"), Step(SEESAW, 1, 1, "true", "good")]
    assert told == [(step, how) for step in steps for how in (None, True)]
