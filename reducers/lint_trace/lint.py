"""The trace lint of one feature: its report, the files it writes, and its text as the node kernel prints it. Source: protocol §5.3."""

from __future__ import annotations

import json
from typing import NamedTuple

from parsers.layout import path_of
from reducers.lint_trace.closure import Closure, close_covers
from reducers.lint_trace.diagram import draw_wiring
from reducers.lint_trace.facts import TraceFacts
from reducers.lint_trace.findings import TraceFinding
from reducers.lint_trace.reachability import Reach, reach


class TraceReport(NamedTuple):
    """What the lint found. `diagram`: the wiring as mermaid; None where no map was read. A red counts only where `is_gate`."""

    slug: str
    is_gate: bool
    closure: Closure
    reach: Reach
    diagram: str | None

    @property
    def findings(self) -> tuple[TraceFinding, ...]:
        """All findings, those of the closure first."""
        return (*self.closure.findings, *self.reach.findings)

    @property
    def is_red(self) -> bool:
        """Whether any finding is red."""
        return any(found.severity == "red" for found in self.findings)

    @property
    def fails(self) -> bool:
        """Whether the lint ends with 1."""
        return self.is_gate and self.is_red


def lint_trace(facts: TraceFacts, *, is_gate: bool) -> TraceReport:
    """Closure and reachability of one feature."""
    found = reach(facts)
    wiring = facts.wiring
    diagram = draw_wiring(wiring, found) if wiring is not None and not wiring.unread else None
    return TraceReport(facts.slug, is_gate, close_covers(facts), found, diagram)


def trace_document(report: TraceReport, at: str) -> dict[str, object]:
    """`trace/report.json`, made at `at`."""
    return {
        "schema_version": 1,
        "slug": report.slug,
        "at": at,
        "mode": "gate" if report.is_gate else "advisory",
        "advisory": not report.is_gate,
        "covers_closure": report.closure.row,
        "reachability": report.reach.row,
        "findings": [_row(found) for found in report.findings],
        "overall": "red" if report.is_red else "green",
    }


def _row(found: TraceFinding) -> dict[str, object]:
    named = {key: value for key, value in (("req", found.req), ("uc", found.uc)) if value is not None}
    return {"severity": found.severity, "code": found.code, **named, "message": found.what}


def trace_files(report: TraceReport, at: str) -> dict[str, str]:
    """The files that the lint writes, by path: the report, and the diagram where a map was read."""
    text = json.dumps(trace_document(report, at), indent=2, ensure_ascii=False) + "\n"
    files = {path_of("trace", report.slug, "report.json"): text}
    if report.diagram is not None:
        files[path_of("trace", report.slug, "wiring.mmd")] = report.diagram
    return files


def render_trace(report: TraceReport) -> str:
    """The report as `verify trace` prints it."""
    mode = "gate" if report.is_gate else "advisory"
    lines = [
        f"trace-lint {report.slug} — {_overall(report)} [{mode}]",
        f"  covers-closure: {closure_line(report.closure)}",
        f"  reachability: {reach_line(report.reach)}",
    ]
    marks = {"red": "✗", "warn": "⚠"}
    lines += [f"  {marks[found.severity]} [{found.code}] {found.what}" for found in report.findings]
    return "\n".join([*lines, f"  → {path_of('trace', report.slug, 'report.json')}", ""])


def _overall(report: TraceReport) -> str:
    if not report.is_red:
        return "🟢 green"
    return "🔴 red" if report.is_gate else "🟠 red (advisory)"


def closure_line(closure: Closure) -> str:
    """The closure in one line."""
    if closure.skipped_reason is not None:
        return f"skipped — {closure.skipped_reason}"
    asked = closure.total - closure.cut
    return f"{closure.covered}/{asked} covered · {closure.cut} cut · uncovered [{', '.join(closure.uncovered)}]"


def reach_line(found: Reach) -> str:
    """The reachability in one line."""
    if found.skipped_reason is not None:
        return f"skipped — {found.skipped_reason}"
    alive = found.engines - len(found.orphans)
    names = ", ".join(orphan.use_case for orphan in found.orphans)
    return f"{alive}/{found.engines} engines reach {found.entry_point} · unreachable [{names}]"
