"""Every recorded `reduce hill`: ours gives the same phases and would write the same shards, or differs by a rule that the case itself shows.

Source: corpus README, protocol §5.4, W-34 .. W-37.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from daemon.commands.hill import told_of
from daemon.disk import DiskTree
from daemon.hill_facts import hill_slugs, read_hill_facts
from parsers.hill_shards import PHASES
from parsers.layout import path_of
from reducers.hill import derive_hill
from reducers.hill_svg import render_hill_svg
from reducers.hill_text import render_hill_text
from reducers.hill_views import derive
from tests.corpus.replay_cases import CORPUS, REPOSITORY
from tests.corpus.tally import count

TREES = CORPUS / "trees" / "cases.json"
RECORDS = sorted((CORPUS / "expected").glob("*/reduce-hill*.json"))
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not TREES.is_file() and not RECORDS, reason=f"no hills below {CORPUS} (set SHAPEUP_CORPUS)"),
]
ROWS = {row["rule"] for row in tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text()).get("hill", ())}
UNKNOWN, SOLVED, DOWNHILL, FINISHED = PHASES


class Told(NamedTuple):
    """What a run says of one scope, and the bytes of the shard that it writes; None where it writes none."""

    phase: str
    changed: bool
    shard: str | None


Hill = dict[str, Told]


def ours(root: Path, slug: str, *, from_nothing: bool = False) -> Hill:
    tree = DiskTree(root)
    facts = read_hill_facts(tree, slug)
    assert not facts.findings
    shards = derive(facts).shards
    told = {}
    for one in derive_hill(facts):
        path = path_of("hill-shard", slug, one.scope_id)
        changed = from_nothing or tree.read(path) != shards[path]
        told[one.scope_id] = Told(one.phase, changed, shards[path].decode() if changed else None)
    return told


def recorded(run: dict[str, Any], slug: str) -> Hill:
    files = run.get("files", run["files_written"])
    told = {}
    for row in json.loads(run["stdout"]):
        path = path_of("hill-shard", slug, row["scope_id"])
        told[row["scope_id"]] = Told(row["phase"], row["changed"], files.get(path))
    return told


def rules(mine: Hill, theirs: Hill, files: dict[str, str], slug: str) -> set[str]:
    """The rules by which they differ, each shown by the case's own files; fails where none explains a scope."""
    if mine == theirs:
        return set()
    if not any(path.startswith(f".shapeup/{slug}/") for path in files):
        assert not mine
        return {"W-36"}
    found = set()
    for scope in {*mine, *theirs}:
        pair = (theirs[scope].phase if scope in theirs else None, mine[scope].phase if scope in mine else None)
        if mine.get(scope) == theirs.get(scope):
            continue
        if f"shapeup/{slug}/scopes/{scope}.md" not in files:
            assert pair[1] is None
            assert f"shapeup/{slug}/scopes/{scope}.json" in files
            found.add("§1.4")
        elif pair == (FINISHED, DOWNHILL):
            assert f".shapeup/{slug}/evaluation/.verdicts-run.jsonl" in files
            assert not any(path.startswith(f".shapeup/{slug}/results/evaluate-r") for path in files)
            found.add("§12.1")
        else:
            ledger = files.get(f".shapeup/{slug}/discovery/ledger.md", "")
            addressed = re.search(rf"^## Discovered — {slug}/{scope}-r\d+-a\d+ .*\n(?:.*\n)*?~ ", ledger, re.MULTILINE)
            assert pair == ((SOLVED, UNKNOWN) if addressed else (UNKNOWN, SOLVED))
            assert "~ " in ledger
            found.add("W-34")
    return found


def tree_cases() -> list[Any]:
    cases = json.loads(TREES.read_bytes())["cases"] if TREES.is_file() else ()
    return [
        pytest.param(case, run, id=case["id"])
        for case in cases
        for run in case["runs"]
        if run["argv"][:2] == ["reduce", "hill"]
    ]


@pytest.mark.parametrize(("case", "run"), tree_cases())
def test_a_small_tree_gives_the_recorded_hill_or_differs_by_rule(
    case: dict[str, Any], run: dict[str, Any], quick_root: Path
) -> None:
    for path, text in case["files"].items():
        (quick_root / path).parent.mkdir(parents=True, exist_ok=True)
        (quick_root / path).write_bytes(text.encode())
    slug = run["argv"][run["argv"].index("--slug") + 1]
    found = rules(ours(quick_root, slug), recorded(run, slug), case["files"], slug)
    assert found <= ROWS, f"tests/divergences.toml has no row for {sorted(found - ROWS)}"
    assert run["exit"] == 0
    count("reduce hill, trees", case["id"], 0, frozenset(found))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_real_run_gives_the_recorded_hill(path: Path) -> None:
    record = json.loads(path.read_bytes())
    slug = record["argv"][record["argv"].index("--slug") + 1]
    mine = ours(CORPUS / "runs" / path.parent.name, slug, from_nothing="removed" in record.get("prep", ""))
    assert mine == recorded(record, slug)
    count("reduce hill, runs", path.parent.name, RECORDS.index(path), frozenset())


def test_every_row_of_the_table_is_needed(quick_root: Path) -> None:
    if not tree_cases():
        pytest.skip("this corpus holds no small trees")
    needed = set()
    for number, parameter in enumerate(tree_cases()):
        case, run = parameter.values
        root = quick_root / str(number)
        for path, text in case["files"].items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode())
        slug = run["argv"][run["argv"].index("--slug") + 1]
        needed |= rules(ours(root, slug), recorded(run, slug), case["files"], slug)
    assert needed == ROWS


PICTURED = CORPUS / "runs" / "fanout-arm-shipped"
PICTURES = REPOSITORY / "tests" / "data" / "hill"
LOOKED_AT = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.mark.skipif(not PICTURED.is_dir(), reason="the run that is pictured is not in this corpus")
def test_the_pictures_of_a_real_run_are_the_recorded_ones() -> None:
    """`SHAPEUP_WRITE_PICTURES=1` writes them anew."""
    (slug,) = hill_slugs(DiskTree(PICTURED))
    told = told_of(read_hill_facts(DiskTree(PICTURED), slug), LOOKED_AT)
    pictures = {
        "corpus-run.svg": render_hill_svg(told.title, told.dots, LOOKED_AT),
        "corpus-run.txt": render_hill_text(told.title, told.dots, 80) + "\n",
    }
    for name, drawn in pictures.items():
        if os.environ.get("SHAPEUP_WRITE_PICTURES"):
            (PICTURES / name).write_text(drawn)
        assert (PICTURES / name).read_text() == drawn
