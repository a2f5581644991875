"""Starting on a tree that another reducer has ingested applies nothing twice. Source: design §3, W-17, ruling D3.

A result left a trace where a leg, a log or ledger heading, or a run of its verdict ledger tells of it: those are adopted and
change nothing. What left none was never ingested, or left nothing that could be doubled; it is reduced now, once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

from tests.corpus.footprint import changed_paths, footprint, whole_tree
from tests.corpus.in_process import InProcess
from tests.corpus.index_claims import index_complaints
from tests.corpus.logical_state import is_index, is_legs, logical_state
from tests.corpus.oracle import ALL, Drop, Oracle, World
from tests.corpus.real_daemon import RealDaemon, run_once, settings_text
from tests.corpus.replay_cases import (
    CORPUS,
    OWN,
    case_folders,
    corpus_params,
    files_below,
    is_result,
    load_case,
    recorded_states,
    write_files,
)

RUNS = sorted(path for path in (CORPUS / "runs").glob("*") if path.is_dir())
TREES = pytest.mark.parametrize("folder", corpus_params(RUNS, f"no runs below {CORPUS} (set SHAPEUP_CORPUS)"))


class Found(NamedTuple):
    """One result of the tree: its bytes, the order it answers, and whether it left a trace."""

    path: str
    data: bytes
    order_id: str
    is_told: bool


def results_of(tree: dict[str, bytes]) -> Iterator[Found]:
    """Every result in the order of catching up."""
    found = []
    for path in filter(is_result, tree):
        try:
            result = json.loads(tree[path])
            order = json.loads(tree.get(path.replace("/results/", "/orders/"), b"{}"))
        except ValueError:
            result, order = {}, {}
        order_id = str(result.get("order_id"))
        told = Found(path, tree[path], order_id, bool(result) and left_trace(tree, order_id, result))
        found.append((str(order.get("compiled_at", "~")), PurePosixPath(path).stem, told))
    return (told for _, _, told in sorted(found))


def left_trace(tree: dict[str, bytes], order_id: str, result: dict[str, object]) -> bool:
    heading = re.compile(
        rf"^## (Execution Log — .*\({re.escape(order_id)}\)|Discovered — {re.escape(order_id)} \()", re.M
    )
    for path, data in tree.items():
        if is_legs(path) and f'"order_id":"{order_id}"'.encode() in data.replace(b": ", b":"):
            return True
        if path.endswith(".md") and path.startswith(".shapeup/") and heading.search(data.decode("utf-8", "replace")):
            return True
    verdict = result.get("verdict")
    criteria = verdict.get("criteria") if isinstance(verdict, dict) else None
    slug, _, stem = order_id.partition("/")
    ledger = tree.get(f".shapeup/{slug}/evaluation/.verdicts-{stem}.jsonl", b"").decode()
    return bool(criteria) and all(json.dumps(row["criterion"], ensure_ascii=False) in ledger for row in criteria)


def refused_when_recorded(folder: Path) -> set[str]:
    """Results that the reference refuses, where there is a replay."""
    return {step.path for step in load_case(folder).steps if not step.accepted} if folder.is_dir() else set()


def begun(folder: Path, root: Path) -> dict[str, bytes]:
    tree = files_below(folder)
    write_files(root, tree | {".shapeupd.toml": settings_text("off").encode()})
    return tree


def assert_adopted(refused: set[str], tree: dict[str, bytes], root: Path) -> None:
    """Everything with a trace is adopted; the rest of the tree is what the untold results make of it, and no more."""
    found = list(results_of(tree))
    left = footprint(root)
    outcomes: dict[str, list[str]] = {}
    for order_id, outcome, _ in left.record:
        outcomes.setdefault(order_id, []).append(outcome)
    oracle = Oracle({path: data for path, data in tree.items() if not is_result(path)}, ALL, World())
    for result in found:
        if result.path in refused:
            assert f"result-{PurePosixPath(result.path).name}" in {PurePosixPath(p).name for p in left.rejections}
        elif result.is_told:
            assert outcomes[result.order_id].count("adopted") == 1, result.path
        else:
            assert outcomes.get(result.order_id), result.path
            oracle.drop(Drop(result.path, result.data, b""), accepted=outcomes[result.order_id] == ["applied"])
    wanted = logical_state(oracle.files)
    for path in wanted.keys() | left.state.keys():
        if is_index(path):
            assert not list(index_complaints(path, tree, whole_tree(root), must_exist=True))
        elif is_legs(path):
            added = (root / path).read_bytes().removeprefix(tree.get(path, b""))
            ids = {json.loads(row)["order_id"] for row in added.splitlines()}
            assert ids <= {result.order_id for result in found if not result.is_told and result.path not in refused}
        else:
            assert left.state.get(path) == wanted.get(path), path


@TREES
def test_run_once_adopts_what_was_ingested_and_a_second_one_changes_nothing(folder: Path, quick_root: Path) -> None:
    tree = begun(folder, quick_root)
    run_once(quick_root)
    assert_adopted(refused_when_recorded(CORPUS / "replay" / folder.name), tree, quick_root)
    after = whole_tree(quick_root)
    run_once(quick_root)
    assert changed_paths(after, whole_tree(quick_root)) == []


@TREES
def test_the_daemon_adopts_and_a_restart_changes_nothing(folder: Path, quick_root: Path) -> None:
    tree = begun(folder, quick_root)
    with RealDaemon(quick_root) as daemon:
        daemon.sync(quick_root)
        assert_adopted(refused_when_recorded(CORPUS / "replay" / folder.name), tree, quick_root)
        after = whole_tree(quick_root)
        assert daemon.stop() == 0
        daemon.start()
        daemon.sync(quick_root)
        daemon.sync(quick_root)
        assert changed_paths(after, whole_tree(quick_root)) == []


@TREES
def test_an_adoption_that_was_cut_short_is_finished_without_doubling(folder: Path, quick_root: Path) -> None:
    """A record that holds only its first row, as a disk may keep it: the rest is older than the record, so it is adopted."""
    tree = begun(folder, quick_root)
    run_once(quick_root)
    whole = footprint(quick_root)
    for record in quick_root.glob(".shapeup/*/receipts/ingest.jsonl"):
        record.write_bytes(record.read_bytes().split(b"\n")[0] + b"\n")
        for journal in record.parent.parent.glob("journal/*"):
            journal.unlink()
    refused = refused_when_recorded(CORPUS / "replay" / folder.name)
    told = {result.order_id for result in results_of(tree) if result.is_told and result.path not in refused}
    before = whole_tree(quick_root)
    run_once(quick_root)
    left = footprint(quick_root)
    assert {order_id for order_id, outcome, _ in left.record if outcome == "adopted"} >= told
    for path in changed_paths(before, whole_tree(quick_root)):
        assert re.search(r"receipts/ingest\.jsonl|/journal/|/rejections/", path), path
    assert left.state == whole.state


@pytest.mark.parametrize("folder", case_folders(OWN), ids=lambda folder: folder.name)
@pytest.mark.parametrize("has_legs", [True, False], ids=["with-legs", "by-headings"])
def test_our_own_replays_are_adopted_where_they_ended(folder: Path, has_legs: bool, quick_root: Path) -> None:
    """The tree a replay ends in, as another reducer would have left it; without legs, only headings and verdicts tell."""
    case = load_case(folder)
    ended = recorded_states(case)[-1]
    tree = {path: data for path, data in ended.items() if has_legs or not is_legs(path)} | case.results
    write_files(quick_root, tree | {".shapeupd.toml": settings_text("off").encode()})
    InProcess(quick_root, "off").close()
    assert_adopted(refused_when_recorded(folder), tree, quick_root)
    after = whole_tree(quick_root)
    InProcess(quick_root, "off").close()
    assert changed_paths(after, whole_tree(quick_root)) == []
