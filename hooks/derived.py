"""Whether a hill shard in a commit is what the evidence on this machine derives; asked of the daemon's own code. Source: rulings E3, R-36, design §4.

Only a commit that changes a shard pays for it: one process for each feature. What cannot be told is judged by its form, as on a server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hooks.crossing import ask_daemon_code
from parsers.hill_shards import HillShard

if TYPE_CHECKING:
    from hooks.path_change import Content, PathChange
    from hooks.policy import SpecsJudge
    from hooks.specs import SpecVerdict
    from parsers.policy_file import Policy

LIMIT_S = 2.0  # targets 22


class _Derivation:
    def __init__(self, root: str) -> None:
        self._root = root
        self._phases: dict[str, Mapping[str, Sequence[str]]] = {}

    def __call__(self, slug: str, shard: HillShard) -> bool:
        if slug not in self._phases:
            self._phases[slug] = _ask(self._root, slug)
        known = self._phases[slug].get(shard.scope_id)
        return known is None or shard.phase in known


def _ask(root: str, slug: str) -> Mapping[str, Sequence[str]]:
    """By scope, the phases that its shard may name; empty where that cannot be told."""
    import json

    try:
        out, status = ask_daemon_code(root, ("check", "--print-hill", slug), LIMIT_S)
        found = json.loads(out) if status == 0 else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def specs_judge(root: str) -> SpecsJudge:
    """`hooks.specs.judge_specs` for the repository at `root`, which may hold the evidence."""
    derivation = _Derivation(root)

    def judge(changes: Sequence[PathChange], content: Content, policy: Policy) -> SpecVerdict:
        from hooks.specs import judge_specs

        return judge_specs(changes, content, policy, derivation)

    return judge
