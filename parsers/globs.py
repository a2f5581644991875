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


@lru_cache(maxsize=4096)
def compile_glob(glob: str) -> re.Pattern[str]:
    """The glob as a pattern for `fullmatch` over a repository-relative POSIX path."""
    return re.compile("".join(_MEANING.get(token) or re.escape(token) for token in _TOKEN.findall(glob)), re.DOTALL)


def matches(glob: str, path: str) -> bool:
    """Whether the whole path matches: `src/**` matches `src/a/b` but not `src`; `**/*.ts` matches `a.ts`."""
    return compile_glob(glob).fullmatch(path) is not None
