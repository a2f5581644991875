"""One run as its files tell it, read as values that the read plane counts over: stats, graph, ship report, export. Source: protocol §5.7-5.11, W-01, ruling K.

JSON objects keep every key, so that a table can give them back as they stand; what could not be read is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from parsers.addresses import parse_address
from parsers.contracts import Row
from parsers.frontmatter import Value
from parsers.t0_verdict import T0Verdict
from parsers.trials import Trial

Document = Mapping[str, object]
NOTHING: Mapping[str, object] = MappingProxyType({})
EVALUATE = "evaluate"


class Filed(NamedTuple):
    """A JSON object with the stem of its file. `is_applied` False: the ingest record knows these bytes and did not apply them."""

    stem: str
    document: Document
    is_applied: bool = True

    @property
    def order_id(self) -> str | None:
        """The order that it is, or answers."""
        return text_at(self.document, "order_id")


class ArtifactFile(NamedTuple):
    """A T0 artifact with the stem of its file."""

    stem: str
    verdict: T0Verdict


class ScopeRecord(NamedTuple):
    """A scope contract as the graph takes it; use cases as written. `title` None: the contract names none."""

    scope_id: str
    title: str | None
    substrate: int
    use_cases: tuple[str, ...]
    covers: tuple[str, ...]
    depends_on: tuple[str, ...]


class RunRecords(NamedTuple):
    """The files of one run, each kind in the order of its names. `run_id` None: the receipt names none.

    `results` leave out the markers of abandoned orders (W-01). `trial_rows` are the rows of the ledger as they stand, `trials`
    the same as far as they name a scope. `decisions`: what the agent hooks said in this checkout, all runs. `skipped`: files
    and lines that hold no record.
    """

    slug: str
    run_id: str | None = None
    receipt: Document = NOTHING
    harness: Mapping[str, Value] = MappingProxyType({})
    orders: tuple[Filed, ...] = ()
    results: tuple[Filed, ...] = ()
    artifacts: tuple[ArtifactFile, ...] = ()
    trial_rows: tuple[Document, ...] = ()
    trials: tuple[Trial, ...] = ()
    gates: tuple[Document, ...] = ()
    ledgers: tuple[tuple[str, tuple[Document, ...]], ...] = ()  # verdict ledgers by the stem of their order
    decisions: tuple[Document, ...] = ()
    scopes: tuple[ScopeRecord, ...] = ()
    use_cases: tuple[str, ...] = ()  # file names
    requirements: tuple[str, ...] = ()
    wiring: tuple[Row, ...] = ()
    skipped: int = 0

    def is_own(self, run_id: object) -> bool:
        """Whether something that names this run is the run's; what names none is any run's."""
        return run_id is None or self.run_id is None or run_id == self.run_id

    @property
    def config(self) -> Document:
        """What the receipt says the run was opened with."""
        return object_at(self.receipt, "config")

    @property
    def result_of(self) -> Mapping[str, Filed]:
        """The results by the order that they answer; of two the last one by name."""
        return {order_id: result for result in self.results if (order_id := result.order_id)}

    @property
    def evaluations(self) -> tuple[tuple[int, Document], ...]:
        """(round, verdict) of the applied evaluate results that hold one, by round; the plain `evaluate` counts as round 0. Source: W-75."""
        return tuple(sorted(_evaluations(self.results), key=lambda found: found[0]))


def _evaluations(results: tuple[Filed, ...]) -> Iterator[tuple[int, Document]]:
    for result in results:
        address = parse_address(f"-/{result.stem}")
        verdict = object_at(result.document, "verdict")
        if result.is_applied and address.name == EVALUATE and address.attempt is None and verdict:
            yield address.round or 0, verdict


def text_at(document: Document, key: str) -> str | None:
    """The text under a key; None where there is none."""
    value = document.get(key)
    return value if isinstance(value, str) else None


def object_at(document: Document, key: str) -> Document:
    """The object under a key; empty where there is none."""
    value = document.get(key)
    return value if isinstance(value, dict) else NOTHING


def objects_at(document: Document, key: str) -> tuple[Document, ...]:
    """The objects in the list under a key; what stands there beside them is passed over."""
    value = document.get(key)
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def count_at(document: Document, key: str) -> int:
    """How many items the list under a key has; 0 where there is none."""
    value = document.get(key)
    return len(value) if isinstance(value, list) else 0


def scope_of(order: Document) -> str | None:
    """The scope that an order builds; None for an order of a phase."""
    payload = object_at(order, "payload")
    return text_at(object_at(payload, "scope_contract"), "scope_id") or text_at(payload, "scope_id")
