"""Policies of past moments, from what lies on disk. Source: rulings A3, B2, E2."""

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from daemon.commits.past_policies import policies_on_disk
from daemon.place import Place
from parsers.facts import sha256_of
from tests.e2e.living import SLUG, SmallRun

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ANSWERED, LIVE, OWN = f"{SLUG}/a-r1-a1", f"{SLUG}/b-r1-a1", f"{SLUG}/hammer-deadline-r1"


@pytest.fixture
def policies(tmp_path):
    run = SmallRun(tmp_path, with_receipt=True)
    whitelist = {"allowed": ["src/**"], "shared": [], "frozen": [], "append_only": []}
    first = run.order("a-r1-a1", compiled_at=NOON.isoformat(), substrate=whitelist)
    run.order("b-r1-a1", compiled_at=(NOON + 2 * HOUR).isoformat(), substrate=whitelist)
    run.order("hammer-deadline-r1", operation="hammer", compiled_at=NOON.isoformat(), substrate=whitelist)
    for path in first.parent.iterdir():  # as they lay there when they were compiled
        compiled = datetime.fromisoformat(json.loads(path.read_text())["compiled_at"]).timestamp()
        os.utime(path, (compiled, compiled))
    row = {"at": (NOON + HOUR).isoformat(), "run_id": None, "order_id": ANSWERED, "result": "r", "sha256": "0" * 64}
    row |= {"order_sha256": sha256_of(first.read_bytes()), "outcome": "applied"}
    run.write("receipts/ingest.jsonl", json.dumps(row) + "\n")
    return policies_on_disk(Place(tmp_path, None))


def standing(policies, at, order_id=None, settings=None):
    return {row.order_id: row.answered for row in policies.at(at, order_id, settings).contracts}


def test_an_order_is_in_the_policy_from_its_compilation_and_answered_from_its_ingest(policies):
    assert standing(policies, NOON - HOUR) == {}
    assert standing(policies, NOON) == {ANSWERED: False}
    assert standing(policies, NOON + HOUR) == {ANSWERED: True}
    assert standing(policies, NOON + 3 * HOUR) == {ANSWERED: True, LIVE: False}


def test_a_named_order_is_in_the_policy_though_it_was_not_live(policies):
    assert standing(policies, NOON, OWN) == {ANSWERED: False, OWN: True}
    assert standing(policies, NOON, f"{SLUG}/nobody-r1-a1") == {ANSWERED: False}


def test_the_oldest_live_order_tells_how_far_back_an_audit_looks(policies):
    assert policies.live_since() == NOON + 2 * HOUR


def test_the_settings_of_the_time_count_and_one_stretch_of_time_is_worked_out_once(policies):
    team = b'[gate]\nhuman_globs = ["docs/**"]\n'
    assert policies.at(NOON, None, team).human_globs == ("docs/**",)
    assert policies.at(NOON, None, None).human_globs == ()
    assert policies.at(NOON, None, team) is policies.at(NOON + HOUR / 2, None, team)
