"""Any order of landings, duplicates, bursts, deaths and restarts ends in the state of a calm run. Source: design §3, house-style, targets 4."""

from __future__ import annotations

import json
import re
from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from parsers.board import parse_index, row_of
from parsers.layout import path_of
from parsers.tasks import parse_boxes
from tests.reducers.run_in_memory import (
    SLUG,
    Died,
    RunInMemory,
    dispatch_row,
    order_file,
    receipt_file,
    result_file,
    task_file,
    task_path,
    task_result,
)

# Two results say something of TASK-2, both the same status; no result says what only the last one would be heard with.
# Everything else may come in any order: what a result needs may land after it.
RESULTS = {
    "core-r1-a1": result_file("core-r1-a1", task_results=[task_result("TASK-1", "one", notes="a\r\n## forged\nb")]),
    "core-r1-a2": result_file("core-r1-a2", task_results=[task_result("TASK-2", "two (covers: REQ-1)")]),
    "core-r2-a1": result_file("core-r2-a1", task_results=[task_result("TASK-2", "three", "no such box")]),
    "r1-a1": result_file("r1-a1", task_results=[task_result("TASK-5", "five")]),
    "hunt": result_file("hunt", discoveries=[{"marker": "~", "line": "x\n~ y"}, {"marker": "+", "line": "z"}]),
    "evaluate-r1": result_file(
        "evaluate-r1",
        verdict={
            "overall": "FAIL",
            "criteria": [{"criterion": "c", "verdict": "PASS"}],
            "refuted": [{"task_id": "TASK-3", "ac": "ticked"}],
        },
    ),
    "evaluate-r2": result_file("evaluate-r2", verdict={"criteria": [{"criterion": "c", "verdict": "PASS"}]}),
}
REFUSED = {
    "claims-r1-a1": result_file("claims-r1-a1", verdict={"overall": "PASS"}),  # not its worker's to say
    "elsewhere-r1-a1": result_file("elsewhere-r1-a1", order_id="cart/elsewhere-r1-a1", artifacts=[]),
    "shape-r1-a1": (path_of("result", SLUG, "shape-r1-a1"), b'{"schema_version": 1}'),
    "bytes-r1-a1": (path_of("result", SLUG, "bytes-r1-a1"), b"{"),
}
WORKERS = {"hunt": "qa-edge-hunter", "evaluate-r1": "spec-evaluator", "evaluate-r2": "spec-evaluator"}
STEMS = (*RESULTS, *REFUSED)
ORDERS = {stem: order_file(stem, WORKERS.get(stem, "task-executor")) for stem in STEMS}
TASKS = {
    "TASK-2": task_file("TASK-2", "two (covers: REQ-1)", "three", status="blocked", needs=["TASK-1"], newline="\r\n"),
    "TASK-4": task_file("TASK-4", status="blocked", needs=["TASK-1", "TASK-2"]),
    "TASK-5": b"\xef\xbb\xbf" + task_file("TASK-5", "five", "five more"),
}
FIRST = {
    task_path("TASK-1"): task_file("TASK-1", "one"),
    task_path("TASK-3"): task_file("TASK-3", "ticked").replace(b"[ ]", b"[x]"),
    **dict([receipt_file()]),
}
FACTS: dict[str, bytes] = dict([*RESULTS.values(), *REFUSED.values(), *ORDERS.values()]) | {
    task_path(task_id): data for task_id, data in TASKS.items()
}
DISPATCH = path_of("dispatch", SLUG)

_DATES = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BLOCK = re.compile(r"(?=\r?\n\r?\n## Execution Log — |\n## Discovered — )")


def logical_state(run: RunInMemory) -> dict[str, object]:
    """What counts, whatever came first: blocks and rows as bags, without times; refusals by what stands refused."""
    state: dict[str, object] = {}
    for path, data in run.tree.files.items():
        text = data.decode()
        if path.endswith((".jsonl", "ledger.md")) or "/tasks/TASK-" in path:
            state[path] = bag(path, text)
        elif not path.endswith("receipt.json"):
            state[path] = text
    return state


def bag(path: str, text: str) -> Counter[str]:
    if not path.endswith(".jsonl"):
        return Counter(_BLOCK.split(_DATES.sub("<date>", text)))
    rows = [json.loads(line) for line in text.splitlines()]
    if path == path_of("ingest-record", SLUG):
        rows = [row for row in rows if row["outcome"] == "applied"]
    timeless = [
        {key: value for key, value in row.items() if key not in ("at", "ingested_at", "duration_ms")} for row in rows
    ]
    return Counter(json.dumps(row, sort_keys=True) for row in timeless)


def calm_run() -> RunInMemory:
    """Each order, its dispatch receipt and its result, one after the other, the tasks first."""
    run = RunInMemory(FIRST, "require")
    for task_id, data in TASKS.items():
        run.land(task_path(task_id), data)
    rows = b""
    for stem in STEMS:
        run.land(*ORDERS[stem])
        rows += dispatch_row(stem, WORKERS.get(stem, "task-executor"))
        run.land(DISPATCH, rows)
        run.land(*(RESULTS | REFUSED)[stem])
    return run


class Landings(RuleBasedStateMachine):
    """Facts land in any order, several at once, twice, while the process dies and starts again."""

    @initialize()
    def start(self) -> None:
        self.run = RunInMemory(FIRST, "require")
        self.waiting = dict(FACTS)
        self.undispatched = list(STEMS)
        self.rows = b""

    def _land(self, files: dict[str, bytes]) -> None:
        try:
            self.run.land_together(files)
        except Died:
            self.run.restart()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def facts_land(self, data: st.DataObject) -> None:
        paths = data.draw(st.lists(st.sampled_from(sorted(self.waiting)), unique=True, min_size=1, max_size=3))
        self._land({path: self.waiting.pop(path) for path in paths})

    @precondition(lambda self: len(self.waiting) < len(FACTS))
    @rule(data=st.data())
    def a_fact_lands_again(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(set(FACTS) - set(self.waiting))))
        self._land({path: self.run.tree.files[path]})

    @precondition(lambda self: self.undispatched)
    @rule(data=st.data())
    def a_dispatch_receipt_lands(self, data: st.DataObject) -> None:
        stem = data.draw(st.sampled_from(self.undispatched))
        self.undispatched.remove(stem)
        self.rows += dispatch_row(stem, WORKERS.get(stem, "task-executor"))
        self._land({DISPATCH: self.rows})

    @rule()
    def half_a_result_is_read_and_then_the_rest(self) -> None:
        path, data = RESULTS["core-r1-a1"]
        if path in self.waiting:
            self._land({path: data[: len(data) // 2]})

    @rule(after_bytes=st.integers(0, 3000))
    def the_next_transaction_is_cut_off(self, after_bytes: int) -> None:
        self.run.die_in_next_transaction(after_bytes)

    @rule()
    def the_daemon_restarts(self) -> None:
        self.run.restart()

    @invariant()
    def the_board_tells_what_the_files_say(self) -> None:
        data = self.run.tree.read(path_of("board-index", SLUG))
        if data is not None and len(self.run.tasks):
            index = parse_index(data)
            for task in self.run.tasks:
                line = row_of(index, task)
                assert line is not None
                assert task.status in index.lines[line]

    @invariant()
    def no_order_is_booked_twice(self) -> None:
        for kind in ("legs", "ingest-record"):
            rows = [row["order_id"] for row in self.run.rows(kind) if row.get("outcome", "applied") == "applied"]
            assert len(rows) == len(set(rows))

    def teardown(self) -> None:
        """The law: when everything has landed, and whatever happened on the way, this is the state of a calm run."""
        if not hasattr(self, "waiting"):
            return
        self._land(self.waiting)
        for stem in self.undispatched:
            self.rows += dispatch_row(stem, WORKERS.get(stem, "task-executor"))
        self._land({DISPATCH: self.rows})
        self.run.restart()
        settled = dict(self.run.tree.files)
        self.run.restart()
        assert self.run.tree.files == settled
        assert logical_state(self.run) == logical_state(calm_run())


TestLandings = Landings.TestCase
TestLandings.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_the_calm_run_is_what_its_results_say() -> None:
    run = calm_run()
    assert [task.status for task in run.tasks] == ["done", "done", "ready", "ready", "done"]
    assert [box.ticked for n in range(1, 6) for box in parse_boxes(run.text(task_path(f"TASK-{n}")))] == [
        True,
        True,
        True,
        False,
        True,
        False,
    ]
    assert sorted(row["order_id"] for row in run.rows("legs")) == sorted(f"mail/{stem}" for stem in RESULTS)
    told = {row["order_id"]: row["code"] for row in run.rows("ingest-record") if row["outcome"] == "rejected"}
    assert told == {
        "mail/claims-r1-a1": "E-FIELD-RIGHTS",
        "cart/elsewhere-r1-a1": "E-ORDER-MISMATCH",
        "mail/shape-r1-a1": "E-SCHEMA",
        "mail/bytes-r1-a1": "E-JSON",
    }
