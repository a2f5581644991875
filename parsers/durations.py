"""Durations as people write them on a command line: `90m`, `2h`, `1h30m`, plain seconds. Source: issue 4 "Timers", protocol §2.2.

Receipts keep seconds; only the command line reads and prints the other forms. Light module: standard library only.
"""

from __future__ import annotations

import re

MAX_DURATION_S = (
    10 * 366 * 24 * 3600
)  # ten years: what is longer is a slip of the keyboard, and leaves what a date can hold

_UNITS_S = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SECONDS = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,3})?\Z")
_PARTS = re.compile("".join(rf"(?:(?P<{unit}>[0-9]{{1,9}}){unit})?" for unit in _UNITS_S) + r"\Z")
_FORMS = "write 90m, 2h, 1h30m or a number of seconds"


def parse_duration(text: str) -> float:
    """The duration in seconds, more than 0 and at most ten years. Raises ValueError with a sentence that says what is taken."""
    given = text.strip()
    if _SECONDS.match(given):
        seconds = float(given)
    elif given and (found := _PARTS.match(given)):
        seconds = float(sum(int(count) * _UNITS_S[unit] for unit, count in found.groupdict().items() if count))
    elif given.startswith("-"):
        raise ValueError(f"{text!r} is negative; {_FORMS}")
    else:
        raise ValueError(f"{text[:40]!r} is no duration; {_FORMS}, with d, h, m, s in this order")
    if seconds <= 0:
        raise ValueError(f"{text!r} is no time at all; {_FORMS}")
    if seconds > MAX_DURATION_S:
        raise ValueError(f"{text!r} is more than ten years; {_FORMS}")
    return seconds


def render_duration(seconds: float) -> str:
    """`1h30m`, `45s`, `-12m`: whole seconds rounded to the nearest, no unit that is 0; `0s` for nothing."""
    left = int(abs(seconds) + 0.5)
    told = ""
    for unit, size in _UNITS_S.items():
        count, left = divmod(left, size)
        told += f"{count}{unit}" if count else ""
    return ("-" if seconds < 0 and told else "") + (told or "0s")
