"""pre-push on a real clone: by trailer, else by what was recorded, else by the policy at hand. Source: rulings E5, E6, E8, E15."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.living import COMMAND
from tests.hooks.history import ENV, History

ORDER = "Shapeup-Order: cart/core-r1-a1"
LONG_AGO = "2026-03-01T10:00:00.000Z"


class Clone(History):
    """A clone with a pre-push hook, a bare remote, and one live order for `src/cart/**`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root / "clone")
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(root / "remote.git")], env=ENV, check=True)
        self.remote = root / "remote.git"
        self.write(".gitignore", ".shapeup/\n")
        self.write("src/cart/a", "a\n")
        self.base = self.commit("base", docs__guide="guide\n")
        self.git("remote", "add", "origin", str(self.remote))
        self.git("push", "-q", "-u", "origin", "main")
        hook = self.root / ".git" / "hooks" / "pre-push"
        hook.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -m hooks pre-push --root "{self.root}" -- "$@"\n')
        hook.chmod(0o755)
        self.order("core-r1-a1", allowed=["src/cart/**"])

    def local(self, path: str, text: str) -> None:
        self.write(f".shapeup/{path}", text)

    def order(self, stem: str, *, operation: str = "execute", compiled_at: str = LONG_AGO, **substrate: Any) -> None:
        order = {
            "schema_version": 1,
            "order_id": f"cart/{stem}",
            "compiled_at": compiled_at,
            "worker": "task-executor",
            "mode": "orchestrated",
            "operation": operation,
            "substrate": substrate,
            "payload": {},
        }
        self.local(f"cart/orders/{stem}.json", json.dumps(order))
        landed = datetime.fromisoformat(LONG_AGO).timestamp()
        os.utime(self.root / f".shapeup/cart/orders/{stem}.json", (landed, landed))

    def record(self, commit: str, verdict: str, **more: Any) -> None:
        row = {"at": LONG_AGO, "commit": commit, "verdict": verdict, "order_id": None, "rules": [], "reason": None}
        with open(self.root / ".shapeup" / "commits.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(row | more) + "\n")

    def push(self, *words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        return self.try_git("push", "-q", *(words or ("origin", "HEAD")), **env)

    def passes(self, *words: str) -> None:
        done = self.push(*words)
        assert done.returncode == 0, done.stderr.decode()

    def refused(self, *words: str) -> str:
        done = self.push(*words)
        told = done.stderr.decode("utf-8", "replace")
        assert done.returncode != 0, told
        assert "shapeupd: the push is refused" in told, told
        assert "Traceback" not in told
        return told


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_commit_is_held_to_the_order_that_its_trailer_names(clone: Clone) -> None:
    clone.commit("in", ORDER, src__cart__a="b\n")
    clone.passes()
    bad = clone.commit("out", ORDER, docs__guide="mine\n")
    told = clone.refused()
    assert "docs/guide: OUTSIDE" in told
    assert bad[:12] in told


def test_the_order_file_counts_more_than_the_template_and_a_past_order_as_much_as_a_live_one(clone: Clone) -> None:
    clone.order("core-r1-a2", allowed=["docs/**"])
    clone.commit("by its file", "Shapeup-Order: cart/core-r1-a2", docs__guide="mine\n")
    clone.passes()
    clone.order("smoke", operation="analyze", allowed=["docs/**"])
    clone.commit("a stem that names no operation", "Shapeup-Order: cart/smoke", docs__guide="yours\n")
    clone.passes()
    clone.commit("disagrees", "Shapeup-Order: cart/smoke", "Shapeup-Operation: wire", docs__guide="x\n")
    assert "TRAILER-UNKNOWN" in clone.refused()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"order_id": "cart/other", "substrate": {}}',
        '{"order_id": "cart/bad-r1-a1", "substrate": {"allowed": "**"}}',
    ],
)
def test_an_order_file_that_is_none_grants_nothing(clone: Clone, text: str) -> None:
    clone.local("cart/orders/bad-r1-a1.json", text)
    clone.commit("x", "Shapeup-Order: cart/bad-r1-a1", docs__guide="mine\n")
    assert "TRAILER-UNKNOWN" in clone.refused()


def test_a_rejected_order_a_link_and_a_pipe_grant_nothing(clone: Clone) -> None:
    clone.order("bad-r1-a1", allowed=["**"])
    clone.local("cart/rejections/order-bad-r1-a1.json", "{}")
    clone.order("real", allowed=["**"])
    text = (clone.root / ".shapeup/cart/orders/real.json").read_text().replace("cart/real", "cart/link-r1-a1")
    clone.local("elsewhere.json", text)
    os.symlink("../../elsewhere.json", clone.root / ".shapeup/cart/orders/link-r1-a1.json")
    os.mkfifo(clone.root / ".shapeup/cart/orders/pipe-r1-a1.json")
    for stem in ("bad", "link", "pipe"):
        clone.git("reset", "-q", "--hard", clone.base)
        clone.commit("x", f"Shapeup-Order: cart/{stem}-r1-a1", docs__guide=f"{stem}\n")
        assert "TRAILER-UNKNOWN" in clone.refused(), stem


def test_without_any_order_a_commit_without_a_trailer_passes_and_no_audit_is_asked_for(clone: Clone) -> None:
    os.unlink(clone.root / ".shapeup/cart/orders/core-r1-a1.json")
    clone.commit("a person", docs__guide="mine\n")
    clone.passes()
    assert not (clone.root / ".shapeup/commits.jsonl").exists()


@pytest.mark.parametrize("verdict", ["accepted", "audited", "overridden"])
def test_a_good_record_lets_a_commit_pass(clone: Clone, verdict: str) -> None:
    clone.record(clone.commit("x", docs__guide="mine\n"), verdict)
    clone.passes()


def test_an_override_that_is_recorded_covers_a_trailer_too_but_not_the_local_tree(clone: Clone) -> None:
    clone.record(clone.commit("x", ORDER, "Shapeup-Override: fire", docs__guide="mine\n"), "overridden")
    clone.passes()
    clone.git("add", "-f", ".shapeup/cart/orders/core-r1-a1.json")
    clone.git("commit", "-qm", "x")
    clone.record(clone.head, "overridden")
    assert "R-37" in clone.refused()


def test_an_override_that_nothing_recorded_does_not_count(clone: Clone) -> None:
    clone.commit("x", ORDER, "Shapeup-Override: fire", docs__guide="mine\n")
    told = clone.refused()
    assert "docs/guide: OUTSIDE" in told
    assert "OVERRIDE" in told


def test_the_last_record_counts_and_torn_rows_do_not(clone: Clone) -> None:
    commit = clone.commit("x", docs__guide="mine\n")
    clone.record(commit, "accepted")
    clone.record(commit, "bypassed", rules=["OUTSIDE"])
    with open(clone.root / ".shapeup/commits.jsonl", "a", encoding="utf-8") as file:
        file.write(f'{{"at": "x", "commit": "{commit}", "verdict": "acc')
    told = clone.refused()
    assert commit[:12] in told
    assert "BYPASSED" in told or "OUTSIDE" in told


def test_a_bypass_is_refused_though_the_policy_has_moved_on(clone: Clone) -> None:
    clone.record(clone.commit("x", docs__guide="mine\n"), "bypassed", rules=["FROZEN"])
    told = clone.refused()
    assert "BYPASSED" in told
    assert "FROZEN" in told
    assert "docs/guide" in told


def test_a_commit_that_slipped_past_the_hooks_is_audited_and_refused(clone: Clone) -> None:
    clone.commit("x", docs__guide="mine\n")
    told = clone.refused()
    assert "docs/guide" in told
    rows = (clone.root / ".shapeup/commits.jsonl").read_text()
    assert "bypassed" in rows


def test_a_commit_on_no_branch_is_judged_by_the_policy_at_hand(clone: Clone) -> None:
    subprocess.run([*COMMAND, "run", "--once"], cwd=clone.root, env=ENV, capture_output=True, check=True)
    clone.write("docs/x", "x\n")
    clone.git("add", "docs/x")
    commit = clone.git("commit-tree", "-m", "x", "-p", "HEAD", clone.git("write-tree"))
    clone.git("reset", "-q", "--hard")
    assert "docs/x: OUTSIDE" in clone.refused("origin", f"{commit}:refs/heads/side")


def test_what_a_remote_has_is_never_judged(clone: Clone) -> None:
    bad = clone.commit("x", docs__guide="mine\n")
    clone.record(bad, "bypassed")
    clone.git("push", "-q", "--no-verify", "origin", "HEAD")
    clone.commit("good", ORDER, src__cart__a="b\n")
    clone.passes()
    clone.passes("origin", f"{bad}:refs/heads/again")


def test_what_only_the_remote_has_does_not_disturb(clone: Clone, tmp_path: Path) -> None:
    other = History.__new__(History)
    other.root = tmp_path / "other"
    clone.git("clone", "-q", str(clone.remote), str(other.root))
    other.commit("theirs", src__x="x\n")
    other.git("push", "-q", "origin", "HEAD")
    clone.commit("mine", ORDER, src__cart__a="b\n")
    clone.passes("origin", "+HEAD")


def test_deletions_pass(clone: Clone) -> None:
    clone.passes("origin", "main:gone")
    clone.passes("origin", ":gone")


def test_a_trailer_is_asked_for_where_the_settings_of_the_remote_ref_say_so(clone: Clone) -> None:
    os.unlink(clone.root / ".shapeup/cart/orders/core-r1-a1.json")
    clone.commit("settings", _dot_shapeupd_dot_toml='[gate]\nrequire_trailer = ["refs/heads/shapeup/**"]\n')
    clone.passes()
    clone.commit("silent", src__cart__a="b\n")
    assert "TRAILER-MISSING" in clone.refused("origin", "HEAD:refs/heads/shapeup/x")
    clone.passes("origin", "HEAD:refs/heads/people")


def test_what_slipped_in_may_be_taken_back(clone: Clone) -> None:
    clone.commit("slipped", docs__guide="slip\n")
    clone.git("push", "-q", "--no-verify", "origin", "HEAD")
    clone.commit("taken back", ORDER, docs__guide="guide\n")
    clone.passes()


def test_the_way_forward_works_on_this_machine(clone: Clone) -> None:
    clone.commit("first", ORDER, docs__guide="mine\n", src__cart__a="b\n")
    clone.commit("second", ORDER, src__cart__a="c\n")
    told = clone.refused()
    fix = next(line.split("fix: ", 1)[1] for line in told.splitlines() if "rebase -i" in line)
    start, _, rest = fix.partition(", mark ")
    script = f"{start}\n{rest.partition(', then ')[2]}"
    mark = ENV | {"GIT_SEQUENCE_EDITOR": "sed -i '1s/^pick/edit/'"}
    subprocess.run(["sh", "-ec", script], cwd=clone.root, env=mark, check=True, capture_output=True)
    clone.passes()


def test_without_a_daemon_that_can_audit_the_policy_at_hand_judges(clone: Clone) -> None:
    subprocess.run([*COMMAND, "run", "--once"], cwd=clone.root, env=ENV, capture_output=True, check=True)
    hook = clone.root / ".git" / "hooks" / "pre-push"
    broken = (
        "import sys; sys.executable = '/nowhere/python'; from hooks.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    hook.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -c "{broken}" pre-push --root "{clone.root}" -- "$@"\n')
    clone.commit("x", docs__guide="mine\n")
    assert "docs/guide: OUTSIDE" in clone.refused()
    clone.git("reset", "-q", "--hard", clone.base)
    clone.commit("y", src__cart__a="mine\n")
    clone.passes()
    clone.order("core-r1-a1", allowed=["src/cart/**"], compiled_at="2126-03-01T10:00:00.000Z")
    clone.commit("before any order", docs__guide="mine\n")
    clone.passes()


def test_what_was_committed_before_the_first_order_landed_is_pushed_however_early_that_was_compiled(
    tmp_path: Path,
) -> None:
    clone = Clone(tmp_path)
    order = clone.root / ".shapeup/cart/orders/core-r1-a1.json"
    text = order.read_text()
    order.unlink()
    clone.commit("a person's", docs__guide="mine\n")
    order.write_text(text)
    later = int(clone.git("log", "-1", "--format=%ct")) + 60
    os.utime(order, (later, later))
    clone.passes()


def test_a_bypass_in_the_very_second_the_order_landed_is_refused(clone: Clone) -> None:
    made = datetime(2026, 4, 1, tzinfo=UTC)
    clone.write("docs/guide", "mine\n")
    clone.git("add", "-A")
    clone.git("commit", "-qm", "x", GIT_COMMITTER_DATE=made.isoformat())
    landed = made.timestamp() + 0.9
    os.utime(clone.root / ".shapeup/cart/orders/core-r1-a1.json", (landed, landed))
    assert "docs/guide" in clone.refused()
