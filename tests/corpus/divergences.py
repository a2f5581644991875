"""Reads tests/divergences.toml: the rules by which we differ from the reference, and the steps that only a row of their own explains."""

from __future__ import annotations

import tomllib
from typing import Any

from tests.corpus.replay_cases import REPOSITORY

_TABLE: dict[str, list[dict[str, Any]]] = tomllib.loads((REPOSITORY / "tests" / "divergences.toml").read_text())
BY_RULE = {row["rule"]: row for row in _TABLE.get("rule", ())}
BY_CASE = tuple(_TABLE.get("case", ()))


def named_by_case(case: str, step: int) -> frozenset[str]:
    """The rules of the rows for this very step; a row without a step speaks for the whole case."""
    return frozenset(row["rule"] for row in BY_CASE if row["case"] == case and row.get("step", step) == step)
