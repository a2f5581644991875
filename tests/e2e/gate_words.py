"""How tests start `shapeupd gate` as a user would, and read what it recorded."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from parsers.ledgers import parse_rows
from parsers.round_ledger import parse_round_ledger
from tests.e2e.living import COMMAND, SLUG

PATIENCE_S = 60.0

GATES_PATH = f".shapeup/{SLUG}/gates.jsonl"
LEDGER_PATH = f"shapeup/{SLUG}/round-ledger.md"
RUN_ANSWERS = f".shapeup/{SLUG}/gate-answers.json"
MACHINE_ANSWERS = ".shapeup/gate-answers.json"
INTENT = f".shapeup/{SLUG}/journal/gate.json"
GIT = {"HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def gate(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """One `shapeupd gate …`, to its end."""
    return subprocess.run(
        [*COMMAND, "gate", *words], capture_output=True, text=True, cwd=cwd, timeout=PATIENCE_S, check=False
    )


def new_repository(folder: Path) -> Path:
    """A repository with one commit, that git has told to ignore the LOCAL tree."""
    git(folder, "init", "-q", "-b", "main")
    write(folder, ".gitignore", "/.shapeup/\n")
    git(folder, "add", ".")
    commit(folder)
    return folder


def git(folder: Path, *words: str) -> None:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    subprocess.run(["git", "-C", folder, *words], env={**clean, **GIT}, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgSign=false", "commit", "-qm", "x")


def write(root: Path, path: str, content: object) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content if isinstance(content, str) else json.dumps(content))
    return target


def answers(**decisions: str) -> dict[str, Any]:
    given = {name.replace("_", "."): {"decision": decision} for name, decision in decisions.items()}
    return {"version": 1, "preset": "custom", "authorized_by": "ada", "answers": given}


def resolve(root: Path, gate_id: str, *words: str) -> tuple[int, dict[str, Any] | None, str]:
    ran = gate("resolve", gate_id, *words, "--json", cwd=root)
    return ran.returncode, json.loads(ran.stdout) if ran.stdout else None, ran.stderr


def gates_of(root: Path) -> list[tuple[object, ...]]:
    path = root / GATES_PATH
    rows = parse_rows(path.read_bytes()) if path.exists() else ()
    return [(row["gate"], row["status"], row.get("round")) for row in rows]


def crossings_of(root: Path) -> list[tuple[str, ...]]:
    path = root / LEDGER_PATH
    rows = parse_round_ledger(path.read_bytes()).rows if path.exists() else ()
    return [(row.decision.question, row.decision.answer, row.decision.resolved_by) for row in rows if row.decision]
