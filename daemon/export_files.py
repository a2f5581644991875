"""Writes the fact tables of a run into a folder, the manifest last: where it stands, the tables are whole. Source: protocol §5.11.

The only importer of pyarrow, which is an extra: it is loaded when Parquet is asked for.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from daemon.writes import remove_file, replace_file
from parsers.ledgers import escape_bytes, render_row
from parsers.markdown import encode
from reducers.export import Table, fact_tables, manifest_document, typed
from reducers.run_records import RunRecords

MANIFEST = "manifest.json"
ENDINGS: Mapping[str, str] = {"jsonl": "jsonl", "json": "json", "parquet": "parquet"}

Document = dict[str, object]


class NoParquet(Exception):
    """pyarrow is not installed."""


def write_export(records: RunRecords, folder: Path, form: str, generated_at: str) -> Document:
    """Write one run's tables in this format; the manifest as written. Tables of an older export in the folder are replaced.

    Raises NoParquet before anything is written, Unreadable, OSError.
    """
    render = _renderer(form)
    tables = fact_tables(records)
    files = [(f"{table.name}.{ENDINGS[form]}", render(table)) for table in tables]
    manifest = manifest_document(records, tables, generated_at, form, ENDINGS)
    folder.mkdir(parents=True, exist_ok=True)
    remove_file(folder, MANIFEST)
    for name, content in files:
        replace_file(folder, name, content)
    replace_file(folder, MANIFEST, _json(manifest), is_synced=True)
    return manifest


def _renderer(form: str) -> Callable[[Table], bytes]:
    if form == "jsonl":
        return lambda table: encode("".join(map(render_row, table.rows)))
    if form == "json":
        return lambda table: _json(list(table.rows))
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise NoParquet from None
    return lambda table: _parquet(table, arrow, parquet)


def _json(value: object) -> bytes:
    return encode(escape_bytes(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


def _parquet(table: Table, arrow: Any, parquet: Any) -> bytes:
    """One column for each of the table's, in its order and of its type, whether or not a row fills it; nested values as JSON text."""
    types = {"text": arrow.string(), "whole": arrow.int64(), "number": arrow.float64(), "flag": arrow.bool_()}
    schema = arrow.schema([(name, types.get(kind, arrow.string())) for name, kind in table.columns])
    columns = {name: [_cell(typed(row.get(name), kind), kind) for row in table.rows] for name, kind in table.columns}
    sink = io.BytesIO()
    parquet.write_table(arrow.table(columns, schema=schema), sink)
    return sink.getvalue()


def _cell(value: object, kind: str) -> object:
    if value is None:
        return None
    if kind == "json":
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if kind == "number" and isinstance(value, int):
        return float(value)
    return encode(value).decode("utf-8", "replace") if isinstance(value, str) else value
