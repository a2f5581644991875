"""Every recorded contract reads as recorded, or differs by a rule that its own text shows; so do the recorded spec lints, where the gate holds them.

Source: protocol §5.2, §10, rulings H1, H2, G6.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.t0.contract import find_contract
from hooks.path_change import PathChange
from hooks.specs import judge_specs
from hooks.verdict import Violation
from parsers.contract_edit import render_contract
from parsers.contracts import contract_object, parse_contract, unreadable_reason
from parsers.markdown import decode
from parsers.policy_file import Policy
from parsers.scope_contract import contract_warnings
from tests.corpus.replay_cases import CORPUS, REPOSITORY

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(
        not (CORPUS / "contracts" / "expected.json").is_file(),
        reason=f"no contracts below {CORPUS} (set SHAPEUP_CORPUS)",
    ),
]
KINDS = {"SCOPE_CONTRACT": "scope-contract", "WIRING_MAP": "wiring-map", "PROJECT_PROFILE": "project-profile"}
ROWS = tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text())
RULES = {row["rule"] for row in ROWS["contract"]}
WRITTEN = {row["rule"] for row in ROWS["contract-text"]}
POLICY = Policy("")


def recorded() -> dict[str, dict[str, Any]]:
    path = CORPUS / "contracts" / "expected.json"
    return json.loads(path.read_bytes()) if path.is_file() else {}


@pytest.mark.parametrize("name", sorted(recorded()))
def test_a_contract_reads_as_recorded_or_differs_by_rule(name: str) -> None:
    answer = recorded()[name]
    text = decode((CORPUS / "contracts" / name).read_bytes())
    contract = parse_contract(KINDS[answer["spec"]], text)
    ours = contract_object(contract)
    if (ours, list(ours)) != (answer["parsed"], list(answer["parsed"])):
        shown = rules_shown(text)
        assert shown, f"{name} differs and its text shows no rule why"
        assert shown <= RULES, f"tests/divergences.toml has no row for {sorted(shown - RULES)}"
        differing = {key for key in {*ours, *answer["parsed"]} if ours.get(key) != answer["parsed"].get(key)}
        lists = {key for key in differing if "W-73" in shown and answer["parsed"].get(key) is None}
        assert differing <= lists | ({"entries"} if "W-74" in shown else set())
        return
    reason, wanted = unreadable_reason(contract), answer["unreadable_reason"]
    assert (reason is None) == (wanted is None)
    for part in answer["parsed"].get("$unreadable_tables", ()):
        facts = (f"`{part['field']}`", part["expected_heading"], part["found_under"], str(part["rows"]))
        missing = [fact for fact in facts if fact in wanted and fact not in (reason or "")]
        assert not missing or part["rows"] == 0  # H1: the sentence is ours, what it names is not


@pytest.mark.parametrize("name", sorted(recorded()))
def test_a_contract_is_written_back_as_recorded_or_quoted_so_that_it_reads_the_same(name: str) -> None:
    """Where the reference's own text reads back as something else, ours does not (§10.2); the legacy mark is none of the values."""
    answer = recorded()[name]
    text = decode((CORPUS / "contracts" / name).read_bytes())
    contract = parse_contract(KINDS[answer["spec"]], text)
    ours = render_contract(contract)
    assert ours is not None
    assert parse_contract(contract.kind, ours).values == contract.values
    if ours == answer["rendered"]:
        return
    is_read_otherwise = contract_object(contract) != answer["parsed"]
    has_failed = answer["rendered"] is None and bool(answer["render_error"])
    if not (is_read_otherwise or has_failed):
        assert answer["reparsed_equal"] is False
        assert "§10.2" in WRITTEN
        changed = set(ours.split("\n")) - set(answer["rendered"].split("\n"))
        assert all(line.partition(": ")[2][:1] in ("'", '"') for line in changed)


@pytest.mark.parametrize("run", sorted((CORPUS / "runs").glob("*")), ids=lambda run: run.name)
def test_every_scope_of_a_recorded_run_is_found_and_can_be_measured(run: Path) -> None:
    contracts = sorted(run.glob("shapeup/*/scopes/*.md"))
    for path in contracts:
        found = find_contract(run, path.stem)
        assert found.contract.scope_id == path.stem
        assert found.slug == path.parts[-3]
        assert found.contract.fixtures
        assert not contract_warnings(found.contract)


def rules_shown(text: str) -> set[str]:
    """The rules by which this very text must read otherwise."""
    rules = set()
    block = re.match(r"---\r?\n(.*?)^---", text, re.DOTALL | re.MULTILINE)
    if block and re.search(r"^[^\s:#-][^:\n]*:[^\n]*\n(?:[ \t]*[^\n:]*\n)*?- ", block[1], re.MULTILINE):
        rules.add("W-73")
    named = Counter(re.findall(r"^#{1,6}[ \t]+(UC-[A-Za-z0-9_.-]+)", text, re.MULTILINE))
    if any(count > 1 for count in named.values()):
        rules.add("W-74")
    return rules


def test_every_rule_of_the_table_is_one_that_a_text_can_show() -> None:
    shown = rules_shown("---\na:\n- b\n---\n") | rules_shown("# UC-1\n# UC-1\n")
    assert shown == RULES
    assert not rules_shown("---\na:\n  - b\nc: d\n---\n- x\n# UC-1\n# UC-2\n")


class Added:
    """A commit that brings all of a tree."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = {path.encode(): data for path, data in files.items()}

    def before(self, change: PathChange) -> bytes | None:
        return None

    def after(self, change: PathChange) -> bytes | None:
        return self.files[change.path]

    def violations(self) -> tuple[Violation, ...]:
        changes = [PathChange("A", path, "000000", "100644", "0" * 40, "1" * 40) for path in self.files]
        return judge_specs(changes, self, POLICY).violations


def spec_lints() -> Iterator[Any]:
    """(files, report) of every recorded spec lint."""
    for run in sorted((CORPUS / "runs").glob("*")):
        answer = CORPUS / "expected" / run.name / "verify-spec.json"
        if answer.is_file():
            yield pytest.param(tree_of(run), json.loads(answer.read_bytes())["stdout"], id=run.name)
    trees = CORPUS / "trees" / "cases.json"
    for case in json.loads(trees.read_bytes())["cases"] if trees.is_file() else ():
        files = {path: text.encode() for path, text in case["files"].items()}
        for number, run in enumerate(case["runs"]):
            if run["argv"][:2] == ["verify", "spec"] and run["stdout"].startswith("{"):
                yield pytest.param(files, run["stdout"], id=f"{case['id']}-{number}")


def tree_of(run: Path) -> dict[str, bytes]:
    files = (path for path in sorted(run.glob("shapeup/**/*")) if path.is_file())
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize(("files", "printed"), list(spec_lints()))
def test_the_gate_finds_the_lines_and_contracts_that_the_spec_lint_finds(files: dict[str, bytes], printed: str) -> None:
    report = json.loads(printed)
    folder = f"shapeup/{report['slug']}/"
    ours = [found for found in Added(files).violations() if found.path.decode().startswith(folder)]
    wanted = [found for found in report["findings"] if found["rule"] == "TIER-DIRECTION"]
    assert Counter(map(told_by_us, of_rule(ours, "TIER-DIRECTION"))) == Counter(map(told_by_record, wanted))
    unreadable = {found["scope"] for found in report["findings"] if found["rule"] == "CONTRACT-UNREADABLE"}
    scopes = [
        path for path in (found.path.decode() for found in of_rule(ours, "CONTRACT-UNREADABLE")) if "/scopes/" in path
    ]
    assert {path.rpartition("/")[2].removesuffix(".md") for path in scopes} == unreadable


def of_rule(found: list[Violation], rule: str) -> list[Violation]:
    return [violation for violation in found if violation.rule == rule]


def told_by_us(found: Violation) -> tuple[str, str]:
    """Where and what: `<path>:<line>` and the id, `local` for a path; contract and document names as the lint prints them."""
    path, (line, _, what) = found.path.decode(), found.what.partition(": ")
    if "`tasks`" in what:
        return path.rpartition("/")[2].removesuffix(".md"), what.partition(" lists ")[2].replace(",", ", ")
    if what.startswith("links to "):
        return path.partition("/spec/")[2], what.partition("[[")[2]
    if what.startswith("names board id "):
        return f"{path}:{line.removeprefix('line ')}", what.removeprefix("names board id ")
    return f"{path}:{line.removeprefix('line ')}", "local"


def told_by_record(found: dict[str, Any]) -> tuple[str, str]:
    detail = found["detail"]
    if named := re.search(r"names LOCAL task ids \[(.*?)\]", detail):
        return found["scope"], named[1]
    if link := re.match(r"(\S+) → \[\[(.*?)\]\]", detail):
        return link[1], link[2]
    if line := re.match(r"(\S+:\d+) names (\S+) ", detail):
        return line[1], line[2]
    pointed = re.match(r"(\S+:\d+) points into ", detail)
    assert pointed, detail
    return pointed[1], "local"
