"""The policy a hook judges by: the compiled one while nothing it was made from is newer, else one computed now. Source: design §4, ruling E1.

Light module: standard library only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from hooks.crossing import ask_daemon_code
from parsers.layout import LOCAL_ROOT, path_of
from parsers.policy_file import Contract, Policy, parse_policy

LIMIT_S = 1.6  # a hook that cannot judge says so within two seconds
_MAX_BYTES = 64 << 20
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NoPolicy(Exception):
    """The policy can be neither read nor computed; the text says what stands in the way."""


class Inputs(NamedTuple):
    """What a policy is made from: whether any order file lies there, and when the newest of all was changed."""

    has_orders: bool
    newest_ns: int


def policy_for(root: str, order_id: str | None = None) -> Policy | None:
    """The policy in force; None where no order was ever written and none is required, so that nothing is judged (E1).

    `order_id`: the contract of this order is wanted too, be it long answered. Raises NoPolicy.
    """
    inputs = read_inputs(root)
    policy = _fresh(root, inputs.newest_ns)
    if not inputs.has_orders:
        is_required = policy is not None and policy.no_live_order == "deny" and policy.has_open_run
        return policy if is_required else None
    if policy is not None and (order_id is None or contract_in(policy, order_id)):
        return policy
    return compute_policy(root, order_id)


def contract_in(policy: Policy, order_id: str) -> Contract | None:
    """The order's contract; None where the policy holds none."""
    return next((contract for contract in policy.contracts if contract.order_id == order_id), None)


def read_inputs(root: str) -> Inputs:
    """Looks at every input; reads none. Raises NoPolicy where a folder cannot be looked into."""
    has_orders, newest_ns = False, 0
    try:
        for path, is_order in _inputs(os.path.join(root, LOCAL_ROOT)):
            has_orders = has_orders or is_order
            newest_ns = max(newest_ns, os.lstat(path).st_mtime_ns)
    except FileNotFoundError:
        return Inputs(has_orders, sys.maxsize)  # something went while we looked: let the policy be computed
    except OSError as error:
        raise NoPolicy(f"{error.filename} cannot be read: {error.strerror}") from None
    return Inputs(has_orders, newest_ns)


def _inputs(local: str) -> Iterator[tuple[str, bool]]:
    try:
        runs = [entry.path for entry in os.scandir(local) if entry.name[:1] != "." and entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return  # no order can lie there
    for run in runs:
        names = os.listdir(run)
        if "orders" in names:
            orders = f"{run}/orders"
            yield orders, False
            if os.path.isdir(orders):
                for name in os.listdir(orders):
                    if name[:1] != "." and name.endswith(".json"):
                        yield f"{orders}/{name}", True
        for name in ("receipt.json", "harness-run.md"):
            if name in names:
                yield f"{run}/{name}", False


def _fresh(root: str, newest_ns: int) -> Policy | None:
    path = os.path.join(root, path_of("policy"))
    try:
        fd = os.open(path, _LOOK)
    except OSError:
        return None
    try:
        seen = os.fstat(fd)
        if seen.st_mtime_ns < newest_ns or seen.st_size > _MAX_BYTES or seen.st_mode & 0o170000 != 0o100000:
            return None
        parts = []
        while chunk := os.read(fd, 1 << 20):
            parts.append(chunk)
        return parse_policy(b"".join(parts))
    finally:
        os.close(fd)


def compute_policy(root: str, order_id: str | None = None) -> Policy:
    """The policy as the daemon's own code finds it on disk, by `check --print-policy`. Raises NoPolicy after LIMIT_S."""
    words = ["check", "--print-policy", *(["--order", order_id] if order_id is not None else [])]
    try:
        out, status = ask_daemon_code(root, words, LIMIT_S)
    except OSError as error:
        raise NoPolicy(f"{sys.executable} cannot be run: {error.strerror}") from None
    policy = parse_policy(out) if status == 0 else None
    if policy is None:
        took = f"within {LIMIT_S:g} s" if status is None else f"(it ended with {status})"
        raise NoPolicy(f"the compiled policy is missing or older than the orders, and computing one failed {took}")
    return policy
