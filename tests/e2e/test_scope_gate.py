"""Scope contracts are judged among their neighbours before they are committed: the index counts, not the disk. Source: ruling E9."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.living import shapeupd
from tests.reducers.lint_spec.feature import SPEC, contract, feature

RM = f"{SPEC}/scopes/rm.md"
OVERLAP = contract("rm", "UC-Rm", allowed="src/add/*, tests/rm.py")


def git(root: Path, *words: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    assert not ok or ran.returncode == 0, ran.stderr
    return ran


def write(root: Path, files: dict[str, str | None]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text or "")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for key in [key for key in os.environ if key.startswith(("GIT_", "SHAPEUP_ORDER"))]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "a")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")
    made = tmp_path / "repo"
    write(made, feature())
    write(made, {".shapeup/cart/orders/orient.json": "{}"})  # some order, so that the gate looks
    git(made, "init", "-q", "-b", "main", "--template=")
    assert shapeupd("--repo", os.fspath(made), "install").returncode == 0
    git(made, "add", "-A")
    git(made, "commit", "-q", "-m", "specs")
    return made


def test_a_contract_that_collides_with_another_is_refused_by_what_is_staged(root):
    write(root, {RM: OVERLAP})
    git(root, "add", RM)
    write(root, {RM: contract("rm", "UC-Rm")})
    refused = git(root, "commit", "-m", "overlap", ok=False)
    assert refused.returncode != 0
    assert f"{RM}: DISJOINT line 6: src/add/a.py may be written by add and rm" in refused.stderr
    git(root, "commit", "-q", "-a", "-m", "the disk is clean, and -a takes it", "--allow-empty")


def test_index_and_working_tree_get_one_verdict_and_the_board_counts(root):
    write(root, {RM: contract("rm", "UC-Add", "depends_on: [zzz]", "covers: [REQ-9]", "use_cases: [UC-Add, UC-9]")})
    worktree = shapeupd("--repo", os.fspath(root), "check", "--worktree")
    git(root, "add", RM)
    staged = shapeupd("--repo", os.fspath(root), "check", "--staged")
    assert (worktree.returncode, staged.returncode) == (1, 1)
    assert worktree.stdout == staged.stdout
    told = git(root, "commit", "-m", "x", ok=False).stderr
    for rule in ("SCOPE-PARTITION", "SCOPE-ANCHOR", "SCOPE-DEPS", "SCOPE-COVERS"):
        assert f"{RM}: {rule} " in staged.stdout
        assert f"{RM}: {rule} " in told


def test_a_linked_worktree_is_judged_by_its_own_index(root):
    linked = root.parent / "linked"
    git(root, "worktree", "add", "-q", os.fspath(linked))
    write(linked, {RM: OVERLAP})
    git(linked, "add", RM)
    assert "DISJOINT" in git(linked, "commit", "-m", "x", ok=False).stderr
    write(linked, {RM: contract("rm", "UC-Rm", "covers: []")})
    git(linked, "commit", "-q", "-a", "-m", "fine")


def test_a_new_contract_with_its_new_use_case_passes(root):
    write(root, {f"{SPEC}/scopes/ui.md": contract("ui", "UC-Ui"), f"{SPEC}/spec/usecases/UC-Ui.md": "## Steps\n"})
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "ui")
