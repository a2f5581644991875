"""`.shapeup/policy.json`: which orders may write what, as the hooks read it. Source: design §4, rulings E1, E2, J.

The daemon compiles it from admitted orders; it grants nothing that the orders do not. Light module: standard library only.
"""

from __future__ import annotations

import json
from typing import NamedTuple

SCHEMA = 1


class Contract(NamedTuple):
    """What one order lets its worker write. Globs as the order spells them, sections (`file.md#Heading`) included.

    `answered`: it has its result, so it still permits (until superseded) and no longer freezes. `superseded`: a newer
    attempt of its scope exists, so it still freezes and no longer permits. Sources: E2, W-15.
    """

    order_id: str
    operation: str  # empty: the order names none
    allowed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    append_only: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    answered: bool = False
    superseded: bool = False

    @property
    def is_constraining(self) -> bool:
        """Whether while it is live nobody may write elsewhere: an order without any glob constrains nothing (§3.3)."""
        return not self.answered and bool(self.allowed or self.shared or self.append_only or self.frozen)

    @property
    def permits(self) -> bool:
        """Whether its allowed, shared and append_only globs count."""
        return not self.superseded

    @property
    def freezes(self) -> bool:
        """Whether its frozen globs count."""
        return not self.answered


class Policy(NamedTuple):
    """All contracts of all open runs, and the settings that judge a change. `orders_digest` names the orders behind it."""

    orders_digest: str
    contracts: tuple[Contract, ...] = ()
    human_globs: tuple[str, ...] = ()
    no_live_order: str = "allow"  # or "deny": in an open run, a commit needs a live order
    has_open_run: bool = False
    tier_direction: str = "deny"  # or "warn"

    @property
    def is_constraining(self) -> bool:
        """Whether any live order narrows what may be written."""
        return any(contract.is_constraining for contract in self.contracts)


def render_policy(policy: Policy) -> str:
    """The file: one key a line at the top, one contract a line."""
    head = {
        "schema": SCHEMA,
        "orders_digest": policy.orders_digest,
        "human_globs": policy.human_globs,
        "no_live_order": policy.no_live_order,
        "has_open_run": policy.has_open_run,
        "tier_direction": policy.tier_direction,
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    rows = ",\n  ".join(json.dumps(contract._asdict()) for contract in policy.contracts)
    return "{\n" + "\n".join(lines) + '\n "contracts": [' + (f"\n  {rows}\n " if rows else "") + "]\n}\n"


def parse_policy(data: bytes) -> Policy | None:
    """The policy; None for anything that is not exactly one: a policy half understood would permit too much or too little."""
    try:
        value = json.loads(data)
        contracts = tuple(_contract(row) for row in value["contracts"])
        head = {key: value[key] for key in ("orders_digest", "no_live_order", "has_open_run", "tier_direction")}
        policy = Policy(contracts=contracts, human_globs=_texts(value["human_globs"]), **head)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    texts = (policy.orders_digest, policy.no_live_order, policy.tier_direction)
    is_whole = all(isinstance(text, str) for text in texts) and isinstance(policy.has_open_run, bool)
    return policy if is_whole and value["schema"] == SCHEMA else None


def _contract(row: dict[str, object]) -> Contract:
    contract = Contract(**row)  # type: ignore[arg-type]  # the types are checked below
    names = (contract.order_id, contract.operation)
    flags = (contract.answered, contract.superseded)
    if not all(isinstance(name, str) for name in names) or not all(isinstance(flag, bool) for flag in flags):
        raise TypeError
    return contract._replace(
        allowed=_texts(contract.allowed),
        shared=_texts(contract.shared),
        append_only=_texts(contract.append_only),
        frozen=_texts(contract.frozen),
    )


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise TypeError
    return tuple(value)
