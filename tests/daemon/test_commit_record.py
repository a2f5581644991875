"""The record of verdicts: appended whole, read back with care, bounded in memory. Source: rulings E5, E6, targets 7."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.commits import record as commit_record
from daemon.commits.record import CommitRecord, CommitRow, commit_row_of
from parsers.tree import Unreadable


def row(number, verdict="audited", **more):
    return CommitRow("2026-03-01T12:00:00.000Z", f"{number:040x}", verdict, None, **more)


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".shapeup" / "commits.jsonl"


def test_a_row_has_the_keys_of_the_design_and_is_found_again(tmp_path, path):
    record = CommitRecord(tmp_path)
    bad = row(1, "bypassed", rules=("OUTSIDE", "FROZEN"), reason="because")
    record.add(bad)
    record.sync()
    assert list(json.loads(path.read_text())) == ["at", "commit", "verdict", "order_id", "rules", "reason"]
    assert CommitRecord(tmp_path).of(bad.commit) == record.of(bad.commit) == bad
    assert CommitRecord(tmp_path).of("f" * 40) is None


def test_the_last_verdict_of_a_commit_counts(tmp_path):
    record = CommitRecord(tmp_path)
    record.add(row(1, "bypassed"))
    record.add(row(1, "accepted"))
    assert CommitRecord(tmp_path).of(row(1).commit).verdict == "accepted"


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_a_torn_tail_loses_no_row_before_or_behind_it(tmp_path, path, cut):
    record = CommitRecord(tmp_path)
    record.add(row(1))
    record.add(row(2, reason="grüße"))
    path.write_bytes(path.read_bytes()[:-cut])
    again = CommitRecord(tmp_path)
    again.add(row(3))
    found = CommitRecord(tmp_path)
    assert found.of(row(1).commit)
    assert found.of(row(3).commit)


def test_memory_is_bounded_and_only_the_end_of_the_file_is_read(tmp_path, path, monkeypatch):
    monkeypatch.setattr(commit_record, "REMEMBERED", 10)
    monkeypatch.setattr(commit_record, "READ_BYTES", 1000)
    record = CommitRecord(tmp_path)
    for number in range(50):
        record.add(row(number))
    assert record.of(row(39).commit) is None
    assert record.of(row(40).commit)
    found = CommitRecord(tmp_path)
    assert found.of(row(30).commit) is None
    assert found.of(row(49).commit)
    assert len(path.read_text().splitlines()) == 50


def test_a_record_that_somebody_removed_is_known_to_be_gone(tmp_path, path):
    record = CommitRecord(tmp_path)
    assert not record.is_gone()
    record.add(row(1))
    assert not record.is_gone()
    path.unlink()
    assert record.is_gone()


def test_a_link_in_its_place_is_neither_read_nor_written(tmp_path, path):
    outside = tmp_path / "outside"
    outside.write_text(json.dumps({"commit": row(1).commit, "verdict": "accepted"}) + "\n")
    path.parent.mkdir()
    path.symlink_to(outside)
    record = CommitRecord(tmp_path)
    assert record.of(row(1).commit) is None
    with pytest.raises(Unreadable):
        record.add(row(2))


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3))


@given(st.dictionaries(st.sampled_from(("at", "commit", "verdict", "order_id", "rules", "reason")), JSON))
def test_no_row_that_an_agent_writes_breaks_the_reader(raw):
    found = commit_row_of(raw)
    if found:
        assert isinstance(found.commit, str)
        assert all(isinstance(rule, str) for rule in found.rules)
        assert found.verdict == raw["verdict"]
