"""The audit: what appears on branches and HEADs is judged once, whole, by the policy of its time. Source: rulings E5, E6, E15, E16, targets 14."""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from daemon.commits.audit import Audit
from daemon.commits.memory import read_memory
from daemon.commits.record import CommitRecord
from daemon.commits.ref_stamp import FILES, RefStamps
from daemon.log import Log
from daemon.place import Place
from hooks.git import scrubbed_env
from parsers.policy_file import Contract, Policy

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
    "GIT_MERGE_AUTOEDIT": "no",
}
NOON = datetime(2030, 3, 1, 12, 0, 0, tzinfo=UTC)  # long after the files of this test are written: no grace, no doubt
CART = Contract("cart/a-r1-a1", "execute", allowed=("src/**",), frozen=("src/frozen/**",))


class Orders:
    """Hand-written policies: contracts with the time from which each holds."""

    def __init__(self) -> None:
        self.live: list[tuple[datetime, Contract]] = []
        self.past: dict[str, Contract] = {}
        self.globs: tuple[str, ...] = ()
        self.asked: list[datetime] = []

    def admit(self, at: datetime, contract: Contract = CART) -> None:
        self.live.append((at, contract))

    def at(self, at: datetime, order_id: str | None, settings: bytes | None) -> Policy:
        self.asked.append(at)
        contracts = [contract for since, contract in self.live if since <= at]
        if order_id in self.past and order_id not in {contract.order_id for contract in contracts}:
            contracts.append(self.past[order_id])
        human = ("**",) if settings and b"human" in settings else ()
        return Policy("digest", tuple(contracts), human_globs=human)

    def live_since(self) -> datetime | None:
        return min((since for since, _ in self.live), default=None)

    def allow_paths(self) -> tuple[str, ...]:
        return self.globs


class Repository:
    """A repository with a baseline audited, and the audit of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.orders = Orders()
        self.now = NOON
        self.git("init", "-q", "-b", "main")
        self.base = self.commit("base", {"src/a": "1", "docs/a": "1"})
        self.open()

    def open(self) -> None:
        self.log = Log(self.root / ".shapeup", lambda: self.now)
        self.audit = Audit(Place(self.root, self.root / ".git"), lambda: self.orders, self.log)

    def git(self, *words: str, stdin: bytes | None = None, cwd: Path | None = None, **env: str) -> str:
        at = f"{int(self.now.timestamp())} +0000"
        dates = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.root, input=stdin, capture_output=True, env=ENV | dates | env, check=False
        )
        assert done.returncode == 0, (words, done.stderr.decode(errors="replace"))
        return done.stdout.decode(errors="surrogateescape").strip()

    def commit(
        self, message: str, files: dict[str, str | None], *words: str, cwd: Path | None = None, **env: str
    ) -> str:
        for name, text in files.items():
            target = (cwd or self.root) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink() if text is None else target.write_text(text)
        if files:
            self.git("add", "-A", "--", *files, cwd=cwd)
        self.git("commit", "-q", "--allow-empty", "-m", message, *words, cwd=cwd, **env)
        return self.head(cwd=cwd)

    def head(self, name: str = "HEAD", cwd: Path | None = None) -> str:
        return self.git("rev-parse", name, cwd=cwd)

    def look(self, *, seconds: float = 10) -> list[tuple[str, str]]:
        """Let time pass and audit; the (event, commit) pairs said by it."""
        self.now += timedelta(seconds=seconds)
        before = len(self.rows())
        self.audit.finish(self.now)
        assert self.audit.trouble == ""
        return [(row["event"], row["subject"]) for row in self.rows()[before:]]

    def govern(self) -> None:
        """The baseline is audited and an order is live from now on."""
        self.look()
        self.now += timedelta(minutes=1)
        self.orders.admit(self.now)
        self.now += timedelta(minutes=1)

    def rows(self) -> list[dict]:
        path = self.root / ".shapeup" / "shapeupd.log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def ledger(self) -> dict[str, str]:
        path = self.root / ".shapeup" / "commits.jsonl"
        return (
            {row["commit"]: row["verdict"] for row in map(json.loads, path.read_text().splitlines())}
            if path.exists()
            else {}
        )

    def note(self, *commits: str) -> None:
        """What the post-commit hook leaves."""
        path = self.root / ".git" / "shapeupd" / "accepts"
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.writelines(f"{commit} -\n" for commit in commits)


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "repo").mkdir()
    return Repository(tmp_path / "repo")


@pytest.fixture
def governed(repository):
    repository.govern()
    return repository


def bypassed(commit):
    return ("commit.bypassed", commit)


# --- what is judged ---------------------------------------------------------------------------------------------------


def test_without_an_order_nothing_is_recorded(repository):
    assert repository.look() == []
    repository.commit("more", {"docs/b": "1"})
    assert repository.look() == []
    assert repository.ledger() == {}


def test_a_commit_outside_every_substrate_is_bypassed_with_rule_path_branch_and_fix(governed):
    bad = governed.commit("sneaky", {"docs/a": "2", "src/a": "2"}, "--no-verify")
    assert governed.look() == [bypassed(bad)]
    row = governed.rows()[-1]
    assert (row["rules"], row["paths"], row["branch"], row["level"]) == (["OUTSIDE"], ["docs/a"], "main", "warn")
    assert "docs/a: OUTSIDE" in row["error"]
    assert f"fix: git restore --source={bad[:12]}^ --staged --worktree -- :/docs/a && git commit" in row["error"]
    assert governed.ledger() == {bad: "bypassed"}


def test_a_clean_commit_without_a_note_is_audited(governed):
    clean = governed.commit("work", {"src/a": "2"})
    assert governed.look() == [("commit.audited", clean)]


def test_a_noted_commit_is_accepted(governed):
    clean = governed.commit("work", {"src/a": "2"})
    governed.note(clean)
    assert governed.look() == [("commit.accepted", clean)]


def test_a_commit_is_said_once_across_looks_and_restarts(governed):
    bad = governed.commit("sneaky", {"docs/a": "2"})
    assert governed.look() == [bypassed(bad)]
    assert governed.look() == []
    governed.git("branch", "again", bad)
    assert governed.look() == []
    governed.open()
    assert governed.look() == []


def test_what_a_dead_daemon_did_not_finish_is_not_said_twice(governed):
    """The record is written, audit.json is not: as after a kill in between."""
    remembered = (governed.root / ".shapeup" / "audit.json").read_bytes()
    bad = governed.commit("sneaky", {"docs/a": "2"})
    assert governed.look() == [bypassed(bad)]
    (governed.root / ".shapeup" / "audit.json").write_bytes(remembered)
    governed.open()
    assert governed.look() == []


def test_commits_made_while_no_daemon_lived_are_judged_by_the_policy_of_their_time(repository):
    repository.look()
    repository.audit.close()
    repository.now += timedelta(minutes=1)
    before = repository.commit("before the order", {"docs/a": "2"})
    repository.now += timedelta(minutes=1)
    repository.orders.admit(repository.now)
    repository.now += timedelta(minutes=1)
    after = repository.commit("after the order", {"docs/a": "3"})
    repository.open()
    assert repository.look() == [bypassed(after)]
    assert before not in repository.ledger()


def test_a_committer_clock_cannot_flee_into_the_past_or_the_future(governed):
    governed.look()
    past = governed.commit("old", {"docs/a": "2"}, GIT_COMMITTER_DATE="1000000000 +0000")
    future = governed.commit("new", {"docs/a": "3"}, GIT_COMMITTER_DATE="4000000000 +0000")
    assert governed.look() == [bypassed(past), bypassed(future)]
    assert all(at <= governed.now for at in governed.orders.asked)


def test_the_first_audit_looks_back_to_the_oldest_live_order(repository):
    repository.now += timedelta(hours=1)
    repository.orders.admit(repository.now)
    repository.now += timedelta(hours=1)
    bad = repository.commit("sneaky", {"docs/a": "2"})
    assert repository.look() == [bypassed(bad)]


def test_a_wiped_local_tree_starts_the_audit_anew(governed):
    bad = governed.commit("sneaky", {"docs/a": "2"})
    assert governed.look() == [bypassed(bad)]
    governed.log.close()
    for name in ("commits.jsonl", "audit.json", "shapeupd.log"):
        (governed.root / ".shapeup" / name).unlink()
    assert governed.look() == [bypassed(bad)]
    (governed.root / ".shapeup" / "commits.jsonl").unlink()
    assert governed.look() == [bypassed(bad)]
    assert governed.ledger() == {bad: "bypassed"}


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 1}', '{"schema": 1, "at": "x", "tips": {}, "known": []}', "\0\xff",
    '{"schema": 1, "at": "2030-01-01T00:00:00Z", "tips": {"HEAD": "--all"}, "known": []}'])  # fmt: skip
def test_a_memory_that_cannot_be_understood_counts_as_none(repository, text):
    (repository.root / ".shapeup").mkdir()
    (repository.root / ".shapeup" / "audit.json").write_text(text)
    assert read_memory(repository.root) is None
    assert repository.look() == []
    assert read_memory(repository.root) is not None


# --- by whatever means ------------------------------------------------------------------------------------------------


def test_plumbing_is_seen(governed):
    tree = governed.git("rev-parse", f"{governed.commit('work', {'src/a': '2'})}^{{tree}}")
    governed.look()
    governed.git("read-tree", tree)
    blob = governed.git("hash-object", "-w", "--stdin", stdin=b"bad")
    governed.git("update-index", "--add", "--cacheinfo", f"100644,{blob},docs/plumbed")
    bad = governed.git("commit-tree", governed.git("write-tree"), "-p", "HEAD", "-m", "plumbed")
    governed.git("update-ref", "refs/heads/hidden/away", bad)
    assert governed.look() == [bypassed(bad)]
    assert governed.rows()[-1]["branch"] == "hidden/away"


def test_fast_import_is_seen(governed):
    stream = (
        "commit refs/heads/imported\ncommitter Ada <ada@example.org> 1900000000 +0000\ndata 3\nbad\n"
        "from refs/heads/main^0\nM 100644 inline docs/imported\ndata 1\nx\n"
    )
    governed.git("fast-import", "--quiet", stdin=stream.encode())
    assert governed.look() == [bypassed(governed.head("imported"))]


def test_a_detached_head_of_a_linked_worktree_is_seen(governed, tmp_path):
    governed.git("worktree", "add", "-q", "--detach", os.fspath(tmp_path / "linked"))
    assert governed.look() == []
    bad = governed.commit("sneaky", {"docs/a": "2"}, cwd=tmp_path / "linked")
    assert governed.look() == [bypassed(bad)]
    assert governed.rows()[-1]["branch"] == "worktrees/linked/HEAD"


def test_packing_refs_says_nothing_new(governed):
    bad = governed.commit("sneaky", {"docs/a": "2"})
    governed.look()
    governed.git("pack-refs", "--all")
    governed.git("gc", "-q")
    assert governed.look() == []
    worse = governed.commit("again", {"docs/a": "3"})
    assert governed.look() == [bypassed(worse)]
    assert bad != worse


def test_more_commits_than_a_batch_are_all_judged(governed):
    lines = []
    for number in range(450):
        lines += ["commit refs/heads/main\ncommitter Ada <ada@example.org> 1900000000 +0000\ndata 3\nbad\n"]
        lines += ["from refs/heads/main^0\n"] if number == 0 else []
        lines += [f"M 100644 inline docs/a\ndata 3\n{number:03}\n"]
    governed.git("fast-import", "--quiet", stdin="".join(lines).encode())
    governed.now += timedelta(seconds=10)
    governed.audit.look(governed.now)
    assert not governed.audit.is_done
    started = len(governed.ledger())
    assert started + len(governed.look()) == 450
    assert len(governed.ledger()) == 450


# --- fetched, merged, tagged ------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(governed, tmp_path):
    """A clone in which somebody commits outside every substrate."""
    governed.git("clone", "-q", os.fspath(governed.root), os.fspath(tmp_path / "elsewhere"))
    governed.commit("theirs", {"docs/a": "theirs"}, cwd=tmp_path / "elsewhere")
    return tmp_path / "elsewhere"


def test_fetched_commits_are_never_judged(governed, elsewhere):
    governed.git("remote", "add", "origin", os.fspath(elsewhere))
    governed.git("fetch", "-q", "origin")
    governed.git("merge", "-q", "--ff-only", "origin/main")
    assert governed.look() == []


def test_what_was_made_here_and_pushed_at_once_is_judged(governed, tmp_path):
    governed.git("init", "-q", "--bare", os.fspath(tmp_path / "origin.git"))
    governed.git("remote", "add", "origin", os.fspath(tmp_path / "origin.git"))
    governed.git("push", "-q", "origin", "HEAD")
    governed.look()
    bad = governed.commit("sneaky", {"docs/a": "2"})
    worse = governed.commit("again", {"docs/b": "2"})
    governed.git("push", "-q", "origin", f"{bad}:refs/heads/main")
    governed.git("push", "-q", "origin", "HEAD:refs/heads/main")
    assert governed.look() == [bypassed(bad), bypassed(worse)]


def test_commits_pulled_by_address_are_never_judged(governed, elsewhere):
    governed.git("pull", "-q", "--ff-only", os.fspath(elsewhere), "main")
    assert governed.look() == []


def test_fetching_ones_own_branch_makes_nothing_foreign(governed):
    bad = governed.commit("sneaky", {"docs/a": "2"})
    governed.git("fetch", "-q", ".", "main")
    assert governed.look() == [bypassed(bad)]


def test_a_merge_of_fetched_work_is_not_blamed_for_it(governed, elsewhere):
    ours = governed.commit("ours", {"src/a": "2"})
    governed.git("remote", "add", "origin", os.fspath(elsewhere))
    governed.git("fetch", "-q", "origin")
    governed.git("merge", "-q", "--no-ff", "-m", "merged", "origin/main")
    assert governed.look() == [("commit.audited", ours), ("commit.audited", governed.head())]


def test_what_a_merge_slips_in_is_its_own(governed, elsewhere):
    governed.git("remote", "add", "origin", os.fspath(elsewhere))
    governed.git("fetch", "-q", "origin")
    governed.git("merge", "-q", "--no-ff", "--no-commit", "origin/main")
    evil = governed.commit("merged", {"docs/evil": "1"})
    assert governed.look() == [bypassed(evil)]
    assert governed.rows()[-1]["paths"] == ["docs/evil"]
    assert f"--source={evil[:12]}^" in governed.rows()[-1]["error"]


def test_a_branch_made_from_an_old_tag_is_old(governed):
    """Nothing under refs/heads led to these commits, yet they are no news."""
    governed.git("checkout", "-q", "--orphan", "release")
    governed.now -= timedelta(days=1)
    governed.commit("released", {"docs/released": "1"})
    governed.now += timedelta(days=1)
    governed.git("tag", "v1")
    governed.git("checkout", "-q", "main")
    governed.git("branch", "-q", "-D", "release")
    assert governed.look() == []
    governed.git("branch", "hotfix", "v1")
    assert governed.look() == []


def test_a_deleted_branch_that_comes_back_says_nothing(repository):
    repository.git("checkout", "-q", "-b", "topic")
    old = repository.commit("ungoverned", {"docs/a": "2"})
    repository.git("checkout", "-q", "main")
    repository.govern()
    repository.git("branch", "-q", "-D", "topic")
    assert repository.look() == []
    repository.git("branch", "topic", old)
    assert repository.look() == []


def test_the_history_that_a_shallow_clone_ends_with_is_not_judged(governed, tmp_path):
    shallow = tmp_path / "shallow"
    governed.git("clone", "-q", "--depth", "1", f"file://{governed.root}", os.fspath(shallow))
    governed.git("remote", "remove", "origin", cwd=shallow)
    audit = Audit(
        Place(shallow, shallow / ".git"), lambda: governed.orders, Log(shallow / ".shapeup", lambda: governed.now)
    )
    governed.orders.live = [(NOON - timedelta(days=1), CART)]
    audit.finish(governed.now)
    assert audit.trouble == ""
    assert CommitRecord(shallow).of(governed.head()) is None


# --- rewritten commits ------------------------------------------------------------------------------------------------


def test_a_rebase_of_accepted_work_is_no_bypass(governed):
    governed.git("checkout", "-q", "-b", "topic")
    accepted = [governed.commit(f"work {n}", {f"docs/{n}": "1"}) for n in range(3)]
    governed.note(*accepted)
    assert {event for event, _ in governed.look()} == {"commit.accepted"}
    governed.git("checkout", "-q", "main")
    governed.commit("main moves", {"src/a": "2"})
    governed.git("checkout", "-q", "topic")
    governed.git("rebase", "-q", "main")
    events = governed.look()
    assert [event for event, _ in events] == ["commit.audited"] + ["commit.accepted"] * 3
    assert governed.rows()[-1]["reason"] == f"takes the place of {accepted[-1][:12]}"
    governed.git("reset", "-q", "--hard", accepted[-1])
    assert governed.look() == []


def test_a_rebase_of_ungoverned_work_says_nothing(repository):
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit("ungoverned", {"docs/b": "1"})
    repository.git("checkout", "-q", "main")
    repository.commit("main moves", {"docs/c": "1"})
    repository.git("checkout", "-q", "topic")
    repository.govern()
    repository.git("rebase", "-q", "main")
    assert repository.look() == []


def test_a_rebase_under_way_is_no_bypass(repository):
    repository.git("checkout", "-q", "-b", "topic")
    for number in range(3):
        repository.commit(f"ungoverned {number}", {f"docs/{number}": "1"})
    repository.git("checkout", "-q", "main")
    repository.commit("main moves", {"docs/c": "1"})
    repository.git("checkout", "-q", "topic")
    repository.govern()
    repository.git("rebase", "-q", "-i", "main", GIT_SEQUENCE_EDITOR="sed -i 's/^pick/edit/'")
    assert repository.look() == []
    repository.git("rebase", "--continue")
    assert repository.look() == []
    bad = repository.commit("slipped into the rebase", {"docs/bad": "1"})
    assert repository.look() == [bypassed(bad)]
    repository.git("rebase", "--continue")
    assert repository.look() == []


def test_a_rebase_of_a_bypass_is_a_bypass(governed):
    governed.git("checkout", "-q", "-b", "topic")
    governed.commit("sneaky", {"docs/b": "1"})
    governed.look()
    governed.git("checkout", "-q", "main")
    governed.commit("main moves", {"src/a": "2"})
    governed.look()
    governed.git("checkout", "-q", "topic")
    governed.git("rebase", "-q", "main")
    assert governed.look() == [bypassed(governed.head())]


def test_a_squash_of_accepted_work_is_no_bypass(governed):
    commits = [governed.commit(f"work {n}", {f"docs/{n}": "1"}) for n in range(3)]
    governed.note(*commits)
    governed.look()
    governed.git("rebase", "-q", "-i", governed.base, GIT_SEQUENCE_EDITOR="sed -i '2,$s/^pick/fixup/'")
    assert governed.look() == [("commit.accepted", governed.head())]


def test_an_amend_that_only_rewords_keeps_the_verdict(governed):
    accepted = governed.commit("work", {"docs/b": "1"})
    governed.note(accepted)
    governed.look()
    governed.git("commit", "-q", "--amend", "-m", "work", "-m", "and why", GIT_COMMITTER_DATE="1950000000 +0000")
    assert governed.look() == [("commit.accepted", governed.head())]


def test_an_amend_that_adds_something_outside_is_a_bypass_though_noted(governed):
    """The hook saw the difference to the amended commit alone (E16)."""
    clean = governed.commit("work", {"src/a": "2"})
    governed.note(clean)
    governed.look()
    bad = governed.commit("work", {"docs/b": "1"}, "--amend")
    governed.note(bad)
    assert governed.look() == [bypassed(bad)]


def test_an_amend_of_an_accepted_path_to_other_bytes_is_judged(governed):
    accepted = governed.commit("work", {"docs/b": "1"})
    governed.note(accepted)
    governed.look()
    bad = governed.commit("work", {"docs/b": "2"}, "--amend")
    assert governed.look() == [bypassed(bad)]


def test_an_amend_that_takes_the_bypass_away_is_clean(governed):
    governed.commit("work", {"src/a": "2", "docs/b": "1"})
    assert [event for event, _ in governed.look()] == ["commit.bypassed"]
    governed.git("rm", "-q", "docs/b")
    governed.git("commit", "-q", "--amend", "--no-edit")
    assert governed.look() == [("commit.audited", governed.head())]


def test_a_cherry_pick_is_no_rewrite(repository):
    repository.git("checkout", "-q", "-b", "topic")
    picked = repository.commit("ungoverned", {"docs/b": "1"})
    repository.git("checkout", "-q", "main")
    repository.govern()
    repository.git("cherry-pick", picked)
    assert repository.look() == [bypassed(repository.head())]


# --- orders, overrides, returns ---------------------------------------------------------------------------------------


def test_a_trailer_ties_a_commit_to_its_order(governed):
    governed.orders.admit(governed.now, Contract("cart/b-r1-a1", "execute", allowed=("docs/**",)))
    governed.now += timedelta(seconds=10)
    union = governed.commit("both", {"src/a": "2", "docs/a": "2"})
    tied = governed.commit("one\n\nShapeup-Order: cart/b-r1-a1", {"src/a": "3", "docs/a": "3"})
    fine = governed.commit("other\n\nShapeup-Order: cart/b-r1-a1", {"docs/a": "4"})
    assert governed.look() == [("commit.audited", union), bypassed(tied), ("commit.audited", fine)]
    assert [row["order_id"] for row in governed.rows()[-3:]] == [None, "cart/b-r1-a1", "cart/b-r1-a1"]


def test_a_trailer_of_an_order_that_never_was_is_a_bypass_even_without_live_orders(repository):
    repository.look()
    bad = repository.commit("made up\n\nShapeup-Order: cart/nobody-r1-a1", {"docs/a": "2"})
    assert repository.look() == [bypassed(bad)]
    assert repository.rows()[-1]["rules"] == ["TRAILER-UNKNOWN"]


def test_a_trailer_of_a_past_order_is_held_to_that_order(governed):
    governed.orders.past["cart/old-r1-a1"] = Contract("cart/old-r1-a1", "execute", allowed=("docs/**",), answered=True)
    fine = governed.commit("late\n\nShapeup-Order: cart/old-r1-a1", {"docs/a": "2"})
    assert governed.look() == [("commit.audited", fine)]


def test_an_override_counts_where_a_hook_noted_it(governed):
    message = "urgent\n\nShapeup-Override: the site is down"
    noted = governed.commit(message, {"docs/a": "2"})
    governed.note(noted)
    forged = governed.commit(message, {"docs/a": "3"})
    assert governed.look() == [("commit.accepted", noted), bypassed(forged)]
    assert governed.ledger() == {noted: "overridden", forged: "bypassed"}
    assert governed.rows()[-2]["reason"] == "the site is down"


def test_paths_that_the_user_lets_pass_are_clean(governed):
    governed.orders.globs = ("docs/**",)
    fine = governed.commit("mine", {"docs/a": "2"})
    assert governed.look() == [("commit.audited", fine)]


def test_a_commit_that_loosens_the_settings_is_judged_by_those_before_it(governed):
    bad = governed.commit("loosen", {".shapeupd.toml": "human", "docs/a": "2"})
    after = governed.commit("then", {"docs/a": "3"})
    assert governed.look() == [bypassed(bad), ("commit.audited", after)]


def test_nothing_under_the_local_tree_is_committed_even_without_orders(repository):
    repository.look()
    bad = repository.commit("oops", {}, "--allow-empty")
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"x")
    repository.git("update-index", "--add", "--cacheinfo", f"100644,{blob},.shapeup/cart/x")
    bad = repository.commit("oops", {})
    assert repository.look() == [bypassed(bad)]
    assert repository.rows()[-1]["rules"] == ["R-37"]


@pytest.mark.parametrize(
    "files",
    [{"docs/a": "2"}, {"docs/new file": "x"}, {"docs/a": None}, {f"docs/{n}": "x" for n in range(9)}, {"docs/*": "x"}],
)
def test_the_fix_that_a_bypass_names_works_and_is_clean(governed, files):
    bad = governed.commit("sneaky", {**files, "src/a": "2"})
    assert governed.look() == [bypassed(bad)]
    fix = governed.rows()[-1]["error"].rpartition("fix: ")[2]
    subprocess.run(
        ["sh", "-c", fix.replace("git commit", "git commit -m fixed")], cwd=governed.root, env=ENV, check=True
    )
    assert governed.look() == [("commit.audited", governed.head())]
    assert governed.git("diff", "--name-only", governed.base, "HEAD", "--", "docs") == ""


def test_taking_back_accepted_work_is_no_return(governed):
    accepted = governed.commit("work", {"docs/a": "2"})
    governed.note(accepted)
    governed.look()
    undone = governed.commit("undo", {"docs/a": "1"})
    assert governed.look() == [bypassed(undone)]


# --- cost and trouble -------------------------------------------------------------------------------------------------


def test_a_look_at_refs_that_did_not_move_starts_no_git(governed, monkeypatch):
    governed.look()
    governed.look()
    monkeypatch.setattr("hooks.git.run_git", None)
    monkeypatch.setattr("daemon.commits.command_line.run_git", None)
    monkeypatch.setattr("daemon.git.open_pygit2", None)
    assert governed.look() == []


def test_every_move_of_a_ref_changes_the_stamp(governed, tmp_path):
    stamps = RefStamps(governed.root / ".git")
    seen = {stamps.take().mark}

    def moved(*words, cwd=None):
        governed.git(*words, cwd=cwd)
        mark = stamps.take().mark
        assert mark not in seen, words
        assert stamps.take().mark == mark
        seen.add(mark)

    moved("commit", "-q", "--allow-empty", "-m", "x")
    moved("branch", "deep/er/topic")
    moved("pack-refs", "--all")
    moved("branch", "-D", "deep/er/topic")
    moved("worktree", "add", "-q", "--detach", os.fspath(tmp_path / "linked"))
    moved("commit", "-q", "--allow-empty", "-m", "y", cwd=tmp_path / "linked")
    moved("checkout", "-q", "--detach")
    moved("update-ref", "refs/heads/plumbed", "HEAD")


def test_among_many_loose_refs_a_move_is_seen_at_once_and_a_write_in_place_soon(governed):
    common = governed.root / ".git"
    (common / "refs" / "heads" / "many").mkdir()
    for number in range(3 * FILES):
        (common / "refs" / "heads" / "many" / str(number)).write_text(governed.base + "\n")
    stamps = RefStamps(common)
    before = stamps.take()
    assert stamps.take() == before
    governed.git("update-ref", "refs/heads/many/7", governed.commit("x", {}))
    moved = stamps.take()
    assert moved != before
    (common / "refs" / "heads" / "many" / "8").write_text(governed.head() + "\n\n")
    assert any(stamps.take() != moved for _ in range(5))


def test_a_hook_that_is_about_to_leave_its_note_is_waited_for_once(governed):
    governed.note("0" * 40)  # hooks are installed
    governed.now = datetime.fromtimestamp((governed.root / ".git" / "HEAD").stat().st_mtime, UTC)
    first = governed.commit("work", {"src/a": "2"})
    newest = RefStamps(governed.root / ".git").take().newest_ns
    young = datetime.fromtimestamp(newest / 1e9, UTC) + timedelta(milliseconds=10)
    governed.orders.live = [(young - timedelta(days=9), CART)]
    governed.audit.look(young)
    assert governed.ledger() == {}
    governed.note(first)
    second = governed.commit("more", {"src/a": "3"})
    newest = RefStamps(governed.root / ".git").take().newest_ns
    governed.audit.look(datetime.fromtimestamp(newest / 1e9, UTC) + timedelta(milliseconds=10))
    assert governed.ledger() == {first: "accepted"}
    governed.audit.look(datetime.fromtimestamp(newest / 1e9, UTC) + timedelta(seconds=2))
    assert governed.ledger() == {first: "accepted", second: "audited"}


def test_trouble_with_git_is_said_once_and_the_audit_recovers(governed):
    objects = governed.root / ".git" / "objects"
    bad = governed.commit("sneaky", {"docs/a": "2"})
    objects.rename(governed.root / "away")
    (governed.root / ".git" / "refs" / "heads" / "odd").write_text("not an id\n")
    for seconds in (0, 0.5, 5, 100, 1000):
        governed.audit.look(governed.now + timedelta(seconds=seconds))
    errors = [row for row in governed.rows() if row["event"] == "daemon.error"]
    assert [row["code"] for row in errors] == ["E-GIT"]
    assert "fix:" in errors[0]["error"]
    assert governed.audit.trouble
    (governed.root / "away").rename(objects)
    (governed.root / ".git" / "refs" / "heads" / "odd").unlink()
    assert governed.look(seconds=2000) == [bypassed(bad)]


def test_where_git_itself_is_gone_the_audit_says_so_and_goes_on(governed, monkeypatch):
    governed.commit("sneaky", {"docs/a": "2"})
    governed.audit.look(governed.now)
    governed.commit("again", {"docs/a": "3"})
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("daemon.git.open_pygit2", lambda common: None)
    governed.audit.look(governed.now + timedelta(seconds=100))
    assert governed.rows()[-1]["code"] == "E-GIT"
    monkeypatch.undo()
    assert len(governed.look(seconds=200)) == 1


def test_a_link_in_the_place_of_the_record_is_not_followed(governed, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    (governed.root / ".shapeup" / "commits.jsonl").symlink_to(outside)
    governed.commit("sneaky", {"docs/a": "2"})
    governed.now += timedelta(seconds=10)
    governed.audit.look(governed.now)
    assert outside.read_text() == "mine\n"
    assert governed.rows()[-1]["event"] == "daemon.error"
    (governed.root / ".shapeup" / "commits.jsonl").unlink()
    assert len(governed.look(seconds=100)) == 1
