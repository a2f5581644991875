"""The hill in text: a curve with a mark for each scope, and below it whose mark that is. Source: cli §2 `hill`, R-47."""

from __future__ import annotations

from collections.abc import Sequence

from reducers.hill_curve import CREST, DOWNHILL_WORDS, PHASE_WORDS, UPHILL_WORDS, Dot, height_at

MARKS = "123456789abcdefghijklmnopqrstuvwxyz"
MANY = "*"  # the mark of every dot past the last of MARKS, and of dots that share one place
MIN_WIDTH, MAX_WIDTH = 40, 100
ROWS = 9


def render_curve(dots: Sequence[Dot], width: int) -> str:
    """The curve alone, in ASCII, its marks in the order of the dots; no line is longer than `width` (at least MIN_WIDTH)."""
    width = max(MIN_WIDTH, min(width, MAX_WIDTH))
    grid = [[" "] * width for _ in range(ROWS)]
    levels = [_level(column, width) for column in range(width + 1)]
    for column in range(width):
        here, after = levels[column], levels[column + 1]
        grid[max(here, after)][column] = "/" if after < here else "\\" if after > here else "_"
    for row in range(2, ROWS, 2):
        grid[row][width // 2] = ":"
    for mark, dot in zip(marks(len(dots)), dots, strict=True):
        column = min(int(dot.x * width), width - 1)
        row = next(row for row in range(ROWS) if grid[row][column] not in " :")
        grid[row][column] = mark if grid[row][column] in "/\\_" else MANY
    left, right = int(width * CREST), width - int(width * CREST)
    words = f"{UPHILL_WORDS:^{left}}{DOWNHILL_WORDS:^{right}}"
    return "\n".join([*("".join(line).rstrip() for line in grid), words.rstrip()])


def _level(column: int, width: int) -> int:
    """The grid row on whose bottom edge the curve runs at a column, 0 at the top."""
    return round((1 - height_at(column / width)) * (ROWS - 1))


def marks(number: int) -> str:
    """A mark for each of so many dots."""
    return MARKS[:number] + MANY * max(0, number - len(MARKS))


def render_hill_text(title: str, dots: Sequence[Dot], width: int) -> str:
    """The whole picture: title, curve, and a line for each dot with its phase, its stall age and why it stands there."""
    lines = [title, "", render_curve(dots, width), ""]
    names = max((len(dot.name) for dot in dots), default=0)
    words = {dot: PHASE_WORDS[dot.phase] for dot in dots}
    phases = max(map(len, words.values()), default=0)
    ages = max((len(dot.age) for dot in dots), default=0)
    for mark, dot in zip(marks(len(dots)), dots, strict=True):
        age = f"  {dot.age:>{ages}}" if ages else ""
        lines.append(f" {mark}  {dot.name:<{names}}  {words[dot]:<{phases}}{age}".rstrip())
        lines += [f"      {line}" for line in _wrap(dot.why, max(MIN_WIDTH, width) - 6)]
    if any(dot.is_area for dot in dots):
        lines += ["", "areas as orient told them; there are no scopes yet"]
    return "\n".join(lines) + "\n"


def _wrap(text: str, width: int) -> list[str]:
    """The words in lines of at most `width`; a longer word stands alone. textwrap costs more to import than this."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
