"""A changed grader voids the verdict, unless the order grants the file. Source: ruling G5."""

from __future__ import annotations

from parsers.graders import GraderRow, hash_commands
from parsers.scope_contract import ScopeContract
from reducers.graders import changed_graders, newest_row

CONTRACT = ScopeContract("core", "core.md", ("pytest tests/a.py",))
ROW = GraderRow("", "cart/core-r1-a1", "one", "core", hash_commands(CONTRACT.commands), {"tests/a.py": "1", "b": "2"})


def changed(present: dict[str, str], *granted: str, contract: ScopeContract = CONTRACT) -> tuple[str, ...]:
    return changed_graders(ROW, contract, present, lambda path: path in granted)


def test_the_same_files_are_no_change() -> None:
    assert changed({"tests/a.py": "1", "b": "2"}) == ()


def test_one_that_differs_or_is_gone_or_is_new_is_named() -> None:
    assert changed({"tests/a.py": "9", "c": "3"}) == ("b", "c", "tests/a.py")


def test_a_granted_file_may_change() -> None:
    assert changed({"tests/a.py": "9", "b": "2"}, "tests/a.py") == ()


def test_other_commands_are_another_grader() -> None:
    contract = CONTRACT._replace(fixtures=("true",))
    assert changed({"tests/a.py": "1", "b": "2"}, "core.md", contract=contract) == ("core.md",)


def test_new_files_are_not_told_from_those_that_a_row_left_out() -> None:
    row = ROW._replace(left_out=1)
    assert changed_graders(row, CONTRACT, {"tests/a.py": "1", "b": "2", "c": "3"}, lambda path: False) == ()


def test_the_newest_row_of_an_order_counts() -> None:
    rows = [ROW, ROW._replace(order_sha256="two"), ROW._replace(order_id="cart/other-r1-a1")]
    assert newest_row(rows, "cart/core-r1-a1") == rows[1]
    assert newest_row(rows, "cart/core-r1-a1", "one") == rows[0]
    assert newest_row(rows, "cart/core-r1-a1", "three") is None
