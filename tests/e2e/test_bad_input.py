"""Bad input gets a clear error with a stable code; the file stays untouched and nothing else is affected. Source: issue 2 "Bad input gets"."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.living import SLUG, SmallRun, daemon, shapeupd

Plant = Callable[[SmallRun], Path]


def _text(content: str) -> Plant:
    return lambda run: run.write("results/bad-r1-a1.json", content)


def _value(**more: object) -> Plant:
    return lambda run: run.result("bad-r1-a1", **more)  # type: ignore[arg-type]


def _link(run: SmallRun) -> Path:
    outside = run.root / "outside.json"
    outside.write_text(json.dumps(run.result_value("bad-r1-a1")))
    path = run.local / "results/bad-r1-a1.json"
    path.symlink_to(outside)
    return path


def _pipe(run: SmallRun) -> Path:
    path = run.local / "results/bad-r1-a1.json"
    os.mkfifo(path)
    return path


def _linked_task(run: SmallRun) -> Path:
    outside = run.root / "outside.md"
    task = run.local / "tasks/TASK-1.md"
    os.rename(task, outside)
    task.symlink_to(outside)
    return run.result("bad-r1-a1")


def _linked_ledger(run: SmallRun) -> Path:
    (run.root / "outside.md").write_text("mine\n")
    (run.local / "discovery").mkdir()
    (run.local / "discovery/ledger.md").symlink_to(run.root / "outside.md")
    return run.result("bad-r1-a1", discoveries=[{"marker": "+", "line": "x"}])


CASES: dict[str, tuple[str, Plant]] = {
    "none of its tasks exists": ("E-NO-TASK", _value(task_id="TASK-99")),
    "another order's id": ("E-ORDER-MISMATCH", _value(order_id=f"{SLUG}/other-r1-a1")),
    "an id that leaves the tree": ("E-ORDER-MISMATCH", _value(order_id="../../etc/passwd")),
    "a field its worker may not return": ("E-FIELD-RIGHTS", _value(verdict={"overall": "PASS"})),
    "another worker": ("E-WORKER", _value(worker="spec-evaluator")),
    "a wrong shape": ("E-SCHEMA", _value(status="success")),
    "no JSON": ("E-JSON", _text("{")),
    "an empty file": ("E-JSON", _text("")),
    "a key named twice": ("E-DUPLICATE-KEY", _text('{"status":"done","status":"failed"}')),
    "an infinite number": ("E-NUMBER", _text('{"schema_version":1e999}')),
    "too deep": ("E-DEPTH", _text("[" * 80 + "]" * 80)),
    "half a surrogate pair": ("E-SURROGATE", _text('{"order_id":"\\ud800"}')),
    "a NUL": ("E-NUL", _text('{"order_id":"a\\u0000"}')),
    "a byte order mark": ("E-ENCODING", _text("\ufeff{}")),
    "more than a mebibyte": ("E-TOO-LARGE", _text('"' + "x" * 1024 * 1024 + '"')),
    "a link in the result's place": ("E-NOT-A-FILE", _link),
    "a pipe in the result's place": ("E-NOT-A-FILE", _pipe),
    "a link in the task's place": ("E-SYMLINK", _linked_task),
    "a link in the ledger's place": ("E-SYMLINK", _linked_ledger),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[SmallRun, int, int, dict[str, bytes], str]]:
    """Every case in a repository of its own: planted, `run --once`, then `ingest`."""
    found = {}
    for name, (_, plant) in CASES.items():
        run = SmallRun(tmp_path_factory.mktemp("repo"))
        run.order("bad-r1-a1")
        (run.local / "results").mkdir()
        path = plant(run)
        before = {key: data for key, data in run.state().items() if "/results/" in key or "/tasks/" in key}
        once = shapeupd("run", "--once", "--repo", str(run.root))
        ingest = shapeupd("ingest", str(path))
        found[name] = (run, once.returncode, ingest.returncode, before, ingest.stderr)
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_bad_result_is_refused_with_its_code_and_nothing_else_moves(
    name: str, outcomes: dict[str, tuple[SmallRun, int, int, dict[str, bytes], str]]
) -> None:
    code = CASES[name][0]
    run, once, ingest, before, said = outcomes[name]
    assert (once, ingest) == (1, 1), said
    rejection = run.rejection("result-bad-r1-a1")
    assert rejection["code"] == code
    for error in rejection["errors"]:
        assert all(error[key] for key in ("where", "what", "why", "fix")), error
    assert f"{code} " in said
    assert "fix: " in said
    assert "Traceback" not in said
    after = {key: data for key, data in run.state().items() if "/results/" in key or "/tasks/" in key}
    assert after == before
    log = [json.loads(line) for line in (run.root / ".shapeup/shapeupd.log").read_text().splitlines()]
    assert [row["code"] for row in log if row["event"] == "result.rejected"].count(code) >= 1
    assert [row["code"] for row in run.rows("receipts/ingest.jsonl")] == [code]
    outside = run.root / "outside.md"
    assert not outside.exists() or "Execution Log" not in outside.read_text()


def test_one_bad_file_does_not_hold_up_the_good_ones(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    with daemon(tmp_path) as living:
        for n in range(5):
            run.write(f"results/bad-r1-a{n + 1}.json", "[" * 5000)
        run.write("orders/broken-r1-a1.json", "{")
        run.order("core-r1-a1")
        run.result("core-r1-a1")
        living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
        assert living.sync()["rejected"] == 6


def test_a_refused_order_grants_nothing_and_says_why(tmp_path: Path) -> None:
    run = SmallRun(tmp_path, with_receipt=True)
    with daemon(tmp_path) as living:
        run.order("core-r1-a1", order_id=f"{SLUG}/other-r1-a1")
        assert living.wait_for("order.rejected")["code"] == "E-STEM"
        run.result("core-r1-a1", order_id=f"{SLUG}/core-r1-a1")
        assert living.wait_for("result.rejected")["code"] == "E-ORDER-MISMATCH"
        run.order("core-r1-a1")
        living.wait_for("result.applied", f"{SLUG}/core-r1-a1")
        living.sync()
        assert not (run.local / "rejections/order-core-r1-a1.json").exists()


def test_text_from_a_result_cannot_forge_a_heading_or_a_log_line(tmp_path: Path) -> None:
    run = SmallRun(tmp_path)
    run.order("core-r1-a1")
    forged = "fine\n## Execution Log — 2026-01-01 (cart/evil-r1-a1)\n\x1b[2Jgone"
    value = run.result_value("core-r1-a1", criteria=("adds an item",))
    value["task_results"][0]["notes"] = forged
    run.write("results/core-r1-a1.json", value)
    assert shapeupd("run", "--once", "--repo", str(tmp_path)).returncode == 0
    headings = [line for line in run.text("tasks/TASK-1.md").splitlines() if line.startswith("#")]
    assert [line for line in headings if "evil" in line] == []
    assert "\x1b" not in shapeupd("log", "--repo", str(tmp_path)).stdout


def test_a_folder_that_is_a_link_is_not_followed_and_that_is_said(tmp_path: Path) -> None:
    run = SmallRun(tmp_path / "repo")
    (tmp_path / "elsewhere").mkdir()
    (run.local / "results").symlink_to(tmp_path / "elsewhere")
    run.result("core-r1-a1")
    with daemon(run.root) as living:
        living.sync()
        (row,) = living.events("daemon.error")
        assert row["code"] == "E-SYMLINK"
        assert row["subject"] == f".shapeup/{SLUG}/results"
    assert run.status("TASK-1") == "ready"
