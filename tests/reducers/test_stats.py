"""Harvest rows told apart and counted, and the hooks' log. Source: protocol §5.7, §2.12, §2.14."""

from __future__ import annotations

import json
from typing import Any

from reducers.stats import hooks_document, rate, read_harvests, stats_document


def shard(*rows: object) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def run(slug: str = "cart", **more: object) -> dict[str, object]:
    return {"schema_version": 1, "feature_slug": slug, "terminal_state": "shipped", **more}


def report(*shards: tuple[str, bytes], slug: str | None = None) -> dict[str, Any]:
    return stats_document(read_harvests(shards), "now", ".shapeup/metrics", slug)


def test_rows_are_told_apart_by_kind_and_the_rest_is_malformed() -> None:
    pathology = {"kind": "pathology", "pathology": "PA3", "feature_slug": "cart", "terminal_state": "x"}
    found = report(("b.jsonl", shard(run(), pathology)), ("a.jsonl", shard({"feature_slug": "cart"}, [1]) + b"{torn"))
    assert found["sources"] == ["a.jsonl", "b.jsonl"]
    assert (found["rows_total"], found["rows_pathology"], found["rows_malformed"]) == (1, 1, 3)
    assert found["pathologies"] == {"PA3": 1}


def test_a_feature_counts_all_its_runs_and_what_cannot_be_computed_is_left_out() -> None:
    rows = [
        run(round_count=2, scope_cut_count=3, slice_count=4, qa_findings={"total": 3, "promoted": 1, "held": 2}),
        run(round_count=3, attempt_exhaustions=["core", "api"], terminal_state="abandoned"),
        run("shop"),
    ]
    cart, shop = report(("a.jsonl", shard(*rows)))["per_slug"]
    assert cart["terminal_states"] == {"shipped": 1, "abandoned": 1}
    assert (cart["hammer_cut_rate"], cart["scope_cuts_total"], cart["attempt_exhaustions"]) == (0.5, 3, 2)
    assert cart["qa"] == {"total": 3, "promoted": 1, "held": 2, "promotion_rate": 0.33}
    assert cart["rounds"] == {"min": 2, "max": 3, "avg": 2.5}
    assert (cart["rounds_per_slice_avg"], "surprise_avg" in cart) == (0.5, False)
    assert shop.keys() == {
        "feature_slug", "runs", "terminal_states", "hammer_cut_rate", "scope_cuts_total", "attempt_exhaustions", "qa",
    }  # fmt: skip


def test_the_trend_goes_by_time_where_it_is_said_and_by_place_else() -> None:
    late, early, silent = run(at="2026-03-02T00:00:00Z"), run(at="2026-03-01T00:00:00Z"), run()
    rows = [{**row, "round_count": number} for number, row in enumerate((late, early, silent))]
    trend = report(("a.jsonl", shard(*rows, run(round_count="two"))))["trend"]
    assert [entry["round_count"] for entry in trend] == [1, 0, 2]
    assert [list(entry) for entry in trend][2] == ["feature_slug", "seq", "round_count"]


def test_one_feature_alone_is_counted_where_it_is_named() -> None:
    found = report(("a.jsonl", shard(run(), run("shop", round_count=1))), slug="shop")
    assert (found["rows_total"], [one["feature_slug"] for one in found["per_slug"]]) == (1, ["shop"])
    assert found["trend"] == [{"feature_slug": "shop", "seq": 1, "round_count": 1}]


def test_rates_are_rounded_half_up_and_nothing_is_divided_by_nothing() -> None:
    assert (rate(1, 8), rate(5, 1000), rate(2, 2), rate(1, 0)) == (0.13, 0.01, 1, 0)
    assert isinstance(rate(2, 2), int)


def test_a_warning_of_a_hook_is_an_evaluation_and_nothing_else() -> None:
    rows = [
        {"hook": "b", "verdict": "warn", "rule": "late"},
        {"hook": "b", "verdict": "deny", "rule": "late"},
        {"hook": "a", "verdict": "allow", "rule": None},
        {"hook": None, "verdict": "allow"},
        {"hook": "a", "verdict": ["x"]},
    ]
    assert hooks_document(rows) == {
        "evaluations": 4,
        "hooks": 2,
        "per_hook": [
            {"hook": "a", "evaluations": 2, "allow": 1, "deny": 0, "block": 0, "error": 0, "rules": {}},
            {"hook": "b", "evaluations": 2, "allow": 0, "deny": 1, "block": 0, "error": 0, "rules": {"late": 2}},
        ],
    }
