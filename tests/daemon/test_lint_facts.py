"""What the lints look at, from the disk, an index and a commit; what the log is told when specs change. Source: design §2, ruling E9."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from daemon.disk import DiskTree
from daemon.lint_facts import GitTree, TwoTrees, project_files
from daemon.spec_keeper import MOST_ROWS, SpecKeeper
from hooks.git import GitFailed, scrubbed_env
from parsers.tree import Unreadable
from reducers.lint_spec.commit_rules import scope_findings
from reducers.lint_spec.facts import read_scope_facts, read_spec_facts
from reducers.lint_spec.lint import lint_spec
from tests.reducers.lint_spec.feature import BOARD, SPEC, contract, feature

RM = f"{SPEC}/scopes/rm.md"
OVERLAP = contract("rm", "UC-Rm", allowed="src/add/*, tests/rm.py")


def lay_out(root: Path, files: dict[str, str | None]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text or "")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lay_out(tmp_path, feature())
    return tmp_path


def git(root: Path, *words: str) -> str:
    env = scrubbed_env() | {"GIT_CONFIG_GLOBAL": os.devnull, "HOME": os.fspath(root)}
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    return subprocess.run(["git", *who, *words], cwd=root, env=env, check=True, capture_output=True, text=True).stdout


# --- where the files come from ---------------------------------------------------------------------------------------


def test_the_project_is_all_but_git_modules_and_the_local_tree(root):
    lay_out(root, {".git/config": "", "node_modules/a/b.js": "", "lib/node_modules/c.js": "", ".github/x.yml": ""})
    (root / "link").symlink_to("src")
    files = project_files(root)
    assert {".github/x.yml", "link", "src/add/a.py", RM} < set(files)
    assert not [path for path in files if path.startswith((".git/", ".shapeup/", "link/")) or "node_modules" in path]
    assert list(files) == sorted(files)


def test_a_folder_that_cannot_be_listed_holds_nothing(root):
    assert project_files(root / "nowhere") == ()


def test_the_index_and_the_commit_are_linted_like_the_disk(root):
    git(root, "init", "-q")
    git(root, "add", "--force", "--", "shapeup", "src")
    git(root, "commit", "-q", "-m", "specs")
    lay_out(root, {RM: OVERLAP})
    git(root, "add", "--", RM)
    lay_out(root, feature())  # the disk is clean again; what is staged is not
    git_dir = os.fspath(root / ".git")
    disk = DiskTree(root)
    staged, head = GitTree.of_index(git_dir, f"{git_dir}/index"), GitTree.of_commit(git_dir, "HEAD")
    assert staged.files == head.files == project_files(root)
    assert staged.list(f"{SPEC}/scopes") == disk.list(f"{SPEC}/scopes") == ("add.md", "rm.md")
    assert staged.list("nowhere") == ()
    found = {
        name: [
            one.rule for one in lint_spec(read_spec_facts(TwoTrees(tree, disk), "cart", project_files(root))).findings
        ]
        for name, tree in {"disk": disk, "staged": staged, "head": head}.items()
    }
    assert found == {"disk": [], "staged": ["DISJOINT"], "head": []}
    assert set(scope_findings(read_scope_facts(TwoTrees(staged, disk), "cart", staged.files))) == {
        f"{SPEC}/scopes/add.md",
        RM,
    }
    staged.close()
    head.close()


def test_links_and_missing_blobs_in_git_are_no_absent_files(root):
    git(root, "init", "-q")
    (root / "link.md").symlink_to("nowhere")
    git(root, "add", "--", "link.md", "src/add/a.py")
    git_dir = os.fspath(root / ".git")
    tree = GitTree.of_index(git_dir, f"{git_dir}/index")
    assert tree.read("absent") is None
    with pytest.raises(Unreadable):
        tree.read("link.md")
    tree.close()
    (root / "src/rm/a.py").write_text("lost")
    git(root, "add", "--", "src/rm/a.py")
    blob = git(root, "hash-object", "src/rm/a.py").strip()
    (root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    lost = GitTree.of_index(git_dir, f"{git_dir}/index")
    with pytest.raises(GitFailed):
        lost.read("src/rm/a.py")
    lost.close()


# --- what the log is told --------------------------------------------------------------------------------------------


class Heard:
    """A log that keeps its rows."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, dict[str, Any]]] = []

    def write(self, event: str, *, level: str, slug: str, subject: str, **fields: Any) -> None:
        self.rows.append((event, subject, {"level": level, **fields}))

    def take(self) -> list[tuple[str, str]]:
        told = [(event, subject) for event, subject, _ in self.rows]
        self.rows.clear()
        return told


def keeper(root: Path) -> tuple[SpecKeeper, Heard]:
    heard = Heard()
    return SpecKeeper(DiskTree(root), "cart", heard), heard  # type: ignore[arg-type]


def test_what_stands_at_the_start_is_told_in_one_row(root):
    lay_out(root, {RM: OVERLAP, f"{SPEC}/notes.md": "TASK-1\n"})
    kept, heard = keeper(root)
    kept.keep(())
    assert heard.rows == [("lint.standing", "cart", {"level": "warn", "red": 2, "warn": 0})]
    kept.keep((RM,))
    assert heard.take() == [("lint.standing", "cart")]


def test_a_change_tells_what_it_brings_and_what_it_takes_away(root):
    kept, heard = keeper(root)
    kept.keep(())
    assert heard.rows == []
    lay_out(root, {RM: OVERLAP})
    kept.keep((RM,))
    ((event, subject, fields),) = heard.rows
    assert (event, subject, fields["rule"], fields["scope"]) == ("lint.found", f"{RM}:6", "DISJOINT", "add+rm")
    heard.take()
    lay_out(root, feature())
    kept.keep((RM,))
    assert heard.take() == [("lint.cleared", f"{RM}:6")]


def test_new_files_of_the_feature_are_seen_and_other_files_set_nothing_in_motion(root):
    kept, heard = keeper(root)
    kept.keep(())
    lay_out(root, {f"{SPEC}/spec/usecases/UC-New.md": "# New\n"})
    kept.keep((f"{BOARD}/tasks/TASK-1.md", f"{BOARD}/results/x.json"))
    assert heard.rows == []
    kept.keep((f"{SPEC}/spec/usecases/UC-New.md",))
    assert heard.take() == [("lint.found", f"{SPEC}/spec/usecases/UC-New.md")]


def test_many_findings_are_told_in_part(root):
    kept, heard = keeper(root)
    kept.keep(())
    lay_out(root, {f"{SPEC}/scope-board.md": "TASK-1\n" * (MOST_ROWS + 5)})
    kept.keep((f"{SPEC}/scope-board.md",))
    *rows, last = heard.rows
    assert [event for event, _, _ in rows] == ["lint.found"] * MOST_ROWS
    assert (last[0], last[2]["more"]) == ("lint.standing", 5)


def test_a_run_without_specs_costs_and_tells_nothing(tmp_path):
    lay_out(tmp_path, {f"{BOARD}/intake.md": "x"})
    kept, heard = keeper(tmp_path)
    kept.keep(())
    lay_out(tmp_path, {f"{SPEC}/scope-board.md": "TASK-1\n"})
    kept.keep((f"{SPEC}/scope-board.md",))
    assert ("lint.found", f"{SPEC}/scope-board.md:1") in heard.take()
