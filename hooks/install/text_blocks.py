"""Our lines in a text file that someone else owns: put in once, taken out again, every other byte kept. Source: targets 24.

Light module: standard library only.
"""

from __future__ import annotations

OPENING = b"# >>> shapeupd"
CLOSING = b"# <<< shapeupd"


def has_block(data: bytes) -> bool:
    """Whether our lines are in the text."""
    return OPENING in data


def strip_blocks(data: bytes) -> bytes:
    """The text without our lines. A block that was never closed ends where the text does not go on as we wrote it."""
    kept: list[bytes] = []
    lines = data.splitlines(keepends=True)
    at = 0
    while at < len(lines):
        if lines[at].lstrip().startswith(OPENING):
            end = next((i for i in range(at, len(lines)) if lines[i].lstrip().startswith(CLOSING)), None)
            if end is not None:
                at = end + 1
                continue
        kept.append(lines[at])
        at += 1
    return b"".join(kept)


def block(title: str, lines: tuple[str, ...], *, indent: str = "", newline: str = "\n") -> bytes:
    """Our lines between their marks."""
    text = (f"{OPENING.decode()}: {title}", *lines, CLOSING.decode())
    return "".join(f"{indent}{line}{newline}" if line else newline for line in text).encode("utf-8", "surrogateescape")


def append_block(data: bytes, ours: bytes) -> bytes:
    """The text with our lines at its end."""
    return data + (b"\n" if data and not data.endswith(b"\n") else b"") + ours


def insert_block(data: bytes, ours: bytes, line: int) -> bytes:
    """The text with our lines before its line number `line`, counted from 0."""
    lines = data.splitlines(keepends=True)
    before = b"".join(lines[:line])
    return append_block(before, ours) + b"".join(lines[line:])
