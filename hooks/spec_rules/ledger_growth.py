"""Whether a round ledger only grew: every older line is still there in its order, every older decision row where it was. Source: R-20, ruling E3, advisor P8, I2.

Light module: standard library only.
"""

from __future__ import annotations

from parsers.markdown import decode, parse_heading, scan_lines


def lost_line(before: bytes, after: bytes) -> str | None:
    """What keeps the change from being pure growth, in words; None where lines and rows were only added.

    Blank lines do not count. ESC ids are positions in the first table under `Decisions`, so a new row stands behind all older ones.
    """
    old, new = decode(before).split("\n"), decode(after).split("\n")
    rest = iter(new)
    for at, line in enumerate(old):
        text = line.rstrip()
        if text and not any(other.rstrip() == text for other in rest):
            return f"line {at + 1} of the older text is changed, moved or gone"
    rows, rows_now = _decision_rows(old), _decision_rows(new)
    if rows_now[: len(rows)] != rows:
        at = next((i for i, row in enumerate(rows) if rows_now[i : i + 1] != [row]), 0)
        return f"decision row {at + 1} no longer stands where it stood"
    return None


def _decision_rows(lines: list[str]) -> list[str]:
    """The lines of the first table under a heading `Decisions` (any level, any case), header included."""
    rows: list[str] = []
    is_below = False
    for line in scan_lines(lines):
        if not line.fenced and (heading := parse_heading(line.text)):
            is_below = heading[1].casefold() == "decisions"
        is_row = is_below and not line.fenced and line.text.lstrip().startswith("|")
        if is_row:
            rows.append(line.text.rstrip())
        elif rows:
            break
    return rows
