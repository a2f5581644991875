"""What the daemon's own code says of committed specs: the phases that the evidence derives, the reds of scope contracts. Source: rulings E3, E9, R-36, design §4.

Only a commit that changes a shard or a contract pays for it: one process for each feature. What cannot be told is judged by the file alone, as on a server.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hooks.crossing import ask_daemon_code
from parsers.hill_shards import HillShard

if TYPE_CHECKING:
    from hooks.path_change import Content, PathChange
    from hooks.policy import SpecsJudge
    from hooks.specs import ScopeRow, SpecVerdict
    from parsers.policy_file import Policy

LIMIT_S = 2.0  # targets 22


class _Derivation:
    def __init__(self, root: str) -> None:
        self._root = root
        self._phases: dict[str, Mapping[str, Sequence[str]]] = {}

    def __call__(self, slug: str, shard: HillShard) -> bool:
        if slug not in self._phases:
            self._phases[slug] = _ask(self._root, "--print-hill", slug)
        known = self._phases[slug].get(shard.scope_id)
        return known is None or shard.phase in known


class _ScopeReds:
    """The reds of scope contracts, in the tree that `where` names: ("--top", folder), or (); empty: the index that git names."""

    def __init__(self, root: str, where: Sequence[str]) -> None:
        self._root = root
        self._where = where
        self._rows: dict[str, Mapping[str, Sequence[ScopeRow]]] = {}

    def __call__(self, slug: str, path: str) -> Sequence[ScopeRow]:
        if slug not in self._rows:
            where = self._where or _index()
            self._rows[slug] = _ask(self._root, "--print-scopes", slug, *where) if where else {}
        return self._rows[slug].get(path, ())


def _index() -> tuple[str, ...]:
    """The index that git names, and the git folder that it belongs to; () where git cannot tell."""
    from hooks.git import GitFailed, ask_git

    try:
        told = ask_git("rev-parse", "--path-format=absolute", "--git-path", "index", "--absolute-git-dir")
    except GitFailed:
        return ()
    index, _, git_dir = os.fsdecode(told).removesuffix("\n").partition("\n")
    return ("--index", index, "--index-git-dir", git_dir)


def _ask(root: str, *words: str) -> Mapping[str, Any]:
    """What `check <words>` prints as one JSON object; empty where that cannot be told."""
    import json

    try:
        out, status = ask_daemon_code(root, ("check", *words), LIMIT_S)
        found = json.loads(out) if status == 0 else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def specs_judge(root: str, where: Sequence[str] = ()) -> SpecsJudge:
    """`hooks.specs.judge_specs` for the repository at `root`, which may hold the evidence; `where`: as `_ScopeReds` takes it."""
    derivation, reds = _Derivation(root), _ScopeReds(root, where)

    def judge(changes: Sequence[PathChange], content: Content, policy: Policy) -> SpecVerdict:
        from hooks.specs import judge_specs

        return judge_specs(changes, content, policy, derivation, reds)

    return judge
