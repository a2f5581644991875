"""Reads the harvests of past runs and shows them, and the hooks' log, as tables. Source: protocol §5.7."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from daemon.disk import DiskTree
from daemon.terminal import escape, print_table
from parsers.layout import classify, folder_of
from reducers.stats import VERDICTS, read_harvests, stats_document


def read_stats(tree: DiskTree, generated_at: str, slug: str | None = None) -> dict[str, object]:
    """The StatsReport of this checkout; `slug`: of one feature. Raises Unreadable."""
    folder = folder_of("metrics")
    paths = ((name, f"{folder}/{name}") for name in tree.list(folder))
    shards = [(name, tree.read(path) or b"") for name, path in paths if _is_shard(path)]
    return stats_document(read_harvests(shards), generated_at, f"{tree.root}/{folder}", slug)


def _is_shard(path: str) -> bool:
    place = classify(path)
    return place is not None and place.kind == "metrics"


def show_stats(stats: Mapping[str, Any]) -> None:
    """The report as people read it: counts, then one row for each feature."""
    counts = f"{stats['rows_total']} run(s), {stats['rows_pathology']} pathologies, {stats['rows_malformed']} malformed"
    print(escape(f"harvests in {stats['metrics_dir']}: {counts}"))
    for kind, count in stats["pathologies"].items():
        print(escape(f"  pathology {kind}: {count}"))
    if not stats["per_slug"]:
        print("  no run was harvested yet: `shapeupd close` does it")
        return
    headers = ("feature", "runs", "ended", "rounds", "cut rate", "cuts", "exhausted", "qa promoted", "surprises")
    print_table(headers, [_cells(one) for one in stats["per_slug"]])


def _cells(one: Mapping[str, Any]) -> tuple[object, ...]:
    ended = ", ".join(f"{state} {count}" for state, count in one["terminal_states"].items())
    rounds = one.get("rounds")
    spread = f"{rounds['min']}-{rounds['max']}, avg {rounds['avg']}" if rounds else "-"
    qa = one["qa"]
    counts = (one["hammer_cut_rate"], one["scope_cuts_total"], one["attempt_exhaustions"])
    found = f"{qa['promoted']}/{qa['total']}"
    return (one["feature_slug"], one["runs"], ended, spread, *counts, found, one.get("surprise_avg", "-"))


def show_hooks(hooks: Mapping[str, Any]) -> None:
    """What each hook decided how often, and by which rules."""
    print(f"hooks: {hooks['evaluations']} evaluations of {hooks['hooks']} hook(s)")
    if hooks["per_hook"]:
        print_table(("hook", "evaluations", *VERDICTS, "rules"), [_hook_cells(one) for one in hooks["per_hook"]])


def _hook_cells(one: Mapping[str, Any]) -> tuple[object, ...]:
    rules = ", ".join(f"{rule} {count}" for rule, count in one["rules"].items())
    return one["hook"], one["evaluations"], *(one[verdict] for verdict in VERDICTS), rules
