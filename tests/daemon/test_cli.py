"""The command line: one place for endings, light verbs, help that shows an example. Source: cli §1, §2, targets 38."""

import io
import json
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import daemon.commands
from daemon import cli
from daemon.exits import Exit
from daemon.log import NAME, Log
from daemon.place import server_socket
from daemon.sockets import Server
from daemon.terminal import print_table

HEAVY = (
    "pydantic",
    "rich",
    "watchdog",
    "pygit2",
    "apscheduler",
    "structlog",
    "ruamel",
    "mistune",
    "typer",
    "jsonschema",
)


@pytest.fixture(autouse=True)
def world(tmp_path, monkeypatch):
    """A folder outside git that is the working directory, and sockets of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("CLICOLOR_FORCE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def fake_verb(monkeypatch, run):
    """Puts a verb `fake` into the table whose `run` is the given function."""
    module = type(sys)("fake_verb")
    module.HELP, module.EXAMPLE, module.run = "Help.", "shapeupd fake", run
    module.arguments = lambda parser: parser.add_argument("--number", type=int)
    monkeypatch.setitem(sys.modules, "fake_verb", module)
    monkeypatch.setitem(cli.VERBS, "fake", cli.Verb("fake_verb", "a verb of the test"))


def test_every_command_file_is_in_the_table_and_the_other_way_round():
    files = {path.stem for path in Path(daemon.commands.__path__[0]).glob("*.py") if path.stem != "__init__"}
    assert files == {verb.module.rsplit(".", 1)[1] for verb in cli.VERBS.values()}
    assert all(find_spec(verb.module) for verb in cli.VERBS.values())


@pytest.mark.parametrize("name", cli.VERBS)
def test_the_help_of_every_verb_shows_an_example_that_parses(name, capsys):
    assert cli.main([name, "--help"]) == 0
    text = capsys.readouterr().out
    example = text.rsplit("example:\n", 1)[1].strip()
    for part in example.split("&&"):
        words = shlex.split(part)
        assert words[0] == "shapeupd"
        assert words[1] in cli.VERBS or words[1].startswith("-")


def test_the_top_level_help_names_every_verb_and_an_example(capsys):
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all((f"\n  {name} " in text) == bool(verb.help) for name, verb in cli.VERBS.items())
    assert f"example:\n  {cli.EXAMPLE}" in text


def test_the_version_is_printed(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("shapeupd ")


@pytest.mark.parametrize(
    "words",
    [["bord"], ["status", "--jsn"], ["status", "--js"], ["log", "-n", "x"], ["log", "--since", "soon"], ["validate"]],
)
def test_wrong_usage_ends_with_2_and_one_message_on_stderr(words, capsys):
    assert cli.main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err


def test_an_unknown_verb_names_the_nearest_known_one(capsys):
    cli.main(["bord"])
    assert 'did you mean "board"?' in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["status", "--repo", "nowhere"], ["--repo", "nowhere", "status"], ["--repo=nowhere", "log"]]
)
def test_a_repository_that_is_no_folder_is_wrong_usage(words, capsys):
    assert cli.main(words) == 2
    assert "nowhere" in capsys.readouterr().err


def test_only_run_takes_several_repositories(capsys, world):
    assert cli.main(["--repo", ".", "status", "--repo", "."]) == 2
    assert "once" in capsys.readouterr().err


def test_repo_stands_before_or_behind_the_verb(monkeypatch, world):
    seen = []
    fake_verb(monkeypatch, lambda args: seen.append(args.repo) or 0)
    cli.main(["--repo", ".", "fake"])
    cli.main(["fake", "--repo", "."])
    cli.main(["fake"])
    assert seen == [(".",), (".",), ()]


@pytest.mark.parametrize("words", [["--frobnicate"], ["--repo", ".", "--frobnicate", "status"]])
def test_an_unknown_flag_without_a_verb_shows_the_usage_of_the_top_level(words, capsys):
    assert cli.main(words) == 2
    text = capsys.readouterr().err
    assert "usage: shapeupd [--repo DIR] [COMMAND" in text
    assert "--frobnicate" in text


def test_help_is_a_word_as_well_as_a_flag(capsys):
    for words, same in (
        (["help"], ["-h"]),
        (["help", "status"], ["status", "-h"]),
        (["--repo", ".", "help", "log"], ["log", "-h"]),
    ):
        assert cli.main(words) == 0
        shown = capsys.readouterr().out
        assert cli.main(same) == 0
        assert shown == capsys.readouterr().out
    assert cli.main(["help", "bord"]) == 2
    assert 'did you mean "board"?' in capsys.readouterr().err


def test_no_verb_means_run(monkeypatch):
    fake_verb(monkeypatch, lambda args: args.number)
    monkeypatch.setattr(cli, "DEFAULT", "fake")
    assert cli.main(["--number", "5"]) == 5


@pytest.mark.parametrize(("ending", "status"), [(KeyboardInterrupt(), 130), (Exit(3, "nothing"), 3), (Exit(7), 7)])
def test_an_expected_ending_is_its_status_without_a_report(monkeypatch, capsys, world, ending, status):
    def run(args):
        raise ending

    fake_verb(monkeypatch, run)
    assert cli.main(["fake"]) == status
    assert not (world / ".shapeup").exists()


@pytest.mark.parametrize("bug", [RuntimeError("boom\x1b[31m"), RecursionError("deep"), KeyError("k"), OSError(5, "io")])
def test_a_bug_ends_with_70_and_a_report_and_never_a_traceback(monkeypatch, capsys, world, bug):
    def run(args):
        raise bug

    (world / ".shapeup").mkdir()
    fake_verb(monkeypatch, run)
    assert cli.main(["fake"]) == 70
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    log = world / ".shapeup" / NAME
    assert str(log) in captured.err
    row = json.loads(log.read_text())
    assert row["event"] == "daemon.error"
    assert type(bug).__name__ in row["report"]["traceback"]


def test_a_bug_outside_any_repository_leaves_its_report_in_the_temporary_folder(monkeypatch, capsys, world):
    def run(args):
        raise RuntimeError("boom")

    fake_verb(monkeypatch, run)
    monkeypatch.setattr("tempfile.tempdir", str(world))
    assert cli.main(["fake"]) == 70
    assert not (world / ".shapeup").exists()
    (report,) = world.glob("shapeupd-bug-*.json")
    assert str(report) in capsys.readouterr().err


def loaded_by(*words):
    """The top-level modules that a fresh interpreter holds after the command."""
    code = (
        "import sys, daemon.cli; daemon.cli.main(sys.argv[1:]); print('\\n' + ' '.join(sys.modules), file=sys.stderr)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[1])},
    )
    return {name.split(".")[0] for name in answer.stderr.splitlines()[-1].split()}, answer.stderr


@pytest.mark.parametrize(
    "words", [["--help"], ["status"], ["status", "--json"], ["layout"], ["layout", "--help"], ["log"], ["sync"]]
)
def test_light_verbs_load_no_heavy_library(words):
    modules, _ = loaded_by(*words)
    assert modules.isdisjoint(HEAVY)


def test_a_verb_loads_no_other_verb():
    _, text = loaded_by("status")
    assert "daemon.commands.status" in text
    assert "daemon.commands.log" not in text


def test_a_foreign_daemon_package_in_the_working_directory_does_not_shadow_ours(world):
    for name in ("daemon", "parsers", "hooks", "reducers"):
        (world / name).mkdir()
        (world / name / "__init__.py").write_text("raise SystemExit('shadowed')")
    answer = subprocess.run(
        [sys.executable, "-I", "-m", "daemon", "--version"], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stdout[:9]) == (0, "shapeupd ")


def test_a_reader_that_has_seen_enough_is_no_bug(world):
    log = Log(world / ".shapeup", __import__("daemon.clock", fromlist=["now"]).now)
    for number in range(5000):
        log.write("watch.rescan", number=number)
    command = f"{shlex.quote(sys.executable)} -I -m daemon log | head -1"
    answer = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert answer.stderr == ""
    assert answer.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [["layout"], ["layout", "--json"], ["--help"], ["status", "--json"]])
def test_output_that_cannot_be_written_is_no_bug(world, words):
    with open("/dev/full", "w") as full:
        answer = subprocess.run(
            [sys.executable, "-I", "-m", "daemon", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert answer.returncode == 1
    assert answer.stderr.splitlines()[-1] == "shapeupd: cannot write the output: No space left on device"
    assert "Traceback" not in answer.stderr
    assert not (world / ".shapeup").exists()


def test_a_board_without_tasks_is_an_empty_document_and_ends_with_3(world, capsys):
    assert cli.main(["board", "--json"]) == 3
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"schema": 1, "boards": []}
    assert "no task files" in captured.err


def test_status_without_a_daemon_ends_with_3_and_shows_the_runs_on_disk(world, capsys):
    orders = world / ".shapeup/checkout/orders"
    results = world / ".shapeup/checkout/results"
    orders.mkdir(parents=True)
    results.mkdir()
    (world / ".shapeup/checkout/harness-run.md").write_text("---\ntype: harness-run\nstatus: building\n---\n")
    for stem in ("cart-r1-a1", "cart-r2-a1"):
        (orders / f"{stem}.json").write_text("{}")
    (results / "cart-r1-a1.json").write_text("{}")
    (world / ".shapeup/metrics").mkdir()
    assert cli.main(["status", "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert next(iter(document)) == "schema"
    assert document["daemon"] is None
    (row,) = document["runs"]
    assert row == {
        "slug": "checkout",
        "run_id": None,
        "status": "building",
        "round": 2,
        "live_orders": ["checkout/cart-r2-a1"],
        "clock": None,
        "trips": [],
        "open_gates": [],
        "findings": [],
    }
    assert cli.main(["status"]) == 3
    captured = capsys.readouterr()
    assert "checkout/cart-r2-a1" in captured.out
    assert "no daemon" in captured.err


@pytest.fixture
def answering(world):
    servers = []

    def start(answer):
        server = Server(server_socket(world.resolve()), lambda request: answer, print)
        server.start()
        servers.append(server)

    yield start
    for server in servers:
        server.stop()


def test_status_shows_what_the_daemon_says(answering, capsys):
    answering(
        {
            "daemon": {"pid": 7, "version": "1", "started_at": "x", "uptime_s": 3700},
            "runs": [
                {"slug": "a", "run_id": "r", "status": "building", "round": 1, "live_orders": ["a/x"], "trips": []}
            ],
            "queue": 0,
            "latency": {"p50_ms": 1, "p99_ms": 2, "n": 3},
            "counters": {"result.applied": 4},
        }
    )
    assert cli.main(["status"]) == 0
    text = capsys.readouterr().out
    assert "pid 7, up 1 h 1 min" in text
    assert "a/x" in text
    assert "result.applied       4" in text
    assert cli.main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 1


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"rejected": 0, "pending": 0}, 0),
        ({"rejected": [], "pending": []}, 0),
        ({"rejected": 1, "pending": 0}, 1),
        ({"rejected": [], "pending": ["a/x"]}, 1),
        ({"error": "stopping"}, 3),
    ],
)
def test_sync_ends_with_what_stands_open(answering, answer, status):
    answering(answer)
    assert cli.main(["sync"]) == status


def wanting(number, outcome="rejected", code="E-STEM"):
    path = f".shapeup/checkout/results/a-r1-a{number}.json"
    return {"path": path, "order_id": f"checkout/a-r1-a{number}", "outcome": outcome, "code": code}


def test_sync_names_up_to_five_that_stand_open_and_where_the_reasons_lie(answering, capsys):
    answering({"rejected": 7, "pending": 0, "wanting": [wanting(number) for number in range(7)]})
    assert cli.main(["sync"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "settled; 7 rejected, 0 pending"
    assert lines[1] == "  .shapeup/checkout/results/a-r1-a0.json: rejected E-STEM"
    assert lines[6:] == ["  and 2 more", "see .shapeup/checkout/rejections/"]


def test_status_names_what_stands_open_below_its_table(answering, capsys):
    waits = {"slug": "checkout", "wanting": [wanting(1, "pending", "E-NO-ORDER")]}
    answering({"daemon": None, "runs": [waits, {"slug": "older"}], "queue": 0})
    assert cli.main(["status"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["  .shapeup/checkout/results/a-r1-a1.json: pending E-NO-ORDER", "queue 0"]


def test_sync_without_a_daemon_ends_with_3(capsys):
    assert cli.main(["sync"]) == 3
    assert "run --once" in capsys.readouterr().err


def test_layout_prints_every_kind_as_text_and_json(capsys):
    from parsers.layout import KINDS

    assert cli.main(["layout"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(KINDS) + 1
    assert cli.main(["layout", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [kind["kind"] for kind in document["kinds"]] == [kind.kind for kind in KINDS]


def test_log_shows_the_rows_filtered_and_needs_no_daemon(world, capsys):
    from daemon.clock import now

    log = Log(world / ".shapeup", now)
    log.write("order.admitted", slug="a", subject="a/x")
    log.write("result.applied", slug="a", subject="a/x", acs_ticked=1)
    assert cli.main(["log", "--event", "result.*"]) == 0
    text = capsys.readouterr().out
    assert "1 AC ticked" in text
    assert "order.admitted" not in text
    assert cli.main(["log", "-n", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["event"] == "result.applied"
    assert cli.main(["log", "--slug", "b"]) == 0


def test_a_log_that_does_not_exist_yet_ends_with_3(capsys):
    assert cli.main(["log"]) == 3


ORDER = {
    "schema_version": 1,
    "order_id": "checkout/cart-r1-a1",
    "worker": "task-executor",
    "mode": "orchestrated",
    "payload": {},
}


def envelope(world, kind, stem, value):
    folder = world / f".shapeup/checkout/{kind}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


def test_validate_says_valid_and_ends_with_0(world, capsys):
    file = envelope(world, "orders", "cart-r1-a1", ORDER)
    assert cli.main(["validate", file]) == 0
    assert capsys.readouterr().out == f"{file}: valid\n"


@pytest.mark.parametrize("value", [{**ORDER, "mode": "alone"}, "{", "[]"])
def test_validate_prints_each_error_behind_its_file_and_ends_with_1(world, capsys, value):
    file = envelope(world, "orders", "cart-r1-a1", value)
    assert cli.main(["validate", file]) == 1
    assert all(line.startswith(f"{file}: ") for line in capsys.readouterr().out.splitlines())
    assert cli.main(["validate", "--json", file]) == 1
    (judged,) = json.loads(capsys.readouterr().out)["files"]
    assert not judged["valid"]
    assert judged["errors"]


def test_what_an_ingest_would_refuse_beyond_the_shape_is_a_note(world, capsys):
    file = envelope(world, "orders", "other-r1-a1", ORDER)
    assert cli.main(["validate", file]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{file}: valid\n"
    assert "E-STEM" in captured.err


RESULT = {"schema_version": 1, "order_id": "checkout/cart-r1-a1", "worker": "task-executor", "status": "done"}
RECEIPT = {"slug": "checkout", "started_at": "2026-03-01T09:00:00.000Z", "started": True}


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({}, []),
        ({"order_id": "checkout/other-r1-a1"}, ["E-ORDER-MISMATCH"]),
        ({"worker": "orient"}, ["E-WORKER"]),
        ({"verdict": {"overall": "PASS"}}, ["E-FIELD-RIGHTS"]),
        ({"task_results": [{"task_id": "TASK-9", "status": "done"}]}, ["E-NO-TASK"]),
    ],
)
def test_what_an_ingest_would_refuse_of_a_result_is_a_note_and_nothing_is_written(world, capsys, change, codes):
    envelope(world, "orders", "cart-r1-a1", ORDER)
    file = envelope(world, "results", "cart-r1-a1", RESULT | {"task_results": []} | change)
    before = sorted(world.rglob("*"))
    assert cli.main(["validate", "--json", file]) == 0
    captured = capsys.readouterr()
    (judged,) = json.loads(captured.out)["files"]
    assert judged["valid"]
    assert [note["code"] for note in judged["notes"]] == codes
    assert all(set(note) == {"code", "where", "what", "why", "fix"} for note in judged["notes"])
    assert all(code in captured.err for code in codes)
    assert sorted(world.rglob("*")) == before


def test_a_result_that_would_wait_for_its_order_gets_a_note_and_one_that_was_applied_none(world, capsys, monkeypatch):
    file = envelope(world, "results", "cart-r1-a1", RESULT | {"task_results": []})
    receipt = world / ".shapeup/checkout/receipt.json"
    receipt.write_text(json.dumps(RECEIPT))
    (world / "elsewhere").mkdir()
    monkeypatch.chdir(world / "elsewhere")  # a file is judged where it lies
    assert cli.main(["validate", file]) == 0
    assert "E-NO-ORDER" in capsys.readouterr().err
    monkeypatch.chdir(world)
    envelope(world, "orders", "cart-r1-a1", ORDER)
    assert cli.main(["run", "--once", "--log-format", "json"]) == 0
    capsys.readouterr()
    assert cli.main(["validate", file]) == 0
    assert capsys.readouterr().err == ""


def test_the_attestation_of_the_settings_counts_for_the_notes(world, capsys):
    envelope(world, "orders", "cart-r1-a1", ORDER)
    file = envelope(world, "results", "cart-r1-a1", RESULT | {"task_results": []})
    (world / ".shapeupd.toml").write_text('[ingest]\nattestation = "require"\n')
    assert cli.main(["validate", file]) == 0
    assert "E-UNATTESTED" in capsys.readouterr().err
    (world / ".shapeupd.toml").write_text('[ingest]\nattestation = "maybe"\n')
    assert cli.main(["validate", file]) == 0
    assert "E-SETTINGS" in capsys.readouterr().err


def test_a_result_that_a_later_order_has_overtaken_is_noted_as_tampered(world, capsys):
    envelope(world, "orders", "cart-r1-a1", ORDER | {"compiled_at": "2026-03-01T10:00:00.000Z"})
    file = envelope(world, "results", "cart-r1-a1", RESULT | {"task_results": []})
    assert cli.main(["run", "--once", "--log-format", "json"]) == 0
    later = {"order_id": "checkout/cart-r1-a2", "compiled_at": "2026-03-01T11:00:00.000Z"}
    envelope(world, "orders", "cart-r1-a2", ORDER | later)
    envelope(world, "results", "cart-r1-a1", RESULT | {"task_results": [], "status": "failed"})
    capsys.readouterr()
    assert cli.main(["validate", file]) == 0
    assert "E-TAMPERED" in capsys.readouterr().err


def test_a_result_outside_any_run_is_judged_by_its_shape_alone(world, capsys):
    (world / "some.json").write_text(json.dumps(RESULT | {"task_results": []}))
    assert cli.main(["validate", "--as", "result", "some.json"]) == 0
    assert capsys.readouterr().err == ""


def test_json_that_does_not_parse_is_told_with_line_and_column(world, capsys):
    file = envelope(world, "orders", "cart-r1-a1", '{\n  "schema_version": 1,\n  oops\n}')
    assert cli.main(["validate", file]) == 1
    assert capsys.readouterr().out.startswith(f"{file}: 3:3: not JSON: ")


@pytest.mark.parametrize("words", [[], ["--as", "order"]])
def test_a_missing_file_and_a_folder_are_told_before_the_kind_is_asked_about(world, capsys, words):
    (world / "folder").mkdir()
    assert cli.main(["validate", *words, "missing.json", "folder"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "shapeupd: missing.json: does not exist",
        "shapeupd: folder: is a folder",
    ]


def test_the_kind_follows_from_the_folder_or_is_told(world, capsys):
    plain = world / "some.json"
    plain.write_text(json.dumps(ORDER))
    assert cli.main(["validate", "some.json"]) == 2
    assert "--as" in capsys.readouterr().err
    assert cli.main(["validate", "--as", "order", "some.json"]) == 0
    assert cli.main(["validate", "--as", "result", "some.json"]) == 1


def test_a_file_that_cannot_be_read_ends_with_2_and_the_others_are_judged(world, capsys):
    file = envelope(world, "orders", "cart-r1-a1", ORDER)
    assert cli.main(["validate", "missing/orders/x.json", file]) == 2
    captured = capsys.readouterr()
    assert "valid" in captured.out
    assert "missing" in captured.err


def test_a_table_is_plain_in_a_pipe_and_drawn_when_forced(monkeypatch, capsys):
    cli.main(["layout"])
    plain = capsys.readouterr().out
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    monkeypatch.setenv("COLUMNS", "200")
    cli.main(["layout"])
    drawn = capsys.readouterr().out
    assert "\x1b[" in drawn
    assert "\x1b[" not in plain


def test_with_no_color_a_table_is_drawn_without_any_style_its_title_included(monkeypatch, capsys):
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(("id", "title"), [("a", "b")], title="checkout: 0 of 1 tasks done")
    drawn = capsys.readouterr().out
    assert "─" in drawn
    assert "checkout" in drawn
    assert "\x1b" not in drawn


def test_stdout_that_is_closed_is_no_bug(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

        def fileno(self):
            return os.open(os.devnull, os.O_WRONLY)

    monkeypatch.setattr(sys, "stdout", Closed())
    assert cli.main(["layout"]) == 0
