"""Every recorded `probe stats`, `reduce graph` and `reduce ship`, and every export that a real run left: ours say the same, or differ by a rule that the case itself shows.

Source: corpus README, protocol §5.7-5.11, rulings H1, W-33, W-42 .. W-44.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from daemon.disk import DiskTree
from daemon.place import Place
from daemon.read_facts import read_run_records
from daemon.ship_facts import read_ship_facts
from daemon.stats_tables import read_stats
from parsers.addresses import parse_address
from parsers.layout import path_of
from parsers.ledgers import parse_rows, render_row
from parsers.markdown import Table, parse_heading, parse_tables
from parsers.tier_direction import tier_breaks
from reducers.export import TABLES, fact_tables
from reducers.graph import grow, growth_document, parse_graph, subgraph_document
from reducers.ship.facts import Documents, ship_facts
from reducers.ship.report import render_report
from reducers.ship.sections import committed
from reducers.stats import hooks_document
from tests.corpus.replay_cases import CORPUS, REPOSITORY
from tests.corpus.tally import count

TREES = CORPUS / "trees" / "cases.json"
EXPORTS = sorted((CORPUS / "runs").glob("*/.shapeup/exports/*/manifest.json"))
ROWS = {
    row["rule"] for row in tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text()).get("read-plane", ())
}
NOW = datetime(2026, 3, 1, tzinfo=UTC)
GOES_ON = {"status", "final_verdict", "rounds_used", "closed_at"}  # what a run writes after its export
pytestmark = pytest.mark.corpus

NUMBERS: dict[str, int] = {}  # of the recorded queries, for the tally

Record = dict[str, Any]


def records(pattern: str) -> list[Any]:
    paths = sorted((CORPUS / "expected").glob(f"*/{pattern}.json"))
    return [pytest.param(path, id=f"{path.parent.name}-{path.stem}") for path in paths]


def slug_of_record(record: Record, root: Path) -> str:
    if "--slug" in record["argv"]:
        return str(record["argv"][record["argv"].index("--slug") + 1])
    return str(json.loads((root / path_of("active-scope")).read_bytes())["slug"])


def read(path: Path) -> tuple[Record, Path, str]:
    record, root = json.loads(path.read_bytes()), CORPUS / "runs" / path.parent.name
    assert record["exit"] == 0
    return record, root, slug_of_record(record, root)


def tell(query: str, case: str, record: str, rules: set[str]) -> None:
    assert rules <= ROWS, f"tests/divergences.toml has no row for {sorted(rules - ROWS)}"
    NUMBERS.setdefault(record, len(NUMBERS))
    count(query, case, NUMBERS[record], frozenset(rules))


# --- stats -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*records("probe-stats"), *records("probe-stats-slug")])
def test_harvests_are_counted_alike(path: Path) -> None:
    record, root, slug = read(path)
    ours = read_stats(DiskTree(root), "<NOW>", slug if "--slug" in record["argv"] else None)
    ours["metrics_dir"] = str(ours["metrics_dir"]).replace(str(root), "<ROOT>")
    assert json.dumps(ours) == json.dumps(json.loads(record["stdout"]))
    tell("probe stats", path.parent.name, path.stem, set())


@pytest.mark.parametrize("path", records("probe-stats-hooks"))
def test_hook_decisions_are_counted_alike(path: Path) -> None:
    record, root, _ = read(path)
    rows = parse_rows(DiskTree(root).read(path_of("decisions")) or b"")
    assert json.dumps({"hooks": hooks_document(rows)}) == json.dumps(json.loads(record["stdout"]))
    tell("probe stats --hooks", path.parent.name, path.stem, set())


@pytest.mark.parametrize("path", records("probe-stats-table"))
def test_a_table_of_harvests_counts_the_same(path: Path) -> None:
    record, root, _ = read(path)
    ours = read_stats(DiskTree(root), "<NOW>")
    found = re.search(r"(\d+) run row\(s\), (\d+) pathology, (\d+) malformed", record["stdout"])
    assert found is not None
    assert [int(text) for text in found.groups()] == [
        ours["rows_total"],
        ours["rows_pathology"],
        ours["rows_malformed"],
    ]
    tell("probe stats --format table", path.parent.name, path.stem, set())


# --- graph -----------------------------------------------------------------------------------------------------------


def addressed(row: Record) -> Record:
    """An Order node as the reference writes it, with the round and attempt of its address (W-44)."""
    if row.get("k") == "node" and row.get("t") == "Order":
        address = parse_address(row["order_id"])
        return {**row, "round": address.round, "attempt": address.attempt}
    return row


@pytest.mark.parametrize("path", records("reduce-graph*"))
def test_a_graph_grows_alike(path: Path) -> None:
    record, root, slug = read(path)
    run = read_run_records(DiskTree(root), slug)
    assert run is not None
    ledger = path_of("graph", slug)
    before = () if "prep" in record else parse_rows((root / ledger).read_bytes())
    growth = grow(parse_graph("".join(render_row(addressed(dict(row))) for row in before).encode()), run)
    subgraph = "--subgraph" in record["argv"]
    ours = subgraph_document(growth.graph, run.run_id) if subgraph else growth_document(growth, f"<ROOT>/{ledger}")
    assert json.dumps(ours) == json.dumps(json.loads(record["stdout"]))
    rules = set()
    if recorded := record.get("files", {}).get(ledger):
        theirs = parse_rows(recorded.encode())
        assert list(map(render_row, growth.rows)) == [render_row(addressed(dict(row))) for row in theirs]
        rules = {"W-44"} if list(theirs) != list(growth.rows) else set()
    tell("reduce graph", path.parent.name, path.stem, rules)


def test_a_graph_that_is_up_to_date_does_not_grow() -> None:
    for parameter in records("reduce-graph"):
        _, root, slug = read(parameter.values[0])
        run = read_run_records(DiskTree(root), slug)
        assert run is not None
        first = grow(parse_graph(b""), run)
        again = grow(parse_graph("".join(map(render_row, first.rows)).encode()), run)
        assert (again.rows, again.backfilled) == ((), False)


# --- ship ------------------------------------------------------------------------------------------------------------


def frontmatter(report: str) -> dict[str, str]:
    lines = report.split("---\n")[1].splitlines()
    return dict(line.split(": ", 1) for line in lines)


def headings(report: str) -> dict[str, str]:
    """The text below each heading of the report itself; those of copied sections are deeper, or of their own."""
    parts: dict[str, list[str]] = {}
    own = {"Outcome", "Verification (T0)", "Ratchet", "Evaluation", "Refuted criteria and bugs", "QA findings"}
    own |= {"Discovered, not built", "Leftovers (advisory)", "Decisions adjudicated during the run"}
    for line in report.rpartition("\n---\n")[0].split("\n"):
        heading = parse_heading(line)
        if heading and heading[1] in own:
            parts[heading[1]] = []
        elif parts:
            parts[list(parts)[-1]].append(line)
    return {name: "\n".join(lines).strip() for name, lines in parts.items()}


def tables(text: str) -> list[dict[str, list[str]]]:
    return [rows_of(table) for table in parse_tables(text.split("\n"))]


def rows_of(table: Table) -> dict[str, list[str]]:
    return {row.cells[0].strip(): [cell.strip() for cell in row.cells[1:]] for row in table.rows}


def numbers(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """What a table of figures says, without its words."""
    return {name: re.findall(r"\d+(?:\.\d+)?", cells[0]) for name, cells in rows.items()}


def plain(text: str) -> Iterator[str]:
    """The lines of a copied section, whatever the depth of its headings."""
    return (line.lstrip("#").strip() for line in committed(text).split("\n") if line.strip(" -"))


def ship_rules(ours: str, recorded: str) -> set[str]:
    """The rules by which two reports say different things; fails where none explains it."""
    found = set()
    mine, theirs = frontmatter(ours), frontmatter(recorded)
    if theirs["verdict"] == "~":
        found.add("W-42")
        theirs["verdict"] = "not-evaluated"
    assert {**mine, "date": "<DATE>"} == theirs
    assert not list(tier_breaks(ours.encode()))
    if list(tier_breaks(recorded.encode())):
        found.add("W-33")
    mine, theirs = headings(ours), headings(recorded)
    assert list(mine) == list(theirs)
    outcome, told = tables(mine["Outcome"])[0], tables(theirs["Outcome"])[0]
    assert {**outcome, "Verdict": ""} == {**told, "Verdict": "", "Not evaluated": outcome["Not evaluated"]}
    unfinished = [re.findall(r"(\d+) task\(s\) did not", text) for text in (mine["Outcome"], theirs["Outcome"])]
    assert unfinished[0] == unfinished[1]
    assert tables(mine.get("Verification (T0)", "")) == tables(theirs.get("Verification (T0)", ""))
    for own, other in zip(tables(mine.get("Ratchet", "")), tables(theirs.get("Ratchet", "")), strict=True):
        assert numbers(own) == numbers(other)
    for name in ("Evaluation", "Refuted criteria and bugs", "QA findings"):
        assert list(plain(mine.get(name, ""))) == list(plain(theirs.get(name, "")))
    built = [list(plain(text.get("Discovered, not built", ""))) for text in (mine, theirs)]
    assert built[0][1 : 1 + len(built[1])] == built[1]
    if len(built[0]) > 1 + len(built[1]):
        found.add("W-43")
    return found


def report_of(root: Path, slug: str, argv: list[str]) -> str:
    flags = dict(pairwise(argv))
    read = read_ship_facts(Place(root, None), slug, NOW, flags.get("--verdict"), flags.get("--qa"))
    assert read is not None
    return render_report(read[0])


@pytest.mark.parametrize("path", records("reduce-ship*"))
def test_a_report_says_the_same(path: Path) -> None:
    record, root, slug = read(path)
    rules = ship_rules(report_of(root, slug, record["argv"]), record["stdout"])
    tell("reduce ship", path.parent.name, path.stem, rules)


def ship_trees() -> list[Any]:
    cases = json.loads(TREES.read_bytes())["cases"] if TREES.is_file() else ()
    return [
        pytest.param(case, run, id=case["id"])
        for case in cases
        for run in case["runs"]
        if run["argv"][:2] == ["reduce", "ship"]
    ]


@pytest.mark.parametrize(("case", "run"), ship_trees())
def test_the_report_of_a_small_tree_says_the_same(case: Record, run: Record, quick_root: Path) -> None:
    for path, text in case["files"].items():
        (quick_root / path).parent.mkdir(parents=True, exist_ok=True)
        (quick_root / path).write_bytes(text.encode())
    slug = run["argv"][run["argv"].index("--slug") + 1]
    tell("reduce ship, trees", case["id"], "ship", ship_rules(report_of(quick_root, slug, run["argv"]), run["stdout"]))


def test_a_report_of_nothing_but_a_receipt_stands() -> None:
    for parameter in records("reduce-ship")[:1]:
        _, root, slug = read(parameter.values[0])
        run = read_run_records(DiskTree(root), slug)
        assert run is not None
        bare = run._replace(orders=(), results=(), artifacts=(), trial_rows=(), trials=(), harness={})
        facts = ship_facts(bare, "2026-03-01", (), Documents())
        assert frontmatter(render_report(facts))["verdict"] == "not-evaluated"


# --- export ----------------------------------------------------------------------------------------------------------


def settled(row: Record) -> Record:
    return {key: value for key, value in row.items() if key not in GOES_ON}


@pytest.mark.skipif(not EXPORTS, reason=f"no exports below {CORPUS} (set SHAPEUP_CORPUS)")
@pytest.mark.parametrize("path", EXPORTS, ids=lambda path: path.parents[3].name)
def test_the_tables_hold_the_rows_of_an_export_that_the_run_left(path: Path) -> None:
    manifest, root = json.loads(path.read_bytes()), path.parents[3]
    run = read_run_records(DiskTree(root), manifest["slug"], with_decisions=True)
    assert run is not None
    rules = set()
    ours = {table.name: [dict(row) for row in table.rows] for table in fact_tables(run)}
    for entry in manifest["tables"]:
        theirs = [dict(row) for row in parse_rows((path.parent / entry["file"]).read_bytes())]
        if entry["name"] not in TABLES:
            assert not theirs
            rules.add("§5.11")
            continue
        names = [name for name, _ in TABLES[entry["name"]]]
        kept = [{key: value for key, value in row.items() if key in names} for row in theirs]
        rules |= {"§5.11"} if kept != theirs else set()
        mine = ours[entry["name"]]
        if entry["name"] == "hook_decision":
            mine = mine[: len(kept)]  # hooks go on after an export
        elif entry["name"] == "run":
            mine, kept = (
                [{k: v for k, v in row.items() if k not in GOES_ON} for row in (*mine, *kept)][:1],
                [{k: v for k, v in row.items() if k not in GOES_ON} for row in kept],
            )
        assert [json.dumps(row) for row in mine] == [json.dumps(row) for row in kept], entry["name"]
    assert list(ours) == list(TABLES)
    tell("report export, as left by runs", root.name, "export", rules)


def test_every_row_of_the_table_is_needed() -> None:
    """The rules that the records need are those that have a row."""
    if not records("reduce-ship") or not EXPORTS:
        pytest.skip("this corpus lacks a kind")
    needed = {"§5.11"}
    for parameter in records("reduce-ship*"):
        record, root, slug = read(parameter.values[0])
        needed |= ship_rules(report_of(root, slug, record["argv"]), record["stdout"])
    for parameter in records("reduce-graph-from-nothing"):
        record, root, slug = read(parameter.values[0])
        rows = parse_rows(record["files"][path_of("graph", slug)].encode())
        needed |= {"W-44"} if any(addressed(dict(row)) != row for row in rows) else set()
    assert needed == ROWS
