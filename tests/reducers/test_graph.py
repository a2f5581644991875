"""The graph of a run: what its rows say, and that they are only added. Source: protocol §5.10, W-44, W-45."""

from __future__ import annotations

from parsers.ledgers import render_row
from reducers.graph import Edge, Graph, grow, parse_graph, subgraph_document, trace_document
from reducers.run_records import RunRecords
from tests.reducers.a_run import RUN, artifact, order, records, result, scope, trial, trials

NONE = parse_graph(b"")


def graph(run: RunRecords) -> Graph:
    return grow(NONE, run).graph


def test_round_and_attempt_of_an_order_are_those_of_its_address() -> None:
    nodes = graph(records(orders=(order("core-r2-a3", "core"), order("evaluate-r2"), order("orient")))).nodes
    told = [(nodes[f"order:cart/{stem}"]["round"], nodes[f"order:cart/{stem}"]["attempt"]) for stem in STEMS]
    assert told == [(2, 3), (2, None), (None, None)]
    assert nodes["order:cart/core-r2-a3"]["scope_id"] == "core"


STEMS = ("core-r2-a3", "evaluate-r2", "orient")


def test_edges_join_run_order_result_verdict_trial_and_specs() -> None:
    rows = (trial(1), trial(2, baseline_trial=1))
    run = records(
        orders=(order("core-r1-a1", "Core"),),
        results=(result("core-r1-a1"),),
        artifacts=(artifact("r1-a1-t1", "Core"),),
        trials=trials(*rows),
        gates=(
            {"gate": "L2", "status": "ok", "round": 1},
            {"gate": "L4", "status": "ok"},
            {"gate": "L4", "status": "ask"},
        ),
        scopes=(scope("Core", depends_on=("base",)),),
        wiring=({"use_case": "UC-A", "wiring_seam": "call", "engine": "src/a.js"},),
    )
    assert graph(run).edges == {
        Edge(f"run:{RUN}", "PRODUCED", "order:cart/core-r1-a1"),
        Edge("order:cart/core-r1-a1", "DERIVED_FROM", "scope:cart:Core"),
        Edge("order:cart/core-r1-a1", "PRODUCED", "result:cart/core-r1-a1"),
        Edge("verdict:cart:r1-a1-t1", "EVALUATES", "scope:cart:Core"),
        Edge("order:cart/core-r1-a1", "PRODUCED", "verdict:cart:r1-a1-t1"),
        Edge("trial:cart:core:1", "EVALUATES", "verdict:cart:r1-a1-t1"),
        Edge("trial:cart:core:2", "EVALUATES", "verdict:cart:r1-a2-t1"),
        Edge("trial:cart:core:2", "SUPERSEDES", "trial:cart:core:1"),
        Edge("gate:cart:L2:1", "DEPENDS_ON", "verdict:cart:r1-a1-t1"),
        Edge("gate:cart:L4:1", "DEPENDS_ON", f"run:{RUN}"),
        Edge("gate:cart:L4:2", "DEPENDS_ON", f"run:{RUN}"),
        Edge("scope:cart:Core", "DEPENDS_ON", "scope:cart:base"),
        Edge("scope:cart:Core", "IMPLEMENTS", "uc:cart:UC-A"),
        Edge("scope:cart:Core", "COVERS", "req:cart:REQ-1"),
        Edge("uc:cart:UC-A", "DEPENDS_ON", "seam:cart:call"),
    }


def test_a_node_is_appended_again_only_when_it_changed_and_its_later_keys_win() -> None:
    first = grow(NONE, records(orders=(order("orient"),)))
    ledger = "".join(map(render_row, first.rows)) + "torn\n[1]\n"
    changed = records(orders=(order("orient", worker="orient"),), results=(result("orient"),))
    second = grow(parse_graph(ledger.encode()), changed)
    assert [row.get("id") or row["to"] for row in second.rows] == [
        "order:cart/orient",
        "result:cart/orient",
        "result:cart/orient",
    ]
    assert (first.backfilled, second.backfilled, second.graph.nodes["order:cart/orient"]["worker"]) == (
        True,
        False,
        "orient",
    )
    whole = parse_graph((ledger + "".join(map(render_row, second.rows))).encode())
    assert whole == second.graph
    assert not grow(whole, changed).rows


def test_a_green_does_not_outlive_a_later_red_of_its_round() -> None:
    run = records(
        artifacts=(
            artifact("r1-a1-t1", "core"),
            artifact("r1-a1-t10", "core", "red"),
            artifact("r1-a2-t1", "api"),
            artifact("r1-a1-t2", "api", "red"),
            artifact("r2-a1-t1", "core"),
            artifact("r2-a1-t2", "api", run_id="cart-20250101T100000Z-0a1b2c3d"),
        )
    )
    document = subgraph_document(graph(run), RUN)
    assert document["green_scopes_by_round"] == {"1": ["api"], "2": ["core"]}
    assert document["rounds_with_green"] == [1, 2]


def test_orders_without_a_result_are_pending() -> None:
    run = records(orders=(order("wire"), order("orient")), results=(result("orient"),), scopes=(scope("core"),))
    document = subgraph_document(graph(run), RUN)
    assert (document["orders"], document["pending_orders"], document["scopes"]) == (2, ["cart/wire"], ["core"])


def test_a_trace_goes_both_ways_as_far_as_it_may() -> None:
    run = records(orders=(order("core-r1-a1", "core"),), results=(result("core-r1-a1"),), scopes=(scope("core"),))
    near = trace_document(graph(run), "scope:cart:core", 1)
    far = trace_document(graph(run), "scope:cart:core", 2)
    assert near is not None
    assert far is not None
    assert [(node["distance"], node["id"]) for node in near["nodes"]] == [  # type: ignore[attr-defined]
        (0, "scope:cart:core"),
        (1, "order:cart/core-r1-a1"),
        (1, "req:cart:REQ-1"),
        (1, "uc:cart:UC-A"),
    ]
    assert {node["id"] for node in far["nodes"]} - {node["id"] for node in near["nodes"]} == {  # type: ignore[attr-defined]
        f"run:{RUN}",
        "result:cart/core-r1-a1",
    }
    assert trace_document(graph(run), "scope:cart:nope", 4) is None
