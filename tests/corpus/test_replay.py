"""Results dropped one by one give the recorded state after each step, or differ by a rule. Source: issue 2 "Must show", ruling C10."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.divergences import BY_CASE, BY_RULE, named_by_case
from tests.corpus.explain import Explainer
from tests.corpus.in_process import replay
from tests.corpus.oracle import FIXES, World
from tests.corpus.replay_cases import OWN, Case, case_params, load_case, recorded_states
from tests.corpus.tally import count

CASES = case_params()


def kind(case: Case) -> str:
    return "own replays" if case.folder.parent == OWN else "corpus replays"


def judge(
    case: Case, at: int, explainer: Explainer, checked: bool, recorded: dict[str, bytes] | None
) -> frozenset[str]:
    """The rules by which one step differs; fails where something has no rule and no row of its own."""
    ours = replay(case.folder, checked=checked)
    verdicts = [explainer.judge_outcome(at, ours.outcomes[at])]
    if recorded is not None:
        verdicts.append(explainer.judge_state(at, ours.states[at], recorded))
    rules = frozenset().union(*(verdict.rules for verdict in verdicts))
    complaints = [text for verdict in verdicts for text in verdict.complaints]
    if by_case := named_by_case(case.name, explainer.steps[at].number):
        return rules | by_case
    assert not complaints, "\n".join(complaints)
    assert rules <= BY_RULE.keys(), f"tests/divergences.toml has no row for {sorted(rules - BY_RULE.keys())}"
    if case.folder.parent == OWN:
        assert not rules, f"our own cases hold what must be, so {sorted(rules)} may not appear"
    return rules


@pytest.mark.parametrize("folder", CASES)
def test_each_step_gives_the_recorded_state_or_differs_by_rule(folder: Path) -> None:
    case = load_case(folder)
    explainer = Explainer(case, case.steps, World(False, replay(folder, checked=False).refused_orders))
    for at, recorded in enumerate(recorded_states(case)):
        rules = judge(case, at, explainer, False, recorded)
        count(f"{kind(case)}, attestation off", case.name, at, rules)


@pytest.mark.parametrize("folder", CASES)
def test_required_attestation_refuses_what_the_record_refuses_and_ends_alike(folder: Path) -> None:
    case = load_case(folder)
    explainer = Explainer(case, case.checked, World(True, replay(folder, checked=True).refused_orders))
    for at in range(len(case.checked)):
        is_last = at == len(case.checked) - 1
        rules = judge(case, at, explainer, True, {**case.before, **case.checked_final} if is_last else None)
        count(f"{kind(case)}, attestation required (state at the end)", case.name, at, rules)


def test_every_rule_that_can_explain_a_difference_is_told_in_the_table() -> None:
    assert BY_RULE.keys() == set(FIXES)
    for row in (*BY_RULE.values(), *BY_CASE):
        assert all(row.get(key) for key in ("rule", "reference", "ours", "why")), row
