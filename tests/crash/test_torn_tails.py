"""Torn tails: a last record cut at every byte costs neither the records before it nor those after. Source: targets 7, design §3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.journal import Journal
from reducers.entries import Entry, parse_entry
from tests.crash import small_run as small

GARBAGE = (b"\xc3", "später".encode()[:4], b"\0" * 64, b"\xff\xfe\n", b'{"seq":9}\n', b'{"seq":', b"\n")


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """One result settled and put on disk, a second one just landed."""
    root = tmp_path / "before"
    root.mkdir()
    small.make_run(root)
    small.put_order(root, "outbox-r1-a1", minute=10)
    small.put_order(root, "inbox-r1-a1", minute=11)
    small.put_result(root, "outbox-r1-a1", small.build_result("outbox-r1-a1", [1], discoveries=1))
    small.settle(root)
    small.put_result(root, "inbox-r1-a1", small.build_result("inbox-r1-a1", [2], note="größer", discoveries=2))
    return root


@pytest.fixture
def after(before: Path, tmp_path: Path) -> Path:
    """The second result settled as well, not yet put on disk."""
    root = small.copy_tree(before, tmp_path / "after")
    small.settle(root, checkpoints=False)
    return root


def _calm(before: Path, work: Path) -> dict[str, bytes]:
    root = small.copy_tree(before, work)
    small.settle(root)
    return small.tree_bytes(root)


def _entries(root: Path) -> tuple[Entry, ...]:
    return Journal(root, small.SLUG).entries(heal=False)


def _side_file(root: Path) -> bytes:
    return (root / f"{small.JOURNAL}.torn").read_bytes()


def test_a_journal_cut_at_every_byte_of_its_last_entry_heals_and_the_fact_is_applied_once(
    before: Path, after: Path, tmp_path: Path
) -> None:
    wanted = _calm(before, tmp_path / "calm")
    old, whole = (before / small.JOURNAL).read_bytes(), (after / small.JOURNAL).read_bytes()
    cuts = 0
    for length in small.sample(range(len(old), len(whole)), 60):
        root = small.copy_tree(before, tmp_path / "root")
        (root / small.JOURNAL).write_bytes(whole[:length])
        small.settle(root)
        found = small.tree_bytes(root)
        assert not small.difference(found, wanted), f"cut at {length}:\n{small.difference(found, wanted)}"
        assert length == len(old) or _side_file(root) == whole[len(old) : length] + b"\n"
        cuts += 1
    print(f"journal cut at {cuts} of {len(whole) - len(old)} offsets: nothing lost, nothing twice")


@pytest.mark.parametrize("garbage", GARBAGE, ids=repr)
def test_bytes_that_are_no_entry_are_kept_aside_and_the_next_append_stands_alone(
    before: Path, after: Path, tmp_path: Path, garbage: bytes
) -> None:
    wanted = _calm(before, tmp_path / "calm")
    with open(before / small.JOURNAL, "ab") as file:
        file.write(garbage)
    small.settle(before)
    assert small.tree_bytes(before) == wanted
    assert _side_file(before) == garbage + b"\n"
    (recovered,) = small.log_rows(before, "daemon.recovered")
    assert recovered["healed_bytes"] == len(garbage)


def test_a_bad_line_in_the_middle_costs_no_entry_after_it(after: Path) -> None:
    first, second = (after / small.JOURNAL).read_bytes().splitlines(keepends=True)
    (after / small.JOURNAL).write_bytes(first + b"someone wrote this\n" + second)
    small.settle(after)
    assert [entry.seq for entry in _entries(after)] == [1, 2]
    assert b"someone wrote this" in (after / small.JOURNAL).read_bytes()


def test_an_entry_with_one_changed_byte_does_not_count(after: Path) -> None:
    line = (after / small.JOURNAL).read_bytes().splitlines()[-1]
    assert parse_entry(line)
    for at in range(len(line)):
        assert parse_entry(line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]) is None


def test_a_checkpoint_of_entries_that_are_gone_does_not_hide_new_ones(before: Path, tmp_path: Path) -> None:
    (before / small.JOURNAL).unlink()
    wanted = _calm(before, tmp_path / "calm")
    small.settle(before, checkpoints=False)
    (before / small.LEGS).write_bytes((before / small.LEGS).read_bytes()[:-10])
    small.settle(before)
    assert small.tree_bytes(before) == wanted


def _cuts(before: Path, after: Path) -> Iterator[tuple[str, bytes]]:
    """Every ledger that the second result grew, cut at every byte of what it added."""
    for path in small.LEDGERS:
        old = (before / path).read_bytes() if (before / path).exists() else b""
        whole = (after / path).read_bytes() if (after / path).exists() else b""
        for length in range(len(old), len(whole)):
            yield path, whole[:length]


def test_a_ledger_cut_at_every_byte_of_its_last_append_is_completed_once(
    before: Path, after: Path, tmp_path: Path
) -> None:
    wanted = _calm(before, tmp_path / "calm")
    root = small.copy_tree(after, tmp_path / "root")
    cuts = 0
    for path, torn in small.sample(tuple(_cuts(before, after)), 120):
        (root / path).write_bytes(torn)
        (root / f"{small.RUN}/journal/checkpoint.json").write_text('{"seq": 1}')
        small.settle(root)
        found = small.tree_bytes(root)
        assert not small.difference(found, wanted), f"{path} cut at {len(torn)}:\n{small.difference(found, wanted)}"
        cuts += 1
    print(f"ledgers cut at {cuts} offsets: each completed once")


def test_a_verdict_ledger_cut_at_every_byte_is_completed_once(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    small.make_run(root)
    small.put_order(root, "evaluate-r1", "spec-evaluator")
    small.put_result(root, "evaluate-r1", small.evaluation())
    small.settle(root)
    wanted = small.tree_bytes(root)
    for length in small.sample(range(len(wanted[small.VERDICTS])), 60):
        (root / small.VERDICTS).write_bytes(wanted[small.VERDICTS][:length])
        (root / f"{small.RUN}/journal/checkpoint.json").write_text('{"seq": 0}')
        small.settle(root)
        assert small.tree_bytes(root) == wanted, f"cut at {length}"


def test_zeros_that_a_power_cut_left_count_as_torn(before: Path, after: Path, tmp_path: Path) -> None:
    wanted = _calm(before, tmp_path / "calm")
    for path in (small.LEGS, small.DISCOVERIES, small.RECORD):
        data = (after / path).read_bytes()
        (after / path).write_bytes(data[:-30] + b"\0" * 30)
    task = (after / small.task_path(2)).read_bytes()
    (after / small.task_path(2)).write_bytes(b"\0" * len(task))
    small.settle(after)
    assert small.tree_bytes(after) == wanted


def test_a_row_that_another_reducer_left_unfinished_swallows_none_of_ours(before: Path) -> None:
    whole = (before / small.LEGS).read_bytes()
    (before / small.LEGS).write_bytes(whole + b'{"order_id":"mail/half')
    small.settle(before)
    rows = (before / small.LEGS).read_bytes().splitlines()
    assert rows[0] + b"\n" == whole
    assert rows[1] == b'{"order_id":"mail/half'
    assert rows[2].startswith(b'{"schema_version":1')
