"""What T0 takes from a contract, and why it takes nothing. Source: protocol §2.7, §5.2, B6."""

from __future__ import annotations

import pytest

from parsers.contracts import parse_contract
from parsers.faults import Fault
from parsers.scope_contract import ScopeContract, contract_warnings, declared_exit, take_scope_contract

PATH = "shapeup/cart/scopes/core.md"


def take(*lines: str) -> tuple[ScopeContract | None, tuple[Fault, ...]]:
    text = "\n".join(("---", *lines, "---", ""))
    return take_scope_contract(parse_contract("scope-contract", text, PATH), PATH)


def test_a_whole_contract_is_taken() -> None:
    found, faults = take(
        "scope_id: Core",
        "e2e_verification_fixtures: [a, b]",
        "db_probe: c",
        "allowed_file_substrate: [src/**]",
        "shared_substrate: [x]",
        "grader_files:",
        "  - tests/a.py",
    )
    assert faults == ()
    assert found == ScopeContract("Core", PATH, ("a", "b"), "c", ("src/**",), ("x",), ("tests/a.py",))
    assert found.commands == ("a", "b", "c")


def test_a_single_text_is_one_fixture_and_the_file_names_the_scope() -> None:
    found, _ = take("e2e_verification_fixtures: pytest")
    assert found == ScopeContract("core", PATH, ("pytest",))


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("scope_id: ../etc", "E-ID"),
        ("scope_id: other", "E-STEM"),
        ("e2e_verification_fixtures: true", "E-SCHEMA"),
        ("e2e_verification_fixtures: 7", "E-SCHEMA"),
        ("db_probe: [a]", "E-SCHEMA"),
        ("grader_files: 1", "E-SCHEMA"),
        ("db_probe: a\0b", "E-NUL"),
    ],
)
def test_a_field_of_another_kind_is_named_with_its_fix(line: str, code: str) -> None:
    found, faults = take(line)
    assert found is None
    assert [fault.code for fault in faults] == [code]
    assert code == "E-NUL" or faults[0].where == f"{PATH}:2"
    assert faults[0].fix


@pytest.mark.parametrize(
    ("cmd", "status"),
    [
        ("node x # exit 1", 1),
        ("node x  #must EXIT 12 here", 12),
        ("# exit 3", 3),
        ("node x # exit 0", None),
        ("test $# -gt 0 || exit 1", None),
        ("a#b exit 1", None),
        ("node x; exit 1", None),
        ("x # one # exit 2", 2),
    ],
)
def test_a_comment_may_declare_another_status(cmd: str, status: int | None) -> None:
    assert declared_exit(cmd) == status


def test_what_can_never_be_green_is_said() -> None:
    codes = [fault.code for fault in contract_warnings(ScopeContract("core", PATH, (), "x # exit 1"))]
    assert codes == ["T0-UNVERIFIABLE", "T0-UNPASSABLE"]
    assert contract_warnings(ScopeContract("core", PATH, ("true",))) == ()
