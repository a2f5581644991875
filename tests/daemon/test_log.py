"""The log: lines that cannot be forged, rotation, and reading it back. Source: cli §3, ruling L6."""

import io
import json
import os
import threading
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.events import CODES, EVENTS
from daemon.log import LEVELS, NAME, Console, Log, console_for, render_line
from daemon.read_log import Wanted, follow_log, parse_since, read_log
from daemon.render_log import render_row
from daemon.terminal import escape

NOON = datetime(2026, 3, 1, 12, 4, 31, 220_000, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / ".shapeup"


def noon():
    return NOON


def numbers(rows):
    return [row["number"] for row in rows]


def write(log, *numbers_, event="result.applied", **fields):
    for number in numbers_:
        log.write(event, number=number, **fields)


def test_a_row_has_the_common_fields_first_and_its_own_behind(folder):
    log = Log(folder, noon)
    log.write("result.applied", slug="checkout", subject="checkout/cart-r1-a1", run_id="r", ms=4.12345, acs_ticked=9)
    row = json.loads((folder / NAME).read_text())
    assert list(row) == ["at", "level", "event", "slug", "subject", "run_id", "ms", "acs_ticked"]
    assert row["at"] == "2026-03-01T12:04:31.220Z"
    assert row["ms"] == 4.123


def test_an_event_outside_the_vocabulary_is_a_bug(folder):
    with pytest.raises(ValueError, match="vocabulary"):
        Log(folder, noon).write("result.exploded")


def test_every_event_and_code_has_a_meaning():
    assert all(EVENTS.values())
    assert all(CODES.values())


def test_rows_below_the_level_are_counted_and_not_written(folder):
    log = Log(folder, noon, level="warn")
    log.write("watch.rescan", level="debug")
    log.write("watch.degraded", level="warn")
    assert [row["event"] for row in read_log(folder, Wanted())] == ["watch.degraded"]
    assert log.counters == {"watch.rescan": 1, "watch.degraded": 1}


def test_own_fields_never_replace_the_common_ones(folder):
    row = Log(folder, noon).write("daemon.error", at="never", reason="x")
    assert row["at"] == "2026-03-01T12:04:31.220Z"


@given(st.text(), st.text())
def test_no_value_forges_a_line_or_speaks_to_the_terminal(subject, detail):
    row = {
        "at": "2026-03-01T12:04:31.220Z",
        "level": "info",
        "event": "order.rejected",
        "subject": subject,
        "detail": detail,
    }
    line = render_line(row)
    assert line.isascii()
    assert line.count("\n") == 1
    assert json.loads(line) == row
    assert render_row(row, zone=UTC).isprintable()


@given(st.text())
def test_escaped_text_is_printable_and_printable_text_is_itself(text):
    assert escape(text).isprintable()
    assert not text.isprintable() or escape(text) == text


def test_a_value_that_json_does_not_know_is_still_logged(folder):
    loop: list[object] = []
    loop.append(loop)
    log = Log(folder, noon)
    log.write("daemon.error", loop=loop, path=folder)
    assert log.lost == 0
    assert len(read_log(folder, Wanted())) == 1


def test_a_row_reads_as_one_sentence():
    row = {
        "at": "2026-03-01T12:04:31.220Z",
        "level": "info",
        "event": "result.applied",
        "slug": "checkout",
        "subject": "checkout/cart-r1-a1",
        "ms": 4.1,
        "tasks_updated": ["TASK-003 done"],
        "acs_ticked": 9,
        "unblocked": ["TASK-004"],
        "verdict_lines": 0,
    }
    assert render_row(row, zone=UTC) == (
        "12:04:31.220  result.applied    checkout/cart-r1-a1    TASK-003 done · 9 ACs ticked · unblocked TASK-004 · 4 ms"
    )


def test_warnings_stand_behind_what_happened():
    row = {
        "at": "2026-03-01T12:04:31.220Z",
        "level": "info",
        "event": "result.applied",
        "subject": "checkout/cart-r1-a1",
        "warnings": ["no order stands beside it"],
        "tasks_updated": ["TASK-003 done"],
        "ms": 4.1,
    }
    assert render_row(row, zone=UTC).endswith("TASK-003 done · 4 ms · warning: no order stands beside it")


def test_an_error_stands_in_full_below_its_event():
    error = "a.md:4: E-JSON bad\n  why: x\n  fix: y"
    row = {
        "at": "2026-03-01T12:04:31.220Z",
        "level": "error",
        "event": "order.rejected",
        "subject": "a",
        "error": error,
    }
    assert render_row(row, zone=UTC).splitlines()[1:] == ["    a.md:4: E-JSON bad", "      why: x", "      fix: y"]


def test_rotation_keeps_n_old_files_and_loses_no_kept_row(folder):
    log = Log(folder, noon, max_bytes=400, keep=3)
    write(log, *range(40))
    files = sorted(path.name for path in folder.iterdir())
    assert files == [NAME, f"{NAME}.1", f"{NAME}.2", f"{NAME}.3"]
    assert all(path.stat().st_size <= 400 for path in folder.iterdir())
    kept = numbers(read_log(folder, Wanted()))
    assert kept == list(range(kept[0], 40))


def test_with_nothing_to_keep_the_full_file_is_dropped(folder):
    log = Log(folder, noon, max_bytes=400, keep=0)
    write(log, *range(20))
    assert [path.name for path in folder.iterdir()] == [NAME]


def test_a_row_larger_than_the_limit_is_written_all_the_same(folder):
    log = Log(folder, noon, max_bytes=100, keep=2)
    write(log, 1, 2, padding="x" * 500)
    assert numbers(read_log(folder, Wanted())) == [1, 2]


def test_two_writers_rotate_once_and_never_mix_rows(folder):
    logs = [Log(folder, noon, max_bytes=2000, keep=100) for _ in range(4)]
    threads = [threading.Thread(target=write, args=(log, *range(100))) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers(read_log(folder, Wanted()))) == sorted([*range(100)] * 4)


@pytest.mark.parametrize("how", ["deleted", "folder wiped", "renamed", "truncated"])
def test_the_next_row_lands_whatever_someone_did_to_the_file(folder, how):
    log = Log(folder, noon)
    write(log, 1)
    match how:
        case "deleted":
            (folder / NAME).unlink()
        case "folder wiped":
            (folder / NAME).unlink()
            folder.rmdir()
        case "renamed":
            (folder / NAME).rename(folder / f"{NAME}.1")
        case "truncated":
            os.truncate(folder / NAME, 0)
    write(log, 2)
    assert json.loads((folder / NAME).read_text())["number"] == 2


def test_a_torn_last_line_does_not_swallow_the_next_row(folder):
    folder.mkdir()
    (folder / NAME).write_bytes(b'{"event":"order.adm')
    log = Log(folder, noon)
    write(log, 7)
    assert numbers(read_log(folder, Wanted())) == [7]


@pytest.mark.parametrize("what", ["link", "pipe", "folder", "linked parent"])
def test_a_log_that_may_not_be_written_stops_nothing(folder, tmp_path, what):
    outside = tmp_path / "outside"
    outside.mkdir()
    if what == "linked parent":
        folder.symlink_to(outside)
    else:
        folder.mkdir()
    match what:
        case "link":
            (folder / NAME).symlink_to(outside / "victim")
        case "pipe":
            os.mkfifo(folder / NAME)
        case "folder":
            (folder / NAME).mkdir()
    screen = io.StringIO()
    log = Log(folder, noon, console=Console(screen, as_json=False, color=False))
    write(log, 1)
    assert log.lost == 1
    assert log.counters["result.applied"] == 1
    assert "result.applied" in screen.getvalue()
    assert list(outside.iterdir()) == []


def test_the_console_is_json_in_a_pipe_and_plain_when_asked(monkeypatch):
    for name in ("JOURNAL_STREAM", "CLICOLOR_FORCE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert console_for("auto", io.StringIO()).as_json
    assert not console_for("console", io.StringIO()).as_json
    monkeypatch.setenv("JOURNAL_STREAM", "8:1")
    assert not console_for("auto", io.StringIO()).as_json
    assert not console_for("auto", io.StringIO()).color
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    assert console_for("console", io.StringIO()).color


def test_the_last_rows_are_found_across_rotated_files(folder):
    log = Log(folder, noon, max_bytes=400, keep=50)
    write(log, *range(30))
    assert numbers(read_log(folder, Wanted(), last=10)) == list(range(20, 30))
    assert numbers(read_log(folder, Wanted(), last=0)) == []


def test_a_long_row_across_read_blocks_is_found_whole(folder):
    log = Log(folder, noon)
    write(log, 1, 2, 3, padding="x" * 100_000)
    assert numbers(read_log(folder, Wanted(), last=2)) == [2, 3]


def test_rows_are_chosen_by_event_slug_and_time(folder):
    times = iter(NOON + timedelta(minutes=minute) for minute in range(4))
    log = Log(folder, lambda: next(times))
    log.write("result.applied", slug="a")
    log.write("result.rejected", slug="b")
    log.write("order.admitted", slug="b")
    log.write("result.applied", slug="b")
    assert len(read_log(folder, Wanted(event="result.*"))) == 3
    assert len(read_log(folder, Wanted(slug="b"))) == 3
    assert len(read_log(folder, Wanted(since=NOON + timedelta(minutes=2)))) == 2
    assert len(read_log(folder, Wanted("result.*", "b", NOON + timedelta(minutes=2)))) == 1


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90s", NOON - timedelta(seconds=90)),
        ("10m", NOON - timedelta(minutes=10)),
        ("1d", NOON - timedelta(days=1)),
        ("2026-03-01T12:00:00Z", NOON.replace(minute=0, second=0, microsecond=0)),
        ("2026-03-01T13:00:00+01:00", NOON.replace(minute=0, second=0, microsecond=0)),
    ],
)
def test_since_takes_a_span_or_a_time(text, at):
    assert parse_since(text, NOON) == at


@pytest.mark.parametrize("text", ["", "yesterday", "m", "-5m", "1.5h"])
def test_since_refuses_anything_else(text):
    with pytest.raises(ValueError):
        parse_since(text, NOON)


class Steps:
    """Stands for time in `follow_log`: each wait does the next step, after the last one it ends."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def __call__(self, seconds):
        if not self.steps:
            return True
        self.steps.pop(0)()
        return False


def test_following_shows_the_last_rows_then_new_ones_through_rotation_deletion_and_truncation(folder):
    log = Log(folder, noon, max_bytes=400, keep=50)
    write(log, *range(15))
    path = folder / NAME
    steps = Steps(
        lambda: write(log, 15),
        lambda: write(log, *range(16, 30)),  # several rotations between two looks
        lambda: None,
        lambda: (path.unlink(), write(log, 30)),
        lambda: (os.truncate(path, 0), write(log, 31)),
        lambda: (path.rename(folder / "elsewhere"), None),
        lambda: write(log, 32),
    )
    assert numbers(follow_log(folder, Wanted(), steps)) == list(range(5, 33))


def test_following_notices_a_file_rewritten_in_place_to_a_greater_length(folder):
    log = Log(folder, noon)
    write(log, 1)
    path = folder / NAME

    def rewrite():
        os.truncate(path, 0)
        write(log, 2, 3)

    assert numbers(follow_log(folder, Wanted(), Steps(rewrite), last=0)) == [2, 3]


def test_following_waits_for_a_log_that_does_not_exist_yet(folder):
    log = Log(folder, noon)
    assert numbers(follow_log(folder, Wanted(), Steps(lambda: None, lambda: write(log, 1)))) == [1]


def test_following_puts_a_row_together_that_arrives_in_two_parts(folder):
    folder.mkdir()
    line = render_line({"event": "daemon.ready", "number": 5}).encode()

    def append(data):
        with (folder / NAME).open("ab") as file:
            file.write(data)

    steps = Steps(lambda: append(line[:9]), lambda: append(line[9:]))
    assert numbers(follow_log(folder, Wanted(), steps)) == [5]


def test_levels_are_in_order():
    assert LEVELS == ("debug", "info", "warn", "error")
