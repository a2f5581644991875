"""The one glob language of substrates: `*`, `**`, `?`, everything else literal. Source: protocol §3.2, W-08, ruling C11.

Light module: standard library only, hooks import it.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_MEANING = {
    "**/": r"(?:[^/\n]+/)*",  # zero or more whole path segments
    "**": r"[^\n]*",
    "*": r"[^/]*",
    "?": r"[^/]",
}
MAX_STARS = 2  # more of them, and a backtracking pattern takes minutes over a path that an agent made for it


@lru_cache(maxsize=4096)
def _tokens(glob: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(glob))


@lru_cache(maxsize=4096)
def compile_glob(glob: str) -> re.Pattern[str]:
    """The glob as a pattern for `fullmatch` over a repository-relative POSIX path."""
    return re.compile("".join(_MEANING.get(token) or re.escape(token) for token in _tokens(glob)), re.DOTALL)


def matches(glob: str, path: str) -> bool:
    """Whether the whole path matches: `src/**` matches `src/a/b` but not `src`; `**/*.ts` matches `a.ts`."""
    if sum(token.startswith("*") for token in _tokens(glob)) <= MAX_STARS:
        return compile_glob(glob).fullmatch(path) is not None
    reached = bytearray([1]) + bytearray(len(path))  # reached[i]: the tokens so far match path[:i]
    for token in _tokens(glob):
        reached = _step(token, path, reached)
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
