"""Which changes the live orders allow: the one judgement that every wall asks for. Pure. Source: design §4, protocol §3, rulings E, targets 13, 17.

In this order, for one path: nothing under `.shapeup/` is committed; a path that goes back to what was there before the
change passes; so does what passes by its content (hooks/specs.py) and what people may always write; then frozen, then
allowed and shared, then append_only, then outside. Light module: standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hooks import refusals
from hooks.glob_index import GlobIndex
from hooks.owners import may_write
from hooks.path_change import ABSENT_MODE, SYMLINK_MODE, Content, PathChange
from hooks.refusals import UNSTAGE
from hooks.verdict import Violation
from parsers.globs import folded, matches
from parsers.layout import LOCAL_ROOT, SHARED_ROOT, classify
from parsers.policy_file import Contract, Policy

if TYPE_CHECKING:
    from hooks.sections import Outline
    from hooks.specs import SpecVerdict


class SpecsJudge(Protocol):
    """hooks.specs.judge_specs: the rules over committed specs, and which paths pass by what they hold (E3)."""

    def __call__(self, changes: Sequence[PathChange], content: Content, policy: Policy) -> SpecVerdict: ...


def judge(
    changes: Iterable[PathChange],
    policy: Policy,
    content: Content,
    *,
    order_id: str | None = None,
    is_return: Callable[[PathChange], bool] = lambda change: False,
    allow_paths: tuple[str, ...] = (),
    specs: SpecsJudge | None = None,
    undo: str = UNSTAGE,
    on_warning: Callable[[Violation], object] = lambda warning: None,
) -> tuple[Violation, ...]:
    """What the changes break, in their order; what the whole commit breaks comes first. Empty: they are allowed.

    `order_id`: the one order that permits, from the trailer or SHAPEUP_ORDER; freezes of all live orders still bind.
    `is_return`: whether the new state equals what the commit's ancestor had (E15). `allow_paths`: globs that a person lets
    pass; whoever passes them records what they changed. `specs`: None takes hooks.specs. `undo`: how a path is taken
    out of the change, with `{path}` where it goes. `on_warning` is told what refuses nothing.
    """
    changed = tuple(changes)
    gate = gate_of(policy, order_id)
    specs_found = _judge_specs(changed, content, policy, specs)
    for warning in specs_found.warnings:
        on_warning(warning)
    broken = {violation.path for violation in specs_found.violations}
    broken -= {change.path for change in changed if change.path in broken and is_return(change)}
    found = [violation for violation in specs_found.violations if violation.path in broken]
    if gate.is_lost:
        found.append(refusals.unknown_order(order_id or ""))
    denied: list[Violation] = []
    for change in changed:
        if is_local(change.name):
            if change.new_mode != ABSENT_MODE:  # taking it out of git again is the cure
                found.append(refusals.local_path(change, undo))
        elif gate.constrains and change.path not in specs_found.passed and not is_return(change):
            violation = gate.judge_path(change, content, undo)
            if violation and not any(matches(glob, change.name) for glob in allow_paths):
                denied.append(violation)
    return _in_order(changed, found, gate.settle(denied))


def _in_order(changes: Sequence[PathChange], *found: Sequence[Violation]) -> tuple[Violation, ...]:
    places = {change.path: at for at, change in enumerate(changes)}
    return tuple(sorted(chain(*found), key=lambda violation: places.get(violation.path, -1)))


def requires_live_order(policy: Policy) -> bool:
    """Whether a commit needs a live order and there is none (`gate.no_live_order`, B2)."""
    is_required = policy.no_live_order == "deny" and policy.has_open_run
    return is_required and not any(not order.answered and not order.superseded for order in policy.contracts)


def is_local(path: str) -> bool:
    """Whether the path lies in the LOCAL tree, or would on a file system that folds case."""
    return any(form.split("/", 1)[0] == LOCAL_ROOT for form in folded(path))


def split_section(glob: str) -> tuple[str, str | None]:
    """The glob of the file and the heading of its section; None where the glob names no section. Source: W-09."""
    path, anchor, heading = glob.partition("#")
    return path, heading.strip() if anchor else None


class _Found(NamedTuple):
    """What the rules over specs found; `passed` are the paths that pass by what they hold."""

    violations: tuple[Violation, ...] = ()
    passed: frozenset[bytes] = frozenset()
    warnings: tuple[Violation, ...] = ()


def _judge_specs(changes: Sequence[PathChange], content: Content, policy: Policy, specs: SpecsJudge | None) -> _Found:
    """The rules over specs are loaded for a spec alone."""
    if not any(change.path.startswith(f"{SHARED_ROOT}/".encode()) for change in changes):
        return _Found()
    if specs is None:
        from hooks.specs import judge_specs

        specs = judge_specs
    return _Found(*specs(changes, content, policy))


class Grant(NamedTuple):
    """One glob of one contract: how it is spelled there, the section it speaks of, and whether that may only grow."""

    contract: Contract
    glob: str
    heading: str | None
    field: str  # the list of the contract that holds it

    @property
    def grows(self) -> bool:
        return self.field == "append_only"

    @property
    def is_whole(self) -> bool:
        """Whether it opens the file altogether."""
        return self.heading is None and not self.grows


class Freeze(NamedTuple):
    """One frozen glob of one contract, and its place among all of them."""

    place: int
    order_id: str
    glob: str
    heading: str | None


def grants_of(contract: Contract) -> Iterator[tuple[str, Grant]]:
    """What a contract opens, by the glob of the path. A `#` may also be part of a file's name."""
    for field in ("allowed", "shared", "append_only"):
        for glob in getattr(contract, field):
            yield glob, Grant(contract, glob, None, field)
            if "#" in glob:
                path, heading = split_section(glob)
                yield path, Grant(contract, glob, heading, field)


def freezes_of(contract: Contract) -> Iterator[tuple[str, str, str | None]]:
    """What a contract freezes: the glob of the path, as the contract spells it, and the section it speaks of."""
    for glob in contract.frozen:
        path, heading = split_section(glob)
        yield path, glob, heading
        if "#" in glob:
            yield glob, glob, None


class FreezeIndex:
    """All frozen globs of some contracts."""

    def __init__(self, contracts: Iterable[Contract]) -> None:
        rows = [(row, contract.order_id) for contract in contracts for row in freezes_of(contract)]
        placed = [(path, Freeze(at, name, glob, heading)) for at, ((path, glob, heading), name) in enumerate(rows)]
        self._exact = GlobIndex(placed)
        self._folded = GlobIndex((form, freeze) for path, freeze in placed for form in set(folded(path)))

    def find(self, path: str) -> list[Freeze]:
        """Those that match the path, in the order of the contracts."""
        return sorted(self._exact.find(path)) if self._exact else []

    def collision(self, path: str) -> Freeze | None:
        """The first that does not match the path, yet would where case and composition are folded."""
        if not self._folded:
            return None
        exact = {freeze.place for freeze in self._exact.find(path)}
        hits = {freeze for form in folded(path) for freeze in self._folded.find(form) if freeze.place not in exact}
        return min(hits, default=None)


class _Texts:
    """Both sides of one change, read and taken apart once, when a rule first asks. A symlink has no text."""

    def __init__(self, change: PathChange, content: Content) -> None:
        self._change, self._content = change, content

    @cached_property
    def before(self) -> bytes | None:
        return None if self._change.old_mode == SYMLINK_MODE else self._content.before(self._change)

    @cached_property
    def after(self) -> bytes | None:
        return None if self._change.new_mode == SYMLINK_MODE else self._content.after(self._change)

    @cached_property
    def outlines(self) -> tuple[Outline, Outline]:
        from hooks.sections import read_outline  # few changes need it, and it brings the reading of markdown

        return read_outline(self.before), read_outline(self.after)

    def breaks(self, freeze: Freeze) -> bool:
        """Whether the change touches what is frozen."""
        if freeze.heading is None:
            return True
        from hooks.sections import is_kept

        return not is_kept(*self.outlines, freeze.heading)

    def stays_within(self, grants: Sequence[Grant]) -> bool:
        """Whether the change does no more than grants of sections and of growth open together."""
        from hooks.sections import is_growth, only_grows

        if self.after is None:
            return False
        if any(grant.grows and grant.heading is None for grant in grants) and only_grows(self.before, self.after):
            return True
        free = {grant.heading for grant in grants if grant.heading is not None and not grant.grows}
        growing = {grant.heading for grant in grants if grant.heading is not None} - free
        return is_growth(*self.outlines, growing, free)


class Gate:
    """A policy made ready to be asked about many paths, under one order or under all."""

    def __init__(self, policy: Policy, order_id: str | None) -> None:
        self._policy = policy
        self._tied = next((order for order in policy.contracts if order.order_id == order_id), None)
        self.is_lost = order_id is not None and self._tied is None
        self.needs_order = requires_live_order(policy) and order_id is None
        is_narrow = policy.is_constraining or self.needs_order or (self._tied is not None and has_globs(self._tied))
        self.constrains = is_narrow and not self.is_lost
        self._permitting = [order for order in policy.contracts if order.permits and order_id in (None, order.order_id)]
        self._human = GlobIndex((glob, glob) for glob in policy.human_globs)
        self.grants = GlobIndex(row for order in self._permitting for row in grants_of(order))
        self.freezes = FreezeIndex(order for order in policy.contracts if order.freezes or order is self._tied)

    @cached_property
    def _all_grants(self) -> GlobIndex[Grant]:
        return GlobIndex(row for order in self._policy.contracts if order.permits for row in grants_of(order))

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(order.order_id for order in self._permitting if has_globs(order))

    def human_glob(self, path: str) -> str | None:
        """The glob by which people may always write there; None where there is none."""
        return next(self._human.find(path), None)

    def judge_path(self, change: PathChange, content: Content, undo: str) -> Violation | None:
        """Rules 3 to 7 on one path."""
        path, texts, is_there = change.name, _Texts(change, content), change.new_mode != ABSENT_MODE
        if self.human_glob(path) is not None:
            return None
        for freeze in self.freezes.find(path):
            if texts.breaks(freeze):
                return refusals.frozen(change, freeze.order_id, freeze.glob, freeze.heading, undo)
        if is_there and (hit := self.freezes.collision(path)):
            return refusals.collision(change, hit.order_id, hit.glob, undo)
        grants = list(self.grants.find(path))
        if not grants:
            return self.outside(change, undo)
        kind = kind_of(path)
        owned = [grant for grant in grants if may_write(kind, grant.contract.operation)]
        if not owned:
            return refusals.sole_writer(change, grants[0].contract, kind, undo)
        if is_there and (meant := meant_spec(path)):
            return refusals.disguised(change, meant, undo)
        whole = next((grant for grant in owned if grant.is_whole), None)
        if whole is not None:
            return _judge_link(change, content, whole, undo)
        return None if texts.stays_within(owned) else _overstepped(change, owned, undo)

    def settle(self, denied: Sequence[Violation]) -> Sequence[Violation]:
        """The refusals; where a live order is required, what lies outside of answered ones is refused once for all."""
        if not self.needs_order or all(violation.rule != "OUTSIDE" for violation in denied):
            return denied
        return [refusals.no_live_order(), *(violation for violation in denied if violation.rule != "OUTSIDE")]

    def outside(self, change: PathChange, undo: str) -> Violation:
        if self._tied is not None:
            other = next((g for g in self._all_grants.find(change.name) if g.contract is not self._tied), None)
            why = refusals.tied_words(self._tied, other and (other.contract.order_id, other.glob))
            return refusals.outside(change, self._tied.order_id, why, undo)
        near = self.grants.closest(change.name)
        why = refusals.nearest_words(near and (near.contract.order_id, near.glob), self._names)
        return refusals.outside(change, None, why, undo)


def has_globs(order: Contract) -> bool:
    """Whether the order names anything at all; one that does not constrains nothing (protocol §3.3)."""
    return bool(order.allowed or order.shared or order.append_only or order.frozen)


def kind_of(path: str) -> str | None:
    """The kind of artifact that lies there; None where the layout knows none."""
    place = classify(path)
    return place.kind if place else None


def meant_spec(path: str) -> str | None:
    """What the path is where case is folded, if that is a file with an owner and the path is not spelled like one."""
    if path.isascii() and (path.islower() or kind_of(path) is not None):
        return None
    for form in folded(path):
        is_shared = form.startswith(f"{SHARED_ROOT}/") and not path.startswith(f"{SHARED_ROOT}/")
        kind = kind_of(form)
        if form != path and (is_shared or (kind_of(path) is None and kind is not None and not may_write(kind, ""))):
            return form
    return None


def leaves_repository(path: bytes, target: bytes) -> bool:
    """Whether a symlink at that path with that target is absolute or leads above the repository's top, by its text."""
    if target.startswith(b"/"):
        return True
    depth = path.count(b"/")
    for part in target.split(b"/"):
        depth += {b"": 0, b".": 0, b"..": -1}.get(part, 1)
        if depth < 0:
            return True
    return False


def _judge_link(change: PathChange, content: Content, grant: Grant, undo: str) -> Violation | None:
    target = content.after(change) if change.new_mode == SYMLINK_MODE else None
    if target is None or not leaves_repository(change.path, target):
        return None
    return refusals.symlink(change, grant.contract.order_id, target, undo)


def _overstepped(change: PathChange, grants: Sequence[Grant], undo: str) -> Violation:
    order_id = grants[0].contract.order_id
    headings = [grant.heading for grant in grants if grant.heading is not None]
    if any(grant.grows for grant in grants):
        return refusals.append_only(change, order_id, headings, undo)
    return refusals.outside_sections(change, order_id, headings, undo)


_KEPT = 16  # gates; a range of commits is judged by few policies, and each commit under few orders
_gates: dict[tuple[int, str | None], tuple[Policy, Gate]] = {}


def gate_of(policy: Policy, order_id: str | None = None) -> Gate:
    """The gate of this very policy object: a thousand commits are judged by one, and hashing it would cost more."""
    key = (id(policy), order_id)
    known = _gates.get(key)  # another thread may clear them meanwhile
    if known is None:
        if len(_gates) >= _KEPT:
            _gates.clear()
        known = _gates[key] = (policy, Gate(policy, order_id))
    return known[1]
