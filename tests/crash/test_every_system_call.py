"""Death at every system call: whatever a pass was doing, the next one ends in the bytes of a calm run. Source: design §3, targets 6.

The suite dies at a sample of the calls; SHAPEUP_CRASH_FULL=1 (`make crash`) at every one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from daemon import journal
from daemon.once import settle_all
from parsers.layout import path_of
from reducers.entries import parse_entry
from tests.crash import dying
from tests.crash import small_run as small

SAMPLES = 12
_REFUSAL = dying.refusal()

pytestmark = pytest.mark.skipif(_REFUSAL is not None, reason=str(_REFUSAL))


class Scenario(NamedTuple):
    """`prepare` makes the tree that a pass finds; `act` is that pass, run by the child that dies and by its successor."""

    name: str
    prepare: Callable[[Path], object]
    act: Callable[[Path], object] = small.settle


def _apply(root: Path) -> None:
    small.make_run(root)
    small.put_order(root, "outbox-r1-a1")
    small.put_result(root, "outbox-r1-a1", small.build_result("outbox-r1-a1", [1, 2], discoveries=2))


def _apply_without_index(root: Path) -> None:
    _apply(root)
    (root / small.BOARD).unlink()


def _judge(root: Path) -> None:
    small.make_run(root)
    small.put_order(root, "evaluate-r1", "spec-evaluator")
    small.put_result(root, "evaluate-r1", small.evaluation())


def _refuse(root: Path) -> None:
    small.make_run(root)
    small.put_order(root, "outbox-r1-a1")
    small.put_result(root, "outbox-r1-a1", {"schema_version": 1, "status": "splendid"})


def _refuse_order(root: Path) -> None:
    _apply(root)
    small.write(root, f"{small.RUN}/orders/broken-r1-a1.json", '{"schema_version": 2}')


def _mend(root: Path) -> None:
    _refuse(root)
    small.settle(root)
    assert (root / path_of("rejection", small.SLUG, "result-outbox-r1-a1")).exists()
    small.put_result(root, "outbox-r1-a1", small.build_result("outbox-r1-a1", [1, 2]))


def _repeat(root: Path) -> None:
    _apply(root)
    small.settle(root)
    again = (root / small.result_path("outbox-r1-a1")).read_bytes()
    (root / small.result_path("outbox-r1-a1")).unlink()
    small.put_result(root, "outbox-r1-a1", again)


def _supersede(root: Path) -> None:
    _apply(root)
    small.settle(root)
    small.put_result(root, "outbox-r1-a1", small.build_result("outbox-r1-a1", [1], note="anew", discoveries=2))


def _land_three(root: Path) -> None:
    small.make_run(root)
    small.put_batch(root)


def _leave_unsynced(root: Path) -> None:
    _land_three(root)
    small.settle(root, checkpoints=False)


def _leave_half_done(root: Path) -> None:
    """As a power cut leaves it: files old, missing, empty and torn, behind the journal the start of an entry that never was."""
    _land_three(root)
    old = (root / small.task_path(1)).read_bytes()
    small.settle(root, checkpoints=False)
    (root / small.task_path(1)).write_bytes(old)
    (root / small.task_path(2)).write_bytes(b"")
    (root / small.LEGS).unlink()
    for path in (small.DISCOVERIES, small.RECORD):
        data = (root / path).read_bytes()
        (root / path).write_bytes(data[:-40])
    with open(root / small.JOURNAL, "ab") as file:
        file.write(b'{"seq":4,"at":"2036-04')


def _adopt(root: Path) -> None:
    """As the node kernel leaves it: everything applied, nothing recorded."""
    _land_three(root)
    small.settle(root)
    for name in ("000001.jsonl", "checkpoint.json"):
        (root / path_of("journal", small.SLUG, name)).unlink()
    (root / small.RECORD).unlink()


def _rotate(root: Path) -> None:
    """Two batches in one life, with a segment that is full after the first."""
    before, journal.SEGMENT_BYTES = journal.SEGMENT_BYTES, 100
    reconciler = small.reconciler_of(root)
    try:
        assert settle_all(reconciler, root)
        reconciler.checkpoint()
        _land_later(root)
        assert settle_all(reconciler, root)
        reconciler.checkpoint()
    finally:
        journal.SEGMENT_BYTES = before
        reconciler.close()


def _land_later(root: Path) -> None:
    small.put_order(root, "later-r1-a1", minute=20)
    small.land_result(root, "later-r1-a1", small.build_result("later-r1-a1", [3]))


def _trip(root: Path) -> None:
    """Past the deadline, with an order in flight."""
    small.make_run(root)
    small.put_receipt(root, budget_s=3600)
    small.put_order(root, "outbox-r1-a1")


def _fail_the_last_round(root: Path) -> None:
    """The verdict that ends the rounds lands together with what it judges, in a run that is three quarters through its time."""
    _land_three(root)
    small.put_receipt(root, budget_s=9000, max_rounds=1)


def _extend(root: Path) -> None:
    """A tripped run is granted more time, and the order that was refused is admitted."""
    reconciler = small.reconciler_of(root)
    try:
        assert settle_all(reconciler, root)
        budget_s = reconciler.runs()[0].breakers.clock.budget_s
        if budget_s == 3600:
            assert reconciler.extend(small.SLUG, 7200, "ada") is None
        reconciler.checkpoint()
    finally:
        reconciler.close()


def _trip_and_refuse(root: Path) -> None:
    _trip(root)
    small.settle(root)
    small.put_order(root, "outbox-r1-a2")
    small.settle(root)
    assert (root / path_of("rejection", small.SLUG, "order-outbox-r1-a2")).exists()


SCENARIOS = (
    Scenario("apply", _apply),
    Scenario("apply, no index yet", _apply_without_index),
    Scenario("verdict and refutation", _judge),
    Scenario("reject", _refuse),
    Scenario("reject an order", _refuse_order),
    Scenario("refusal mended", _mend),
    Scenario("duplicate", _repeat),
    Scenario("supersede", _supersede),
    Scenario("batch of three", _land_three),
    Scenario("recover and checkpoint", _leave_unsynced),
    Scenario("recover what is torn", _leave_half_done),
    Scenario("adopt", _adopt),
    Scenario("rotate", _land_three, _rotate),
    Scenario("trip", _trip),
    Scenario("warn, then a last verdict", _fail_the_last_round),
    Scenario("extend", _trip_and_refuse, _extend),
)


def _calm(template: Path, scenario: Scenario, work: Path) -> tuple[dict[str, bytes], int]:
    """The bytes a run without a crash ends in, and how many system calls it makes."""
    root = small.copy_tree(template, work)
    total = dying.run_until(lambda: scenario.act(root), 1 << 40)
    assert total
    return small.tree_bytes(root), total


def _assert_recovers(root: Path, scenario: Scenario, wanted: dict[str, bytes], at: str) -> None:
    scenario.act(root)
    found = small.tree_bytes(root)
    assert not small.difference(found, wanted), f"{scenario.name}, died at {at}:\n{small.difference(found, wanted)}"
    assert all(map(parse_entry, found[small.JOURNAL].splitlines()))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_death_at_any_system_call_ends_in_the_same_bytes(scenario: Scenario, tmp_path: Path) -> None:
    template, root = tmp_path / "template", tmp_path / "root"
    template.mkdir()
    scenario.prepare(template)
    wanted, total = _calm(template, scenario, root)
    trials = 0
    for entry in small.sample(range(1, total + 1), SAMPLES):
        small.copy_tree(template, root)
        if dying.run_until(lambda: scenario.act(root), entry) is None:
            trials += 1
            _assert_recovers(root, scenario, wanted, f"{entry} of {total}")
    print(f"crash enumeration, {scenario.name}: {trials} deaths at {total} system calls, all recovered")
    assert trials


def test_a_death_in_the_recovery_from_a_death_ends_in_the_same_bytes(tmp_path: Path) -> None:
    scenario = Scenario("recovery", _land_three)
    template, first, root = tmp_path / "template", tmp_path / "first", tmp_path / "root"
    template.mkdir()
    scenario.prepare(template)
    wanted, total = _calm(template, scenario, root)
    seen: set[int] = set()
    trials = 0
    for entry in small.sample(range(1, total + 1), 24):
        small.copy_tree(template, first)
        dying.run_until(lambda: scenario.act(first), entry)
        state = hash(frozenset(pair for pair in small.tree_bytes(first).items() if "/owner.json" not in pair[0]))
        if state in seen:
            continue
        seen.add(state)
        _, calls = _calm(first, scenario, root)
        for second in range(2, calls + 1, 11 if small.IS_FULL else calls // 3):
            small.copy_tree(first, root)
            if dying.run_until(lambda: scenario.act(root), second) is None:
                trials += 1
                _assert_recovers(root, scenario, wanted, f"{entry}, then {second} of {calls}")
    print(f"crash enumeration, recovery: {trials} second deaths over {len(seen)} half-done states, all recovered")
    assert trials
