"""Brings a run's `graph.jsonl` up to what its files say; rows are only added. Source: protocol §5.10.

What the `harness` verb `reduce graph` answers with; `reducers/graph.py` says what the rows mean.
"""

from __future__ import annotations

from daemon.disk import DiskTree
from daemon.read_facts import read_run_records
from daemon.writes import append_at, ledger_end
from parsers.layout import path_of
from parsers.ledgers import render_row
from parsers.markdown import encode
from reducers.graph import Growth, grow, parse_graph
from reducers.run_records import RunRecords

TRIES = 100


def update_graph(tree: DiskTree, slug: str) -> tuple[Growth, RunRecords] | None:
    """What was added to the run's graph, and the facts it was made from; None where there is no run.

    Who adds rows meanwhile goes first, and the graph is looked at again. Raises Unreadable, OSError.
    """
    path = path_of("graph", slug)
    records = read_run_records(tree, slug)
    if records is None:
        return None
    for _ in range(TRIES):
        end = ledger_end(tree.root, path)
        growth = grow(parse_graph((tree.read(path) or b"")[: end.size]), records)
        rows = "".join(map(render_row, growth.rows))
        if not rows or append_at(tree.root, path, encode(rows if end.is_whole else "\n" + rows), end.size):
            return growth, records
    raise OSError(f"{path} is written by somebody else all the time")
