"""Which decisions an order carries, and under which ids. Source: advisor §11, protocol §2.5 W-11, D-1, ruling I3."""

import pytest

from reducers.compile.decisions import normal_question, project_decisions

HEAD = """---
type: round-ledger
---

## Decisions
| Round | Scope | Kind | Question | Answer | Resolved by |
|-------|-------|------|----------|--------|-------------|
"""
PO = "PO (interactive)"
LEDGER = (
    HEAD
    + f"""| 2 | cart-creation | design-decision | cart-total rounding | round half-up | {PO} |
| 2 | cart-payment | spec-ambiguity | a \\| b? | b | {PO} |
| 3 | cart-creation | design-decision | Cart-total rounding? | banker's | {PO} |
| L1b | proceed | preset:ci | ok |
| 3 | * | spec-ambiguity | which locale? | vi-VN | {PO} |

## Notes
| 9 | cart-creation | design-decision | x | y | z |
"""
)


def ledger(*rows: str) -> bytes:
    return (HEAD + "".join(f"| {row} |\n" for row in rows)).encode()


def ids(data: bytes, scope: str | None = "cart") -> list[object]:
    return [row["id"] for row in project_decisions(data, scope_id=scope)]


def test_a_later_answer_takes_the_earlier_ones_place_and_ids_count_all_scopes():
    first, second = project_decisions(LEDGER.encode(), scope_id="cart-creation")
    assert list(first.items()) == [
        ("id", "ESC-03"),
        ("answer", "banker's"),
        ("question", "Cart-total rounding?"),
        ("kind", "design-decision"),
        ("round", 3),
        ("scope_id", "cart-creation"),
        ("resolved_by", PO),
    ]
    assert (second["id"], second["scope_id"]) == ("ESC-04", "*")
    payment = project_decisions(LEDGER.encode(), scope_id="cart-payment")
    assert [(row["id"], row["answer"], row["question"]) for row in payment] == [
        ("ESC-02", "b", "a | b?"),
        ("ESC-04", "vi-VN", "which locale?"),
    ]


def test_an_order_without_a_scope_carries_every_scopes_decisions():
    assert [row["id"] for row in project_decisions(LEDGER.encode())] == ["ESC-02", "ESC-03", "ESC-04"]


def test_gates_are_never_carried_and_cuts_keep_the_number_of_their_row():
    data = ledger(
        "1 | — | gate | GATE L1b | proceed | preset:ci",
        "1 | cart | cut | drop the export? | yes | PO",
        "1 | - | other | name it? | basket | PO",
        "1 | cart | design-decision | colour? | red | PO",
        "1 | cart | invented | what? | no | PO",
    )
    assert ids(data) == ["D-2", "D-3", "ESC-01"]


@pytest.mark.parametrize(
    "row",
    [
        "0 | cart | design-decision | q | a | PO",
        "x | cart | design-decision | q | a | PO",
        "1 | cart | spec-ambiguity | | a | PO",
    ],
)
def test_a_question_that_lacks_a_cell_or_a_round_is_neither_numbered_nor_carried(row):
    assert ids(ledger(row, "1 | cart | design-decision | q2 | b | PO")) == ["ESC-01"]


def test_a_reuse_is_told_where_its_reference_is_another_scopes_and_not_repeated_where_it_is_its_own():
    own = "2 | cart | design-decision | Rounding | up | resolved by precedent: ESC-01"
    data = ledger("1 | cart | design-decision | rounding? | up | PO", own)
    assert ids(data) == ["ESC-01"]
    other = ledger("1 | pay | design-decision | rounding? | up | PO", own.replace("ESC-01", "ESC-01 (superset)"))
    assert ids(other) == ["ESC-02"]


def test_scopes_are_compared_as_stems_spell_them():
    assert ids(ledger("1 | Cart_Core | cut | q | a | PO"), "cart-core") == ["D-1"]


def test_columns_are_found_by_name_and_a_column_of_ids_wins():
    data = b"# Decisions\n\n| Answer | Id | Scope |\n|---|---|---|\n| blue | ESC-7 | cart |\n| red | | pay |\n| green | | |\n"
    found = project_decisions(data, scope_id="cart")
    assert [(row["id"], row["answer"]) for row in found] == [("ESC-7", "blue"), ("D-3", "green")]


def test_a_header_that_says_nothing_is_read_by_the_references_rule():
    data = b"## Decisions\n\n| a | b | c |\n|---|---|---|\n| ESC-1 | cart | blue |\n| ESC-2 | pay | red |\n| no id | cart | x |\n"
    assert [(row["id"], row["answer"]) for row in project_decisions(data, scope_id="cart")] == [("ESC-1", "blue")]
    assert len(project_decisions(data)) == 2


def test_local_rows_follow_the_shared_ones_that_lack_them_under_ids_of_their_own():
    shared = ledger("1 | cart | cut | a? | 1 | PO")
    local = ledger("1 | cart | cut | a? | 1 | PO", "1 | cart | cut | b? | 2 | PO")
    found = project_decisions(shared, local, "cart")
    assert [(row["id"], row["question"]) for row in found] == [("D-1", "a?"), ("D-2", "b?")]
    clash = project_decisions(shared, ledger("1 | cart | cut | c? | 3 | PO"), "cart")
    assert [row["id"] for row in clash] == ["D-1", "D-L1"]
    assert [row["id"] for row in project_decisions(b"", local, "cart")] == ["D-1", "D-2"]


def test_no_ledger_carries_nothing():
    assert project_decisions(b"") == []


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Cart-total rounding?", "cart-total rounding"),
        ("Don\u2019t we?", "do not we"),
        ("“Which”  locale!", "which locale"),
        ("a TASK-003 thing", "a the task thing"),
    ],
)
def test_two_spellings_of_one_question_are_the_same(one, two):
    assert normal_question(one) == normal_question(two)
