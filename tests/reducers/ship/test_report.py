"""REPORT.md: what it says, and what it may never say. Source: protocol §5.8, W-33, W-42, W-43, R-41, R-45, rulings G8, K."""

from __future__ import annotations

from typing import Any

import pytest

from parsers.markdown import parse_heading, scan_lines
from parsers.round_ledger import Decision
from parsers.tasks import Task, parse_task
from parsers.tier_direction import tier_breaks
from reducers.run_records import RunRecords
from reducers.ship.facts import DIMENSIONS, Documents, discovered_blocks, is_frozen, ship_facts
from reducers.ship.leftovers import Leftover
from reducers.ship.report import render_report
from tests.reducers.a_run import order, records, result, scope, trial, trials

EVAL = """# EVAL

## Criteria table
| criterion | verdict |
|---|---|
| TASK-003 adds | PASS |

# Bugs
## BUG-1 in `.shapeup/cart/orders/x.json`
```
# no heading, and nobody closes this fence
"""


def task(id_: str, status: str, **more: str) -> Task:
    keys = {"id": id_, "status": status, **more}
    text = "---\n" + "".join(f"{key}: {value}\n" for key, value in keys.items()) + "---\n"
    return parse_task(f"{id_}.md", text.encode())[0]


def report(run: RunRecords, tasks: tuple[Task, ...] = (), documents: Documents | None = None, **more: Any) -> str:
    return render_report(ship_facts(run, "2026-03-01", tasks, documents or Documents(), **more))


def headings(text: str) -> list[str]:
    found = (parse_heading(line.text) for line in scan_lines(text.split("\n")) if not line.fenced)
    return ["#" * heading[0] + " " + heading[1] for heading in found if heading]


def evaluation(overall: str = "PASS", *dimensions: str) -> Any:
    return result("evaluate-r1", verdict={"overall": overall, "criteria": [{"dimension": d} for d in dimensions]})


def test_an_absent_verdict_is_not_evaluated_and_names_every_dimension() -> None:
    text = report(records(harness={"final_verdict": None}))
    assert "\nverdict: not-evaluated\n" in text
    assert f"| Not evaluated | {', '.join(DIMENSIONS)} |" in text
    assert "\nrounds_used: ~\n" in text


def test_the_report_names_what_the_newest_evaluation_left_out() -> None:
    run = records(results=(evaluation("PASS", "spec-conformance", "security"),), harness={"eval_dimensions": ("own",)})
    rest = [name for name in DIMENSIONS if name not in ("spec-conformance", "security")]
    assert f"| Not evaluated | {', '.join([*rest, 'own'])} |" in report(run)


@pytest.mark.parametrize(
    ("results", "warned"),
    [
        ((), True),
        ((evaluation("FAIL"),), True),
        ((evaluation("PASS"),), False),
        ((evaluation("PASS")._replace(is_applied=False),), True),
    ],
)
def test_a_pass_that_nobody_judged_is_told_as_such(results: tuple[Any, ...], warned: bool) -> None:
    text = report(records(results=results), verdict="PASS")
    assert ("(R-41)" in text, "| Verdict | **PASS** |" in text) == (warned, True)


def test_unfinished_tasks_are_told_by_scope_or_use_case_and_never_by_id() -> None:
    tasks = (
        task("TASK-1", "done"),
        task("TASK-2", "ready", scope_id="core"),
        task("TASK-3", "blocked", scope_id="core"),
        task("TASK-4", "ready", use_case_refs="[UC-B]"),
        task("TASK-5", "ready"),
        task("TASK-6", "cut"),
    )
    text = report(records(scopes=(scope("core"),)), tasks)
    assert "**4 task(s) did not finish:** core (2), UC-B (1), no scope (1)." in text
    assert "| Board | 1/6 tasks done, 1 cut |" in text
    assert not list(tier_breaks(text.encode()))


def test_copied_sections_point_at_nothing_local_and_forge_no_section() -> None:
    documents = Documents(
        EVAL,
        "# H\n## Findings\n~ see `.shapeup/`, TASK-9's (.shapeup/cart/qa/x.md)\x1b[1m\n",
        "## Discovered — cart/core-r1-a1 (2026-03-01)\n+ first TASK-1\n# Outcome\n```\n"
        "## Discovered — cart/hunt (2026-03-01)\n~ second\n",
        (Decision("1", "core", "other", "keep TASK-7?", "yes | no", "PO"),),
    )
    text = report(records(), (), documents)
    assert not list(tier_breaks(text.encode()))
    assert "\x1b" not in text
    assert headings(text) == [
        "# cart — ship report",
        "## Outcome",
        "## Evaluation",
        "### Refuted criteria and bugs",
        "#### BUG-1 in `a local run file`",
        "## QA findings",
        "## Decisions adjudicated during the run",
        "## Discovered, not built",
    ]
    assert "**cart/core-r1-a1**\n\n+ first the task\n    # Outcome" in text
    assert "**cart/hunt**\n\n~ second" in text
    assert r"| 1 | core | other | keep the task? | yes \| no | PO |" in text


def test_the_surviving_trial_is_shown_and_its_absence_said() -> None:
    rows = (trial(1, delta="a | b"), trial(2, status="reverted"), trial(1, "api", "crash"))
    text = report(records(trials=trials(*rows)))
    assert r"| core | 2/2 | 0 | 2 | kept | a \| b |" in text
    assert "| api | — | — | 1 | no surviving trial | — |" in text
    assert "| Sawtooth count | 1 " in text


def test_granted_amendments_are_listed() -> None:
    items = [{"title": "Rename", "what": "TASK-1 says so"}, "junk"]
    run = records(orders=(order("amend-1", operation="amend", payload={"amendments": items}),))
    assert "## Amendments granted\n\n- Rename: the task says so (its order is not answered)" in report(run)
    answered = run._replace(results=(result("amend-1"),))
    assert "- Rename: the task says so\n" in report(answered)


def test_leftovers_are_at_most_six_files() -> None:
    found = tuple(Leftover(f"src/{n}.py", (("TODO", n),), False, 0) for n in range(1, 9))
    text = report(records(), leftovers=found)
    assert text.count("- src/") == 6
    assert "- and 2 more file(s)" in text


def test_every_block_of_the_ledger_is_read_and_what_is_no_block_is_not() -> None:
    ledger = "# L\nintro\n## Discovered — a/b (d)\n+ one\n## Notes\nx\n## Discovered — a/c (d)\n\n## Discovered — a/d (d)\n~ two"
    assert list(discovered_blocks(ledger)) == [("a/b", "+ one"), ("a/d", "~ two")]


@pytest.mark.parametrize(
    ("row", "frozen"),
    [
        ({"gate": "L4", "status": "ok", "decision": "ship"}, True),
        ({"gate": "L4", "status": "ok", "decision": "hold"}, False),
        ({"gate": "L4", "status": "ask", "decision": "ship"}, False),
        ({"gate": "L4", "status": "ok", "decision": "ship", "run_id": "cart-20250101T100000Z-0a1b2c3d"}, False),
    ],
)
def test_a_report_is_frozen_once_l4_of_its_run_ships(row: dict[str, object], frozen: bool) -> None:
    assert is_frozen(records(gates=(row,))) is frozen
    assert is_frozen(records(harness={"status": "shipped"}))
