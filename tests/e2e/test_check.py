"""`shapeupd check` as people and CI call it: what is staged, a commit, a range, the working tree; four formats; exit statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from parsers.policy_file import parse_policy
from tests.e2e.living import COMMAND
from tests.hooks.history import ENV, History

ORDER = "Shapeup-Order: cart/core-r1-a1"
CONTRACT = "---\nscope_id: core\nallowed_file_substrate: [src/cart/**]\n---\n# core\n"
PROJECT = Path(__file__).resolve().parents[2]


def check(where: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*COMMAND, "check", *words],
        cwd=where,
        env=ENV | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1, 2), done.stderr
    return done


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A repository with a committed scope contract and no `.shapeup/`, as CI sees one."""
    made = History(tmp_path / "repo")
    made.write("shapeup/cart/scopes/core.md", CONTRACT)
    made.commit("base", src__cart__a="a\n", docs__guide="guide\n", _dot_gitignore=".shapeup/\n")
    return made


def order(history: History, stem: str = "core-r1-a1", **more: Any) -> None:
    value = {
        "schema_version": 1,
        "order_id": f"cart/{stem}",
        "compiled_at": "2026-03-01T10:00:00.000Z",
        "worker": "task-executor",
        "mode": "orchestrated",
        "operation": "execute",
        "substrate": {"allowed": ["src/cart/**"]},
        "payload": {},
    }
    history.write(f".shapeup/cart/orders/{stem}.json", json.dumps(value | more))
    landed = datetime(2026, 3, 1, 10, tzinfo=UTC).timestamp()
    os.utime(history.root / f".shapeup/cart/orders/{stem}.json", (landed, landed))


def test_a_range_is_judged_commit_by_commit_without_any_local_tree(history: History) -> None:
    history.commit("good", ORDER, src__cart__a="b\n")
    bad = history.commit("bad", ORDER, docs__guide="mine\n")
    done = check(history.root, "--range", "HEAD~2..HEAD")
    assert done.returncode == 1
    assert f"commit {bad[:12]} bad" in done.stdout
    assert "docs/guide: OUTSIDE" in done.stdout
    assert "good" not in done.stdout
    assert not (history.root / ".shapeup").exists()
    good = check(history.root, "--range", "HEAD~2..HEAD~1")
    assert (good.returncode, good.stdout) == (0, "1 commit: nothing breaks a rule\n")
    assert check(history.root, "--range", "HEAD...HEAD").returncode == 0


def test_every_format_gives_the_same_verdict_as_its_status(history: History) -> None:
    history.write(b"docs/odd\n\xff", "x\n")
    bad = history.commit("bad", ORDER)
    documents: dict[str, Any] = {}
    for form in ("json", "sarif"):
        done = check(history.root, "--range", "HEAD~1..", "--format", form)
        assert done.returncode == 1
        documents[form] = json.loads(done.stdout)
    assert documents["json"]["schema"] == 1
    assert documents["json"]["verdict"] == "deny"
    (row,) = documents["json"]["violations"]
    assert (row["rule"], row["commit"], row["order_id"]) == ("OUTSIDE", bad, "cart/core-r1-a1")
    assert row["path"] == "docs/odd\n\ufffd"
    assert row["path_bytes"] == "ZG9jcy9vZGQK/w=="
    (result,) = documents["sarif"]["runs"][0]["results"]
    assert result["ruleId"] == "OUTSIDE"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "docs/odd%0A%FF"
    github = check(history.root, "--range", "HEAD~1..", "--format", "github")
    assert github.returncode == 1
    assert len(github.stdout.splitlines()) == 1
    assert github.stdout.startswith("::error title=shapeupd OUTSIDE::")
    assert (
        check(history.root, "--range", "HEAD~1..", "--json").stdout
        == check(history.root, "--range", "HEAD~1..", "--format", "json").stdout
    )


def test_one_commit_is_judged_against_its_parents_the_first_one_too(history: History) -> None:
    root = history.git("rev-list", "--max-parents=0", "HEAD")
    assert check(history.root, "--commit", root).returncode == 0
    bad = history.commit("bad", ORDER, docs__guide="mine\n")
    history.commit("later", ORDER, src__cart__a="c\n")
    assert check(history.root, "--commit", bad[:10]).returncode == 1
    assert check(history.root, "--commit", "HEAD").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--range", "main"), "is no range"),
        (("--range", "nowhere..HEAD"), 'there is no commit "nowhere"'),
        (("--range", "HEAD..--output=x"), "there is no commit"),
        (("--range", "--all..HEAD"), "expected one argument"),
        (("--range=--all..HEAD",), "there is no commit"),
        (("--range", f"{'0' * 40}..HEAD"), "write --range origin/main..B"),
        (("--range", "HEAD:docs/guide..HEAD"), "there is no commit"),
        (("--range", "HEAD\n..HEAD"), "there is no commit"),
        (("--commit", ""), "there is no commit"),
        (("--commit", "HEAD^5"), "there is no commit"),
        (("--staged", "--worktree"), "not allowed with"),
        (("--format", "xml"), "invalid choice"),
    ],
)
def test_what_names_nothing_ends_with_2_and_says_so(history: History, words: tuple[str, ...], said: str) -> None:
    done = check(history.root, *words)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert done.stdout == ""
    assert not (history.root / "x").exists()


def test_a_shallow_clone_is_told_from_a_whole_one(history: History, tmp_path: Path) -> None:
    base = history.head
    for n in range(4):
        history.commit(f"commit {n}", ORDER, src__cart__a=f"{n}\n")
    shallow = tmp_path / "shallow"
    history.git("clone", "-q", "--depth", "2", f"file://{history.root}", str(shallow))
    for words in (("--range", f"{base}..HEAD"), ("--range", "HEAD~1..HEAD"), ("--commit", "HEAD~1")):
        done = check(shallow, *words)
        expected = 0 if words[1] == "HEAD~1..HEAD" else 2
        assert done.returncode == expected, done.stdout + done.stderr
        assert expected == 0 or "fetch-depth: 0" in done.stderr
    history.git("checkout", "-q", "--orphan", "fresh")
    history.commit("another root", src__cart__a="x\n")
    history.git("clone", "-q", "--depth", "1", "-b", "fresh", f"file://{history.root}", str(tmp_path / "fresh"))
    assert check(tmp_path / "fresh", "--commit", "HEAD").returncode == 0


def test_a_range_without_a_repository_ends_with_2(tmp_path: Path) -> None:
    done = check(tmp_path, "--range", "A..B")
    assert done.returncode == 2
    assert "is no git repository" in done.stderr


def test_the_settings_of_the_base_count_for_the_ref_that_is_named(history: History) -> None:
    history.commit("settings", _dot_shapeupd_dot_toml='[gate]\nrequire_trailer = ["refs/heads/shapeup/**"]\n')
    history.git("checkout", "-q", "-b", "shapeup/core")
    history.commit("silent", src__cart__a="b\n", _dot_shapeupd_dot_toml="")
    assert "TRAILER-MISSING" in check(history.root, "--range", "main..shapeup/core").stdout
    assert "TRAILER-MISSING" in check(history.root, "--range", "main..").stdout
    at = ("--range", f"main..{history.head}")
    assert check(history.root, *at).returncode == 0
    assert check(history.root, *at, "--ref", "shapeup/core").returncode == 1
    assert check(history.root, *at, "--ref", "refs/heads/shapeup/core").returncode == 1
    assert check(history.root, *at, "--ref", "people").returncode == 0


def test_settings_that_the_range_itself_brings_do_not_count(history: History) -> None:
    history.git("checkout", "-q", "-b", "work")
    history.commit("free", "Shapeup-Override: x", _dot_shapeupd_dot_toml="[gate]\naccept_overrides = true\n")
    history.commit("x", ORDER, "Shapeup-Override: x", docs__guide="mine\n")
    done = check(history.root, "--range", "main..work")
    assert done.returncode == 1
    assert "OVERRIDE" in done.stdout


def test_without_orders_what_is_staged_passes_unless_it_is_wrong_in_itself(history: History) -> None:
    history.write("docs/guide", "mine\n")
    history.git("add", "-A")
    done = check(history.root)
    assert (done.returncode, done.stdout) == (0, "1 staged path: nothing breaks a rule\n")
    history.write(".shapeup/x", "x\n")
    history.git("add", "-f", ".shapeup/x")
    done = check(history.root, "--staged")
    assert done.returncode == 1
    assert ".shapeup/x: R-37" in done.stdout


def test_what_is_staged_is_judged_by_the_live_orders(history: History) -> None:
    order(history)
    history.write("src/cart/a", "b\n")
    history.git("add", "-A")
    assert check(history.root, "--staged").returncode == 0
    history.write("docs/guide", "mine\n")
    history.git("add", "-A")
    done = check(history.root / "src", "--staged", "--json")
    assert done.returncode == 1
    (row,) = json.loads(done.stdout)["violations"]
    assert (row["rule"], row["path"]) == ("OUTSIDE", "docs/guide")
    assert "commit" not in row
    subprocess.run(["sh", "-ec", row["fix"]], cwd=history.root, env=ENV, check=True, capture_output=True)
    assert check(history.root, "--staged").returncode == 0


def test_a_named_order_alone_permits(history: History) -> None:
    order(history)
    order(history, "docs-r1-a1", substrate={"allowed": ["docs/**"]})
    history.write("docs/guide", "mine\n")
    history.git("add", "-A")
    assert check(history.root).returncode == 0
    assert check(history.root, SHAPEUP_ORDER="cart/docs-r1-a1").returncode == 0
    assert check(history.root, SHAPEUP_ORDER="cart/core-r1-a1").returncode == 1
    assert "TRAILER-UNKNOWN" in check(history.root, SHAPEUP_ORDER="cart/none").stdout


def test_the_index_that_git_names_is_judged_and_another_repository_where_one_is_named(
    history: History, tmp_path: Path
) -> None:
    order(history)
    index = str(tmp_path / "index")
    history.git("read-tree", "HEAD", GIT_INDEX_FILE=index)
    history.write("docs/guide", "mine\n")
    history.git("add", "docs/guide", GIT_INDEX_FILE=index)
    assert check(history.root, "--staged").returncode == 0
    assert check(history.root, "--staged", GIT_INDEX_FILE=index).returncode == 1
    assert check(tmp_path, "--staged", "--repo", str(history.root), GIT_INDEX_FILE=index).returncode == 0


def test_the_working_tree_is_judged_with_what_git_does_not_track(history: History) -> None:
    order(history)
    assert check(history.root, "--worktree").stdout == "0 changed paths: nothing breaks a rule\n"
    history.write("docs/new", "x\n")
    history.write("src/cart/new", "x\n")
    history.write("docs/guide", "mine\n")
    done = check(history.root / "src", "--worktree", "--json")
    assert done.returncode == 1
    rows = json.loads(done.stdout)["violations"]
    assert [row["path"] for row in rows] == ["docs/guide", "docs/new"]
    for row in rows:
        subprocess.run(["sh", "-ec", row["fix"]], cwd=history.root, env=ENV, check=True, capture_output=True)
    assert check(history.root, "--worktree").returncode == 0
    assert (history.root / "src/cart/new").exists()


def test_a_linked_worktree_is_judged_by_the_orders_of_the_main_one(history: History, tmp_path: Path) -> None:
    order(history)
    history.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    (tmp_path / "linked" / "docs" / "guide").write_text("mine\n")
    assert check(tmp_path / "linked", "--worktree").returncode == 1
    assert check(history.root, "--worktree").returncode == 0


def test_a_commit_without_a_trailer_is_judged_by_the_policy_of_its_time(history: History) -> None:
    order(history)
    before = history.try_git("commit", "-q", "--allow-empty", "-m", "x", GIT_COMMITTER_DATE="2026-02-01T00:00:00Z")
    assert before.returncode == 0
    history.write("docs/guide", "early\n")
    history.git("add", "-A")
    history.git("commit", "-qm", "before the order", GIT_COMMITTER_DATE="2026-02-01T00:00:00Z")
    assert check(history.root, "--commit", "HEAD").returncode == 0
    history.write("docs/guide", "late\n")
    history.git("add", "-A")
    history.git("commit", "-qm", "under the order", GIT_COMMITTER_DATE="2026-04-01T00:00:00Z")
    done = check(history.root, "--commit", "HEAD")
    assert done.returncode == 1
    assert "docs/guide: OUTSIDE" in done.stdout


def test_the_policy_is_printed_as_hooks_read_it_with_a_past_order_where_one_is_asked_for(history: History) -> None:
    order(history)
    order(history, "old-r1-a1", substrate={"allowed": ["old/**"]})
    printed = parse_policy(check(history.root, "--print-policy").stdout.encode())
    assert printed is not None
    assert {contract.order_id for contract in printed.contracts} >= {"cart/core-r1-a1"}
    asked = parse_policy(check(history.root, "--print-policy", "--order", "cart/old-r1-a1").stdout.encode())
    assert asked is not None
    assert any(contract.order_id == "cart/old-r1-a1" for contract in asked.contracts)


def test_check_loads_no_heavy_library_while_the_policy_is_fresh(history: History) -> None:
    order(history)
    subprocess.run([*COMMAND, "run", "--once"], cwd=history.root, env=ENV, capture_output=True, check=True)
    history.write("docs/guide", "mine\n")
    history.git("add", "-A")
    history.commit("x", ORDER)
    heavy = "{'pydantic', 'pygit2', 'rich', 'watchdog', 'ruamel', 'apscheduler', 'mistune', 'subprocess', 'logging'}"
    for words in (["check", "--staged"], ["check", "--range", "HEAD~1..HEAD"], ["check", "--worktree"]):
        code = f"import sys; from daemon.cli import main; main({words!r}); print(*({heavy} & set(sys.modules)), file=sys.stderr)"
        ran = subprocess.run(
            [sys.executable, "-I", "-c", code], cwd=history.root, env=ENV, capture_output=True, text=True, check=True
        )
        assert ran.stderr.strip() == "", words


def action() -> Mapping[str, Any]:
    from ruamel.yaml import YAML

    found: Mapping[str, Any] = YAML(typ="safe").load((PROJECT / "action.yml").read_text())
    return found


def test_the_action_lets_no_value_become_text_of_its_script() -> None:
    for step in action()["runs"]["steps"]:
        assert "${{" not in step["run"]
    assert "secrets" not in (PROJECT / "action.yml").read_text().replace("no secrets", "")


@pytest.mark.parametrize("name", ["plain", "a$(touch${IFS}hacked)b", "x;touch-hacked"])
def test_the_action_judges_what_the_event_brings(history: History, tmp_path: Path, name: str) -> None:
    shim = tmp_path / "place" / "bin" / "shapeupd"
    shim.parent.mkdir(parents=True)
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -m daemon "$@"\n')
    shim.chmod(0o755)
    base = history.head
    history.git("update-ref", "refs/remotes/origin/main", base)
    history.git("checkout", "-q", "-b", name)
    good = history.commit("good", ORDER, src__cart__a="b\n")
    bad = history.commit("bad", ORDER, docs__guide="mine\n")
    script = action()["runs"]["steps"][1]["run"]
    empty = dict.fromkeys(
        "RANGE REF EVENT_BASE EVENT_HEAD EVENT_HEAD_REF EVENT_BEFORE EVENT_SHA EVENT_REF".split(), ""
    ) | {"DEFAULT_BRANCH": "main", "PLACE": str(tmp_path / "place")}

    def run(**event: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=history.root,
            env=ENV | empty | event,
            capture_output=True,
            text=True,
            check=False,
        )

    cases = [
        ({"EVENT_BASE": base, "EVENT_HEAD": bad, "EVENT_HEAD_REF": name}, 1),
        ({"EVENT_BASE": base, "EVENT_HEAD": good, "EVENT_HEAD_REF": name}, 0),
        ({"EVENT_BEFORE": good, "EVENT_SHA": bad, "EVENT_REF": f"refs/heads/{name}"}, 1),
        ({"EVENT_BEFORE": "0" * 40, "EVENT_SHA": good, "EVENT_REF": f"refs/heads/{name}"}, 0),
        ({"EVENT_BEFORE": "1" * 40, "EVENT_SHA": bad, "EVENT_REF": f"refs/heads/{name}"}, 1),
        ({"RANGE": f"{base}..{good}"}, 0),
        ({"RANGE": f"nowhere..{good}"}, 2),
    ]
    for event, status in cases:
        done = run(**event)
        assert done.returncode == status, (event, done.stdout, done.stderr)
        assert status != 1 or "::error file=docs/guide," in done.stdout
    assert not list(history.root.glob("*hacked*"))


def test_the_files_for_hook_managers_name_commands_that_exist() -> None:
    from ruamel.yaml import YAML

    (hook,) = YAML(typ="safe").load((PROJECT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["id"], hook["always_run"], hook["pass_filenames"]) == ("shapeupd", True, False)
    assert hook["entry"] == "shapeupd check --staged"
    from hooks.commit_hooks import HOOKS

    lefthook = YAML(typ="safe").load((PROJECT / "hooks" / "lefthook.yml").read_text())
    for name, entry in lefthook.items():
        assert name in HOOKS or name == "pre-push"
        assert entry["commands"]["shapeupd"]["run"].startswith(f"shapeupd hook {name}")
    assert os.path.isfile(PROJECT / "action.yml")
