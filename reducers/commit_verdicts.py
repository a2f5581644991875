"""What an audit says of a commit, given what was found out about it. Source: design §4, rulings E6, E8, E16."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["accepted", "audited", "bypassed", "overridden"]
VERDICTS: frozenset[str] = frozenset({"accepted", "audited", "bypassed", "overridden"})


class Evidence(NamedTuple):
    """What is known about one commit."""

    is_clean: bool  # judged whole against its parents, by the policy of its time
    is_noted: bool  # a hook let it pass and said so
    is_amend: bool  # it took the place of a commit with the same parents: the hook saw only what was added to that one
    is_override: bool  # it bears the trailer of an override
    is_rewrite: bool = False  # it took the place of a commit like it and changes nothing that one did not
    original: Verdict | None = None  # what was said of that one; None: nothing, since no order governed it


def derive_verdict(evidence: Evidence) -> Verdict | None:
    """The verdict; None where nothing is to be said: a copy of work that no order governed."""
    if evidence.is_noted and evidence.is_override:
        return "overridden"
    if evidence.is_noted and (evidence.is_clean or not evidence.is_amend):
        return "accepted"
    if evidence.is_clean:
        return "audited"
    if evidence.is_rewrite:
        return evidence.original
    return "bypassed"
