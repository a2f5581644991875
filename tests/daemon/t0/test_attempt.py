"""One attempt from its fixtures to its evidence: verdict, tree and row agree. Source: protocol §6, W-48, W-54, rulings G1, G2, G5, G9."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path

import pytest

from daemon.t0.attempt import NO_GIT, Scored, run_attempt
from daemon.t0.graders import record_graders
from daemon.t0.recovery import Pending, hold_scope, write_down
from parsers.layout import path_of
from parsers.ledgers import render_row
from parsers.t0_verdict import parse_t0_verdict
from parsers.tree import Unreadable
from parsers.trials import trial_row
from tests.daemon.t0.attempting import (
    AT,
    SLUG,
    artifacts,
    attempt_of,
    make_repository,
    note,
    rows,
    score,
    write_contract,
)
from tests.daemon.t0.test_graders_on_disk import order
from tests.daemon.trees.repository import git, put

KEPT = "refs/shapeup/cart/core/kept"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


def live_order(root: Path, order_id: str, *allowed: str) -> None:
    value = {
        "schema_version": 1,
        "order_id": order_id,
        "worker": "task-executor",
        "mode": "orchestrated",
        "payload": {},
    }
    value |= {
        "operation": "execute",
        "substrate": {"allowed": list(allowed), "shared": [], "frozen": [], "append_only": []},
    }
    put(root, path_of("order", *order_id.split("/")), json.dumps(value))


def test_verdict_and_row_say_the_same_and_the_hash_covers_the_file(root: Path) -> None:
    scored = score(root)
    data = (root / scored.path).read_bytes()
    verdict = parse_t0_verdict(data, scored.path)
    (row,) = rows(root)
    assert verdict == scored.verdict
    assert verdict.is_green
    assert scored.sha256 == row["sha256"] == hashlib.sha256(data).hexdigest()
    assert row["artifact"] == "t0/verdicts/r1-a1-t1.json"
    assert scored.path == f".shapeup/{SLUG}/{row['artifact']}"
    assert (row["trial"], row["status"], row["tree_ref"], row["delta"]) == (1, "kept", KEPT, "baseline")
    assert not note(root).exists()


def test_a_worse_attempt_is_put_back_and_can_be_undone(root: Path) -> None:
    score(root)
    put(root, "src/a", "bad")
    put(root, "src/new", "x")
    scored = score(root, 2)
    assert scored.trial is not None
    assert (scored.trial.status, scored.trial.baseline_trial, scored.tree_ref) == ("reverted", 1, KEPT)
    assert (root / "src/a").read_text() == "good"
    assert not (root / "src/new").exists()
    assert scored.restored is not None
    assert git(root, "show", f"{scored.restored.undo_ref}:src/new") == "x"


def test_a_first_attempt_that_crashes_restores_nothing(root: Path) -> None:
    write_contract(root, "sleep 1000")
    scored = run_attempt(attempt_of(root)._replace(timeout_s=0.1))
    assert scored.trial is not None
    assert (scored.trial.status, scored.tree_ref, scored.restored) == ("crash", None, None)
    assert any("nothing is restored" in line for line in scored.notes)


def test_what_another_live_order_may_write_is_left_and_named(root: Path) -> None:
    live_order(root, "cart/mail-r1-a1", "src/mail/**")
    live_order(root, "cart/core-r1-a2", "src/**")
    score(root)
    put(root, "src/a", "bad")
    put(root, "src/mail/m", "theirs")
    scored = score(root, 2)
    assert (root / "src/mail/m").read_text() == "theirs"
    assert scored.restored is not None
    assert [path for path, _ in scored.restored.left] == ["src/mail/m"]


def test_outside_git_it_scores_and_says_that_no_tree_is_kept(tmp_path: Path) -> None:
    root = make_repository(tmp_path, with_git=False)
    scored = score(root)
    assert scored.verdict.is_green
    assert scored.notes == (NO_GIT,)
    assert [(row["status"], row["tree_ref"]) for row in rows(root)] == [("kept", None)]


def test_without_the_ratchet_the_verdict_is_all(root: Path) -> None:
    scored = run_attempt(attempt_of(root)._replace(with_ratchet=False))
    assert (scored.trial, scored.tree_ref, rows(root)) == (None, None, [])
    assert (root / scored.path).exists()


def test_a_changed_grader_voids_the_verdict_and_its_tree_is_not_kept(root: Path) -> None:
    put(root, "tests/check.sh", "grep -q good src/a")
    write_contract(root, "sh tests/check.sh")
    score(root)
    record_graders(root, order(root, "core-r1-a2"), AT)
    put(root, "src/a", "bad")
    put(root, "tests/check.sh", "true")
    scored = score(root, 2)
    assert scored.changed_graders == ("tests/check.sh",)
    assert (scored.verdict.overall, scored.verdict.reason) == ("red", "grader-changed")
    assert rows(root)[-1]["status"] == "reverted"
    assert (root / "src/a").read_text() == "good"


def test_a_broken_registry_is_red_and_an_empty_one_ran(root: Path) -> None:
    put(root, path_of("seesaw", SLUG), "{")
    scored = score(root)
    assert scored.verdict.overall == "red"
    assert scored.seesaw.error
    put(root, path_of("seesaw", SLUG), '{"scopes": []}')
    assert score(root, 2).verdict.has_seesaw_passed


def test_two_scopes_of_one_attempt_share_one_sequence_of_names(root: Path) -> None:
    write_contract(root, "true", scope_id="mail", allowed="src/mail/**")
    names = [score(root, 1, scope_id).verdict.trial for scope_id in ("core", "mail", "core")]
    assert names == [1, 2, 3]
    assert [(row["scope_id"], row["trial"]) for row in rows(root)] == [("core", 1), ("mail", 1), ("core", 2)]


def test_scopes_that_are_measured_at_once_lose_no_row_and_share_no_name(root: Path) -> None:
    scopes = ["core", "mail", "stock"]
    for scope_id in scopes:
        write_contract(root, "true", scope_id=scope_id, allowed=f"src/{scope_id}/**")
    failures: list[BaseException] = []

    def work(scope_id: str) -> None:
        try:
            for _ in range(4):
                score(root, 1, scope_id)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(scope_id,)) for scope_id in scopes * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for scope_id in scopes:
        assert [row["trial"] for row in rows(root) if row["scope_id"] == scope_id] == list(range(1, 9))
    assert len({row["artifact"] for row in rows(root)}) == len(artifacts(root)) == 24


def test_one_of_the_same_scope_waits_and_says_so(root: Path) -> None:
    said = threading.Event()
    attempt = attempt_of(root)._replace(say=lambda text: said.set())
    thread = threading.Thread(target=run_attempt, args=(attempt,))
    with hold_scope(root, SLUG, "core", lambda: None):
        thread.start()
        assert said.wait(60)
        assert rows(root) == []
    thread.join()
    assert len(rows(root)) == 1


def test_an_attempt_in_a_linked_worktree_runs_there_and_is_recorded_in_the_main_one(root: Path, tmp_path: Path) -> None:
    top = tmp_path / "linked"
    git(root, "worktree", "add", "-q", "-b", "work", os.fspath(top))
    put(top, "src/a", "bad")
    scored = run_attempt(attempt_of(root)._replace(top=Path(os.path.realpath(top))))
    assert scored.verdict.overall == "red"
    assert (root / scored.path).exists()
    assert not (top / ".shapeup").exists()


def test_a_damaged_note_stops_before_anything_runs(root: Path) -> None:
    put(root, os.fspath(note(root).relative_to(root)), "{")
    with pytest.raises(Unreadable) as stop:
        score(root)
    assert stop.value.fault.code == "E-JOURNAL"
    assert rows(root) == []


def test_a_link_in_place_of_the_evidence_is_not_followed(root: Path, tmp_path: Path) -> None:
    folder = (root / path_of("t0-verdict", SLUG, "x")).parent
    folder.parent.mkdir(parents=True)
    folder.symlink_to(tmp_path)
    with pytest.raises(Unreadable):
        score(root)
    assert not list(tmp_path.glob("*.json"))


def seed_death_behind_the_note(root: Path) -> Scored:
    """The state of an attempt that died when its note alone was on disk, its tree kept or not."""
    scored = score(root)
    assert scored.trial is not None
    (root / scored.path).unlink()
    (root / path_of("trials", SLUG)).unlink()
    bare = scored.trial._replace(artifact=None, sha256=None, tree_ref=None)
    write_down(root, SLUG, "core", Pending(scored.verdict, bare))
    return scored


def test_an_attempt_that_died_with_its_tree_kept_is_written_down_as_kept(root: Path) -> None:
    died = seed_death_behind_the_note(root)
    assert died.trial is not None
    after = score(root, 2)
    assert [(row["status"], row["tree_ref"]) for row in rows(root)] == [("kept", KEPT), ("kept", KEPT)]
    assert rows(root)[0] == json.loads(render_row(trial_row(died.trial)))
    assert after.trial is not None
    assert after.trial.baseline_trial == 1
    assert any("died half-way" in line for line in after.notes)


def test_an_attempt_that_died_before_its_tree_was_kept_counts_as_a_crash(root: Path) -> None:
    """What stands there now may be another's work, so it is not kept in its name."""
    seed_death_behind_the_note(root)
    git(root, "update-ref", "-d", KEPT)
    after = score(root, 2)
    assert [(row["status"], row["tree_ref"]) for row in rows(root)] == [("crash", None), ("kept", KEPT)]
    assert after.trial is not None
    assert after.trial.baseline_trial is None


def test_a_name_that_another_scope_took_meanwhile_is_left_to_it(root: Path) -> None:
    seed_death_behind_the_note(root)
    write_contract(root, "true", scope_id="mail", allowed="src/mail/**")
    theirs = score(root, 1, "mail")
    score(root)
    assert theirs.verdict.trial == 1
    assert [(row["scope_id"], row["artifact"]) for row in rows(root)] == [
        ("mail", "t0/verdicts/r1-a1-t1.json"),
        ("core", "t0/verdicts/r1-a1-t2.json"),
        ("core", "t0/verdicts/r1-a1-t3.json"),
    ]
