"""The seesaw registry: the scopes whose fixtures every later attempt must still pass. Source: protocol §2.7, §6.1, W-37, W-69, ruling G3."""

from __future__ import annotations

import json

from parsers.addresses import scope_stem
from reducers.hill import FINISHED, HillFacts, HillScope, derive_hill


def registered_scopes(facts: HillFacts) -> tuple[HillScope, ...]:
    """The scopes that hold: kept and green at last, or FINISHED, and without a live order. By id.

    One whose contract lost its fixtures stays: it fails its check, as an absence is never a pass.
    """
    finished = {one.scope_id for one in derive_hill(facts) if one.phase == FINISHED}
    holding = (scope for scope in facts.scopes if scope.scope_id in facts.kept_green or scope.scope_id in finished)
    return tuple(sorted(scope for scope in holding if scope_stem(scope.scope_id) not in facts.live))


def derive_registry(facts: HillFacts) -> bytes:
    """seesaw/registry.json: `{"scopes": [{"scope_id", "fixtures"}]}`, a scope on a line; `{"scopes": []}` before any holds."""
    rows = [
        json.dumps({"scope_id": scope.scope_id, "fixtures": list(_fixtures(scope))}, ensure_ascii=False)
        for scope in registered_scopes(facts)
    ]
    text = '{"scopes": [\n  ' + ",\n  ".join(rows) + "\n]}\n" if rows else '{"scopes": []}\n'
    return text.encode()


def _fixtures(scope: HillScope) -> tuple[str, ...]:
    """The scope's fixtures; none, so that its check fails, where one is no command that a JSON file could hold."""
    is_held = all(
        fixture.strip() and fixture.encode("utf-8", "replace").decode() == fixture for fixture in scope.fixtures
    )
    return scope.fixtures if is_held else ()
