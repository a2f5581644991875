"""Power cuts: of all that was written since the last checkpoint only the journal is sure to be there. Source: ruling D1, targets 6.

Every other file may be in any state it passed through, torn, or missing where it was new; a recovery ends in the same bytes.
A view is renamed into place like every file; that it may be torn is not tried for the index, which holds a planner's words.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from daemon.once import settle_all
from tests.crash import small_run as small

STATES = 10_000 if small.IS_FULL else 250
ORDERS = (("outbox-r1-a1", 10), ("inbox-r1-a1", 11), ("evaluate-r1", 12), ("broken-r1-a1", 13), ("outbox-r1-a2", 14))


class Lost(NamedTuple):
    """What a power cut chooses from: every version of each file since the checkpoint, None for its absence."""

    root: Path
    versions: dict[str, list[bytes | None]]
    wanted: dict[str, bytes]


def _prepare(root: Path, *, with_index: bool) -> None:
    root.mkdir()
    small.make_run(root, with_index=with_index)
    for stem, minute in ORDERS:
        small.put_order(root, stem, "spec-evaluator" if stem == "evaluate-r1" else "task-executor", minute=minute)
    small.put_order(root, "early-r1-a1", minute=5)
    small.put_result(root, "early-r1-a1", small.build_result("early-r1-a1", [1], discoveries=1))
    small.settle(root)


def _results() -> Sequence[tuple[str, dict[str, object] | bytes]]:
    return (
        ("outbox-r1-a1", small.build_result("outbox-r1-a1", [1], discoveries=2)),
        ("broken-r1-a1", b'{"schema_version": 1}'),
        ("inbox-r1-a1", small.build_result("inbox-r1-a1", [2, 1], note="über", discoveries=1)),
        ("evaluate-r1", small.evaluation()),
        ("outbox-r1-a2", small.build_result("outbox-r1-a2", [1, 2], discoveries=2)),
    )


def _lose(root: Path, *, with_index: bool) -> Lost:
    """One life that settles five results one by one and puts nothing on disk but its journal."""
    _prepare(root, with_index=with_index)
    seen = [small.tree_bytes(root)]
    reconciler = small.reconciler_of(root)
    for stem, document in _results():
        small.put_result(root, stem, document)
        assert settle_all(reconciler, root)
        seen.append(small.tree_bytes(root))
    reconciler.close()
    paths = sorted({path for tree in seen for path in tree if "/results/" not in path and "/journal/" not in path})
    versions = {path: list(dict.fromkeys(tree.get(path) for tree in seen)) for path in paths}
    small.settle(root)
    wanted = small.tree_bytes(root)
    (root / small.RUN / "journal/checkpoint.json").write_text('{"seq": 1}')
    return Lost(root, {path: found for path, found in versions.items() if len(found) > 1}, wanted)


def _cut_power(lost: Lost, chance: random.Random) -> dict[str, str]:
    """Puts each file into one of the states it may be in; tells which."""
    told = {}
    for path, versions in lost.versions.items():
        state = chance.choice(versions)
        told[path] = f"version {versions.index(state)}"
        if state is not None and path != small.BOARD and chance.random() < 0.4:
            state, told[path] = _torn(path, versions, state, chance)
        target = lost.root / path
        if state is None:
            target.unlink(missing_ok=True)
        else:
            small.write(lost.root, path, state)
    (lost.root / small.RUN / "journal/checkpoint.json").write_text('{"seq": 1}')
    return told


def _torn(path: str, versions: list[bytes | None], state: bytes, chance: random.Random) -> tuple[bytes, str]:
    """A beginning of the state; a ledger loses nothing that the checkpoint knew. Sometimes zeros stand for the rest."""
    least = len(versions[0] or b"") if path in small.LEDGERS else 0
    length = chance.randint(least, len(state))
    zeros = chance.choice((0, 0, len(state) - length))
    return state[:length] + b"\0" * zeros, f"cut at {length} of {len(state)}, {zeros} zeros"


@pytest.mark.parametrize("with_index", [True, False], ids=["a planner's index", "an index of our own"])
def test_any_mix_of_lost_writes_recovers_to_the_same_bytes(with_index: bool, tmp_path: Path) -> None:
    lost = _lose(tmp_path / "root", with_index=with_index)
    assert len(lost.versions) >= 9
    chance = random.Random(with_index)
    for number in range(STATES // 2):
        told = _cut_power(lost, chance)
        small.settle(lost.root)
        found = small.tree_bytes(lost.root)
        assert not small.difference(found, lost.wanted), (
            f"state {number}: {told}\n{small.difference(found, lost.wanted)}"
        )
    print(f"unsynced loss: {STATES // 2} mixes over {len(lost.versions)} files, all recovered")


@pytest.mark.parametrize("which", range(-1, 5))
def test_every_file_as_it_stood_at_one_moment_recovers_to_the_same_bytes(which: int, tmp_path: Path) -> None:
    lost = _lose(tmp_path / "root", with_index=True)
    for path, versions in lost.versions.items():
        state = versions[min(which, len(versions) - 1)] if which >= 0 else versions[0] and b""
        if state is None:
            (lost.root / path).unlink(missing_ok=True)
        elif state or path not in (small.BOARD, *small.LEDGERS):
            small.write(lost.root, path, state)
    small.settle(lost.root)
    assert small.tree_bytes(lost.root) == lost.wanted


def test_a_task_file_that_is_gone_comes_back_only_while_its_edits_are_not_on_disk(tmp_path: Path) -> None:
    small.make_run(tmp_path)
    small.put_batch(tmp_path)
    small.settle(tmp_path, checkpoints=False)
    whole = (tmp_path / small.task_path(1)).read_bytes()
    (tmp_path / small.task_path(1)).unlink()
    small.settle(tmp_path)
    assert (tmp_path / small.task_path(1)).read_bytes() == whole
    (tmp_path / small.task_path(1)).unlink()
    small.settle(tmp_path)
    assert not (tmp_path / small.task_path(1)).exists()


def test_what_a_person_wrote_after_a_carried_out_edit_outlives_a_crash(tmp_path: Path) -> None:
    small.make_run(tmp_path)
    small.put_batch(tmp_path)
    small.settle(tmp_path, checkpoints=False)
    task = tmp_path / small.task_path(1)
    edited = task.read_bytes().replace(b"status: done", b"status: cut", 1).replace(b"- [x] queues", b"- [ ] queues")
    task.write_bytes(edited)
    small.settle(tmp_path)
    assert task.read_bytes() == edited


def test_an_edit_that_was_lost_is_made_again_on_what_a_person_wrote_meanwhile(tmp_path: Path) -> None:
    small.make_run(tmp_path)
    small.put_batch(tmp_path)
    task = tmp_path / small.task_path(1)
    before = task.read_bytes()
    small.settle(tmp_path, checkpoints=False)
    task.write_bytes(before.replace(b"priority: 1", b"priority: 7"))
    small.settle(tmp_path)
    text = task.read_bytes()
    assert b"priority: 7" in text
    assert b"status: done" in text
    assert text.count(b"## Execution Log") == 2
