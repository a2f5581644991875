"""The seesaw registry, `seesaw/registry.json`: the finished scopes and the fixtures they must go on passing. Source: protocol §2.7, §6.1, W-37.

A registry that does not read as a whole is no registry: a scope that was left out would be a check that never ran.
"""

from __future__ import annotations

from typing import NamedTuple

from parsers.faults import Fault
from parsers.strict_json import parse_strict
from parsers.trials import SCOPE_ID

_FIX = 'make it {"scopes": [{"scope_id": "…", "fixtures": ["…"]}]}, or remove the file: it is derived again'


class FinishedScope(NamedTuple):
    """A scope of the registry. Without a fixture it fails its check: an absence is never a pass."""

    scope_id: str
    fixtures: tuple[str, ...]


class Registry(NamedTuple):
    """The registry, or the fault for which there is none. No scope at all is a registry too."""

    scopes: tuple[FinishedScope, ...]
    fault: Fault | None = None


def parse_seesaw(data: bytes, path: str) -> Registry:
    """The registry in the file at `path`, in its own order."""
    parsed = parse_strict(data, path)
    if parsed.fault:
        return Registry((), parsed.fault)
    rows = parsed.value.get("scopes") if isinstance(parsed.value, dict) else None
    if not isinstance(rows, list):
        return _refused(path, "it holds no list `scopes`")
    scopes = []
    for number, row in enumerate(rows):
        scope = _scope(row)
        if scope is None:
            return _refused(f"{path}:$.scopes[{number}]", "it is no scope with a list of fixtures")
        scopes.append(scope)
    return Registry(tuple(scopes))


def _scope(row: object) -> FinishedScope | None:
    if not isinstance(row, dict):
        return None
    scope_id, fixtures = row.get("scope_id"), row.get("fixtures", [])
    is_named = isinstance(scope_id, str) and SCOPE_ID.match(scope_id)
    if not is_named or not isinstance(fixtures, list) or not all(isinstance(one, str) and one for one in fixtures):
        return None
    return FinishedScope(str(scope_id), tuple(fixtures))


def _refused(where: str, what: str) -> Registry:
    why = "what it does not say would not be checked, and an absence is never a pass"
    return Registry((), Fault("E-SCHEMA", where, what, why, _FIX))
