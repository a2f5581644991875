"""What the breakers of one run look at, kept in step as facts land; a result costs the scopes it touches, not the run. Source: protocol §7, rulings F2, F5, F6."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from daemon.run_state import RunState
from parsers.addresses import Address, scope_stem
from parsers.contracts import parse_contract
from parsers.facts import ResultFact, read_result
from parsers.layout import folder_of, path_of
from parsers.ledgers import parse_rows
from parsers.markdown import decode
from parsers.times import parse_time
from parsers.tree import Tree, Unreadable
from parsers.trials import Trial, parse_trials
from reducers.breakers import (
    Evaluation,
    RunFacts,
    build_addresses,
    closed_builds,
    evaluations_of,
    granted_rounds,
    no_progress_k_of,
    stopped_rounds,
)

EVALUATE = "evaluate"
ScopeRound = tuple[str, int]  # as it stands in stems, and the round


class BreakerFacts:
    """Orders, legs and trials by scope and round, the verdicts by round, and what was answered at the gates."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self.trials: tuple[Trial, ...] = ()
        self.gate_rows: tuple[Mapping[str, object], ...] = ()
        self.round: int | None = None
        self._builds: dict[ScopeRound, set[Address]] = {}
        self._legs: dict[ScopeRound, set[Address]] = {}
        self._evaluations: tuple[Evaluation, ...] | None = None  # None: something was evaluated since they were counted
        self.read_all()

    def read_all(self) -> None:
        """Start anew: another run, or the first look."""
        self.round = None
        self._builds, self._legs = {}, {}
        self._evaluations = None
        self.read_trials()
        self.read_gates()

    def read_trials(self) -> None:
        """Take in t0/trials.jsonl."""
        self.trials = parse_trials(_bytes(self._state.disk, path_of("trials", self._state.slug)), self._state.run_id)
        for trial in self.trials:
            self._reach(trial.round)

    def read_gates(self) -> None:
        """Take in gates.jsonl."""
        self.gate_rows = parse_rows(_bytes(self._state.disk, path_of("gates", self._state.slug)))

    def touch(self, stems: Iterable[str]) -> frozenset[ScopeRound]:
        """Take in what became of these orders; the scopes and rounds whose count may have moved."""
        touched = set()
        for stem in stems:
            order_id = f"{self._state.slug}/{stem}"
            if stem.startswith(EVALUATE):
                self._evaluations = None
            for address in build_addresses((order_id,)):
                scope = _scope_of(address)
                touched.add(scope)
                order = self._state.orders.get(stem)
                is_ordered = order is not None and order.order.run_id in (None, self._state.run_id)
                _keep(self._builds, scope, address, is_ordered)
                legs = closed_builds(self._state.legs.get(order_id, ()), self._state.run_id)
                _keep(self._legs, scope, address, bool(legs))
                if is_ordered or legs:
                    self._reach(scope[1])
        return frozenset(touched)

    def _reach(self, round_: int | None) -> None:
        if round_ is not None:
            self.round = max(self.round or 0, round_)

    def of_run(self, scopes: Iterable[ScopeRound] | None = None) -> RunFacts:
        """The facts that the breakers judge by; `scopes`: of these alone, None: of all in the current round."""
        if scopes is None:
            named = (
                self._builds.keys() | self._legs.keys() | {(scope_stem(t.scope_id), t.round or 0) for t in self.trials}
            )
            wanted = {scope for scope in named if scope[1] == self.round}
        else:
            wanted = set(scopes)
        trials = tuple(trial for trial in self.trials if (scope_stem(trial.scope_id), trial.round) in wanted)
        return RunFacts(
            run_id=self._state.run_id,
            config=self._state.receipt.config,
            is_open=self.is_open,
            max_rounds=granted_rounds(self.gate_rows, self._state.run_id),
            evaluations=self.evaluations(),
            stopped=stopped_rounds(self.gate_rows, self._state.run_id),
            trials=trials,
            builds=_addresses(self._builds, wanted),
            legs=_addresses(self._legs, wanted),
            round=self.round,
            planned=self._planned() if scopes is None else frozenset(),
            no_progress_k=self._no_progress_k({scope_stem(trial.scope_id) for trial in trials}),
        )

    @property
    def is_open(self) -> bool:
        """Whether the breakers speak at all: of a run that is open and has a receipt. Source: rulings F2, L8."""
        return self._state.has_receipt and self._state.run_orders().is_open()

    def evaluations(self) -> tuple[Evaluation, ...]:
        """The verdicts by round; counted anew once something was evaluated since."""
        if self._evaluations is None:
            rows = sorted((row for rows in self._state.records.values() for row in rows), key=lambda row: row.at or "")
            unsaid = {row.order_id.partition("/")[2] for row in rows if row.verdict is None}  # adopted ones say none
            found = ((stem, self.result(stem)) for stem in unsaid if stem.startswith(EVALUATE))
            results = {stem: fact for stem, fact in found if fact}
            self._evaluations = evaluations_of(rows, results, self._state.run_id)
        return self._evaluations

    def result(self, stem: str) -> ResultFact | None:
        """The result of this stem as it lies there now."""
        path = path_of("result", self._state.slug, stem)
        return read_result(path, _bytes(self._state.disk, path)).fact

    def _planned(self) -> frozenset[str]:
        """The scopes that the first round builds: those that have a contract. Later rounds build what the verdict sends back."""
        if self.round != 1:
            return frozenset()
        names = self._state.disk.list(folder_of("scope-contract", self._state.slug))
        return frozenset(scope_stem(name.removesuffix(".md")) for name in names if name.endswith(".md"))

    def _no_progress_k(self, scopes: set[str]) -> dict[str, int]:
        """The k of these scopes, where their contracts say one."""
        if not scopes:
            return {}
        folder, disk = folder_of("scope-contract", self._state.slug), self._state.disk
        names = {scope_stem(name.removesuffix(".md")): name for name in disk.list(folder) if name.endswith(".md")}
        said = {
            scope: parse_contract("scope-contract", decode(_bytes(disk, f"{folder}/{names[scope]}"))).keys
            for scope in scopes & names.keys()
        }
        config = self._state.receipt.config.no_progress_k
        return {scope: no_progress_k_of(keys.get("no_progress_k"), None, config) for scope, keys in said.items()}

    def unmeasured(self) -> tuple[Address, ...]:
        """The newest closed attempt of each scope of the current round, where no trial row measures it."""
        measured = {(scope_stem(trial.scope_id), trial.round, trial.attempt) for trial in self.trials}
        newest = {
            scope: max(legs, key=lambda address: address.attempt or 0)
            for scope, legs in self._legs.items()
            if legs and scope[1] == self.round
        }
        return tuple(one for (stem, round_), one in newest.items() if (stem, round_, one.attempt) not in measured)

    def last_landed(self) -> datetime | None:
        """When the last fact of the run landed, by what is on disk; the start of the run where none has."""
        state = self._state
        said = [row.at for rows in state.records.values() for row in rows[-1:]]
        said += [trial.at for trial in self.trials[-1:]]
        said += [str(row.get("at")) for row in self.gate_rows[-1:]]
        moments = [moment for text in said if (moment := parse_time(text))]
        moments += [*state.landed.values(), *([state.receipt.start] if state.receipt.start else [])]
        return max(moments, default=None)


def _scope_of(address: Address) -> ScopeRound:
    return scope_stem(address.name or ""), address.round or 0


def _keep(where: dict[ScopeRound, set[Address]], scope: ScopeRound, address: Address, is_there: bool) -> None:
    known = where.setdefault(scope, set())
    if is_there:
        known.add(address)
    else:
        known.discard(address)


def _addresses(where: Mapping[ScopeRound, set[Address]], wanted: Iterable[ScopeRound]) -> tuple[Address, ...]:
    return tuple(address for scope in sorted(wanted) for address in sorted(where.get(scope, ()), key=str))


def _bytes(tree: Tree, path: str) -> bytes:
    try:
        return tree.read(path) or b""
    except Unreadable:
        return b""
