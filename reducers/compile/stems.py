"""The order's stem and its worker, by operation. Source: protocol §2.4, W-02, D-3, ruling B6."""

from __future__ import annotations

from collections.abc import Mapping

from parsers.addresses import scope_stem

WORKERS: Mapping[str, str] = {
    "execute": "task-executor",
    "fix": "task-executor",
    "spike": "task-executor",
    "analyze": "ba-pitch-analyzer",
    "reconcile": "ba-pitch-analyzer",
    "retrofit-surface": "ba-pitch-analyzer",
    "coverage": "ba-pitch-analyzer",
    "map-scopes": "scope-architect",
    "wire": "solution-architect",
    "evaluate": "spec-evaluator",
    "orient": "orient",
    "hunt": "qa-edge-hunter",
    "translate": "translator",
    "hammer": "scope-hammer",
    "coach": "coach",
    "adjudicate": "advisor-protocol",
}


def order_stem(
    operation: str,
    scope_id: str | None = None,
    round_: int | None = None,
    attempt: int | None = None,
    task_id: str | None = None,
) -> str:
    """The stem, first rule that holds. `task_id`: the order builds one task; it names the order where no attempt does (W-02)."""
    scope = scope_stem(scope_id) if scope_id else ""
    turn = "" if round_ is None else f"-r{round_}"
    if round_ is not None and attempt is not None:
        return f"{scope}{turn}-a{attempt}" if scope else f"{turn[1:]}-a{attempt}"
    named = scope_stem(task_id) if task_id else scope
    return f"{operation}-{named}{turn}" if named else f"{operation}{turn}"
