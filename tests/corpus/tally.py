"""What each replayed step came to, for the summary at the end: by way of replaying, then (case, step), the rules it differs by."""

from __future__ import annotations

TALLY: dict[str, dict[tuple[str, int], frozenset[str]]] = {}
SAME: dict[str, set[tuple[str, int]]] = {}  # by way: the steps that a real daemon took as the in-process one did


def count(way: str, case: str, step: int, rules: frozenset[str]) -> None:
    TALLY.setdefault(way, {})[case, step] = rules


def count_same(way: str, case: str, step: int) -> None:
    SAME.setdefault(way, set()).add((case, step))
