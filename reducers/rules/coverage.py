"""Where each invariant of protocol §9 is held: here, elsewhere, or by work to come, and why. Source: protocol §9."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Place = Literal["order", "result", "run", "elsewhere", "waits"]


class Home(NamedTuple):
    """Where a rule acts. `places`: at an order's admission, at a result's ingest, over the whole run, in another module, or not
    yet. `told`: which modules, and what of the rule waits for which facts.
    """

    places: tuple[Place, ...]
    told: str


COVERAGE: Mapping[str, Home] = {
    "R-01": Home(("elsewhere",), "reducers/ingest.py: E-NO-ORDER (pending with a receipt, a warning without)"),
    "R-02": Home(("elsewhere",), "reducers/identity.py: E-ORDER-MISMATCH, E-ID, E-SLUG, E-STEM, E-UNATTESTED"),
    "R-03": Home(
        ("elsewhere",), "parsers/facts.py: E-SCHEMA and the faults of strict_json, before anything is written"
    ),
    "R-04": Home(("order", "run"), "rules/evaluation.py"),
    "R-05": Home(
        ("order", "run", "elsewhere"), "rules/evaluation.py; a second verdict: reducers/identity.py E-EVALUATED"
    ),
    "R-06": Home(("order", "run"), "rules/evaluation.py"),
    "R-07": Home(("order", "run"), "rules/rounds.py"),
    "R-08": Home(
        ("result", "run", "waits"), "rules/verdicts.py, by files_touched; the worktree itself: the daemon's patrol (P6)"
    ),
    "R-09": Home(("result", "run"), "rules/verdicts.py"),
    "R-10": Home(("order", "result", "run"), "rules/rounds.py"),
    "R-11": Home(("order", "run"), "rules/rounds.py"),
    "R-12": Home(
        ("order", "run", "elsewhere"), "rules/rounds.py; after a FAIL the outer breaker: reducers/breakers.py"
    ),
    "R-13": Home(("elsewhere",), "reducers/breakers.py and after_trip.py: E-BREAKER"),
    "R-14": Home(("elsewhere",), "reducers/breakers.py and after_trip.py: E-BREAKER"),
    "R-15": Home(
        ("result", "run", "elsewhere"),
        "rules/workers.py: shared agents; foreign fields: parsers/envelopes.py E-FIELD-RIGHTS",
    ),
    "R-16": Home(
        ("elsewhere",),
        "reducers/records.py: a verdict sets eval_verdict and ticks alone; E-FIELD-RIGHTS refuses the rest",
    ),
    "R-17": Home(("result", "run"), "rules/verdicts.py"),
    "R-18": Home(("result", "run"), "rules/evidence.py"),
    "R-19": Home(("elsewhere",), "hooks/owners.py and whitelist.py at a commit; daemon/stray on disk"),
    "R-20": Home(
        ("elsewhere", "waits"), "hooks/specs.py for the round ledger; *.jsonl: wait for remembered prefixes (P2)"
    ),
    "R-21": Home(
        ("elsewhere", "waits"),
        "reducers/identity.py E-TAMPERED, daemon/admission.py; T0 artifacts: R-22 compares hashes, the event waits for P3",
    ),
    "R-22": Home(("run",), "rules/evidence.py"),
    "R-23": Home(
        ("run", "waits"), "rules/evidence.py: tree_ref null; that the files equal the kept tree waits for kept trees"
    ),
    "R-24": Home(("run", "elsewhere"), "rules/evidence.py; reducers/gate_h.py counts such a scope as not green"),
    "R-25": Home(
        ("run", "elsewhere"),
        "rules/shipping.py; BOARD-UNDISPATCHED: reducers/board.py; the moment of the edit waits for P1",
    ),
    "R-26": Home(("order", "run"), "rules/rounds.py"),
    "R-27": Home(("order", "run"), "rules/phases.py"),
    "R-28": Home(("order", "run", "waits"), "rules/gate_order.py: L1b; the other half waits for the spec lint"),
    "R-29": Home(("order", "run"), "rules/gate_order.py"),
    "R-30": Home(
        ("run", "waits"),
        "rules/decisions.py: gates; escalations wait for the advisor, several rows in one write for P2",
    ),
    "R-31": Home(("order",), "rules/decisions.py: a look back cannot tell what stood in the ledger then"),
    "R-32": Home(("run",), "rules/decisions.py"),
    "R-33": Home(("order", "run"), "rules/rounds.py; discovered_rounds is the orchestrator's to count"),
    "R-34": Home(("result", "run"), "rules/workers.py"),
    "R-35": Home(("run",), "rules/workers.py"),
    "R-36": Home(
        ("elsewhere", "waits"), "hooks/specs.py: form and hill_phase; bytes against the derivation wait for the hill"
    ),
    "R-37": Home(("elsewhere",), "hooks/specs.py, parsers/tier_direction.py"),
    "R-38": Home(("elsewhere",), "hooks/specs.py, hooks/spec_rules/frozen_ids.py"),
    "R-39": Home(("result", "run"), "rules/workers.py"),
    "R-40": Home(("run",), "rules/phases.py"),
    "R-41": Home(
        ("run", "waits"), "rules/shipping.py: final_verdict; the list of dimensions waits for the ship report"
    ),
    "R-42": Home(("run",), "rules/shipping.py"),
    "R-43": Home(("run", "elsewhere"), "rules/shipping.py; `board` shows unmet criteria: reducers/board.py"),
    "R-44": Home(("waits",), "the harvest writes the row it speaks of"),
    "R-45": Home(("waits",), "the ship report, and what was remembered of it at L4 (P3)"),
    "R-46": Home(
        ("elsewhere", "waits"), "hooks/whitelist.py: no glob opens a guard (E4); a change on disk waits for P1"
    ),
    "R-47": Home(("waits",), "not detectable in files; the output shows phases first once the hill is derived"),
}
