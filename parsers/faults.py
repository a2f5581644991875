"""A fault: one problem found in input, told as what, where, why and fix. Source: cli §1, rulings D4.

A fault is a value, never an exception: parsers and reducers return it, the daemon writes it into a
rejection file, the log and the terminal. Light module: standard library only, no dataclasses.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """One problem found in input.

    `code` is stable and listed in CODES. `where` is a repository path, with `:line` or a JSON path
    (`$.a[0]`) behind it where one is known. `fix` names one way forward that works.
    """

    code: str
    where: str
    what: str
    why: str
    fix: str


def render_fault(fault: Fault) -> str:
    """The three-line form used on terminals, in the log and in hook output. Source: cli §1."""
    return f"{fault.where}: {fault.code} {fault.what}\n  why: {fault.why}\n  fix: {fault.fix}"


def fault_row(fault: Fault) -> dict[str, str]:
    """The fault as it stands in a rejection file: {where, what, why, fix}. Source: rulings J."""
    return {"where": fault.where, "what": fault.what, "why": fault.why, "fix": fault.fix}


CODES: dict[str, str] = {
    # reading bytes
    "E-NOT-A-FILE": "a pipe, socket, folder or link stands where a fact should",
    "E-SYMLINK": "a symbolic link stands in place of a file that would be rewritten",
    "E-TOO-LARGE": "the file is larger than 1 MiB",
    "E-ENCODING": "the bytes are not UTF-8 without BOM",
    "E-JSON": "the text is not JSON",
    "E-DEPTH": "the JSON nests deeper than 64 levels",
    "E-DUPLICATE-KEY": "an object names one key twice",
    "E-NUMBER": "a number is NaN, infinite or outside 64 bits",
    "E-SURROGATE": "a string holds half of a surrogate pair",
    "E-NUL": "a string holds a NUL character",
    "E-FRONTMATTER": "the frontmatter is outside the dialect or its limits",
    # envelopes
    "E-SCHEMA": "the envelope does not have the protocol's shape",
    "E-STEM": "the file is not named after its order_id",
    "E-ID": "an id leaves its alphabet, so a path built from it could leave the tree",
    "E-SLUG": "the slug in order_id is not the folder the file lies in",
    "E-ORDER-MISMATCH": "the result answers one order and names another",
    "E-UNATTESTED": "no dispatch receipt shows that the order's worker ran",
    "E-FIELD-RIGHTS": "the envelope carries a field that its worker may not use",
    "E-WORKER": "the result's worker is not the order's worker",
    "E-NO-TASK": "none of the tasks that the result reports on exists",
    "E-TASK-AMBIGUOUS": "two task files answer to one id",
    "E-EVALUATED": "this round was evaluated already",
    "E-NO-ORDER": "no order stands beside the result",
    "E-TAMPERED": "an answered result was changed after its time had passed",
    # acting
    "E-NOSPACE": "the disk is full",
    "E-LOCKED": "another reducer held the run's lock for 30 s",
    "E-JOURNAL": "a journal entry is damaged or missing; what it said cannot be rebuilt",
    "E-CONFLICT": "a journaled edit can no longer be carried out on the file as it stands",
    "E-IO": "the disk refused a read or a write; it is tried again",
    "E-FSYNC": "the disk did not confirm a write; the daemon stops rather than pretend",
    "E-SOCKET": "the daemon could not open its socket; it watches without one",
    "E-GIT": "git does not answer; new commits are not audited, or stray writes not seen, until it does",
    "E-THREAD": "a thread ended by an exception; what it watched is watched anew",
    "E-BUG": "a bug in shapeupd; the log row holds the report",
    "E-BREAKER": "a breaker of the run has tripped, so orders of this kind are refused until a person decides",
    "E-NOTIFY": "the machine's own notification command could not be run, or failed",
    "E-LIVENESS": "what the service manager's ping must prove is not proven; it will start the daemon anew",
    "E-SERVICE": "a systemd unit is in a state that install does not touch, or cannot be made",
    "E-NO-CONTRACT": "no scope contract says what the order may write",
    "E-LIVE-ORDER": "an order of this stem is live; it is never replaced",
    "E-T0": "an attempt could not be measured by itself: its contract is not trusted here, or cannot be read",
    "E-HOOKS": "a git hook or its folder is in a state that install does not touch",
    "E-SETTINGS": "a settings file names an unknown key or a value outside its range",
}
