"""What a run claims when it ends: done tasks, a pass, a deployment, a finished board. Source: protocol §5.1, §9 R-25, R-41 to R-43.

That the report lists the dimensions not evaluated (R-41) comes with the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from parsers.layout import path_of
from reducers.breakers import PASS
from reducers.rules.findings import Finding, finding
from reducers.rules.loop_facts import LoopFacts, always, newest_overall

_DEPLOY = re.compile(r"\bdeploy", re.IGNORECASE)
_MACHINES = ("preset:", "file:")


def done_comes_from_a_result(facts: LoopFacts) -> Iterator[Finding]:
    """R-25: a task is done, and no applied result says so. A board without any local history says nothing (ruling K)."""
    if not facts.results:
        return
    told = {task_id for task_id, entries in facts.statuses.items() if any(status == "done" for _, status in entries)}
    for task in facts.tasks:
        if task.status == "done" and task.id not in told:
            what = f"{task.id} is done, and no applied result says so"
            yield finding("R-25", task.id, task.path, what, "have an order for it answered, or set it back")


def a_pass_was_judged(facts: LoopFacts) -> Iterator[Finding]:
    """R-41."""
    if facts.final_verdict.strip().casefold() == "pass" and newest_overall(facts, always) != PASS:
        path = path_of("harness-run", facts.slug)
        what = "final_verdict is pass, and no applied verdict is PASS"
        yield finding("R-41", "final_verdict", path, what, "write `final_verdict: not-evaluated`, or evaluate")


def a_deployment_was_decided(facts: LoopFacts) -> Iterator[Finding]:
    """R-42: a person's row in the round ledger speaks of it."""
    if facts.deploy.strip().casefold() != "deployed":
        return
    for decision in facts.decisions:
        is_persons = decision.resolved_by.strip() not in ("", "—") and not decision.resolved_by.startswith(_MACHINES)
        if is_persons and _DEPLOY.search(f"{decision.question} {decision.answer}"):
            return
    path = path_of("harness-run", facts.slug)
    what = "it says deployed, and no row of the round ledger by the PO does"
    yield finding("R-42", "deploy", path, what, "write `deploy: pending-po` until the PO has decided")


def a_shipping_board_is_ticked(facts: LoopFacts) -> Iterator[Finding]:
    """R-43: a done task of a shipped run holds criteria that nobody ticked."""
    if not facts.is_shipped:
        return
    for task in facts.tasks:
        if open_ := facts.open_boxes.get(task.path, 0):
            what = f"{task.id} is done with {open_} open criteria, and the run was shipped"
            yield finding("R-43", task.id, task.path, what, "verify them, or say in the report that they are open")
