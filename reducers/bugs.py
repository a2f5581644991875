"""Where the bugs of a FAIL go: which files they name, which scope owns each, and what a fix round must run again. Source: protocol §6.8, R-07 to R-09, W-56, W-57.

Bugs are untyped in a verdict; one that is no object is carried along as its text, owned by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from parsers.addresses import parse_address, scope_stem
from parsers.domain import Verdict
from parsers.envelopes import WorkOrder
from parsers.globs import matches
from reducers.board import use_case_id

Bug = Mapping[str, object]
IsFile = Callable[[str], bool]

MAX_LOCATION = 10_000  # characters of a location that are looked at
_START = r"(?<![^\s(,\[])(?:\./)*"
_PATH = re.compile(_START + r"(?P<path>[A-Za-z0-9_@][A-Za-z0-9_./-]*\.[A-Za-z][A-Za-z0-9]{0,5})")
_TOKEN = re.compile(_START + r"(?P<path>[^\s(),\[\]:]+)")


class ScopeArea(NamedTuple):
    """A scope as its contract draws it: its globs, and what it is made of."""

    scope_id: str
    allowed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    use_cases: tuple[str, ...] = ()


def _nothing_is(_: str) -> bool:
    return False


def verdict_bugs(verdict: Verdict | None, overturned: Collection[str] = frozenset()) -> tuple[Bug, ...]:
    """The bugs that a FAIL sends into the next round. `refuted` un-ticks boxes and takes back no bug (W-56); `overturned` are
    the ids and criteria that an independent look took back.
    """
    if verdict is None or verdict.overall != "FAIL":
        return ()
    bugs = tuple(bug if isinstance(bug, dict) else {"criterion": str(bug)} for bug in verdict.bugs)
    return tuple(bug for bug in bugs if not {str(bug.get("id")), str(bug.get("criterion"))} & set(overturned))


def bug_locations(bug: Bug, is_file: IsFile = _nothing_is) -> tuple[str, ...]:
    """The paths that the bug's `location` (else `file`) names, in that order. Source: protocol §6.8, W-57.

    `is_file`: whether a file of the repository has this path; with it a name without an ending (`Makefile:3`) counts too.
    """
    text = _text(bug.get("location")) or _text(bug.get("file"))
    return tuple(dict.fromkeys(path for _, path in sorted(_named(text[:MAX_LOCATION], is_file))))


def _named(text: str, is_file: IsFile) -> Iterator[tuple[int, str]]:
    """The paths with where they stand; a whole word that is a file wins over what looks like a path in it."""
    words = {found.start(): found["path"] for found in _TOKEN.finditer(text) if is_file(found["path"])}
    yield from words.items()
    yield from ((found.start(), found["path"]) for found in _PATH.finditer(text) if found.start() not in words)


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case list():
            return ",".join(item for item in value if isinstance(item, str))
    return ""


def elect_owner(path: str, scopes: Iterable[ScopeArea]) -> str | None:
    """The scope that owns the file: one that may write it, rather one that does not share it, the first by name. None: nobody."""
    allowed = [scope for scope in scopes if any(matches(glob, path) for glob in scope.allowed)]
    own = [scope for scope in allowed if not any(matches(glob, path) for glob in scope.shared)]
    return min((scope.scope_id for scope in own or allowed), default=None)


def bugs_for_scope(
    bugs: Iterable[Bug], scope_id: str, scopes: Sequence[ScopeArea], is_file: IsFile = _nothing_is
) -> tuple[dict[str, object], ...]:
    """What goes to this scope: its own bugs, and those that nobody owns, marked `unowned`. Source: protocol §6.8 step 4.

    Scope ids are compared as they stand in stems (ruling B6).
    """
    mine = scope_stem(scope_id)
    routed = []
    for bug in bugs:
        addressed = _text(bug.get("scope_id"))
        owners = {elect_owner(path, scopes) for path in bug_locations(bug, is_file)} - {None}
        if addressed:
            if scope_stem(addressed) == mine:
                routed.append(dict(bug))
        elif not owners:
            routed.append({**bug, "unowned": True})
        elif mine in {scope_stem(owner) for owner in owners if owner}:
            routed.append(dict(bug))
    return tuple(routed)


# --- the regression scope of a fix round -----------------------------------------------------------------------------


class RegressionScope(NamedTuple):
    """What round `round` must look at again: the tasks that it re-opened, and their use cases. Sorted."""

    round: int
    tasks: tuple[str, ...] = ()
    use_cases: tuple[str, ...] = ()


def regression_scope(
    round_: int,
    orders: Iterable[WorkOrder],
    use_cases_of: Callable[[str], Iterable[str]],
    reported: Mapping[str, Collection[str]],
) -> RegressionScope:
    """The tasks that the fix orders of the round re-open, and the use cases whose test surface is run again. Source: R-09, seed "Regression rule".

    `use_cases_of`: the use cases of a task on the board. `reported`: by order id, the tasks that its applied result spoke of;
    an order that is not among them re-opens all it carries. What is built for the first time re-opens nothing.
    """
    reopened: set[str] = set()
    use_cases: set[str] = set()
    for order in orders:
        if parse_address(order.order_id).round != round_ or not is_fix(order):
            continue
        for task in order.payload.tasks:
            if task.id in reported.get(order.order_id, (task.id,)):
                reopened.add(task.id)
                use_cases |= {use_case_id(ref) for ref in task.use_case_refs}
    for task_id in reopened:
        use_cases |= {use_case_id(ref) for ref in use_cases_of(task_id)}
    return RegressionScope(round_, tuple(sorted(reopened)), tuple(sorted(use_cases - {""})))


def is_fix(order: WorkOrder) -> bool:
    """Whether the order repairs what was built: it says so, or carries bugs."""
    return order.operation == "fix" or bool(order.payload.bugs)
