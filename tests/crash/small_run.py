"""Small runs made in code, settled under a clock that stands still, so that two ways to one state can be compared by bytes."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from daemon.log import Log
from daemon.once import settle_all
from daemon.reconciler import Reconciler
from daemon.settled import Tally
from parsers.clock_anchor import Clocks
from parsers.settings import Settings

Case = TypeVar("Case")

IS_FULL = os.environ.get("SHAPEUP_CRASH_FULL") == "1"  # set by `make crash`: every case, not a sample
SLUG = "mail"
RUN = f".shapeup/{SLUG}"
RUN_ID = "mail-20260405T060708Z-00ff00ff"
# Far ahead of any file's mtime: locks of the dead count as stale and half-written files as settled, without waiting.
NOW = datetime(2036, 4, 5, 6, 7, 8, 90_000, tzinfo=UTC)
BOARD = f"{RUN}/tasks/_index.md"
DISCOVERIES = f"{RUN}/discovery/ledger.md"
LEGS = f"{RUN}/legs.jsonl"
RECORD = f"{RUN}/receipts/ingest.jsonl"
JOURNAL = f"{RUN}/journal/000001.jsonl"
VERDICTS = f"{RUN}/evaluation/.verdicts-evaluate-r1.jsonl"
LEDGERS = (DISCOVERIES, LEGS, RECORD, VERDICTS)

_TASK = """---
id: TASK-{n}
title: "Send — später {n}"
status: {status}
depends_on: [{needs}]
priority: {n}
estimated_hours: 2
---
# TASK-{n}

## Acceptance Criteria
- [{box}] queues a mail
- [{box}] retries über
  three lines
- [ ] shows the é of {n}
"""
_INDEX = """# Board — mail

Planner's words: über alles hinaus.

| ID | Title | Status | Est. |
|---|---|---|---|
| TASK-1 | Send | ⬜ ready | 2h |
| TASK-2 | Keep | ⬜ ready | 2h |
| TASK-3 | Wait | 🚫 blocked | 2h |
| TASK-4 | Late | ✅ done | 2h |

⬜ 1 / 4 tasks complete
"""


def sample(cases: Sequence[Case], size: int) -> Sequence[Case]:
    """About `size` of the cases, evenly spread, the last one always; all of them in a full run."""
    step = 1 if IS_FULL else max(1, len(cases) // size)
    return cases[len(cases) - 1 :: -step]


def write(root: Path, path: str, text: str | bytes) -> None:
    """A file with its folders."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode() if isinstance(text, str) else text)


def make_run(root: Path, *, with_index: bool = True) -> None:
    """Four tasks (1 and 2 ready, 3 waits for both, 4 done) and a planner's index."""
    status = {1: "ready", 2: "ready", 3: "blocked", 4: "done"}
    for number, state in status.items():
        needs = "TASK-1, TASK-2" if number == 3 else ""
        text = _TASK.format(n=number, status=state, needs=needs, box="x" if number == 4 else " ")
        write(root, task_path(number), text.replace("\n", "\r\n") if number == 2 else text)
    if with_index:
        write(root, BOARD, _INDEX)


def task_path(number: int) -> str:
    """Where task `number` lies."""
    return f"{RUN}/tasks/TASK-{number}.md"


def result_path(stem: str) -> str:
    """Where the result of an order lies."""
    return f"{RUN}/results/{stem}.json"


def put_order(root: Path, stem: str, worker: str = "task-executor", *, minute: int = 10) -> None:
    """An orchestrated order, compiled that many minutes after six."""
    compiled = datetime(2026, 4, 5, 6, tzinfo=UTC) + timedelta(minutes=minute)
    order = {
        "schema_version": 1,
        "order_id": f"{SLUG}/{stem}",
        "run_id": RUN_ID,
        "compiled_at": f"{compiled:%Y-%m-%dT%H:%M:%S}.000Z",
        "worker": worker,
        "mode": "orchestrated",
        "operation": "evaluate" if worker == "spec-evaluator" else "execute",
        "payload": {},
    }
    write(root, f"{RUN}/orders/{stem}.json", json.dumps(order))


def build_result(stem: str, tasks: Iterable[int], *, note: str = "", discoveries: int = 0) -> dict[str, Any]:
    """A task-executor's answer that ticks two criteria of each task and calls it done."""
    criteria = [
        {"ac": "queues a mail", "result": "pass", "evidence": "src/é.py:1"},
        {"ac": "retries", "result": "pass"},
    ]
    return {
        "schema_version": 1,
        "order_id": f"{SLUG}/{stem}",
        "status": "done",
        "worker": "task-executor",
        "task_results": [
            {"task_id": f"TASK-{n}", "status": "done", "ac_results": criteria, "notes": note or "später"} for n in tasks
        ],
        "discoveries": [{"marker": "+", "line": f"mails without a recipient — {stem} {n}"} for n in range(discoveries)],
    }


def evaluation(stem: str = "evaluate-r1") -> dict[str, Any]:
    """A spec-evaluator's answer: two criteria, and one refuted box of the task that was done before."""
    criteria = [
        {"criterion": "queues", "verdict": "PASS", "evidence": "größer"},
        {"criterion": "retries", "verdict": "FAIL", "evidence": "see src/outbox/queue.py:12-14"},
    ]
    refuted = [{"task_id": "TASK-4", "ac": "queues a mail"}]
    verdict = {"overall": "FAIL", "criteria": criteria, "refuted": refuted}
    return {"schema_version": 1, "order_id": f"{SLUG}/{stem}", "status": "done", "verdict": verdict}


def put_result(root: Path, stem: str, document: dict[str, Any] | bytes) -> None:
    """A result file."""
    data = document if isinstance(document, bytes) else json.dumps(document, ensure_ascii=False).encode()
    write(root, result_path(stem), data)


def put_receipt(root: Path, *, budget_s: float, max_rounds: int = 3) -> None:
    """A receipt of a run that was opened two hours ago."""
    config = {"wall_clock_budget_s": budget_s, "max_rounds": max_rounds}
    started_at = f"{NOW - timedelta(hours=2):%Y-%m-%dT%H:%M:%S}.000Z"
    receipt = {"slug": SLUG, "run_id": RUN_ID, "started_at": started_at, "config": config}
    write(root, f"{RUN}/receipt.json", json.dumps(receipt))


def put_batch(root: Path) -> None:
    """Three results that land together: two build tasks that unblock a third, one judges."""
    put_order(root, "outbox-r1-a1", minute=10)
    put_order(root, "inbox-r1-a1", minute=11)
    put_order(root, "evaluate-r1", "spec-evaluator", minute=12)
    put_result(root, "outbox-r1-a1", build_result("outbox-r1-a1", [1], discoveries=2))
    put_result(root, "inbox-r1-a1", build_result("inbox-r1-a1", [2, 1], note="über\nzwei Zeilen", discoveries=1))
    put_result(root, "evaluate-r1", evaluation())


def land_result(root: Path, stem: str, document: dict[str, Any] | bytes) -> None:
    """A result put as agents should: written beside under a hidden name, renamed into place."""
    put_result(root, f".{stem}", document)
    os.rename(root / result_path(f".{stem}"), root / result_path(stem))


def reconciler_of(root: Path, log: Log | None = None) -> Reconciler:
    """A reconciler whose clock stands still."""
    own = log or Log(root / ".shapeup", lambda: NOW)
    return Reconciler(root, Settings(), own, now=lambda: NOW, clocks=lambda: Clocks(NOW, "boot", 5000.0))


def settle(root: Path, *, checkpoints: bool = True, log: Log | None = None) -> Tally:
    """What `run --once` does: settle everything and put it on disk."""
    own = log or Log(root / ".shapeup", lambda: NOW)
    reconciler = reconciler_of(root, own)
    try:
        tally = settle_all(reconciler, root)
        if checkpoints:
            reconciler.checkpoint()
    finally:
        reconciler.close()
        if log is None:
            own.close()
    assert tally is not None
    return tally


def tree_bytes(root: Path) -> dict[str, bytes]:
    """Every file of both trees by path; a link reads as where it leads.

    Without the log, what the service tells hooks (policy.*) and the side files of torn journal tails; the journal's segments read as one file, because where it
    was cut is nobody's business.
    """
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, root)
            if name.startswith(("shapeupd.log", "policy.")) or name.endswith(".torn"):
                continue
            is_link = stat.S_ISLNK(os.lstat(path).st_mode)
            data = os.readlink(path).encode() if is_link else Path(path).read_bytes()
            is_segment = relative.startswith(f"{RUN}/journal/0")
            found[JOURNAL if is_segment else relative] = found.get(JOURNAL, b"") + data if is_segment else data
    return found


def difference(found: dict[str, bytes], wanted: dict[str, bytes]) -> str:
    """The first paths that differ and where they do, for a test's message; empty when none does."""
    paths = sorted(path for path in found.keys() | wanted.keys() if found.get(path) != wanted.get(path))
    return "\n".join(f"{path}: {_first_difference(found.get(path), wanted.get(path))}" for path in paths[:5])


def _first_difference(found: bytes | None, wanted: bytes | None) -> str:
    if found is None or wanted is None:
        return "missing" if found is None else "should not be there"
    at = next((at for at, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), 0)
    return f"at {at}\n  found  {found[at : at + 200]!r}\n  wanted {wanted[at : at + 200]!r}"


def copy_tree(source: Path, target: Path) -> Path:
    """A fresh copy of a small tree, in place of what stood there."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target


def log_rows(root: Path, event: str) -> list[dict[str, Any]]:
    """The rows of one event in the log."""
    path = root / ".shapeup/shapeupd.log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [row for line in lines if (row := json.loads(line))["event"] == event]
