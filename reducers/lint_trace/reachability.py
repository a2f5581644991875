"""Reachability: every engine of the wiring map is in the import closure of the entry point. Source: protocol §5.3, §10.5."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from parsers.contracts import Row
from parsers.frontmatter import scalar_text
from parsers.markdown import decode
from parsers.tree import Unreadable
from reducers.lint_trace.facts import Map, TraceFacts
from reducers.lint_trace.findings import TraceFinding
from reducers.lint_trace.imports import ENDINGS, closure_of, is_script, normal, resolve

_SPAN = re.compile(r"`([^`]+)`")
_REWIRE = "let a `wire` order write it anew"


class Orphan(NamedTuple):
    """An engine that the entry point does not reach."""

    row: Row
    reason: str

    @property
    def use_case(self) -> str:
        """The use case that it serves."""
        return scalar_text(self.row.get("use_case") or "")


class Reach(NamedTuple):
    """`skipped_reason` not None: nothing was looked up; `passes` then says whether that is all right.

    `entry_point` as the profile writes it, `resolved` the file it is; `reached`: how many files it reaches, itself included.
    """

    skipped_reason: str | None = None
    passes: bool = True
    entry_point: str | None = None
    resolved: str | None = None
    reached: int = 0
    engines: int = 0
    orphans: tuple[Orphan, ...] = ()
    findings: tuple[TraceFinding, ...] = ()

    @property
    def row(self) -> dict[str, object]:
        """`reachability` of the report."""
        if self.skipped_reason is not None:
            entry = {} if self.entry_point is None else {"entry_point": self.entry_point}
            skipped = {"checked": False, "pass": self.passes, "unreachable": []}
            return {**skipped, **entry, "skipped_reason": self.skipped_reason}
        orphans = [
            {"use_case": one.use_case, "engine": scalar_text(one.row["engine"]), "reason": one.reason}
            for one in self.orphans
        ]
        return {
            "checked": True,
            "entry_point": self.entry_point,
            "entry_resolved": self.resolved,
            "reachable_files": self.reached,
            "engines_total": self.engines,
            "unreachable": orphans,
            "pass": self.passes,
        }


def reach(facts: TraceFacts) -> Reach:
    """Whether the engines are reached, or why that was not looked up."""
    wiring = facts.wiring
    if wiring is None:
        return Reach("there is no wiring map, so no engine is named")
    if wiring.unread:
        found = _unread("WIRING-UNREADABLE", wiring, f"write one table under `## Wiring`, or {_REWIRE}")
        return Reach("the wiring map cannot be read", False, findings=found)
    before = tuple(_shape(wiring))
    skipped = _no_entry(facts)
    if skipped is not None:
        return skipped._replace(findings=(*before, *skipped.findings))
    found_reach = _reach(facts, wiring)
    return found_reach._replace(findings=(*before, *found_reach.findings))


def _shape(wiring: Map) -> Iterator[TraceFinding]:
    if wiring.contract.legacy_layout:
        what = "the map has one section for each use case, with a `Field | Value` table"
        fix = f"write one table under `## Wiring`, or {_REWIRE}"
        yield TraceFinding("WIRING-LEGACY-LAYOUT", "warn", wiring.path, what, fix)
    if wiring.contract.near_miss:
        heading, line = wiring.contract.near_miss
        what = f'the heading "{heading}" is nearly "Wiring", and its table is not read'
        yield TraceFinding("NEAR-HEADING", "warn", f"{wiring.path}:{line}", what, "write it exactly `## Wiring`")


def _unread(code: str, one: Map, fix: str) -> tuple[TraceFinding, ...]:
    return tuple(TraceFinding(code, "red", where, reason, fix) for where, reason in one.unread)


def _no_entry(facts: TraceFacts) -> Reach | None:
    """Why there is no entry point to start from; None where there is one."""
    profile = facts.profile
    if profile is None:
        what = "there is a wiring map and no project profile, so reachability is not looked up"
        fix = "write project-profile.md with `entry_point:` at gate L0"
        missing = TraceFinding("PROFILE-MISSING", "warn", facts.wiring.path if facts.wiring else "", what, fix)
        return Reach("there is no project profile that names an entry point", findings=(missing,))
    if profile.unread:
        found = _unread("PROFILE-UNREADABLE", profile, "write `entry_point:` into its frontmatter")
        return Reach("the project profile cannot be read", False, findings=found)
    entry = _entry_point(profile)
    resolved = _on_disk(entry, facts) if entry else None
    where = (
        profile.path
        if "entry_point" not in profile.contract.lines
        else f"{profile.path}:{profile.contract.lines['entry_point']}"
    )
    if resolved is None:
        what = f'entry_point "{entry}" is no file of the project' if entry else "the profile names no entry_point"
        fix = "correct `entry_point:`, or build the file it names"
        missing = TraceFinding("ENTRY-MISSING", "warn", where, what, fix)
        return Reach(what, entry_point=entry or None, findings=(missing,))
    if not is_script(resolved):
        reason = f"{resolved} is no JavaScript or TypeScript file ({', '.join(ENDINGS)}), and no other imports are read"
        return Reach(reason, entry_point=entry)
    return None


def _entry_point(profile: Map) -> str:
    value = profile.contract.keys.get("entry_point")
    return value if isinstance(value, str) else ""


def _on_disk(path: str, facts: TraceFacts) -> str | None:
    bare = normal(path)
    return resolve(bare, facts.files) if bare else None


def _reach(facts: TraceFacts, wiring: Map) -> Reach:
    assert facts.profile is not None  # else _no_entry had skipped it
    entry = _entry_point(facts.profile)
    resolved = _on_disk(entry, facts)
    assert resolved is not None
    reached = closure_of(resolved, facts.files, lambda path: _source(facts, path))
    orphans = tuple(_orphans(facts, wiring.entries, reached))
    found = tuple(_orphan_finding(wiring, orphan, entry) for orphan in orphans)
    return Reach(None, not orphans, entry, resolved, len(reached), len(wiring.entries), orphans, found)


def _source(facts: TraceFacts, path: str) -> str | None:
    try:
        data = facts.tree.read(path)
    except (Unreadable, OSError):
        return None
    return None if data is None else decode(data)


def _orphans(facts: TraceFacts, rows: Sequence[Row], reached: frozenset[str]) -> Iterator[Orphan]:
    for row in rows:
        engine = engine_file(scalar_text(row["engine"]), facts)
        if engine is None:
            yield Orphan(row, "engine file not on disk")
        elif engine not in reached:
            yield Orphan(row, "not imported from the entry point")


def engine_file(engine: str, facts: TraceFacts) -> str | None:
    """The file that an engine cell names: the whole cell, else its first code span, else its first word."""
    span = _SPAN.search(engine)
    first = engine.split(maxsplit=1)[:1]
    for text in (engine, *(span.groups() if span else ()), *(word.rstrip(",;:") for word in first)):
        if (found := _on_disk(text.strip(), facts)) is not None:
            return found
    return None


def _orphan_finding(wiring: Map, orphan: Orphan, entry: str) -> TraceFinding:
    engine = scalar_text(orphan.row["engine"])
    is_missing = orphan.reason.endswith("on disk")
    what = (
        f'{orphan.use_case}: engine "{engine}" is no file of the project'
        if is_missing
        else f'{orphan.use_case}: engine "{engine}" is not imported from entry_point "{entry}"'
    )
    fix = (
        "build the engine, or correct its row"
        if is_missing
        else f"import it on the way from {entry}, or correct its row"
    )
    return TraceFinding("UC-UNREACHABLE", "red", wiring.line_of(orphan.row), what, fix, uc=orphan.use_case)
