"""A request and facts to one order: stem, worker, substrate, payload; or why there is none. Source: protocol §2.3-2.5, §3.1, §6.8-6.9."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.addresses import ORDER_ID, parse_address
from parsers.aegis import AegisTriple
from parsers.domain import Verdict
from parsers.envelopes import PAYLOAD_RIGHTS, payload_findings
from parsers.faults import Fault
from parsers.substrates import meaning_of
from parsers.tasks import Box, Task
from parsers.trials import Score, Trial
from reducers.bugs import ScopeArea
from reducers.compile.order import Compiled, Refused, compile_order
from reducers.compile.request import Artifact, CompileFacts, Contract, Request
from reducers.compile.stagnation import stagnation_notice
from reducers.compile.stems import WORKERS, order_stem
from reducers.compile.substrate import substrate_of

NOW = "2026-03-01T10:00:00.000Z"
SLUG = "shop"


def task(number: int, status: str = "ready", scope: str | None = None, priority: int = 1, **more: object) -> Task:
    task_id = f"TASK-{number:03d}"
    path = f".shapeup/{SLUG}/tasks/{task_id}.md"
    return Task(path, task_id, f"Task {number}", status, (), (), priority, scope, "", 0, ("UC-1",), True)._replace(
        **more
    )  # type: ignore[arg-type]


def contract(
    scope: str, *globs: str, use_cases: tuple[str, ...] = ("UC-1",), shared: tuple[str, ...] = (), **more: object
) -> Contract:
    document = {"scope_id": scope, "use_cases": list(use_cases), "allowed_file_substrate": list(globs)}
    area = ScopeArea(scope, globs, shared, (), use_cases)
    return Contract(f"shapeup/{SLUG}/scopes/{scope}.md", area, document)._replace(**more)  # type: ignore[arg-type]


def trial(number: int, scope: str = "Cart", round_: int = 1, status: str = "kept", file: str | None = None) -> Trial:
    digest = (AegisTriple(file, number, "broke", "stack-frame"),) * 5 if file else ()
    return Trial(scope, status, round_, number, number, score=Score(0, 1, 2), delta="baseline", digest=digest)


FACTS = CompileFacts(
    "/checkout",
    SLUG,
    "shop-20260301T090000Z-0a1b2c3d",
    lens="standard",
    dimensions=("spec-conformance",),
    spec_dir=f"shapeup/{SLUG}/spec",
    tasks=(task(1, scope="Cart"), task(2, scope="pay", use_case_refs=("UC-2",)), task(3, "cut", scope="Cart")),
    contracts={"cart": contract("Cart", "src/cart/**"), "pay": contract("pay", "src/pay/**", use_cases=("UC-2",))},
)


def compiled(facts: CompileFacts = FACTS, **words: object) -> dict:
    found = compile_order(facts, Request(SLUG, **words), NOW)  # type: ignore[arg-type]
    assert isinstance(found, Compiled), found
    assert json.loads(found.data) == found.document
    return found.document


def refused(facts: CompileFacts = FACTS, **words: object) -> Fault:
    found = compile_order(facts, Request(SLUG, **words), NOW)  # type: ignore[arg-type]
    assert isinstance(found, Refused)
    assert found.kind == "input"
    return found.faults[0]


# --- stems and workers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "stem"),
    [
        (("execute", "SC_01 Cart", 1, 2), "sc-01-cart-r1-a2"),
        (("execute", None, 1, 2), "r1-a2"),
        (("execute",), "execute"),
        (("evaluate", None, 3), "evaluate-r3"),
        (("spike", "x"), "spike-x"),
        (("spike", "x", 2), "spike-x-r2"),
        (("execute", None, None, None, "TASK-003"), "execute-task-003"),
        (("fix", "cart", 2, None, "TASK-003"), "fix-task-003-r2"),
        (("fix", "cart", 2, 1, "TASK-003"), "cart-r2-a1"),
    ],
)
def test_a_stem_says_what_it_is_of(words, stem):
    assert order_stem(*words) == stem


@given(
    scope=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
    round_=st.integers(1, 10**6),
    attempt=st.integers(1, 10**6),
)
def test_a_build_stem_is_read_back_as_it_was_made(scope, round_, attempt):
    order_id = f"s/{order_stem('execute', scope, round_, attempt)}"
    assert ORDER_ID.match(order_id)
    assert parse_address(order_id)[1:] == (round_, attempt)


@pytest.mark.parametrize("operation", sorted(set(WORKERS) - {"execute", "fix", "spike"}))
def test_every_operation_has_a_worker_a_template_and_an_order_that_is_wholly_its_own(operation):
    facts = FACTS._replace(trials=(trial(1),), ledgers=(b"", b""), has_file=lambda path: True)
    document = compiled(facts, operation=operation, round=2 if operation == "evaluate" else None)
    assert document["worker"] == WORKERS[operation]
    assert meaning_of(document["order_id"]).operations == (operation,)
    assert payload_findings(document, "x") == ((), ())
    assert set(document["substrate"]) <= {"allowed", "append_only", "frozen"}


def test_an_order_has_the_keys_of_the_record_in_their_order():
    keys = "schema_version order_id run_id compiled_at worker mode operation interaction substrate payload"
    assert list(compiled(operation="orient")) == keys.split()
    assert "run_id" not in compiled(FACTS._replace(run_id=None), operation="orient")


def test_a_worker_that_is_named_wins_and_one_that_is_odd_is_told():
    found = compile_order(FACTS, Request(SLUG, "evaluate", worker="coach"), NOW)
    assert isinstance(found, Compiled)
    assert found.document["worker"] == "coach"
    assert [one.code for one in found.warnings] == ["E-WORKER"]
    assert "nobody" in refused(operation="evaluate", worker="nobody").what


# --- what may be written ----------------------------------------------------------------------------------------------


def test_a_template_keeps_the_keys_it_has_and_no_other():
    area = ScopeArea("cart", ("src/**",), ("src/app.py",))
    assert substrate_of("execute", "s", None, area) == {
        "allowed": ["src/**", ".shapeup/s/spikes/**"],
        "shared": ["src/app.py"],
    }
    assert substrate_of("analyze", "s", "docs/spec/", None) == {
        "allowed": ["docs/spec/**", ".shapeup/s/**"],
        "frozen": [],
    }
    assert list(substrate_of("reconcile", "s", None, None)) == ["allowed", "append_only", "frozen"]
    assert substrate_of("retrofit-surface", "s", None, None)["allowed"] == []
    assert list(substrate_of("coach", "s", None, None)) == ["allowed"]


def test_a_task_is_built_where_its_own_scope_may_be():
    document = compiled(is_next=True)
    assert document["order_id"] == "shop/execute-task-001"
    assert document["substrate"]["allowed"] == ["src/cart/**", ".shapeup/shop/spikes/**"]
    assert document["payload"]["scope_contract"]["scope_id"] == "Cart"


def test_a_task_of_no_scope_or_of_several_is_refused_until_one_is_named():
    lone = FACTS._replace(tasks=(task(1, use_case_refs=("UC-9",)),))
    assert refused(lone, task="TASK-001").code == "E-NO-CONTRACT"
    both = FACTS._replace(tasks=(task(1, use_case_refs=("UC-1", "UC-2")),))
    assert "Cart, pay" in refused(both, task="TASK-001").what
    assert compiled(both, task="TASK-001", scope="pay")["substrate"]["allowed"][0] == "src/pay/**"


def test_without_any_contract_only_the_spikes_are_open_and_that_is_said():
    found = compile_order(FACTS._replace(contracts={}), Request(SLUG, is_next=True), NOW)
    assert isinstance(found, Compiled)
    assert found.document["substrate"] == {"allowed": [".shapeup/shop/spikes/**"], "shared": []}
    assert [one.code for one in found.warnings] == ["E-NO-CONTRACT"]


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_next_is_the_ready_task_of_the_lowest_priority_whose_dependencies_are_done():
    tasks = (
        task(1, "done", "Cart"),
        task(2, scope="Cart", priority=5, depends_on=("TASK-001",)),
        task(3, scope="Cart", priority=0, depends_on=("TASK-002",)),
        task(4, "blocked", "Cart", priority=0),
        task(5, scope="Cart", priority=0, depends_on=("TASK-404",)),
    )
    assert compiled(FACTS._replace(tasks=tasks), is_next=True)["payload"]["tasks"][0]["id"] == "TASK-002"
    assert refused(FACTS._replace(tasks=tasks[2:]), is_next=True).code == "E-NO-TASK"
    assert "done or cut" in refused(FACTS._replace(tasks=tasks[:1]), is_next=True).what
    assert "no tasks" in refused(FACTS._replace(tasks=()), is_next=True).what


def test_a_task_is_named_by_its_id_and_by_nothing_near_it():
    assert refused(task="TASK-1").code == "E-NO-TASK"
    twins = FACTS._replace(tasks=(task(1), task(1, path=f".shapeup/{SLUG}/tasks/TASK-001-b.md")))
    assert refused(twins, task="TASK-001").code == "E-TASK-AMBIGUOUS"


def test_a_scope_is_given_its_tasks_but_those_that_were_cut():
    payload = compiled(scope="cart", round=1, attempt=1)["payload"]
    assert [one["id"] for one in payload["tasks"]] == ["TASK-001"]
    assert payload["tasks"][0]["body_path"] == "/checkout/.shapeup/shop/tasks/TASK-001.md"


@pytest.mark.parametrize(
    ("listed", "use_cases", "expected"),
    [
        (("TASK-002",), (), ["TASK-002"]),
        ((), (), ["TASK-001", "TASK-003"]),
        (("TASK-001",), ("UC-404",), None),
    ],
)
def test_a_contract_without_use_cases_takes_what_it_lists_else_all_that_is_open(listed, use_cases, expected):
    tasks = (task(1), task(2, "done"), task(3))
    facts = FACTS._replace(
        tasks=tasks, contracts={"cart": contract("cart", "src/**", use_cases=use_cases, tasks=listed)}
    )
    found = compiled(facts, scope="cart", round=1, attempt=1)["payload"].get("tasks")
    assert (found and [one["id"] for one in found]) == expected


def test_a_criterion_that_covers_requirements_says_which():
    boxes = (Box(1, False, "Sum (covers: REQ-1)", "Sum (covers: REQ-1)", ("REQ-1",)), Box(2, True, "Bold", "Bold", ()))
    facts = FACTS._replace(criteria={FACTS.tasks[0].path: boxes})
    found = compiled(facts, scope="cart", round=1, attempt=1)["payload"]["tasks"][0]["acceptance_criteria"]
    assert found == [{"text": "Sum (covers: REQ-1)", "covers": ["REQ-1"]}, "Bold"]


def test_a_task_that_two_scopes_claim_is_told():
    facts = FACTS._replace(tasks=(task(1), task(2)), contracts={"a": contract("a", "a/**"), "b": contract("b", "b/**")})
    found = compile_order(facts, Request(SLUG, scope="a", round=1, attempt=1), NOW)
    assert isinstance(found, Compiled)
    assert [one.code for one in found.warnings] == ["SCOPE-PARTITION", "SCOPE-PARTITION"]


# --- the attempts before ------------------------------------------------------------------------------------------------


def test_a_new_attempt_is_told_of_the_ones_before_across_the_round_boundary():
    trials = (trial(1, file="a.py"), trial(2), trial(3, "pay", file="b.py"), *(trial(n, round_=2) for n in range(4, 6)))
    payload = compiled(FACTS._replace(trials=trials), scope="cart", round=2, attempt=3)["payload"]
    assert [row["trial"] for row in payload["trial_history"]] == [1, 2, 4, 5]
    assert [one["file"] for one in payload["digested_errors"]] == ["a.py"] * 3
    assert "trial_history" not in compiled(FACTS._replace(trials=trials), scope="cart", round=4, attempt=1)["payload"]


def test_before_the_first_trial_the_scopes_own_newest_artifact_of_the_attempt_before_is_digested():
    def artifact(scope: str, address: tuple[int, int, int], file: str) -> Artifact:
        return Artifact("t0/x.json", scope, address, False, (AegisTriple(file, 1, "m", "k"),))

    artifacts = (
        artifact("Cart", (1, 1, 2), "new.py"),
        artifact("Cart", (1, 1, 1), "old.py"),
        artifact("pay", (1, 1, 3), "pay.py"),
        artifact("Cart", (1, 2, 1), "later.py"),
    )
    facts = FACTS._replace(artifacts=artifacts)
    found = compiled(facts, scope="cart", round=1, attempt=2)["payload"]["digested_errors"]
    assert [one["file"] for one in found] == ["new.py"]
    assert "digested_errors" not in compiled(facts, scope="cart", round=1, attempt=1)["payload"]


def test_nobody_but_a_builder_of_the_scope_reads_what_builders_tried():
    facts = FACTS._replace(trials=(trial(1, file="a.py"),))
    for words in (
        {"operation": "evaluate", "round": 1},
        {"operation": "hammer"},
        {"operation": "hunt"},
        {"is_next": True},
    ):
        assert {"trial_history", "digested_errors"}.isdisjoint(compiled(facts, **words)["payload"])


def test_a_scope_that_brings_no_progress_is_told_by_the_round_it_is_in():
    facts = FACTS._replace(trials=tuple(trial(n, status="reverted") for n in (1, 2, 3)))
    notice = stagnation_notice(facts, Request(SLUG, scope="cart", round=1, attempt=4))
    assert notice is not None
    assert (notice["breaker"], notice["scope_id"], notice["streak"], notice["no_progress_k"]) == (
        "stagnation",
        "Cart",
        3,
        2,
    )
    assert stagnation_notice(facts, Request(SLUG, scope="cart", round=2, attempt=1)) is None
    assert stagnation_notice(facts, Request(SLUG, "evaluate", round=1)) is None


# --- bugs ---------------------------------------------------------------------------------------------------------------


def judged(*bugs: object, overall: str = "FAIL") -> CompileFacts:
    verdict = Verdict.model_validate({"overall": overall, "bugs": list(bugs)})
    return FACTS._replace(verdict_of=lambda round_: verdict if round_ == 1 else None)


def test_a_bug_goes_to_the_one_scope_that_owns_its_file_and_makes_its_order_a_fix():
    facts = judged({"id": "B1", "location": "src/cart/a.py:3"}, {"id": "B2", "location": "nowhere.py:1"})
    cart, pay = (compiled(facts, scope=scope, round=2, attempt=1) for scope in ("cart", "pay"))
    assert [bug["id"] for bug in cart["payload"]["bugs"]] == ["B1", "B2"]
    assert pay["payload"]["bugs"] == [{"id": "B2", "location": "nowhere.py:1", "unowned": True}]
    assert cart["operation"] == pay["operation"] == "fix"
    assert compiled(facts, operation="spike", scope="cart", round=2, attempt=1)["operation"] == "spike"


def test_no_bug_is_routed_in_round_one_after_a_pass_or_from_another_round():
    bug = {"id": "B1", "location": "src/cart/a.py:3"}
    for facts, round_ in ((judged(bug), 1), (judged(bug), 3), (judged(bug, overall="PASS"), 2)):
        document = compiled(facts, scope="cart", round=round_, attempt=1)
        assert (document["operation"], "bugs" in document["payload"]) == ("execute", False)


def test_a_scope_that_was_superseded_owns_no_bug():
    facts = judged({"id": "B1", "location": "src/cart/a.py:3"})
    old = contract("aaa", "src/cart/**", successors=("cart",))
    document = compiled(facts._replace(contracts={"aaa": old, **facts.contracts}), scope="cart", round=2, attempt=1)
    assert [bug["id"] for bug in document["payload"]["bugs"]] == ["B1"]


def test_bugs_that_the_caller_names_win():
    facts = judged({"id": "B1", "location": "src/cart/a.py:3"})
    payload = {"bugs": [{"id": "mine"}]}
    assert compiled(facts, scope="cart", round=2, attempt=1, payload=payload)["payload"]["bugs"] == [{"id": "mine"}]
    assert compiled(task="TASK-001", payload=payload)["operation"] == "fix"


# --- payload ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("worker", sorted(PAYLOAD_RIGHTS))
def test_a_field_of_another_workers_is_refused(worker):
    operation = next(name for name, owner in WORKERS.items() if owner == worker)
    everything = {name for rights in PAYLOAD_RIGHTS.values() for name in rights} - {"feature", "spec_folder", "round"}
    words = {"scope": "cart", "round": 1, "attempt": 1} if worker == "task-executor" else {}
    for name in sorted(everything - PAYLOAD_RIGHTS[worker]):
        assert refused(operation=operation, payload={name: []}, **words).code == "E-FIELD-RIGHTS"


def test_what_the_caller_says_wins_but_the_knowledge_base_is_the_workers_own():
    payload = {"pitch": "mine.md", "kb_rules_path": "other.md", "extra": 1}
    found = compile_order(FACTS, Request(SLUG, "analyze", payload=payload), NOW)
    assert isinstance(found, Compiled)
    assert found.document["payload"] == {
        "pitch": "mine.md",
        "kb_rules_path": "shapeup/knowledge-base/ba-pitch-analyzer.md",
        "extra": 1,
        "lens": "standard",
        "orient_dir": ".shapeup/shop/orient/",
        "spec_folder": "shapeup/shop/spec",
        "feature": "shop",
    }
    assert ["extra" in one.where for one in found.warnings] == [True]


def test_folders_that_a_worker_may_not_rely_on_are_left_out_and_told():
    found = compile_order(FACTS, Request(SLUG, "hammer", payload={"spec_folder": "x"}), NOW)
    assert isinstance(found, Compiled)
    assert "spec_folder" not in found.document["payload"]
    assert [one.code for one in found.warnings] == ["E-FIELD-RIGHTS"]


def test_an_evaluator_is_given_the_dimensions_and_each_scopes_newest_green_evidence():
    artifacts = (
        Artifact("new.json", "cart", (1, 2, 1), True, ()),
        Artifact("old.json", "cart", (1, 1, 1), True, ()),
        Artifact("red.json", "pay", (1, 2, 1), False, ()),
        Artifact("green-before.json", "pay", (1, 1, 1), True, ()),
        Artifact("next-round.json", "cart", (2, 1, 1), True, ()),
    )
    payload = compiled(FACTS._replace(artifacts=artifacts), operation="evaluate", round=1)["payload"]
    assert payload["dimensions"] == ["spec-conformance"]
    assert (payload["t0_artifacts"], payload["round"]) == (["new.json"], 1)


def test_the_test_command_is_the_builders():
    payload = compiled(is_next=True, test_cmd="make test")["payload"]
    assert payload["verify"] == {"test_cmd": "make test", "env": []}
    assert refused(operation="evaluate", test_cmd="make test").code == "E-FIELD-RIGHTS"


# --- what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({}, "E-NO-TASK"),
        ({"operation": "execute", "round": 1, "attempt": 1}, "E-NO-TASK"),
        ({"scope": "nowhere", "round": 1, "attempt": 1}, "E-NO-CONTRACT"),
        ({"operation": "hammer", "scope": "../x"}, "E-NO-CONTRACT"),
        ({"operation": "invent"}, "E-SCHEMA"),
        ({"task": "TASK-001", "is_next": True}, "E-SCHEMA"),
        ({"scope": "cart", "attempt": 1}, "E-SCHEMA"),
        ({"operation": "analyze", "spec_dir": "../spec"}, "E-SCHEMA"),
        ({"operation": "analyze", "spec_dir": "/etc"}, "E-SCHEMA"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_one_way_forward(words, code):
    fault = refused(**words)
    assert fault.code == code
    assert fault.fix


def test_a_contract_that_reads_in_part_builds_nothing():
    bad = contract("cart", "src/**", faults=(Fault("CONTRACT-UNREADABLE", "x.md", "what", "why", "fix"),))
    assert (
        refused(FACTS._replace(contracts={"cart": bad}), scope="cart", round=1, attempt=1).code == "CONTRACT-UNREADABLE"
    )
    assert compiled(FACTS._replace(contracts={"cart": bad}), operation="orient")["worker"] == "orient"


def test_an_order_that_would_not_validate_is_never_made():
    found = compile_order(FACTS, Request(SLUG, "evaluate", payload={"dimensions": "spec"}), NOW)
    assert isinstance(found, Refused)
    assert (found.kind, found.faults[0].code) == ("invalid", "E-SCHEMA")
    huge = compile_order(FACTS, Request(SLUG, "coach", payload={"feedback": "x" * 2_000_000}), NOW)
    assert isinstance(huge, Refused)
    assert huge.kind == "invalid"
