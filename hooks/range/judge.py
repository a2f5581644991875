"""Judges each commit of a range: by the order it names, else by what was recorded of it, else by nothing. Source: rulings E5, E8, E15, E16.

The rules over specs and R-37 hold for every commit. A merge is judged by what differs from every parent.
Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hooks.objects import Objects
from hooks.path_change import ABSENT_MODE, GITLINK_MODE, PathChange
from hooks.range.commits import Commit
from hooks.range.plain_paths import PlainPaths
from parsers.policy_file import Contract, Policy
from parsers.trailers import NO_TRAILERS, Trailers, parse_trailers

if TYPE_CHECKING:
    from hooks.verdict import Violation

IsReturn = Callable[[PathChange], bool]


class Unresolved(NamedTuple):
    """Why a trailer stands for no contract, and the way forward."""

    what: str
    why: str
    fix: str


class Recorded(NamedTuple):
    """The last recorded verdict on a commit: accepted, audited, bypassed or overridden."""

    verdict: str
    rules: tuple[str, ...]


class Orders(Protocol):
    """Where the contract of a trailer's order is found."""

    def contract_for(self, commit: Commit, order_id: str, operation: str) -> Contract | Unresolved:
        """The contract of the order that the commit names; `operation` empty where it names none."""


class Terms(NamedTuple):
    """What the settings that govern a ref ask of its commits."""

    human_globs: tuple[str, ...] = ()
    tier_direction: str = "deny"
    accepts_overrides: bool = False  # a Shapeup-Override trailer lets a commit pass
    needs_trailer: bool = False  # gate.require_trailer matches the ref


class Judged(NamedTuple):
    """One commit of a range and what it breaks; nothing: it is allowed."""

    commit: Commit
    violations: tuple[Violation, ...]


class _Ground(NamedTuple):
    """By what one commit is judged. `is_judged` False: nothing governs it, so what it changes may have slipped in (E15)."""

    policy: Policy
    plain: PlainPaths | None  # what the policy permits beyond doubt, where that was worked out
    order_id: str | None = None
    is_judged: bool = True
    unresolved: tuple[str, Unresolved] | None = None  # the order it names, and why that cannot be found
    is_missing: bool = False  # it must name an order and does not
    is_overridden: bool = False  # a person let it pass, whatever it breaks
    is_override: bool = False  # it bears the trailer of an override that does not count here
    bypass: Recorded | None = None  # where that was recorded

    @property
    def is_plain(self) -> bool:
        """Whether only its paths decide."""
        return self.unresolved is None and not self.is_missing and self.bypass is None


_ALWAYS = "R-37"  # no override brings the LOCAL tree to a remote


class RangeJudge:
    """Judges the commits of one range, the oldest first.

    `record`: verdicts of this machine by commit. `at_hand`: the policy that governs a commit of which nothing was recorded
    and that names no order; None: nothing does. `allow_paths`: what the user lets pass on this machine.
    """

    def __init__(
        self,
        commits: Iterable[Commit],
        orders: Orders,
        objects: Objects,
        record: Mapping[str, Recorded] | None = None,
        at_hand: Callable[[Commit], Policy | None] = lambda commit: None,
        allow_paths: tuple[str, ...] = (),
    ) -> None:
        self._commits = {commit.id: commit for commit in commits}
        self._tips = frozenset(self._commits) - {
            parent for commit in self._commits.values() for parent in commit.parents
        }
        self._orders, self._objects = orders, objects
        self._record, self._at_hand, self._allow_paths = record or {}, at_hand, allow_paths
        self._content = ObjectContent(objects)
        self._trailers: dict[bytes, Trailers] = {}
        self._policies: dict[tuple[Contract | None, Terms], tuple[Policy, PlainPaths]] = {}

    def judge_all(self, terms: Terms, chosen: Collection[str] | None = None) -> tuple[Judged, ...]:
        """Every commit (of the chosen ones) that breaks something, the oldest first."""
        grounds = {
            commit.id: self._ground(commit, terms)
            for commit in reversed(self._commits.values())
            if chosen is None or commit.id in chosen
        }
        found = {name: broken for name, ground in grounds.items() if (broken := self._look(name, ground))}
        if any(violation.path for broken in found.values() for violation in broken):
            found = self._without_returns(grounds, found)
        return tuple(Judged(self._commits[name], found[name]) for name in grounds if name in found)

    def _without_returns(
        self, grounds: Mapping[str, _Ground], found: Mapping[str, tuple[Violation, ...]]
    ) -> dict[str, tuple[Violation, ...]]:
        """The broken commits judged once more, now that there is something a change may take back (E15)."""
        from hooks.range.ways_back import WaysBack  # only where something is refused

        ways = WaysBack(self._commits.values(), self._objects, self._record, found)
        left = {}
        for name, ground in grounds.items():
            commit = self._commits[name]
            broken = found.get(name, ())
            if any(violation.path for violation in broken):
                broken = self._break(name, ground, ways.is_return(commit))
            if broken:
                left[name] = broken
            ways.pass_by(commit, is_governed=ground.is_judged and not broken)
        return left

    def _look(self, name: str, ground: _Ground) -> tuple[Violation, ...]:
        """What a commit breaks, as if nothing were taken back by it; what was recorded, where the policy has moved on."""
        commit = self._commits[name]
        if ground.plain is not None and ground.is_plain and all(map(ground.plain.permit, commit.changes)):
            return ()
        found = self._break(name, ground, None)
        if ground.bypass is None or found:
            return found
        from hooks.range.refusals import bypassed

        return (bypassed(commit, ground.bypass),)

    def _ground(self, commit: Commit, terms: Terms) -> _Ground:
        named = read_trailers(commit, self._trailers)
        recorded = self._record.get(commit.id)
        free = self._policy(None, terms)
        if (named.override and terms.accepts_overrides) or (recorded and recorded.verdict == "overridden"):
            return _Ground(*free, is_overridden=True)
        is_override = bool(named.override)
        if named.order_id:
            contract = self._orders.contract_for(commit, named.order_id, named.operation or "")
            if isinstance(contract, Unresolved):
                return _Ground(*free, unresolved=(named.order_id, contract), is_override=is_override)
            return _Ground(*self._policy(contract, terms), contract.order_id, is_override=is_override)
        if recorded is not None and recorded.verdict != "bypassed":
            return _Ground(*free)
        if recorded is None and terms.needs_trailer and (commit.changes or len(commit.parents) < 2):
            return _Ground(*free, is_missing=True, is_override=is_override)
        at_hand = self._at_hand(commit)
        ground = _Ground(*free) if at_hand is None else _Ground(at_hand, None)
        is_judged = at_hand is not None or recorded is not None
        return ground._replace(is_judged=is_judged, is_override=is_override, bypass=recorded)

    def _break(self, name: str, ground: _Ground, is_return: IsReturn | None) -> tuple[Violation, ...]:
        """What a commit breaks; for a merge, what it breaks against every parent."""
        commit = self._commits[name]
        first, *others = commit.views()
        found = self._break_from(commit, first, ground, is_return)
        for view in others:
            if not found:
                break
            other = set(map(_claim, self._break_from(commit, view, ground, is_return)))
            found = tuple(violation for violation in found if _claim(violation) in other)
        return found if ground.is_plain and not (found and ground.is_override) else (*_whole(ground, found), *found)

    def _break_from(
        self, commit: Commit, changes: tuple[PathChange, ...], ground: _Ground, is_return: IsReturn | None
    ) -> tuple[Violation, ...]:
        from hooks.policy import judge  # a third of all imports, and most ranges break nothing
        from hooks.range.refusals import way_forward

        found = judge(
            changes,
            ground.policy,
            self._content,
            order_id=ground.order_id,
            undo=way_forward(commit, is_tip=commit.id in self._tips),
            is_return=is_return or _is_no_return,
            allow_paths=self._allow_paths,
        )
        return tuple(one for one in found if one.rule == _ALWAYS) if ground.is_overridden else found

    def _policy(self, contract: Contract | None, terms: Terms) -> tuple[Policy, PlainPaths]:
        """The order as it was while it was live, alone."""
        key = (contract, terms)
        if key not in self._policies:
            live = () if contract is None else (contract._replace(answered=False, superseded=False),)
            policy = Policy("", live, terms.human_globs, tier_direction=terms.tier_direction)
            self._policies[key] = (policy, PlainPaths(policy))
        return self._policies[key]


def read_trailers(commit: Commit, known: dict[bytes, Trailers] | None = None) -> Trailers:
    """What the commit says of itself. `known`: last paragraphs that were read before; those of a range are much alike."""
    message = commit.message
    if b"shapeup-" not in message.lower():
        return NO_TRAILERS
    paragraph = message.rstrip().rpartition(b"\n\n")[2]
    if known is None or b"#" in message:  # a comment line belongs to no paragraph
        return parse_trailers(message)
    if paragraph not in known:
        known[paragraph] = parse_trailers(paragraph)
    return known[paragraph]


class ObjectContent:
    """Both sides of a committed change, by their object ids."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def before(self, change: PathChange) -> bytes | None:
        """The file's bytes before; None where nothing was, or no file. Raises GitFailed where the blob is not here."""
        return self._file(change.old_mode, change.old_blob)

    def after(self, change: PathChange) -> bytes | None:
        """The file's bytes after; None where nothing is, or no file. Raises GitFailed where the blob is not here."""
        return self._file(change.new_mode, change.new_blob)

    def _file(self, mode: str, blob: str) -> bytes | None:
        if mode in (ABSENT_MODE, GITLINK_MODE):
            return None
        return self._objects.own_blob(blob)


def _is_no_return(change: PathChange) -> bool:
    return False


def _whole(ground: _Ground, found: tuple[Violation, ...]) -> tuple[Violation, ...]:
    """What is wrong with the commit whatever it changes."""
    from hooks.range.refusals import missing, not_here, unknown

    told = [unknown(*ground.unresolved)] if ground.unresolved else []
    told += [missing()] if ground.is_missing else []
    return (*told, not_here()) if ground.is_override and (told or found) else tuple(told)


def _claim(violation: Violation) -> tuple[str, bytes, str]:
    """What makes two violations the same one: of the tier rule, the line as well."""
    return violation.rule, violation.path, violation.what if violation.rule == "TIER-DIRECTION" else ""
