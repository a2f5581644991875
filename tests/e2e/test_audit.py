"""A real daemon and a real git: what hooks are bypassed for is seen anyway, once, and said with a fix. Source: rulings E6, E16, targets 14."""

import json
import os
import signal
import subprocess
from datetime import UTC, datetime

import pytest

from daemon.sockets import ask
from hooks.git import scrubbed_env
from tests.e2e.living import COMMAND, PATIENCE_S, SmallRun, daemon, shapeupd

ENV = {
    **scrubbed_env(),
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_EDITOR": "true",
}


class Repository:
    """A git repository with one commit, and the run of living.py in it."""

    def __init__(self, root):
        self.root = root
        self.git("init", "-q", "-b", "main")
        (root / ".gitignore").write_text(".shapeup/\n")
        self.base = self.commit("base", {".gitignore": ".shapeup/\n", "src/a": "1", "docs/a": "1"})

    def git(self, *words, cwd=None, stdin=None, **env):
        done = subprocess.run(
            ["git", *words],
            cwd=cwd or self.root,
            input=stdin,
            capture_output=True,
            text=True,
            env=ENV | env,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def commit(self, message, files, *words, cwd=None):
        for name, text in files.items():
            target = (cwd or self.root) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-q", "--no-verify", "-m", message, *words, cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd)

    def order(self, stem="a-r1-a1", **substrate):
        """An order that is live from now on."""
        at = datetime.now(UTC).isoformat()  # noqa: TID251
        SmallRun(self.root).order(
            stem,
            compiled_at=at,
            substrate={"allowed": ["src/**"], "shared": [], "frozen": [], "append_only": []} | substrate,
        )

    def verdicts(self):
        path = self.root / ".shapeup" / "commits.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return {row["commit"]: row["verdict"] for row in rows}


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "repo").mkdir()
    return Repository(tmp_path / "repo")


def audit(root):
    """Everything committed before this call is recorded when it returns."""
    answer = ask(root, "audit", timeout_s=PATIENCE_S)
    assert answer == {"audited": True}


def govern(living, repository, **substrate):
    audit(repository.root)
    repository.order(**substrate)
    living.wait_for("order.admitted")
    living.sync()


def said(living):
    return [(row["event"], row["subject"]) for row in living.rows if row["event"].startswith("commit.")]


def test_each_way_past_the_hooks_is_seen_and_each_commit_is_said_once(repository, tmp_path):
    with daemon(repository.root) as living:
        govern(living, repository)
        bad = repository.commit("sneaky", {"docs/a": "2"})
        row = living.wait_for("commit.bypassed", bad)
        assert (row["rules"], row["paths"], row["branch"]) == (["OUTSIDE"], ["docs/a"], "main")
        assert "fix: git restore" in row["error"]

        clean = repository.commit("work", {"src/a": "2"})
        living.wait_for("commit.audited", clean)

        (repository.root / ".git" / "shapeupd").mkdir()
        noted = repository.commit("noted", {"src/a": "3"})
        with (repository.root / ".git" / "shapeupd" / "accepts").open("a") as notes:
            notes.write(f"{noted} -\n")
        living.wait_for("commit.accepted", noted)

        repository.git("commit", "-q", "--amend", "--no-verify", "--allow-empty", "-m", "amended")
        amended = repository.commit("amended", {"docs/b": "1"}, "--amend")
        living.wait_for("commit.bypassed", amended)

        plumbed = repository.git("commit-tree", f"{bad}^{{tree}}", "-p", repository.base, "-m", "plumbed")
        repository.git("update-ref", "refs/heads/plumbed", plumbed)
        assert living.wait_for("commit.bypassed", plumbed)["branch"] == "plumbed"

        stream = (
            f"commit refs/heads/imported\ncommitter Ada <a@example.org> {2_000_000_000} +0000\ndata 3\nbad\n"
            f"from {repository.base}\nM 100644 inline docs/imported\ndata 1\nx\n"
        )
        repository.git("fast-import", "--quiet", stdin=stream)
        living.wait_for("commit.bypassed", repository.git("rev-parse", "imported"))

        linked = tmp_path / "linked"
        repository.git("worktree", "add", "-q", "--detach", os.fspath(linked))
        inside = repository.commit("in a linked worktree", {"docs/linked": "1"}, cwd=linked)
        living.wait_for("commit.bypassed", inside)
        audit(repository.root)
        heard = said(living)
        assert len(heard) == len(set(heard)) == len(repository.verdicts())
        shown = shapeupd("--repo", os.fspath(repository.root), "log", "-n", "100").stdout
        assert f"commit.bypassed   {bad[:12]}" in shown
        assert "on main · OUTSIDE · docs/a" in shown


def test_fetched_merged_and_rebased_work_is_no_bypass(repository, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    repository.git("clone", "-q", os.fspath(repository.root), os.fspath(elsewhere))
    theirs = repository.commit("theirs", {"docs/theirs": "1"}, cwd=elsewhere)
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit("ungoverned", {"docs/topic": "1"})
    repository.git("checkout", "-q", "main")
    with daemon(repository.root) as living:
        govern(living, repository)
        repository.git("remote", "add", "origin", os.fspath(elsewhere))
        repository.git("fetch", "-q", "origin")
        repository.git("merge", "-q", "--ff-only", "origin/main")
        assert repository.git("rev-parse", "main") == theirs
        audit(repository.root)
        repository.git("checkout", "-q", "topic")
        repository.git("rebase", "-q", "main")
        audit(repository.root)
        assert said(living) == []


def test_what_was_committed_while_the_daemon_was_down_is_judged_when_it_comes_back(repository):
    with daemon(repository.root) as living:
        govern(living, repository)
        assert living.stop() == 0
    bad = repository.commit("sneaky", {"docs/a": "2"})
    with daemon(repository.root) as living:
        living.wait_for("commit.bypassed", bad)
        living.stop(signal.SIGKILL)
    with daemon(repository.root) as living:
        audit(repository.root)
        assert said(living) == []


def test_a_wiped_local_tree_under_a_living_daemon_is_a_new_start(repository, tmp_path):
    with daemon(repository.root) as living:
        govern(living, repository)
        bad = repository.commit("sneaky", {"docs/a": "2"})
        living.wait_for("commit.bypassed", bad)
        (repository.root / ".shapeup").rename(tmp_path / "wiped")  # at once: the daemon goes on writing
        repository.order("b-r1-a1", allowed=["docs/**"])
        living.wait_for("order.admitted", "cart/b-r1-a1")
        audit(repository.root)
        outside = repository.commit("elsewhere", {"src/a": "2"})
        living.wait_for("commit.bypassed", outside)
        assert repository.verdicts().keys() == {outside}


def test_what_installed_hooks_let_pass_is_accepted_and_what_goes_round_them_is_not(repository):
    with daemon(repository.root) as living:
        govern(living, repository)
        assert shapeupd("--repo", os.fspath(repository.root), "install").returncode == 0
        for name in ("src/a", "docs/a"):
            (repository.root / name).write_text("2")
        repository.git("commit", "-q", "-m", "work", "--", "src/a")
        living.wait_for("commit.accepted", repository.git("rev-parse", "HEAD"))
        refused = subprocess.run(
            ["git", "commit", "-qm", "x", "--", "docs/a"], cwd=repository.root, env=ENV, check=False
        )
        assert refused.returncode != 0
        assert living.events("commit.bypassed") == []
        repository.git("-c", "core.hooksPath=/nonexistent", "commit", "-q", "-m", "round", "--", "docs/a")
        living.wait_for("commit.bypassed", repository.git("rev-parse", "HEAD"))


def test_record_audits_alone_where_no_daemon_lives(repository):
    with daemon(repository.root) as living:
        govern(living, repository)
        assert living.stop() == 0
    bad = repository.commit("sneaky", {"docs/a": "2"})
    done = shapeupd("--repo", os.fspath(repository.root), "record", "--audit")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert repository.verdicts() == {bad: "bypassed"}
    with daemon(repository.root) as living:
        done = shapeupd("--repo", os.fspath(repository.root), "record", "--audit")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert said(living) == []


def test_record_leaves_no_tree_where_nothing_of_ours_is(repository):
    assert shapeupd("--repo", os.fspath(repository.root), "record", "--audit").returncode == 0
    assert not (repository.root / ".shapeup").exists()


def test_outside_git_there_is_nothing_to_audit(tmp_path):
    assert shapeupd("--repo", os.fspath(tmp_path), "record", "--audit").returncode == 0
    with daemon(tmp_path) as living:
        assert ask(tmp_path, "audit", timeout_s=PATIENCE_S) == {"audited": False}
        assert living.events("daemon.error") == []


def record(root, row, **env):
    text = row if isinstance(row, str) else json.dumps(row)
    command = [*COMMAND, "--repo", os.fspath(root), "record"]
    return subprocess.run(command, input=text, capture_output=True, text=True, env={**os.environ, **env}, check=False)


def test_a_refused_commit_is_one_event_in_the_log(repository):
    violation = {"rule": "OUTSIDE", "path": "docs/a", "order_id": None, "what": "w", "why": "y", "fix": "f"}
    row = {"event": "commit.rejected", "hook": "pre-commit", "rules": ["OUTSIDE"], "violations": [violation]}
    assert record(repository.root, row, GIT_DIR="/nonexistent").returncode == 0
    (logged,) = [json.loads(line) for line in (repository.root / ".shapeup" / "shapeupd.log").read_text().splitlines()]
    assert (logged["event"], logged["level"], logged["hook"]) == ("commit.rejected", "warn", "pre-commit")
    assert (logged["rules"], logged["paths"]) == (["OUTSIDE"], ["docs/a"])


@pytest.mark.parametrize(("name", "file"), [("build-7", "build-7"), ("../../x", "local"), ("", "local")])
def test_an_override_is_an_event_and_a_pathology_row(repository, name, file):
    row = {"event": "hook.override", "hook": "pre-commit", "reason": "the site is down", "subject": "cart/a-r1-a1"}
    assert record(repository.root, row, HOSTNAME=name).returncode == 0
    (line,) = (repository.root / ".shapeup" / "metrics" / f"{file}.jsonl").read_text().splitlines()
    pathology = json.loads(line)
    assert pathology.pop("at").endswith("Z")
    assert pathology == {
        "schema_version": 1,
        "kind": "pathology",
        "pathology": "SAFETY-OVERRIDE",
        "category": "commit-gate",
        "tool": "git",
        "command": "git commit",
        "note": "the site is down",
    }
    shown = shapeupd("--repo", os.fspath(repository.root), "log", "-n", "1").stdout
    assert "hook.override" in shown
    assert "the site is down" in shown


@pytest.mark.parametrize(
    "row", ["", "nonsense", "[]", '{"event": "result.applied"}', '{"event": ["commit.rejected"]}', "[" * 9999]
)
def test_what_is_no_row_of_a_hook_is_refused_without_a_traceback(repository, row):
    done = record(repository.root, row)
    assert done.returncode == 2
    assert done.stderr.startswith("shapeupd: one JSON object")
    assert "Traceback" not in done.stderr
    assert not (repository.root / ".shapeup").exists()
