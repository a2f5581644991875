"""The policies of one repository as they stood at past moments, worked out once for each stretch of time. Source: rulings B2, E2, E6."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from datetime import datetime

from daemon.disk import DiskTree
from daemon.place import Place
from daemon.policy_on_disk import policy_of, settings_under
from daemon.run_orders import read_run_orders
from daemon.runs_on_disk import slugs_on_disk
from parsers.policy_file import Policy
from parsers.times import parse_time
from reducers.live_contracts import RunOrders, live_contracts
from reducers.policy import derive_policy


class PastPolicies:
    """What the facts tell about each moment. `runs` is everything that is known of the orders, by slug."""

    def __init__(self, place: Place, runs: Mapping[str, RunOrders]) -> None:
        self._place = place
        self._runs = dict(runs)
        self._moments = sorted(set(_moments(runs)))
        self._policies: dict[tuple[int, bytes | None], Policy] = {}

    def at(self, at: datetime, order_id: str | None, settings: bytes | None) -> Policy:
        """The policy as it stood then. `order_id`: the contract of that order is in it too, if there ever was such an order.

        `settings`: the team's settings file as it was then; None where there was none.
        """
        stretch = (bisect_right(self._moments, at), settings)
        if stretch not in self._policies:
            self._policies[stretch] = derive_policy(self._runs, settings_under(self._place, settings), at)
        policy = self._policies[stretch]
        if order_id is None or any(contract.order_id == order_id for contract in policy.contracts):
            return policy
        past = policy_of(self._place, order_id=order_id, at=at)
        return policy._replace(contracts=past.contracts)

    def live_since(self) -> datetime | None:
        """Since when an order is live: the oldest one's compile, or its landing where that came later; None where none is."""
        since = []
        for run in self._runs.values():
            live = {contract.order_id for contract in live_contracts(run) if contract.is_constraining}
            for stem, fact in run.orders.items():
                compiled = parse_time(fact.order.compiled_at)
                moments = [moment for moment in (compiled, run.landed.get(stem)) if moment]
                if fact.order.order_id in live and compiled:
                    since.append(max(moments))
        return min(since, default=None)

    def allow_paths(self) -> tuple[str, ...]:
        """Globs that the user lets pass everywhere."""
        return settings_under(self._place, None).gate_allow_paths


def policies_on_disk(place: Place) -> PastPolicies:
    """The policies as the files say, for a command that runs while no daemon does."""
    tree = DiskTree(place.root)
    return PastPolicies(place, {slug: read_run_orders(tree, slug) for slug in slugs_on_disk(tree)})


def _moments(runs: Mapping[str, RunOrders]) -> Iterator[datetime]:
    """When a policy may have changed."""
    for run in runs.values():
        if run.harness is not None and run.harness.closed_at is not None:
            yield run.harness.closed_at
        yield from run.landed.values()
        texts = [fact.order.compiled_at for fact in run.orders.values()]
        texts += [row.at for rows in run.records.values() for row in rows]
        yield from (at for text in texts if (at := parse_time(text)))
