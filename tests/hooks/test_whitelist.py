"""Who may write one path of the working tree, `.shapeup/` included. Source: protocol §1.2, §3.3, W-10, W-12, W-13, W-16, rulings E4, J."""

from __future__ import annotations

import pytest

from hooks.whitelist import Way, WriteVerdict, explain_path, judge_write, normal_path
from parsers.layout import KINDS
from tests.hooks.changing import order, policy

L = ".shapeup/cart"
WIDE = (f"{L}/**", ".shapeup/**", "**")


def ask(path: str, *contracts: object, way: Way = "edit", **named: object) -> WriteVerdict:
    return judge_write(path, policy(*contracts), way=way, **named)  # type: ignore[arg-type]


def opens(path: str, operation: str = "execute", *, way: Way = "edit", globs: tuple[str, ...] = WIDE) -> bool:
    """Whether an order of this operation with the widest globs may write there."""
    return ask(path, order("cart/core-r1-a1", operation, allowed=globs), way=way).is_allowed


# --- the local tree --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        f"{L}/orders/core-r1-a1.json",
        f"{L}/orders/deep/x",
        f"{L}/receipts/dispatch.jsonl",
        f"{L}/receipts/ingest.jsonl",
        f"{L}/receipts/graders.jsonl",
        f"{L}/receipt.json",
        f"{L}/run-args.json",
        f"{L}/legs.jsonl",
        f"{L}/gates.jsonl",
        f"{L}/gate-answers.json",
        f"{L}/gate-h.jsonl",
        f"{L}/gate-h.md",
        f"{L}/breakers.jsonl",
        f"{L}/hill.jsonl",
        f"{L}/clock.json",
        f"{L}/harness-run.md",
        f"{L}/intake.md",
        f"{L}/t0/verdicts/r1-a1-t1.json",
        f"{L}/t0/trials.jsonl",
        f"{L}/evaluation/.verdicts-a.jsonl",
        f"{L}/seesaw/registry.json",
        f"{L}/discovery/ledger.md",
        f"{L}/rejections/order-x.json",
        f"{L}/conflicts/x",
        f"{L}/journal/00000001",
        f"{L}/.ingest.lock/owner.json",
        f"{L}/results/other-r1-a1.json",
        f"{L}/results/deep/core-r1-a1.json",
        f"{L}/escalations/q.txt",
        f"{L}/escalations/inbox/q.yml",
        f"{L}/escalations/.q.yml",
        ".shapeup/active-order",
        ".shapeup/active-scope",
        ".shapeup/gate-answers.json",
        ".shapeup/safety-overrides.json",
        ".shapeup/decisions.jsonl",
        ".shapeup/metrics/local.jsonl",
        ".shapeup/policy.json",
        ".shapeup/policy.paths",
        ".shapeup/commits.jsonl",
        ".shapeup/shapeupd.toml",
        ".shapeup/shapeupd.log",
        ".shapeup/exports/x/y.jsonl",
        ".shapeup",
        L,
        f"{L}/ORDERS/core-r1-a1.json",
        ".ShapeUp/active-order",
        f"{L}/Evaluation/.Verdicts-a.jsonl",
    ],
)
def test_no_glob_opens_what_has_its_own_writer(path: str) -> None:
    """E4, W-10."""
    for operation in ("execute", "analyze", "reconcile", "evaluate", "orient", "hunt", "hammer", ""):
        for way in ("edit", "write", "create"):
            verdict = ask(path, order("cart/core-r1-a1", operation, allowed=WIDE, append_only=WIDE), way=way)
            assert not verdict.is_allowed, (operation, way)
            assert verdict.violation is not None
            assert verdict.violation.fix


def test_every_kind_of_one_run_but_the_workers_own_is_closed() -> None:
    """The layout may grow; what it names in a run stays closed unless it is a worker's own."""
    open_kinds = {"task", "board-index", "evaluation", "qa", "orient", "working", "spikes", "reports", "result"}
    for kind in KINDS:
        if kind.template.startswith(".shapeup/") and kind.kind not in open_kinds:
            path = kind.template.replace("<slug>", "cart").replace("<stem>", "x").replace("**", "x")
            assert not opens(path, "analyze"), kind.kind


@pytest.mark.parametrize(
    ("folder", "operations"),
    [
        ("tasks/TASK-1.md", {"analyze", "reconcile"}),
        ("tasks/_index.md", {"analyze", "reconcile"}),
        ("tasks/deep/x.md", {"analyze", "reconcile"}),
        ("working/notes.md", {"analyze", "reconcile", "retrofit-surface", "coverage"}),
        ("evaluation/EVAL-FEATURE-cart.md", {"evaluate"}),
        ("qa/hunt-report.md", {"hunt"}),
        ("orient/spike-x.md", {"orient"}),
        ("spikes/try.py", {"execute", "fix", "spike"}),
        ("reports/cut.md", {"hammer"}),
    ],
)
def test_a_workers_folder_opens_for_its_operations_and_where_a_glob_says_so(folder: str, operations: set[str]) -> None:
    everyone = "analyze reconcile retrofit-surface coverage evaluate hunt orient execute fix spike hammer wire".split()
    assert {operation for operation in everyone if opens(f"{L}/{folder}", operation)} == operations
    assert not any(opens(f"{L}/{folder}", operation, globs=("src/**",)) for operation in everyone)


def test_a_path_of_the_run_that_nobody_owns_opens_by_glob_alone() -> None:
    assert opens(f"{L}/notes.txt", "analyze")
    assert opens(f"{L}/drafts/a.md", "adjudicate")
    assert not opens(f"{L}/notes.txt", globs=("src/**",))


def test_an_order_may_always_write_its_own_result() -> None:
    live = order("cart/core-r1-a1", allowed=("src/**",), frozen=(f"{L}/**",))
    for way in ("edit", "write", "create"):
        verdict = ask(f"{L}/results/core-r1-a1.json", live, way=way)
        assert (verdict.is_allowed, verdict.rule, verdict.order_id) == (True, "results", "cart/core-r1-a1")
    assert not ask(".shapeup/other/results/core-r1-a1.json", live).is_allowed
    assert not ask(f"{L}/results/Core-r1-a1.json", live).is_allowed
    over = order("cart/core-r1-a1", allowed=("src/**",), superseded=True)
    assert not ask(f"{L}/results/core-r1-a1.json", over).is_allowed
    both = (order("cart/core-r1-a1", allowed=("a",), answered=True), order("cart/x-r1-a1", allowed=("b",)))
    assert ask(f"{L}/results/core-r1-a1.json", *both).is_allowed  # C4: it may correct itself
    assert not ask(f"{L}/results/core-r1-a1.json", *both, only_live=True).is_allowed


def test_a_question_may_be_made_and_not_changed() -> None:
    live = order("cart/core-r1-a1", allowed=("src/**",))
    for name in ("q-1.yml", "q-1.yaml"):
        assert ask(f"{L}/escalations/{name}", live, way="create").rule == "escalations"
        assert not ask(f"{L}/escalations/{name}", live, way="edit").is_allowed
        assert not ask(f"{L}/escalations/{name}", live, way="write").is_allowed
    assert not ask(".shapeup/other/escalations/q.yml", live, way="create").is_allowed


def test_a_freeze_holds_in_the_local_tree_too() -> None:
    frozen = order("cart/map-scopes", "map-scopes", allowed=("x",), frozen=(f"{L}/tasks/**",))
    plan = order("cart/analyze", "analyze", allowed=(f"{L}/**",))
    assert ask(f"{L}/tasks/TASK-1.md", frozen, plan).rule == "FROZEN"
    assert ask(f"{L}/working/x", frozen, plan).is_allowed


# --- everything else -------------------------------------------------------------------------------------------------


def test_without_a_constraining_order_every_write_is_let_through() -> None:
    assert ask("anything").rule == "open"
    assert ask(f"{L}/receipt.json", order()).rule == "open"
    assert ask("anything", order(allowed=("src/**",), answered=True)).rule == "open"


@pytest.mark.parametrize("path", ["../x", "src/../../x", "/etc/passwd", "", ".", "src/..", "..", "../work/src/a"])
def test_no_glob_leaves_the_repository(path: str) -> None:
    """W-16: `**` and `../**` do not."""
    verdict = ask(path, order(allowed=("**", "../**", "/**", path)))
    assert (verdict.is_allowed, verdict.rule) == (False, "OUTSIDE")


def test_a_path_is_judged_by_what_it_means() -> None:
    assert normal_path("./src//x/../a.py") == "src/a.py"
    assert ask("src/x/../a.py", order(allowed=("src/*",))).is_allowed
    assert not ask(f"src/../{L}/receipt.json", order(allowed=("src/**",))).is_allowed


def test_the_fields_of_the_substrate_say_how_a_path_is_open() -> None:
    live = order(
        allowed=("a/**",), shared=("s/**",), append_only=("log/*", "n.md#A"), frozen=("a/core", "a/n.md#Steps")
    )
    assert ask("a/x", live)[:4] == ("allowed", "cart/core-r1-a1", "a/**", False)
    assert ask("s/x", live)[:4] == ("shared", "cart/core-r1-a1", "s/**", False)
    assert ask("log/x", live)[:4] == ("append_only", "cart/core-r1-a1", "log/*", True)
    assert ask("n.md", live)[:4] == ("append_only", "cart/core-r1-a1", "n.md#A", True)
    assert ask("a/n.md", live)[:4] == ("allowed", "cart/core-r1-a1", "a/**", True)  # but not its Steps
    assert ask("a/core", live)[:3] == ("FROZEN", "cart/core-r1-a1", "a/core")
    assert ask("A/core", live).rule == "COLLISION"
    assert ask("b", live).rule == "OUTSIDE"


def test_what_may_only_grow_is_not_to_be_replaced_and_may_be_made() -> None:
    live = order(append_only=("log/*", "n.md#A"))
    assert ask("log/x", live, way="write").rule == "APPEND-ONLY"
    assert ask("n.md", live, way="write").rule == "APPEND-ONLY"
    assert ask("log/x", live, way="create")[0:4:3] == ("append_only", False)
    assert ask("n.md", live, way="create").by_content
    assert ask("log/x", live, order("cart/b", allowed=("log/**",)), way="write").is_allowed


def test_people_sole_writers_and_spellings_count_as_in_a_commit() -> None:
    of = policy(order(allowed=("**",), frozen=("docs/**",)), human_globs=("docs/*.md",))
    assert judge_write("docs/a.md", of, way="write").rule == "human_globs"
    assert judge_write("docs/a/b.md", of, way="write").rule == "FROZEN"
    assert judge_write("shapeup/cart/scopes/a.md", of, way="write").rule == "R-19"
    assert judge_write("Shapeup/cart/scopes/a.md", of, way="write").rule == "COLLISION"
    assert judge_write(".shapeupd.toml", of, way="write").rule == "R-19"


def test_an_answered_order_permits_until_it_is_superseded_unless_only_live_ones_count() -> None:
    done = order("cart/a-r1-a1", allowed=("a/**",), answered=True)
    live = order("cart/b-r1-a1", allowed=("b/**",))
    assert ask("a/x", done, live).is_allowed
    assert not ask("a/x", done, live, only_live=True).is_allowed  # W-13
    assert not ask("a/x", done._replace(superseded=True), live).is_allowed


def test_the_undo_of_a_stray_write_suits_what_it_was() -> None:
    live = order(allowed=("src/**",))
    for way, fix in (
        ("edit", "git restore -- 'lib/a b'"),
        ("write", "git restore -- 'lib/a b'"),
        ("create", "rm -- 'lib/a b'"),
    ):
        verdict = ask("lib/a b", live, way=way)  # type: ignore[arg-type]
        assert verdict.violation is not None
        assert verdict.violation.fix == fix


# --- explain ---------------------------------------------------------------------------------------------------------

EXPLAINED = policy(
    order("cart/core-r1-a1", allowed=("src/**",), append_only=("log.md",), frozen=("spec/**",)),
    order("cart/wire", "wire", allowed=("shapeup/cart/wiring-map.md",)),
)


@pytest.mark.parametrize(
    ("path", "verdict", "rule", "order_id", "pattern", "owner", "ask"),
    [
        ("src/a", "allow", "allowed", "cart/core-r1-a1", "src/**", "cart/core-r1-a1", None),
        ("./src//a", "allow", "allowed", "cart/core-r1-a1", "src/**", "cart/core-r1-a1", None),
        (
            "log.md",
            "allow",
            "append_only",
            "cart/core-r1-a1",
            "log.md",
            "cart/core-r1-a1",
            "judged, when it is committed",
        ),
        ("lib/a", "deny", "OUTSIDE", None, None, None, "substrate-expansion"),
        (
            "spec/a",
            "deny",
            "FROZEN",
            "cart/core-r1-a1",
            "spec/**",
            "cart/core-r1-a1",
            "wait for the result of cart/core-r1-a1",
        ),
        (
            "shapeup/cart/wiring-map.md",
            "allow",
            "allowed",
            "cart/wire",
            "shapeup/cart/wiring-map.md",
            "an order of wire",
            None,
        ),
        (".shapeup/cart/receipt.json", "deny", "R-19", None, None, "open", "leave it to its writer: open"),
        (
            ".shapeup/cart/results/core-r1-a1.json",
            "allow",
            "results",
            "cart/core-r1-a1",
            ".shapeup/cart/results/core-r1-a1.json",
            "the dispatched worker",
            None,
        ),
        (
            ".shapeup/cart/escalations/q.yml",
            "allow",
            "escalations",
            "cart/core-r1-a1",
            ".shapeup/cart/escalations/*.yml",
            "cart/core-r1-a1",
            None,
        ),
        ("../x", "deny", "OUTSIDE", None, None, None, "substrate"),
    ],
)
def test_explain_says_who_by_what_and_what_to_ask_for(
    path: str, verdict: str, rule: str, order_id: str, pattern: str, owner: str, ask: str | None
) -> None:
    said = explain_path(path, EXPLAINED)
    assert list(said) == ["path", "verdict", "rule", "order_id", "pattern", "owner", "ask"]
    shown = (said["verdict"], said["rule"], said["order_id"], said["pattern"], said["owner"])
    assert shown == (verdict, rule, order_id, pattern, owner)
    assert (said["ask"] is None) is (ask is None)
    assert (ask or "") in str(said["ask"])


def test_explain_where_nothing_narrows_and_where_a_live_order_is_required() -> None:
    assert explain_path("a", policy())["rule"] == "open"
    closed = policy(
        order(allowed=("src/**",), answered=True), no_live_order="deny", has_open_run=True, human_globs=("d/*",)
    )
    assert explain_path("lib/a", closed)["rule"] == "NO-LIVE-ORDER"
    assert explain_path("src/a", closed)["rule"] == "allowed"
    assert explain_path("d/a", closed)["rule"] == "human_globs"
