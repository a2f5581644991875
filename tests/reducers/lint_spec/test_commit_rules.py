"""Which reds a committed contract answers for, and what a change of specs is told as. Source: ruling E9."""

from __future__ import annotations

from reducers.lint_spec.commit_rules import SHOWN, scope_findings, scopes_document
from reducers.lint_spec.facts import read_scope_facts
from reducers.lint_spec.lint import lint_spec
from reducers.lint_spec.news import compare, tell_specs
from reducers.lint_trace.facts import read_trace_facts
from reducers.lint_trace.lint import lint_trace
from tests.reducers.lint_spec.feature import BOARD, SPEC, contract, feature, tree_of

ADD, RM = f"{SPEC}/scopes/add.md", f"{SPEC}/scopes/rm.md"


def committed(changes):
    tree = tree_of({**feature(), **changes})
    facts = read_scope_facts(tree, "cart", [path for path in tree.files if not path.startswith(".shapeup/")])
    return scope_findings(facts)


def rules(changes):
    return {path: [one.rule for one in rows] for path, rows in committed(changes).items()}


def test_a_clean_feature_has_nothing_to_answer_for():
    assert rules({}) == {}


def test_both_contracts_answer_for_a_file_that_both_may_write():
    assert rules({RM: contract("rm", "UC-Rm", allowed="src/add/*, tests/rm.py")}) == {
        ADD: ["DISJOINT"],
        RM: ["DISJOINT"],
    }


def test_every_scope_on_a_circle_answers_for_it():
    circle = {ADD: contract("add", "UC-Add", "depends_on: [rm]"), RM: contract("rm", "UC-Rm", "depends_on: [add]")}
    assert rules(circle) == {ADD: ["SCOPE-DEPS"], RM: ["SCOPE-DEPS"]}
    outside = {**circle, f"{SPEC}/scopes/ui.md": contract("ui", "UC-Rm", "depends_on: [add]", "superseded_by: [add]")}
    assert rules(outside) == rules(circle)


def test_a_contract_answers_for_its_own_anchor_and_requirements_alone():
    assert rules({ADD: contract("add", "UC-9", "covers: [REQ-9]")}) == {ADD: ["SCOPE-COVERS", "SCOPE-ANCHOR"]}


def test_warnings_and_what_the_hooks_judge_themselves_are_left_out():
    text = contract("add", "UC-Add", "tasks: [TASK-1]", "covers: [wish]", allowed="src/add/**") + "\n## affordances\n"
    assert rules({ADD: text}) == {}


def test_the_board_tells_who_claims_a_task_where_there_is_one():
    both = {RM: contract("rm", "UC-Add")}
    assert rules(both) == {ADD: ["SCOPE-PARTITION"], RM: ["SCOPE-PARTITION"]}
    assert rules({**both, **dict.fromkeys(f"{BOARD}/tasks/TASK-{number}.md" for number in (1, 2))}) == {}


def test_rows_name_the_line_where_it_is_the_contracts_own():
    found = committed({RM: contract("rm", "UC-Rm", allowed="src/add/*, tests/rm.py")})
    rows = scopes_document(found)
    assert [list(row) for row in rows[RM]] == [["rule", "what", "why", "fix"]]
    assert rows[RM][0]["what"].startswith("line 6: src/add/a.py")
    assert rows[ADD][0]["what"].startswith("src/add/a.py")


def test_of_many_findings_the_first_are_told_and_the_rest_counted():
    files = {f"src/add/m{number:02}.py": "" for number in range(SHOWN + 5)}
    wide = contract("add", "UC-Add", allowed="src/add/*, x/y")
    rows = scopes_document(
        committed({**files, ADD: wide, RM: contract("rm", "UC-Rm", allowed="src/add/*, tests/rm.py")})
    )
    assert len(rows[RM]) == SHOWN
    assert rows[RM][-1]["what"].endswith("(and 6 more findings on this contract)")


# --- news ------------------------------------------------------------------------------------------------------------


def specs(changes):
    tree = tree_of({**feature(), **changes})
    files = [path for path in tree.files if not path.startswith(".shapeup/")]
    from reducers.lint_spec.facts import read_spec_facts

    spec = lint_spec(read_spec_facts(tree, "cart", files))
    return tell_specs(spec, lint_trace(read_trace_facts(tree, "cart", files), is_gate=True))


def test_a_finding_that_only_moved_is_no_news():
    before = specs({f"{SPEC}/scope-board.md": "TASK-1\n"})
    after = specs({f"{SPEC}/scope-board.md": "a line\n\nTASK-1\n"})
    assert [one.where for one in (*before, *after)] == [f"{SPEC}/scope-board.md:1", f"{SPEC}/scope-board.md:3"]
    assert compare(before, after) == ((), ())


def test_a_second_line_of_the_same_words_is_news_and_so_is_its_end():
    one, two = (specs({f"{SPEC}/scope-board.md": "TASK-1\n" * count}) for count in (1, 2))
    assert [told.rule for told in compare(one, two).found] == ["TIER-DIRECTION"]
    assert [told.rule for told in compare(two, one).cleared] == ["TIER-DIRECTION"]


def test_what_follows_from_the_board_is_no_news_of_the_specs():
    assert specs({f"{BOARD}/tasks/TASK-1.md": "---\nid: TASK-1\n---\n"}) == ()
