"""What `shapeupd check` prints: text, its JSON document, SARIF 2.1.0, GitHub workflow commands. Source: cli §1, §2, rulings E19, J."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, assert_never

from daemon.terminal import escape
from daemon.version import VERSION
from hooks.verdict import RULES, Violation, quote_path, render_violation, verdict_document, violation_row

Format = Literal["text", "json", "sarif", "github"]
FORMATS: tuple[Format, ...] = ("text", "json", "sarif", "github")


class Finding(NamedTuple):
    """One violation, and the commit that holds it: its id and subject, both empty where no commit is judged."""

    violation: Violation
    commit: str = ""
    subject: str = ""


def render(findings: Sequence[Finding], form: Format) -> str:
    """Everything that goes to stdout, without the last newline; empty where there is nothing to say."""
    import json

    match form:
        case "text":
            return render_text(findings)
        case "json":
            return json.dumps(json_document(findings), indent=2)
        case "sarif":
            return json.dumps(sarif_document(findings), indent=2)
        case "github":
            return "\n".join(map(workflow_command, findings))
        case _:
            assert_never(form)


def render_text(findings: Iterable[Finding]) -> str:
    """The form of cli §1, under a line for each commit."""
    lines: list[str] = []
    shown = ""
    for finding in findings:
        if finding.commit and finding.commit != shown:
            shown = finding.commit
            lines.append(f"commit {finding.commit[:12]} {escape(finding.subject)}".rstrip())
        lines.append(escape_lines(render_violation(finding.violation)))
    return "\n".join(lines)


def json_document(findings: Iterable[Finding]) -> dict[str, object]:
    """The document of rulings J; of a range each violation names its `commit`."""
    rows: list[dict[str, object]] = []
    for finding in findings:
        named: dict[str, object] = {"commit": finding.commit} if finding.commit else {}
        rows.append(violation_row(finding.violation) | named)
    return verdict_document(()) | {"verdict": "deny" if rows else "allow", "violations": rows}


_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_NOWHERE = (
    ".shapeupd.toml"  # code scanning shows nothing that has no file; where a whole commit is wrong, the rules' own file
)


def sarif_document(findings: Sequence[Finding]) -> dict[str, object]:
    """A SARIF 2.1.0 log with one run. Every rule is declared, so that a result's index means the same in every log."""
    rules = tuple(RULES)
    declared = [{"id": rule, "shortDescription": {"text": RULES[rule]}} for rule in rules]
    driver = {"name": "shapeupd", "version": VERSION, "rules": declared}
    results = [_sarif_result(finding, rules) for finding in findings]
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}


def _sarif_result(finding: Finding, rules: tuple[str, ...]) -> dict[str, object]:
    from urllib.parse import quote

    violation = finding.violation
    artifact = {"uri": quote(violation.path or _NOWHERE.encode(), safe="/"), "uriBaseId": "%SRCROOT%"}
    place = {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": 1}}}
    properties = {"commit": finding.commit or None, "order_id": violation.order_id}
    known = {"ruleIndex": rules.index(violation.rule)} if violation.rule in rules else {}
    return {
        "ruleId": violation.rule,
        **known,
        "level": "error",
        "message": {"text": escape_lines(_message(finding))},
        "locations": [place],
        "properties": {key: value for key, value in properties.items() if value is not None},
    }


def workflow_command(finding: Finding) -> str:
    """One `::error` line. A path that no log can show as it is stands in the message alone."""
    violation = finding.violation
    properties = {"title": f"shapeupd {violation.rule}"}
    name = violation.path.decode("utf-8", "surrogateescape")
    if name and name.replace("\n", "").replace("\r", "").isprintable():
        properties = {"file": name, **properties}
    named = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::error {named}::{_data(escape_lines(_message(finding)))}"


def _message(finding: Finding) -> str:
    violation = finding.violation
    where = quote_path(violation.path) if violation.path else "commit"
    commit = f" (commit {finding.commit[:12]})" if finding.commit else ""
    return f"{where}: {violation.what}{commit}\nwhy: {violation.why}\nfix: {violation.fix}"


def escape_lines(text: str) -> str:
    """The text with its own line breaks, and every other unprintable character (half surrogates too) escaped."""
    return "\n".join(map(escape, text.split("\n")))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
