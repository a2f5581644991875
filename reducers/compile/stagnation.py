"""What compile says on stderr of a scope that brings no progress; the order is made all the same. Source: protocol §6.6, W-55."""

from __future__ import annotations

from parsers.addresses import scope_stem
from reducers.breakers import no_progress_k_of, stagnation
from reducers.compile.request import CompileFacts, Request


def stagnation_notice(facts: CompileFacts, request: Request) -> dict[str, object] | None:
    """{breaker, scope_id, streak, no_progress_k, action, reason} by the trials of the round that is compiled for; None where there is none.

    Without a round: by all trials of the scope, as the reference counts.
    """
    contract = facts.contracts.get(scope_stem(request.scope or ""))
    if contract is None:
        return None
    own = [
        trial
        for trial in facts.trials
        if scope_stem(trial.scope_id) == scope_stem(contract.area.scope_id)
        and (request.round is None or trial.round == request.round)
    ]
    told = request.payload.get("no_progress_k")
    k = no_progress_k_of(contract.document.get("no_progress_k"), told, facts.config.no_progress_k)
    found = stagnation(own, k)
    if not found.stagnant:
        return None
    return {
        "breaker": "stagnation",
        "scope_id": contract.area.scope_id,
        "streak": found.streak,
        "no_progress_k": found.k,
        "action": "propose the scope at GATE H and go on with the next one",
        "reason": f"{found.streak} trials in a row were not kept",
    }
