"""What the trace lint finds: requirements that nothing covers, engines that nothing imports. Source: protocol §5.3, W-32."""

from __future__ import annotations

import json

import pytest

from parsers.tree import DictTree
from reducers.lint_trace.facts import parse_registry, read_trace_facts
from reducers.lint_trace.findings import WHY
from reducers.lint_trace.imports import closure_of, resolve, specifiers_of
from reducers.lint_trace.lint import TraceReport, lint_trace, render_trace, trace_files

SPEC = "shapeup/cart"
HEAD = "| REQ-id | Clause | Source | Status | Note |\n|---|---|---|---|---|\n"
WIRING = "---\nfeature: cart\n---\n\n## Wiring\n\n| use_case | engine | affordance |\n|---|---|---|\n"


def feature() -> dict[str, str | None]:
    return {
        f"{SPEC}/requirements.md": HEAD + "| REQ-1 | adds | pitch | covered | |\n",
        f"{SPEC}/wiring-map.md": WIRING + "| UC-Add | src/add/add.js | add-btn |\n",
        f"{SPEC}/project-profile.md": "---\nentry_point: src/main.js\n---\n",
        ".shapeup/cart/tasks/TASK-1.md": "---\nid: TASK-1\n---\n\n- [ ] adds (covers: REQ-1)\n",
        "src/main.js": 'import "./add/add.js"\n',
        "src/add/add.js": "//\n",
    }


def traced(changes: dict[str, str | None], *, is_gate: bool = True) -> TraceReport:
    tree = DictTree({path: text.encode() for path, text in {**feature(), **changes}.items() if text is not None})
    files = [path for path in tree.files if not path.startswith(".shapeup/")]
    return lint_trace(read_trace_facts(tree, "cart", files), is_gate=is_gate)


def told(changes: dict[str, str | None]) -> list[tuple[str, str, str]]:
    found = traced(changes).findings
    assert all(one.code in WHY and one.what and one.fix for one in found)
    return [(one.code, one.severity, one.where.rpartition("/")[2]) for one in found]


def test_a_clean_feature_is_green():
    report = traced({})
    assert (report.findings, report.is_red, report.fails) == ((), False, False)
    assert report.reach.row["reachable_files"] == 2


# --- closure ---------------------------------------------------------------------------------------------------------


def test_a_requirement_that_no_criterion_names_is_uncovered_unless_it_was_cut():
    rows = (
        "| REQ-1 | adds | p | covered | |\n| REQ-2 | removes | p | covered | |\n| REQ-3 | x | p | CUT (PO) | late |\n"
    )
    report = traced({f"{SPEC}/requirements.md": HEAD + rows + "| **REQ-4** | y | p | Covered | |\nREQ-5 prose\n"})
    assert [(one.code, one.req, one.where) for one in report.findings] == [
        ("REQ-UNCOVERED", "REQ-2", f"{SPEC}/requirements.md:4"),
        ("REQ-UNCOVERED", "REQ-4", f"{SPEC}/requirements.md:6"),
    ]
    assert (report.closure.total, report.closure.cut, report.closure.covered) == (4, 1, 1)


def test_a_criterion_covers_what_is_registered():
    task = "- [ ] adds (covers: REQ-1, REQ-7)\n- [x] more\n  of it (covers: REQ-CART-2)\n"
    report = traced({".shapeup/cart/tasks/TASK-1.md": task})
    assert [(one.code, one.req, one.where.rpartition("/")[2]) for one in report.findings] == [
        ("COVERS-DANGLING", "REQ-7", "TASK-1.md:1"),
        ("COVERS-DANGLING", "REQ-CART-2", "TASK-1.md:2"),
    ]


def test_without_a_registry_nothing_is_compared():
    report = traced({f"{SPEC}/requirements.md": None})
    assert report.findings == ()
    assert report.closure.row["checked"] is False
    assert report.closure.row["pass"] is True


def test_the_status_is_found_by_its_column_else_in_the_fourth_else_in_the_last_cell():
    def is_cut(table: str) -> bool:
        return parse_registry(table)[0].is_cut

    assert is_cut("| Id | Status | Clause |\n|---|---|---|\n| REQ-1 | cut | x |\n")
    assert is_cut("| REQ-1 | x | p | cut | n |\n")
    assert is_cut("| REQ-1 | x | cut |\n")
    assert not is_cut("| REQ-1 | cut it short | p | covered | cut |\n")
    assert not is_cut("| REQ-1 | x | executed |\n")


def test_a_fenced_row_registers_nothing():
    assert parse_registry("```\n| REQ-1 | x |\n```\n") == ()


# --- reachability ----------------------------------------------------------------------------------------------------


def test_an_engine_that_nothing_imports_is_unreachable():
    report = traced({"src/main.js": "// nothing"})
    assert [(one.code, one.uc, one.where) for one in report.findings] == [
        ("UC-UNREACHABLE", "UC-Add", f"{SPEC}/wiring-map.md:9")
    ]
    assert "-.->|orphan|" in (report.diagram or "")


def test_an_engine_that_is_not_there_is_unreachable():
    report = traced({"src/add/add.js": None})
    assert [one["reason"] for one in report.reach.row["unreachable"]] == ["engine file not on disk"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({f"{SPEC}/wiring-map.md": None}, []),
        ({f"{SPEC}/project-profile.md": None}, [("PROFILE-MISSING", "warn", "wiring-map.md")]),
        ({"src/main.js": None}, [("ENTRY-MISSING", "warn", "project-profile.md:2")]),
        (
            {f"{SPEC}/project-profile.md": "---\narchetype: cli\n---\n"},
            [("ENTRY-MISSING", "warn", "project-profile.md")],
        ),
        (
            {f"{SPEC}/project-profile.md": "---\nentry_point:\n  src/main.js\n---\n"},
            [("PROFILE-UNREADABLE", "red", "project-profile.md:2")],
        ),
        (
            {f"{SPEC}/wiring-map.md": WIRING.replace("Wiring", "Entries") + "| UC-Add | src/x.js | b |\n"},
            [("WIRING-UNREADABLE", "red", "wiring-map.md:5")],
        ),
        (
            {f"{SPEC}/wiring-map.md": "## wiring\n\n| case | engine |\n|---|---|\n| UC-Add | src/x.js |\n"},
            [("NEAR-HEADING", "warn", "wiring-map.md:1")],
        ),
        (
            {f"{SPEC}/wiring-map.md": "### UC-Add\n\n| Field | Value |\n|---|---|\n| engine | src/add/add.js |\n"},
            [("WIRING-LEGACY-LAYOUT", "warn", "wiring-map.md")],
        ),
        (
            {f"{SPEC}/wiring-map.md": None, f"{SPEC}/wiring-map.json": "{bad"},
            [("WIRING-UNREADABLE", "red", "wiring-map.json")],
        ),
    ],
)
def test_what_cannot_be_looked_up_is_told(changes, expected):
    assert told(changes) == expected


def test_what_cannot_be_read_does_not_pass_and_what_is_not_there_does():
    unread = traced({f"{SPEC}/wiring-map.md": None, f"{SPEC}/wiring-map.json": "[]"})
    absent = traced({f"{SPEC}/wiring-map.md": None})
    assert (unread.reach.row["checked"], unread.reach.row["pass"]) == (False, False)
    assert (absent.reach.row["checked"], absent.reach.row["pass"]) == (False, True)


def test_a_program_in_another_language_is_skipped_with_the_reason():
    report = traced({f"{SPEC}/project-profile.md": "---\nentry_point: main.py\n---\n", "main.py": "import add"})
    assert report.findings == ()
    assert "main.py" in str(report.reach.row["skipped_reason"])
    assert report.reach.row["pass"] is True


def test_an_older_json_map_is_read():
    older = {"entries": [{"use_case": "UC-Add", "engine": "src/add/add.js"}]}
    report = traced({f"{SPEC}/wiring-map.md": None, f"{SPEC}/wiring-map.json": json.dumps(older)})
    assert (report.findings, report.reach.engines) == ((), 1)


def test_prose_around_an_engine_does_not_hide_its_file():
    rows = "| UC-Add | `src/add/add.js` (`add()`) | b |\n| UC-Rm | src/add/add.js, the same | c |\n"
    assert told({f"{SPEC}/wiring-map.md": WIRING + rows}) == []


# --- the import scan -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        'import { a } from "./x"',
        "import a, * as b from './x'",
        'import"./x"',
        'export * from "./x"',
        'export { a } from\n  "./x"',
        'const a = require("./x")',
        "const a = require( './x' )",
        "await import('./x')",
        "import(`./x`)",
        'const u = "http://a"; import "./x"',
        "import {\n  a,\n  b,\n} from './x'",
    ],
)
def test_every_form_of_import_is_seen(text):
    assert list(specifiers_of(text)) == ["./x"]


@pytest.mark.parametrize(
    "text",
    [
        "// import './x'",
        "/* import './x'\n*/",
        "import 'react'",
        "obj.require('./x')",
        "imports('./x')",
        "x.from './x'",
    ],
)
def test_what_imports_nothing_is_not_seen(text):
    assert list(specifiers_of(text)) == []


@pytest.mark.parametrize(
    ("path", "found"),
    [("a.js", "a.js"), ("a", "a.js"), ("b", "b/index.ts"), ("b/", "b/index.ts"), ("c.json", "c.json"), ("d", None)],
)
def test_a_path_is_tried_then_endings_then_an_index(path, found):
    assert resolve(path, {"a.js", "a/index.js", "b/index.ts", "c.json"}) == found


def test_the_closure_ends_in_circles_and_never_leaves_the_project():
    sources = {
        "src/a.js": "import './b'; import '../../x'; import '../lib'",
        "src/b.js": "import './a'",
        "lib/index.js": "",
    }
    assert closure_of("src/a.js", sources, sources.get) == sources.keys()


def test_a_long_chain_and_a_large_file_cost_no_more_than_their_length():
    chain = {f"m{number}.js": f'import "./m{number + 1}"' for number in range(3000)}
    chain["m3000.js"] = "import" + " " * 50_000 + "'" + "\\" * 50_000 + "`" * 49_999
    assert len(closure_of("m0.js", chain, chain.get)) == 3001


# --- the report ------------------------------------------------------------------------------------------------------


def test_a_red_fails_at_the_gate_alone():
    red = {"src/main.js": ""}
    assert (traced(red).fails, traced(red, is_gate=False).fails) == (True, False)
    assert "🔴 red [gate]" in render_trace(traced(red))
    assert "🟠 red (advisory) [advisory]" in render_trace(traced(red, is_gate=False))


def test_the_files_are_the_report_and_the_diagram_of_a_map_that_was_read():
    files = trace_files(traced({}), "2026-03-01T10:00:00.000Z")
    assert list(files) == [".shapeup/cart/trace/report.json", ".shapeup/cart/trace/wiring.mmd"]
    report = json.loads(files[".shapeup/cart/trace/report.json"])
    assert list(report) == "schema_version slug at mode advisory covers_closure reachability findings overall".split()
    assert "n_src_add_add_js --> n_UC_Add_aff" in files[".shapeup/cart/trace/wiring.mmd"]
    assert list(trace_files(traced({f"{SPEC}/wiring-map.md": None}), "")) == [".shapeup/cart/trace/report.json"]
