"""The Decisions table: rows are added, and nothing else ever changes. Source: protocol §1.8, advisor P1-P4, P10, I4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.spec_rules.ledger_growth import lost_line
from parsers.markdown import encode
from parsers.round_ledger import (
    COLUMNS,
    UNSET,
    Decision,
    append_decisions,
    committed_text,
    parse_cells,
    parse_round_ledger,
    plain_decision,
    render_cells,
    render_decision,
)
from parsers.tier_direction import tier_breaks

GATE = Decision("2", "—", "gate", "GATE L2", "proceed", "preset:ci (unattended lane)")
OTHER = Decision("1", "cart", "design-decision", "round how?", "half-up", "PO (interactive)")
HEAD = "| Round | Scope | Kind | Question | Answer | Resolved by |\n|---|---|---|---|---|---|\n"
ROW = "| 1 | cart | cut | what | that | PO |\n"
LEDGER = f"---\ntype: round-ledger\nfeature: cart\n---\n\nProse.\n\n## Decisions\n\n{HEAD}{ROW}\n## Notes\n\n| a | b |\n|---|---|\n| c | d |\n"


def added(text: str, *decisions: Decision) -> str:
    return append_decisions(text.encode(), "cart", decisions or (GATE,)).decode()


def answers(text: str) -> list[str]:
    return [row.decision.answer for row in parse_round_ledger(text.encode()).rows if row.decision]


# --- reading ---------------------------------------------------------------------------------------------------------


def test_rows_are_read_with_their_lines_and_by_the_names_of_the_columns() -> None:
    ledger = parse_round_ledger(LEDGER.encode())
    assert ledger.header == COLUMNS
    (row,) = ledger.rows
    assert LEDGER.split("\n")[row.line - 1] + "\n" == ROW
    assert row.decision == Decision("1", "cart", "cut", "what", "that", "PO")


def test_columns_may_stand_in_another_order_and_among_others() -> None:
    text = "## decisions\n| Id | Answer | Resolved By | KIND | scope | round | Question |\n|--|--|--|--|--|--|--|\n| x | a | p | k | s | 3 | q |\n"
    assert parse_round_ledger(text.encode()).rows[0].decision == Decision("3", "s", "k", "q", "a", "p")


def test_a_row_of_another_width_has_its_cells_and_no_decision() -> None:
    """Rows of four cells are gate crossings as the reference writes them (advisor I3)."""
    row = parse_round_ledger(LEDGER.replace(ROW, ROW + "| L1b | proceed | preset:ci | ok |\n").encode()).rows[1]
    assert (row.cells, row.decision) == (("L1b", "proceed", "preset:ci", "ok"), None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# Nothing\n",
        "## Decisions\n\nnone yet\n",
        f"## Notes\n{HEAD}{ROW}",
        f"```\n## Decisions\n{HEAD}{ROW}```\n",
        "\x00\xff",
    ],
)
def test_where_no_table_stands_nothing_is_read(text: str) -> None:
    assert parse_round_ledger(text.encode()) == ((), ())


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        (r"| a \| b | c\\ | d\e |", ("a | b", "c\\", r"d\e")),
        (r"| a \\| b |", ("a \\", "b")),
        ("| a | b", ("a", "b")),
        ("|  |  |", ("", "")),
        ("| a \\|", ("a |",)),
        ("|", ()),
    ],
)
def test_cells_are_unescaped(line: str, cells: tuple[str, ...]) -> None:
    """Advisor P3."""
    assert parse_cells(line) == cells


# --- writing ---------------------------------------------------------------------------------------------------------


def test_a_cell_is_one_line_and_escaped() -> None:
    """Advisor P2, vector ADV-58."""
    row = Decision("1", "s", "spec-ambiguity", "line one\n  line\ttwo", "use a\\b | keep", "PO (interactive)")
    wanted = r"| 1 | s | spec-ambiguity | line one line two | use a\\b \| keep | PO (interactive) |"
    assert render_decision(row) == wanted


def test_no_cell_names_a_board_id_or_a_local_path() -> None:
    """Advisor P10, vector ADV-59."""
    assert committed_text("Does TASK-004 own .shapeup/x/tasks/a.md?") == "Does the task own a local run file"


def test_a_new_ledger_says_whose_it_is() -> None:
    data = append_decisions(None, "cart", (GATE,))
    assert data == append_decisions(b"", "cart", (GATE,))
    assert data.decode().startswith("---\ntype: round-ledger\nfeature: cart\n---\n\n## Decisions\n\n| Round | Scope |")
    assert parse_round_ledger(data).rows[0].decision == GATE


def test_a_row_goes_behind_the_last_one_of_the_table() -> None:
    assert added(LEDGER) == LEDGER.replace(ROW, f"{ROW}{render_decision(GATE)}\n")


def test_a_table_without_rows_gets_its_first() -> None:
    empty = LEDGER.replace(ROW, "")
    assert added(empty) == empty.replace(HEAD, f"{HEAD}{render_decision(GATE)}\n")


def test_a_heading_without_a_table_gets_one_right_below_it() -> None:
    text = "# Ledger\n\n## Decisions\nprose\n\n## Later\n"
    table = f"| {' | '.join(COLUMNS)} |"
    assert added(text).startswith(f"# Ledger\n\n## Decisions\n\n{table}\n")
    assert added(text).endswith(f"{render_decision(GATE)}\n\nprose\n\n## Later\n")
    assert answers(added(text)) == ["proceed"]


@pytest.mark.parametrize(
    "text", ["# Ledger", "# Ledger\n", "```\ncode nobody closed\n", "~~~~\n```\n", "---\n# Decisions\na: 1\n---\n"]
)
def test_a_file_without_the_heading_gets_it_at_its_end(text: str) -> None:
    assert added(text).startswith(text)
    assert "\n## Decisions\n" in added(text)
    assert answers(added(added(text), OTHER)) == ["proceed", "half-up"]


def test_the_line_ends_of_the_file_are_kept() -> None:
    text = LEDGER.replace("\n", "\r\n")
    assert added(text) == added(LEDGER).replace("\n", "\r\n")
    assert added(text.split("\r\n\r\n## Notes")[0]).endswith(f"\r\n{render_decision(GATE)}\r\n")


def test_a_table_in_another_order_gets_its_row_in_that_order() -> None:
    text = "## Decisions\n| Answer | Round | Scope | Kind | Question | Resolved by |\n|--|--|--|--|--|--|\n"
    assert added(text) == text + "| proceed | 2 | — | gate | GATE L2 | preset:ci (unattended lane) |\n"


def test_a_column_of_ids_goes_on_counting_for_the_kinds_that_have_ids() -> None:
    """Advisor I4; a gate has none."""
    text = f"## Decisions\n| Id | {' | '.join(COLUMNS)} |\n|--|--|--|--|--|--|--|\n| ESC-09 | 1 | s | spec-ambiguity | q | a | p |\n"
    rows = added(text, GATE, OTHER, OTHER).removeprefix(text).split("\n")
    assert [parse_cells(row)[0] for row in rows if row] == [UNSET, "ESC-10", "ESC-11"]


def test_a_table_with_other_columns_gets_the_six_cells() -> None:
    text = "## Decisions\n| Ref | What |\n|--|--|\n| ESC-1 | x |\n"
    assert added(text) == f"{text}{render_decision(GATE)}\n"


def test_no_rows_change_nothing() -> None:
    assert append_decisions(b"x", "cart", ()) == b"x"


# --- whatever the file ------------------------------------------------------------------------------------------------

_BITS = st.sampled_from(
    [
        "## Decisions",
        "# decisions",
        "## Notes",
        "```",
        "~~~~",
        "---",
        "",
        "prose",
        "| a | b |",
        "|---|---|",
        HEAD.split("\n")[0],
        "|---|---|---|---|---|---|",
        ROW.strip(),
        "| \\",
        "# Decisions ",
        " | x",
        "\ufeff",
        "é\x00",
        "````",
        "    ## Decisions",
    ]
)
_FILES = st.builds(
    lambda lines, ends, last: "".join(line + end for line, end in zip(lines, ends, strict=False)) + last,
    st.lists(_BITS, max_size=14),
    st.lists(st.sampled_from(["\n", "\n", "\r\n"]), min_size=14, max_size=14),
    _BITS,
).map(encode) | st.binary(max_size=60)
_CELLS = st.text(max_size=25) | st.sampled_from(
    ["TASK-1", "see .shapeup/x y", "|", "\\", "\\|", " ", "a\nb", "—", "## Decisions", "```"]
)
_DECISIONS = st.lists(st.builds(Decision, *[_CELLS] * 6), min_size=1, max_size=3)


@given(_FILES, _DECISIONS)
def test_every_byte_of_the_file_stays_and_the_rows_are_added_in_one_piece(
    data: bytes, decisions: list[Decision]
) -> None:
    after = append_decisions(data, "cart", decisions)
    same = next((at for at, pair in enumerate(zip(data, after, strict=False)) if pair[0] != pair[1]), len(data))
    piece = len(after) - len(data)
    starts = range(max(0, same - piece), same + 1)
    assert any(data[:at] + after[at : at + piece] + data[at:] == after for at in starts)


@given(_FILES, _DECISIONS)
def test_what_was_added_is_read_again_behind_all_that_was_there(data: bytes, decisions: list[Decision]) -> None:
    before, ledger = parse_round_ledger(data), parse_round_ledger(append_decisions(data, "cart", decisions))
    assert [row.cells for row in ledger.rows[: len(before.rows)]] == [row.cells for row in before.rows]
    new = ledger.rows[len(before.rows) :]
    plain = [plain_decision(decision) for decision in decisions]
    if ledger.header == COLUMNS:
        assert [row.decision for row in new] == plain
    else:
        assert [row.cells for row in new] == [tuple(decision) for decision in plain]


@given(_FILES, _DECISIONS)
def test_the_gate_of_commits_sees_pure_growth_that_keeps_the_tier(data: bytes, decisions: list[Decision]) -> None:
    after = append_decisions(data, "cart", decisions)
    if data:
        assert lost_line(data, after) is None
    assert len(list(tier_breaks(after))) == len(list(tier_breaks(data)))


@given(st.lists(_CELLS, min_size=1, max_size=6))
def test_cells_come_back_as_they_were_meant(cells: list[str]) -> None:
    assert parse_cells(render_cells(cells)) == tuple(committed_text(cell) or UNSET for cell in cells)
    assert "\n" not in render_cells(cells)


@given(st.binary(max_size=200))
def test_any_bytes_are_read(data: bytes) -> None:
    ledger = parse_round_ledger(data)
    assert bool(ledger.header) or not ledger.rows
