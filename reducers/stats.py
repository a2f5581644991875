"""What the harvests of past runs and the agent hooks' own log come to: `stats` and `stats --hooks`. Source: protocol §5.7, §2.12, §2.14.

Ratios have two decimals, half up; a whole number stays one, and nothing is divided by nothing.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cmp_to_key
from typing import NamedTuple

from parsers.ledgers import MAX_LINE_BYTES
from parsers.receipts import whole_number
from parsers.times import parse_time

Row = Mapping[str, object]
PATHOLOGY = "pathology"
VERDICTS = ("allow", "deny", "block", "error")  # any other counts as an evaluation alone


class Harvests(NamedTuple):
    """The rows of all shards, in file order. `sources`: the shards' names, sorted."""

    sources: tuple[str, ...]
    runs: tuple[Row, ...]
    pathologies: tuple[Row, ...]
    malformed: int


def read_harvests(shards: Iterable[tuple[str, bytes]]) -> Harvests:
    """The rows of `metrics/*.jsonl`, told apart: a pathology by its kind, a run by its feature and terminal state, the rest is
    malformed, a line that holds no object among it. Source: §2.14."""
    named = sorted(shards)
    runs: list[Row] = []
    pathologies: list[Row] = []
    malformed = 0
    for line in (line for _, data in named for line in data.split(b"\n") if line.strip()):
        row = _row(line)
        if row is None:
            malformed += 1
        elif row.get("kind") == PATHOLOGY:
            pathologies.append(row)
        elif _text(row, "feature_slug") and _text(row, "terminal_state"):
            runs.append(row)
        else:
            malformed += 1
    return Harvests(tuple(name for name, _ in named), tuple(runs), tuple(pathologies), malformed)


def _row(line: bytes) -> Row | None:
    try:
        value = json.loads(line) if len(line) <= MAX_LINE_BYTES else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def stats_document(
    harvests: Harvests, generated_at: str, metrics_dir: str, slug: str | None = None
) -> dict[str, object]:
    """The StatsReport, keys in the registry's order; `slug`: the runs of this feature alone. Source: §5.7."""
    numbered = [(seq, row) for seq, row in enumerate(harvests.runs) if slug in (None, row["feature_slug"])]
    slugs = sorted({str(row["feature_slug"]) for _, row in numbered})
    kinds = Counter(_text(row, PATHOLOGY) or "(none)" for row in harvests.pathologies)
    return {
        "schema_version": 1,
        "generated_at": generated_at,
        "metrics_dir": metrics_dir,
        "sources": list(harvests.sources),
        "rows_total": len(numbered),
        "rows_malformed": harvests.malformed,
        "rows_pathology": len(harvests.pathologies),
        "pathologies": dict(kinds),
        "per_slug": [_slug_document(one, [row for _, row in numbered if row["feature_slug"] == one]) for one in slugs],
        "trend": _trend(numbered),
    }


def _slug_document(slug: str, rows: Sequence[Row]) -> dict[str, object]:
    cuts = [_count(row, "scope_cut_count") for row in rows]
    findings = [found if isinstance(found := row.get("qa_findings"), dict) else {} for row in rows]
    total, promoted, held = (sum(_count(found, key) for found in findings) for key in ("total", "promoted", "held"))
    document: dict[str, object] = {
        "feature_slug": slug,
        "runs": len(rows),
        "terminal_states": dict(Counter(str(row["terminal_state"]) for row in rows)),
        "hammer_cut_rate": rate(sum(cut > 0 for cut in cuts), len(rows)),
        "scope_cuts_total": sum(cuts),
        "attempt_exhaustions": sum(_count(row, "attempt_exhaustions") for row in rows),
        "qa": {"total": total, "promoted": promoted, "held": held, "promotion_rate": rate(promoted, total)},
    }
    rounds = _whole(rows, "round_count")
    if rounds:
        document["rounds"] = {"min": min(rounds), "max": max(rounds), "avg": rate(sum(rounds), len(rounds))}
    if surprises := _whole(rows, "surprise_count"):
        document["surprise_avg"] = rate(sum(surprises), len(surprises))
    if per_slice := [ratio for row in rows if (ratio := _rounds_per_slice(row)) is not None]:
        document["rounds_per_slice_avg"] = rate(sum(per_slice), len(per_slice))
    return document


def _rounds_per_slice(row: Row) -> float | None:
    rounds, slices = whole_number(row.get("round_count")), whole_number(row.get("slice_count"))
    return None if rounds is None or slices is None or slices <= 0 else rounds / slices


def _whole(rows: Sequence[Row], key: str) -> list[int]:
    return [number for row in rows if (number := whole_number(row.get(key))) is not None]


def _count(row: Row, key: str) -> int:
    """A count, however it was copied: a number, or the list of what was counted."""
    value = row.get(key)
    return len(value) if isinstance(value, list) else max(0, whole_number(value) or 0)


def _trend(numbered: Sequence[tuple[int, Row]]) -> list[dict[str, object]]:
    """The rounds that runs took: by time where two runs say it, else as they stand in the shards."""
    told = [(seq, row) for seq, row in numbered if whole_number(row.get("round_count")) is not None]
    trend = []
    for seq, row in sorted(told, key=cmp_to_key(_compare)):
        at = {"at": row["at"]} if _text(row, "at") else {}
        rounds = whole_number(row["round_count"])
        trend.append({"feature_slug": row["feature_slug"], "seq": seq, **at, "round_count": rounds})
    return trend


def _compare(one: tuple[int, Row], other: tuple[int, Row]) -> int:
    first, second = _at(one[1]), _at(other[1])
    if first is not None and second is not None and first != second:
        return -1 if first < second else 1
    return one[0] - other[0]


def _at(row: Row) -> datetime | None:
    return parse_time(_text(row, "at"))


def rate(part: float, whole: float) -> float:
    """part ÷ whole with two decimals, half up; a whole number stays one; 0 where there is nothing to divide by."""
    value = math.floor(part / whole * 100 + 0.5) / 100 if whole else 0
    return int(value) if value == int(value) else value


# --- the hooks' own log ----------------------------------------------------------------------------------------------


def hooks_document(rows: Iterable[Row]) -> dict[str, object]:
    """What `decisions.jsonl` comes to: {evaluations, hooks, per_hook[]}, by hook; a row that names no hook is none. Source: §2.12, §5.7."""
    by_hook: dict[str, list[Row]] = {}
    for row in rows:
        if hook := _text(row, "hook"):
            by_hook.setdefault(hook, []).append(row)
    return {
        "evaluations": sum(map(len, by_hook.values())),
        "hooks": len(by_hook),
        "per_hook": [_hook_document(hook, by_hook[hook]) for hook in sorted(by_hook)],
    }


def _hook_document(hook: str, rows: Sequence[Row]) -> dict[str, object]:
    told = Counter(row.get("verdict") for row in rows if isinstance(row.get("verdict"), str))
    rules = Counter(rule for row in rows if (rule := _text(row, "rule")))
    verdicts = {verdict: told[verdict] for verdict in VERDICTS}
    return {"hook": hook, "evaluations": len(rows), **verdicts, "rules": dict(rules)}


def _text(row: Row, key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) else None
