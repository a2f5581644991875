"""The one glob language of substrates: `*`, `**`, `?`, everything else literal. Source: protocol §3.2, W-08, ruling C11.

Light module: standard library only, hooks import it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_MEANING = {
    "**/": r"(?:[^/\n]+/)*",  # zero or more whole path segments
    "**": r"[^\n]*",
    "*": r"[^/]*",
    "?": r"[^/]",
}
MAX_STARS = 2  # more of them, and a backtracking pattern takes minutes over a path that an agent made for it
LONG = 500  # characters from which on two stars are too many as well
Matcher = Callable[[str], bool]


@lru_cache(maxsize=4096)
def tokens_of(glob: str) -> tuple[str, ...]:
    """The glob taken apart: its wildcards, and the literal text between them."""
    return tuple(_TOKEN.findall(glob))


def is_wild(token: str) -> bool:
    """Whether the token is a wildcard: literal text holds no star and no question mark."""
    return token in _MEANING


def literal_prefix(glob: str) -> str:
    """The text before the first wildcard; the whole glob where it has none."""
    return glob.partition("*")[0].partition("?")[0]


def literal_tail(glob: str) -> str:
    """The text after the last wildcard, with which every path ends that matches; the whole glob where it has none."""
    at = max(glob.rfind("*"), glob.rfind("?")) + 1
    return glob[at + 1 :] if glob[at - 2 : at + 1] == "**/" else glob[at:]


@lru_cache(maxsize=4096)
def compile_glob(glob: str) -> re.Pattern[str]:
    """The glob as a pattern for `fullmatch` over a repository-relative POSIX path."""
    return re.compile("".join(_MEANING.get(token) or re.escape(token) for token in tokens_of(glob)), re.DOTALL)


def matcher_of(glob: str) -> Matcher:
    """The glob ready to be asked many times. What it takes grows with the length of a long path, whatever the glob."""
    stars = sum(token.startswith("*") for token in tokens_of(glob))
    if stars > MAX_STARS:
        return lambda path: _walks(glob, path)
    if not any(map(is_wild, tokens_of(glob))):
        return glob.__eq__
    fullmatch = compile_glob(glob).fullmatch
    if stars == MAX_STARS:
        return lambda path: fullmatch(path) is not None if len(path) < LONG else _walks(glob, path)
    return lambda path: fullmatch(path) is not None


_matcher = lru_cache(maxsize=4096)(matcher_of)


def matches(glob: str, path: str) -> bool:
    """Whether the whole path matches: `src/**` matches `src/a/b` but not `src`; `**/*.ts` matches `a.ts`."""
    return _matcher(glob)(path)


def _walks(glob: str, path: str) -> bool:
    at = 0
    for token in tokens_of(glob):
        if token not in _MEANING and (at := path.find(token, at) + len(token)) < len(token):
            return False  # the literal texts do not even stand there one after the other
    reached = bytearray([1]) + bytearray(len(path))  # reached[i]: the tokens so far match path[:i]
    for token in tokens_of(glob):
        reached = _step(token, path, reached)
        if 1 not in reached:
            return False
    return bool(reached[-1])


def _step(token: str, path: str, before: bytearray) -> bytearray:
    """Where one more token leads: one walk over the path, whatever the glob."""
    after = bytearray(len(before))
    if token not in _MEANING:
        for at, is_reached in enumerate(before):
            if is_reached and path.startswith(token, at):
                after[at + len(token)] = 1
        return after
    inside = False  # whether the token, begun somewhere before, can end just here
    for at in range(len(before)):
        char = path[at - 1] if at else ""
        if token == "**/":
            ends = inside and char == "/"
            inside = char not in ("/", "\n") and (inside or (at > 0 and after[at - 1] == 1))
            after[at] = before[at] == 1 or ends
        elif token == "?":
            after[at] = at > 0 and char != "/" and before[at - 1] == 1
        else:
            inside = before[at] == 1 or (inside and char != ("/" if token == "*" else "\n"))
            after[at] = inside
    return after


# What HFS+ leaves out of a name before it compares two of them: joiners, direction marks, the byte order mark.
_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])


def folded(text: str) -> tuple[str, ...]:
    """What the path or glob is where names that differ in case or composition are one: the composed form, and the
    decomposed one where it differs, because a wildcard counts characters.

    Two paths are one file there where their folded forms are equal. Source: targets 17, hazards B.
    """
    if text.isascii():
        return (text.lower(),)
    from unicodedata import normalize  # a megabyte of tables that few repositories need

    apart = normalize("NFD", normalize("NFD", text.translate(_IGNORED)).casefold())
    whole = normalize("NFC", apart)
    return (whole,) if whole == apart else (whole, apart)


_NOT_SLASH, _NOT_NEWLINE, _NEITHER = "?", "*", "**"  # sets of characters, in the place of one: no literal is a wildcard
_LACKS = {_NOT_SLASH: "/", _NOT_NEWLINE: "\n", _NEITHER: "/\n"}
_Spot = tuple[int, bool]  # before which item, and whether inside a segment of the `**/` that stands there


def may_meet(glob: str, other: str, *, is_loose: bool = False) -> bool:
    """Whether some path matches both globs. Exact over all texts, so it says yes wherever two substrates overlap.

    `is_loose`: `?` counts as `*`, for globs that are compared in a folded form, where one character can have become two.
    """
    left, right = literal_prefix(glob), literal_prefix(other)
    if not left.startswith(right) and not right.startswith(left):
        return False
    mine, theirs = _items(glob, is_loose), _items(other, is_loose)
    if not _tails_fit(mine, theirs):
        return False
    queue = [((0, False), (0, False))]
    seen = set(queue)
    while queue:
        here, there = queue.pop()
        if here == (len(mine), False) and there == (len(theirs), False):
            return True
        steps = [(spot, there) for spot in _skips(mine, here)] + [(here, spot) for spot in _skips(theirs, there)]
        steps += [
            (spot, twin)
            for chars, spot in _moves(mine, here)
            for other_chars, twin in _moves(theirs, there)
            if _overlap(chars, other_chars)
        ]
        queue += (fresh := set(steps) - seen)
        seen |= fresh
    return False


@lru_cache(maxsize=4096)
def _items(glob: str, is_loose: bool) -> tuple[str, ...]:
    """The glob as wildcards and single characters."""
    tokens = ("*" if token == "?" and is_loose else token for token in tokens_of(glob))
    return tuple(item for token in tokens for item in ((token,) if is_wild(token) else token))


def _tails_fit(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Whether the literal ends can be ends of one text: most globs that begin alike differ there."""
    for item, other in zip(reversed(mine), reversed(theirs), strict=False):
        if is_wild(item) or is_wild(other):
            return True
        if item != other:
            return False
    return True


def _skips(items: tuple[str, ...], spot: _Spot) -> tuple[_Spot, ...]:
    """Where one gets without a character."""
    at, inside = spot
    return ((at + 1, False),) if not inside and at < len(items) and items[at] in ("*", "**", "**/") else ()


def _moves(items: tuple[str, ...], spot: _Spot) -> tuple[tuple[str, _Spot], ...]:
    """Where one gets with one character: of which set, and to which spot."""
    at, inside = spot
    if at == len(items):
        return ()
    match items[at]:
        case "**/":
            segment = (_NEITHER, (at, True))
            return (segment, ("/", (at, False))) if inside else (segment,)
        case "**":
            return ((_NOT_NEWLINE, spot),)
        case "*":
            return ((_NOT_SLASH, spot),)
        case "?":
            return ((_NOT_SLASH, (at + 1, False)),)
        case char:
            return ((char, (at + 1, False)),)


def _overlap(chars: str, others: str) -> bool:
    if chars in _LACKS:
        return others in _LACKS or others not in _LACKS[chars]
    return chars not in _LACKS[others] if others in _LACKS else chars == others
