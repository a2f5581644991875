"""Reads a run's facts for the round-loop invariants: beside the daemon's own state, or from the disk alone. Source: protocol §9, §5.5, rulings B2, D3.

In the daemon a file is read again only when its stamp has changed, so an admission costs a look at some twenty stamps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar, cast

from daemon.disk import DiskTree
from daemon.run_orders import landed_at, read_run_orders
from daemon.run_state import RunState
from daemon.scan import Fingerprint, is_fact_path
from parsers.addresses import scope_stem
from parsers.breaker_ledger import Trip, parse_breakers
from parsers.contracts import parse_contract
from parsers.facts import ResultFact, read_result, sha256_of
from parsers.frontmatter import parse_frontmatter
from parsers.layout import classify, folder_of, path_of
from parsers.ledgers import IngestRow, LegRow, parse_legs, parse_rows
from parsers.markdown import decode
from parsers.receipts import RunConfig, parse_receipt
from parsers.round_ledger import Decision, parse_round_ledger
from parsers.t0_verdict import parse_t0_verdict
from parsers.tasks import parse_boxes
from parsers.tree import Unreadable
from parsers.trials import Trial, parse_trials
from reducers.bugs import ScopeArea
from reducers.live_contracts import RunOrders
from reducers.rules.loop_facts import EVALUATE, Artifact, DispatchRow, LoopFacts, Ruled
from reducers.task_index import TaskIndex

_T = TypeVar("_T")
_U = TypeVar("_U")
_ORIENT = frozenset({"code-surface.md", "discovered-seed.md", "hill-signal.md"})
_PLUS = "+ "
_HEADING = "## Discovered — "


class _Memo:
    """What files say, kept until their stamp changes."""

    def __init__(self, tree: DiskTree) -> None:
        self.tree = tree
        self._known: dict[str, tuple[Fingerprint | None, object]] = {}
        self._folders: dict[str, tuple[Fingerprint | None, tuple[object, ...]]] = {}
        self._made: dict[str, tuple[object, object]] = {}

    def of(self, path: str, parse: Callable[[bytes, str], _T]) -> _T:
        """What `parse` makes of the file's bytes; of b"" where there is none, or something that is no plain file."""
        stamp = self.tree.stamp(path)
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return cast(_T, known[1])
        data = _bytes(self.tree, path) if stamp is not None else b""
        parsed = parse(data, path)
        self._known[path] = (stamp, parsed)
        return parsed

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder; the stamp of a folder changes when one comes or goes."""
        stamp = self.tree.stamp(folder)
        known = self._known.get(folder)
        if known is not None and known[0] == stamp and stamp is not None:
            return cast("tuple[str, ...]", known[1])
        names = self.tree.list(folder)
        self._known[folder] = (stamp, names)
        return names

    def folder(self, folder: str, ending: str, parse: Callable[[bytes, str], _T]) -> tuple[_T, ...]:
        """What the facts in a folder say, in the order of their names. One look tells that none came or went; that one was
        edited where it lies is not seen: for folders whose files never change, or after `forget`.
        """
        stamp = self.tree.stamp(folder)
        known = self._folders.get(folder)
        if known is None or known[0] != stamp or stamp is None:
            paths = [f"{folder}/{name}" for name in self.tree.list(folder) if name.endswith(ending)]
            known = stamp, tuple(self.of(path, parse) for path in paths if is_fact_path(path))
            self._folders[folder] = known
        return cast("tuple[_T, ...]", known[1])

    def made(self, key: str, source: _T, make: Callable[[_T], _U]) -> _U:
        """What `make` makes of something that was remembered; made anew when that is another object."""
        known = self._made.get(key)
        if known is None or known[0] is not source:
            known = source, make(source)
            self._made[key] = known
        return cast(_U, known[1])

    def forget(self, path: str) -> None:
        """Read this one again, whatever its stamp says."""
        self._known.pop(path, None)
        self._folders.pop(path.rpartition("/")[0], None)


class LoopFactsReader:
    """The facts of one run in the daemon. What RunState holds is taken from it as it is."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._memo = _Memo(state.disk)

    def facts(self) -> LoopFacts:
        """The run as it stands, for `judge_order`. Cheap where nothing changed."""
        state = self._state
        run = state.run_orders()
        return _facts(self._memo, state.slug, run, state.receipt.config, state.legs, state.tasks)

    def facts_for(self, fact: ResultFact) -> LoopFacts:
        """The same for `judge_result`: the artifacts that the result cites are hashed again."""
        for citation in fact.result.verdict.t0_citations if fact.result.verdict else ():
            self._memo.forget(citation.path)
        return self.facts()

    def report(self, fact: ResultFact) -> str:
        """The text of the evaluation report that the result names; see `read_report`."""
        return read_report(self._memo.tree, self._state.slug, fact)


def read_loop_facts(tree: DiskTree, slug: str) -> LoopFacts | None:
    """The run as its files say, with all that a look at the whole run asks for; None where there is none."""
    run = read_run_orders(tree, slug)
    results = dict(_results(tree, slug))
    if not run.has_receipt and not run.orders and not results:
        return None
    receipt = path_of("receipt", slug)
    config = parse_receipt(_bytes(tree, receipt), receipt).config if run.has_receipt else RunConfig()
    legs: dict[str, tuple[LegRow, ...]] = {}
    for row in parse_legs(_bytes(tree, path_of("legs", slug))):
        legs[row.order_id] = (*legs.get(row.order_id, ()), row)
    tasks = TaskIndex.read(tree, slug)
    memo = _Memo(tree)
    facts = _facts(memo, slug, run, config, legs, tasks)
    if not run.records:
        facts = facts._replace(records=dict(_presumed(facts, results)))
    stamps = {stem: tree.stamp(fact.path) for stem, fact in results.items()}
    boxes = {task.path: _open_boxes(tree, task.path) for task in tasks if task.status == "done"}
    return facts._replace(
        results=results,
        results_landed={stem: landed_at(stamp) for stem, stamp in stamps.items() if stamp},
        open_boxes={path: count for path, count in boxes.items() if count},
    )


def read_report(tree: DiskTree, slug: str, fact: ResultFact) -> str:
    """The text of the evaluation report that a result names, where it lies in the run's own folder; else empty."""
    path = fact.result.verdict.report_path if fact.result.verdict else None
    place = classify(path) if path else None
    is_own = place is not None and place.kind == "evaluation" and place.slug == slug
    return decode(_bytes(tree, path)) if path and is_own else ""


def _facts(
    memo: _Memo,
    slug: str,
    run: RunOrders,
    config: RunConfig,
    legs: Mapping[str, tuple[LegRow, ...]],
    tasks: TaskIndex,
) -> LoopFacts:
    ledger = path_of("round-ledger", slug)
    stamp = memo.tree.stamp(ledger)
    told = memo.of(path_of("harness-run", slug), _harness)
    return LoopFacts(
        slug=slug,
        run_id=run.run_id,
        has_receipt=run.has_receipt,
        is_open=run.is_open(),
        config=config,
        status=run.harness.status if run.harness else "",
        final_verdict=told["final_verdict"],
        deploy=told["deploy"],
        orders=run.orders,
        landed=run.landed,
        records=run.records,
        legs=legs,
        tasks=tasks,
        dispatches=memo.of(path_of("dispatch", slug), _dispatches),
        gates=memo.of(path_of("gates", slug), _gates),
        trials=_own_trials(memo, slug, run.run_id),
        artifacts=_artifacts(memo, slug),
        trips=memo.of(path_of("breakers", slug), _trips),
        decisions=memo.of(ledger, _decisions),
        decided_at=landed_at(stamp) if stamp else None,
        scopes=_scopes(memo, slug),
        phases=frozenset(_phases(memo, slug, config)),
        has_profile=memo.tree.stamp(path_of("project-profile", slug)) is not None,
        verdicts=_verdicts(memo, slug),
        discovered=memo.of(path_of("discovery-ledger", slug), _discovered),
    )


# --- one file each ---------------------------------------------------------------------------------------------------


def _harness(data: bytes, path: str) -> dict[str, str]:
    block, _ = parse_frontmatter(decode(data), path)
    values = block.values if block else {}
    return {key: str(values.get(key) or "") for key in ("final_verdict", "deploy")}


def _dispatches(data: bytes, _: str) -> tuple[DispatchRow, ...]:
    return tuple(
        DispatchRow(order_id, _text(row, "at"), _text(row, "agent_id"), _text(row, "run_id"))
        for row in parse_rows(data)
        if isinstance(order_id := row.get("order_id"), str)
    )


def _gates(data: bytes, _: str) -> tuple[dict[str, object], ...]:
    return parse_rows(data)


def _trials(data: bytes, _: str) -> tuple[Trial, ...]:
    return parse_trials(data)


def _own_trials(memo: _Memo, slug: str, run_id: str | None) -> tuple[Trial, ...]:
    """The rows of this run; all of them where it has no id."""
    trials = memo.of(path_of("trials", slug), _trials)
    if run_id is None:
        return trials
    return memo.made(run_id, trials, lambda rows: tuple(row for row in rows if row.run_id in (None, run_id)))


def _trips(data: bytes, _: str) -> tuple[Trip, ...]:
    return parse_breakers(data).trips


def _decisions(data: bytes, _: str) -> tuple[Decision, ...]:
    return tuple(row.decision for row in parse_round_ledger(data).rows if row.decision)


def _discovered(data: bytes, _: str) -> frozenset[str]:
    """The orders below whose headings a `+` line stands."""
    found: set[str] = set()
    order_id = ""
    for line in decode(data).split("\n"):
        if line.startswith(_HEADING):
            order_id = line.removeprefix(_HEADING).split(" ", 1)[0]
        elif line.startswith("#"):
            order_id = ""
        elif order_id and line.startswith(_PLUS):
            found.add(order_id)
    return frozenset(found)


def _artifact(data: bytes, path: str) -> Artifact:
    return Artifact(path, sha256_of(data), parse_t0_verdict(data, path))


def _area(data: bytes, path: str) -> ScopeArea:
    contract = parse_contract("scope-contract", decode(data), path)
    named = contract.keys.get("scope_id")
    return ScopeArea(
        named if isinstance(named, str) and named else path.rpartition("/")[2].removesuffix(".md"),
        contract.texts("allowed_file_substrate"),
        contract.texts("shared_substrate"),
        contract.texts("depends_on"),
        contract.texts("use_cases"),
    )


def _ruled(data: bytes, path: str) -> Ruled | None:
    fact = read_result(path, data).fact if data else None
    return Ruled(fact.sha256, fact.result.verdict) if fact and fact.result.verdict else None


# --- folders ---------------------------------------------------------------------------------------------------------


def _artifacts(memo: _Memo, slug: str) -> dict[str, tuple[Artifact, ...]]:
    """The T0 artifacts by scope; those that cannot be read stand under the empty name."""
    artifacts = memo.folder(folder_of("t0-verdict", slug), ".json", _artifact)
    return memo.made("artifacts", artifacts, _by_scope)


def _by_scope(artifacts: tuple[Artifact, ...]) -> dict[str, tuple[Artifact, ...]]:
    found: dict[str, list[Artifact]] = {}
    for artifact in artifacts:
        scope = scope_stem(artifact.verdict.scope_id) if artifact.verdict else ""
        found.setdefault(scope, []).append(artifact)
    return {scope: tuple(own) for scope, own in found.items()}


def _scopes(memo: _Memo, slug: str) -> tuple[ScopeArea, ...]:
    folder = folder_of("scope-contract", slug)
    names = [name for name in memo.names(folder) if name.endswith(".md") and not name.startswith(".")]
    return tuple(memo.of(f"{folder}/{name}", _area) for name in names)


def _verdicts(memo: _Memo, slug: str) -> dict[str, Ruled]:
    folder = folder_of("result", slug)
    names = memo.made("evaluations", memo.names(folder), _evaluations)
    ruled = {name.removesuffix(".json"): memo.of(f"{folder}/{name}", _ruled) for name in names}
    return {stem: one for stem, one in ruled.items() if one}


def _evaluations(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name.startswith(EVALUATE) and name.endswith(".json"))


def _phases(memo: _Memo, slug: str, config: RunConfig) -> Iterator[str]:
    """The phases whose artifacts lie there. Source: protocol §5.5."""
    orient = frozenset(memo.names(folder_of("orient", slug)))
    if orient >= _ORIENT and any(name.startswith("spike-") and name.endswith(".md") for name in orient):
        yield "orient"
    default = folder_of("use-case", slug)
    named = (config.spec_folder or "").rstrip("/")
    folder = f"{named}/usecases" if named else default
    if any(name.endswith(".md") and name != "_index.md" for name in memo.names(folder)):
        yield "analyze"
    if memo.tree.stamp(path_of("wiring-map", slug)) is not None:
        yield "wire"
    if any(name.endswith(".md") for name in memo.names(folder_of("scope-contract", slug))):
        yield "map-scopes"


def _results(tree: DiskTree, slug: str) -> Iterator[tuple[str, ResultFact]]:
    folder = folder_of("result", slug)
    for name in tree.list(folder):
        path = f"{folder}/{name}"
        place = classify(path) if is_fact_path(path) else None
        if place and place.kind == "result" and (fact := read_result(path, _bytes(tree, path)).fact):
            yield fact.stem, fact


def _presumed(facts: LoopFacts, results: Mapping[str, ResultFact]) -> Iterator[tuple[str, tuple[IngestRow, ...]]]:
    """What another reducer's tree leaves to presume where no ingest record stands: its results were applied.

    When, the leg says; else the last dispatch, else the order itself: earlier than it was, so nobody is blamed for it.
    """
    dispatched = {row.order_id: row.at for row in facts.dispatches if row.at}
    for stem, fact in results.items():
        order = facts.orders.get(stem)
        if order is None or fact.result.order_id != order.order.order_id:
            continue
        order_id = order.order.order_id
        leg = next((leg.ingested_at for leg in reversed(facts.legs.get(order_id, ())) if leg.ingested_at), None)
        at = leg or dispatched.get(order_id) or order.order.compiled_at
        overall = fact.result.verdict.overall if fact.result.verdict else None
        yield (
            order_id,
            (IngestRow(order.order.run_id, order_id, order.sha256, fact.sha256, "adopted", None, overall, at),),
        )


def _open_boxes(tree: DiskTree, path: str) -> int:
    return sum(not box.ticked for box in parse_boxes(decode(_bytes(tree, path))))


def _bytes(tree: DiskTree, path: str) -> bytes:
    try:
        return tree.read(path) or b""
    except (Unreadable, OSError):
        return b""


def _text(row: Mapping[str, object], key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) else None
