"""What the committed documents say: tier direction line by line, the parts of a spec, links. Source: protocol §1.1, §5.2, ruling G6."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from parsers.markdown import decode, parse_heading, scan_lines
from parsers.tier_direction import TierBreak, tier_breaks
from reducers.lint_spec.facts import SpecFacts, spec_folder
from reducers.lint_spec.findings import Finding, finding

_CONSTRAINTS = re.compile(r"(?:no-?gos|constraints|edge[\s-]?cases)\b", re.IGNORECASE | re.ASCII)
_INVARIANT = re.compile(r"\[INV-[0-9]+\]")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_WIKILINK = re.compile(r"\[\[([^\]#|\n]+)")
_TICKS = re.compile(r"`+")


def lint_tier(documents: Mapping[str, bytes]) -> Iterator[Finding]:
    """TIER-DIRECTION: every line of a committed text that names a board id, or a path below `.shapeup/`."""
    for path in sorted(documents):
        for found in sorted(tier_breaks(documents[path]), key=lambda one: one.line):
            yield _tier_finding(path, found)


def _tier_finding(path: str, found: TierBreak) -> Finding:
    where = f"{path}:{found.line}"
    if found.kind == "board-id":
        what, fix = f"names board id {decode(found.named)}", "name the scope or the use case instead"
    else:
        what = f"points into the local tier: {decode(found.named)}"
        fix = "name a committed file, or say it without a path"
    return finding("TIER-DIRECTION", "red", where, what, fix)


def lint_structure(facts: SpecFacts) -> Iterator[Finding]:
    """STRUCTURE: a spec has a domain model and use cases, and a use case has steps."""
    if facts.domain_model not in facts.documents:
        what, fix = "domain-model.md is missing", f"write {facts.domain_model}"
        yield finding("STRUCTURE", "red", facts.domain_model, what, fix)
    folder = f"{spec_folder(facts.slug)}/usecases"
    if not facts.use_cases:
        what, fix = "there is no UC-*.md: nothing to build or grade against", f"write {folder}/UC-….md"
        yield finding("STRUCTURE", "red", folder, what, fix)
    for case in facts.use_cases:
        if not any(level == 2 and text.startswith("Steps") for level, text in _headings(case.text)):
            what, fix = f"{case.id}.md has no `## Steps`", "write the steps under a heading `## Steps`"
            yield finding("STRUCTURE", "warn", case.path, what, fix)


def _headings(text: str) -> Iterator[tuple[int, str]]:
    for line in scan_lines(text.split("\n")):
        if not line.fenced and (heading := parse_heading(line.text)):
            yield heading


def lint_invariants(facts: SpecFacts, intake_path: str) -> Iterator[Finding]:
    """INV-FLOOR: the pitch rules something out, and no use case has an invariant."""
    line = _constraints_at(facts.intake or "")
    if line is not None and not any(_INVARIANT.search(case.text) for case in facts.use_cases):
        what = "the intake names constraints, and no spec/usecases/UC-*.md declares a single [INV-n]"
        fix = "write each of them as an invariant `- [INV-1] …` into the use case that it binds"
        yield finding("INV-FLOOR", "red", f"{intake_path}:{line}", what, fix)


def _constraints_at(intake: str) -> int | None:
    """The line of the first heading that announces constraints and has something below it, from 1."""
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), intake)
    at: int | None = None
    for line in scan_lines(text.split("\n")):
        heading = None if line.fenced else parse_heading(line.text)
        if heading:
            at = line.at + 1 if _CONSTRAINTS.match(heading[1]) else None
        elif at is not None and line.text.strip():
            return at
    return None


def lint_links(facts: SpecFacts) -> Iterator[Finding]:
    """TIER-DIRECTION for links to tasks, WIKILINK for links to nothing, in the spec documents."""
    folder = f"{spec_folder(facts.slug)}/"
    names = [path.removeprefix(folder) for path in sorted(facts.documents) if path.startswith(folder)]
    documents = [name for name in names if name.endswith(".md")]
    targets = _targets(documents)
    for name in documents:
        path = folder + name
        for line, target in _links(decode(facts.documents[path])):
            where = f"{path}:{line}"
            if target.startswith("tasks/"):
                what, fix = f"{name} links to [[{target}]] of the local board", "link to the use case instead"
                yield finding("TIER-DIRECTION", "red", where, what, fix)
            elif target.removesuffix(".md") not in targets:
                what, fix = f"{name} links to [[{target}]], and no spec document has that name", "correct the link"
                yield finding("WIKILINK", "warn", where, what, fix)


def _targets(documents: list[str]) -> frozenset[str]:
    """What a link may name: a document's path without `.md`, or any end of it that begins a segment."""
    ends = (name.removesuffix(".md").split("/") for name in documents)
    return frozenset("/".join(parts[at:]) for parts in ends for at in range(len(parts)))


def _links(text: str) -> Iterator[tuple[int, str]]:
    """The targets of the wikilinks outside code, by line from 1. A link to a section of its own page names none."""
    for line in scan_lines(text.split("\n")):
        if line.fenced or "[[" not in line.text:
            continue
        for found in _WIKILINK.finditer(without_code(line.text)):
            if target := found[1].strip():
                yield line.at + 1, target


def without_code(line: str) -> str:
    """The line without its code spans: each from a run of backticks to the next run of the same length."""
    runs = [found.span() for found in _TICKS.finditer(line)]
    seen: dict[int, int] = {}
    closed_by: list[int | None] = [None] * len(runs)
    for at in reversed(range(len(runs))):
        length = runs[at][1] - runs[at][0]
        closed_by[at], seen[length] = seen.get(length), at
    kept, end, at = [], 0, 0
    while at < len(runs):
        close = closed_by[at]
        if close is not None:
            kept.append(line[end : runs[at][0]])
            at, end = close, runs[close][1]
        at += 1
    return "".join([*kept, line[end:]])
