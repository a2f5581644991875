"""A repository with one scope whose fixtures look at its files, and one attempt of it. For the tests of t0."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from daemon.t0.attempt import Attempt, Scored, run_attempt
from daemon.t0.contract import find_contract
from parsers.layout import path_of
from tests.daemon.trees.repository import git, put

AT = datetime(2036, 1, 2, 3, 4, 5, tzinfo=UTC)
SLUG = "cart"
FIXTURES = ("test -f src/a", "grep -q good src/a")

Row = dict[str, object]


def write_contract(root: Path, *fixtures: str, scope_id: str = "core", allowed: str = "src/**") -> None:
    items = [f"  - {one}" for one in fixtures]
    lines = [
        "---",
        f"scope_id: {scope_id}",
        f"allowed_file_substrate: [{allowed}]",
        "e2e_verification_fixtures:",
        *items,
        "---",
        "",
    ]
    put(root, path_of("scope-contract", SLUG, scope_id), "\n".join(lines))


def make_repository(root: Path, *, with_git: bool = True) -> Path:
    root = Path(os.path.realpath(root))
    write_contract(root, *FIXTURES)
    put(root, ".gitignore", ".shapeup/\n")
    put(root, "src/a", "good")
    if with_git:
        git(root, "init", "-q", "-b", "main")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "start")
    return root


def attempt_of(root: Path, attempt: int = 1, scope_id: str = "core", *, round_: int = 1) -> Attempt:
    return Attempt(root, root, find_contract(root, scope_id, root), round_, attempt, 60.0, lambda: AT)


def score(root: Path, attempt: int = 1, scope_id: str = "core") -> Scored:
    return run_attempt(attempt_of(root, attempt, scope_id))


def rows(root: Path) -> list[Row]:
    path = root / path_of("trials", SLUG)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def artifacts(root: Path) -> list[Path]:
    return sorted((root / path_of("t0-verdict", SLUG, "x")).parent.glob("*.json"))


def note(root: Path, scope_id: str = "core") -> Path:
    return root / path_of("journal", SLUG, f"t0-{scope_id}.json")
