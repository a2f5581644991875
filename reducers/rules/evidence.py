"""Whether what is called green was measured: citations, trial rows, artifacts. Source: protocol §6, §9 R-18, R-22 to R-24, W-27, ruling C7."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from parsers.addresses import parse_address, scope_stem
from parsers.domain import T0Citation
from parsers.layout import LOCAL_ROOT, classify, path_of
from parsers.trials import Trial
from reducers.rules.arrivals import ResultArrival
from reducers.rules.findings import Finding, finding
from reducers.rules.loop_facts import Artifact, LoopFacts, is_green

RESTORED = frozenset({"reverted", "crash"})


def a_verdict_cites_what_was_measured(arrival: ResultArrival) -> Iterator[Finding]:
    """R-18, W-27. Where the feature has no scope contracts it is a warning (C7)."""
    verdict, facts = arrival.result.verdict, arrival.facts
    if verdict is None or verdict.overall is None:
        return
    is_mild = not facts.scopes
    if not verdict.t0_citations:
        fix = "hash the artifacts it rests on and list them in verdict.t0_citations"
        what = "the verdict cites no T0 artifact"
        yield arrival.finds("R-18", what, fix, "$.verdict.t0_citations", is_mild=is_mild)
        return
    known = {artifact.path: artifact for artifacts in facts.artifacts.values() for artifact in artifacts}
    for at, citation in enumerate(verdict.t0_citations):
        told = _objection(facts.slug, citation, known.get(citation.path), counts_green=verdict.overall == "PASS")
        if told:
            fix = "cite the artifact as it lies there: its path from the repository's top, its hash, its scope"
            yield arrival.finds("R-18", told, fix, f"$.verdict.t0_citations[{at}]", is_mild=is_mild)


def _objection(slug: str, citation: T0Citation, artifact: Artifact | None, *, counts_green: bool) -> str | None:
    place = classify(citation.path)
    if place is None or place.kind != "t0-verdict" or place.slug != slug:
        return f"{citation.path} is no T0 artifact of {slug}"
    if artifact is None:
        return f"{citation.path} does not exist"
    if artifact.sha256 != citation.sha256:
        return f"{citation.path} has the hash {artifact.sha256[:12]}…, not {citation.sha256[:12]}…"
    if artifact.verdict is None:
        return f"{citation.path} cannot be read as a T0 artifact"
    if scope_stem(artifact.verdict.scope_id) != scope_stem(citation.scope_id):
        return f"{citation.path} measures scope {artifact.verdict.scope_id}, not {citation.scope_id}"
    if counts_green and not is_green(artifact):
        return f"{citation.path} is red, and the verdict is PASS"
    return None


def trials_and_artifacts_correspond(facts: LoopFacts) -> Iterator[Finding]:
    """R-22, of the whole run."""
    known = {artifact.path: artifact for artifacts in facts.artifacts.values() for artifact in artifacts}
    ledger = path_of("trials", facts.slug)
    cited: Counter[str] = Counter()
    newest: dict[str, int] = {}
    for trial in facts.trials:
        path = artifact_path(facts.slug, trial)
        cited[path] += 1
        name = f"trial {trial.trial} of {trial.scope_id}"
        for told in _mismatches(trial, known.get(path), path):
            yield finding("R-22", trial.scope_id, ledger, f"{name}: {told}", "measure the attempt again")
        scope = scope_stem(trial.scope_id)
        if trial.trial is not None:
            if scope in newest and trial.trial != newest[scope] + 1:
                told = f"{name} follows trial {newest[scope]}"
                yield finding("R-22", trial.scope_id, ledger, told, "number the trials of a scope one by one")
            newest[scope] = trial.trial
    for path, artifact in sorted(known.items()):
        is_own = artifact.verdict is not None and facts.is_own(artifact.verdict.run_id)
        if is_own and cited[path] != 1:
            told = f"{cited[path]} trial rows name it" if cited[path] else "no trial row names it"
            subject = artifact.verdict.scope_id if artifact.verdict else path
            yield finding("R-22", subject, path, told, "leave rows and artifacts to `shapeupd t0`")


def artifact_path(slug: str, trial: Trial) -> str:
    """The artifact of a trial, from the repository's top; the row says it from the run's folder."""
    return f"{LOCAL_ROOT}/{slug}/{trial.artifact or ''}"


def _mismatches(trial: Trial, artifact: Artifact | None, path: str) -> Iterator[str]:
    if artifact is None:
        yield f"its artifact {path} is missing"
        return
    if trial.sha256 != artifact.sha256:
        yield f"{path} is not what it was when the row was written"
    verdict = artifact.verdict
    if verdict is None:
        yield f"{path} cannot be read as a T0 artifact"
        return
    told = (scope_stem(trial.scope_id), trial.round, trial.attempt)
    measured = (scope_stem(verdict.scope_id), verdict.round, verdict.attempt)
    if told != measured:
        yield f"{path} measures {verdict.scope_id} in round {verdict.round}, attempt {verdict.attempt}"


def a_restored_tree_is_named(facts: LoopFacts) -> Iterator[Finding]:
    """R-23, of the whole run: a reverted or crashed attempt whose tree nobody put back.

    The first attempt of a scope has nothing to go back to (G9), and where no row names a tree none are kept.
    """
    if not any(trial.tree_ref for trial in facts.trials):
        return
    seen: set[str] = set()
    for trial in facts.trials:
        scope = scope_stem(trial.scope_id)
        if trial.status in RESTORED and trial.tree_ref is None and scope in seen:
            told = f"trial {trial.trial} of {trial.scope_id} was {trial.status}, and no kept tree was put back"
            path = path_of("trials", facts.slug)
            yield finding("R-23", trial.scope_id, path, told, "look what the attempt left, and take it back by hand")
        seen.add(scope)


def green_was_measured_and_answered(facts: LoopFacts) -> Iterator[Finding]:
    """R-24, of the whole run: the newest trial of a scope says green, its artifact or its result does not stand."""
    known = {artifact.path: artifact for artifacts in facts.artifacts.values() for artifact in artifacts}
    newest = {scope_stem(trial.scope_id): trial for trial in facts.trials if trial.status in ("kept", "rebased")}
    closed = _closed(facts)
    for scope, trial in newest.items():
        if not trial.is_kept_green:
            continue
        path = artifact_path(facts.slug, trial)
        told = None
        if not is_green(known.get(path)):
            told = f"its artifact {path} is not green"
        elif trial.round is not None and (scope, trial.round) not in closed:
            told = f"no result of round {trial.round} was applied"
        if told:
            where = path_of("trials", facts.slug)
            what = f"scope {trial.scope_id} counts as not green: {told}"
            yield finding("R-24", trial.scope_id, where, what, "measure it again once its result is applied")


def _closed(facts: LoopFacts) -> set[tuple[str, int]]:
    """The scopes and rounds of which a build result was applied."""
    closed = set()
    for order_id in {*facts.records, *facts.legs}:
        address = parse_address(order_id)
        is_applied = bool(facts.applied(order_id)) or any(
            leg.ingested_at and facts.is_own(leg.run_id) for leg in facts.legs.get(order_id, ())
        )
        if is_applied and address.attempt is not None and address.round is not None:
            closed.add((scope_stem(address.name or ""), address.round))
    return closed
