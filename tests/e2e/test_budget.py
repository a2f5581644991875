"""`shapeupd budget` as a user runs it: reads only, tells both clocks, ends as it should. Source: cli §2, protocol §7.2, rulings F3, F4, J."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from daemon.boot_clock import read_clocks
from daemon.store import Store, Transaction
from parsers.breaker_ledger import Extension, Trip, extension_row, trip_row
from parsers.clock_anchor import Anchor, anchor_document
from parsers.layout import path_of
from parsers.ledgers import render_row
from parsers.times import render_time
from reducers.changes import Append
from reducers.entries import Cause
from tests.e2e.living import COMMAND, PATIENCE_S, SmallRun

RUN = "cart-20260301T090000Z-0a1b2c3d"
START = "2026-03-01T09:00:00.000Z"
HALF, LATE = "2026-03-01T09:30:00.000Z", "2026-03-01T10:00:00.000Z"
AT = "2026-03-01T09:59:00.000Z"


def budget(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "budget", *words], capture_output=True, text=True, cwd=cwd, timeout=PATIENCE_S, check=False
    )


def told(*words: str, cwd: Path, status: int = 0) -> dict[str, Any]:
    ran = budget(*words, "--json", cwd=cwd)
    assert ran.returncode == status, ran
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def open_run(
    root: Path, slug: str = "cart", budget_s: object = 3600, started_at: object = START, status: str = ""
) -> SmallRun:
    run = SmallRun(root)
    run.local = root / ".shapeup" / slug
    config = {"max_rounds": 3, "attempt_budget": 5, "wall_clock_budget_s": budget_s}
    run.write("receipt.json", {"slug": slug, "run_id": f"{slug}{RUN[4:]}", "started_at": started_at, "config": config})
    if status:
        run.write("harness-run.md", f"---\ntype: harness-run\nstatus: {status}\nclosed_at: ~\n---\n")
    return run


def recorded(run: SmallRun, *rows: dict[str, object]) -> None:
    """Rows of breakers.jsonl as the daemon writes them: through the run's journal."""
    slug = run.local.name
    store = Store(run.root, slug, lambda event, fields: None)
    change = Append(path_of("breakers", slug), "".join(map(render_row, rows)))
    store.commit([Transaction(Cause(change.path, "", "", "extended"), (change,))], read_clocks().wall)
    store.close()


def test_the_document_of_one_run(tmp_path: Path) -> None:
    open_run(tmp_path)
    document = told("cart", "--at", HALF, cwd=tmp_path)
    assert document.pop("action")
    assert document == {
        "schema": 1,
        "slug": "cart",
        "started_at": START,
        "status": "ok",
        "elapsed_s": 1800,
        "budget_s": 3600,
        "remaining_s": 1800,
        "used_fraction": 0.5,
        "boot_elapsed_s": None,
        "wall_elapsed_s": 1800,
        "clock": "given",
        "run_id": RUN,
        "open": True,
        "extensions": [],
        "findings": [],
    }


@pytest.mark.parametrize(
    ("at", "words", "status", "ends"),
    [
        (HALF, ("--strict",), "ok", 0),
        ("2026-03-01T09:45:00Z", ("--strict",), "warn", 0),
        (LATE, (), "trip", 0),
        (LATE, ("--strict",), "trip", 6),
        ("2026-03-01T12:00:00+01:00", ("--strict",), "trip", 6),
        ("2026-02-28T12:00:00Z", ("--strict",), "ok", 0),
    ],
)
def test_strict_ends_with_6_on_a_trip_alone(
    tmp_path: Path, at: str, words: tuple[str, ...], status: str, ends: int
) -> None:
    open_run(tmp_path)
    assert told("cart", "--at", at, *words, cwd=tmp_path, status=ends)["status"] == status


def test_a_run_without_a_budget_is_off(tmp_path: Path) -> None:
    open_run(tmp_path, budget_s=None)
    document = told("--strict", cwd=tmp_path)
    assert (document["status"], document["budget_s"], document["remaining_s"]) == ("off", None, None)


def test_a_person_reads_the_same(tmp_path: Path) -> None:
    run = open_run(tmp_path)
    recorded(run, extension_row(Extension(AT, RUN, "ada\x1b[31m", 1800), 3540, 5400))
    ran = budget("cart", "--at", LATE, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[0] == f"cart: ok, started {START}"
    assert "1h (3600 s)" in lines[1]
    assert "1h30m (5400 s), remaining 30m (1800 s)" in lines[2]
    assert lines[3] == "  extended   30m (1800 s) by ada\\x1b[31m at 2026-03-01T09:59:00.000Z"


def test_a_recorded_extension_counts_and_a_receipt_raised_by_hand_does_not(tmp_path: Path) -> None:
    run = open_run(tmp_path, budget_s=9999)
    anchor = Anchor(RUN, "another boot", 5.0, read_clocks().wall, 3600)
    run.write("clock.json", anchor_document(anchor))
    ran = budget("cart", "--at", LATE, "--strict", "--json", cwd=tmp_path)
    assert (ran.returncode, json.loads(ran.stdout)["budget_s"]) == (6, 3600)
    assert "raised by hand" in ran.stderr
    recorded(
        run,
        trip_row(Trip(RUN, "deadline", "trip", None, 1, 3600, 3600), AT),
        extension_row(Extension(AT, RUN, "ada", 60), 3600, 3660),
        extension_row(Extension(AT, "other-run", "ada", 9999), 3600, 9999),
    )
    forged = render_row(extension_row(Extension(AT, RUN, "eve", 9999), 3600, 13659))
    run.write("breakers.jsonl", run.text("breakers.jsonl") + forged + '{"torn')
    document = told("cart", "--at", LATE, "--strict", cwd=tmp_path)
    assert (document["status"], document["budget_s"]) == ("warn", 3660)
    assert document["extensions"] == [{"at": AT, "by": "ada", "added_s": 60}]


@pytest.mark.skipif(read_clocks().boottime_s is None, reason="this system has no boot clock")
def test_a_step_of_the_wall_clock_is_told_and_moves_nothing(tmp_path: Path) -> None:
    now = read_clocks()
    assert now.boottime_s is not None
    assert now.boot_id is not None
    start = now.wall - timedelta(hours=3)
    run = open_run(tmp_path, started_at=render_time(start))
    run.write("clock.json", anchor_document(Anchor(RUN, now.boot_id, now.boottime_s - 60, start)))
    ran = budget("cart", "--strict", "--json", cwd=tmp_path)
    document = json.loads(ran.stdout)
    assert (ran.returncode, document["status"], document["clock"]) == (0, "ok", "boot")
    assert document["boot_elapsed_s"] == document["elapsed_s"] < 3600 < document["wall_elapsed_s"]
    assert "ahead of the boot clock" in ran.stderr
    assert len(document["findings"]) == 1
    assert "wall clock" in budget("cart", cwd=tmp_path).stdout


def test_without_an_anchor_of_this_boot_the_wall_clock_counts(tmp_path: Path) -> None:
    start = read_clocks().wall - timedelta(hours=2)
    run = open_run(tmp_path, started_at=render_time(start))
    for anchor in ("{", json.dumps(anchor_document(Anchor(RUN, "another boot", 1.0, start)))):
        run.write("clock.json", anchor)
        document = told("cart", "--strict", cwd=tmp_path, status=6)
        assert (document["clock"], document["boot_elapsed_s"]) == ("wall", None)
        assert document["elapsed_s"] >= 7200


# --- which run -------------------------------------------------------------------------------------------------------


def test_without_a_slug_the_pointer_names_the_run(tmp_path: Path) -> None:
    open_run(tmp_path)
    open_run(tmp_path, "shop")
    (tmp_path / ".shapeup" / "active-scope").write_text('{"slug": "shop"}')
    assert told(cwd=tmp_path)["slug"] == "shop"


@pytest.mark.parametrize("pointer", [None, "", "{", '{"slug": "gone"}', '{"slug": "../x"}', '{"slug": 7}'])
def test_without_a_pointer_every_open_run_is_told(tmp_path: Path, pointer: str | None) -> None:
    open_run(tmp_path, status="building")
    open_run(tmp_path, "shop", budget_s=60)
    open_run(tmp_path, "old", status="shipped")
    if pointer is not None:
        (tmp_path / ".shapeup" / "active-scope").write_text(pointer)
    document = told("--at", HALF, "--strict", cwd=tmp_path, status=6)
    assert [one["slug"] for one in document["budgets"]] == ["cart", "shop"]
    assert [one["status"] for one in document["budgets"]] == ["ok", "trip"]


def test_a_closed_run_is_told_when_it_is_named(tmp_path: Path) -> None:
    open_run(tmp_path, status="shipped")
    document = told("cart", "--at", LATE, cwd=tmp_path)
    assert (document["status"], document["open"]) == ("trip", False)
    assert "closed" in budget("cart", cwd=tmp_path).stdout


@pytest.mark.parametrize("words", [(), ("gone",), ("../cart",), ("metrics",), ("CART",), ("cart",)])
def test_where_there_is_no_run_it_ends_with_3(tmp_path: Path, words: tuple[str, ...]) -> None:
    SmallRun(tmp_path)  # tasks, and no receipt
    ran = budget(*words, "--json", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("shapeupd: no run: there is no .shapeup/")


# --- what cannot be read ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("started_at", [None, "soon", 7])
def test_a_receipt_without_a_start_ends_with_2_and_says_where(tmp_path: Path, started_at: object) -> None:
    open_run(tmp_path, started_at=started_at)
    ran = budget("cart", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ".shapeup/cart/receipt.json:$.started_at" in ran.stderr
    assert "fix:" in ran.stderr


@pytest.mark.parametrize("data", ["", "{", "[]", "\x00", '{"slug":"a","slug":"b"}'])
def test_a_receipt_that_is_none_ends_with_2(tmp_path: Path, data: str) -> None:
    open_run(tmp_path).write("receipt.json", data)
    ran = budget("cart", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "receipt.json" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_link_in_a_receipts_place_is_not_followed(tmp_path: Path) -> None:
    run = open_run(tmp_path)
    (run.local / "receipt.json").rename(tmp_path / "elsewhere.json")
    (run.local / "receipt.json").symlink_to(tmp_path / "elsewhere.json")
    ran = budget("cart", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "E-SYMLINK" in ran.stderr


def test_one_run_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    open_run(tmp_path)
    open_run(tmp_path, "shop", started_at="soon")
    ran = budget("--at", HALF, "--json", cwd=tmp_path)
    assert (ran.returncode, json.loads(ran.stdout)["slug"]) == (2, "cart")
    assert "shop/receipt.json" in ran.stderr


@pytest.mark.parametrize("value", [-1, "90m", 1e12, True])
def test_a_budget_that_cannot_be_meant_is_off_and_told(tmp_path: Path, value: object) -> None:
    open_run(tmp_path, budget_s=value)
    ran = budget("cart", "--strict", "--json", cwd=tmp_path)
    assert (ran.returncode, json.loads(ran.stdout)["status"]) == (0, "off")
    assert "wall_clock_budget_s" in ran.stderr


@pytest.mark.parametrize("words", [("--at", "soon"), ("--at",), ("cart", "shop"), ("--nothing",)])
def test_words_that_are_none_end_with_2(tmp_path: Path, words: tuple[str, ...]) -> None:
    open_run(tmp_path)
    ran = budget(*words, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")


# --- it only looks ---------------------------------------------------------------------------------------------------


def test_it_writes_nothing(tmp_path: Path) -> None:
    open_run(tmp_path)

    def everything() -> dict[str, tuple[int, int]]:
        found = ((os.fspath(path), path.stat()) for path in tmp_path.rglob("*"))
        return {path: (status.st_mtime_ns, status.st_ino) for path, status in found}

    before = everything()
    told("cart", cwd=tmp_path)
    told(cwd=tmp_path)
    assert everything() == before


def test_it_loads_none_of_the_heavy_libraries(tmp_path: Path) -> None:
    open_run(tmp_path)
    code = (
        "import sys; from daemon import cli;"
        "cli.main(['budget', 'cart', '--json']); heavy = {'pydantic', 'rich', 'watchdog', 'pygit2', 'structlog'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert ran.stderr == "[]\n"
