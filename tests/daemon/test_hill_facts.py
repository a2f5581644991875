"""What the hill follows from, as it lies on disk: evidence, records, unknowns, live orders, and the trace itself. Source: protocol §5.4."""

import os

import pytest

from daemon.disk import DiskTree
from daemon.hill_facts import hill_slugs, read_hill_facts
from parsers.hill_shards import PHASES
from reducers.hill import Unknowns, derive_hill, standing_hill
from reducers.hill_views import derive
from tests.daemon.hill_tree import SLUG, RunTree

UNKNOWN, SOLVED, DOWNHILL, FINISHED = PHASES


@pytest.fixture
def run(tmp_path):
    tree = RunTree(tmp_path)
    tree.receipt()
    tree.scope("core")
    return tree


def facts(run):
    return read_hill_facts(DiskTree(run.root), SLUG)


def phase(run):
    return {one.scope_id: one.phase for one in derive_hill(facts(run))}["core"]


def test_a_scope_goes_over_the_hill_as_its_facts_land_and_back_when_they_turn(run):
    seen = [phase(run)]
    run.ledger(("cart/core-r1-a1", "+ a thing\n~ how?\n    repro: ~ not this"))
    seen.append(phase(run))
    run.t0("core", "r1-a1-t1", seesaw=False)
    seen.append(phase(run))
    run.t0("core", "r1-a2-t1")
    run.evaluate(1, "FAIL")
    seen.append(phase(run))
    run.evaluate(2, "PASS")
    seen.append(phase(run))
    run.t0("core", "r3-a1-t1", green=False, status="reverted")
    seen.append(phase(run))
    run.t0("core", "r3-a2-t1", green=False, status="rebased")
    seen.append(phase(run))
    assert seen == [SOLVED, UNKNOWN, DOWNHILL, DOWNHILL, FINISHED, FINISHED, UNKNOWN]


def test_the_tenth_evaluation_is_newer_than_the_ninth(run):
    run.t0("core", "r1-a1-t1")
    run.evaluate(9, "PASS")
    assert phase(run) == FINISHED
    run.evaluate(10, "FAIL")
    assert phase(run) == DOWNHILL


def test_where_ingest_keeps_records_a_refused_verdict_moves_nothing(run):
    run.t0("core", "r1-a1-t1")
    run.evaluate(1, "PASS", "rejected")
    assert phase(run) == DOWNHILL
    run.evaluate(2, "PASS", "applied")
    assert phase(run) == FINISHED
    run.evaluate(2, "FAIL", "tampered")
    assert phase(run) == FINISHED  # the applied verdict holds, whatever the file says now


@pytest.mark.parametrize("text", ["", "{", '{"order_id": "cart/evaluate-r2"}'])
def test_a_newest_evaluation_that_cannot_be_read_is_no_pass(run, text):
    run.t0("core", "r1-a1-t1")
    run.evaluate(1, "PASS")
    run.write(".shapeup/cart/results/evaluate-r2.json", text)
    assert phase(run) == DOWNHILL
    run.write(".shapeup/cart/results/evaluate-r2.json", '{"synthetic": true}')
    assert phase(run) == FINISHED  # a marker that init left is no result


def test_unknowns_belong_to_the_scope_that_their_order_names(run):
    run.scope("Core.Two")
    run.ledger(
        ("cart/core.two-r1-a1", "~ a\n~ b"), ("cart/core.two-r2-a1", "~ c"), ("cart/orient", "~ d"), ("x:core", "~ e")
    )
    assert facts(run).unknowns == (Unknowns("core.two", 1, 2), Unknowns("core.two", 2, 1), Unknowns("orient", 0, 1))
    assert {one.scope_id: one.phase for one in derive_hill(facts(run))} == {"core": SOLVED, "Core.Two": UNKNOWN}


def test_a_live_order_keeps_its_scope_out_of_the_registry_and_counts_as_work(run):
    run.t0("core", "r1-a1-t1")
    assert facts(run).kept_green == {"core"}
    assert b'"core"' in derive(facts(run)).registry
    run.order("core-r2-a1")
    assert facts(run).live == {"core"}
    assert ("core", 2) in facts(run).worked
    assert derive(facts(run)).registry == b'{"scopes": []}\n'


def test_a_fresh_clone_derives_nothing_and_shows_what_was_committed(tmp_path):
    run = RunTree(tmp_path)
    run.scope("core")
    run.write("shapeup/cart/hill/core.yml", f"scope_id: core\nphase: {FINISHED}\n")
    run.write("shapeup/cart/hill/other.yml", f"scope_id: core\nphase: {FINISHED}\n")
    run.write(".shapeup/cart/tasks/TASK-1.md", "---\nid: TASK-1\n---\n")  # a board alone is no trace
    assert not facts(run).has_trace
    assert derive(facts(run)).shards == {}
    assert [(one.scope_id, one.phase) for one in standing_hill(facts(run))] == [("core", FINISHED)]
    run.order("core-r1-a1")
    assert facts(run).has_trace


def test_links_pipes_and_folders_in_a_files_place_are_as_if_absent(run):
    run.t0("core", "r1-a1-t1")
    artifact = run.root / ".shapeup/cart/t0/verdicts/r1-a1-t1.json"
    kept = artifact.read_bytes()
    artifact.unlink()
    (run.root / "elsewhere.json").write_bytes(kept)
    artifact.symlink_to(run.root / "elsewhere.json")
    assert phase(run) == SOLVED
    artifact.unlink()
    os.mkfifo(artifact)
    (run.root / ".shapeup/cart/discovery/ledger.md").mkdir(parents=True)
    assert phase(run) == SOLVED
    artifact.unlink()
    artifact.write_bytes(kept)
    assert phase(run) == DOWNHILL
    artifact.write_bytes(kept.replace(b"green", b"green "))
    assert phase(run) == SOLVED


def test_a_contract_that_names_another_scope_stands_for_none_and_is_told(run):
    run.scope("billing", scope_id="core")
    run.write("shapeup/cart/scopes/README.md", "# How scopes are cut\n")
    run.write("shapeup/cart/scopes/torn.md", "---\nscope_id: torn\n")
    known = facts(run)
    assert [scope.scope_id for scope in known.scopes] == ["core", "torn"]
    assert [finding.partition(":")[0] for finding in known.findings] == ["shapeup/cart/scopes/billing.md"]


def test_what_was_read_of_an_artifact_is_kept_until_the_file_changes(run):
    run.t0("core", "r1-a1-t1", status="")
    memory = {}
    tree = DiskTree(run.root)
    first = read_hill_facts(tree, SLUG, memory=memory)
    assert len(memory) == 1
    kept = next(iter(memory.values()))
    assert read_hill_facts(tree, SLUG, memory=memory) == first
    assert next(iter(memory.values())) is kept
    run.t0("core", "r1-a1-t1", green=False, status="")
    os.utime(run.root / ".shapeup/cart/t0/verdicts/r1-a1-t1.json", ns=(1, 1))
    assert read_hill_facts(tree, SLUG, memory=memory).measured[0].is_green is False


def test_features_of_either_tree_have_a_hill_and_files_beside_them_have_none(run):
    run.write("shapeup/other/scopes/a.md", "---\nscope_id: a\n---\n")
    run.write(".shapeup/active-scope", "{}")
    run.write("shapeup/knowledge-base/a.md", "x")
    assert hill_slugs(DiskTree(run.root)) == ("cart", "other")
