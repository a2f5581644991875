"""t0/trials.jsonl: one row per measured attempt, read and written. Source: protocol §6.4, §2.7 TrialRow, §12.4.

Reading is tolerant, as of every ledger: a row without a scope id (ruling B6) is skipped, a field of another type reads as absent. The
strict model of the same row is parsers/domain.py TrialRow. Light module: standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from parsers.aegis import AegisTriple, parse_triples, triple_rows
from parsers.ledgers import MAX_COUNT, parse_rows

SCOPE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")  # ruling B6


class Score(NamedTuple):
    """How an attempt did. `db_probe` is None where the scope has no probe. Source: protocol §6.3."""

    regressions: int
    fixtures_passed: int
    fixtures_total: int
    db_probe: int | None = None

    @property
    def is_green(self) -> bool:
        """Nothing regressed, every fixture passed, there is one at all, and the probe did not fail. Source: W-49."""
        all_passed = self.fixtures_total > 0 and self.fixtures_passed == self.fixtures_total
        return all_passed and self.regressions == 0 and self.db_probe != 0


class Trial(NamedTuple):
    """One row. `status` is empty where the row names none; a status that nobody knows is kept as it stands.

    `trial`, `round`, `attempt` and `score` are None where the row does not say them. `baseline_trial` None: there was nothing
    to compare with. `tree_ref` None: the tree was neither kept nor restored.
    """

    scope_id: str
    status: str
    round: int | None = None
    attempt: int | None = None
    trial: int | None = None
    run_id: str | None = None
    score: Score | None = None
    at: str | None = None
    artifact: str | None = None
    sha256: str | None = None
    tree_ref: str | None = None
    baseline_trial: int | None = None
    delta: str | None = None
    digest: tuple[AegisTriple, ...] = ()

    @property
    def is_kept_green(self) -> bool:
        """Whether this attempt was kept and green: its scope is done for the round. Source: protocol §6.7."""
        return self.status == "kept" and self.score is not None and self.score.is_green


def score_row(score: Score) -> dict[str, object]:
    """The score as a JSON object, keys in the registry's order."""
    return dict(score._asdict())


def parse_trials(data: bytes, run_id: str | None = None) -> tuple[Trial, ...]:
    """The rows of one run in file order, a row that names no run among them; `run_id` None: the rows of every run."""
    trials = (_trial(row) for row in parse_rows(data))
    return tuple(trial for trial in trials if trial and (run_id is None or trial.run_id in (None, run_id)))


def trial_row(trial: Trial) -> dict[str, object]:
    """The row as it stands in the ledger (parsers/ledgers.py renders it), `run_id` third and only where there is one. Source: §6.4."""
    named = {} if trial.run_id is None else {"run_id": trial.run_id}
    return {
        "schema_version": 1,
        "trial": trial.trial,
        **named,
        "round": trial.round,
        "attempt": trial.attempt,
        "scope_id": trial.scope_id,
        "at": trial.at,
        "artifact": trial.artifact,
        "sha256": trial.sha256,
        "score": None if trial.score is None else score_row(trial.score),
        "status": trial.status,
        "baseline_trial": trial.baseline_trial,
        "delta": trial.delta,
        "tree_ref": trial.tree_ref,
        "digest": triple_rows(trial.digest),
    }


def _trial(row: Mapping[str, object]) -> Trial | None:
    scope_id = _text(row, "scope_id")
    if scope_id is None or not SCOPE_ID.match(scope_id):
        return None
    return Trial(
        scope_id,
        _text(row, "status") or "",
        _whole(row, "round"),
        _whole(row, "attempt"),
        _whole(row, "trial"),
        _text(row, "run_id"),
        parse_score(row.get("score")),
        _text(row, "at"),
        _text(row, "artifact"),
        _text(row, "sha256"),
        _text(row, "tree_ref"),
        _whole(row, "baseline_trial"),
        _text(row, "delta"),
        parse_triples(row.get("digest")),
    )


def parse_score(value: object) -> Score | None:
    """A score in JSON; None where it is no object or lacks one of its three counts."""
    if not isinstance(value, dict):
        return None
    regressions, passed, total = (_whole(value, key) for key in ("regressions", "fixtures_passed", "fixtures_total"))
    if regressions is None or passed is None or total is None:
        return None
    return Score(regressions, passed, total, _whole(value, "db_probe"))


def _text(row: Mapping[str, object], key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) else None


def _whole(row: Mapping[str, object], key: str) -> int | None:
    """The whole number under the key; 2.0 is one, as in JSON, true is none, and none is below 0 or past 2^53."""
    value = row.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT
    return value if is_whole and isinstance(value, int) else None
