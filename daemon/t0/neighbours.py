"""Which paths another live order may write, and what the attempt's own order lets be written. Source: protocol §6.5 W-53, rulings B2, G2, G5."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from daemon.disk import DiskTree
from daemon.run_orders import read_run_orders
from daemon.runs_on_disk import slugs_on_disk
from parsers.addresses import parse_address, scope_stem, slug_of
from parsers.globs import matches
from parsers.policy_file import Contract
from parsers.scope_contract import ScopeContract
from reducers.live_contracts import RunOrders, contract_of, live_contracts


class Neighbours(NamedTuple):
    """The orders of all features that are live, as contracts."""

    live: tuple[Contract, ...]

    def may_write(self, slug: str, scope_id: str, path: str) -> bool:
        """Whether the live order of another scope may write the path."""
        return any(not _is_of(one, slug, scope_id) and _opens(one, path) for one in self.live)


def read_neighbours(root: Path) -> Neighbours:
    """The live orders as they stand on disk."""
    tree = DiskTree(root)
    found = (one for slug in slugs_on_disk(tree) for one in live_contracts(read_run_orders(tree, slug)))
    return Neighbours(tuple(one for one in found if not one.answered and not one.superseded))


def build_order_id(slug: str, scope_id: str, round_: int, attempt: int) -> str:
    """The order that an attempt was built under."""
    return f"{slug}/{scope_stem(scope_id)}-r{round_}-a{attempt}"


def grants(orders: RunOrders, order_id: str, contract: ScopeContract, path: str) -> bool:
    """Whether the order lets its worker write the path; what the contract says, where the order is not there."""
    fact = next((fact for fact in orders.orders.values() if fact.order.order_id == order_id), None)
    if fact is None or fact.order.substrate is None:
        return any(matches(glob, path) for glob in (*contract.allowed, *contract.shared))
    return _opens(contract_of(fact), path)


def _is_of(one: Contract, slug: str, scope_id: str) -> bool:
    return slug_of(one.order_id) == slug and parse_address(one.order_id).name == scope_stem(scope_id)


def _opens(one: Contract, path: str) -> bool:
    """A frozen path is nobody's; a section of a file counts as the file."""
    if any(matches(glob.partition("#")[0], path) for glob in one.frozen if "#" not in glob):
        return False
    globs = (*one.allowed, *one.shared, *one.append_only)
    return any(matches(glob.partition("#")[0], path) for glob in globs)
