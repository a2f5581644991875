"""`shapeupd export` and the graph ledger: whole tables in a folder, rows that are only added. Source: protocol §5.10, §5.11."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from daemon.commands import export
from daemon.disk import DiskTree
from daemon.exits import NOTHING_THERE, USAGE, Exit
from daemon.graph_ledger import update_graph
from parsers.layout import path_of
from reducers.export import TABLES
from reducers.graph import parse_graph

RUN = "cart-20260301T100000Z-0a1b2c3d"
HAS_ARROW = importlib.util.find_spec("pyarrow") is not None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    config = {"wall_clock_budget_s": 5400, "eval_dimensions": ["a", "b"]}
    receipt = {"run_id": RUN, "slug": "cart", "started_at": "2026-03-01T10:00:00.000Z", "config": config}
    write(root, path_of("receipt", "cart"), json.dumps(receipt))
    order = {"order_id": "cart/core-r1-a1", "run_id": RUN, "payload": {"scope_contract": {"scope_id": "core"}}}
    write(root, path_of("order", "cart", "core-r1-a1"), json.dumps(order))
    write(root, path_of("order", "cart", "broken"), "{")
    synthetic = {"order_id": "cart/core-r1-a1", "synthetic": True, "status": "abandoned"}
    write(root, path_of("result", "cart", "core-r1-a1"), json.dumps(synthetic))
    trial = {"scope_id": "core", "trial": 1, "score": {"regressions": 0}, "at": "ü\udcff", "more": 1}
    write(root, path_of("trials", "cart"), json.dumps(trial) + "\ntorn")
    return root


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def run(root: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    export.arguments(parser)
    args = parser.parse_args(words)
    args.repo = (str(root),)
    return export.run(args)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_table_is_a_file_and_the_manifest_counts_them(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = root / "facts" / "cart"
    assert run(root, "cart", "--out", str(out), "--json") == 0
    (told,) = json.loads(capsys.readouterr().out)["exports"]
    manifest = json.loads((out / "manifest.json").read_text())
    assert told == {"folder": str(out), **manifest}
    assert {entry["name"]: len(rows(out / entry["file"])) for entry in manifest["tables"]} == {
        entry["name"]: entry["rows"] for entry in manifest["tables"]
    }
    assert (manifest["records_skipped"], manifest["rows_total"]) == (2, 3)
    assert rows(out / "dispatch.jsonl")[0]["answered"] is False, "a marker of an abandoned order is no answer (W-01)"
    assert rows(out / "trial.jsonl")[0] == {
        "scope_id": "core", "trial": 1, "score": {"regressions": 0}, "at": "ü\udcff", "more": 1, "run_id": RUN,
    }  # fmt: skip
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["manifest.json", *(f"{name}.jsonl" for name in TABLES)]
    )


def test_without_a_feature_every_run_has_a_folder_of_its_own(root: Path) -> None:
    write(root, path_of("order", "shop", "orient"), json.dumps({"order_id": "shop/orient"}))
    assert run(root, "--out", str(root / "facts")) == 0
    assert sorted(path.name for path in (root / "facts").iterdir()) == [RUN, "shop"]


def test_json_tables_are_lists(root: Path) -> None:
    assert run(root, "cart", "--out", str(root / "facts"), "--format", "json") == 0
    (told,) = json.loads((root / "facts" / "run.json").read_text())
    assert (told["eval_dimensions"], told["wall_clock_budget_s"], told["status"]) == ("a b", 5400, None)


def test_an_older_manifest_never_stands_beside_half_an_export(root: Path) -> None:
    out = root / "facts"
    assert run(root, "cart", "--out", str(out)) == 0
    (out / "dispatch.jsonl").unlink()
    (out / "dispatch.jsonl").mkdir()
    with pytest.raises(Exit) as stop:
        run(root, "cart", "--out", str(out))
    assert stop.value.status == USAGE
    assert not (out / "manifest.json").exists()


@pytest.mark.parametrize(
    "folder", [".shapeup/cart/orders", "shapeup/cart", ".shapeup", "facts/../.shapeup/cart/results"]
)
def test_no_table_is_put_where_facts_are_read(root: Path, folder: str) -> None:
    before = sorted(root.rglob("*"))
    with pytest.raises(Exit) as stop:
        run(root, "cart", "--out", str(root / folder))
    assert stop.value.status == USAGE
    assert sorted(root.rglob("*")) == before
    assert run(root, "cart", "--out", str(root / ".shapeup" / "exports" / "x")) == 0


@pytest.mark.parametrize("words", [("nope",), ("../x",), ("metrics",)])
def test_where_there_is_no_run_no_folder_is_made(root: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(Exit) as stop:
        run(root, *words, "--out", str(root / "facts"))
    assert stop.value.status == NOTHING_THERE
    assert not (root / "facts").exists()


def test_without_pyarrow_parquet_is_refused_before_anything_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Exit) as stop:
        run(root, "cart", "--out", str(root / "facts"), "--format", "parquet")
    assert (stop.value.status, "shapeupd[parquet]" in stop.value.message) == (USAGE, True)
    assert not (root / "facts").exists()


@pytest.mark.skipif(not HAS_ARROW, reason="pyarrow is not installed (extra `parquet`)")
def test_parquet_has_every_column_of_its_type_whether_or_not_a_row_fills_it(root: Path) -> None:
    from importlib import import_module

    assert run(root, "cart", "--out", str(root / "facts"), "--format", "parquet") == 0
    read = import_module("pyarrow.parquet").read_table
    types = {"text": "string", "json": "string", "whole": "int64", "number": "double", "flag": "bool"}
    for name, columns in TABLES.items():
        table = read(root / "facts" / f"{name}.parquet")
        assert [(field.name, str(field.type)) for field in table.schema] == [(n, types[kind]) for n, kind in columns]
    (trial,) = read(root / "facts" / "trial.parquet").to_pylist()
    assert (json.loads(trial["score"]), trial["digest"], trial["run_id"]) == ({"regressions": 0}, None, RUN)


def test_the_graph_ledger_grows_only_by_what_is_new(root: Path) -> None:
    tree, path = DiskTree(root), root / path_of("graph", "cart")
    first = update_graph(tree, "cart")
    assert first is not None
    whole = path.read_bytes()
    again = update_graph(tree, "cart")
    assert again is not None
    assert (again[0].rows, path.read_bytes()) == ((), whole)
    path.write_bytes(whole + b'{"k":"node","id":"run:to')
    write(root, path_of("result", "cart", "orient"), json.dumps({"order_id": "cart/orient"}))
    grown = update_graph(tree, "cart")
    assert grown is not None
    assert path.read_bytes().startswith(whole + b'{"k":"node","id":"run:to\n{"k":"node","id":"result:cart/orient"')
    assert parse_graph(path.read_bytes()) == grown[0].graph
    assert update_graph(tree, "nope") is None
