"""What a commit does to the committed specs, whoever makes it: contracts, tier direction, ids, hill shards, round ledgers.

Source: rulings E3, E9, protocol §5.2, §10.5, R-20, R-36, R-37, R-38. Pure: the bytes come from the caller. Standard library only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from hooks.path_change import ABSENT_MODE, GITLINK_MODE, SYMLINK_MODE, Content, PathChange
from hooks.spec_rules.frozen_ids import PARSERS, IdChange, deleted_contract, judge_ids
from hooks.spec_rules.ledger_growth import lost_line
from hooks.spec_rules.readable_contract import RULE as UNREADABLE
from hooks.spec_rules.readable_contract import judge_readable, printable, unreadable
from hooks.verdict import Violation, quote_path
from parsers.contracts import TABLE_FIELDS, parse_contract
from parsers.frontmatter import Frontmatter, parse_frontmatter, scalar_text
from parsers.hill_shards import PHASES, UNKNOWN, HillShard, parse_hill_shard
from parsers.layout import SHARED_ROOT, Place, classify
from parsers.markdown import decode
from parsers.policy_file import Policy
from parsers.tier_direction import READ_ENDINGS, TierBreak, added_breaks, tier_breaks

LARGEST = 1 << 20  # bytes of a file that a rule reads as a whole
SHOWN_LINES = 50  # lines that one file is told about one by one

_PREFIX = f"{SHARED_ROOT}/".encode()
_SPEC_KINDS = ("spec", "use-case")
_RULE_OF = dict.fromkeys(TABLE_FIELDS, UNREADABLE) | dict.fromkeys(PARSERS, "R-38") | {"round-ledger": "R-20"}
_OWNED = ("hill-shard", "hill-chart", "round-ledger")  # kinds that pass by their content (E3)
_TIER_WHY = "board ids and local files differ on every machine; whoever clones this cannot follow them"

# (slug, shard) -> whether the shard is what the facts derive.
IsDerived = Callable[[str, HillShard], bool]
ScopeRow = Mapping[str, str]  # rule, what, why, fix
# (slug, path of a contract) -> its reds among the other contracts, use cases, requirements and files of the tree. Source: E9.
RedsOf = Callable[[str, str], Sequence[ScopeRow]]


class SpecVerdict(NamedTuple):
    """`passed`: paths whose content lets them into any commit (E3). `warnings`: to be told, never to refuse."""

    violations: tuple[Violation, ...] = ()
    passed: frozenset[bytes] = frozenset()
    warnings: tuple[Violation, ...] = ()


def form_is_enough(slug: str, shard: HillShard) -> bool:
    """Any shard of the right form: how a server judges, which has no local trace to derive from (E3)."""
    return True


def alone(slug: str, path: str) -> Sequence[ScopeRow]:
    """No reds beside those that a contract has by itself: how it is judged where its neighbours are not known."""
    return ()


class _Spec(NamedTuple):
    """One changed path under `shapeup/` with both sides; None where there is no file. `place` None: unknown to the layout."""

    change: PathChange
    place: Place | None
    before: bytes | None
    after: bytes | None

    @property
    def kind(self) -> str:
        return self.place.kind if self.place else ""

    @property
    def slug(self) -> str:
        return (self.place.slug if self.place else None) or ""

    @property
    def is_file(self) -> bool:
        return self.change.new_mode not in (ABSENT_MODE, SYMLINK_MODE, GITLINK_MODE)

    @property
    def is_mode_change(self) -> bool:
        """Whether its bytes are what they were, so that nothing in it is anybody's doing."""
        return self.change.status == "M" and self.after is not None and self.before == self.after


def judge_specs(
    changes: Sequence[PathChange],
    content: Content,
    policy: Policy,
    is_derived: IsDerived = form_is_enough,
    reds_of: RedsOf = alone,
) -> SpecVerdict:
    """All findings on the changed files under `shapeup/`, of any slug. The work grows with the bytes of those files alone."""
    read = (_read(change, content) for change in changes if change.path.startswith(_PREFIX))
    specs = [spec for spec in read if spec and not spec.is_mode_change]
    violations: list[Violation] = []
    passed: set[bytes] = set()
    for spec in specs:
        found = list(_judge_alone(spec, is_derived))
        if spec.kind == "scope-contract" and spec.is_file and not found:
            found = [_red(spec, row) for row in reds_of(spec.slug, spec.change.name)]
        violations += found
        if spec.kind in _OWNED and spec.is_file and not found:
            passed.add(spec.change.path)
    violations += judge_ids([_id_change(spec) for spec in specs if _defines_ids(spec)])
    directed = _judge_tier(specs)
    warnings = [_not_compared(spec) for spec in specs if spec.kind in PARSERS and len(spec.before or b"") > LARGEST]
    (warnings if policy.tier_direction == "warn" else violations).extend(directed)
    return SpecVerdict(tuple(violations), frozenset(passed), tuple(warnings))


def _red(spec: _Spec, row: ScopeRow) -> Violation:
    """What a contract breaks together with its neighbours."""
    what, why, fix = (printable(row[key]) for key in ("what", "why", "fix"))
    return Violation(row["rule"], spec.change.path, None, what, why, fix)


def _read(change: PathChange, content: Content) -> _Spec | None:
    """The change with its bytes; None where no rule reads them (an image may be any size)."""
    place = classify(change.name)
    is_judged = place is not None and (place.kind in _RULE_OF or place.kind in _OWNED)
    if not (is_judged or _is_text(change)):
        return None
    return _Spec(change, place, content.before(change), content.after(change))


def _is_text(change: PathChange) -> bool:
    """Whether the lint walks it for lines: a text by its ending, or a link, whose target is its text."""
    return change.name.lower().endswith(READ_ENDINGS) or change.new_mode == SYMLINK_MODE


def _judge_alone(spec: _Spec, is_derived: IsDerived) -> Iterator[Violation]:
    """What the file breaks by itself, ids and tier direction apart."""
    rule = _RULE_OF.get(spec.kind)
    if spec.is_file and rule and len(spec.after or b"") > LARGEST:
        yield _too_large(spec, rule)
    elif spec.kind in TABLE_FIELDS:
        yield from _judge_contract(spec)
    elif spec.kind == "hill-shard" and spec.change.new_mode != ABSENT_MODE:
        yield from _judge_shard(spec, is_derived)
    elif spec.kind == "round-ledger":
        yield from _judge_ledger(spec)


def _too_large(spec: _Spec, rule: str) -> Violation:
    what = f"the file has {len(spec.after or b'')} bytes and cannot be judged; the limit is {LARGEST}"
    why = "the gate reads such a file as a whole before it lets it in"
    return Violation(
        rule, spec.change.path, None, what, why, "split the file, or move what is not part of it elsewhere"
    )


def _judge_contract(spec: _Spec) -> Iterator[Violation]:
    path, after = spec.change.path, spec.after or b""
    if spec.kind == "scope-contract" and spec.before and spec.before.strip():
        if not spec.is_file:
            yield deleted_contract(path, "is deleted" if spec.change.new_mode == ABSENT_MODE else "is no file any more")
            return
        if not after.strip():
            yield deleted_contract(path, "is emptied")
            return
    if spec.change.new_mode == ABSENT_MODE:
        return
    if not spec.is_file or spec.after is None:
        yield unreadable(path, "no regular file stands here", "commit the contract itself, as a file")
        return
    text = decode(after)
    contract = parse_contract(spec.kind, text, spec.change.name)
    yield from judge_readable(path, text, contract)
    phase = contract.keys.get("hill_phase")
    if spec.kind == "scope-contract" and phase not in (None, UNKNOWN):
        what = f"line {contract.lines['hill_phase']}: hill_phase is {printable(scalar_text(phase))}"
        why = f"the hill is derived from evidence; a contract only ever says {UNKNOWN}"
        yield Violation("R-36", path, None, what, why, f"write `hill_phase: {UNKNOWN}`")


def _judge_shard(spec: _Spec, is_derived: IsDerived) -> Iterator[Violation]:
    stem = (spec.place.stem if spec.place else None) or ""
    shard = parse_hill_shard(spec.after or b"") if spec.is_file else None
    if shard is None or shard.scope_id != stem:
        scope = printable(stem)
        what = "a hill shard is two lines, the scope it is named after and a phase, and this is not"
        fix = f"write `scope_id: {scope}` and `phase: P`, a line feed behind each, P one of {', '.join(PHASES)}"
    elif not is_derived(spec.slug, shard):
        what = f"the phase {shard.phase} is not what the evidence derives"
        fix = "take the shard out of the commit: `git restore --staged` it, shapeupd writes it"
    else:
        return
    why = "a hill position is derived from evidence, never claimed"
    yield Violation("R-36", spec.change.path, None, what, why, fix)


def _judge_ledger(spec: _Spec) -> Iterator[Violation]:
    before = spec.before or b""
    if not before:
        return
    if not spec.is_file or spec.after is None:
        lost: str | None = "the round ledger is taken away"
    elif len(before) > LARGEST:
        lost = f"the file had {len(before)} bytes and has fewer now"
    else:
        lost = lost_line(before, spec.after)
    if lost:
        why = "the round ledger is the committed record of what people answered, and ESC ids are positions in it"
        fix = "restore the older lines and add yours behind them; a new row supersedes an old one"
        yield Violation("R-20", spec.change.path, None, lost, why, fix)


def _defines_ids(spec: _Spec) -> bool:
    return spec.kind in PARSERS and max(len(spec.before or b""), len(spec.after or b"")) <= LARGEST


def _id_change(spec: _Spec) -> IdChange:
    after = spec.after or b"" if spec.is_file else b""
    return IdChange(spec.change.path, spec.kind, spec.slug, decode(spec.before or b""), decode(after))


def _not_compared(spec: _Spec) -> Violation:
    what = f"its ids were not compared: the older file is larger than {LARGEST} bytes"
    return Violation("R-38", spec.change.path, None, what, "the gate stays quick", "compare them by hand")


def _judge_tier(specs: Sequence[_Spec]) -> list[Violation]:
    """TIER-DIRECTION on new lines: those that only moved, within their file or out of one that is deleted, are not new."""
    moved: Counter[tuple[str, bytes]] = Counter()
    if any(spec.change.status == "A" for spec in specs):
        gone = (spec for spec in specs if spec.change.new_mode == ABSENT_MODE)
        moved.update((old.kind, old.text) for spec in gone for old in _breaks(spec, spec.before))
    directed: list[Violation] = []
    for spec in specs:
        is_new = spec.change.status == "A"
        found = (one for one in _new_breaks(spec) if not (is_new and moved[one.kind, one.text]))
        told = sorted(islice(found, SHOWN_LINES), key=lambda one: one.line)
        directed += (_tier_violation(spec, one) for one in told)
        if more := next(found, None):
            what = f"line {more.line}: more lines like the {SHOWN_LINES} that are told"
            fix = "reword them in the same way"
            directed.append(Violation("TIER-DIRECTION", spec.change.path, None, what, _TIER_WHY, fix))
        if spec.kind == "scope-contract" and spec.is_file:
            directed += _judge_tasks_key(spec)
    return directed


def _new_breaks(spec: _Spec) -> Iterator[TierBreak]:
    if spec.change.new_mode == ABSENT_MODE:
        return iter(())
    return added_breaks(_breaks(spec, spec.after), _breaks(spec, spec.before))


def _breaks(spec: _Spec, data: bytes | None) -> Iterator[TierBreak]:
    """The breaks of one side of a text file, or of a link's target. No SHARED file is exempt (§1.1), the knowledge base included."""
    return tier_breaks(data, is_spec=spec.kind in _SPEC_KINDS) if data and _is_text(spec.change) else iter(())


def _tier_violation(spec: _Spec, found: TierBreak) -> Violation:
    named = quote_path(found.named[:80])
    match found.kind:
        case "board-id":
            what, fix = f"names board id {named}", "name the scope or the use case instead"
        case "task-link":
            what, fix = f"links to {named}", "link to the use case instead"
        case _:
            what, fix = f"names {named} of the local tier", "say it without that path"
    return Violation("TIER-DIRECTION", spec.change.path, None, f"line {found.line}: {what}", _TIER_WHY, fix)


def _judge_tasks_key(spec: _Spec) -> Iterator[Violation]:
    """A scope contract that lists tasks, unless it listed the same ones before."""
    old, new = (_frontmatter(data) for data in (spec.before, spec.after))
    if new is None or not (tasks := new.values.get("tasks")) or (old and old.values.get("tasks") == tasks):
        return
    what = f"line {new.lines['tasks'] + 1}: the key `tasks` lists {printable(scalar_text(tasks))}"
    fix = "drop the key: tasks name their scope by scope_id"
    yield Violation("TIER-DIRECTION", spec.change.path, None, what, _TIER_WHY, fix)


def _frontmatter(data: bytes | None) -> Frontmatter | None:
    return parse_frontmatter(decode(data), "")[0] if data and len(data) <= LARGEST else None
