"""The gate's policy computed from the files, for a hook or a command while no fresh one lies there. Source: rulings E1, A3, D5."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime

from daemon.configuration import user_settings_text
from daemon.disk import DiskTree
from daemon.place import Place
from daemon.run_orders import read_run_orders
from daemon.runs_on_disk import slugs_on_disk
from hooks.git import GitFailed, ask_git, scrubbed_env
from parsers.addresses import slug_of, stem_of
from parsers.facts import read_order
from parsers.layout import classify, path_of
from parsers.policy_file import Contract, Policy, parse_policy
from parsers.settings import Settings, parse_settings
from parsers.tree import Tree, Unreadable
from reducers.live_contracts import RunOrders, contract_of
from reducers.policy import derive_policy, keep_broken


def policy_of(place: Place, *, order_id: str | None = None, at: datetime | None = None) -> Policy:
    """The policy as the files say, now or `at` that time.

    `order_id`: a past order's contract is in it too, as an answered one, so that a trailer may name it.
    """
    tree = DiskTree(place.root)
    runs = {slug: read_run_orders(tree, slug) for slug in slugs_on_disk(tree)}
    policy = derive_policy(runs, gate_settings(place), at)
    if at is None:
        policy = with_broken(policy, tree, written_policy(tree))
    if order_id is None or any(contract.order_id == order_id for contract in policy.contracts):
        return policy
    past = _past_contract(runs, order_id)
    return policy if past is None else policy._replace(contracts=(*policy.contracts, past))


def with_broken(policy: Policy, tree: Tree, before: Policy | None) -> Policy:
    """The policy and the live orders of the one `before` that can be read no more."""
    return keep_broken(policy, before, lambda contract: _is_broken(tree, contract))


def _is_broken(tree: Tree, contract: Contract) -> bool:
    path = path_of("order", slug_of(contract.order_id), stem_of(contract.order_id) or "")
    place = classify(path)
    if place is None or place.kind != "order":
        return False
    try:
        data = tree.read(path)
    except Unreadable:
        return True
    return data is not None and read_order(path, data).fact is None


def written_policy(tree: Tree) -> Policy | None:
    """The policy that was written last."""
    try:
        return parse_policy(tree.read(path_of("policy")) or b"")
    except Unreadable:
        return None


def _past_contract(runs: Mapping[str, RunOrders], order_id: str) -> Contract | None:
    run = runs.get(slug_of(order_id))
    fact = run.orders.get(stem_of(order_id) or "") if run else None
    return contract_of(fact, answered=True) if fact and fact.order.order_id == order_id else None


def gate_settings(place: Place) -> Settings:
    """The settings that judge a commit: the team's as committed at HEAD, so that no edit in the working tree loosens them (A3)."""
    return settings_under(place, _committed(place))


def settings_under(place: Place, committed: bytes | None) -> Settings:
    """The settings in force under this team's file; None: there is none. What is wrong in a file is left out, so the stricter
    value stays."""
    try:
        local = DiskTree(place.root).read(path_of("local-settings"))
    except (Unreadable, OSError):
        local = None
    team, machine = (None if data is None else data.decode("utf-8", "replace") for data in (committed, local))
    return parse_settings(team, machine, user_settings_text(), os.fspath(place.root))[0]


def _committed(place: Place) -> bytes | None:
    if place.git_dir is None:
        return None
    try:
        return ask_git("-C", os.fspath(place.root), "show", f"HEAD:{path_of('settings')}", env=scrubbed_env())
    except (GitFailed, FileNotFoundError):
        return None  # no commit yet, or no such file in it
