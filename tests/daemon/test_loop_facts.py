"""The facts of a run, read beside the daemon's state and from the disk alone. Source: protocol §5.5, §9, rulings B2, D3."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from daemon.disk import DiskTree
from daemon.loop_facts import LoopFactsReader, read_loop_facts, read_report
from daemon.run_orders import read_run_orders
from daemon.run_state import RunState
from parsers.facts import ResultFact, read_result, sha256_of
from reducers.rules.loop_facts import LoopFacts
from reducers.rules.orders import judge_order
from reducers.rules.results import judge_result
from tests.e2e.living import SLUG, SmallRun

T0 = {"scope_id": "core", "overall": "green", "at": "2026-03-01T10:30:00.000Z"}
CONTRACT = "---\nscope_id: core\nallowed_file_substrate: [src/**]\nshared_substrate: [src/app.py]\n---\n"
LEDGER = """---
feature: cart
---
# Discovery Ledger — cart

## Discovered — cart/core-r1-a1 (2026-03-01)
+ needs an index

## Discovered — cart/view-r1-a1 (2026-03-01)
~ maybe slow

## Notes
+ not a discovery
"""


@pytest.fixture
def small(tmp_path: Path) -> SmallRun:
    """A run with a bit of everything."""
    run = SmallRun(tmp_path, with_receipt=True)
    run.order("core-r1-a1")
    run.order("evaluate-r1", worker="spec-evaluator", operation="evaluate", payload={})
    run.result("core-r1-a1")
    verdict = {"overall": "FAIL", "bugs": ["B"], "report_path": f".shapeup/{SLUG}/evaluation/EVAL-FEATURE-cart.md"}
    run.write("results/evaluate-r1.json", run.result_value("evaluate-r1") | {"task_results": [], "verdict": verdict})
    run.write("t0/verdicts/r1-a1-t1.json", T0)
    run.write("t0/verdicts/.r1-a1-t2.json", T0)
    run.write("t0/trials.jsonl", json.dumps({"scope_id": "core", "status": "kept", "trial": 1}) + "\n")
    run.write("gates.jsonl", json.dumps({"gate": "L1b", "status": "ok", "decision": "proceed"}) + "\n")
    dispatch = {"order_id": f"{SLUG}/core-r1-a1", "at": "2026-03-01T10:01:00.000Z", "agent_id": "a1"}
    run.write("receipts/dispatch.jsonl", json.dumps(dispatch) + "\n")
    run.write("discovery/ledger.md", LEDGER)
    run.write("harness-run.md", "---\nstatus: building\nfinal_verdict: ~\ndeploy: pending-po\nclosed_at: ~\n---\n")
    run.write("evaluation/EVAL-FEATURE-cart.md", "regression coverage: none (no test surface)\n")
    for name in ("code-surface", "discovered-seed", "hill-signal", "spike-totals"):
        run.write(f"orient/{name}.md", "x\n")
    shared = tmp_path / "shapeup" / SLUG
    (shared / "scopes").mkdir(parents=True)
    (shared / "scopes" / "core.md").write_text(CONTRACT)
    (shared / "wiring-map.md").write_text("x\n")
    (shared / "round-ledger.md").write_text(
        "## Decisions\n\n| Round | Scope | Kind | Question | Answer | Resolved by |\n|-|-|-|-|-|-|\n"
        "| 1 | core | other | rounding | half up | PO (interactive) |\n"
    )
    return run


def of_disk(run: SmallRun) -> LoopFacts:
    facts = read_loop_facts(DiskTree(run.root), SLUG)
    assert facts is not None
    return facts


def in_daemon(run: SmallRun) -> tuple[RunState, LoopFactsReader]:
    state = RunState.load(run.root, SLUG, lambda event, fields: None, recovers=False)
    read = read_run_orders(DiskTree(run.root), SLUG)
    state.orders.update(read.orders)
    state.landed.update(read.landed)
    return state, LoopFactsReader(state)


def test_every_file_of_the_run_is_taken_in(small):
    facts = of_disk(small)
    assert sorted(facts.orders) == ["core-r1-a1", "evaluate-r1"]
    assert [(area.scope_id, area.allowed, area.shared) for area in facts.scopes] == [
        ("core", ("src/**",), ("src/app.py",))
    ]
    assert [artifact.sha256 for artifact in facts.artifacts["core"]] == [sha256_of(json.dumps(T0).encode())]
    assert facts.phases == {"orient", "wire", "map-scopes"}  # no use case stands there
    assert facts.discovered == {"cart/core-r1-a1"}
    assert (facts.status, facts.final_verdict, facts.deploy) == ("building", "", "pending-po")
    assert [row.agent_id for row in facts.dispatches] == ["a1"]
    assert [one.answer for one in facts.decisions] == ["half up"]
    assert facts.verdicts["evaluate-r1"].verdict.overall == "FAIL"
    assert len(facts.gates) == len(facts.trials) == 1
    assert facts.decided_at is not None


def test_the_daemon_and_the_disk_see_the_same(small):
    ours, theirs = in_daemon(small)[1].facts(), of_disk(small)
    only_on_disk = {"results": {}, "results_landed": {}, "open_boxes": {}, "records": {}, "tasks": ours.tasks}
    assert list(theirs.tasks) == list(ours.tasks)
    assert ours._replace(**only_on_disk) == theirs._replace(**only_on_disk)


def test_without_an_ingest_record_what_was_answered_counts_as_applied(small):
    """Another reducer's tree: by its leg, else its last dispatch, else the order itself."""
    rows = of_disk(small).records
    assert {order_id: (row.at, row.verdict) for order_id, (row,) in rows.items()} == {
        "cart/core-r1-a1": ("2026-03-01T10:01:00.000Z", None),
        "cart/evaluate-r1": ("2026-03-01T10:00:00.000Z", "FAIL"),
    }
    row = {"order_id": "cart/core-r1-a1", "sha256": "x", "outcome": "rejected"}
    small.write("receipts/ingest.jsonl", json.dumps(row) + "\n")
    assert list(of_disk(small).records) == ["cart/core-r1-a1"]


def test_a_marker_that_somebody_left_is_no_result(small):
    small.write("results/core-r1-a1.json", {"synthetic": True, "status": "abandoned", "order_id": "cart/core-r1-a1"})
    assert list(of_disk(small).results) == ["evaluate-r1"]


def test_where_nothing_is_there_is_no_run(tmp_path):
    assert read_loop_facts(DiskTree(tmp_path), SLUG) is None


def test_a_change_is_seen_and_nothing_is_read_twice(small, monkeypatch):
    _, reader = in_daemon(small)
    before = reader.facts()
    read: list[str] = []
    read_stamped = DiskTree.read_stamped
    monkeypatch.setattr(DiskTree, "read_stamped", lambda self, path: (read.append(path), read_stamped(self, path))[1])
    again = reader.facts()
    assert not read
    assert again == before
    small.write("gates.jsonl", "")
    small.write("t0/verdicts/r1-a2-t1.json", T0)
    now = reader.facts()
    assert now.gates == ()
    assert len(now.artifacts["core"]) == 2
    assert sorted(path.rpartition("/")[2] for path in read) == ["gates.jsonl", "r1-a2-t1.json"]


def result_of(run: SmallRun, verdict: dict[str, object]) -> ResultFact:
    path = run.write(
        "results/evaluate-r1.json", run.result_value("evaluate-r1") | {"task_results": [], "verdict": verdict}
    )
    fact = read_result(os.fspath(path.relative_to(run.root)), path.read_bytes()).fact
    assert fact is not None
    return fact


def test_a_cited_artifact_is_hashed_again_though_its_folder_never_stirred(small):
    state, reader = in_daemon(small)
    path = f".shapeup/{SLUG}/t0/verdicts/r1-a1-t1.json"
    citation = {"scope_id": "core", "path": path, "sha256": sha256_of(json.dumps(T0).encode())}
    fact = result_of(small, {"overall": "PASS", "t0_citations": [citation]})
    order = state.orders["evaluate-r1"].order
    assert not [one for one in judge_result(reader.facts_for(fact), fact, order) if one.rule == "R-18"]
    folder = (small.root / path).parent
    stamp = folder.stat()
    (small.root / path).write_text(json.dumps(T0 | {"overall": "green", "at": "2026-03-01T11:30:00.000Z"}))
    os.utime(folder, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert [one for one in judge_result(reader.facts_for(fact), fact, order) if one.rule == "R-18"]


def test_a_report_is_read_from_the_runs_own_folder_alone(small):
    (small.root / "secret.md").write_text("no test surface")
    facts = of_disk(small)
    tree = DiskTree(small.root)
    assert "no test surface" in read_report(tree, SLUG, facts.results["evaluate-r1"])
    for path in (
        "secret.md",
        f".shapeup/{SLUG}/evaluation/../../../secret.md",
        ".shapeup/shop/evaluation/x.md",
        "/etc/passwd",
    ):
        assert read_report(tree, SLUG, result_of(small, {"overall": "FAIL", "bugs": ["B"], "report_path": path})) == ""


@pytest.mark.parametrize("folder", ["t0/verdicts", "results", "orient"])
def test_a_link_in_a_folders_place_says_nothing(small, folder):
    target = small.local / folder
    target.rename(small.root / "elsewhere")
    target.symlink_to(small.root / "elsewhere")
    facts = of_disk(small)
    told = {"t0/verdicts": facts.artifacts, "results": facts.results, "orient": facts.phases & {"orient"}}
    assert not told[folder]


def test_hostile_files_make_it_say_less_and_never_raise(small):
    for name in ("gates.jsonl", "t0/trials.jsonl", "receipts/dispatch.jsonl", "harness-run.md", "discovery/ledger.md"):
        (small.local / name).write_bytes(b"\xff\xfe{[\x00\n" * 50)
    (small.local / "t0/verdicts/r1-a1-t1.json").write_bytes(b"[" * 5000)
    (small.root / "shapeup" / SLUG / "scopes" / "core.md").write_bytes(b"\xff---\n")
    (small.local / "breakers.jsonl").mkdir()
    facts = of_disk(small)
    assert facts.gates == facts.trials == facts.dispatches == ()
    assert [artifact.verdict for artifact in facts.artifacts[""]] == [None]
    assert judge_order(facts, next(iter(facts.orders.values()))) == ()  # it is answered
