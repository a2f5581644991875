"""What a new order tells its worker about the attempts before: `payload.trial_history`. Source: protocol §6.9, §2.8."""

from __future__ import annotations

from collections.abc import Iterable

from parsers.aegis import triple_rows
from parsers.trials import Trial, score_row

MAX_ROWS = 8
MAX_TRIPLES = 3
STATUSES = frozenset({"kept", "reverted", "rebased", "crash"})


def select_trial_history(
    trials: Iterable[Trial], scope_id: str | None = None, round_: int | None = None
) -> list[dict[str, object]]:
    """The last eight rows of the scope, of this round and the one before, in file order and reduced to what a worker needs.

    Without a scope: of every scope; without a round: of all. A row without number or score, or with a status that nobody knows,
    is left out: the order would not validate with it (§2.7 TrialRow).
    """
    rounds = None if round_ is None else (round_ - 1, round_)
    chosen = [
        row
        for trial in trials
        if (not scope_id or trial.scope_id == scope_id) and (rounds is None or trial.round in rounds)
        if (row := _row(trial)) is not None
    ]
    return chosen[-MAX_ROWS:]


def _row(trial: Trial) -> dict[str, object] | None:
    if trial.trial is None or trial.score is None or trial.status not in STATUSES:
        return None
    return {
        "schema_version": 1,
        "trial": trial.trial,
        "round": trial.round,
        "attempt": trial.attempt,
        "scope_id": trial.scope_id,
        "score": score_row(trial.score),
        "status": trial.status,
        "delta": trial.delta or "",
        "digest": triple_rows(trial.digest[:MAX_TRIPLES]),
    }
