"""The policy that governs a change: the compiled one while it is fresh, else computed from the files, now or as of a time. Source: design §4, ruling E1."""

from __future__ import annotations

import os
from collections.abc import Callable

from daemon.place import Place
from parsers.policy_file import Policy


def policy_by_time(place: Place) -> Callable[[int], Policy]:
    """The policy as it stood at a moment, in seconds since 1970; the files are read once."""
    from datetime import UTC, datetime

    from daemon.disk import DiskTree
    from daemon.policy_on_disk import gate_settings
    from daemon.run_orders import read_run_orders
    from daemon.runs_on_disk import slugs_on_disk
    from reducers.policy import derive_policy

    tree = DiskTree(place.root)
    runs = {slug: read_run_orders(tree, slug) for slug in slugs_on_disk(tree)}
    settings = gate_settings(place)

    def policy_at(moment_s: int) -> Policy:
        return derive_policy(runs, settings, datetime.fromtimestamp(moment_s, UTC))

    return policy_at


def present_policy(place: Place, order_id: str | None) -> Policy:
    """The policy in force now; a past order that is named is in it too. While no order was ever written it permits everything
    that is not wrong in itself. Raises Exit where there is none that can be believed."""
    from daemon.exits import USAGE, Exit
    from hooks.freshness import NoPolicy, policy_for
    from hooks.objects import Objects
    from hooks.range.terms import CommittedTerms

    try:
        policy = policy_for(os.fspath(place.root), order_id)
    except NoPolicy as reason:
        raise Exit(USAGE, f"this cannot be judged: {reason}; run `shapeupd run --once` and try again") from None
    if policy is not None:
        return policy
    with Objects() as objects:
        return Policy("", tier_direction=CommittedTerms(objects).terms_for("", "").tier_direction)
