"""What a verdict says: coherent, and complete on what a fix round re-opened; and what a fix round touched. Source: protocol §9 R-08, R-09, R-17."""

from __future__ import annotations

from collections.abc import Iterator

from parsers.addresses import scope_stem
from reducers.bugs import RegressionScope, bugs_for_scope, elect_owner, regression_scope, verdict_bugs
from reducers.rules.arrivals import ResultArrival
from reducers.rules.evaluation import listed
from reducers.rules.findings import Finding
from reducers.rules.loop_facts import BUILDER, EVALUATOR, LoopFacts, always, is_green, newest_artifact, verdict_of

_NO_SURFACE = "no test surface"


def a_verdict_is_coherent(arrival: ResultArrival) -> Iterator[Finding]:
    """R-17; an evaluation that says neither PASS nor FAIL is told, for the round goes on as if it were not judged."""
    verdict = arrival.result.verdict
    if verdict is None or verdict.overall is None:
        if arrival.worker == EVALUATOR and arrival.result.status == "done":
            told = "the evaluation says neither PASS nor FAIL, so its round counts as not judged"
            yield arrival.finds("R-17", told, "say it in `verdict.overall`", "$.verdict", is_mild=True)
        return
    failed = [criterion.criterion for criterion in verdict.criteria if criterion.verdict == "FAIL"]
    if verdict.overall == "PASS" and failed:
        told = f"the verdict is PASS, and these criteria fail: {listed(failed)}"
        yield arrival.finds("R-17", told, "say FAIL, or correct the criteria", "$.verdict")
    elif verdict.overall == "PASS" and verdict.bugs:
        told = f"the verdict is PASS, and it reports {len(verdict.bugs)} bugs"
        yield arrival.finds("R-17", told, "say FAIL, or leave the bugs to QA", "$.verdict.bugs")
    elif verdict.overall == "FAIL" and not failed and not verdict.bugs:
        told = "the verdict is FAIL, and neither a criterion nor a bug says what fails"
        yield arrival.finds("R-17", told, "name what fails as a criterion or a bug", "$.verdict")


def reopened_use_cases_are_run_again(arrival: ResultArrival) -> Iterator[Finding]:
    """R-09: from round 2 on each use case of a re-opened task occurs in a criterion, unless the report says why there is none."""
    verdict, round_ = arrival.result.verdict, arrival.round
    if verdict is None or round_ is None or round_ < 2:
        return
    told = [f"{criterion.criterion} {criterion.evidence or ''}".casefold() for criterion in verdict.criteria]
    wanted = regression_of(arrival.facts, round_).use_cases
    missing = [use_case for use_case in wanted if not any(use_case.casefold() in text for text in told)]
    missing = [use_case for use_case in missing if not _is_excused(arrival.report, use_case)]
    if missing:
        what = f"no criterion speaks of {listed(missing)}, whose tasks round {round_} re-opened"
        fix = "run their Test Surface again, or say in the report that there is none"
        yield arrival.finds("R-09", what, fix, "$.verdict.criteria")


def regression_of(facts: LoopFacts, round_: int) -> RegressionScope:
    """What the round must look at again."""
    reported = {
        fact.result.order_id: {entry.task_id for entry in fact.result.task_results if entry.status != "skipped"}
        for fact in facts.results.values()
        if facts.applied(fact.result.order_id)
    }
    orders = (fact.order for fact in facts.own_orders() if fact.order.worker == BUILDER)
    return regression_scope(round_, orders, lambda task_id: _use_cases(facts, task_id), reported)


def _use_cases(facts: LoopFacts, task_id: str) -> Iterator[str]:
    for task in facts.tasks.find(task_id):
        yield from task.use_case_refs


def _is_excused(report: str, use_case: str) -> bool:
    """Whether a line of the report says that there is no test surface: of this use case, or of none at all."""
    lines = [line.casefold() for line in report.split("\n")]
    excuses = [line for line in lines if _NO_SURFACE in line]
    return any(use_case.casefold() in line or "coverage: none" in line for line in excuses)


def what_passed_is_left_alone(arrival: ResultArrival) -> Iterator[Finding]:
    """R-08, by what the result says it touched: files of a scope that was green and that no bug was routed to."""
    facts, round_ = arrival.facts, arrival.round
    if arrival.worker != BUILDER or round_ is None or round_ < 2 or not facts.scopes:
        return
    verdict = verdict_of(facts, round_ - 1)
    if verdict is None:
        return
    bugs = verdict_bugs(verdict)
    by_owner: dict[str, list[str]] = {}
    for touched in arrival.result.files_touched:
        owner = elect_owner(touched.path, facts.scopes)
        if owner is not None:
            by_owner.setdefault(owner, []).append(touched.path)
    for owner, paths in sorted(by_owner.items()):
        was_green = is_green(newest_artifact(facts, scope_stem(owner), always, range(round_)))
        if was_green and not bugs_for_scope(bugs, owner, facts.scopes):
            what = f"{listed(paths)} belong to scope {owner}, which was green and has no bug"
            yield arrival.finds("R-08", what, "take these changes back, or route a bug there", "$.files_touched")
