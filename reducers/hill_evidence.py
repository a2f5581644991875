"""Which T0 artifacts count for the hill, and which scopes hold: artifacts joined with their trial rows. Source: rulings G3, G4, W-35, W-48.

An artifact that its row no longer describes, or that is gone, counts as red: ignoring it would let an older green stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from parsers.layout import stem_at
from parsers.t0_verdict import T0Verdict, parse_artifact_name
from parsers.trials import Trial
from reducers.hill import Measured

SURVIVING = ("kept", "rebased")
DROPPED = ("reverted", "crash")
GONE = "is gone"
CHANGED = "is not what its trial row recorded"


class Artifact(NamedTuple):
    """An artifact file by its content; `verdict` None: it cannot be read."""

    verdict: T0Verdict | None
    sha256: str


def measure(artifacts: Mapping[str, Artifact], trials: Iterable[Trial], run_id: str | None) -> tuple[Measured, ...]:
    """The artifacts that count, in the order of their names. `artifacts` by stem; `trials` in file order, of this run.

    An artifact without a row counts as it stands; one of another run does not count.
    """
    rows = {stem_at(trial.artifact): trial for trial in trials if trial.artifact}
    found = (_measured(stem, artifacts.get(stem), rows.get(stem), run_id) for stem in sorted({*artifacts, *rows}))
    return tuple(one for one in found if one)


def kept_green(trials: Iterable[Trial]) -> frozenset[str]:
    """The scopes whose newest surviving trial is kept and green. Source: ruling G3."""
    newest = {trial.scope_id: trial for trial in trials if trial.status in SURVIVING}
    return frozenset(scope_id for scope_id, trial in newest.items() if trial.is_kept_green)


def _measured(stem: str, artifact: Artifact | None, row: Trial | None, run_id: str | None) -> Measured | None:
    if row is not None:
        if row.status in DROPPED:
            return None
        flaw = _flaw(artifact, row)
        if flaw:
            round_, attempt, trial = _place(stem, row)
            return Measured(row.scope_id, round_, attempt, trial, stem, False, False, row.at, flaw)
    verdict = artifact.verdict if artifact else None
    if verdict is None or (run_id is not None and verdict.run_id not in (None, run_id)):
        return None
    return Measured(
        verdict.scope_id,
        *verdict.address,
        stem,
        verdict.is_green,
        verdict.is_green and verdict.has_seesaw_passed,
        verdict.at,
    )


def _flaw(artifact: Artifact | None, row: Trial) -> str:
    if artifact is None:
        return GONE
    is_same = row.sha256 in (None, artifact.sha256)
    return "" if is_same and artifact.verdict and artifact.verdict.scope_id == row.scope_id else CHANGED


def _place(stem: str, row: Trial) -> tuple[int, int, int]:
    """Round, attempt and trial of an artifact whose own words do not count: what its row says, else its name."""
    named = parse_artifact_name(stem) or (0, 0, None)
    round_ = named[0] if row.round is None else row.round
    attempt = named[1] if row.attempt is None else row.attempt
    return round_, attempt, named[2] or 0
