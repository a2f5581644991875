"""The graph of a run: which run produced which order, which verdict judged which scope. Source: protocol §5.10, W-44, W-45.

`graph.jsonl` only grows: a node stands there again when one of its attributes changed, and readers merge the lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from parsers.addresses import parse_address, scope_stem
from parsers.layout import stem_at
from parsers.ledgers import parse_rows
from parsers.receipts import whole_number
from parsers.t0_verdict import parse_artifact_name
from parsers.trials import Trial
from reducers.board import use_case_id
from reducers.run_records import Document, RunRecords, count_at, scope_of, text_at

Node = dict[str, object]
ROUND_GATES = frozenset({"L2", "L3"})
MAX_DEPTH = 12


class Edge(NamedTuple):
    """One edge; all three together are its identity."""

    source: str
    t: str
    to: str


class Graph(NamedTuple):
    """The merged view: nodes by id (without `k`), edges, and how many lines told it."""

    nodes: Mapping[str, Node]
    edges: frozenset[Edge]
    lines: int


def parse_graph(data: bytes) -> Graph:
    """The merged view of a ledger; of a node's lines the later keys win. Lines that are neither node nor edge are passed over."""
    return _merge(Graph({}, frozenset(), 0), parse_rows(data))


def _merge(graph: Graph, rows: Iterable[Document]) -> Graph:
    nodes = {node_id: dict(node) for node_id, node in graph.nodes.items()}
    edges, lines = set(graph.edges), graph.lines
    for row in rows:
        node_id = text_at(row, "id")
        source, t, to = (text_at(row, key) for key in ("from", "t", "to"))
        if row.get("k") == "node" and node_id is not None:
            nodes.setdefault(node_id, {}).update((key, value) for key, value in row.items() if key != "k")
            lines += 1
        elif row.get("k") == "edge" and source is not None and t is not None and to is not None:
            edges.add(Edge(source, t, to))
            lines += 1
    return Graph(nodes, frozenset(edges), lines)


class Growth(NamedTuple):
    """What a look at the run adds: the rows to append, nodes before edges, and the view that they make."""

    rows: tuple[Document, ...]
    nodes_added: int
    edges_added: int
    graph: Graph
    backfilled: bool  # there was no graph before


def grow(before: Graph, records: RunRecords) -> Growth:
    """The rows that the ledger lacks, so that its view tells what the run's files tell now."""
    nodes = [node for node in _nodes(records) if not _is_told(before.nodes.get(str(node["id"]), {}), node)]
    edges = [edge for edge in dict.fromkeys(_edges(records)) if edge not in before.edges]
    rows: list[Document] = [{"k": "node", **node} for node in nodes]
    rows += [{"k": "edge", "from": edge.source, "t": edge.t, "to": edge.to} for edge in edges]
    return Growth(tuple(rows), len(nodes), len(edges), _merge(before, rows), before.lines == 0)


def _is_told(known: Node, node: Node) -> bool:
    return all(key in known and known[key] == value and type(known[key]) is type(value) for key, value in node.items())


def growth_document(growth: Growth, path: str) -> dict[str, object]:
    """The answer of `reduce graph`."""
    return {
        "path": path,
        "nodes_added": growth.nodes_added,
        "edges_added": growth.edges_added,
        "nodes_total": len(growth.graph.nodes),
        "edges_total": len(growth.graph.edges),
        "backfilled": growth.backfilled,
    }


# --- nodes -----------------------------------------------------------------------------------------------------------


def _nodes(records: RunRecords) -> Iterator[Node]:
    """Each node once, the last telling of an id counting, in the order of the table in §5.10."""
    yield from {str(node["id"]): node for node in _told_nodes(records)}.values()


def _told_nodes(records: RunRecords) -> Iterator[Node]:
    slug = records.slug
    if records.run_id is not None:
        yield _run_node(records, records.run_id)
    for order in records.orders:
        if order.order_id is not None:
            yield _order_node(order.document, order.order_id)
    for result in records.results:
        if result.order_id is not None:
            told = {"artifacts": count_at(result.document, "artifacts")}
            told |= {"discoveries": count_at(result.document, "discoveries")}
            status = text_at(result.document, "status")
            yield _node(f"result:{result.order_id}", "Result", order_id=result.order_id, status=status, **told)
    yield from _verdict_nodes(records)
    yield from (node for _, node in _gate_nodes(records))
    yield from (_trial_node(slug, trial) for trial in records.trials if trial.trial is not None)
    for scope in records.scopes:
        told = {"substrate": scope.substrate}
        yield _node(f"scope:{slug}:{scope.scope_id}", "Scope", scope_id=scope.scope_id, title=scope.title, **told)
    for name in records.use_cases:
        yield _node(f"uc:{slug}:{stem_at(name)}", "UseCase", use_case=stem_at(name), file=name)
    yield from (_node(f"req:{slug}:{req}", "Requirement", req_id=req) for req in records.requirements)
    yield from (node for _, node in _seams(records))


def _node(node_id: str, t: str, **attributes: object) -> Node:
    return {"id": node_id, "t": t, **attributes}


def _run_node(records: RunRecords, run_id: str) -> Node:
    told = {key: text_at(records.receipt, key) for key in ("started_at", "intake_sha256")}
    level = text_at(records.config, "auto_level")
    return _node(f"run:{run_id}", "Run", run_id=run_id, slug=records.slug, **told, auto_level=level)


def _order_node(order: Document, order_id: str) -> Node:
    """Round and attempt are in the address (W-44)."""
    address = parse_address(order_id)
    told = {key: text_at(order, key) for key in ("worker", "operation")}
    where = {"round": address.round, "attempt": address.attempt, "scope_id": scope_of(order)}
    return _node(f"order:{order_id}", "Order", order_id=order_id, **told, **where, run_id=text_at(order, "run_id"))


def _verdict_nodes(records: RunRecords) -> Iterator[Node]:
    for stem, verdict in records.artifacts:
        told = {"overall": verdict.overall, "regression": verdict.regression, "round": verdict.round}
        told |= {"attempt": verdict.attempt, "scope_id": verdict.scope_id, "run_id": verdict.run_id}
        yield _node(_verdict_id(records.slug, stem), "Verdict", artifact=f"{stem}.json", **told)


def _gate_nodes(records: RunRecords) -> Iterator[tuple[Document, Node]]:
    crossings: dict[str, int] = {}
    for row in records.gates:
        gate = text_at(row, "gate")
        if gate is None:
            continue
        crossings[gate] = crossings.get(gate, 0) + 1
        told = {key: text_at(row, key) for key in ("decision", "status", "source", "note")}
        run_id = text_at(row, "run_id") or records.run_id
        gate_id = f"gate:{records.slug}:{gate}:{crossings[gate]}"
        round_ = whole_number(row.get("round"))
        yield row, _node(gate_id, "GateDecision", gate=gate, **told, round=round_, run_id=run_id)


def _trial_node(slug: str, trial: Trial) -> Node:
    told = {"trial": trial.trial, "round": trial.round, "attempt": trial.attempt, "scope_id": trial.scope_id}
    told |= {"status": trial.status or None, "artifact": trial.artifact, "sha256": trial.sha256}
    return _node(_trial_id(slug, trial.scope_id, trial.trial), "Trial", **told, run_id=trial.run_id)


def _seams(records: RunRecords) -> Iterator[tuple[str, Node]]:
    """(use case, node) of each wired entry that names its seam."""
    for row in records.wiring:
        use_case, seam = row.get("use_case"), row.get("wiring_seam")
        if isinstance(use_case, str) and isinstance(seam, str) and seam:
            told = {"engine": text_at(row, "engine"), "entry_point": text_at(row, "entry_call_site")}
            yield use_case_id(use_case), _node(f"seam:{records.slug}:{seam}", "Seam", seam=seam, **told)


def _verdict_id(slug: str, stem: str) -> str:
    return f"verdict:{slug}:{stem}"


def _trial_id(slug: str, scope_id: str, trial: int | None) -> str:
    return f"trial:{slug}:{scope_id}:{trial}"


# --- edges -----------------------------------------------------------------------------------------------------------


def _edges(records: RunRecords) -> Iterator[Edge]:
    yield from _order_edges(records)
    yield from _measured_edges(records)
    yield from _gate_edges(records)
    yield from _spec_edges(records)


def _order_edges(records: RunRecords) -> Iterator[Edge]:
    slug = records.slug
    for order in records.orders:
        if (order_id := order.order_id) is None:
            continue
        if (run_id := text_at(order.document, "run_id") or records.run_id) is not None:
            yield Edge(f"run:{run_id}", "PRODUCED", f"order:{order_id}")
        if (scope_id := scope_of(order.document)) is not None:
            yield Edge(f"order:{order_id}", "DERIVED_FROM", f"scope:{slug}:{scope_id}")
    for result in records.results:
        if result.order_id is not None:
            yield Edge(f"order:{result.order_id}", "PRODUCED", f"result:{result.order_id}")


def _measured_edges(records: RunRecords) -> Iterator[Edge]:
    slug = records.slug
    for stem, verdict in records.artifacts:
        verdict_id = _verdict_id(slug, stem)
        yield Edge(verdict_id, "EVALUATES", f"scope:{slug}:{verdict.scope_id}")
        if verdict.round is not None and verdict.attempt is not None:
            name = f"{scope_stem(verdict.scope_id)}-r{verdict.round}-a{verdict.attempt}"
            yield Edge(f"order:{slug}/{name}", "PRODUCED", verdict_id)
    for trial in records.trials:
        if trial.trial is None:
            continue
        trial_id = _trial_id(slug, trial.scope_id, trial.trial)
        if trial.baseline_trial is not None:
            yield Edge(trial_id, "SUPERSEDES", _trial_id(slug, trial.scope_id, trial.baseline_trial))
        if trial.artifact is not None:
            yield Edge(trial_id, "EVALUATES", _verdict_id(slug, stem_at(trial.artifact)))


def _gate_edges(records: RunRecords) -> Iterator[Edge]:
    """L2 and L3 of a round look at all its verdicts; any other gate at the run."""
    for _, node in _gate_nodes(records):
        gate_id, round_ = str(node["id"]), node["round"]
        if node["gate"] in ROUND_GATES and round_ is not None:
            for stem, verdict in records.artifacts:
                if verdict.round == round_:
                    yield Edge(gate_id, "DEPENDS_ON", _verdict_id(records.slug, stem))
        elif node["run_id"] is not None:
            yield Edge(gate_id, "DEPENDS_ON", f"run:{node['run_id']}")


def _spec_edges(records: RunRecords) -> Iterator[Edge]:
    slug = records.slug
    for scope in records.scopes:
        scope_id = f"scope:{slug}:{scope.scope_id}"
        for need in scope.depends_on:
            yield Edge(scope_id, "DEPENDS_ON", f"scope:{slug}:{need}")
        for use_case in scope.use_cases:
            yield Edge(scope_id, "IMPLEMENTS", f"uc:{slug}:{use_case_id(use_case)}")
        for requirement in scope.covers:
            yield Edge(scope_id, "COVERS", f"req:{slug}:{requirement.upper()}")
    for use_case, seam in _seams(records):
        yield Edge(f"uc:{slug}:{use_case}", "DEPENDS_ON", str(seam["id"]))


# --- questions -------------------------------------------------------------------------------------------------------


def subgraph_document(graph: Graph, run_id: str | None) -> dict[str, object]:
    """The answer of `reduce graph --subgraph run`: what the run has, by names and counts."""
    orders = [node for node in _own(graph, "Order", run_id) if isinstance(node.get("order_id"), str)]
    answered = {edge.source for edge in graph.edges if edge.t == "PRODUCED" and edge.to.startswith("result:")}
    green = _green_by_round(_own(graph, "Verdict", run_id))
    return {
        "graph_lines": graph.lines,
        "run": run_id,
        "scopes": _names(graph, "Scope", "scope_id"),
        "use_cases": _names(graph, "UseCase", "use_case"),
        "requirements": _names(graph, "Requirement", "req_id"),
        "seams": _names(graph, "Seam", "seam"),
        "orders": len(orders),
        "pending_orders": sorted(str(node["order_id"]) for node in orders if node["id"] not in answered),
        "rounds_with_green": sorted(green),
        "green_scopes_by_round": {str(round_): sorted(green[round_]) for round_ in sorted(green)},
        "trials": sum(1 for _ in _own(graph, "Trial", run_id)),
        "edges": len(graph.edges),
    }


def _own(graph: Graph, t: str, run_id: str | None) -> Iterator[Node]:
    for node in graph.nodes.values():
        if node.get("t") == t and (run_id is None or node.get("run_id") in (None, run_id)):
            yield node


def _names(graph: Graph, t: str, key: str) -> list[str]:
    return sorted(str(node[key]) for node in graph.nodes.values() if node.get("t") == t and key in node)


def _green_by_round(verdicts: Iterable[Node]) -> dict[int, set[str]]:
    """The scopes whose newest artifact of the round is green: an older green does not outlive a red (W-45)."""
    newest: dict[tuple[int, str], tuple[tuple[int, int], Node]] = {}
    for node in verdicts:
        round_, scope_id = node.get("round"), node.get("scope_id")
        if not isinstance(round_, int) or not isinstance(scope_id, str):
            continue
        named = parse_artifact_name(stem_at(str(node.get("artifact"))))
        age = (whole_number(node.get("attempt")) or 0, named[2] or 0 if named else 0)
        if (round_, scope_id) not in newest or newest[round_, scope_id][0] <= age:
            newest[round_, scope_id] = age, node
    green: dict[int, set[str]] = {}
    for (round_, scope_id), (_, node) in newest.items():
        if node.get("overall") == "green":
            green.setdefault(round_, set()).add(scope_id)
    return green


def trace_document(graph: Graph, node_id: str, depth: int) -> dict[str, object] | None:
    """What a node is joined to within `depth` edges (1 to 12), in either direction, nearest first; None for an unknown id."""
    if node_id not in graph.nodes and not any(node_id in (edge.source, edge.to) for edge in graph.edges):
        return None
    reached, frontier = {node_id: 0}, {node_id}
    used: dict[Edge, None] = {}
    for step in range(1, min(max(depth, 1), MAX_DEPTH) + 1):
        met = sorted(edge for edge in graph.edges if edge.source in frontier or edge.to in frontier)
        used |= dict.fromkeys(met)
        frontier = {end for edge in met for end in (edge.source, edge.to) if end not in reached}
        reached |= dict.fromkeys(sorted(frontier), step)
    nodes = [{"distance": step, **graph.nodes.get(found, {"id": found})} for found, step in reached.items()]
    edges = [{"from": edge.source, "t": edge.t, "to": edge.to} for edge in used]
    return {"id": node_id, "depth": depth, "nodes": nodes, "edges": edges}
