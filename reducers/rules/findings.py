"""A finding: one place where a run leaves a round-loop invariant, and how it acts under the settings. Source: protocol §9, cli §5 `rules.*`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from parsers.faults import Fault
from parsers.rule_table import RULES, Severity
from parsers.settings import RuleLevel

LevelOf = Callable[[str, Severity | None], RuleLevel]  # `Settings.rule`


class Finding(NamedTuple):
    """One violation. `subject` is an order id, scope, task or gate, `path` the file to look at.

    `severity` None: as the table says; set where §9 names a graver or milder case of the rule.
    """

    rule: str
    subject: str
    path: str
    what: str
    why: str
    fix: str
    severity: Severity | None = None


def finding(rule: str, subject: str, path: str, what: str, fix: str, severity: Severity | None = None) -> Finding:
    """A finding whose `why` is what the rule says."""
    return Finding(rule, subject, path, what, RULES[rule].statement, fix, severity)


def action_of(found: Finding, level_of: LevelOf) -> RuleLevel:
    """`deny`, `warn` or `off`: what is done about the finding. `level_of` is `Settings.rule` of the settings in force."""
    return level_of(found.rule, found.severity)


def fault_of(found: Finding) -> Fault:
    """The finding as a fault, for rejection files and the error form: its code is the rule's id."""
    return Fault(found.rule, found.path, found.what, found.why, found.fix)


def finding_row(found: Finding, action: RuleLevel) -> dict[str, str]:
    """The finding as JSON: {rule, action, subject, path, what, why, fix}."""
    keys = ("subject", "path", "what", "why", "fix")
    values: dict[str, str] = found._asdict()
    return {"rule": found.rule, "action": action, **{key: values[key] for key in keys}}
