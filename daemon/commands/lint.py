"""`shapeupd lint SLUG`: what is wrong with a feature's specs, its trace and its run, rule by rule. Source: cli §2, protocol §5.2, §5.3, §9.

With or without a daemon the answer is the same. The trace lint leaves its report in the LOCAL tree where this machine has one; nothing else is written.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from daemon import clock
from daemon.configuration import load_settings
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, WANTING, Exit
from daemon.lint_facts import project_files
from daemon.place import Place, find_place
from daemon.terminal import complain, escape, print_json
from daemon.writes import replace_file
from parsers.addresses import SLUG
from parsers.faults import Fault, render_fault
from parsers.layout import LOCAL_ROOT, NOT_A_SLUG, SHARED_ROOT, path_of
from parsers.settings import RuleLevel
from parsers.tree import Unreadable
from reducers.lint_spec import findings as spec_findings
from reducers.lint_spec.facts import read_spec_facts
from reducers.lint_spec.lint import SpecReport, lint_spec
from reducers.lint_trace import findings as trace_findings
from reducers.lint_trace.facts import read_trace_facts
from reducers.lint_trace.lint import TraceReport, closure_line, lint_trace, reach_line, trace_document, trace_files
from reducers.rules.findings import Finding, action_of, fault_of, finding_row

HELP = """Lints a feature: its committed specs and its board; the trace from requirements to criteria and from the entry
point to the engines; and, where this machine holds its run, the run's records against the round-loop invariants.
Without --spec, --trace or --run it does all of them. A red of the trace lint counts only with --gate; a rule of the round
loop denies under `rules.profile = "enforce"` or where it guards integrity, and is not told where it is set to `off`.
Ends with 0, with 1 where something is red or denied, with 3 where there is no such feature."""
EXAMPLE = "shapeupd lint checkout --gate"

Judged = Sequence[tuple[Finding, RuleLevel]]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", metavar="SLUG", help="the feature")
    parser.add_argument("--spec", action="store_true", help="lint scope contracts, spec documents and board")
    parser.add_argument("--trace", action="store_true", help="lint requirements, criteria and wiring")
    parser.add_argument("--run", dest="of_run", action="store_true", help="lint the records of its run")
    parser.add_argument("--gate", action="store_true", help="a red of the trace lint counts")
    parser.add_argument("--quiet", action="store_true", help="print nothing: the exit status is the answer")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


class Outcome(NamedTuple):
    """What each lint found; None: it was not asked for."""

    spec: SpecReport | None = None
    trace: TraceReport | None = None
    run: Judged | None = None

    @property
    def is_wanting(self) -> bool:
        """Whether anything is red or denied."""
        is_red = self.spec is not None and self.spec.red > 0
        fails = self.trace is not None and self.trace.fails
        return is_red or fails or any(action == "deny" for _, action in self.run or ())


def run(args: argparse.Namespace) -> int:
    place = find_place(Path(args.repo[0]) if args.repo else None)
    outcome = _lint(place, args)
    if args.json:
        print_json(_document(args.slug, outcome))
    elif not args.quiet:
        _show(args.slug, outcome)
    return WANTING if outcome.is_wanting else DONE


def _lint(place: Place, args: argparse.Namespace) -> Outcome:
    tree, slug = DiskTree(place.root), args.slug
    is_slug = bool(SLUG.match(slug)) and slug not in NOT_A_SLUG
    takes_all = not (args.spec or args.trace or args.of_run)
    if args.of_run and not (args.spec or args.trace):
        return Outcome(run=_lint_run(place, tree, slug, is_slug))
    if not is_slug or not (tree.list(f"{SHARED_ROOT}/{slug}") or tree.list(f"{LOCAL_ROOT}/{slug}")):
        shown = slug if is_slug else "<slug>"
        raise Exit(
            NOTHING_THERE, f"no feature: there is no {SHARED_ROOT}/{shown} and no {LOCAL_ROOT}/{shown}, so no run"
        )
    files = project_files(place.root)
    spec = lint_spec(read_spec_facts(tree, slug, files)) if args.spec or takes_all else None
    trace = lint_trace(read_trace_facts(tree, slug, files), is_gate=args.gate) if args.trace or takes_all else None
    if trace is not None:
        _leave_report(place, tree, trace)
    judges_run = args.of_run or (takes_all and _has_run(tree, slug))
    return Outcome(spec, trace, _lint_run(place, tree, slug, is_slug) if judges_run else None)


def _has_run(tree: DiskTree, slug: str) -> bool:
    if not tree.list(f"{LOCAL_ROOT}/{slug}"):
        return False
    from daemon.hill_facts import has_trace  # with what reads envelopes: half of what a command costs

    return has_trace(tree, slug)


def _leave_report(place: Place, tree: DiskTree, trace: TraceReport) -> None:
    """Write the report beside the run; a fresh clone has no run, and gets no folder for it."""
    if not tree.list(f"{LOCAL_ROOT}/{trace.slug}"):
        return
    for path, text in trace_files(trace, clock.iso(clock.now())).items():
        try:
            replace_file(place.root, path, text.encode("utf-8", "surrogateescape"))
        except (Unreadable, OSError) as error:
            complain(f"{path} is not written: {error}")


def _lint_run(place: Place, tree: DiskTree, slug: str, is_slug: bool) -> Judged:
    from daemon.loop_facts import read_loop_facts, read_report
    from reducers.rules.run import judge_run_loop

    settings, _ = load_settings(place)
    facts = read_loop_facts(tree, slug) if is_slug else None
    if facts is None:
        where = path_of("receipt", slug if SLUG.match(slug) else "<slug>")
        raise Exit(NOTHING_THERE, f"no run: there is no {where}, no order and no result beside it")
    reports = {stem: read_report(tree, slug, fact) for stem, fact in facts.results.items() if fact.result.verdict}
    judged = ((found, action_of(found, settings.rule)) for found in judge_run_loop(facts, reports))
    return [(found, action) for found, action in judged if action != "off"]


def _document(slug: str, outcome: Outcome) -> dict[str, object]:
    run_rows = [finding_row(found, action) for found, action in outcome.run or ()]
    if outcome.spec is None and outcome.trace is None:
        return {"schema": 1, "findings": run_rows}
    document: dict[str, object] = {"schema": 1, "slug": slug}
    if spec := outcome.spec:
        rows = [spec_findings.finding_row(found) for found in spec.findings]
        counts = {"scopes": spec.scopes, "tasks": spec.tasks, "red": spec.red, "warn": spec.warn}
        document["spec"] = {**counts, "findings": rows}
    if trace := outcome.trace:
        rows = [trace_findings.finding_row(found) for found in trace.findings]
        parts = trace_document(trace, "")
        kept = {key: parts[key] for key in ("mode", "covers_closure", "reachability", "overall")}
        document["trace"] = {**kept, "findings": rows}
    if outcome.run is not None:
        document["run"] = {"findings": run_rows}
    return document


def _show(slug: str, outcome: Outcome) -> None:
    if spec := outcome.spec:
        _show_faults((spec_findings.fault_of(found), found.level) for found in spec.findings)
        print(f"{slug}: specs of {spec.scopes} scopes and {spec.tasks} tasks: {spec.red} red, {spec.warn} warned")
    if trace := outcome.trace:
        level = {"red": "red" if trace.is_gate else "red (advisory)", "warn": "warn"}
        _show_faults((trace_findings.fault_of(found), level[found.severity]) for found in trace.findings)
        print(escape(f"{slug}: trace: covers {closure_line(trace.closure)}; reachability {reach_line(trace.reach)}"))
    if outcome.run is not None:
        _show_run(outcome.run, slug)


def _show_faults(found: Iterable[tuple[Fault, str]]) -> None:
    """The findings in the error form; those of one rule with one way forward stand together, and it is told once."""
    same: dict[tuple[str, str, str], list[str]] = {}
    for fault, level in found:
        line = f"{fault.where}: {fault.code} {level}: {fault.what}"
        same.setdefault((fault.code, fault.why, fault.fix), []).append(line)
    for (_, why, fix), lines in same.items():
        print("\n".join(map(escape, (*lines, f"  why: {why}", f"  fix: {fix}"))))


def _show_run(told: Judged, slug: str) -> None:
    """The findings in the error form; those of one rule that say the same are told once."""
    same: dict[tuple[str, str, RuleLevel], list[Finding]] = {}
    counts = Counter(action for _, action in told)
    for found, action in told:
        same.setdefault((found.rule, found.what, action), []).append(found)
    for (_, what, action), group in same.items():
        more = f" (and {len(group) - 1} more such)" if len(group) > 1 else ""
        text = render_fault(fault_of(group[0])._replace(what=f"{action}: {what}{more}"))
        print("\n".join(map(escape, text.split("\n"))))
    stands = f"{counts['deny']} denied, {counts['warn']} warned" if counts else "nothing stands against the run"
    print(f"{slug}: {stands}")
