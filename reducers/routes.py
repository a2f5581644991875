"""The table of contents: when this kind of fact lands, these reducers run. Source: design §2.

Adding a behaviour is a parser (if the format is new), a reducer, one row in parsers/layout.py and one row here.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Judges(Enum):
    """Which results of the run are judged when the fact lands."""

    NONE = "none"
    OWN = "the result of the same stem"
    STANDING = "every result that stands rejected or pending"


class Route(NamedTuple):
    """What a landed fact sets in motion, beside being read anew itself."""

    judges: Judges
    derives_board: bool
    why: str


ROUTES: dict[str, Route] = {
    "result": Route(Judges.OWN, False, "reduced into tasks, ledgers and the board (reducers.ingest)"),
    "order": Route(Judges.OWN, False, "admitted or refused; its result may have waited for it (R-01)"),
    "task": Route(Judges.STANDING, True, "the board follows the files; a result may have waited for its task"),
    "board-index": Route(Judges.NONE, True, "a view: rows follow the task files (W-20)"),
    "dispatch": Route(Judges.STANDING, False, "attestation: a result may have waited for its receipt (R-02)"),
    "receipt": Route(Judges.STANDING, False, "the run the results belong to"),
    "harness-run": Route(Judges.NONE, False, "whether the run is open, so its orders constrain what is committed (B1)"),
    "trials": Route(Judges.NONE, False, "attempts and progress: the inner breaker (reducers.breakers)"),
    "t0-verdict": Route(Judges.STANDING, False, "a verdict may have waited for the evidence it cites (R-18)"),
    "gates": Route(Judges.NONE, False, "L3 ends the loop or bounds it: the outer breaker; open gates wait at GATE H"),
    "scope-contract": Route(Judges.NONE, False, "a scope comes onto the hill, or says another k (reducers.hill, §6.6)"),
    "use-case": Route(Judges.NONE, False, "the specs are linted when they change (reducers.lint_spec, lint_trace)"),
    "spec": Route(Judges.NONE, False, "as use-case"),
    "requirements": Route(Judges.NONE, False, "as use-case"),
    "wiring-map": Route(Judges.NONE, False, "as use-case"),
    "project-profile": Route(Judges.NONE, False, "as use-case"),
    "scope-board": Route(Judges.NONE, False, "as use-case: a committed text names nothing of the local tier"),
    "shaping": Route(Judges.NONE, False, "as scope-board"),
    "glossary": Route(Judges.NONE, False, "as scope-board"),
    "round-ledger": Route(Judges.NONE, False, "as scope-board"),
    "report": Route(Judges.NONE, False, "as scope-board"),
    "intake": Route(Judges.NONE, False, "as use-case: what it rules out must be an invariant"),
    "orient": Route(Judges.NONE, False, "the areas of the hill before there are scopes (reducers.hill)"),
    "discovery-ledger": Route(Judges.NONE, False, "unknowns keep a scope uphill (reducers.hill)"),
    "hill-shard": Route(Judges.NONE, False, "a view of the facts, like the next three (reducers.hill_views)"),
    "hill-chart": Route(Judges.NONE, False, "as hill-shard"),
    "seesaw": Route(Judges.NONE, False, "as hill-shard: what every later attempt must still pass"),
    "hill-trail": Route(Judges.NONE, False, "our own, as breakers"),
    "breakers": Route(Judges.NONE, False, "our own; what somebody else wrote there is held against the journal"),
    "gate-h": Route(Judges.NONE, False, "our own, as breakers"),
    "gate-h-view": Route(Judges.NONE, False, "a view: made again where it was removed or edited"),
    "clock": Route(Judges.NONE, False, "our own; a changed one counts for nothing while we live"),
    "legs": Route(Judges.NONE, False, "another reducer's legs mean adoption (D3)"),
    "ingest-record": Route(Judges.NONE, False, "what was applied, for adoption and duplicates"),
}
