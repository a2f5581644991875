"""`shapeupd explain PATH` on a real repository, from anywhere in it. Source: cli §2, rulings A1, J, W-16."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hooks.verdict import RULES
from parsers.faults import CODES
from tests.e2e.living import SmallRun, shapeupd

GIT_ENV = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(root: Path, *words: str) -> None:
    named = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *named, "-C", root, *words], check=True, capture_output=True, env=GIT_ENV)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(tmp_path / "config"))
    top = tmp_path / "work"
    (top / "src" / "deep").mkdir(parents=True)
    git(top.parent, "init", "--quiet", os.fspath(top))
    run = SmallRun(top, with_receipt=True)
    run.order("core-r1-a1", substrate={"allowed": ["src/**"], "frozen": ["src/core.py"]})
    return top


def explained(path: str, *words: str, cwd: Path) -> dict[str, Any]:
    said = shapeupd(*words, "explain", path, "--json", cwd=cwd)
    assert (said.returncode, said.stderr) == (0, "")
    document: dict[str, Any] = json.loads(said.stdout)
    return document


def test_explain_prints_one_document(root: Path) -> None:
    assert explained("src/a.py", cwd=root) == {
        "schema": 1,
        "path": "src/a.py",
        "verdict": "allow",
        "rule": "allowed",
        "order_id": "cart/core-r1-a1",
        "pattern": "src/**",
        "owner": "cart/core-r1-a1",
        "ask": None,
    }


def test_explain_tells_a_person_what_to_ask_for(root: Path) -> None:
    said = shapeupd("explain", "lib/a\x1b.py", cwd=root).stdout
    assert said.startswith("lib/a\\x1b.py: deny\n")
    assert "substrate-expansion" in said
    frozen = shapeupd("explain", "src/core.py", cwd=root).stdout.splitlines()
    assert frozen[:2] == ["src/core.py: deny", "  by: cart/core-r1-a1 FROZEN src/core.py"]
    assert frozen[-1] == "  ask: wait for the result of cart/core-r1-a1; then it freezes nothing"


def test_a_path_is_meant_from_where_one_stands(root: Path, tmp_path: Path) -> None:
    assert explained("a.py", cwd=root / "src" / "deep")["path"] == "src/deep/a.py"
    assert explained("../../x", cwd=root / "src" / "deep")["path"] == "x"
    assert explained(os.fspath(root / "src" / "a.py"), cwd=root)["path"] == "src/a.py"
    assert explained("src/a.py", "--repo", os.fspath(root), cwd=tmp_path)["path"] == "src/a.py"
    assert explained("../outside", cwd=root)["verdict"] == "deny"
    assert explained("src/deep/", cwd=root)["path"] == "src/deep"


def test_a_link_in_the_way_is_followed_to_where_the_write_would_land(root: Path, tmp_path: Path) -> None:
    """W-16: the text of a path is not where it leads."""
    (root / "src" / "out").symlink_to(tmp_path)
    (root / "src" / "core-link").symlink_to("deep")
    assert explained("src/out/a.py", cwd=root)["verdict"] == "deny"
    assert explained("src/core-link/a.py", cwd=root)["path"] == "src/deep/a.py"


def test_a_linked_worktree_speaks_about_its_own_files(root: Path, tmp_path: Path) -> None:
    git(root, "commit", "--quiet", "--allow-empty", "-m", "one")
    git(root, "worktree", "add", "--quiet", os.fspath(tmp_path / "linked"))
    (tmp_path / "linked" / "src").mkdir()
    said = explained("a.py", cwd=tmp_path / "linked" / "src")
    assert (said["path"], said["verdict"], said["order_id"]) == ("src/a.py", "allow", "cart/core-r1-a1")


def test_without_orders_everything_may_be_written(tmp_path: Path) -> None:
    said = shapeupd("explain", "a", cwd=tmp_path)
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout == "a: allow\n  by: no live order narrows what may be written\n"


def test_a_rule_and_a_code_are_explained_by_name() -> None:
    assert shapeupd("explain", "OUTSIDE").stdout == f"OUTSIDE: {RULES['OUTSIDE']}\n"
    assert json.loads(shapeupd("explain", "E-STEM", "--json").stdout)["meaning"] == CODES["E-STEM"]
