"""Every recorded verdict of the sandbox guard, asked of one write and of a commit: ours is the same, or differs by a rule that the
case itself shows. Source: corpus README, protocol §3.3, W-08 … W-16, rulings B2, B3, E4.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest

from hooks.path_change import PathChange
from hooks.policy import judge
from hooks.shell_policy import render_shell_policy
from hooks.whitelist import Way, judge_write
from parsers.globs import matches
from parsers.policy_file import Contract, Policy
from tests.corpus.replay_cases import CORPUS, REPOSITORY
from tests.corpus.tally import count

CASES = CORPUS / "substrate" / "cases.json"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CASES.is_file(), reason=f"no substrate cases below {CORPUS} (set SHAPEUP_CORPUS)"),
]

ROWS = {
    row["rule"]: row
    for row in tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text()).get("substrate", ())
}
SEEN_TOOLS = {"Edit", "Write", "MultiEdit"}
WAYS: dict[str, Way] = {"Write": "write"}  # every other tool changes a part
LEAVES = ("..", "../", "/")


class Asked(NamedTuple):
    """One case: the orders that were live, and the paths that the tool would write, as the repository names them."""

    case: dict[str, Any]
    policy: Policy
    paths: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.case["id"])

    @property
    def recorded(self) -> str:
        return str(self.case["verdict"])


@cache
def asked() -> tuple[Asked, ...]:
    cases = json.loads(CASES.read_bytes())["cases"] if CASES.is_file() else ()
    return tuple(Asked(case, policy_of(case), tuple(paths_of(case))) for case in cases)


def each() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in asked()])


def policy_of(case: dict[str, Any]) -> Policy:
    return Policy("recorded", tuple(map(contract_of, case["live_orders"])))


def contract_of(row: dict[str, Any]) -> Contract:
    lists = {field: tuple(globs) for field, globs in (row["substrate"] or {}).items()}
    operation = "execute" if re.search(r"-r\d+-a\d+\Z", row["order"]) else ""
    return Contract(row["order"], operation, answered=row["answered"], **lists)


def paths_of(case: dict[str, Any]) -> Iterator[str]:
    """What the guard reads: `file_path`, and that of each edit."""
    given = case.get("tool_input") or {"file_path": case.get("path")}
    for path in (given.get("file_path"), *(edit.get("file_path") for edit in given.get("edits", ()))):
        if path:
            yield path.removeprefix("<ROOT>/")


def normal(path: str) -> str:
    return posixpath.normpath(path)


# --- the rules, each told from the data alone ------------------------------------------------------------------------


def rules_of(one: Asked) -> frozenset[str]:
    """The rules whose difference the case shows."""
    return frozenset(rule for rule, shows in SHOWN.items() if shows(one))


def is_unseen(one: Asked) -> bool:
    return one.case["tool"] not in SEEN_TOOLS


def has_no_pointer(one: Asked) -> bool:
    pointer = one.case["active_order"]
    try:
        value = json.loads(pointer) if isinstance(pointer, str) else pointer
    except ValueError:
        return True
    return not (isinstance(value, dict) and value.get("slug") and value.get("order_path"))


def leaves(one: Asked) -> bool:
    return one.recorded == "allow" and any(normal(path).startswith(LEAVES) for path in one.paths)


def is_carved_out(one: Asked) -> bool:
    return one.recorded == "allow" and any(normal(path).startswith(".shapeup/cart/") for path in one.paths)


def is_pointer(one: Asked) -> bool:
    """A file of the whole checkout that a glob opens."""
    return one.recorded == "allow" and any(re.match(r"\.shapeup/[^/]+\Z", normal(path)) for path in one.paths)


def is_local(one: Asked) -> bool:
    return one.recorded == "allow" and any(normal(path).startswith(".shapeup/") for path in one.paths)


def globs_of(one: Asked, *fields: str) -> Iterator[str]:
    for order in one.case["live_orders"]:
        for field in fields:
            yield from (order["substrate"] or {}).get(field, ())


def swallows(one: Asked) -> bool:
    """The guard reads `**/` as any text; read so a glob matches, and read as §3.2 says it does not."""
    read = {"**/": ".*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    for glob in globs_of(one, "allowed", "shared"):
        tokens = re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", glob)
        guard = re.compile("".join(read.get(token, re.escape(token)) for token in tokens))
        if any(guard.fullmatch(normal(path)) and not matches(glob, normal(path)) for path in one.paths):
            return True
    return False


def has_section(one: Asked) -> bool:
    return any("#" in glob for glob in globs_of(one, "append_only", "frozen"))


def points_at_an_answered_order(one: Asked) -> bool:
    pointed = (one.case["active_order"] or {}).get("order_path") if not has_no_pointer(one) else None
    return any(order["answered"] and order["file"] == pointed for order in one.case["live_orders"])


def has_a_result_that_is_none(one: Asked) -> bool:
    extra = one.case.get("extra_files", {})
    return any("/results/" in path and not text.strip() for path, text in extra.items())


SHOWN = {
    "W-14": is_unseen,
    "B3": has_no_pointer,
    "W-16": leaves,
    "W-10": is_carved_out,
    "E4": is_pointer,
    "W-08": swallows,
    "W-09": has_section,
    "W-13": points_at_an_answered_order,
    "B2": has_a_result_that_is_none,
    "R-37": is_local,
}


def settle(way: str, one: Asked, ours: str, but: frozenset[str]) -> None:
    """Count the case; where ours is another verdict a rule must show in it and have its row."""
    rules = frozenset() if ours == one.recorded else rules_of(one) - but
    count(way, one.name, 0, rules)
    assert ours == one.recorded or rules, f"{one.name}: recorded {one.recorded}, ours {ours}, and no rule shows in it"
    assert rules <= ROWS.keys(), f"tests/divergences.toml has no row for {sorted(rules - ROWS.keys())}"


# --- the two ways ----------------------------------------------------------------------------------------------------


@each()
def test_one_write_is_judged_as_the_guard_judged_it_or_by_a_rule(one: Asked) -> None:
    way = WAYS.get(one.case["tool"], "edit")
    verdicts = [judge_write(path, one.policy, way=way, only_live=True) for path in one.paths]
    denied = [verdict for verdict in verdicts if not verdict.is_allowed]
    settle("substrate, one write", one, "deny" if denied else "allow", frozenset({"R-37"}))
    for verdict in denied:
        assert verdict.violation is not None
        assert verdict.violation.fix


@each()
def test_a_commit_of_the_same_paths_is_judged_so_too(one: Asked) -> None:
    """An edit adds to the file's end or its named section, a write replaces it; the rest of the repository is unchanged."""
    paths = [normal(path) for path in one.paths]
    if not paths or any(path.startswith(LEAVES) for path in paths):
        return  # nothing that a commit could hold
    content = Replaced() if one.case["tool"] == "Write" else Grown()
    found = judge(list(map(changed, paths)), one.policy, content)
    settle("substrate, one commit", one, "deny" if found else "allow", frozenset({"W-10", "E4", "W-13"}))
    if len(paths) > 1:  # all denied paths are reported together
        singly = [judge([changed(path)], one.policy, content) for path in paths]
        assert found == tuple(violation for each_found in singly for violation in each_found)


@each()
def test_no_line_for_the_shell_covers_a_recorded_path_that_is_denied(one: Asked) -> None:
    from tests.hooks.test_shell_policy import SHELLS, covered, is_clean

    paths = [normal(path) for path in one.paths if is_clean(normal(path))]
    lines = render_shell_policy(one.policy).splitlines()
    says = covered(SHELLS[0], [(path, lines[1:-1]) for path in paths])
    for path, is_covered in zip(paths, says, strict=True):
        if is_covered and lines[0].split()[2] == "union":
            assert judge([changed(path)], one.policy, Replaced()) == ()


def test_content_tells_growth_whatever_tool_wrote_it() -> None:
    """W-12: a write that only adds passes, an edit that deletes does not."""
    cases = [one for one in asked() if one.name.startswith("append-only-substrate-")]
    for one in cases:
        change = changed(one.paths[0])
        assert judge([change], one.policy, Grown()) == ()
        assert [violation.rule for violation in judge([change], one.policy, Replaced())] == ["APPEND-ONLY"]


def test_every_row_names_a_rule_that_is_looked_for() -> None:
    assert ROWS.keys() == SHOWN.keys()
    for row in ROWS.values():
        assert all(row[key] for key in ("reference", "ours", "why"))


def changed(path: str) -> PathChange:
    return PathChange("M", path.encode("utf-8", "surrogateescape"), "100644", "100644", "a" * 40, "b" * 40)


OLD = b"# T\n\n## Steps\n1.\n\n## Invariants\n- one\n"


class Grown:
    def before(self, change: PathChange) -> bytes | None:
        return OLD

    def after(self, change: PathChange) -> bytes | None:
        return OLD + b"- two\n"


class Replaced(Grown):
    def after(self, change: PathChange) -> bytes | None:
        return b"something else\n"
