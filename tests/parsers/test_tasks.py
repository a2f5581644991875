"""Task files: what is read of them, which box a criterion means, and edits that move no other byte. Source: protocol §1.7, §4.3-4.4, targets 28."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.markdown import decode, encode
from parsers.tasks import (
    AddBlock,
    Box,
    Edit,
    SetBox,
    SetKey,
    Task,
    apply_edits,
    block_edit,
    box_edits,
    match_boxes,
    normalise,
    parse_boxes,
    parse_task,
    with_lf,
    without_covers,
)

PATH = ".shapeup/s/tasks/TASK-1-first.md"


def task_of(frontmatter: str) -> Task:
    return parse_task(PATH, f"---\n{frontmatter}\n---\n# x\n".encode())[0]


# --- reading ---------------------------------------------------------------------------------------------------------


def test_a_task_is_read_from_its_frontmatter() -> None:
    task = task_of(
        'id: TASK-1\ntitle: "a: b"\nstatus: ready\npriority: 2\ndepends_on:\n  - TASK-0\nunlocks: [TASK-2]\n'
        "scope_id: core\npackage: cli\nestimated_hours: 1.5\nuse_case_refs: [UC-A]"
    )
    assert (task.id, task.title, task.status, task.priority, task.scope_id) == ("TASK-1", "a: b", "ready", 2, "core")
    assert (task.depends_on, task.unlocks, task.use_case_refs) == (("TASK-0",), ("TASK-2",), ("UC-A",))
    assert (task.package, task.estimated_hours, task.has_frontmatter) == ("cli", 1.5, True)


def test_a_block_list_is_a_dependency_here_as_everywhere() -> None:
    """W-28."""
    assert task_of("depends_on:\n- TASK-8\n- TASK-9").depends_on == ("TASK-8", "TASK-9")


def test_priority_zero_is_zero_and_an_absent_one_is_last() -> None:
    assert task_of("priority: 0").priority == 0
    assert task_of("priority: high").priority == task_of("id: x").priority == 999


@pytest.mark.parametrize("hours", ["nan", "inf", "-inf", "1e999", "lots", "[1]", "~"])
def test_hours_that_are_no_number_count_as_none(hours: str) -> None:
    assert task_of(f"estimated_hours: {hours}").estimated_hours == 0.0


def test_a_file_without_frontmatter_is_known_by_its_stem_and_states_nothing() -> None:
    """Ruling C11: it unblocks nothing."""
    task, fault = parse_task(PATH, b"# Task\n- [ ] x\n")
    assert fault is None
    assert (task.id, task.status, task.has_frontmatter) == ("TASK-1-first", "", False)


def test_frontmatter_beyond_the_limits_is_told_and_counts_as_none() -> None:
    task, fault = parse_task(PATH, b"---\nid: " + b"x" * 70_000 + b"\n---\n")
    assert fault is not None
    assert fault.code == "E-FRONTMATTER"
    assert (task.id, task.has_frontmatter) == ("TASK-1-first", False)


# --- boxes -----------------------------------------------------------------------------------------------------------


def texts(text: str) -> list[str]:
    return [box.text for box in parse_boxes(text)]


def test_a_box_has_a_mark_a_text_and_the_requirements_it_covers() -> None:
    """W-22: `[X]` is ticked too."""
    boxes = parse_boxes(
        "- [ ] a (covers: REQ-1, REQ-22, REQ-x, UC-1)\r\n  - [x] b\n\t- [X] c\n* [ ] d\n- [] e\n- [y] f\n"
    )
    assert [(box.line, box.ticked, box.covers) for box in boxes] == [
        (0, False, ("REQ-1", "REQ-22")),
        (1, True, ()),
        (2, True, ()),
    ]
    assert boxes[0].text == "a (covers: REQ-1, REQ-22, REQ-x, UC-1)"


def test_boxes_in_fences_and_behind_the_first_log_do_not_count() -> None:
    """W-22."""
    text = "- [ ] a\n```\n- [ ] b\n## Execution Log\n```\n- [ ] c\n## Execution Log — 2026-01-01 (s/x)\n- [x] d\n## More\n- [ ] e\n"
    assert texts(text) == ["a", "c"]


def test_nothing_written_into_the_log_can_count_as_a_box_even_when_a_fence_is_open() -> None:
    """A planner's unclosed fence hides the log's heading from a reader; a result that closes it must not win boxes."""
    text = "- [ ] a\n```\nnever closed\n\n## Execution Log — 2026-01-01 (s/x)\n- notes: n\n```\n- [x] forged\n"
    assert texts(text) == ["a"]


def test_a_wrapped_box_is_joined_and_ends_where_something_else_begins() -> None:
    """Ruling C9."""
    text = "- [ ] one\n  two\r\n   three (covers: REQ-1)\n- [ ] four\nfive\n  - [ ] six\n    seven\n    - eight\n- [ ] nine\n\n  ten\n"
    assert texts(text) == ["one two three (covers: REQ-1)", "four", "six seven", "nine"]
    assert parse_boxes(text)[0].covers == ("REQ-1",)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("a (covers: REQ-1)", "a"),
        ("a (covers:) ", "a"),
        ("a (covers: x) b", "a (covers: x) b"),
        ("a (b) (covers: REQ-1 (covers: REQ-2)", "a (b)"),
        ("a (covers: REQ-1", "a (covers: REQ-1"),
        ("(covers: REQ-1)", ""),
        ("a", "a"),
    ],
)
def test_only_a_trailing_covers_clause_is_taken_off(text: str, bare: str) -> None:
    assert without_covers(text) == bare


@pytest.mark.parametrize(
    "line", ["(covers:" * 130_000, "(covers:" * 130_000 + ")", " " * 1_000_000, ")" * 1_000_000, "a\n  b" * 200_000]
)
def test_a_megabyte_of_box_is_read_in_linear_time(line: str) -> None:
    assert len(parse_boxes(f"- [ ] {line} x")) == 1


def test_a_file_of_boxes_is_matched_and_ticked_in_one_go() -> None:
    """One result may tick every box of the largest task file; each pass over the file is made once."""
    count = 20_000
    text = "".join(f"- [ ] number {n}\n" for n in range(count))
    boxes = parse_boxes(text)
    places = match_boxes(boxes, [f"number {n}" for n in range(count)] + [f"missing {n}" for n in range(count)])
    assert places == (*range(count), *[None] * count)
    ticked = apply_edits(text.encode(), box_edits(boxes, range(count), True))
    assert ticked.count(b"- [x] ") == count


# --- which box a criterion means -------------------------------------------------------------------------------------


def places(text: str, *criteria: str, prefer_ticked: bool = False) -> tuple[int | None, ...]:
    return match_boxes(parse_boxes(text), criteria, prefer_ticked=prefer_ticked)


def test_the_whole_text_is_preferred_over_a_longer_box_that_contains_it() -> None:
    """W-22: the reference ticks the first box that contains the criterion."""
    assert places("- [ ] adds an item to the cart\n- [ ] adds an item\n", "adds an item") == (1,)


def test_matching_ignores_case_and_white_space_only() -> None:
    assert places("- [ ]  Two   SPACES\n", "two spaces", "two") == (0, None)


def test_a_wrapped_box_is_found_by_its_whole_text_or_its_first_line() -> None:
    """Ruling C9."""
    text = "- [ ] one\n  two\n- [ ] three\n  four\n"
    assert places(text, "one two", "three") == (0, 1)


def test_the_covers_clause_may_differ() -> None:
    """W-22."""
    assert places("- [ ] works (covers: REQ-1)\n", "works") == (0,)
    assert places("- [ ] works\n", "works (covers: REQ-9)") == (0,)


def test_a_containment_counts_only_where_one_free_box_has_it() -> None:
    """W-22."""
    assert places("- [ ] adds to the cart\n- [ ] removes\n", "adds") == (0,)
    assert places("- [ ] adds to the cart\n- [ ] adds to the list\n", "adds") == (None,)
    assert places("- [ ] adds to the cart\n- [ ] adds to the list\n", "adds", "adds to the list") == (0, 1)


def test_an_empty_criterion_and_an_empty_box_match_nothing() -> None:
    """W-22: the reference's empty needle is in every text."""
    assert places("- [ ] a\n- [ ] \n", "", "  ", "zzz") == (None, None, None)


def test_one_box_is_never_given_twice() -> None:
    """W-22: one box may absorb two criteria in the reference."""
    assert places("- [ ] same\n", "same", "same") == (0, None)
    assert places("- [ ] same\n- [x] same\n", "same", "same") == (0, 1)


def test_a_refutation_takes_the_ticked_one_of_two_equal_boxes() -> None:
    assert places("- [ ] same\n- [x] same\n", "same", prefer_ticked=True) == (1,)


WORDS = st.lists(st.sampled_from(["a", "b", "A", "ab", " ", "(covers: REQ-1)", "(covers: REQ-2)"]), max_size=3).map(
    " ".join
)
BOXES = st.lists(st.tuples(WORDS, WORDS, st.booleans()), max_size=6).map(
    lambda rows: tuple(
        Box(at, ticked, first, f"{first} {more}".strip(), ()) for at, (first, more, ticked) in enumerate(rows)
    )
)


@given(BOXES, st.lists(WORDS, max_size=6), st.booleans())
def test_each_box_is_consumed_once_and_only_by_a_text_that_is_near_it(
    boxes: tuple[Box, ...], criteria: list[str], prefer_ticked: bool
) -> None:
    found = match_boxes(boxes, criteria, prefer_ticked=prefer_ticked)
    assert len(found) == len(criteria)
    given_out = [place for place in found if place is not None]
    assert len(given_out) == len(set(given_out))
    for criterion, place in zip(criteria, found, strict=True):
        wanted = normalise(criterion)
        if place is None:
            taken = set(given_out)
            assert not wanted or all(normalise(box.text) != wanted for at, box in enumerate(boxes) if at not in taken)
            continue
        assert wanted
        box = boxes[place]
        near = {normalise(box.text), normalise(box.first), normalise(without_covers(box.text))}
        assert any(wanted in text or text in wanted or normalise(without_covers(criterion)) == text for text in near)


@given(BOXES, st.lists(WORDS, max_size=6), st.randoms())
def test_the_order_of_the_criteria_does_not_matter(boxes: tuple[Box, ...], criteria: list[str], random) -> None:
    def given_to(order: list[str]) -> list[tuple[str, str]]:
        found = match_boxes(boxes, order)
        pairs = ((normalise(text), place) for text, place in zip(order, found, strict=True))
        return sorted((text, str(place)) for text, place in pairs if place is not None)

    shuffled = list(criteria)
    random.shuffle(shuffled)
    assert given_to(shuffled) == given_to(criteria)


# --- editing ---------------------------------------------------------------------------------------------------------

LINES = st.one_of(
    st.sampled_from(
        [
            "- [ ] a", "- [x] a", "  - [X] b  ", "- [ ] $& \\1", "  wrapped", "```", "## Execution Log", "---", "status: a",
            "status : b", "# h", "| a |", "trailing   ", "", "\ufeff", "- [ ] \u2028\u0085x", "\r", "- [ ] c\r",
        ]
    ).map(str.encode),
    st.binary(max_size=6).map(lambda data: data.replace(b"\n", b"")),
)  # fmt: skip
FILES = st.builds(
    lambda mark, front, lines, newline, end: mark + newline.join([*front, *lines]) + end,
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.sampled_from(
        [[], [b"---", b"id: T", b"---"], [b"---", b"id: T", b"status: ready", b"t: $& \xff", b"---"], [b"---"]]
    ),
    st.lists(LINES, max_size=10),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([b"", b"\n", b"\r\n", b"\r"]),
)


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, list[Edit]]:
    """A file and the edits an ingest would want on it."""
    data = draw(FILES)
    text = decode(data)
    boxes = parse_boxes(text)
    edits: list[Edit] = []
    if boxes:
        chosen = draw(st.lists(st.integers(0, len(boxes) - 1), unique=True, max_size=3))
        edits += box_edits(boxes, chosen, draw(st.booleans()))
    edits += [SetKey("status", draw(st.sampled_from(["done", "$&", r"\1"])))] * draw(st.integers(0, 1))
    edits += [SetBox("no such box", 0, True)] * draw(st.integers(0, 1))
    if draw(st.booleans()):
        note = draw(st.text(st.sampled_from("a\r\n#-`| \u2028"), max_size=6))
        edits.append(block_edit(text, f"\n\n## Execution Log — 2026-01-01 (s/x)\n- notes: {note}\n"))
    return data, edits


@given(edited())
def test_applying_twice_is_applying_once(case: tuple[bytes, list[Edit]]) -> None:
    data, edits = case
    once = apply_edits(data, edits)
    assert apply_edits(once, edits) == once


@given(edited())
def test_every_byte_outside_the_edited_lines_stays(case: tuple[bytes, list[Edit]]) -> None:
    """W-23, W-24, W-76, targets 28."""
    data, edits = case
    blocks = [edit for edit in edits if isinstance(edit, AddBlock)]
    lines = apply_edits(data, [edit for edit in edits if not isinstance(edit, AddBlock)]).split(b"\n")
    was = data.split(b"\n")
    if len(lines) > len(was):  # a key that was missing came in as one line
        at = next(at for at, (left, right) in enumerate(zip(was, lines, strict=False)) if left != right)
        assert lines.pop(at).startswith(b"status: ")
    changed = [(left, right) for left, right in zip(was, lines, strict=True) if left != right]
    for left, right in changed:
        if right.removeprefix(b"\xef\xbb\xbf").startswith(b"status: "):
            assert left.lstrip(b"\xef\xbb\xbf").startswith(b"status")
            assert left.endswith(b"\r") == right.endswith(b"\r")
        else:
            assert next(byte for byte, now in zip(left, right, strict=True) if byte != now) in b" xX"
            assert sum(byte != now for byte, now in zip(left, right, strict=True)) == 1
    whole = apply_edits(data, edits)
    if blocks:
        assert with_lf(decode(whole)).count(blocks[0].text) == blocks[0].times
        assert whole.startswith(apply_edits(data, [edit for edit in edits if not isinstance(edit, AddBlock)]))


@given(FILES, st.data())
def test_a_ticked_box_reads_as_ticked_and_no_other_one_changes(data: bytes, draw: st.DataObject) -> None:
    boxes = parse_boxes(decode(data))
    if not boxes:
        return
    at = draw.draw(st.integers(0, len(boxes) - 1))
    after = parse_boxes(decode(apply_edits(data, box_edits(boxes, [at], not boxes[at].ticked))))
    assert after == tuple(box._replace(ticked=not box.ticked) if n == at else box for n, box in enumerate(boxes))


def test_a_block_takes_the_newlines_of_its_file() -> None:
    """W-24."""
    data = b"---\r\nid: T\r\n---\r\nend"
    edit = block_edit(decode(data), "\n\n## Execution Log\n- notes: a\r\nb\n")
    assert apply_edits(data, [edit]) == data + b"\r\n\r\n## Execution Log\r\n- notes: a\r\nb\r\n"


def test_the_same_block_may_stand_twice_when_it_is_meant_twice() -> None:
    data = b"x\n"
    for times in (1, 2):
        edit = block_edit(decode(data), "\nblock\n")
        assert edit.times == times
        data = apply_edits(data, [edit])
    assert data == b"x\n\nblock\n\nblock\n"


def test_an_edit_finds_its_box_in_a_file_that_moved_on() -> None:
    edits = box_edits(parse_boxes("- [ ] same\n- [ ] other\n- [ ] same\n"), [2], True)
    assert apply_edits(b"# new\n- [ ] same\ntext\n- [ ] same\n", edits) == b"# new\n- [ ] same\ntext\n- [x] same\n"
    assert apply_edits(b"- [ ] gone\n", edits) == b"- [ ] gone\n"


@given(st.binary(max_size=200))
def test_no_bytes_make_a_reader_raise(data: bytes) -> None:
    parse_task(PATH, data)
    boxes = parse_boxes(decode(data))
    assert encode(decode(data)) == data
    assert apply_edits(data, []) == data
    assert len(match_boxes(boxes, ["a"])) == 1
