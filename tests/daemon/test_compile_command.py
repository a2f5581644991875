"""`shapeupd compile`: what it writes, what it refuses, and that nothing is left half done. Source: cli §1, §2, protocol §2.5, §7.3, rulings B1-B8."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import pytest

from daemon import compile_write
from daemon.commands import compile as command
from daemon.compile_facts import read_compile_facts
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, TRIPPED, USAGE, WANTING, Exit
from parsers.facts import read_order, sha256_of
from tests.daemon.hill_tree import RUN_ID, RunTree

SLUG = "cart"
LOCAL = f".shapeup/{SLUG}"
ORDERS = f"{LOCAL}/orders"
BUILD = ("--slug", SLUG, "--scope", "core", "--round", "1", "--attempt", "1")


class Shop(RunTree):
    """An open run with one scope and two tasks."""

    def __init__(self, root: Path, **config: object) -> None:
        super().__init__(root)
        started = "2026-03-01T09:59:00.000Z"
        named = {"receipt_version": 1, "slug": SLUG, "run_id": RUN_ID, "started_at": started, "config": config}
        self.write(f"{LOCAL}/receipt.json", named)
        self.write(f"{LOCAL}/intake.md", "Sell things.\n")
        self.harness("building")
        self.scope("core", "use_cases: [UC-1]\nallowed_file_substrate: [src/core/**]\nshared_substrate: [src/app.py]\n")
        self.task(1, "ready")
        self.task(2, "ready", "depends_on: [TASK-001]\n")

    def harness(self, status: str) -> None:
        closed = "~" if status == "building" else "2026-03-01T12:00:00.000Z"
        self.write(f"{LOCAL}/harness-run.md", f"---\nstatus: {status}\nfinal_verdict: ~\nclosed_at: {closed}\n---\n")

    def task(self, number: int, status: str, more: str = "") -> None:
        head = f"id: TASK-00{number}\ntitle: Task {number}\nstatus: {status}\npriority: {number}\nuse_case_refs: [UC-1]\n{more}"
        self.write(f"{LOCAL}/tasks/TASK-00{number}.md", f"---\n{head}---\n\n- [ ] Works (covers: REQ-1)\n")

    def order(self, stem: str) -> dict:
        return json.loads((self.root / ORDERS / f"{stem}.json").read_bytes())

    def answered(self, stem: str) -> None:
        data = (self.root / ORDERS / f"{stem}.json").read_bytes()
        row = {
            "run_id": RUN_ID,
            "order_id": f"{SLUG}/{stem}",
            "order_sha256": sha256_of(data),
            "result": "x",
            "sha256": "0" * 64,
        }
        self.append(f"{LOCAL}/receipts/ingest.jsonl", {"at": "2026-03-01T11:00:00.000Z", **row, "outcome": "applied"})

    def files(self) -> set[str]:
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {os.fspath(path.relative_to(self.root)) for path in found}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    root = tmp_path / "repo"
    root.mkdir()
    monkeypatch.chdir(root)
    return Shop(root)


def told(shop: Shop, *words: str) -> int:
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    args = parser.parse_args(words)
    args.repo = (str(shop.root),)
    return command.run(args)


def refused(shop: Shop, *words: str) -> Exit:
    """The command ends early, and no byte of any file has changed."""
    before = {path: (shop.root / path).read_bytes() for path in shop.files()}
    with pytest.raises(Exit) as ending:
        told(shop, *words)
    assert {path: (shop.root / path).read_bytes() for path in shop.files()} == before
    return ending.value


# --- what is written --------------------------------------------------------------------------------------------------


def test_a_scope_is_compiled_whole_and_its_path_is_printed(shop, capsys):
    assert told(shop, *BUILD) == DONE
    assert capsys.readouterr().out == f"{ORDERS}/core-r1-a1.json\n"
    order = shop.order("core-r1-a1")
    assert (order["worker"], order["operation"], order["run_id"]) == ("task-executor", "execute", RUN_ID)
    assert order["substrate"] == {"allowed": ["src/core/**", ".shapeup/cart/spikes/**"], "shared": ["src/app.py"]}
    assert order["payload"]["scope_contract"]["e2e_verification_fixtures"] == ["run core"]
    assert [task["id"] for task in order["payload"]["tasks"]] == ["TASK-001", "TASK-002"]
    assert order["payload"]["tasks"][0]["acceptance_criteria"] == [
        {"text": "Works (covers: REQ-1)", "covers": ["REQ-1"]}
    ]


def test_the_file_is_an_admissible_order_and_nothing_else_is_left_behind(shop):
    before = shop.files()
    told(shop, *BUILD)
    path = f"{ORDERS}/core-r1-a1.json"
    data = (shop.root / path).read_bytes()
    read = read_order(path, data)
    assert read.fact is not None
    assert (read.faults, read.warnings) == ((), ())
    assert data.endswith(b"}\n")
    assert shop.files() - before == {path, ".shapeup/active-order"}


def test_the_pointer_names_the_order_by_its_absolute_path(shop):
    told(shop, *BUILD)
    pointer = json.loads((shop.root / ".shapeup" / "active-order").read_bytes())
    assert pointer == {"slug": SLUG, "order_path": f"{shop.root}/{ORDERS}/core-r1-a1.json"}


def test_a_pointer_that_cannot_be_set_is_a_warning_alone(shop, capsys):
    (shop.root / ".shapeup" / "active-order").symlink_to("elsewhere")
    assert told(shop, *BUILD) == DONE
    assert "active-order" in capsys.readouterr().err
    assert shop.order("core-r1-a1")


def test_a_contract_s_path_names_feature_and_scope(shop):
    assert told(shop, "--scope", "shapeup/cart/scopes/core.md", "--round", "2", "--attempt", "1") == DONE
    assert shop.order("core-r2-a1")


def test_the_open_run_needs_no_name(shop):
    assert told(shop, "orient") == DONE
    assert shop.order("orient")["payload"]["pitch"] == f"{shop.root}/{LOCAL}/intake.md"
    shop.write(".shapeup/other/receipt.json", {"slug": "other", "started_at": "2026-03-01T09:59:00.000Z"})
    assert refused(shop, "wire").status == USAGE
    shop.write(".shapeup/active-scope", {"slug": SLUG})
    assert told(shop, "wire") == DONE


def test_next_and_task_have_stems_of_their_own(shop):
    assert told(shop, "--slug", SLUG, "--next") == DONE
    assert told(shop, "--slug", SLUG, "--task", "TASK-002", "--operation", "fix", "--round", "2") == DONE
    assert shop.order("execute-task-001")["payload"]["tasks"][0]["id"] == "TASK-001"
    assert shop.order("fix-task-002-r2")["operation"] == "fix"


def test_a_feature_without_a_receipt_gets_orders_without_a_run(shop):
    (shop.root / LOCAL / "receipt.json").unlink()
    assert told(shop, *BUILD) == DONE
    assert "run_id" not in shop.order("core-r1-a1")


def test_json_tells_the_order_and_a_dry_run_writes_nothing(shop, capsys):
    before = shop.files()
    assert told(shop, *BUILD, "--dry-run", "--json") == DONE
    document = json.loads(capsys.readouterr().out)
    assert next(iter(document)) == "schema"
    assert (document["written"], document["order"]["order_id"]) == (False, "cart/core-r1-a1")
    assert told(shop, *BUILD, "--dry-run") == DONE
    assert json.loads(capsys.readouterr().out)["worker"] == "task-executor"
    assert shop.files() == before


# --- orders that are there already --------------------------------------------------------------------------------------


def test_a_live_order_is_never_replaced_and_the_next_attempt_is_the_way_on(shop):
    told(shop, *BUILD)
    ending = refused(shop, *BUILD)
    assert ending.status == USAGE
    assert "E-LIVE-ORDER" in ending.message
    assert "--attempt 2" in ending.message
    assert refused(shop, *BUILD, "--dry-run").status == USAGE


def test_an_order_that_was_answered_is_compiled_again_and_live_again(shop):
    told(shop, "orient")
    first = shop.order("orient")["compiled_at"]
    shop.answered("orient")
    assert told(shop, "orient") == DONE
    assert shop.order("orient")["compiled_at"] >= first
    if shop.order("orient")["compiled_at"] > first:
        assert refused(shop, "orient").status == USAGE


def test_where_nobody_keeps_a_record_a_newer_result_answers_the_order(shop):
    told(shop, "orient")
    assert refused(shop, "orient").status == USAGE
    shop.write(f"{LOCAL}/results/orient.json", {"schema_version": 1, "order_id": "cart/orient", "status": "done"})
    assert told(shop, "orient") == DONE


@pytest.mark.parametrize("left", ["{", json.dumps({"schema_version": 1}), ""])
def test_what_is_no_order_is_replaced(shop, left):
    shop.write(f"{ORDERS}/orient.json", left)
    assert told(shop, "orient") == DONE
    assert shop.order("orient")["worker"] == "orient"


def test_an_order_of_a_run_before_is_replaced(shop):
    told(shop, "orient")
    other = shop.order("orient") | {"run_id": "cart-20250101T000000Z-00000000"}
    shop.write(f"{ORDERS}/orient.json", other)
    assert told(shop, "orient") == DONE
    assert shop.order("orient")["run_id"] == RUN_ID


def test_a_link_in_the_orders_place_is_not_followed(shop, tmp_path):
    (tmp_path / "secret").write_text("kept")
    (shop.root / ORDERS).mkdir(parents=True)
    (shop.root / ORDERS / "orient.json").symlink_to(tmp_path / "secret")
    with pytest.raises(Exit) as ending:
        told(shop, "orient")
    assert ending.value.status == USAGE
    assert (tmp_path / "secret").read_text() == "kept"


def test_two_at_once_leave_one_order_and_one_refusal(shop):
    facts = read_compile_facts(DiskTree(shop.root), SLUG)
    request = command.Request(SLUG, "orient")
    one, two = (command.compile_order(facts, request, f"2026-03-01T10:00:0{n}.000Z") for n in (1, 2))
    assert compile_write.write_order(shop.root, SLUG, one.fact, one.data, command.clock.now)
    with pytest.raises(compile_write.LiveOrder):
        compile_write.write_order(shop.root, SLUG, two.fact, two.data, command.clock.now)
    assert shop.order("orient")["compiled_at"] == one.document["compiled_at"]
    assert not (shop.root / LOCAL / ".ingest.lock").exists()


# --- breakers and rules ---------------------------------------------------------------------------------------------------


def trip(**more: object) -> dict:
    row = {
        "at": "2026-03-01T10:30:00.000Z",
        "run_id": RUN_ID,
        "breaker": "inner",
        "status": "trip",
        "scope_id": "core",
        "round": 1,
    }
    return {**row, "elapsed_s": None, "budget_s": None, "reason": "attempt budget", "action": "go on", **more}


def test_a_breaker_that_stands_refuses_its_scope_and_no_other(shop):
    shop.scope("side", "use_cases: [UC-1]\nallowed_file_substrate: [src/side/**]\n")
    shop.append(f"{LOCAL}/breakers.jsonl", trip())
    ending = refused(shop, *BUILD)
    assert (ending.status, "E-BREAKER" in ending.message) == (TRIPPED, True)
    assert told(shop, "--slug", SLUG, "--scope", "side", "--round", "1", "--attempt", "1") == DONE
    assert told(shop, "--slug", SLUG, "--scope", "core", "--round", "2", "--attempt", "1") == DONE
    assert told(shop, "evaluate", "--slug", SLUG, "--round", "1") == DONE


def test_a_deadline_that_has_passed_refuses_before_anybody_recorded_it(shop):
    config = {"wall_clock_budget_s": 60}
    receipt = {
        "receipt_version": 1,
        "slug": SLUG,
        "run_id": RUN_ID,
        "started_at": "2026-03-01T09:59:00.000Z",
        "config": config,
    }
    shop.write(f"{LOCAL}/receipt.json", receipt)
    assert refused(shop, *BUILD).status == TRIPPED
    assert refused(shop, "analyze").status == TRIPPED
    assert told(shop, "hammer") == DONE


def test_a_rule_that_is_set_to_deny_forbids_the_order_and_else_it_is_told(shop, capsys):
    assert told(shop, "evaluate", "--slug", SLUG, "--round", "1", "--dry-run") == DONE
    assert "R-04" in capsys.readouterr().err
    shop.write(".shapeupd.toml", '[rules]\nprofile = "enforce"\n')
    ending = refused(shop, "evaluate", "--slug", SLUG, "--round", "1")
    assert (ending.status, "R-04" in ending.message) == (WANTING, True)


def test_a_scope_without_progress_is_told_on_stderr(shop, capsys):
    shop.write(f"{LOCAL}/t0/trials.jsonl", "")
    for number in (1, 2):
        row = {
            "schema_version": 1,
            "trial": number,
            "run_id": RUN_ID,
            "round": 1,
            "attempt": number,
            "scope_id": "core",
        }
        score = {"regressions": 0, "fixtures_passed": 0, "fixtures_total": 1, "db_probe": None}
        shop.append(f"{LOCAL}/t0/trials.jsonl", {**row, "score": score, "status": "reverted", "digest": []})
    assert told(shop, "--slug", SLUG, "--scope", "core", "--round", "1", "--attempt", "3") == DONE
    notice = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (notice["breaker"], notice["streak"]) == ("stagnation", 2)
    assert len(shop.order("core-r1-a3")["payload"]["trial_history"]) == 2


# --- bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("orient", "--slug", "nowhere"), NOTHING_THERE),
        (("orient", "--slug", "../x"), USAGE),
        (("orient", "--slug", "metrics"), USAGE),
        (("orient", "--operation", "wire", "--slug", SLUG), USAGE),
        (("invent", "--slug", SLUG), USAGE),
        (("--slug", SLUG, "--task", "TASK-404"), USAGE),
        (("--slug", SLUG, "--scope", "missing", "--round", "1", "--attempt", "1"), USAGE),
        (("--slug", SLUG, "--scope", "a/b", "--round", "1", "--attempt", "1"), USAGE),
        (("--slug", "other", "--scope", "shapeup/cart/scopes/core.md"), NOTHING_THERE),
        (("evaluate", "--slug", SLUG, "--payload", "["), USAGE),
        (("evaluate", "--slug", SLUG, "--payload", "[]"), USAGE),
        (("evaluate", "--slug", SLUG, "--payload", '{"trial_history": []}'), USAGE),
        (("evaluate", "--slug", SLUG, "--payload", '{"bugs": []}'), USAGE),
        (("evaluate", "--slug", SLUG, "--payload", '{"dimensions": 1}'), WANTING),
    ],
)
def test_bad_input_ends_with_one_message_and_changes_nothing(shop, words, status):
    ending = refused(shop, *words)
    assert ending.status == status
    assert "fix:" in ending.message


def test_a_contract_that_reads_in_part_is_named_by_line(shop):
    shop.write("shapeup/cart/scopes/core.md", "---\nscope_id: core\nallowed_file_substrate:\n  x: y\n---\n")
    ending = refused(shop, *BUILD)
    assert (ending.status, "CONTRACT-UNREADABLE" in ending.message) == (USAGE, True)
    assert told(shop, "orient") == DONE


def test_a_closed_run_gets_no_order_but_for_what_comes_after_it(shop):
    shop.harness("shipped")
    assert refused(shop, *BUILD).status == NOTHING_THERE
    assert told(shop, "coach", "--slug", SLUG) == DONE


def test_a_local_tree_that_is_a_link_is_not_written_through(shop, tmp_path):
    (shop.root / ".shapeup").rename(tmp_path / "away")
    (shop.root / ".shapeup").symlink_to(tmp_path / "away")
    with pytest.raises(Exit) as ending:
        told(shop, "coach", "--slug", SLUG)
    assert ending.value.status == USAGE
    assert not (tmp_path / "away" / SLUG / "orders").exists()


# --- the facts ------------------------------------------------------------------------------------------------------------


def evaluation(shop: Shop, **more: object) -> str:
    verdict = {"overall": "FAIL", "bugs": [{"id": "B1", "location": "src/core/a.py:1"}]}
    path = f"{LOCAL}/results/evaluate-r1.json"
    shop.write(
        path, {"schema_version": 1, "order_id": "cart/evaluate-r1", "status": "done", "verdict": verdict, **more}
    )
    return path


def test_the_bugs_of_the_last_verdict_come_into_the_fix_order(shop):
    evaluation(shop)
    told(shop, "--slug", SLUG, "--scope", "core", "--round", "2", "--attempt", "1")
    order = shop.order("core-r2-a1")
    assert (order["operation"], [bug["id"] for bug in order["payload"]["bugs"]]) == ("fix", ["B1"])


def test_a_verdict_that_was_refused_or_is_a_marker_routes_nothing(shop):
    tree = DiskTree(shop.root)
    data = (shop.root / evaluation(shop)).read_bytes()
    row = {
        "run_id": RUN_ID,
        "order_id": "cart/evaluate-r1",
        "order_sha256": None,
        "sha256": sha256_of(data),
        "outcome": "rejected",
    }
    shop.append(f"{LOCAL}/receipts/ingest.jsonl", row)
    assert read_compile_facts(tree, SLUG).verdict_of(1) is None
    shop.append(f"{LOCAL}/receipts/ingest.jsonl", {**row, "outcome": "applied"})
    assert read_compile_facts(tree, SLUG).verdict_of(1) is not None
    evaluation(shop, synthetic=True)
    assert read_compile_facts(tree, SLUG).verdict_of(1) is None


def test_a_file_name_without_an_ending_is_known_by_the_file_that_bears_it(shop):
    shop.write("Makefile", "x")
    has_file = read_compile_facts(DiskTree(shop.root), SLUG).has_file
    assert has_file("Makefile")
    assert not any(map(has_file, ("src", "../repo/Makefile", "/etc/passwd", "a\0b")))


def test_a_list_that_the_contract_writes_as_one_text_is_a_list_in_the_order(shop):
    shop.scope("core", "use_cases: UC-1\nallowed_file_substrate: src/**\ndb_probe: ~\n")
    told(shop, *BUILD)
    contract = shop.order("core-r1-a1")["payload"]["scope_contract"]
    assert (contract["use_cases"], contract["allowed_file_substrate"], "db_probe" in contract) == (
        ["UC-1"],
        ["src/**"],
        False,
    )


def test_decisions_come_from_the_committed_ledger(shop):
    head = "## Decisions\n| Round | Scope | Kind | Question | Answer | Resolved by |\n|---|---|---|---|---|---|\n"
    shop.write("shapeup/cart/round-ledger.md", head + "| 1 | core | design-decision | colour? | red | PO |\n")
    told(shop, *BUILD)
    (decision,) = shop.order("core-r1-a1")["payload"]["decisions"]
    assert (decision["id"], decision["answer"]) == ("ESC-01", "red")
