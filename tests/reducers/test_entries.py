"""Journal entries: read back exactly, refused when one byte differs, and rolled forward from wherever a crash stopped. Source: design §3, ruling D1, W-25."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.markdown import decode, encode
from parsers.tasks import AddBlock, Edit, SetBox, SetKey, apply_edits, block_edit, box_edits, parse_boxes
from reducers.entries import (
    AppendEntry,
    Cause,
    EditEntry,
    Entry,
    complete_appends,
    hash_of,
    parse_entry,
    render_entry,
    roll_forward,
)

# What a file holds as text: anything UTF-8, and bytes that are not, kept aside as half surrogates.
TEXTS = st.binary(max_size=12).map(decode) | st.text(max_size=8)
EDITS = st.one_of(
    st.builds(SetKey, TEXTS, TEXTS),
    st.builds(SetBox, TEXTS, st.integers(0, 99), st.booleans()),
    st.builds(AddBlock, TEXTS, st.integers(1, 9)),
)
STEPS = st.one_of(
    st.builds(EditEntry, TEXTS, TEXTS, TEXTS, st.lists(EDITS, max_size=3).map(tuple), st.none() | TEXTS),
    st.builds(AppendEntry, TEXTS, st.integers(0, 2**53), TEXTS),
)
ENTRIES = st.builds(
    Entry,
    st.integers(1, 2**53),
    TEXTS,
    st.builds(Cause, TEXTS, TEXTS, TEXTS, TEXTS),
    st.lists(STEPS, max_size=3).map(tuple),
)


# --- one line --------------------------------------------------------------------------------------------------------


@given(ENTRIES)
def test_an_entry_is_read_back_as_it_was_written(entry: Entry) -> None:
    line = render_entry(entry)
    assert line.count(b"\n") == 1
    assert line.isascii()
    assert parse_entry(line.removesuffix(b"\n")) == entry


@given(ENTRIES, st.data())
def test_a_line_with_one_byte_changed_is_refused(entry: Entry, data: st.DataObject) -> None:
    line = bytearray(render_entry(entry).removesuffix(b"\n"))
    line[data.draw(st.integers(0, len(line) - 1))] ^= data.draw(st.integers(1, 255))
    assert parse_entry(bytes(line)) is None


@given(ENTRIES)
def test_a_torn_line_is_refused(entry: Entry) -> None:
    line = render_entry(entry)
    assert all(parse_entry(line[:at]) is None for at in range(len(line) - 1))
    assert parse_entry(line) is None  # the line end is no part of it
    assert parse_entry(line[1:-1]) is None


@given(st.binary(max_size=40))
def test_no_bytes_make_it_raise(line: bytes) -> None:
    assert parse_entry(line) is None


# --- task files ------------------------------------------------------------------------------------------------------

BODY = "".join(f"- [ ] box {n % 3}\n" for n in range(5))
FILES = st.sampled_from(
    [
        f"---\nid: T\nstatus: ready\n---\n{BODY}end".encode(),
        f"\ufeff---\r\nid: T\r\n---\r\n{BODY}".replace("\n", "\r\n").encode(),
        f"{BODY}\xff".encode("latin-1"),
    ]
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[bytes], list[EditEntry]]:
    """The states a file went through, and the steps that led from each to the next, as the store journals them."""
    states = [draw(FILES)]
    steps: list[EditEntry] = []
    for n in range(draw(st.integers(1, 4))):
        text = decode(states[-1])
        edits: list[Edit] = [*box_edits(parse_boxes(text), [draw(st.integers(0, 4))], draw(st.booleans()))]
        edits += [SetKey("status", draw(st.sampled_from(["done", "in-progress"])))] * draw(st.integers(0, 1))
        order = draw(st.sampled_from(["same", f"order {n}"]))
        edits.append(block_edit(text, f"\n\n## Execution Log — 2026-01-01 (s/{order})\n- notes: a\r\nb\n"))
        after = apply_edits(states[-1], edits)
        base = text if not steps or draw(st.booleans()) else None
        steps.append(EditEntry("t", hash_of(states[-1]), hash_of(after), tuple(edits), base))
        states.append(after)
    return states, steps


@given(histories())
def test_a_task_file_rolls_forward_from_every_state_to_the_last(history: tuple[list[bytes], list[EditEntry]]) -> None:
    """W-25."""
    states, steps = history
    for state in states:
        assert roll_forward(state, steps) == states[-1]
    assert roll_forward(states[-1], []) == states[-1]


@given(histories())
def test_a_file_that_is_gone_is_made_again_from_the_newest_text_the_journal_knows(
    history: tuple[list[bytes], list[EditEntry]],
) -> None:
    states, steps = history
    assert roll_forward(None, steps) == states[-1]
    assert roll_forward(None, [step._replace(base=None) for step in steps]) is None


@given(histories(), st.integers(0, 4))
def test_what_someone_wrote_meanwhile_stays_and_takes_the_edits_it_lacks(
    history: tuple[list[bytes], list[EditEntry]], at: int
) -> None:
    states, steps = history
    state = states[min(at, len(states) - 1)]
    foreign = state.replace(b"box 1", b"box one") + b"<!-- theirs -->"
    rolled = roll_forward(foreign, steps)
    assert rolled is not None
    assert b"<!-- theirs -->" in rolled
    assert roll_forward(rolled, steps) == rolled
    for step in steps:
        for edit in step.edits:
            if isinstance(edit, AddBlock):
                assert decode(rolled).replace("\r\n", "\n").count(edit.text) >= edit.times


# --- ledgers ---------------------------------------------------------------------------------------------------------

ROWS = st.sampled_from(
    ['{"a":1}\n', '{"a":2}\n', '{"b":"é"}\n', "\n## Discovered — s/a (2026-01-01)\n~ x\n", '{"a":1,"b":2}\n']
)


@st.composite
def ledgers(draw: st.DrawFn) -> tuple[bytes, list[AppendEntry], bytes]:
    """What stood in a ledger, the appends that the journal holds since, and the ledger with all of them."""
    data = before = draw(st.sampled_from([b"", b'{"a":1}\n', b"# Ledger\n"]))
    steps: list[AppendEntry] = []
    for text in draw(st.lists(ROWS, min_size=1, max_size=4)):
        steps.append(AppendEntry("ledger.jsonl", len(data), text))
        data += encode(text)
    return before, steps, data


def completed(data: bytes, steps: list[AppendEntry]) -> bytes:
    missing = complete_appends(data, steps)
    if missing is None:
        return data
    assert missing[1]
    return data[: missing[0]] + missing[1]


@given(ledgers())
def test_a_ledger_is_completed_from_every_byte_a_crash_may_have_stopped_at(
    ledger: tuple[bytes, list[AppendEntry], bytes],
) -> None:
    """W-25: every row once, also where two are equal."""
    before, steps, whole = ledger
    for end in range(len(before), len(whole) + 1):
        assert completed(whole[:end], steps) == whole
    assert complete_appends(whole, steps) is None


@given(ledgers(), ROWS)
def test_rows_that_others_added_later_stay(ledger: tuple[bytes, list[AppendEntry], bytes], row: str) -> None:
    _, steps, whole = ledger
    assert complete_appends(whole + encode(row), steps) is None


def test_rows_that_someone_took_out_come_back_and_the_others_stay_once() -> None:
    rows = [f'{{"n":{n}}}\n' for n in range(6)]
    steps = [AppendEntry("ledger.jsonl", sum(map(len, rows[:n])), row) for n, row in enumerate(rows)]
    after = completed("".join(rows[:2] + rows[4:]).encode(), steps)
    assert sorted(after.decode().splitlines(keepends=True)) == rows
    assert completed(after, steps) == after


def test_a_row_that_moved_up_is_not_added_again_where_the_file_now_ends() -> None:
    """Someone took out a row that no step since the checkpoint speaks of; the last one's offset is then the file's end."""
    rows = [f'{{"n":{n}}}\n' for n in range(6)]
    steps = [AppendEntry("ledger.jsonl", len(rows[0]) * n, rows[n]) for n in range(3, 6)]
    assert complete_appends("".join(rows[1:]).encode(), steps) is None


@pytest.mark.parametrize("tail", [b'{"theirs":1', b'{"theirs":1}\n'])
def test_a_row_is_not_glued_to_what_another_writer_left(tail: bytes) -> None:
    """§12.4: a last line without its end is isolated first."""
    steps = [AppendEntry("ledger.jsonl", 0, '{"a":1}\n')]
    lines = completed(tail, steps).split(b"\n")
    assert b'{"a":1}' in lines
