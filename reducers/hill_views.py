"""All that the hill of one feature puts on disk, from its facts at once. Source: protocol §5.4, W-36, rulings G3, G4, E3.

The daemon calls `derive` when facts have landed, writes what differs, appends a row for each move, and tells it.
"""

from __future__ import annotations

from typing import NamedTuple

from parsers.hill_shards import HillShard, render_hill_shard
from parsers.layout import path_of
from reducers.hill import HillFacts, derive_hill
from reducers.hill_chart import render_hill_chart
from reducers.hill_trail import HillMove, SplitProposal, derive_moves, propose_splits
from reducers.seesaw import derive_registry


class HillViews(NamedTuple):
    """`shards`: bytes by path, all of them, whether they differ from what stands there or not. `chart`, `registry` None: leave it be.

    `moves`: what hill.jsonl does not say yet. `splits`: for GATE H.
    """

    shards: dict[str, bytes]
    chart: bytes | None
    registry: bytes | None
    moves: tuple[HillMove, ...]
    splits: tuple[SplitProposal, ...] = ()


def derive(facts: HillFacts, *, writes_shared: bool = True) -> HillViews:
    """The views. Without a local trace there is none (W-36); `writes_shared` False (setting `hill.write`): neither shards nor chart."""
    if not facts.has_trace:
        return HillViews({}, None, None, ())
    phases, splits = derive_hill(facts), propose_splits(facts)
    shards = {
        path_of("hill-shard", facts.slug, one.scope_id): render_hill_shard(HillShard(one.scope_id, one.phase))
        for one in phases
    }
    has_chart = bool(phases or facts.areas)
    return HillViews(
        shards if writes_shared else {},
        render_hill_chart(facts, phases, splits) if writes_shared and has_chart else None,
        derive_registry(facts),
        derive_moves(facts, phases),
        splits,
    )


def derived_phases(facts: HillFacts) -> dict[str, list[str]]:
    """By scope, the phases that its shard may name in a commit: what the facts derive, and our own last write. Source: E3, R-36.

    A scope that is not named has no contract here, or there is no local trace: then the shard's form is enough.
    """
    recorded = {row.scope_id: row.to_phase for row in facts.trail}
    return {
        one.scope_id: list(dict.fromkeys((one.phase, recorded.get(one.scope_id, one.phase))))
        for one in derive_hill(facts)
    }


def is_derived(facts: HillFacts, shard: HillShard) -> bool:
    """Whether a commit may carry the shard."""
    phases = derived_phases(facts).get(shard.scope_id)
    return phases is None or shard.phase in phases
