"""Which dirty paths are judged, when, and how often one is told. Time is passed in."""

import pytest

from daemon.stray.sightings import GONE, KEPT, PAUSE_S, RESTLESS_S, SETTLE_S, Sightings

A, B = b"src/a", b"src/b"
OLD, NEW, NEWER = (1,), (2,), (3,)


def written(path):
    return True


def by_nobody(path):
    return False


def test_a_new_dirty_path_is_judged_once_it_has_stood_for_a_while():
    sightings = Sightings()
    sightings.look({A: NEW}, 10.0, written)
    assert sightings.ripe(10.0) == ()
    assert sightings.due_at() == 10.0 + SETTLE_S
    assert sightings.ripe(10.0 + SETTLE_S) == (A,)


def test_a_judged_path_is_silent_until_it_changes():
    sightings = Sightings()
    sightings.look({A: NEW}, 10.0, written)
    sightings.judged(A, NEW)
    sightings.look({A: NEW}, 20.0, written)
    assert sightings.due_at() is None
    sightings.look({A: NEWER}, 30.0, written)
    assert sightings.ripe(30.0 + SETTLE_S) == (A,)


def test_a_path_that_is_removed_is_a_change_too():
    sightings = Sightings()
    sightings.look({A: NEW}, 10.0, written)
    sightings.judged(A, NEW)
    sightings.look({A: GONE}, 20.0, written)
    assert sightings.awaits(A)


def test_what_nobody_wrote_is_known_and_not_judged():
    sightings = Sightings()
    sightings.look({A: OLD}, 10.0, by_nobody)
    sightings.look({A: OLD}, 20.0, written)
    assert sightings.due_at() is None
    assert sightings.unknown({A: OLD, B: OLD}) == (B,)


def test_a_path_that_git_cleans_again_is_never_judged():
    sightings = Sightings()
    sightings.look({A: NEW}, 10.0, written)
    sightings.look({}, 10.1, written)
    assert sightings.due_at() is None
    assert not sightings.awaits(A)


def test_a_path_that_was_told_and_comes_back_as_it_was_is_not_told_again():
    sightings = Sightings()
    sightings.look({A: NEW}, 10.0, written)
    sightings.judged(A, NEW)
    sightings.look({}, 11.0, written)
    sightings.look({A: NEW}, 12.0, written)
    assert sightings.due_at() is None


def test_a_path_that_changes_while_it_waits_begins_its_wait_anew_but_not_for_ever():
    sightings = Sightings()
    at = 10.0
    sightings.look({A: (0,)}, at, written)
    for step in range(1, 8):
        sightings.see(A, (step,), at + step * RESTLESS_S / 8)
        assert sightings.ripe(at + step * RESTLESS_S / 8) == ()
    assert sightings.due_at() == at + RESTLESS_S
    assert sightings.ripe(at + RESTLESS_S) == (A,)


def test_a_path_that_waits_counts_as_written_though_git_moves_its_view_meanwhile():
    sightings = Sightings()
    sightings.look({A: NEW}, 10.0, written)
    sightings.look({A: NEWER}, 10.1, by_nobody)
    assert sightings.awaits(A)


def test_while_git_is_at_work_the_wait_begins_anew():
    sightings = Sightings()
    sightings.look({A: NEW, B: NEW}, 10.0, written)
    sightings.postpone([A], 10.2)
    assert sightings.ripe(10.0 + SETTLE_S) == (B,)
    assert A in sightings.ripe(10.2 + SETTLE_S)


def test_a_look_at_some_paths_says_nothing_of_the_others():
    sightings = Sightings()
    sightings.look({A: NEW, B: NEW}, 10.0, written)
    sightings.look({}, 10.1, written, lambda path: path == A)
    assert not sightings.awaits(A)
    assert sightings.awaits(B)


def test_what_is_forgotten_waits_no_more():
    sightings = Sightings()
    sightings.look({A: NEW}, 10.0, written)
    sightings.forget(A)
    sightings.forget(B)
    assert sightings.due_at() is None


def test_a_path_that_is_told_again_and_again_is_told_less_and_less_often_until_it_was_calm():
    sightings = Sightings()
    at, waits = 100.0, []
    for step in range(1, 12):
        sightings.look({A: (step,)}, at, written)
        due_at = sightings.due_at()
        waits.append(due_at - at)
        at = due_at
        sightings.judged(A, (step,))
        sightings.told(A, at)
    assert waits[:2] == pytest.approx([SETTLE_S, SETTLE_S])  # the first change is told at once
    assert waits[2:5] == pytest.approx([PAUSE_S[0], 2 * PAUSE_S[0], 4 * PAUSE_S[0]])
    assert max(waits) == pytest.approx(PAUSE_S[1])
    at += 3 * PAUSE_S[1]
    for step in (20, 21):
        sightings.look({A: (step,)}, at, written)
        assert sightings.due_at() - at < 1.0
        at = sightings.due_at()
        sightings.judged(A, (step,))
        sightings.told(A, at)


def test_what_is_remembered_of_clean_paths_is_bounded():
    sightings = Sightings()
    for path in range(KEPT + 1):
        sightings.judged(b"%d" % path, NEW)
    sightings.look({A: NEW}, 10.0, by_nobody)
    assert sightings.unknown({b"0": NEW, A: NEW}) == (b"0",)
