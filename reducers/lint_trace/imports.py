"""The import closure of a JavaScript or TypeScript file, by a scan of its text. Source: protocol §5.3.

Breadth first over relative specifiers; comments do not count. Nothing is parsed: a scan over-counts rather than calls a file an orphan.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterator

ENDINGS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx")

_TEXT_OR_COMMENT = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL
)
_SPECIFIER = re.compile(r"(?<![\w$.])(?:from|import|require)\s*(?:\(\s*)?([\"'`])(\.[^\"'`\n]*)\1")

Source = Callable[[str], str | None]  # the text of a file; None where it cannot be read


def is_script(path: str) -> bool:
    """Whether the scan can read such a file."""
    return path.endswith(ENDINGS)


def specifiers_of(text: str) -> Iterator[str]:
    """The relative specifiers that a file imports, exports from or requires, in its order."""
    bare = _TEXT_OR_COMMENT.sub(lambda found: " " if found[0][0] == "/" else found[0], text)
    return (found[2] for found in _SPECIFIER.finditer(bare))


def resolve(path: str, files: Collection[str]) -> str | None:
    """The file that a path without an ending, or that of a folder, stands for: itself, with an ending, its index."""
    bare = path.rstrip("/")
    candidates = (path, *(bare + ending for ending in ENDINGS), *(f"{bare}/index{ending}" for ending in ENDINGS))
    return next((name for name in candidates if name.removeprefix("/") in files), None)


def closure_of(entry: str, files: Collection[str], source: Source) -> frozenset[str]:
    """Every file that the entry reaches, itself included."""
    reached = {entry}
    waiting = deque([entry])
    while waiting:
        path = waiting.popleft()
        text = source(path) if is_script(path) else None
        for specifier in specifiers_of(text) if text else ():
            target = _joined(path.rpartition("/")[0], specifier)
            found = resolve(target, files) if target is not None else None
            if found is not None and found not in reached:
                reached.add(found)
                waiting.append(found)
    return frozenset(reached)


def normal(path: str) -> str | None:
    """The path without `.` and `..`; None where it leaves the project."""
    return _joined("", path)


def _joined(folder: str, specifier: str) -> str | None:
    parts = folder.split("/") if folder else []
    for part in specifier.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
