"""REPORT.md from a run's facts. Source: protocol §5.8, W-33, rulings G8, K.

The file is committed: whatever a worker wrote goes through `committed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parsers.round_ledger import COLUMNS, render_cells, render_decision
from parsers.trials import Score
from reducers.ratchet_stats import RatchetReport
from reducers.ship.facts import Amendment, ScopeTrials, ShipFacts
from reducers.ship.leftovers import MAX_SHOWN
from reducers.ship.sections import committed, find_section

_FOOTER = "*The board, orders, results, T0 artifacts and the reports they are taken from stay in the run's local folder, which git\nignores. This report is what is kept of them.*"
_PROVENANCE = (
    "Written from the run's files: trial ledger, T0 artifacts, verdicts, board. Frozen once GATE L4 says `ship`."
)


def render_report(facts: ShipFacts) -> str:
    """The report, LF at the end."""
    blocks = [_frontmatter(facts), f"# {facts.slug} — ship report", _PROVENANCE, *_outcome(facts), *_sections(facts)]
    return "\n\n".join([*blocks, "---", _FOOTER]) + "\n"


def _frontmatter(facts: ShipFacts) -> str:
    rounds = "~" if facts.rounds_used is None else facts.rounds_used
    values = [
        ("type", "ship-report"),
        ("feature", facts.slug),
        ("date", facts.date),
        ("verdict", _line(facts.verdict)),
        ("rounds_used", rounds),
        ("qa", facts.qa),
        ("intake_sha256", _line(facts.intake_sha256 or "~")),
    ]
    return "\n".join(["---", *(f"{key}: {value}" for key, value in values), "---"])


def _line(text: str) -> str:
    return " ".join(committed(text).split())


def _outcome(facts: ShipFacts) -> Iterator[str]:
    yield "## Outcome"
    board = f"{facts.done}/{facts.tasks} tasks done" + (f", {facts.cut} cut" if facts.cut else "")
    rows = [
        ("Verdict", f"**{_line(facts.verdict)}**"),
        ("Not evaluated", ", ".join(map(_line, facts.not_evaluated)) or "none: every dimension was"),
        ("Rounds used", "unknown" if facts.rounds_used is None else str(facts.rounds_used)),
        ("Board", board),
        ("T0 artifacts", str(facts.artifacts)),
        ("QA", facts.qa),
    ]
    yield _table(("", ""), rows)
    if facts.unfinished:
        count = sum(tasks for _, tasks in facts.unfinished)
        where = ", ".join(f"{_line(name)} ({tasks})" for name, tasks in facts.unfinished)
        yield (
            f"> **{count} task(s) did not finish:** {where}.\n> The verdict grades what was built, not what was planned."
        )
    yield from (f"> **{_line(warning)}**" for warning in facts.warnings)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of cells that are made fit to stand in one."""
    head = f"| {' | '.join(header)} |" if any(header) else "|" + " |" * len(header)
    return "\n".join([head, "|" + "---|" * len(header), *map(render_cells, rows)])


def _sections(facts: ShipFacts) -> Iterator[str]:
    if facts.leftovers:
        shown = "\n".join(f"- {_line(found.text)}" for found in facts.leftovers[:MAX_SHOWN])
        more = len(facts.leftovers) - MAX_SHOWN
        yield from ("## Leftovers (advisory)", shown + (f"\n- and {more} more file(s)" if more > 0 else ""))
    if facts.scopes:
        yield from ("## Verification (T0)", "Per scope the trial that survived: it describes the code on the branch.")
        header = ("scope", "fixtures", "regressions", "trials", "last status", "delta")
        yield _table(header, map(_scope_row, facts.scopes))
    if facts.ratchet:
        yield from ("## Ratchet", *_ratchet(facts.ratchet))
    yield from _titled("## Evaluation", find_section(facts.evaluation, "criteria", "spec-conformance", level=2))
    yield from _titled("### Refuted criteria and bugs", find_section(facts.evaluation, "bugs", level=3))
    yield from _titled("## QA findings", find_section(facts.hunt, "findings", level=2))
    if facts.decisions:
        yield "## Decisions adjudicated during the run"
        yield "\n".join([render_cells(COLUMNS), "|" + "---|" * len(COLUMNS), *map(render_decision, facts.decisions)])
    if facts.amendments:
        yield from ("## Amendments granted", "\n".join(map(_amendment, facts.amendments)))
    if facts.discoveries:
        yield "## Discovered, not built"
        yield from (f"**{_line(order_id)}**\n\n{_quoted(text)}" for order_id, text in facts.discoveries)


def _titled(title: str, section: str) -> Iterator[str]:
    if section:
        yield title
        yield section


def _quoted(text: str) -> str:
    """The lines of a block as they stand; one that would begin a heading or a fence is indented (ruling L7)."""
    lines = committed(text).split("\n")
    return "\n".join(f"    {line}" if line.lstrip(" ").startswith(("#", "```", "~~~")) else line for line in lines)


def _amendment(found: Amendment) -> str:
    state = "" if found.is_applied else " (its order is not answered)"
    return f"- {_line(found.title)}: {_line(found.what)}{state}"


def _scope_row(scope: ScopeTrials) -> tuple[str, ...]:
    trial = scope.surviving
    if trial is None:
        return scope.scope_id, "—", "—", str(scope.trials), "no surviving trial", "—"
    score = trial.score or Score(0, 0, 0)
    fixtures = f"{score.fixtures_passed}/{score.fixtures_total}" if trial.score else "—"
    regressions = str(score.regressions) if trial.score else "—"
    return scope.scope_id, fixtures, regressions, str(scope.trials), trial.status, trial.delta or "—"


def _ratchet(report: RatchetReport) -> Iterator[str]:
    green = "—" if report.mean_trials_to_green is None else report.mean_trials_to_green
    statuses = ", ".join(f"{status or '(none)'} {count}" for status, count in report.status_histogram.items())
    several = f"{report.scopes_multi_trial} with more than one attempt"
    rows = [
        ("Trials", f"{report.trials} across {report.scopes} scope(s), {several}"),
        ("Improvement rate", f"{report.improvement_rate} — kept, of the trials after the first"),
        ("Monotone rate", f"{report.monotone_rate} — scopes without a setback, of those tried again"),
        ("Sawtooth count", f"{report.sawtooth_count} — reverted directly after kept"),
        ("Mean trials to green", str(green)),
        ("Statuses", statuses),
    ]
    yield _table(("", ""), rows)
    if not report.scopes_multi_trial:
        yield "> No scope was tried twice: the rates say nothing, neither good nor bad."
