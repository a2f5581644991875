"""Reads what the hill of a feature follows from, straight from the disk; nothing is written. Source: protocol §5.4, W-36, rulings E3, G3, G4.

What cannot be read counts as absent, and an absence moves nothing up: a T0 artifact that is recorded and cannot be read is red.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from daemon.disk import DiskTree
from daemon.run_orders import read_run_orders
from daemon.scan import Fingerprint
from parsers.addresses import SLUG, parse_address, scope_stem
from parsers.contracts import ParsedContract, parse_contract
from parsers.facts import ReadResult, read_result, sha256_of
from parsers.hill_shards import HillShard, parse_hill_shard
from parsers.hill_signal import parse_hill_signal
from parsers.hill_trail import parse_hill_trail
from parsers.layout import LOCAL_ROOT, NOT_A_SLUG, SHARED_ROOT, folder_of, path_of, stem_at
from parsers.ledgers import parse_ingest_rows
from parsers.markdown import decode
from parsers.open_unknowns import parse_unknowns
from parsers.strict_json import parse_strict
from parsers.t0_verdict import artifact_name, parse_t0_verdict
from parsers.tree import Unreadable
from parsers.trials import SCOPE_ID, parse_trials
from reducers.breakers import Evaluation, evaluations_of
from reducers.hill import HillFacts, HillScope, Unknowns
from reducers.hill_evidence import Artifact, kept_green, measure
from reducers.live_contracts import RunOrders, live_contracts

# Artifacts never change, so whoever reads them again and again may keep what was read, by path with its stamp.
Memory = MutableMapping[str, tuple[Fingerprint | None, Artifact]]

_TRACE_FILES = ("receipt", "trials", "ingest-record", "legs", "dispatch")
_TRACE_FOLDERS = ("order", "result", "t0-verdict")


def hill_slugs(tree: DiskTree) -> tuple[str, ...]:
    """The features that may have a hill: those with a folder in either tree."""
    names = {*tree.list(LOCAL_ROOT), *tree.list(SHARED_ROOT)}
    slugs = (name for name in sorted(names) if SLUG.match(name) and name not in NOT_A_SLUG)
    return tuple(slug for slug in slugs if tree.list(f"{LOCAL_ROOT}/{slug}") or tree.list(f"{SHARED_ROOT}/{slug}"))


def read_hill_facts(tree: DiskTree, slug: str, run: RunOrders | None = None, memory: Memory | None = None) -> HillFacts:
    """The facts of one feature. `run`: its orders, where the caller has them already. Never raises for what stands in a file's place."""
    scopes, findings = _scopes(tree, slug)
    shards = tuple(_shards(tree, slug))
    signal = _bytes(tree, path_of("orient", slug, "hill-signal"))
    areas = parse_hill_signal(decode(signal), slug) if signal else ()
    facts = HillFacts(slug, has_trace(tree, slug), scopes, shards=shards, areas=areas, findings=findings)
    if not facts.has_trace:
        return facts
    orders = read_run_orders(tree, slug) if run is None else run
    trials = parse_trials(_bytes(tree, path_of("trials", slug)) or b"", orders.run_id)
    ledger = decode(_bytes(tree, path_of("discovery-ledger", slug)) or b"")
    return facts._replace(
        measured=measure(dict(_artifacts(tree, slug, {} if memory is None else memory)), trials, orders.run_id),
        evaluations=_evaluations(tree, slug, orders),
        unknowns=tuple(_unknowns(ledger)),
        worked=frozenset(_worked(orders)),
        kept_green=kept_green(trials),
        live=_live_scopes(orders),
        trail=parse_hill_trail(_bytes(tree, path_of("hill-trail", slug)) or b""),
    )


def has_trace(tree: DiskTree, slug: str) -> bool:
    """Whether this machine knows the run: a receipt, an order, a result or T0 evidence. A board alone is none. Source: W-36."""
    if any(tree.stamp(path_of(kind, slug)) is not None for kind in _TRACE_FILES):
        return True
    return any(name.endswith(".json") for kind in _TRACE_FOLDERS for name in tree.list(folder_of(kind, slug)))


# --- the committed tree ----------------------------------------------------------------------------------------------


def _scopes(tree: DiskTree, slug: str) -> tuple[tuple[HillScope, ...], tuple[str, ...]]:
    """The scopes that have a contract, and what is wrong with contracts that stand for none. Source: §5.5."""
    folder = folder_of("scope-contract", slug)
    scopes: dict[str, HillScope] = {}
    findings = []
    for name in tree.list(folder):
        path, stem = f"{folder}/{name}", stem_at(name)
        if not name.endswith(".md") or not SCOPE_ID.match(stem) or (data := _bytes(tree, path)) is None:
            continue
        contract = parse_contract("scope-contract", decode(data), path)
        if not contract.has_frontmatter and contract.fault is None and b"scope_id" not in data:
            continue  # a page about scopes
        scope_id = _text(contract, "scope_id") or stem
        if scope_stem(scope_id) != scope_stem(stem) or not SCOPE_ID.match(scope_id):
            findings.append(f"{path}: its scope_id {scope_id[:80]!r} is not the file's name, so it stands for no scope")
            continue
        fixtures, parts = contract.texts("e2e_verification_fixtures"), contract.texts("superseded_by")
        scopes[scope_id] = HillScope(scope_id, fixtures, parts, contract.texts("use_cases"))
    return tuple(scopes.values()), tuple(findings)


def _text(contract: ParsedContract, key: str) -> str | None:
    value = contract.keys.get(key)
    return value if isinstance(value, str) else None


def _shards(tree: DiskTree, slug: str) -> Iterator[HillShard]:
    folder = folder_of("hill-shard", slug)
    for name in tree.list(folder):
        shard = parse_hill_shard(_bytes(tree, f"{folder}/{name}") or b"") if name.endswith(".yml") else None
        if shard and name == f"{shard.scope_id}.yml":
            yield shard


# --- the local trace -------------------------------------------------------------------------------------------------


def _artifacts(tree: DiskTree, slug: str, memory: Memory) -> Iterator[tuple[str, Artifact]]:
    """Every artifact by its stem; one that is no plain file is none."""
    folder, pending = folder_of("t0-verdict", slug), _pending(tree, slug)
    for name in tree.list(folder):
        if not name.endswith(".json") or name.startswith(".") or stem_at(name) in pending:
            continue
        path = f"{folder}/{name}"
        stamp, known = tree.stamp(path), memory.get(path)
        if known is None or known[0] != stamp or stamp is None:
            data = _bytes(tree, path)
            if data is None:
                continue
            known = memory[path] = (stamp, Artifact(parse_t0_verdict(data, path), sha256_of(data)))
        yield stem_at(name), known[1]


def _pending(tree: DiskTree, slug: str) -> frozenset[str]:
    """The artifacts of attempts that are under way: whether their tree is kept, and so whether they count, their row will say."""
    folder = folder_of("journal", slug)
    stems = set()
    for name in tree.list(folder):
        if not (name.startswith("t0-") and name.endswith(".json")):
            continue
        value = parse_strict(_bytes(tree, f"{folder}/{name}") or b"", name).value
        artifact = value.get("artifact") if isinstance(value, dict) else None
        verdict = parse_t0_verdict(artifact.encode(), name) if isinstance(artifact, str) else None
        if verdict and verdict.round and verdict.attempt and verdict.trial:
            stems.add(artifact_name(verdict.round, verdict.attempt, verdict.trial))
    return frozenset(stems)


def _evaluations(tree: DiskTree, slug: str, orders: RunOrders) -> tuple[Evaluation, ...]:
    """The verdicts of the run's rounds. Where shapeupd keeps records, applied results alone count; else the result files do.

    A newest result that says no verdict, or cannot be read, is no pass, whatever the rounds before it said.
    """
    results = dict(_evaluate_results(tree, slug))
    rows = parse_ingest_rows(_bytes(tree, path_of("ingest-record", slug)) or b"")
    if rows:
        facts = {stem: read.fact for stem, read in results.items() if read.fact}
        return evaluations_of(rows, facts, orders.run_id)
    found: dict[int, str] = {}
    for stem, read in results.items():
        order, address = orders.orders.get(stem), parse_address(f"{slug}/{stem}")
        is_other_run = orders.run_id and order and order.order.run_id not in (None, orders.run_id)
        if address.name == "evaluate" and address.round is not None and not is_other_run and not read.is_abandoned:
            verdict = read.fact.result.verdict if read.fact else None
            found[address.round] = (verdict.overall if verdict else None) or "nothing"
    return tuple(Evaluation(round_, found[round_]) for round_ in sorted(found))


def _evaluate_results(tree: DiskTree, slug: str) -> Iterator[tuple[str, ReadResult]]:
    folder = folder_of("result", slug)
    for name in tree.list(folder):
        if name.startswith("evaluate") and name.endswith(".json"):
            yield stem_at(name), read_result(f"{folder}/{name}", _bytes(tree, f"{folder}/{name}") or b"")


def _unknowns(ledger: str) -> Iterator[Unknowns]:
    for order_id, lines in parse_unknowns(ledger):
        address = parse_address(order_id)
        if address.name is not None:
            yield Unknowns(address.name, address.round or 0, lines)


def _worked(orders: RunOrders) -> Iterator[tuple[str, int]]:
    """(scope as in stems, round) of this run's build orders."""
    for fact in orders.orders.values():
        address = parse_address(fact.order.order_id)
        is_own = orders.run_id is None or fact.order.run_id in (None, orders.run_id)
        if is_own and address.name is not None and address.round is not None and address.attempt is not None:
            yield address.name, address.round


def _live_scopes(orders: RunOrders) -> frozenset[str]:
    """The scopes, as in stems, that have a live order. Source: ruling B2."""
    live = (one for one in live_contracts(orders) if not one.answered and not one.superseded)
    addresses = (parse_address(one.order_id) for one in live)
    return frozenset(one.name for one in addresses if one.name is not None and one.attempt is not None)


def _bytes(tree: DiskTree, path: str) -> bytes | None:
    try:
        return tree.read(path)
    except (Unreadable, OSError):
        return None
