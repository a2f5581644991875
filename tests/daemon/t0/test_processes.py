"""One command, run for real: how it ends, what it said, and that nothing of it stays. Source: protocol §6.1, W-47, ruling G10."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import pytest

from daemon.t0.processes import TAIL_BYTES, fixture_env, run_command

LONG_S = 60.0
AT_ONCE_S = 0.5
SLEEPS = "sleep 1000"


def is_gone(pid: int) -> bool:
    """Whether the process ends, waited for."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], LONG_S)[0])
    finally:
        os.close(fd)


def pid_in(path: Path) -> int:
    return int(path.read_text())


@pytest.mark.parametrize(
    ("cmd", "status", "passed"),
    [("true", 0, True), ("exit 3", 3, False), ("no-such-command-here", 127, False), ("kill -9 $$", None, False)],
)
def test_a_command_that_ends_by_itself_is_measured_and_is_no_error(
    cmd: str, status: int | None, passed: bool, tmp_path: Path
) -> None:
    measured = run_command(cmd, tmp_path, LONG_S)
    assert (measured.exit, measured.passed, measured.error) == (status, passed, None)


def test_both_streams_are_kept_byte_for_byte(tmp_path: Path) -> None:
    measured = run_command("printf 'out\\377'; printf 'err\\376' >&2", tmp_path, LONG_S)
    assert (measured.stdout_tail, measured.stderr_tail) == (b"out\xff", b"err\xfe")
    assert measured.output == b"out\xff\nerr\xfe"


def test_it_runs_in_the_folder_with_nothing_to_read(tmp_path: Path) -> None:
    measured = run_command("pwd -P; cat; echo end", tmp_path, LONG_S)
    assert measured.stdout_tail.decode() == f"{os.path.realpath(tmp_path)}\nend\n"


def test_output_of_any_size_passes_and_its_end_is_kept(tmp_path: Path) -> None:
    size = 3 * TAIL_BYTES
    cmd = f"head -c {size} /dev/zero | tr '\\0' e >&2; head -c {size} /dev/zero | tr '\\0' o; echo last"
    measured = run_command(cmd, tmp_path, LONG_S)
    assert measured.passed
    assert len(measured.stdout_tail) == len(measured.stderr_tail) == TAIL_BYTES
    assert measured.stdout_tail.endswith(b"oolast\n")


@pytest.mark.parametrize("cmd", ["a\0b", "x" * 3_000_000])
def test_what_cannot_be_started_is_an_error(cmd: str, tmp_path: Path) -> None:
    measured = run_command(cmd, tmp_path, LONG_S)
    assert measured.exit is None
    assert measured.error is not None
    assert measured.error.startswith("not started")


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    assert run_command("true", tmp_path / "gone", LONG_S).error is not None


def test_time_that_is_over_ends_the_whole_group(tmp_path: Path) -> None:
    measured = run_command(f"{SLEEPS} & echo $! > child; echo said; wait", tmp_path, AT_ONCE_S, grace_s=LONG_S)
    assert (measured.exit, measured.passed) == (None, False)
    assert measured.error == "not ended after 0.5 s"
    assert measured.stdout_tail == b"said\n"
    assert is_gone(pid_in(tmp_path / "child"))


def test_one_that_will_not_end_is_ended(tmp_path: Path) -> None:
    measured = run_command(f"trap '' TERM; echo $$ > own; {SLEEPS}; {SLEEPS}", tmp_path, AT_ONCE_S, grace_s=AT_ONCE_S)
    assert measured.error is not None
    assert is_gone(pid_in(tmp_path / "own"))


def test_a_command_that_ends_well_when_asked_to_end_has_not_passed(tmp_path: Path) -> None:
    measured = run_command(f"trap 'exit 0' TERM; {SLEEPS} & wait", tmp_path, AT_ONCE_S)
    assert not measured.passed
    assert measured.exit == 0


def test_what_is_left_behind_is_ended_and_no_failure(tmp_path: Path) -> None:
    measured = run_command(f"{SLEEPS} & echo $! > child; echo done", tmp_path, LONG_S)
    assert measured.passed
    assert measured.stdout_tail == b"done\n"
    assert is_gone(pid_in(tmp_path / "child"))


def test_a_group_of_its_own_inside_the_session_is_ended_too(tmp_path: Path) -> None:
    script = (
        "import os; os.setpgid(0, 0); open('child', 'w').write(str(os.getpid())); os.execvp('sleep', ['sleep', '1000'])"
    )
    (tmp_path / "leave.py").write_text(script)
    measured = run_command("python3 leave.py & while [ ! -s child ]; do :; done", tmp_path, LONG_S)
    assert measured.passed
    assert is_gone(pid_in(tmp_path / "child"))


def test_one_that_left_the_session_and_holds_the_pipe_holds_nobody_up(tmp_path: Path) -> None:
    cmd = f"setsid sh -c 'echo $$ > away; exec {SLEEPS}' & while [ ! -s away ]; do :; done; echo done"
    measured = run_command(cmd, tmp_path, LONG_S)
    os.kill(pid_in(tmp_path / "away"), signal.SIGKILL)
    assert (measured.passed, measured.stdout_tail) == (True, b"done\n")


def test_an_interrupt_goes_on_and_takes_the_command_with_it(tmp_path: Path) -> None:
    pids = []

    def interrupt(pid: int) -> None:
        pids.append(pid)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_command(SLEEPS, tmp_path, LONG_S, started=interrupt)
    assert is_gone(pids[0])


def test_a_signal_while_it_starts_is_not_lost_and_leaves_nothing_running(tmp_path: Path) -> None:
    """Whenever the signal comes: the command is ended with it, or was never started."""
    script = f"echo $$ >> own; kill -TERM $PPID; {SLEEPS}"
    before = signal.signal(signal.SIGTERM, lambda number, frame: signal.default_int_handler(number, None))
    try:
        for _ in range(20):
            with pytest.raises(KeyboardInterrupt):
                run_command(script, tmp_path, LONG_S)
    finally:
        signal.signal(signal.SIGTERM, before)
    pids = (tmp_path / "own").read_text().split()
    assert len(pids) == 20
    assert all(is_gone(int(pid)) for pid in pids)


def test_one_that_never_stops_printing_has_no_more_time(tmp_path: Path) -> None:
    assert run_command("yes & yes >&2 & yes", tmp_path, AT_ONCE_S).error is not None


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    run_command("echo a; echo b >&2", tmp_path, LONG_S)
    run_command(SLEEPS, tmp_path, 0.01)
    assert os.listdir("/proc/self/fd") == before


def test_a_fixture_hears_nothing_that_was_meant_for_us() -> None:
    ours = {"GIT_DIR": "x", "GIT_INDEX_FILE": "x", "NOTIFY_SOCKET": "x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}
    ours |= {"LISTEN_FDS": "1", "SHAPEUP_ORDER": "a/b", "SHAPEUP_OVERRIDE": "because"}
    env = fixture_env({**ours, "PATH": "/bin", "LC_ALL": "de_DE.UTF-8"})
    assert not env.keys() & ours.keys()
    assert (env["PATH"], env["LC_ALL"]) == ("/bin", "de_DE.UTF-8")
    assert "LC_ALL" not in fixture_env({"PATH": "/bin"})
