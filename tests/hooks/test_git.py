"""One git command from a hook: big streams, odd ends, no git at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hooks.git import GitFailed, ask_git, hook_env, run_git, scrubbed_env
from tests.hooks.history import ENV, History

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    for key in [key for key in os.environ if key.startswith("GIT_")]:
        monkeypatch.delenv(key)
    made = History(tmp_path / "repo")
    monkeypatch.chdir(made.root)
    return made


def open_files() -> list[str]:
    """What this process holds open, without the folder that lists it."""
    return sorted(
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    )


def test_what_goes_in_comes_out_however_big(history: History) -> None:
    data = os.urandom(1 << 22)
    blob = ask_git("hash-object", "-w", "--stdin", stdin=data).decode().strip()
    assert ask_git("cat-file", "blob", blob) == data


def test_a_git_that_answers_while_it_is_asked_stops_nobody(history: History) -> None:
    """Both pipes are full many times over."""
    questions = b"".join(b"%040d\n" % number for number in range(10_000))
    answers = ask_git("cat-file", "--batch-check", stdin=questions)
    assert answers.count(b" missing\n") == 10_000


def test_much_on_both_outputs_is_read(history: History) -> None:
    alias = "!i=0; while [ $i -lt 3000 ]; do echo $i-oooooooooooooooooooooooooooooo; echo $i-eeeeeeeeeeeeeeeeeeeeeeeeeeee >&2; i=$((i+1)); done"
    ran = run_git("-c", f"alias.both={alias}", "both")
    assert ran.status == 0
    assert ran.out.count(b"-o") == ran.err.count(b"-e") == 3000


def test_a_git_that_does_not_read_its_input_is_no_error(history: History) -> None:
    ran = run_git("rev-parse", "--git-dir", stdin=b"x" * (1 << 22))
    assert (ran.status, ran.out) == (0, b".git\n")


def test_raw_bytes_pass_as_arguments(history: History) -> None:
    history.write(b"\xff\n", "odd\n")
    history.git("add", "-A")
    assert ask_git("ls-files", "-z", "--", b"\xff\n") == b"\xff\n\0"


def test_a_failure_is_told_in_gits_own_last_line(history: History) -> None:
    with pytest.raises(GitFailed, match=r"bad revision|ambiguous|unknown revision|Needed a single"):
        ask_git("rev-parse", "--verify", "nothing")
    with pytest.raises(GitFailed, match="git rev-parse ended with 1"):
        ask_git("rev-parse", "-q", "--verify", "nothing")


def test_advice_after_a_failure_is_not_taken_for_it(history: History) -> None:
    alias = "!echo 'fatal: it is broken' >&2; echo >&2; echo '\tgit mend it' >&2; exit 3"
    with pytest.raises(GitFailed, match=r"^fatal: it is broken$"):
        ask_git("-c", f"alias.bad={alias}", "bad")


def test_a_killed_git_has_a_status_of_a_failure(history: History) -> None:
    assert run_git("-c", "alias.die=!kill -9 $$", "die").status >= 128


def test_no_git_is_a_file_not_found_and_leaves_nothing_open(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_files()
    monkeypatch.setenv("PATH", os.fspath(history.root))
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            run_git("version", stdin=b"x")
    assert open_files() == before


def test_no_pipe_stays_open_and_no_child_is_left(history: History) -> None:
    before = open_files()
    for _ in range(5):
        run_git("version")
        run_git("hash-object", "--stdin", stdin=b"x" * 100_000)
        run_git("rev-parse", "nothing", stdin=b"x" * (1 << 20))
    assert open_files() == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_process_whose_standard_streams_are_closed_can_ask_git(history: History, closed: str) -> None:
    told = history.root / "told"
    code = (
        f"import sys; sys.path.insert(0, {os.fspath(PROJECT)!r})\n"
        "from hooks.git import run_git\n"
        "ran = run_git('hash-object', '--stdin', stdin=b'x' * 200000)\n"
        "bad = run_git('rev-parse', '--verify', 'nothing')\n"
        f"open({os.fspath(told)!r}, 'w').write(f'{{ran.status}} {{len(ran.out)}} {{bad.status}} {{bool(bad.err)}}')\n"
    )
    script = f'exec "$0" -I -S -c "$1" {closed}'
    subprocess.run(["sh", "-c", script, sys.executable, code], cwd=history.root, env=ENV, check=True, timeout=60)
    assert told.read_text() == "0 41 128 True"


def test_a_hooks_git_sees_the_hooks_index_and_can_only_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_INDEX_FILE", "x")
    env = hook_env()
    assert (env["GIT_INDEX_FILE"], env["GIT_OPTIONAL_LOCKS"], env["GIT_NO_LAZY_FETCH"]) == ("x", "0", "1")
    assert hook_env({"A": "b"})["A"] == "b"
    assert "GIT_INDEX_FILE" not in hook_env({"A": "b"})


def test_a_scrubbed_environment_leads_to_no_other_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_WORK_TREE", "GIT_TRACE"):
        monkeypatch.setenv(name, "x")
    assert {key for key in scrubbed_env() if key.startswith("GIT_")} == {"GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT"}
