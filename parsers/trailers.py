"""What a commit message says of its order: the trailers `Shapeup-Order`, `Shapeup-Operation`, `Shapeup-Override`. Pure. Source: rulings E5, E8.

Every wall reads messages by this module. Light module: standard library only, hooks import it.
"""

from __future__ import annotations

from typing import NamedTuple

ORDER = "Shapeup-Order"
OPERATION = "Shapeup-Operation"
OVERRIDE = "Shapeup-Override"

SCISSORS = "# ------------------------ >8 ------------------------"
_KEYS = tuple(key.lower() for key in (ORDER, OPERATION, OVERRIDE))


class Trailers(NamedTuple):
    """The values of our trailers; None: there is no such trailer, or it is empty.

    Where one key has several values they stand one after the other with a comma between: that is no order's id, so a
    commit that names two orders is held to neither and refused.
    """

    order_id: str | None = None
    operation: str | None = None
    override: str | None = None


NO_TRAILERS = Trailers()


def parse_trailers(message: bytes) -> Trailers:
    """Our trailers in the last paragraph. Keys fold case, as git folds it; a line that begins with a blank goes on with the
    line before it. Comment lines, and all from the scissors line on, are no part of a message.

    Stricter than git in one thing: git sees no trailers in a last paragraph that is mostly prose, and here they count.
    """
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in _last_paragraph(message):
        if line[0] in " \t":
            if current is not None:
                current[-1] = f"{current[-1]} {line.strip()}".strip()
            continue
        key, colon, value = line.partition(":")
        current = found.setdefault(key.rstrip().lower(), []) if colon else None
        if current is not None:
            current.append(value.strip())
    return Trailers(*(_joined(found.get(key, ())) for key in _KEYS))


def is_all_trailers(message: bytes) -> bool:
    """Whether the message holds our trailers and not a word besides."""
    paragraphs = _paragraphs(message)
    lines = [line for paragraph in paragraphs for line in paragraph]
    return bool(lines) and all(line.partition(":")[0].rstrip().lower() in _KEYS for line in lines)


def _joined(values: list[str] | tuple[()]) -> str | None:
    return ", ".join(dict.fromkeys(value for value in values if value)) or None


def _last_paragraph(message: bytes) -> list[str]:
    paragraphs = _paragraphs(message)
    return paragraphs[-1] if paragraphs else []


def _paragraphs(message: bytes) -> list[list[str]]:
    """The lines of each paragraph; none is empty."""
    paragraphs: list[list[str]] = [[]]
    for line in message.decode("utf-8", "surrogateescape").split("\n"):
        if line.startswith(SCISSORS):
            break
        if line.startswith("#"):
            continue
        if line.strip():
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return [paragraph for paragraph in paragraphs if paragraph]
