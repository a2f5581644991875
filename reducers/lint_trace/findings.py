"""A finding of the trace lint, and why each of its codes is there. Source: protocol §5.3, cli §1."""

from __future__ import annotations

from typing import Literal, NamedTuple

from parsers.faults import Fault

Severity = Literal["red", "warn"]

WHY: dict[str, str] = {
    "REQ-UNCOVERED": "what no criterion covers is built by nobody and missed by nobody",
    "COVERS-DANGLING": "a criterion that covers an unknown id covers nothing",
    "WIRING-UNREADABLE": "what does not read counts as absent, and every engine would pass unseen",
    "WIRING-LEGACY-LAYOUT": "one shape is read by everybody; this one by a migration reader alone",
    "NEAR-HEADING": "the table is found by its exact heading, so under any other spelling its rows count as absent",
    "PROFILE-MISSING": "without an entry point nobody can say what the running program reaches",
    "PROFILE-UNREADABLE": "without an entry point nobody can say what the running program reaches",
    "ENTRY-MISSING": "without an entry point nobody can say what the running program reaches",
    "UC-UNREACHABLE": "an engine that nothing imports ships orphaned from the running program",
}


class TraceFinding(NamedTuple):
    """One gap. `where`: a path, with `:line` behind it where one is known. `req`, `uc`: the id that it is about."""

    code: str
    severity: Severity
    where: str
    what: str
    fix: str
    req: str | None = None
    uc: str | None = None

    @property
    def why(self) -> str:
        """Why the code is there."""
        return WHY[self.code]


def fault_of(found: TraceFinding) -> Fault:
    """The finding in the error form."""
    return Fault(found.code, found.where, found.what, found.why, found.fix)


def finding_row(found: TraceFinding) -> dict[str, object]:
    """The finding as JSON: {code, severity, req, uc, where, what, why, fix}."""
    keys = ("code", "severity", "req", "uc", "where", "what", "why", "fix")
    return {key: getattr(found, key) for key in keys}
