"""What the demo tells: orders and results land, the board moves, a bad result is refused, time runs out, restarts change nothing. Source: issues 2-4."""

from __future__ import annotations

import os
import signal
from typing import Any

from daemon.board_table import board_of, show_board
from daemon.demo.deadline import run_out_of_time
from daemon.demo.stage import Failed, Stage
from daemon.disk import DiskTree
from parsers.addresses import mint_run_id
from parsers.layout import path_of

SLUG = "checkout"
STARTED_AT = "2026-03-01T09:00:00.000Z"
RUN_ID = mint_run_id(SLUG, STARTED_AT, None)


def tell(stage: Stage) -> None:
    """Run every step; raises Failed at the first that does not show what it claims."""
    _step("A repository with a plan: three tasks, the later ones wait for the first")
    is_git = stage.init_git()
    print(
        f"    {stage.root}" + ("" if is_git else "   (no git found: shapeupd works without, commits are not checked)")
    )
    _plan(stage)
    _step("The daemon starts beside it")
    stage.start()
    _show_board(stage)
    _answer_an_order(stage)
    _step("The next order lands; while it is live, its whitelist is what may be committed")
    _order(stage, "discount-r1-a1", "TASK-002", "2026-03-01T09:20:00.000Z")
    if is_git:
        _refuse_a_commit(stage)
    _refuse_a_bad_result(stage)
    _same_bytes_again(stage)
    run_out_of_time(stage)
    _restart(stage)
    _step("All of it is in plain files; ask again at any time with: board, status, log, gate-h, rebuild --verify")


def _step(text: str) -> None:
    print(f"\n== {text}")


def _check(claim: bool, what: str) -> None:
    if not claim:
        raise Failed(what)


def _check_same(before: dict[str, str], after: dict[str, str], what: str) -> None:
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    _check(not changed, f"{what} changed the shared state: {', '.join(changed)}")


def _plan(stage: Stage) -> None:
    tasks: tuple[tuple[str, str, str, list[str], list[str]], ...] = (
        ("TASK-001", "Cart totals", "ready", [], ["Total is the sum of its lines", "An empty cart shows 0.00"]),
        ("TASK-002", "Discount codes", "blocked", ["TASK-001"], ["An unknown code is refused"]),
        (
            "TASK-003",
            "Checkout button",
            "blocked",
            ["TASK-001", "TASK-002"],
            ["The button is off while the cart is empty"],
        ),
    )
    rows = ["| ID | Title | Status | Depends On |", "|---|---|---|---|"]
    for task_id, title, status, needs, criteria in tasks:
        boxes = "\n".join(f"- [ ] {text}" for text in criteria)
        head = f"id: {task_id}\ntitle: {title}\nstatus: {status}\ndepends_on: [{', '.join(needs)}]"
        stage.write(path_of("task", SLUG, task_id), f"---\n{head}\n---\n\n## Acceptance Criteria\n\n{boxes}\n")
        glyph = "⬜" if status == "ready" else "🚫"
        rows.append(f"| {task_id} | {title} | {glyph} {status} | {', '.join(needs) or '—'} |")
    stage.write(path_of("board-index", SLUG), "# Task Board\n\n" + "\n".join(rows) + "\n\n⬜ 0 / 3 tasks complete\n")
    receipt = {
        "receipt_version": 1,
        "type": "harness-run-receipt",
        "slug": SLUG,
        "run_id": RUN_ID,
        "started_at": STARTED_AT,
    }
    stage.write(path_of("receipt", SLUG), {**receipt, "started": True, "config": {"max_rounds": 3}})


def _order(stage: Stage, stem: str, task_id: str, at: str) -> None:
    order = {
        "schema_version": 1,
        "order_id": f"{SLUG}/{stem}",
        "run_id": RUN_ID,
        "compiled_at": at,
        "worker": "task-executor",
        "mode": "standalone",
        "operation": "execute",
        "substrate": {"allowed": ["src/cart/**"]},
        "payload": {"tasks": [{"id": task_id}]},
    }
    stage.write(path_of("order", SLUG, stem), order)
    stage.wait_for("order.admitted", f"{SLUG}/{stem}")


def _result(stem: str, task_id: str, criteria: list[str], **more: Any) -> dict[str, Any]:
    passed = [{"ac": text, "result": "pass", "evidence": "cart.test.ts"} for text in criteria]
    task = {"task_id": task_id, "status": "done", "ac_results": passed}
    return {
        "schema_version": 1,
        "order_id": f"{SLUG}/{stem}",
        "worker": "task-executor",
        "status": "done",
        "task_results": [task],
        **more,
    }


def _board(stage: Stage) -> dict[str, Any]:
    return board_of(DiskTree(stage.root), SLUG)


def _show_board(stage: Stage) -> None:
    show_board(_board(stage))


def _status_of(stage: Stage, task_id: str) -> str:
    return str(next(task["status"] for task in _board(stage)["tasks"] if task["id"] == task_id))


def _answer_an_order(stage: Stage) -> None:
    _step("An order lands; its worker answers; the board moves")
    _order(stage, "cart-r1-a1", "TASK-001", "2026-03-01T09:05:00.000Z")
    result = _result("cart-r1-a1", "TASK-001", ["Total is the sum of its lines", "An empty cart shows 0.00"])
    result["discoveries"] = [{"marker": "+", "line": "Totals need a currency", "lens": "edge"}]
    stage.write(path_of("result", SLUG, "cart-r1-a1"), result)
    stage.wait_for("result.applied", f"{SLUG}/cart-r1-a1")
    stage.sync()
    _show_board(stage)
    _check(_status_of(stage, "TASK-001") == "done", "TASK-001 is not done")
    _check(_status_of(stage, "TASK-002") == "ready", "TASK-002 was not unblocked")
    index = (stage.root / path_of("board-index", SLUG)).read_text(encoding="utf-8")
    _check("| TASK-001 | Cart totals | ✅ done |" in index, "the planner's index did not follow")
    _check("1 / 3 tasks complete" in index, "the progress line did not follow")


def _refuse_a_commit(stage: Stage) -> None:
    stage.sync()
    stage.shapeupd("install")
    stage.write("src/cart/discount.py", "CODES = {}\n")
    stage.write("src/billing/tax.py", "RATE = 0.2\n")
    stage.git("add", "src")
    print("    $ git commit -m 'discount codes'")
    refused = stage.git("commit", "-m", "discount codes")
    print(_indented(refused.stderr))
    _check(refused.returncode != 0, "git let a commit pass that leaves the whitelist")
    _check("src/billing/tax.py: OUTSIDE" in refused.stderr, "the refusal does not name the path and the rule")
    _step("Past the hooks it is seen at once; taken back and without the foreign file it passes")
    bypass = stage.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "past the hooks")
    _check(bypass.returncode == 0, "git did not commit past the hooks")
    stage.wait_for("commit.bypassed")
    stage.git("reset", "-q", "--soft", "HEAD^")
    stage.git("rm", "-q", "--cached", "src/billing/tax.py")
    accepted = stage.git("commit", "-m", "discount codes")
    _check(accepted.returncode == 0, f"git refused a commit inside the whitelist: {accepted.stderr}")
    message = stage.git("log", "-1", "--format=%B").stdout
    _check(f"Shapeup-Order: {SLUG}/discount-r1-a1" in message, "the commit does not name its order")
    print(_indented(message))
    stage.wait_for("commit.accepted")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.strip().splitlines())


def _refuse_a_bad_result(stage: Stage) -> None:
    _step("A result that judges its own work is refused, with a reason and a way forward")
    before = _board(stage)
    path = path_of("result", SLUG, "discount-r1-a1")
    bad = _result("discount-r1-a1", "TASK-002", ["An unknown code is refused"], verdict={"overall": "PASS"})
    stage.write(path, bad)
    row = stage.wait_for("result.rejected", f"{SLUG}/discount-r1-a1")
    rejection = stage.root / path_of("rejection", SLUG, "result-discount-r1-a1")
    stage.sync()
    _check(row["code"] == "E-FIELD-RIGHTS", f"refused for another reason: {row['code']}")
    _check(_board(stage) == before, "a refused result moved the board")
    _check(rejection.is_file(), "no rejection file")
    print(f"    the same stands in {rejection.relative_to(stage.root)}, for the agent to read")
    _step("The worker mends it; the refusal goes away by itself")
    del bad["verdict"]
    stage.write(path, bad)
    stage.wait_for("result.applied", f"{SLUG}/discount-r1-a1")
    stage.sync()
    _check(not rejection.exists(), "the rejection outlived its cause")
    _check(_status_of(stage, "TASK-003") == "ready", "TASK-003 was not unblocked")


def _same_bytes_again(stage: Stage) -> None:
    _step("The same bytes land again: nothing happens twice")
    before = stage.state()
    target = stage.root / path_of("result", SLUG, "cart-r1-a1")
    beside = target.with_suffix(".tmp")
    beside.write_bytes(target.read_bytes())
    os.replace(beside, target)
    stage.wait_for("result.duplicate", f"{SLUG}/cart-r1-a1")
    stage.sync()
    _check(stage.state() == before, "a duplicate changed the shared state")


def _restart(stage: Stage) -> None:
    _step("A clean stop, then kill -9, each followed by a start: the shared state is the same to the byte")
    before = stage.state()
    _check(stage.end(signal.SIGTERM) == 0, "the daemon did not end cleanly")
    stage.start()
    stage.sync()
    _check_same(before, stage.state(), "a restart")
    stage.end(signal.SIGKILL)
    stage.start()
    stage.sync()
    _check_same(before, stage.state(), "a start after kill -9")
    _show_board(stage)
    _check(stage.end(signal.SIGTERM) == 0, "the daemon did not end cleanly")
