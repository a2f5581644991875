"""What the spec lint finds in documents and on the board. Source: protocol §1.1, §5.2, ruling G6."""

from __future__ import annotations

import pytest

from reducers.lint_spec.documents import without_code
from tests.reducers.lint_spec.feature import BOARD, SPEC, findings, task, told

ADD = f"{SPEC}/spec/usecases/UC-Add.md"
STEPS = "## Steps\n\n- [INV-1] x\n"


def test_a_committed_text_names_no_board_id_and_no_local_path():
    text = "see TASK-001 and TASK-002 and .shapeup/cart/x\ntask-1 is fine\n.shapeup/ alone is fine\nTASK-A\n"
    got = findings({f"{SPEC}/scope-board.md": text, f"{SPEC}/notes.rst": "TASK-3", "shapeup/other/x.md": "TASK-4"})
    assert [(one.rule, one.where.rpartition("/")[2]) for one in got] == [
        ("TIER-DIRECTION", "scope-board.md:1"),
        ("TIER-DIRECTION", "scope-board.md:1"),
        ("TIER-DIRECTION", "scope-board.md:4"),
    ]
    assert "TASK-001" in got[0].what
    assert ".shapeup/cart/x" in got[1].what


@pytest.mark.parametrize("path", ["hill/add.yml", "a.markdown", "b.yaml", "c.json", "d.TXT"])
def test_every_kind_of_text_is_read(path):
    assert told({f"{SPEC}/{path}": "# TASK-2\n"}) == [("TIER-DIRECTION", "red", None)]


def test_a_spec_has_a_domain_model_and_use_cases():
    gone = dict.fromkeys((f"{SPEC}/spec/domain-model.md", ADD, f"{SPEC}/spec/usecases/UC-Rm.md"))
    reds = [one for one in findings({**gone, f"{SPEC}/spec/usecases/notes.md": "x"}) if one.rule == "STRUCTURE"]
    assert [(one.level, one.where.removeprefix(SPEC)) for one in reds] == [
        ("red", "/spec/domain-model.md"),
        ("red", "/spec/usecases"),
    ]


@pytest.mark.parametrize(
    ("text", "has_steps"), [(STEPS, True), ("### Steps\n[INV-1]", False), ("```\n## Steps\n```\n[INV-1]", False)]
)
def test_a_use_case_has_steps(text, has_steps):
    assert told({ADD: text}) == ([] if has_steps else [("STRUCTURE", "warn", None)])


@pytest.mark.parametrize(
    ("intake", "line"),
    [
        ("# C\n\n## No-gos\n\n- no network\n", 3),
        ("### Edge cases\nempty cart\n", 1),
        ("# Constraints and wishes\n- fast\n", 1),
        ("## No-gos\n\n<!-- none\nyet -->\n\n## Next\ntext\n", None),
        ("## Nothing\n- x\n", None),
        ("```\n## No-gos\n- x\n```\n", None),
        ("## No-gos\n## Constraints\n- x\n", 2),
    ],
)
def test_what_the_pitch_rules_out_becomes_an_invariant(intake, line):
    got = findings({f"{BOARD}/intake.md": intake, ADD: "## Steps\n"})
    assert [(one.rule, one.where) for one in got] == (
        [] if line is None else [("INV-FLOOR", f"{BOARD}/intake.md:{line}")]
    )
    assert told({f"{BOARD}/intake.md": intake}) == []


def test_links_lead_somewhere_and_never_to_the_board():
    text = "[[domain-model]] [[UC-Add]] [[usecases/UC-Rm.md]] [[UC-Rm#Steps|x]] [[#local]]\n\n`[[code]]`\n```\n[[fenced]]\n```\n"
    links = "[[nope]]\n[[tasks/T-1]]\n[[ dd ]]\n"
    got = findings({f"{SPEC}/spec/_index.md": text + links})
    assert [(one.rule, one.level, one.where.rpartition(":")[2]) for one in got] == [
        ("WIKILINK", "warn", "7"),
        ("TIER-DIRECTION", "red", "8"),
        ("WIKILINK", "warn", "9"),
    ]
    assert ["[[nope]]" in got[0].what, "[[tasks/T-1]]" in got[1].what] == [True, True]


def test_a_task_has_a_status_and_depends_on_tasks_that_exist():
    first = task("TASK-1", "UC-Add", "status:", "unlocks: [TASK-2]")
    second = task("TASK-2", "UC-Rm", "depends_on: [TASK-1, TASK-7]")
    got = findings({f"{BOARD}/tasks/TASK-1.md": first, f"{BOARD}/tasks/TASK-2.md": second})
    assert [(one.rule, one.where.rpartition("/")[2]) for one in got] == [("TASK", "TASK-1.md"), ("TASK", "TASK-2.md:4")]
    assert "TASK-7" in got[1].what


def test_both_ends_of_an_edge_agree():
    got = findings({f"{BOARD}/tasks/TASK-1.md": task("TASK-1", "UC-Add", "unlocks: [TASK-9]")})
    assert [(one.rule, one.where.rpartition("/")[2]) for one in got] == [("EDGE-SYMMETRY", "TASK-1.md:5")]
    assert '["TASK-9"]' in got[0].what
    assert got[0].fix == "write `unlocks: [TASK-2]`"


@pytest.mark.parametrize(
    ("more", "count"),
    [
        (("use_case_refs: []",), 1),
        (("use_case_refs: [UC-9, UC-8]",), 2),
        (("use_case_refs: []", "type: spike"), 0),
        (("use_case_refs: []", "type: task"), 1),
    ],
)
def test_a_task_is_anchored_unless_its_type_needs_none(more, count):
    changed = {f"{BOARD}/tasks/TASK-1.md": task("TASK-1", "UC-Add", "unlocks: [TASK-2]", *more)}
    assert told(changed) == [("UC-ANCHOR", "red", None)] * count


def test_a_fresh_clone_has_no_board_and_no_finding_for_it():
    gone = dict.fromkeys(f"{BOARD}/{name}" for name in ("tasks/TASK-1.md", "tasks/TASK-2.md", "intake.md"))
    assert told(gone) == []


@pytest.mark.parametrize(
    ("line", "rest"),
    [("a `b` c", "a  c"), ("a ``b ` c`` d", "a  d"), ("a ` b", "a ` b"), ("`` a ` b ` c", "`` a  c"), ("`a``b`", "")],
)
def test_code_spans_are_left_out(line, rest):
    assert without_code(line) == rest


def test_a_line_of_backticks_costs_no_more_than_its_length():
    line = "".join("`" * (number % 700 + 1) + " " for number in range(5000))
    assert len(without_code(line + "[[x]]")) < len(line) + 6
