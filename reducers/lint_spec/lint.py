"""The spec lint of one feature, and its report as the node kernel prints it. Source: protocol §5.2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from parsers.layout import path_of
from reducers.lint_spec.board import lint_board
from reducers.lint_spec.contracts import lint_contract
from reducers.lint_spec.documents import lint_invariants, lint_links, lint_structure, lint_tier
from reducers.lint_spec.facts import SpecFacts
from reducers.lint_spec.findings import Finding
from reducers.lint_spec.scope_graph import lint_anchors, lint_covers, lint_dependencies, lint_partition
from reducers.lint_spec.substrates import Substrates, lint_overlaps


class SpecReport(NamedTuple):
    """What the lint found; `scopes` and `tasks` are how many it looked at."""

    slug: str
    scopes: int
    tasks: int
    findings: tuple[Finding, ...]

    @property
    def red(self) -> int:
        """How many findings make the lint fail."""
        return sum(found.level == "red" for found in self.findings)

    @property
    def warn(self) -> int:
        """How many are only told."""
        return len(self.findings) - self.red


def lint_spec(facts: SpecFacts) -> SpecReport:
    """Every rule over one feature, in the order of §5.2."""
    return SpecReport(facts.slug, len(facts.scopes), len(facts.tasks), tuple(_findings(facts)))


def _findings(facts: SpecFacts) -> Iterator[Finding]:
    substrates = Substrates(facts.files)
    for scope in facts.scopes:
        yield from lint_contract(scope, substrates)
    yield from lint_overlaps(facts.live_scopes, substrates)
    yield from lint_partition(facts)
    yield from lint_anchors(facts)
    yield from lint_dependencies(facts.scopes)
    yield from lint_covers(facts)
    yield from lint_tier(facts.documents)
    yield from lint_structure(facts)
    yield from lint_invariants(facts, path_of("intake", facts.slug))
    yield from lint_links(facts)
    yield from lint_board(facts)


def spec_document(report: SpecReport) -> dict[str, object]:
    """`verify spec` as the node kernel answers it: {slug, scopes, tasks, red, warn, findings: [{rule, level, scope?, detail}]}."""
    rows = []
    for found in report.findings:
        row: dict[str, object] = {"rule": found.rule, "level": found.level}
        if found.scope is not None:
            row["scope"] = found.scope
        rows.append(row | {"detail": f"{found.where}: {found.what}"})
    return {
        "slug": report.slug,
        "scopes": report.scopes,
        "tasks": report.tasks,
        "red": report.red,
        "warn": report.warn,
        "findings": rows,
    }
