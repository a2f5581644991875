"""Covers closure: every requirement is named by a criterion, every criterion names a requirement. Source: protocol §5.3, W-32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from parsers.layout import path_of
from reducers.lint_trace.facts import TraceFacts
from reducers.lint_trace.findings import TraceFinding

NO_REGISTRY = "there is no requirements.md, so there is nothing to cover"


class Closure(NamedTuple):
    """`cut`: how many requirements were cut. `covered`, `uncovered`: of the others; `dangling`: ids that no registry has.

    `skipped_reason` not None: there is no registry, and nothing was compared.
    """

    total: int = 0
    cut: int = 0
    covered: int = 0
    uncovered: tuple[str, ...] = ()
    dangling: tuple[str, ...] = ()
    findings: tuple[TraceFinding, ...] = ()
    skipped_reason: str | None = None

    @property
    def passes(self) -> bool:
        """Whether nothing is left over on either side."""
        return not self.uncovered and not self.dangling

    @property
    def row(self) -> dict[str, object]:
        """`covers_closure` of the report."""
        return {
            "checked": self.skipped_reason is None,
            "requirements_total": self.total,
            "covered_status": self.total - self.cut,
            "cut_status": self.cut,
            "covered_by_ac": self.covered,
            "uncovered": list(self.uncovered),
            "dangling_covers": list(self.dangling),
            "pass": self.passes,
            "skipped_reason": self.skipped_reason,
        }


def close_covers(facts: TraceFacts) -> Closure:
    """What the criteria of the board cover. Without a registry nothing is compared: specs older than it have none."""
    if facts.requirements is None:
        return Closure(skipped_reason=NO_REGISTRY)
    named = {cover.id for cover in facts.covers}
    asked = [one for one in facts.requirements if not one.is_cut]
    known = {one.id for one in facts.requirements}
    return Closure(
        total=len(facts.requirements),
        cut=len(facts.requirements) - len(asked),
        covered=sum(one.id in named for one in asked),
        uncovered=tuple(one.id for one in asked if one.id not in named),
        dangling=tuple(dict.fromkeys(cover.id for cover in facts.covers if cover.id not in known)),
        findings=(*_uncovered(facts, named), *_dangling(facts, known)),
    )


def _uncovered(facts: TraceFacts, named: set[str]) -> Iterator[TraceFinding]:
    path = path_of("requirements", facts.slug)
    for one in facts.requirements or ():
        if not one.is_cut and one.id not in named:
            what = f'{one.id} (status: {one.status}) is covered by no criterion of the board: "{one.clause}"'
            fix = f"write `(covers: {one.id})` behind the criterion that shows it, or let the product owner cut it"
            yield TraceFinding("REQ-UNCOVERED", "red", f"{path}:{one.line}", what, fix, req=one.id)


def _dangling(facts: TraceFacts, known: set[str]) -> Iterator[TraceFinding]:
    told: set[str] = set()
    for cover in facts.covers:
        if cover.id not in known and cover.id not in told:
            told.add(cover.id)
            what = f"a criterion covers {cover.id}, which is not in requirements.md"
            fix = f"register {cover.id}, or correct the covers clause"
            yield TraceFinding("COVERS-DANGLING", "red", cover.where, what, fix, req=cover.id)
