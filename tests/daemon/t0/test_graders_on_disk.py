"""The files that grade are hashed when an order is admitted and compared when its attempt is scored. Source: ruling G5."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from daemon.t0.contract import find_contract
from daemon.t0.graders import find_changed, graders_path, record_graders
from parsers.facts import OrderFact, read_order
from parsers.graders import parse_graders
from tests.daemon.trees.repository import git, put

AT = datetime(2036, 1, 2, 3, 4, 5, tzinfo=UTC)
CONTRACT = "shapeup/cart/scopes/core.md"
NOBODY: Callable[[str], bool] = lambda path: False  # noqa: E731


def contract(root: Path, *fixtures: str, graders: str = "[]") -> None:
    lines = [
        "---",
        "scope_id: core",
        "e2e_verification_fixtures:",
        *(f"  - {one}" for one in fixtures),
        f"grader_files: {graders}",
        "---",
    ]
    put(root, CONTRACT, "\n".join((*lines, "")))


def order(root: Path, stem: str = "core-r1-a1", compiled_at: str = "2036-01-01T00:00:00.000Z") -> OrderFact:
    path = f".shapeup/cart/orders/{stem}.json"
    value = {
        "schema_version": 1,
        "order_id": f"cart/{stem}",
        "worker": "task-executor",
        "mode": "orchestrated",
        "payload": {},
    }
    data = json.dumps({**value, "compiled_at": compiled_at}).encode()
    put(root, path, data)
    fact = read_order(path, data).fact
    assert fact is not None
    return fact


def changed(root: Path, granted: Callable[[str], bool] = NOBODY) -> tuple[str, ...]:
    return find_changed(root, root, "cart", "cart/core-r1-a1", find_contract(root, CONTRACT, root).contract, granted)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    contract(tmp_path, "pytest tests/a.py", "sh run.sh > out.txt")
    put(tmp_path, "tests/a.py", "assert 1")
    put(tmp_path, "run.sh", "true")
    put(tmp_path, "out.txt", "")
    return tmp_path


def test_what_the_commands_name_is_written_down_once(root: Path) -> None:
    fact = order(root)
    assert record_graders(root, fact, AT) == ("run.sh", "tests/a.py")
    assert record_graders(root, fact, AT) == ()
    (row,) = parse_graders((root / graders_path("cart")).read_bytes())
    assert (row.order_id, row.order_sha256, row.scope_id) == ("cart/core-r1-a1", fact.sha256, "core")


def test_an_order_that_is_compiled_anew_takes_the_files_as_they_are_then(root: Path) -> None:
    record_graders(root, order(root), AT)
    put(root, "run.sh", "false")
    assert changed(root) == ("run.sh",)
    record_graders(root, order(root, compiled_at="2036-01-01T00:00:01.000Z"), AT)
    assert changed(root) == ()


def test_only_build_orders_have_graders(root: Path) -> None:
    assert record_graders(root, order(root, "evaluate-r1"), AT) == ()
    assert record_graders(root, order(root, "other-r1-a1"), AT) == ()
    assert not (root / graders_path("cart")).exists()


def test_without_a_record_nothing_is_void(root: Path) -> None:
    assert changed(root) == ()


def test_a_grader_that_changed_is_gone_or_became_a_link_is_named(root: Path) -> None:
    record_graders(root, order(root), AT)
    assert changed(root) == ()
    put(root, "tests/a.py", "assert True")
    (root / "run.sh").unlink()
    assert changed(root) == ("run.sh", "tests/a.py")
    put(root, "real.sh", "true")
    (root / "run.sh").symlink_to("real.sh")
    assert changed(root, lambda path: path == "tests/a.py") == ("run.sh",)


def test_other_commands_are_named_by_the_contract(root: Path) -> None:
    record_graders(root, order(root), AT)
    contract(root, "true", "true")
    assert changed(root) == (CONTRACT,)


def test_a_folder_of_tests_grades_with_what_it_holds_and_grows_freely(root: Path) -> None:
    contract(root, "pytest tests", "lint src")
    put(root, "src/x.py", "1")
    assert record_graders(root, order(root), AT) == ("tests/a.py",)
    put(root, "tests/new.py", "")
    put(root, "src/x.py", "2")
    assert changed(root) == ()
    put(root, "tests/a.py", "")
    assert changed(root) == ("tests/a.py",)


def test_a_pattern_stands_for_the_files_it_matches(root: Path) -> None:
    contract(root, "pytest tests/*.py", graders="[conf/**]")
    put(root, "conf/deep/a.toml", "")
    assert record_graders(root, order(root), AT) == ("conf/deep/a.toml", "tests/a.py")


def test_grader_files_name_files_and_folders(root: Path) -> None:
    contract(root, "npm test", graders="[package.json, conf]")
    put(root, "package.json", "{}")
    put(root, "conf/deep/a.toml", "")
    record_graders(root, order(root), AT)
    put(root, "conf/deep/a.toml", "x")
    assert changed(root) == ("conf/deep/a.toml",)


def test_what_git_ignores_grades_only_where_it_is_listed(root: Path) -> None:
    git(root, "init", "-q")
    put(root, ".gitignore", "build/\n.shapeup/\n")
    put(root, "build/test_cart", "1")
    contract(root, "build/test_cart")
    assert record_graders(root, order(root), AT) == ()
    contract(root, "build/test_cart", graders="[build/test_cart]")
    assert record_graders(root, order(root, compiled_at="2036-01-01T00:00:01.000Z"), AT) == ("build/test_cart",)


def test_a_link_out_of_the_repository_is_hashed_by_where_it_leads(root: Path, tmp_path: Path) -> None:
    (root / "run.sh").unlink()
    (root / "run.sh").symlink_to("/etc/hostname")
    record_graders(root, order(root), AT)
    assert changed(root) == ()
    (root / "run.sh").unlink()
    (root / "run.sh").symlink_to("/etc/passwd")
    assert changed(root) == ("run.sh",)
