"""`shapeupd export`: the facts of a run as tables for analysis elsewhere. Source: cli §2, protocol §5.11.

Reads the run's files alone and writes only into the folder that is named.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from daemon import clock
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, USAGE, Exit
from daemon.export_files import ENDINGS, NoParquet, write_export
from daemon.offline import place_of
from daemon.read_facts import read_run_records
from daemon.runs_on_disk import slugs_on_disk
from daemon.terminal import escape, print_json, print_table
from parsers.addresses import SLUG
from parsers.faults import render_fault
from parsers.layout import LOCAL_ROOT, NOT_A_SLUG, SHARED_ROOT, path_of
from parsers.tree import Unreadable
from reducers.run_records import RunRecords

HELP = """Writes the facts of a run as tables (runs, dispatches, criteria, discoveries, files, trials, T0 verdicts, judged
criteria, hook decisions) and a manifest into DIR. Without SLUG: every run, each in a folder of its own below DIR.
--format parquet needs the extra `parquet`. Ends with 3 where there is no run."""
EXAMPLE = "shapeupd export checkout --out facts"
EXPORTS = f"{LOCAL_ROOT}/exports"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", nargs="?", metavar="SLUG", help="the feature (default: every run)")
    parser.add_argument(
        "--out", metavar="DIR", required=True, help="the folder to write into; made where it is missing"
    )
    parser.add_argument(
        "--format", choices=tuple(ENDINGS), default="jsonl", help="the form of a table (default: jsonl)"
    )
    parser.add_argument("--json", action="store_true", help="print the manifests as one JSON document")


def run(args: argparse.Namespace) -> int:
    tree, out = DiskTree(place_of(args).root), Path(args.out).absolute()
    _refuse_the_trees(tree.root, out)
    manifests = []
    for records in _runs(tree, args.slug):
        folder = out if args.slug is not None else out / (records.run_id or records.slug)
        try:
            manifest = write_export(records, folder, args.format, clock.iso(clock.now()))
        except NoParquet:
            raise Exit(USAGE, "Parquet needs pyarrow: install shapeupd with its extra, `shapeupd[parquet]`") from None
        except Unreadable as stop:
            raise Exit(USAGE, render_fault(stop.fault)) from None
        except OSError as error:
            raise Exit(USAGE, f"cannot write into {folder}: {error.strerror}") from None
        manifests.append((folder, manifest))
    if args.json:
        print_json({"schema": 1, "exports": [{"folder": str(folder), **one} for folder, one in manifests]})
    else:
        rows = [
            (one["slug"], one["run_id"] or "-", one["rows_total"], one["records_skipped"], f) for f, one in manifests
        ]
        print_table(("feature", "run", "rows", "skipped", "folder"), rows)
    return DONE


def _refuse_the_trees(root: Path, out: Path) -> None:
    """Raises Exit for a folder of a run or of its specs: its readers would take a table for a fact."""
    try:
        tree, *inner = out.resolve().relative_to(root.resolve()).parts
    except ValueError:
        return  # outside the repository, or its root
    if tree in (LOCAL_ROOT, SHARED_ROOT) and (not inner or inner[0] not in NOT_A_SLUG):
        raise Exit(USAGE, f"{out} belongs to the trees that shapeupd reads; name a folder outside, or {EXPORTS}")


def _runs(tree: DiskTree, slug: str | None) -> list[RunRecords]:
    """The run of the named feature, or every run. Raises Exit where there is none."""
    is_slug = slug is None or (bool(SLUG.match(slug)) and slug not in NOT_A_SLUG)
    slugs = slugs_on_disk(tree) if slug is None else (slug,) * is_slug
    found = [records for one in slugs if (records := read_run_records(tree, one, with_decisions=True))]
    if not found:
        where = path_of("receipt", slug if slug and is_slug else "<slug>")
        raise Exit(NOTHING_THERE, escape(f"no run: there is no {where}, no order and no result beside it"))
    return found
