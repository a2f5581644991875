"""Every way past a hook, on a real git: which wall stops it, with the default install and with the strict one. Source: targets 14.

Each operation tries to bring a change of `docs/` into a branch while the one live order allows `src/cart/**` alone.
HOOK: the operation itself fails, no branch holds such a commit. PUSH: it succeeds, and `git push` is refused by pre-push.
SERVER: the local walls were taken away, and the server's pre-receive refuses. NOTHING: no branch ever holds such a commit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from tests.e2e.living import COMMAND, daemon

Wall = Literal["HOOK", "PUSH", "SERVER", "NOTHING"]


class Operation(NamedTuple):
    """`script` runs in the clone under `sh -e`; `$OUT` is a commit on no branch that changes docs/, child of main."""

    name: str
    script: str
    default: Wall
    strict: Wall


WRITE = "mkdir -p docs && echo change >docs/x && git add docs"
# A branch that could only be made past the hooks, and a main that moved on.
SIDE = "git -c core.hooksPath=/dev/null branch side $OUT; echo 2 >src/cart/m; git add src; git commit -qm m"
MERGING = (
    "git checkout -q -b side; echo 1 >src/cart/s; git add src; git commit -qm s; git checkout -q main; "
    "echo 2 >src/cart/m; git add src; git commit -qm m; git merge -q --no-ff --no-commit side"
)
HOOKS = "hooks=$(git rev-parse --git-common-dir)/hooks"

OPERATIONS = (
    Operation("commit", f"{WRITE}; git commit -qm x", "HOOK", "HOOK"),
    Operation("commit -a", "echo change >>docs/old; git commit -qam x", "HOOK", "HOOK"),
    Operation("commit -i", "echo change >>docs/old; git commit -qm x -i docs/old", "HOOK", "HOOK"),
    Operation("commit -o", "echo change >>docs/old; git commit -qm x -o docs/old", "HOOK", "HOOK"),
    Operation(
        "commit --amend", f"git commit -qm mine --allow-empty; {WRITE}; git commit -q --amend -m x", "HOOK", "HOOK"
    ),
    Operation("commit from a subfolder", f"{WRITE}; cd src; git commit -qm x", "HOOK", "HOOK"),
    Operation("commit --no-verify", f"{WRITE}; git commit -qm x --no-verify", "HOOK", "HOOK"),
    Operation("commit -n -a", "echo change >>docs/old; git commit -n -qam x", "HOOK", "HOOK"),
    Operation("commit -n --amend", f"{WRITE}; git commit -n -q --amend -m x", "HOOK", "HOOK"),
    Operation("commit -C", f"{WRITE}; git commit -q -C HEAD", "HOOK", "HOOK"),
    Operation("commit --fixup", f"{WRITE}; git commit -q --fixup HEAD", "HOOK", "HOOK"),
    Operation(
        "commit with another index",
        f"export GIT_INDEX_FILE=$PWD/../index; git read-tree HEAD; {WRITE}; git commit -qm x",
        "HOOK",
        "HOOK",
    ),
    Operation(
        "commit with GIT_DIR",
        f"{WRITE}; top=$PWD; cd /; git --git-dir=$top/.git --work-tree=$top commit -qm x",
        "HOOK",
        "HOOK",
    ),
    Operation(
        "commit in a linked worktree",
        f"git worktree add -q ../wt -b side; cd ../wt; {WRITE}; git commit -qm x",
        "HOOK",
        "HOOK",
    ),
    Operation(
        "commit -n in a linked worktree",
        f"git worktree add -q ../wt -b side; cd ../wt; {WRITE}; git commit -n -qm x",
        "HOOK",
        "HOOK",
    ),
    Operation(
        "commit on a detached HEAD, then branch",
        f"git checkout -q --detach; {WRITE}; git commit -qm x; git branch side",
        "HOOK",
        "HOOK",
    ),
    Operation(
        "commit on an orphan branch",
        f"git checkout -q --orphan fresh; git rm -rqf --cached .; {WRITE}; git commit -qm x",
        "HOOK",
        "HOOK",
    ),
    Operation("apply --index", "git diff main $OUT | git apply --index; git commit -qm x", "HOOK", "HOOK"),
    Operation(
        "stash pop, then commit", f"{WRITE}; git stash -q; git stash pop -q --index; git commit -qm x", "HOOK", "HOOK"
    ),
    Operation("stash alone", f"{WRITE}; git stash -q", "NOTHING", "NOTHING"),
    Operation(
        "core.hooksPath on the command line", f"{WRITE}; git -c core.hooksPath=/dev/null commit -qm x", "PUSH", "PUSH"
    ),
    Operation(
        "core.hooksPath by environment",
        f"{WRITE}; GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=/dev/null git commit -qm x",
        "PUSH",
        "PUSH",
    ),
    Operation("chmod -x pre-commit", f"{HOOKS}; chmod -x $hooks/pre-commit; {WRITE}; git commit -qm x", "HOOK", "HOOK"),
    Operation(
        "chmod -x all but pre-push",
        f"{HOOKS}; for hook in $hooks/*; do case $hook in */pre-push) ;; *) chmod -x $hook;; esac; done; {WRITE}; git commit -qm x",
        "PUSH",
        "PUSH",
    ),
    Operation("chmod -x every hook", f"{HOOKS}; chmod -x $hooks/*; {WRITE}; git commit -qm x", "SERVER", "SERVER"),
    Operation("rm every hook", f"{HOOKS}; rm -r $hooks; {WRITE}; git commit -qm x", "SERVER", "SERVER"),
    Operation("cherry-pick", "git cherry-pick $OUT", "PUSH", "HOOK"),
    Operation("cherry-pick of a range", "git cherry-pick main..$OUT", "PUSH", "HOOK"),
    Operation("cherry-pick -n, then commit", "git cherry-pick -n $OUT; git commit -qm x", "HOOK", "HOOK"),
    Operation("revert", "git revert --no-edit $ADDED", "HOOK", "HOOK"),
    Operation("revert -n, then commit", "git revert -n $ADDED; git commit -qm x", "HOOK", "HOOK"),
    Operation("merge --no-ff", "git merge -q --no-ff -m x $OUT", "PUSH", "HOOK"),
    Operation("merge --no-verify", "git merge -q --no-ff --no-verify -m x $OUT", "PUSH", "HOOK"),
    Operation("merge --ff", "git merge -q --ff-only $OUT", "PUSH", "HOOK"),
    Operation("merge --squash, then commit", "git merge -q --squash $OUT; git commit -qm x", "HOOK", "HOOK"),
    Operation("an edit inside a merge", f"{MERGING}; {WRITE}; git commit -qm x", "HOOK", "HOOK"),
    Operation("an edit inside a merge, -n", f"{MERGING}; {WRITE}; git commit -n -qm x", "HOOK", "HOOK"),
    Operation("reset --hard", "git reset -q --hard $OUT", "PUSH", "HOOK"),
    Operation("branch -f", "git branch -f side $OUT", "PUSH", "HOOK"),
    Operation("switch -C", "git switch -q -C side $OUT", "PUSH", "HOOK"),
    Operation("checkout -B", "git checkout -q -B main $OUT", "PUSH", "HOOK"),
    Operation("worktree add at a commit", "git worktree add -q -b side ../wt $OUT", "PUSH", "HOOK"),
    Operation("update-ref", "git update-ref refs/heads/main $OUT", "PUSH", "HOOK"),
    Operation("update-ref --stdin", "echo update refs/heads/side $OUT | git update-ref --stdin", "PUSH", "HOOK"),
    Operation(
        "commit-tree",
        f"{WRITE}; commit=$(git commit-tree -m x -p HEAD $(git write-tree)); git update-ref HEAD $commit",
        "PUSH",
        "HOOK",
    ),
    Operation(
        "fast-import",
        "printf 'commit refs/heads/side\\ncommitter a <a@b> 1800000000 +0000\\ndata 1\\nx\\nfrom refs/heads/main^0\\nM 100644 inline docs/x\\ndata 1\\nx\\n\\n' | git fast-import --quiet",
        "PUSH",
        "HOOK",
    ),
    Operation("fetch into a branch", "git push -q --no-verify . $OUT:refs/heads/side", "PUSH", "HOOK"),
    Operation("rebase", f"{SIDE}; git rebase -q main side", "PUSH", "PUSH"),
    Operation("rebase --no-verify", f"{SIDE}; git rebase -q --no-verify main side", "PUSH", "PUSH"),
    Operation("rebase --apply", f"{SIDE}; git rebase -q --apply main side", "PUSH", "PUSH"),
    Operation("am", "git format-patch -q -1 --stdout $OUT >../patch; git am -q ../patch", "PUSH", "HOOK"),
    Operation(
        "push --no-verify",
        f"{WRITE}; git -c core.hooksPath=/dev/null commit -qm x; {HOOKS}; rm $hooks/pre-push",
        "SERVER",
        "SERVER",
    ),
    Operation(
        "another clone without hooks",
        f"git clone -q . ../other; cd ../other; {WRITE}; git commit -qm x; git push -q {{origin}} HEAD:refs/heads/side",
        "SERVER",
        "SERVER",
    ),
    Operation(
        "a dead Python",
        f'{HOOKS}; sed -i "s|{sys.executable}|/nowhere/python|" $hooks/*; {WRITE}; git commit -qm x',
        "HOOK",
        "HOOK",
    ),
    Operation(
        "a forged trailer",
        f"{WRITE}; git commit -q --no-verify -m 'x\n\nShapeup-Order: cart/never-r1-a1'",
        "HOOK",
        "HOOK",
    ),
    Operation("an override without a terminal", f"{WRITE}; SHAPEUP_OVERRIDE=because git commit -qm x", "HOOK", "HOOK"),
    Operation(
        "the policy widened by hand",
        f"printf 'shapeupd-policy 1 open 1 x\\n.\\n' >.shapeup/policy.paths; touch .shapeup/policy.paths; {WRITE}; git -c core.hooksPath=/dev/null commit -qm x",
        "PUSH",
        "PUSH",
    ),
)


ENV = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith(("GIT_", "SHAPEUP", "HUSKY", "LEFTHOOK", "XDG_"))
} | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
ENV |= {
    f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in (("NAME", "a"), ("EMAIL", "a@b"))
}
ENV |= {"GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": "true"}

TEAM = '[gate]\nrequire_trailer = ["refs/heads/**"]\n'


def git(folder: Path, *args: str, **more: Any) -> str:
    done = subprocess.run(["git", *args], cwd=folder, env=ENV, capture_output=True, text=True, check=True, **more)
    return done.stdout.strip()


class Site(NamedTuple):
    """A server, a clone with one live order, and two commits to smuggle."""

    root: Path

    @property
    def clone(self) -> Path:
        return self.root / "clone"

    @property
    def server(self) -> Path:
        return self.root / "server.git"

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        facts = dict(line.split("=", 1) for line in (self.root / "facts").read_text().splitlines())
        script = script.replace("{origin}", str(self.server))
        return subprocess.run(
            ["sh", "-ec", script],
            cwd=self.clone,
            env=ENV | facts,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def smuggled(self, repository: Path) -> dict[str, str]:
        """The commits that change docs/ and are on a branch, by branch; what was there from the start left out."""
        found = {}
        for line in git(repository, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads").splitlines():
            name, tip = line.split()
            new = git(repository, "rev-list", tip, "^" + git(self.server, "rev-parse", "refs/heads/base"), "--", "docs")
            if new:
                found[name] = new.split()[0]
        return found

    def push(self, branch: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "push", "-q", "origin", f"{branch}:{branch}-pushed"]
        return subprocess.run(command, cwd=self.clone, env=ENV, capture_output=True, text=True, check=False, timeout=60)


def build(root: Path, *, strict: bool, team: str = "") -> Site:
    site = Site(root)
    git(root, "init", "-q", "--bare", "-b", "main", str(site.server))
    git(root, "init", "-q", "-b", "main", str(site.clone))
    for path, text in (
        (".gitignore", ".shapeup/\n"),
        ("src/cart/a", "a\n"),
        ("docs/old", "old\n"),
        (".shapeupd.toml", team),
    ):
        (site.clone / path).parent.mkdir(parents=True, exist_ok=True)
        (site.clone / path).write_text(text)
    git(site.clone, "add", ".")
    git(site.clone, "commit", "-qm", "base")
    (site.clone / "docs" / "later").write_text("later\n")
    git(site.clone, "add", ".")
    git(site.clone, "commit", "-qm", "before the order")
    added = git(site.clone, "rev-parse", "HEAD")
    git(site.clone, "remote", "add", "origin", "../server.git")
    git(site.clone, "push", "-q", "origin", "main", "main:base")
    order = {
        "schema_version": 1,
        "order_id": "cart/core-r1-a1",
        "compiled_at": "2026-03-01T10:00:00.000Z",
        "worker": "task-executor",
        "mode": "orchestrated",
        "operation": "execute",
        "substrate": {"allowed": ["src/cart/**"]},
        "payload": {},
    }
    path = site.clone / ".shapeup/cart/orders/core-r1-a1.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(order))
    words = ["install", "--strict"] if strict else ["install"]
    for command in (words, ["run", "--once"]):
        subprocess.run([*COMMAND, *command], cwd=site.clone, env=ENV, capture_output=True, check=True)
    (site.clone / "docs" / "x").write_text("change\n")
    git(site.clone, "add", ".")
    tree, later = git(site.clone, "write-tree"), int(path.stat().st_mtime) + 1  # git knows whole seconds
    dated = ENV | {"GIT_COMMITTER_DATE": f"@{later} +0000"}
    words = ["git", "commit-tree", "-m", "out", "-p", "HEAD", tree]
    done = subprocess.run(words, cwd=site.clone, env=dated, capture_output=True, text=True, check=True)
    out = done.stdout.strip()
    git(site.clone, "reset", "-q", "--hard")
    (root / "facts").write_text(f"OUT={out}\nADDED={added}\n")
    hook = site.server / "hooks" / "pre-receive"
    hook.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -m daemon hook pre-receive\n')
    hook.chmod(0o755)
    return site


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[bool, bool], Path]:
    """One site for each install and each kind of team, copied for every operation."""
    found = {}
    for strict in (False, True):
        for guarded in (False, True):
            root = tmp_path_factory.mktemp("model")
            found[strict, guarded] = build(root, strict=strict, team=TEAM if guarded else "").root
    return found


@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=[operation.name for operation in OPERATIONS])
def test_every_way_past_a_hook_meets_its_wall(
    operation: Operation, strict: bool, models: dict[tuple[bool, bool], Path], tmp_path: Path
) -> None:
    wall = operation.strict if strict else operation.default
    shutil.copytree(models[strict, wall == "SERVER"], tmp_path / "site", symlinks=True)
    site = Site(tmp_path / "site")
    done = site.run(operation.script)
    told = f"{operation.name}: {done.returncode}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in told
    held = site.smuggled(site.clone)
    if wall in ("HOOK", "NOTHING"):
        assert not held, told
        assert (done.returncode != 0) == (wall == "HOOK"), told
        assert "shapeupd:" in done.stderr or wall == "NOTHING", told
        return
    for branch in held:
        pushed = site.push(branch)
        assert pushed.returncode != 0, told + pushed.stderr
        assert "docs/" in pushed.stderr or "Shapeup-Order" in pushed.stderr, told + pushed.stderr
    assert "refs/heads/base" in git(site.server, "for-each-ref")
    assert not site.smuggled(site.server), told
    assert held or "pre-receive hook declined" in done.stderr, told


def test_the_matrix_has_every_operation_of_the_target() -> None:
    assert len(OPERATIONS) >= 37
    assert all(operation.strict == "HOOK" for operation in OPERATIONS if operation.default == "HOOK")


@pytest.mark.parametrize("name", ["core.hooksPath on the command line", "chmod -x every hook", "update-ref"])
def test_what_slips_past_every_hook_is_told_by_the_daemon(
    name: str, models: dict[tuple[bool, bool], Path], tmp_path: Path
) -> None:
    shutil.copytree(models[False, False], tmp_path / "site", symlinks=True)
    site = Site(tmp_path / "site")
    with daemon(site.clone) as living:
        done = site.run(next(operation.script for operation in OPERATIONS if operation.name == name))
        assert done.returncode == 0, done.stderr
        (commit,) = site.smuggled(site.clone).values()
        row = living.wait_for("commit.bypassed", commit)
    assert "OUTSIDE" in row["rules"]
