"""Hundreds of cases by chance: what we do is what the protocol's fixes give, by a second implementation of them. Source: protocol §4.8.

No record is needed, so this proves the rules on a bare clone. `SHAPEUP_GENERATED_CASES` sets how many.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.corpus.explain import Explainer, Outcome, expect
from tests.corpus.generated import make_case
from tests.corpus.in_process import InProcess
from tests.corpus.logical_state import counts
from tests.corpus.oracle import World
from tests.corpus.replay_cases import files_below, write_files

CASES = int(os.environ.get("SHAPEUP_GENERATED_CASES", "300"))


def complaints_of(seed: int, root: Path) -> list[str]:
    case = make_case(seed)
    write_files(root, case.before)
    explainer = Explainer(case, case.steps, World())
    recorded = expect(case, case.steps, frozenset(), World()).states
    daemon = InProcess(root, "off")
    complaints: list[str] = []
    for at, step in enumerate(case.steps):
        outcome: Outcome = daemon.drop(step.path, case.results[step.path])
        tree = {path: data for path, data in files_below(root).items() if counts(path)}
        complaints += explainer.judge_outcome(at, outcome).complaints
        complaints += explainer.judge_state(at, tree, recorded[at]).complaints
    daemon.close()
    return complaints


def test_what_we_do_is_what_the_fixes_give(quick_root: Path) -> None:
    for seed in range(CASES):
        complaints = complaints_of(seed, quick_root / str(seed))
        assert not complaints, "\n".join(complaints)
