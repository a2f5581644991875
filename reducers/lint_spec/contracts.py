"""What one scope contract says by itself: whether it reads, the shape of its substrate, its fixtures. Source: protocol §5.2, §10.5, W-63."""

from __future__ import annotations

from collections.abc import Iterator

from parsers.contracts import Unreadable, unreadable_clause
from parsers.markdown import BOM, decode
from parsers.scope_contract import FIXTURES, declared_exit
from reducers.lint_spec.facts import ScopeFacts
from reducers.lint_spec.findings import Finding, finding
from reducers.lint_spec.substrates import Substrates

MOST_FILES = 15
_SHOWN = 60


def lint_contract(scope: ScopeFacts, substrates: Substrates) -> Iterator[Finding]:
    """Everything that one contract breaks alone. A superseded scope builds nothing, so its substrate and fixtures are history."""
    yield from lint_readable(scope)
    if not scope.is_superseded:
        yield from lint_layer(scope)
        yield from lint_size(scope, substrates)
        yield from lint_fixtures(scope)


def lint_readable(scope: ScopeFacts) -> Iterator[Finding]:
    """CONTRACT-UNREADABLE: one finding for every part that parsed as absent, or beside its value."""
    contract, rule = scope.contract, "CONTRACT-UNREADABLE"
    if fault := scope.fault or contract.fault:
        yield finding(rule, "red", scope.path, fault.what, fault.fix, scope.scope_id)
    elif not contract.has_frontmatter and _looks_like_frontmatter(scope.data):
        what = "the frontmatter is not read: it must begin at the first byte and end with a line `---`"
        fix = "remove what stands before the first `---`, and close the block with `---`"
        yield finding(rule, "red", f"{scope.path}:1", what, fix, scope.scope_id)
    for key, line in contract.doubled:
        what = f"`{key}` stands in the frontmatter a second time"
        fix = "keep one of the two: readers differ in which one counts"
        yield finding(rule, "red", f"{scope.path}:{line}", what, fix, scope.scope_id)
    for part in contract.unreadable:
        where = f"{scope.path}:{part.line}"
        yield finding(rule, "red", where, unreadable_clause(part), _readable_form(part), scope.scope_id)
    if contract.near_miss:
        heading, line = contract.near_miss
        what = f'the heading "{heading}" is nearly "Affordances", and its table is not read'
        fix = "write the heading exactly `## Affordances`"
        yield finding("NEAR-HEADING", "warn", f"{scope.path}:{line}", what, fix, scope.scope_id)


def _looks_like_frontmatter(data: bytes) -> bool:
    head = decode(data[:4096]).lstrip(BOM + " \t\r\n").replace("\r", "\n")
    return head.partition("\n")[0].rstrip() == "---"


def _readable_form(part: Unreadable) -> str:
    match part.case:
        case "both":
            return f"write all of it after `{part.field}:`, or leave that line empty and indent one `- item` a line below it"
        case "indented":
            return f"write `{part.field}: [a, b]`, or indent one `- item` a line below it"
        case "section":
            return f"move it into the frontmatter: `{part.field}: [a, b]`, or one indented `- item` a line"
        case _:
            return f"put the table under a heading that reads exactly `## {part.expected_heading}`"


def lint_layer(scope: ScopeFacts) -> Iterator[Finding]:
    """PA1: all that the scope may write lies in one folder of the second level."""
    tops = {"/".join(glob.split("/")[:2]) for glob in scope.allowed}
    if len(tops) == 1 and not scope.is_chowder:
        what = f"all it may write lies in '{tops.pop()}/'"
        fix = "cut by flow: let the scope write every layer that its use case needs, or make it a CHOWDER"
        yield finding("PA1", "red", scope.at("allowed_file_substrate"), what, fix, scope.scope_id)


def lint_size(scope: ScopeFacts, substrates: Substrates) -> Iterator[Finding]:
    """PA2: the scope may write more existing files than a slice has."""
    count = len(substrates.files_of(scope))
    if count > MOST_FILES and not scope.is_chowder:
        what = f"it may write {count} existing files; {MOST_FILES} are the most that a slice needs"
        fix = "split the scope, or name the files that it really changes"
        yield finding("PA2", "warn", scope.at("allowed_file_substrate"), what, fix, scope.scope_id)


def lint_fixtures(scope: ScopeFacts) -> Iterator[Finding]:
    """T0-UNVERIFIABLE, T0-UNPASSABLE: nothing to run, or a command that is meant to fail."""
    if not scope.fixtures:
        what = f"it has no {FIXTURES}, so T0 has nothing to run"
        fix = f"write `{FIXTURES}: [command]` in the frontmatter; a section of that name is not read"
        yield finding("T0-UNVERIFIABLE", "red", scope.at(FIXTURES), what, fix, scope.scope_id)
    for command in scope.fixtures:
        if (status := declared_exit(command)) is not None:
            what = f'the fixture is meant to end with "exit {status}": {command[:_SHOWN]}'
            fix = f"let the command itself test the status: `! command`, or `command; test $? -eq {status}`"
            yield finding("T0-UNPASSABLE", "warn", scope.at(FIXTURES), what, fix, scope.scope_id)
