"""The gate's policy out of the facts of all runs. Source: rulings E1, E2, J `policy.json`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime

from parsers.policy_file import Contract, Policy
from parsers.settings import Settings
from reducers.live_contracts import RunOrders, live_contracts


def derive_policy(runs: Mapping[str, RunOrders], settings: Settings, at: datetime | None = None) -> Policy:
    """The policy over all runs under these settings, now or `at` that time."""
    return Policy(
        orders_digest=orders_digest(runs),
        contracts=tuple(contract for slug in sorted(runs) for contract in live_contracts(runs[slug], at)),
        human_globs=settings.gate_human_globs,
        no_live_order=settings.gate_no_live_order,
        has_open_run=any(run.has_receipt and run.is_open(at) for run in runs.values()),
        tier_direction=settings.gate_tier_direction,
    )


def orders_digest(runs: Mapping[str, RunOrders]) -> str:
    """One name for all orders: the hash over each order's path and hash, sorted."""
    lines = sorted(f"{fact.path} {fact.sha256}\n" for run in runs.values() for fact in run.orders.values())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def keep_broken(policy: Policy, before: Policy | None, is_broken: Callable[[Contract], bool]) -> Policy:
    """The policy and, out of the one `before`, the live orders whose files are there and can be read no more.

    Such an order permits nothing and goes on constraining, or breaking one's own order would open the gate.
    """
    known = {contract.order_id for contract in policy.contracts}
    lost = [row for row in (before.contracts if before else ()) if row.order_id not in known and not row.answered]
    kept = [contract._replace(superseded=True) for contract in lost if is_broken(contract)]
    return policy._replace(contracts=tuple(sorted((*policy.contracts, *kept)))) if kept else policy
