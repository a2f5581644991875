"""Half-written files get 500 ms of quiet before they are refused, however often they change. Source: design §3, ruling C12."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.scan import Fingerprint
from daemon.settling import SETTLE_S, Settling
from parsers.faults import CODES, Fault

NOW = datetime(2026, 4, 5, 12, 0, 0, tzinfo=UTC)
PATH = ".shapeup/s/results/a.json"
TORN = Fault("E-JSON", PATH, "not JSON", "", "")


def stamp(size: int, *, age_s: float = 0.0) -> Fingerprint:
    changed_ns = int((NOW.timestamp() - age_s) * 1e9)
    return Fingerprint(1, 2, 3, size, changed_ns, changed_ns)


def waits(settling: Settling, seen: Fingerprint | None, monotonic: float, fault: Fault = TORN) -> bool:
    return settling.is_half_written(PATH, seen, fault, NOW, monotonic)


def test_a_torn_file_waits_and_is_due_after_half_a_second_of_quiet() -> None:
    settling = Settling()
    assert waits(settling, stamp(1), 100.0)
    assert (settling.due_at, settling.due(100.4)) == (100.5, [])
    assert settling.due(100.5) == [PATH]
    assert not waits(settling, stamp(1), 100.5)


def test_each_change_gives_it_another_half_second() -> None:
    settling = Settling()
    for size in range(20):
        assert waits(settling, stamp(size), 100.0 + size * 0.4)
    assert settling.due(100.0 + 19 * 0.4 + 0.499) == []
    assert not waits(settling, stamp(19), 100.0 + 19 * 0.4 + SETTLE_S)


def test_a_second_look_without_a_change_gives_it_no_more_time() -> None:
    settling = Settling()
    assert waits(settling, stamp(1), 100.0)
    assert waits(settling, stamp(1), 100.3)
    assert settling.due_at == 100.5


def test_a_file_that_lay_there_before_we_came_has_had_its_time() -> None:
    assert not waits(Settling(), stamp(1, age_s=0.5), 100.0)
    assert waits(Settling(), stamp(1, age_s=0.4), 100.0)


def test_a_clock_that_stepped_back_costs_one_half_second_at_most() -> None:
    settling = Settling()
    assert waits(settling, stamp(1, age_s=-3600), 100.0)
    assert not waits(settling, stamp(1, age_s=-3600), 100.5)


def test_an_old_time_on_a_file_that_just_changed_is_not_believed() -> None:
    settling = Settling()
    assert waits(settling, stamp(1), 100.0)
    assert waits(settling, stamp(2, age_s=3600), 100.4)


def test_a_file_without_a_stamp_waits_too() -> None:
    settling = Settling()
    assert waits(settling, None, 100.0)
    assert not waits(settling, None, 100.5)


@pytest.mark.parametrize("code", sorted(set(CODES) - {"E-JSON", "E-ENCODING"}))
def test_only_what_a_file_on_its_way_can_look_like_waits(code: str) -> None:
    """A wrong shape is complete JSON: nothing will come behind it."""
    settling = Settling()
    assert not waits(settling, stamp(1), 100.0, TORN._replace(code=code))
    assert settling.due_at is None


def test_a_file_that_was_settled_is_forgotten() -> None:
    settling = Settling()
    assert waits(settling, stamp(1), 100.0)
    settling.forget(PATH)
    settling.forget("another")
    assert (settling.due_at, settling.due(200.0), settling.waits_since(200.0)) == (None, [], False)
    assert waits(settling, stamp(1), 200.0)
    assert settling.waits_since(200.0)


@given(st.lists(st.tuples(st.floats(0, 0.6), st.booleans()), max_size=12))
def test_it_waits_exactly_as_long_as_the_last_change_is_younger_than_half_a_second(
    looks: list[tuple[float, bool]],
) -> None:
    settling = Settling()
    at, size = 100.0, 0
    assert waits(settling, stamp(size), at)
    changed_at = at
    for pause, has_changed in looks:
        at += pause
        size += has_changed
        changed_at = at if has_changed else changed_at
        is_waiting = waits(settling, stamp(size), at)
        assert is_waiting is (at - changed_at < SETTLE_S)
        if not is_waiting:
            return
