"""What a WorkOrder is made from: the request, and the facts of its run. Source: protocol §2.5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from parsers.aegis import AegisTriple
from parsers.domain import Verdict
from parsers.faults import Fault
from parsers.receipts import RunConfig
from parsers.tasks import Box, Task
from parsers.trials import Trial
from reducers.bugs import IsFile, ScopeArea


class Request(NamedTuple):
    """Which order is asked for. `operation` None: `fix` where bugs are routed, else `execute`; `worker` None: the operation's own.

    `payload`: what the caller adds; it wins over what is derived. `spec_dir` None: the feature's own.
    """

    slug: str
    operation: str | None = None
    scope: str | None = None
    task: str | None = None
    is_next: bool = False
    round: int | None = None
    attempt: int | None = None
    worker: str | None = None
    payload: Mapping[str, object] = MappingProxyType({})
    test_cmd: str | None = None
    spec_dir: str | None = None

    @property
    def is_task(self) -> bool:
        """Whether one task of the board is asked for."""
        return self.task is not None or self.is_next


class Contract(NamedTuple):
    """A scope's contract. `document` is the JSON object that orders carry. `successors`: the scopes that took its place.

    `tasks`: those it lists itself, as older contracts do. `faults`: why nothing may be built by it.
    """

    path: str
    area: ScopeArea
    document: Mapping[str, object]
    successors: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()


class Artifact(NamedTuple):
    """A T0 artifact as far as orders speak of it."""

    path: str
    scope_id: str
    address: tuple[int, int, int]
    is_green: bool
    triples: tuple[AegisTriple, ...]


def _nothing(_: str) -> bool:
    return False


class CompileFacts(NamedTuple):
    """One run. `root` is the checkout's absolute path; all other paths are relative to it.

    `spec_dir` None: no spec stands there yet. `criteria`: the boxes of a task, by its path. `contracts`: by scope as in stems.
    `trials` are those of this run. `ledgers`: the round ledger of the SHARED tier and of the LOCAL one, b"" where there is none.
    `verdict_of`: what a round was judged, None where it was not. `has_file`: whether a plain file has this path.
    """

    root: str
    slug: str
    run_id: str | None = None
    config: RunConfig = RunConfig()
    lens: str | None = None
    dimensions: tuple[str, ...] = ()
    spec_dir: str | None = None
    tasks: tuple[Task, ...] = ()
    criteria: Mapping[str, tuple[Box, ...]] = MappingProxyType({})
    contracts: Mapping[str, Contract] = MappingProxyType({})
    trials: tuple[Trial, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    ledgers: tuple[bytes, bytes] = (b"", b"")
    verdict_of: Callable[[int], Verdict | None] = lambda _: None
    has_file: IsFile = _nothing
