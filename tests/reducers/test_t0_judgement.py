"""From measured commands to a verdict: an absence is never a pass. Source: protocol §6.1, §6.2, W-37, ruling G5."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parsers.t0_verdict import CommandResult, FailingScope, Seesaw, parse_t0_verdict, render_t0_verdict
from parsers.trials import Score
from reducers.t0_judgement import (
    MAX_DISCOVERED,
    Judgement,
    MeasuredCommand,
    Measurement,
    check_seesaw,
    command_result,
    judge,
    skipped_seesaw,
    t0_verdict,
    wants_seesaw,
)

RAN = check_seesaw(())


def ran(status: int | None, output: str = "", error: str | None = None, cmd: str = "make test") -> MeasuredCommand:
    return MeasuredCommand(command_result(cmd, status), output, error)


def measured(*fixtures: MeasuredCommand, probe: MeasuredCommand | None = None, seesaw: Seesaw = RAN) -> Measurement:
    return Measurement(fixtures, probe, seesaw)


def test_everything_that_passes_is_green() -> None:
    found = judge(measured(ran(0), ran(0), probe=ran(0)))
    assert (found.colours.overall, found.score, found.crashed, found.reason) == (
        "green",
        Score(0, 2, 2, 1),
        False,
        None,
    )


def test_no_fixture_is_red() -> None:
    assert judge(measured()).colours.overall == "red"
    assert not wants_seesaw(())


def test_a_command_that_the_shell_does_not_find_is_red_and_no_crash() -> None:
    found = judge(measured(ran(127)))
    assert (found.colours.overall, found.crashed) == ("red", False)


def test_a_command_that_was_killed_exits_with_one_and_crashes() -> None:
    fixture = ran(None, error="no end after 600 s")
    assert fixture.result == CommandResult("make test", 1, False)
    assert judge(measured(ran(0), probe=fixture)).crashed


def test_a_failing_probe_is_red_and_no_regression() -> None:
    colours = judge(measured(ran(0), probe=ran(1))).colours
    assert (colours.overall, colours.db_probe_green, colours.regression) == ("red", False, False)


def test_a_finished_scope_that_fails_is_a_regression_and_counts() -> None:
    bad = command_result("old test", 1)
    seesaw = check_seesaw(
        [("done", (command_result("ok", 0), bad)), ("empty", ()), ("fine", (command_result("ok", 0),))]
    )
    assert seesaw == Seesaw(
        True, False, ("done", "empty", "fine"), (FailingScope("done", (bad,)), FailingScope("empty"))
    )
    found = judge(measured(ran(0), seesaw=seesaw))
    assert (found.colours.overall, found.colours.regression, found.score.regressions) == ("red", True, 2)


def test_an_empty_registry_ran_and_passed() -> None:
    assert (RAN.ran, RAN.passed) == (True, True)


def test_a_registry_that_could_not_be_read_is_never_green_and_no_regression() -> None:
    found = judge(measured(ran(0), seesaw=skipped_seesaw("not JSON")))
    assert (found.colours.overall, found.colours.regression, found.reason) == ("red", False, "seesaw-unreadable")


def test_a_changed_grader_voids_what_passed() -> None:
    found = judge(measured(ran(0), ran(0))._replace(changed_graders=("tests/a.py",)))
    assert (found.colours.overall, found.reason, found.is_void, found.score) == (
        "red",
        "grader-changed",
        True,
        Score(0, 0, 2),
    )


def test_only_failing_commands_are_digested_each_error_once_and_only_when_red() -> None:
    output = "Error: boom\n    at f (a.js:1:1)"
    found = judge(measured(ran(1, output), ran(1, output), ran(0, "Error: fine"), probe=ran(1, "TypeError: db")))
    assert [(triple.file, triple.core_message) for triple in found.discovered] == [("a.js", "boom"), (None, "db")]
    assert judge(measured(ran(0, output))).discovered == ()


def artifact(measurement: Measurement, found: Judgement) -> bytes:
    at = "2026-03-01T10:00:00.000Z"
    return render_t0_verdict(
        t0_verdict(measurement, found, scope_id="core", round_=1, attempt=2, trial=3, at=at, run_id=None)
    )


def test_an_artifact_of_endless_errors_stays_readable() -> None:
    output = "\n".join(f"    at \U0001f600{'f' * 1900} (\U0001f600{n}.js:{n}:1)" for n in range(9999))
    measurement = measured(ran(1, output))
    found = judge(measurement)
    assert len(found.discovered) == MAX_DISCOVERED
    data = artifact(measurement, found)
    read = parse_t0_verdict(data, "r1-a2-t3.json")
    assert read is not None
    assert read.discovered_tasks == found.discovered


outputs = st.binary(max_size=40) | st.text(max_size=40) | st.just("at \ud800 (\x00.js:1:2)")
results = st.builds(
    lambda status, output, error: MeasuredCommand(command_result("x", status), output, error),
    st.sampled_from([0, 0, 1, 127, None]),
    outputs,
    st.sampled_from([None, None, "timeout"]),
)
seesaws = st.builds(
    lambda scopes: check_seesaw([(f"s{n}", tuple(one.result for one in scope)) for n, scope in enumerate(scopes)]),
    st.lists(st.lists(results, max_size=2), max_size=3),
) | st.sampled_from([skipped_seesaw(), skipped_seesaw("unreadable")])


@given(st.lists(results, max_size=3).map(tuple), st.none() | results, seesaws, st.sampled_from([(), ("t.py",)]))
def test_green_means_that_all_of_it_passed_and_every_verdict_can_be_read_back(
    fixtures: tuple[MeasuredCommand, ...], probe: MeasuredCommand | None, seesaw: Seesaw, changed: tuple[str, ...]
) -> None:
    measurement = Measurement(fixtures, probe, seesaw, changed)
    found = judge(measurement)
    if found.colours.overall == "green":
        assert fixtures
        assert all(one.result.exit == 0 for one in (*fixtures, *((probe,) if probe else ())))
        assert not changed
        assert not seesaw.failing
        assert seesaw.error is None
        assert found.score.is_green
        assert not found.discovered
    read = parse_t0_verdict(artifact(measurement, found), "r1-a2-t3.json")
    assert read is not None
    assert (read.is_green, read.score, read.reason) == (found.colours.overall == "green", found.score, found.reason)
    assert read.discovered_tasks == found.discovered
