"""What the spec lint finds in scope contracts, one by one and together. Source: protocol §5.2, §10.5, §10.6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reducers.lint_spec.findings import WHY, finding_row
from reducers.lint_spec.lint import lint_spec, spec_document
from reducers.lint_spec.scope_graph import cycles_of
from tests.reducers.lint_spec.feature import BOARD, SPEC, contract, facts_of, findings, task, told

ADD, RM = f"{SPEC}/scopes/add.md", f"{SPEC}/scopes/rm.md"


def test_a_clean_feature_has_no_finding():
    assert findings({}) == []


@pytest.mark.parametrize(
    ("allowed", "topology", "is_layer"),
    [
        ("src/add/**", "ICEBERG", True),
        ("src/add/**, src/add/x.py", "ICEBERG", True),
        ("src/add/x.py, tests/x.py", "ICEBERG", False),
        ("lib/a.py, lib/b.py", "ICEBERG", False),
        ("src/add/**", "CHOWDER", False),
        ("src/add", "LAYER_CAKE", True),
    ],
)
def test_a_substrate_inside_one_folder_is_a_layer(allowed, topology, is_layer):
    got = findings({ADD: contract("add", "UC-Add", allowed=allowed, topology=topology)})
    assert [(one.rule, one.level, one.where) for one in got] == ([("PA1", "red", f"{ADD}:6")] if is_layer else [])
    assert not got or "'src/add" in got[0].what


@pytest.mark.parametrize(("count", "is_large"), [(15, False), (16, True)])
def test_a_scope_that_may_write_many_files_is_no_slice(count, is_large):
    files = {f"lib/m{number}.py": "" for number in range(count)}
    got = findings({**files, ADD: contract("add", "UC-Add", allowed="lib/**, docs/x.md")})
    assert [(one.rule, one.level) for one in got] == ([("PA2", "warn")] if is_large else [])
    assert not got or str(count) in got[0].what


def test_a_scope_without_a_fixture_can_never_be_verified():
    assert told({ADD: contract("add", "UC-Add", "e2e_verification_fixtures: []")}) == [
        ("T0-UNVERIFIABLE", "red", "add")
    ]


def test_a_fixture_that_is_meant_to_fail_never_passes():
    fixtures = 'e2e_verification_fixtures: ["run bad  # exit 3", "echo exit 2", "x # exit 0", "y # EXIT 4 then"]'
    got = findings({ADD: contract("add", "UC-Add", fixtures)})
    assert [(one.rule, one.level) for one in got] == [("T0-UNPASSABLE", "warn")] * 2
    assert '"exit 3"' in got[0].what


def test_a_contract_that_does_not_read_names_the_part_and_its_line():
    text = contract("add", "UC-Add").replace("use_cases: [UC-Add]", "use_cases:\n  UC-Add")
    got = [one for one in findings({ADD: text}) if one.rule == "CONTRACT-UNREADABLE"]
    assert [(one.level, one.where, one.scope) for one in got] == [("red", f"{ADD}:4", "add")]
    assert "`use_cases`" in got[0].what
    assert "ABSENT" in got[0].what


@pytest.mark.parametrize(
    "text",
    [
        "\n" + contract("add", "UC-Add"),
        contract("add", "UC-Add").replace("covers:", "scope_id: twice\ncovers:"),
        contract("add", "UC-Add") + "\n## grader_files\n\n- a\n",
        contract("add", "UC-Add") + "\n## Screens\n\n| test_id | role |\n|---|---|\n| a | b |\n",
        "---\nx: " + "y" * 70_000 + "\n---\n",
    ],
)
def test_each_way_not_to_read_is_red(text):
    assert ("CONTRACT-UNREADABLE", "red") in {(one.rule, one.level) for one in findings({ADD: text})}


def test_a_heading_that_is_nearly_right_is_told():
    text = contract("add", "UC-Add") + "\n## affordances\n\n| name |\n|---|\n| a |\n"
    got = findings({ADD: text})
    assert [(one.rule, one.level, one.where) for one in got] == [("NEAR-HEADING", "warn", f"{ADD}:13")]


def test_two_scopes_may_not_write_one_file_unless_both_share_it():
    overlapping = {RM: contract("rm", "UC-Rm", allowed="src/add/*, tests/rm.py")}
    got = findings(overlapping)
    assert [(one.rule, one.level, one.scope) for one in got] == [("DISJOINT", "red", "add+rm")]
    assert "src/add/a.py" in got[0].what
    shares = "shared_substrate: [src/add/**]"
    one_says = {RM: contract("rm", "UC-Rm", shares, allowed="src/add/*, tests/rm.py")}
    assert told(one_says) == [("DISJOINT", "red", "add+rm")]
    both_say = {**one_says, ADD: contract("add", "UC-Add", shares)}
    assert told(both_say) == [("SHARED-CONCURRENT", "warn", "add+rm")]


def test_a_file_that_does_not_exist_yet_is_no_overlap():
    same = "lib/new.py, docs/x.md"
    assert told({ADD: contract("add", "UC-Add", allowed=same), RM: contract("rm", "UC-Rm", allowed=same)}) == []


def test_a_superseded_scope_builds_nothing_and_collides_with_nobody():
    old = contract("add", "UC-Add", "superseded_by: [rm]", "e2e_verification_fixtures: []", allowed="src/add/**")
    new = contract("rm", "UC-Add", allowed="src/add/a.py, tests/x.py")
    assert told({ADD: old, RM: new}) == []


def test_a_task_belongs_to_one_scope():
    both = {RM: contract("rm", "UC-Add, UC-Rm")}
    got = findings(both)
    assert [(one.rule, one.level, one.scope) for one in got] == [("SCOPE-PARTITION", "red", "add+rm")]
    assert "TASK-1" in got[0].what
    stamped = task("TASK-1", "UC-Add", "unlocks: [TASK-2]", "scope_id: add")
    assert told({**both, f"{BOARD}/tasks/TASK-1.md": stamped}) == []


def test_a_contract_names_no_board_id():
    got = findings({ADD: contract("add", "UC-Add", "tasks: [TASK-1, TASK-2]")})
    assert [(one.rule, one.scope) for one in got] == [("TIER-DIRECTION", "add"), ("TIER-DIRECTION", None)]
    assert "TASK-1, TASK-2" in got[0].what


@pytest.mark.parametrize(
    ("use_cases", "ids"), [("[]", ["add"]), ("[UC-9, UC-Add]", ['"UC-9"']), ('["[[usecases/UC-Add.md]]"]', [])]
)
def test_a_scope_is_anchored_in_a_use_case_that_exists(use_cases, ids):
    got = findings({ADD: contract("add", "UC-Add", f"use_cases: {use_cases}")})
    assert [one.rule for one in got] == ["SCOPE-ANCHOR"] * len(ids)
    assert all(name in one.what for name, one in zip(ids, got, strict=True))


def test_dependencies_are_known_and_run_in_no_circle():
    got = findings(
        {RM: contract("rm", "UC-Rm", "depends_on: [rm, zzz, add]"), ADD: contract("add", "UC-Add", "depends_on: [rm]")}
    )
    assert [one.rule for one in got] == ["SCOPE-DEPS"] * 4
    assert [one.scope for one in got] == ["rm", "rm", "rm", "add"]
    assert ["rm → rm" in got[2].what, "add → rm → add" in got[3].what] == [True, True]
    assert '"zzz"' in got[1].what


@given(st.dictionaries(st.sampled_from("abcdefg"), st.lists(st.sampled_from("abcdefg"), max_size=4), max_size=7))
def test_a_cycle_is_told_exactly_where_there_is_one(drawn):
    edges = {node: [need for need in needs if need in drawn] for node, needs in drawn.items()}
    cycles = list(cycles_of(sorted(edges), edges))
    for cycle in cycles:
        assert all(after in edges[before] for before, after in zip(cycle, (*cycle[1:], cycle[0]), strict=True))
    assert len({frozenset(cycle) for cycle in cycles}) == len(cycles)
    left = dict(edges)
    while ready := [node for node, needs in left.items() if not any(need in left for need in needs)]:
        for node in ready:
            del left[node]
    assert bool(left) == bool(cycles)


def test_a_scope_covers_registered_requirements():
    got = findings({ADD: contract("add", "UC-Add", "covers: [req-1, REQ-9, wish]")})
    assert [(one.rule, one.level) for one in got] == [("SCOPE-COVERS", "red"), ("SCOPE-COVERS", "warn")]
    assert ['"REQ-9"' in got[0].what, '"wish"' in got[1].what] == [True, True]
    no_registry = {f"{SPEC}/requirements.md": None, ADD: contract("add", "UC-Add", "covers: [REQ-9]")}
    assert told(no_registry) == []


def test_a_json_contract_counts_where_there_is_no_markdown():
    old = '{"scope_id": "old", "use_cases": ["UC-Add"], "allowed_file_substrate": ["a/x", "b/y"], "e2e_verification_fixtures": ["z"]}'
    files = {f"{SPEC}/scopes/old.json": old, f"{SPEC}/scopes/add.json": "{bad"}
    assert told(files) == [("SCOPE-PARTITION", "red", "add+old")]
    assert told({f"{SPEC}/scopes/old.json": "[1"})[0] == ("CONTRACT-UNREADABLE", "red", "old")


def test_every_finding_says_where_why_and_what_to_do():
    spoilt = {ADD: "---\nscope_id: add\nuse_cases:\n  x\n---\n", f"{SPEC}/spec/domain-model.md": None}
    report = lint_spec(facts_of(spoilt))
    assert {one.rule for one in report.findings} <= WHY.keys()
    assert all(one.where.startswith((SPEC, BOARD)) and one.why and one.fix for one in report.findings)
    assert report.red + report.warn == len(report.findings) > 3
    assert list(finding_row(report.findings[0])) == ["rule", "level", "scope", "where", "what", "why", "fix"]
    assert [row["rule"] for row in spec_document(report)["findings"]] == [one.rule for one in report.findings]
