"""A scope contract as T0 takes it: what to run, what the scope may write, which files grade it. Source: protocol §2.7, §5.2, §6.1, rulings B6, G5.

Light module: standard library and light parsers only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from parsers.addresses import scope_stem
from parsers.contracts import ParsedContract
from parsers.faults import Fault
from parsers.layout import stem_at
from parsers.trials import SCOPE_ID

FIXTURES = "e2e_verification_fixtures"
PROBE = "db_probe"
GRADERS = "grader_files"

# A comment that says which other status is meant; the `#` of `$#` or of a word begins none.
_DECLARED = re.compile(r"(?:\A|[\s;&|(])#[^#]*\bexit\s+([1-9][0-9]*)\b", re.IGNORECASE | re.ASCII)
_SHOWN = 60


class ScopeContract(NamedTuple):
    """What T0 takes from one contract. `fixtures` empty: the scope can never be green. `db_probe` None: there is none."""

    scope_id: str
    path: str
    fixtures: tuple[str, ...] = ()
    db_probe: str | None = None
    allowed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    grader_files: tuple[str, ...] = ()

    @property
    def commands(self) -> tuple[str, ...]:
        """Everything that is run, in its order."""
        return self.fixtures if self.db_probe is None else (*self.fixtures, self.db_probe)


def take_scope_contract(contract: ParsedContract, path: str) -> tuple[ScopeContract | None, tuple[Fault, ...]]:
    """The contract in the file at `path`, or the faults for which nothing of it may be run.

    Whether the text read as a whole, the caller has asked before: a field that did not read is absent here.
    """
    faults = tuple(_faults(contract, path))
    if faults:
        return None, faults
    probe = contract.keys.get(PROBE)
    return (
        ScopeContract(
            _scope_id(contract, path),
            path,
            contract.texts(FIXTURES),
            probe if isinstance(probe, str) else None,
            contract.texts("allowed_file_substrate"),
            contract.texts("shared_substrate"),
            contract.texts(GRADERS),
        ),
        (),
    )


def _scope_id(contract: ParsedContract, path: str) -> str:
    value = contract.keys.get("scope_id")
    return str(value) if value is not None else stem_at(path)


def _faults(contract: ParsedContract, path: str) -> Iterator[Fault]:
    scope_id, stem = _scope_id(contract, path), stem_at(path)
    where = f"{path}:{contract.lines['scope_id']}" if "scope_id" in contract.lines else path
    if not SCOPE_ID.match(scope_id):
        why = "trials, trees and orders are named after it"
        yield Fault("E-ID", where, f"scope_id {scope_id[:_SHOWN]!r} is no scope id", why, f"write `scope_id: {stem}`")
    elif scope_stem(scope_id) != scope_stem(stem):
        why = "orders find the contract by its file name, and trials by its scope_id"
        yield Fault("E-STEM", where, f"scope_id {scope_id!r} is not the file's name", why, f"write `scope_id: {stem}`")
    if any("\0" in text for field in (FIXTURES, PROBE) for text in contract.texts(field)):
        yield Fault(
            "E-NUL", path, "a command holds a NUL character", "no shell could be given it", "remove the character"
        )
    for field in (FIXTURES, PROBE, GRADERS):
        value = contract.keys.get(field)
        is_list = isinstance(value, tuple) and field != PROBE
        if value is not None and not isinstance(value, str) and not is_list:
            wanted = "a command" if field == PROBE else f"a list: `{field}: [a, b]`, or one indented `- item` a line"
            what = f"`{field}` is {_kind(value)}"
            yield Fault(
                "E-SCHEMA", f"{path}:{contract.lines[field]}", what, "T0 runs what stands there", f"make it {wanted}"
            )


def _kind(value: object) -> str:
    return "a list" if isinstance(value, tuple) else "true or false" if isinstance(value, bool) else "a number"


def declared_exit(command: str) -> int | None:
    """The status other than 0 that a comment in the command says is meant (`# exit 2`); None where none does. Source: T0-UNPASSABLE, §5.2."""
    found = _DECLARED.search(command)
    return int(found[1][:9]) if found else None


def contract_warnings(contract: ScopeContract) -> tuple[Fault, ...]:
    """Why the scope can never be green, whatever is built. Source: §5.2 T0-UNVERIFIABLE, T0-UNPASSABLE."""
    found = []
    if not contract.fixtures:
        why = "an absence is never a pass: without a command that passes, the scope stays red"
        fix = f"write `{FIXTURES}: [command]` in the frontmatter"
        found.append(Fault("T0-UNVERIFIABLE", contract.path, "the scope has no fixture", why, fix))
    for command in contract.commands:
        if (status := declared_exit(command)) is not None:
            what = f"{command[:_SHOWN]!r} is meant to end with {status}"
            why = "only 0 passes, so this command stays red"
            fix = f"let the command itself test the status: `! command`, or `command; test $? -eq {status}`"
            found.append(Fault("T0-UNPASSABLE", contract.path, what, why, fix))
    return tuple(found)
