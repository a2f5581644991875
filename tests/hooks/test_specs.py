"""What a commit may do to the committed specs: each rule refused and allowed, over real contents. Source: rulings E3, E9, R-20, R-36, R-37, R-38."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hooks.path_change import ABSENT_MODE, GITLINK_MODE, SYMLINK_MODE, PathChange
from hooks.specs import LARGEST, SHOWN_LINES, SpecVerdict, judge_specs
from hooks.verdict import RULES, Violation, render_violation, verdict_document
from parsers.hill_shards import PHASES, HillShard
from parsers.policy_file import Policy

FILE = "100644"
ZERO, BLOB = "0" * 40, "1" * 40
EXAMPLES = int(os.environ.get("SHAPEUP_FUZZ_EXAMPLES", "100"))
SCOPE = "shapeup/cart/scopes/add.md"
REQUIREMENTS = "shapeup/cart/requirements.md"
USE_CASE = "shapeup/cart/spec/usecases/UC-Add.md"
SHARD = "shapeup/cart/hill/add.yml"
LEDGER = "shapeup/cart/round-ledger.md"
CONTRACT = "---\nscope_id: add\nallowed_file_substrate: [src/**]\nhill_phase: UPHILL_UNKNOWN\n---\n\n# Add\n"
ROWS = "| REQ-id | Clause | Source | Status | Note |\n|---|---|---|---|---|\n| REQ-1 | adds | pitch | covered | |\n| REQ-2 | removes | pitch | open | |\n"
LEDGER_TEXT = """---
type: round-ledger
budgets:
  round_budget: 3
---

## Decisions

| Round | Scope | Kind | Question | Answer | Resolved by |
|---|---|---|---|---|---|
| 1 | add | other | why | so | PO |
| 1 | add | cut | what | that | PO |

Written by the orchestrator.
"""
ROW = "| 2 | add | other | more | yes | PO |\n"

Sides = tuple[str | bytes | None, str | bytes | None]


class Commit:
    """Files before and after, as a commit would change them. A side that is None is no file."""

    def __init__(self, files: Mapping[str, Sides], modes: Mapping[str, str]) -> None:
        self.sides = {os.fsencode(path): tuple(map(as_bytes, sides)) for path, sides in files.items()}
        self.changes = [change_of(path, *sides, modes) for path, sides in self.sides.items()]

    def before(self, change: PathChange) -> bytes | None:
        return self.sides[change.path][0]

    def after(self, change: PathChange) -> bytes | None:
        return self.sides[change.path][1]


def as_bytes(side: str | bytes | None) -> bytes | None:
    return side.encode("utf-8", "surrogateescape") if isinstance(side, str) else side


def change_of(path: bytes, old: bytes | None, new: bytes | None, modes: Mapping[str, str]) -> PathChange:
    given_mode = modes.get(os.fsdecode(path))
    old_mode = ABSENT_MODE if old is None else FILE
    new_mode = given_mode or (ABSENT_MODE if new is None else FILE)
    status = "A" if old is None else "D" if new_mode == ABSENT_MODE else "T" if new_mode[:2] != old_mode[:2] else "M"
    return PathChange(status, path, old_mode, new_mode, ZERO if old is None else BLOB, ZERO if new is None else BLOB)


def judge(
    files: Mapping[str, Sides], *, modes: Mapping[str, str] | None = None, tier_direction: str = "deny"
) -> SpecVerdict:
    commit = Commit(files, modes or {})
    return judge_specs(commit.changes, commit, Policy("", tier_direction=tier_direction))


def told(found: SpecVerdict) -> list[tuple[str, str, str]]:
    return [(one.rule, os.fsdecode(one.path), one.what) for one in found.violations]


def rules(found: SpecVerdict) -> list[str]:
    return [one.rule for one in found.violations]


# --- contracts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [SCOPE, "shapeup/other-1/scopes/x.md"])
def test_a_contract_that_reads_passes_for_any_slug(path: str) -> None:
    assert judge({path: (None, CONTRACT)}) == SpecVerdict()


@pytest.mark.parametrize("path", [SCOPE, "shapeup/x/wiring-map.md", "shapeup/x/project-profile.md"])
def test_every_unreadable_part_of_a_contract_is_told_by_line(path: str) -> None:
    found = judge({path: (CONTRACT, "---\nuse_cases: [a]\n  - b\nfoo:\n  bar: 1\n---\n\n## db_probe\n\nx\n")})
    assert rules(found) == ["CONTRACT-UNREADABLE"] * 3
    whats = [one.what for one in found.violations]
    assert [what.partition(": ")[0] for what in whats] == ["line 2", "line 4", "line 8"]
    assert all(name in what for name, what in zip(("`use_cases`", "`foo`", "`db_probe`"), whats, strict=True))


def test_a_misplaced_table_and_a_map_of_prose_are_told() -> None:
    table = "## Manifest\n\n| test_id | role |\n|---|---|\n| a | button |\n"
    (found,) = judge({SCOPE: (None, CONTRACT + table)}).violations
    assert (found.rule, found.fix) == (
        "CONTRACT-UNREADABLE",
        "put the table under a heading that reads exactly `## Affordances`",
    )
    (found,) = judge({"shapeup/cart/wiring-map.md": (None, "### UC-1\n\nprose\n")}).violations
    assert "`entries`" in found.what


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\ufeff" + CONTRACT, "first byte"),
        ("\n" + CONTRACT, "first byte"),
        ("---\nscope_id: add\n", "end with a line `---`"),
        ("---\rscope_id: add\r---\r", "end with a line `---`"),
        ("---\na: 1\na: 2\n---\n", "line 3: `a`"),
        ("---\na: \udcff\n---\n", "line 2: the bytes are not UTF-8"),
        (f"---\na: {'x' * 70_000}\n---\n", "larger than"),
        (b"\x00\xff\xfe" * 10, "line 1: the bytes are not UTF-8"),
    ],
)
def test_a_contract_that_hides_what_it_says_is_unreadable(text: str | bytes, says: str) -> None:
    found = judge({SCOPE: (None, text)})
    assert rules(found) == ["CONTRACT-UNREADABLE"]
    assert says in found.violations[0].what


def test_a_contract_without_any_frontmatter_reads_as_the_record_says() -> None:
    """§10.5 names what is unreadable; a body alone is not among it (other lints speak of what is missing)."""
    assert judge({SCOPE: (None, "# Add\n\nprose\n")}) == SpecVerdict()


@pytest.mark.parametrize("mode", [SYMLINK_MODE, GITLINK_MODE])
def test_a_link_in_a_contracts_place_is_no_contract(mode: str) -> None:
    after = b"../../src/x" if mode == SYMLINK_MODE else None
    assert rules(judge({SCOPE: (None, after)}, modes={SCOPE: mode})) == ["CONTRACT-UNREADABLE"]
    assert rules(judge({SCOPE: (CONTRACT, after)}, modes={SCOPE: mode})) == ["R-38"]


def test_what_a_contract_says_cannot_forge_a_line_or_run_on_for_ever() -> None:
    heading = "A\x1b[31m\u2028" + "x" * 5000
    text = f"{CONTRACT}\n## {heading}\n\n| test_id | role |\n|---|---|\n| a | b |\n"
    (found,) = judge({SCOPE: (None, text)}).violations
    assert found.what.isprintable()
    assert len(found.what) < 500
    assert render_violation(found).count("\n") == 2


def test_the_hill_phase_of_a_contract_says_nothing_but_unknown() -> None:
    for phase in PHASES[1:]:
        found = judge({SCOPE: (CONTRACT, CONTRACT.replace("UPHILL_UNKNOWN", phase))})
        assert told(found) == [("R-36", SCOPE, f"line 4: hill_phase is {phase}")]
    for line in ("", "hill_phase:\n", "hill_phase: ~\n", "hill_phase: `UPHILL_UNKNOWN`\n"):
        assert judge({SCOPE: (CONTRACT, CONTRACT.replace("hill_phase: UPHILL_UNKNOWN\n", line))}) == SpecVerdict()


# --- tier direction --------------------------------------------------------------------------------------------------


def test_added_lines_that_name_the_local_tier_are_told_with_their_line() -> None:
    path = "shapeup/cart/spec/synthesis.md"
    before = "# S\nTASK-001 stood here already\n"
    found = judge({path: (before, before + "\nsee TASK-003 in `.shapeup/cart/tasks/x.md`\n[[tasks/T4]]\n")})
    assert told(found) == [
        ("TIER-DIRECTION", path, "line 4: names board id TASK-003"),
        ("TIER-DIRECTION", path, "line 4: names .shapeup/cart/tasks/x.md of the local tier"),
        ("TIER-DIRECTION", path, "line 5: links to [[tasks/T4"),
    ]


@pytest.mark.parametrize("ending", ["md", "markdown", "yml", "yaml", "json", "txt", "MD"])
def test_all_text_endings_are_read(ending: str) -> None:
    assert rules(judge({f"shapeup/cart/notes/a.{ending}": (None, "TASK-1")})) == ["TIER-DIRECTION"]
    assert rules(judge({f"shapeup/a.{ending}": (None, "TASK-1")})) == ["TIER-DIRECTION"]


@pytest.mark.parametrize(
    "path", ["src/a.md", "docs/shapeup/a.md", "shapeup/cart/a.py", "shapeup/cart/a", ".shapeup/cart/a.md", "shapeup.md"]
)
def test_what_is_no_shared_text_is_not_read(path: str) -> None:
    assert judge({path: (None, "TASK-1 .shapeup/x")}) == SpecVerdict()


def test_a_file_that_no_rule_reads_is_not_even_fetched() -> None:
    commit = Commit({"shapeup/cart/spec/screen.png": (None, "TASK-1")}, {})
    commit.sides.clear()  # asking for its bytes would fail
    assert judge_specs(commit.changes, commit, Policy("")) == SpecVerdict()


def test_under_warn_the_lines_are_warnings_and_nothing_else_is() -> None:
    files: dict[str, Sides] = {REQUIREMENTS: (ROWS, ROWS.replace("| adds", "| TASK-1 adds"))}
    found = judge(files, tier_direction="warn")
    assert rules(found) == ["R-38"]
    assert [one.rule for one in found.warnings] == ["TIER-DIRECTION"]
    assert sorted(rules(judge(files))) == ["R-38", "TIER-DIRECTION"]


def test_lines_that_only_moved_are_nobodys_doing() -> None:
    old = "a\nTASK-1 here\n"
    assert judge({"shapeup/cart/spec/a.md": (old, "TASK-1 here\r\nb\n")}) == SpecVerdict()
    assert judge({"shapeup/cart/spec/a.md": (old, None), "shapeup/cart/spec/b.md": (None, old)}) == SpecVerdict()
    moved_and_new: dict[str, Sides] = {
        "shapeup/cart/spec/a.md": (old, None),
        "shapeup/cart/spec/b.md": (None, old + "TASK-2\n"),
    }
    assert rules(judge(moved_and_new)) == ["TIER-DIRECTION"]
    elsewhere: dict[str, Sides] = {
        "shapeup/cart/spec/a.md": (old, None),
        "shapeup/cart/spec/b.md": ("x\n", "x\n" + old),
    }
    assert rules(judge(elsewhere)) == ["TIER-DIRECTION"]


def test_a_contract_may_not_list_tasks_under_any_name() -> None:
    listing = CONTRACT.replace("hill_phase", "tasks: [T1, T2]\nhill_phase")
    found = judge({SCOPE: (CONTRACT, listing)})
    assert told(found) == [("TIER-DIRECTION", SCOPE, "line 4: the key `tasks` lists T1,T2")]
    assert judge({SCOPE: (listing, listing + "\nmore\n")}) == SpecVerdict()  # it listed them before
    for empty in ("tasks: []", "tasks: ~", "tasks:"):
        assert judge({SCOPE: (None, listing.replace("tasks: [T1, T2]", empty))}) == SpecVerdict()


def test_a_link_into_the_local_tier_is_a_path_of_it() -> None:
    path = "shapeup/cart/notes"
    assert rules(judge({path: (None, "../../.shapeup/cart/x")}, modes={path: SYMLINK_MODE})) == ["TIER-DIRECTION"]
    assert judge({path: (None, "../cart/spec")}, modes={path: SYMLINK_MODE}) == SpecVerdict()


def test_many_lines_of_one_file_are_told_up_to_a_number_and_none_of_them_passes() -> None:
    found = judge({"shapeup/cart/a.md": (None, "TASK-1\n" * 5000)})
    assert len(found.violations) == SHOWN_LINES + 1
    old = "TASK-1\n" * (SHOWN_LINES + 5)
    moved: dict[str, Sides] = {"shapeup/cart/a.md": (old, None), "shapeup/cart/b.md": (None, old + "TASK-2\n")}
    assert told(judge(moved)) == [
        ("TIER-DIRECTION", "shapeup/cart/b.md", f"line {SHOWN_LINES + 6}: names board id TASK-2")
    ]


# --- R-38 ------------------------------------------------------------------------------------------------------------


def test_a_scope_contract_is_never_deleted_emptied_or_renamed() -> None:
    for after in (None, "", " \n\n"):
        found = judge({SCOPE: (CONTRACT, after)})
        assert rules(found) == ["R-38"]
        assert "superseded_by" in found.violations[0].fix
    assert rules(judge({SCOPE: (CONTRACT, None), "shapeup/cart/scopes/b.md": (None, CONTRACT)})) == ["R-38"]
    superseded = CONTRACT.replace("hill_phase", "superseded_by: b\nhill_phase")
    assert judge({SCOPE: (CONTRACT, superseded)}) == SpecVerdict()
    assert judge({"shapeup/cart/wiring-map.md": (CONTRACT, None)}) == SpecVerdict()  # regenerated, not superseded


@pytest.mark.parametrize(
    ("after", "whats"),
    [
        (ROWS.replace("| adds |", "| adds two |"), ["line 3 of the older text: REQ-1 has another text now"]),
        (ROWS.replace("REQ-2", "REQ-3"), ["line 4 of the older text: REQ-2 is gone"]),
        ("", ["line 3 of the older text: REQ-1 is gone", "line 4 of the older text: REQ-2 is gone"]),
        (None, ["line 3 of the older text: REQ-1 is gone", "line 4 of the older text: REQ-2 is gone"]),
        (
            ROWS.replace("adds", "X").replace("removes", "adds").replace("X", "removes"),
            [
                "line 3 of the older text: REQ-1 has another text now",
                "line 4 of the older text: REQ-2 has another text now",
            ],
        ),
        (ROWS.replace("covered", "CUT (PO)").replace("| pitch |", "| intake |"), []),
        (ROWS.replace("| adds |", "| ~~adds~~  |").replace("| REQ-1 |", "| **REQ-1** |"), []),
        (ROWS + "| REQ-3 | lists | pitch | open | supersedes REQ-1 |\n", []),
        ("# Req\n\nprose\n\n" + ROWS.replace("\n", "\r\n"), []),
        ("\n".join([*ROWS.split("\n")[:2], *ROWS.split("\n")[3:1:-1]]) + "\n", []),
    ],
)
def test_requirement_ids_keep_their_clause(after: str | None, whats: list[str]) -> None:
    assert told(judge({REQUIREMENTS: (ROWS, after)})) == [("R-38", REQUIREMENTS, what) for what in whats]


def test_invariants_keep_their_text_may_be_rewrapped_and_may_grow() -> None:
    old = "## Invariants\n\n- [INV-1] a failed add never\n  mutates the store\n- [INV-2] appends only\n"
    for new in (
        old.replace("never\n  mutates", "never mutates"),
        old + "- [INV-3] new\n",
        old.replace("only", "only (superseded by INV-9)"),
    ):
        assert judge({USE_CASE: (old, new)}) == SpecVerdict()
    for new in (
        old.replace("never", "always"),
        old.replace("INV-1", "INV-7"),
        old.replace("appends only", ""),
        "",
        None,
    ):
        assert "R-38" in rules(judge({USE_CASE: (old, new)}))


def test_an_entry_may_move_to_another_file_of_its_slug_and_not_to_another_slug() -> None:
    text = "- [INV-1] holds\n"
    other = "shapeup/cart/spec/usecases/UC-Other.md"
    assert judge({USE_CASE: (text, None), other: (None, f"# Other\n\n{text}")}) == SpecVerdict()
    assert rules(judge({USE_CASE: (text, None), other.replace("cart", "shop"): (None, text)})) == ["R-38"]
    both: dict[str, Sides] = {USE_CASE: (text, None), other: (text, None), other.replace("Other", "New"): (None, text)}
    assert rules(judge(both)) == ["R-38"]  # one of the two is gone


# --- hill shards and round ledgers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", PHASES)
def test_a_shard_of_the_right_form_passes_in_any_commit(phase: str) -> None:
    text = f"scope_id: add\nphase: {phase}\n"
    assert judge({SHARD: (None, text)}) == SpecVerdict(passed=frozenset({SHARD.encode()}))


@pytest.mark.parametrize(
    "text",
    [
        "scope_id: other\nphase: FINISHED\n",
        "scope_id: add\nphase: DONE\n",
        "scope_id: add\nphase: FINISHED",
        "",
        "\udcff",
    ],
)
def test_a_shard_of_another_form_is_refused(text: str) -> None:
    found = judge({SHARD: ("scope_id: add\nphase: FINISHED\n", text)})
    assert (rules(found), found.passed) == (["R-36"], frozenset())


def test_a_shard_that_the_facts_do_not_derive_is_refused() -> None:
    asked: list[tuple[str, HillShard]] = []

    def is_derived(slug: str, shard: HillShard) -> bool:
        asked.append((slug, shard))
        return False

    commit = Commit({SHARD: (None, "scope_id: add\nphase: FINISHED\n")}, {})
    found = judge_specs(commit.changes, commit, Policy(""), is_derived)
    assert (rules(found), found.passed) == (["R-36"], frozenset())
    assert asked == [("cart", HillShard("add", "FINISHED"))]


@pytest.mark.parametrize(
    "after",
    [
        LEDGER_TEXT.replace("| PO |\n\n", "| PO |\n" + ROW + "\n"),
        LEDGER_TEXT + "\n## Later\n\nmore\n",
        LEDGER_TEXT.replace("## Decisions", "Some prose first.\n\n## Decisions"),
        LEDGER_TEXT.replace("\n", "\r\n"),
        LEDGER_TEXT.rstrip("\n"),
    ],
)
def test_a_round_ledger_that_only_grows_passes_in_any_commit(after: str) -> None:
    assert judge({LEDGER: (LEDGER_TEXT, after)}) == SpecVerdict(passed=frozenset({LEDGER.encode()}))
    assert judge({LEDGER: (None, after)}).passed == {LEDGER.encode()}


@pytest.mark.parametrize(
    "after",
    [
        LEDGER_TEXT.replace("| 1 | add | cut | what | that | PO |\n", ""),
        LEDGER_TEXT.replace("that", "other"),
        LEDGER_TEXT.replace("| 1 | add | other", ROW + "| 1 | add | other"),  # an older row's ESC id would change
        LEDGER_TEXT.replace("| 1 | add | cut", "\n| 1 | add | cut"),
        LEDGER_TEXT.replace("## Decisions", "```\n## Decisions"),
        LEDGER_TEXT.replace("## Decisions", "## Decisions\n\n" + ROW + "\n## Decisions"),
        LEDGER_TEXT.replace("round_budget: 3", "round_budget: 9"),
        LEDGER_TEXT.replace("Written by the orchestrator.\n", ""),
        "",
        None,
    ],
)
def test_a_round_ledger_that_loses_or_moves_anything_is_refused(after: str | None) -> None:
    found = judge({LEDGER: (LEDGER_TEXT, after)})
    assert (rules(found), found.passed) == (["R-20"], frozenset())


def test_a_link_in_a_ledgers_or_shards_place_does_not_pass() -> None:
    modes = {LEDGER: SYMLINK_MODE, SHARD: SYMLINK_MODE}
    found = judge({LEDGER: (LEDGER_TEXT, LEDGER_TEXT), SHARD: (None, "scope_id: add\nphase: FINISHED\n")}, modes=modes)
    assert (sorted(rules(found)), found.passed) == (["R-20", "R-36"], frozenset())


def test_a_ledger_that_grows_may_still_not_name_the_local_tier() -> None:
    found = judge({LEDGER: (LEDGER_TEXT, LEDGER_TEXT + "TASK-3\n")})
    assert (rules(found), found.passed) == (["TIER-DIRECTION"], frozenset({LEDGER.encode()}))


# --- any file --------------------------------------------------------------------------------------------------------


def test_a_change_of_mode_alone_is_no_change_of_content() -> None:
    bad = "---\na: 1\na: 2\n---\nTASK-1\n"
    assert judge({SCOPE: (bad, bad), SHARD: ("x", "x")}, modes={SCOPE: "100755"}) == SpecVerdict()


@pytest.mark.parametrize("path", [SCOPE, REQUIREMENTS, USE_CASE, LEDGER, SHARD, "shapeup/cart/wiring-map.md"])
def test_a_file_beyond_a_mebibyte_that_would_have_to_be_read_is_refused(path: str) -> None:
    found = judge({path: (None, b"a" * (LARGEST + 1))})
    if path == SHARD:
        assert rules(found) == ["R-36"]
    elif path == LEDGER:
        assert rules(found) == ["R-20"]
    else:
        assert len(found.violations) == 1
        assert "bytes" in found.violations[0].what


def test_a_large_text_is_still_read_for_lines_that_name_the_local_tier() -> None:
    path = "shapeup/cart/spec/all.md"
    assert judge({path: (None, b"a\n" * LARGEST)}) == SpecVerdict()
    assert told(judge({path: (None, b"a\n" * LARGEST + b"TASK-1")})) == [
        ("TIER-DIRECTION", path, f"line {LARGEST + 1}: names board id TASK-1")
    ]


def test_ids_of_an_older_file_beyond_a_mebibyte_are_not_compared_and_that_is_said() -> None:
    found = judge({REQUIREMENTS: (ROWS + "x" * LARGEST, ROWS)})
    assert (rules(found), [one.rule for one in found.warnings]) == ([], ["R-38"])


@pytest.mark.parametrize(
    "path",
    [
        "shapeup/\udcff/scopes/\udcfe.md",
        "shapeup/a/scopes/x\ny.md",
        "shapeup//x.md",
        "shapeup/",
        "shapeup/cart/scopes/.md",
    ],
)
def test_odd_names_crash_nothing(path: str) -> None:
    json.dumps(verdict_document(judge({path: (CONTRACT, "TASK-1")}).violations)).encode()


_PATHS = st.sampled_from(
    [
        SCOPE,
        REQUIREMENTS,
        USE_CASE,
        SHARD,
        LEDGER,
        "shapeup/cart/wiring-map.md",
        "shapeup/cart/project-profile.md",
        "shapeup/cart/spec/a.json",
        "shapeup/cart/x.png",
    ]
)
_PIECES = st.sampled_from(
    [
        b"---\n",
        CONTRACT.encode(),
        ROWS.encode(),
        LEDGER_TEXT.encode(),
        ROW.encode(),
        b"- [INV-1] x\n",
        b"TASK-1\n",
        b".shapeup/\xff\n",
        b"\x00",
        b"\xff",
        b"\r\n",
        b"## db_probe\n",
        b"```\n",
        b"scope_id: add\nphase: FINISHED\n",
        "\u2028\x1b".encode(),
    ]
)
_SIDE = st.none() | st.lists(_PIECES | st.binary(max_size=8), max_size=6).map(b"".join)
_MODES = st.dictionaries(_PATHS, st.sampled_from([SYMLINK_MODE, "100755"]), max_size=2)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.dictionaries(_PATHS, st.tuples(_SIDE, _SIDE).filter(lambda sides: sides != (None, None)), max_size=5), _MODES)
def test_no_bytes_raise_and_every_finding_can_be_told(files: dict[str, Sides], modes: dict[str, str]) -> None:
    modes = {path: mode for path, mode in modes.items() if files.get(path, (None, None))[1] is not None}
    found = judge(files, modes=modes)
    for one in (*found.violations, *found.warnings):
        assert one.rule in RULES
        assert os.fsdecode(one.path) in files
        assert_told(one)
    assert found.passed <= {os.fsencode(path) for path in (SHARD, LEDGER)}
    assert not {one.path for one in found.violations if one.rule in ("R-20", "R-36")} & found.passed
    json.dumps(verdict_document(found.violations), ensure_ascii=False).encode()


def assert_told(one: Violation) -> None:
    assert render_violation(one).count("\n") == 2
    assert all(text and text.isprintable() for text in (one.what, one.why, one.fix))


def test_judging_loads_nothing_that_hooks_may_not_load() -> None:
    banned = ["pydantic", "dataclasses", "pathlib", "subprocess", "logging", "argparse", "tempfile", "shutil", "socket"]
    code = f"import sys, hooks.specs, hooks.owners; print([name for name in {banned} if name in sys.modules])"
    root = Path(__file__).parents[2]
    said = subprocess.run([sys.executable, "-S", "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"
