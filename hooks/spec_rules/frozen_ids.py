"""R-38 over changed specs: requirement and invariant ids keep their texts, contracts stay. Source: protocol §1.4, R-38.

Light module: standard library only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from hooks.verdict import Violation
from parsers.requirements import Definition, parse_invariants, parse_requirements

RULE = "R-38"
_WHY = "tasks, verdicts and orders name ids and texts as they were; a renumbered one silently changes what they say"
_FIX = "leave `{id}` as it was and add a new id for what changed"

# What each kind defines, and whether a text may grow: an invariant has no other place to say that it is superseded.
PARSERS: dict[str, Callable[[str], tuple[Definition, ...]]] = {
    "requirements": parse_requirements,
    "use-case": parse_invariants,
}
_MAY_GROW = frozenset({"use-case"})


class IdChange(NamedTuple):
    """A changed file of one slug that defines ids: its texts before and after, empty where there was or is no file."""

    path: bytes
    kind: str
    slug: str
    before: str
    after: str


def judge_ids(changes: Iterable[IdChange]) -> list[Violation]:
    """Ids that were defined and are no more, and ids whose text is another one. An entry may move between files of its slug."""
    changes = tuple(changes)
    moved: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    judged: list[tuple[IdChange, list[Definition]]] = []
    for change in changes:
        gone, come = _differences(change)
        judged.append((change, gone))
        moved.setdefault((change.slug, change.kind), Counter()).update((new.id, new.text) for new in come)
    violations: list[Violation] = []
    for change, gone in judged:
        arrived = moved[change.slug, change.kind]
        texts = {id_ for id_, _ in arrived}
        for old in gone:
            if arrived[old.id, old.text] > 0:
                arrived[old.id, old.text] -= 1
            else:
                violations.append(_violation(change, old, is_replaced=old.id in texts))
    return violations


def _differences(change: IdChange) -> tuple[list[Definition], list[Definition]]:
    """What the file defined and defines no more, and what it defines anew. A text that only grew is the same where it may grow."""
    parse = PARSERS[change.kind]
    before, after = parse(change.before), parse(change.after)
    had, has = (Counter((one.id, one.text) for one in side) for side in (before, after))
    gone = [one for one in before if (one.id, one.text) not in has]
    come = [one for one in after if (one.id, one.text) not in had]
    if change.kind in _MAY_GROW and gone:
        texts = sorted((new.id, new.text) for new in come)
        gone = [old for old in gone if not _has_grown(old, texts)]
    return gone, come


def _has_grown(old: Definition, texts: list[tuple[str, str]]) -> bool:
    """Whether one of the sorted (id, text) pairs is this entry with more text behind it."""
    at = bisect_left(texts, (old.id, old.text))
    return at < len(texts) and texts[at][0] == old.id and texts[at][1].startswith(old.text)


def _violation(change: IdChange, old: Definition, *, is_replaced: bool) -> Violation:
    if is_replaced:
        what = f"line {old.line} of the older text: {old.id} has another text now"
    else:
        what = f"line {old.line} of the older text: {old.id} is gone"
    return Violation(RULE, change.path, None, what, _WHY, _FIX.format(id=old.id))


def deleted_contract(path: bytes, how: str) -> Violation:
    """The refusal for a scope contract that was taken away; `how` says in what way."""
    why = "orders, T0 evidence and the hill still name it; history must stay readable"
    fix = "keep the file and set `superseded_by: <the new scope's id>` in its frontmatter"
    return Violation(RULE, path, None, f"the scope contract {how}", why, fix)
