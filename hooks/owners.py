"""Who alone may write each committed kind of artifact: R-19 as one table. Source: protocol §1.4, §3.1, R-19, rulings E3, I5.

Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Owner(NamedTuple):
    """The operations whose orders may write a kind (none: no order at all) and who else does, in words (empty: nobody)."""

    operations: tuple[str, ...]
    others: str = ""


_SPEC = Owner(("analyze", "reconcile", "retrofit-surface", "amend"))

# Kinds as parsers/layout.py names them. What stands in no row here has no sole writer among the operations.
OWNERS: Mapping[str, Owner] = {
    "scope-contract": Owner(("map-scopes",)),
    "scope-board": Owner(("map-scopes",)),
    "wiring-map": Owner(("wire",)),
    "spec": _SPEC,
    "use-case": _SPEC,
    "requirements": Owner(("coverage", "amend"), "the product owner (CUT)"),  # analyze opens spec/ only (§3.1)
    "knowledge-base": Owner(("coach",)),
    "report": Owner(("hammer",), "`shapeupd ship`"),
    "shaping": Owner(("translate",), "people"),
    "glossary": Owner(("translate",), "people"),
    "hill-shard": Owner((), "shapeupd, which derives it"),
    "hill-chart": Owner((), "shapeupd and the orchestrator"),
    "round-ledger": Owner((), "the orchestrator and people, who add rows"),
    "project-profile": Owner((), "the orchestrator and people"),
    "settings": Owner((), "people"),
}


def may_write(kind: str | None, operation: str) -> bool:
    """Whether an order of this operation may write this kind; anything may write a kind that has no sole writer.

    `kind` None: a path that the layout does not know. `operation` empty: the order names none, so it owns nothing.
    """
    owner = OWNERS.get(kind or "")
    return owner is None or operation in owner.operations


def owner_words(kind: str | None) -> str:
    """Who may write the kind, for a refusal: "an order of map-scopes"; "whoever an order lets" where there is no sole writer."""
    owner = OWNERS.get(kind or "")
    if owner is None:
        return "whoever an order lets"
    orders = f"an order of {' or '.join(owner.operations)}" if owner.operations else ""
    return " or ".join(part for part in (orders, owner.others) if part)
