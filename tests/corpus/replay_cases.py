"""Finds recorded replays and tells what they recorded: the tree before, each step, the tree after it. Source: corpus README "Layout"."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("SHAPEUP_CORPUS", REPOSITORY.parent / "shared" / "corpus"))
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
OWN = REPOSITORY / "tests" / "data" / "replay"

Files = Mapping[str, bytes]


class Step(NamedTuple):
    """One recorded ingest: which result, whether it was accepted, and the files it left changed (None: removed)."""

    number: int
    path: str
    accepted: bool
    said: str  # what the reference complained about; empty when it did not
    changed: Mapping[str, bytes | None]

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem


class Case(NamedTuple):
    """One replay. `before` is without its results; `results` holds their bytes by path, where the case has them."""

    name: str
    folder: Path
    before: Files
    results: Files
    steps: tuple[Step, ...]
    checked: tuple[Step, ...]  # the same with attestation required; what each step changed is not recorded
    checked_final: Files

    def drops(self, *, checked: bool = False) -> tuple[Step, ...]:
        """The steps whose result exists, so that it can be dropped."""
        return tuple(step for step in (self.checked if checked else self.steps) if step.path in self.results)


def files_below(folder: Path) -> dict[str, bytes]:
    """Every regular file by POSIX path; links are left out."""
    found: dict[str, bytes] = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = Path(base, name)
            if path.is_file() and not path.is_symlink():
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def write_files(root: Path, files: Files) -> None:
    for path, data in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def is_result(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return len(parts) == 4 and parts[0] == ".shapeup" and parts[2] == "results"


def case_folders(base: Path) -> list[Path]:
    return sorted(folder.parent for folder in base.glob("*/steps.json"))


@cache
def load_case(folder: Path) -> Case:
    tree = files_below(folder / "before")
    return Case(
        folder.name,
        folder,
        {path: data for path, data in tree.items() if not is_result(path)},
        {path: data for path, data in tree.items() if is_result(path)},
        _steps(folder, "steps.json"),
        _steps(folder, "steps-receipt-checked.json"),
        files_below(folder / "checked-final"),
    )


def _steps(folder: Path, name: str) -> tuple[Step, ...]:
    path = folder / name
    return tuple(_step(folder, row) for row in json.loads(path.read_bytes())) if path.is_file() else ()


def _step(folder: Path, row: dict[str, Any]) -> Step:
    changed: dict[str, bytes | None] = dict.fromkeys(row.get("removed") or ())
    if row.get("after"):
        changed |= files_below(folder / row["after"])
    return Step(row["k"], row["argv"][2], row["exit"] == 0, row.get("stderr") or "", changed)


def recorded_states(case: Case) -> list[dict[str, bytes]]:
    """The recorded tree after each step, results left out."""
    now = dict(case.before)
    states = []
    for step in case.steps:
        for path, data in step.changed.items():
            if data is None:
                now.pop(path, None)
            else:
                now[path] = data
        states.append(dict(now))
    return states


def case_params() -> list[Any]:
    """Every replay as a parameter: our own everywhere, those of the corpus where there is one."""
    own = [pytest.param(folder, id=f"own-{folder.name}") for folder in case_folders(OWN)]
    return own + corpus_params(case_folders(CORPUS / "replay"), f"no replays below {CORPUS} (set SHAPEUP_CORPUS)")


def corpus_params(folders: list[Path], why_none: str) -> list[Any]:
    """Folders of the corpus as parameters; one that skips with the reason where there is none."""
    if not folders:
        return [pytest.param(None, id="absent", marks=[pytest.mark.corpus, pytest.mark.skip(reason=why_none)])]
    return [pytest.param(folder, id=folder.name, marks=pytest.mark.corpus) for folder in folders]
