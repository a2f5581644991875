"""What this machine knows of commits and orders: recorded verdicts, the policy, order files live and past. Source: rulings E5, E2, A2.

Agents can write all of it, so it is checked as it is read. Light module: standard library only.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Mapping

from hooks.range.commits import Commit
from hooks.range.committed import CommittedContracts
from hooks.range.judge import Recorded, Unresolved
from parsers.addresses import MAX_ORDER_ID, ORDER_ID, slug_of, stem_of
from parsers.layout import path_of
from parsers.policy_file import Contract, Policy, parse_policy

MAX_BYTES = 1 << 20  # of a document; the record of commits is no document


class LocalContracts:
    """Contracts as this machine knows them: live orders as admitted, past ones by their files, else by what is committed."""

    def __init__(self, root: str, policy: Policy | None, committed: CommittedContracts) -> None:
        self._root = root
        self._live = {contract.order_id: contract for contract in policy.contracts} if policy else {}
        self._committed = committed
        self._past: dict[str, Contract | None] = {}

    def contract_for(self, commit: Commit, order_id: str, operation: str) -> Contract | Unresolved:
        """The contract of the order that the commit names; `operation` empty where it names none."""
        known = self._live.get(order_id) or self._on_disk(order_id)
        if known is None:
            return self._committed.contract_for(commit, order_id, operation)
        if operation and known.operation and operation != known.operation:
            what = f'Shapeup-Operation is {operation[:200]!a}, but the order "{order_id}" is for {known.operation!a}'
            return Unresolved(what, "a trailer tells what the order says", "correct the trailer, or drop it")
        return known

    def _on_disk(self, order_id: str) -> Contract | None:
        if order_id not in self._past:
            self._past[order_id] = read_order_file(self._root, order_id)
        return self._past[order_id]


def read_order_file(root: str, order_id: str) -> Contract | None:
    """The contract of an order by its file; None where there is none, it is no order, or it was rejected."""
    if not ORDER_ID.match(order_id) or len(order_id) > MAX_ORDER_ID:
        return None
    slug, stem = slug_of(order_id), stem_of(order_id) or ""
    if os.path.lexists(os.path.join(root, path_of("rejection", slug, f"order-{stem}"))):
        return None
    data = read_document(os.path.join(root, path_of("order", slug, stem)))
    try:
        value = json.loads(data) if data is not None else None
        if not isinstance(value, dict) or value["order_id"] != order_id:
            return None
        substrate = value.get("substrate") or {}
        operation = value.get("operation") or ""
        allowed, shared, append_only, frozen = (
            _texts(substrate.get(field)) for field in ("allowed", "shared", "append_only", "frozen")
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return Contract(order_id, operation, allowed, shared, append_only, frozen) if isinstance(operation, str) else None


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError
    return tuple(value)


def read_policy(root: str) -> Policy | None:
    """The compiled policy as it lies there, fresh or not; None where none is."""
    data = read_document(os.path.join(root, path_of("policy")), limit_bytes=64 * MAX_BYTES)
    return parse_policy(data) if data is not None else None


def live_at(root: str, policy: Policy, moment_s: int) -> Policy:
    """The policy without the orders that were compiled after that moment; one whose time cannot be read counts as there."""
    there = tuple(order for order in policy.contracts if _compiled_s(root, order.order_id) <= moment_s)
    return policy._replace(contracts=there)


def _compiled_s(root: str, order_id: str) -> float:
    from parsers.times import parse_time

    data = read_document(os.path.join(root, path_of("order", slug_of(order_id), stem_of(order_id) or "")))
    try:
        compiled = parse_time(json.loads(data or b"")["compiled_at"])
    except (ValueError, TypeError, KeyError, RecursionError):
        compiled = None
    return compiled.timestamp() // 1 if compiled else 0.0


def read_record(root: str, wanted: Collection[str]) -> Mapping[str, Recorded]:
    """The last recorded verdict of each wanted commit that has one."""
    data = read_document(os.path.join(root, path_of("commits")), limit_bytes=1024 * MAX_BYTES)
    found: dict[str, Recorded] = {}
    for line in (data or b"").split(b"\n"):
        if _commit_in(line) in wanted and (row := _row(line)):
            found[row[0]] = row[1]
    return found


def _commit_in(line: bytes) -> str:
    """The commit a row is about, without reading all of the row."""
    at = line.find(b'"commit"')
    start = line.find(b'"', at + 8) + 1 if at >= 0 else 0
    return line[start : line.find(b'"', start)].decode("ascii", "replace") if start else ""


def _row(line: bytes) -> tuple[str, Recorded] | None:
    try:
        row = json.loads(line)
        commit, verdict, rules = row["commit"], row["verdict"], row.get("rules") or []
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # a torn row
    if not isinstance(commit, str) or not isinstance(verdict, str) or not isinstance(rules, list):
        return None
    return commit, Recorded(verdict, tuple(rule for rule in rules if isinstance(rule, str)))


def read_document(path: str, *, limit_bytes: int = MAX_BYTES) -> bytes | None:
    """The bytes of a regular file no larger than the limit; None for anything else. No link is followed, no pipe waited for."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode) or seen.st_size > limit_bytes:
            return None
        parts = []
        while chunk := os.read(fd, 1 << 20):
            parts.append(chunk)
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(fd)
