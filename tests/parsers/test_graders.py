"""Which paths a command names, and the rows that remember them. Source: ruling G5."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.graders import GraderRow, inner_path, named_paths, parse_graders, render_grader_row, says_tests


@pytest.mark.parametrize(
    ("cmd", "paths"),
    [
        ("pytest -q tests/a.py", {"tests/a.py"}),
        ("pytest ./tests/a.py::TestA::test_b", {"tests/a.py"}),
        ("node --test test/a.test.js", {"test/a.test.js"}),
        ("sh -c 'pytest tests/a.py && echo ok'", {"tests/a.py"}),
        ("cd web && npx jest src/a.test.ts", {"web/src/a.test.ts", "src/a.test.ts"}),
        ("make -C native check.mk", {"native/check.mk"}),
        ("run --config=conf/t.toml", {"conf/t.toml"}),
        ('bash "my tests/a.sh"', {"my tests/a.sh"}),
        ("jest a.js,b.js", {"a.js", "b.js"}),
        ("pytest a.py:12", {"a.py"}),
        ("A=1 x<in/data.txt", {"in/data.txt"}),
    ],
)
def test_a_command_names_its_files(cmd: str, paths: set[str]) -> None:
    assert paths <= set(named_paths([cmd]))


@pytest.mark.parametrize("cmd", ["x > out/a.txt", "x 2>out/a.txt", "x >> out/a.txt", "cd out/a.txt && x"])
def test_what_it_writes_or_goes_to_is_no_grader(cmd: str) -> None:
    assert "out/a.txt" not in named_paths([cmd])


@pytest.mark.parametrize("text", ["/etc/passwd", "../x", "a/../..", ".", "./", "~/x", "-q", "", "a\nb"])
def test_what_lies_outside_is_no_path(text: str) -> None:
    assert inner_path(text) is None


@pytest.mark.parametrize("folder", ["tests", "src/__tests__", "e2e", "a/spec/b", "cart_tests"])
def test_a_folder_of_tests_is_known_by_its_name(folder: str) -> None:
    assert says_tests(folder)


@pytest.mark.parametrize("folder", ["src", "latest", "contests", "inspect"])
def test_another_folder_is_none(folder: str) -> None:
    assert not says_tests(folder)


@given(st.lists(st.text()))
def test_no_command_raises_and_no_path_leaves(commands: list[str]) -> None:
    for path in named_paths(commands):
        assert not path.startswith(("/", "../"))
        assert ".." not in path.split("/")


ROW = GraderRow("2036-01-01T00:00:00.000Z", "cart/core-r1-a1", "ab", "core", "cd", {"a": "1"}, "run", 3)


@pytest.mark.parametrize("row", [ROW, ROW._replace(run_id=None, left_out=0, files={})])
def test_a_row_reads_as_it_was_written(row: GraderRow) -> None:
    assert parse_graders(render_grader_row(row).encode()) == (row,)


@pytest.mark.parametrize("line", ["", "{}", '{"order_id": "a/b"}', '{"order_id": "a/b", "files": {"x": 1}}', "torn"])
def test_a_line_that_is_no_row_is_skipped(line: str) -> None:
    assert parse_graders(f"{line}\n{render_grader_row(ROW)}".encode()) == (ROW,)
