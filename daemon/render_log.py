"""Renders a log row for people, and keeps what it quotes from speaking to the terminal. Source: design §6, cli §1.

12:04:31.220  result.applied   checkout/cart-r1-a1   TASK-003 done · 9 ACs ticked · unblocked TASK-004 · 4 ms
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo

from daemon.terminal import escape

_COMMON = ("at", "level", "event", "slug", "subject", "run_id", "ms", "detail", "error", "report")
_COLORS = {"warn": "\x1b[33m", "error": "\x1b[31m", "debug": "\x1b[2m"}
_RESET = "\x1b[0m"
SHORT_ID = 12
FEW = 3
_COMMIT = re.compile(r"[0-9a-f]{40,64}\Z")


def render_row(row: Mapping[str, object], *, zone: tzinfo | None = None, color: bool = False) -> str:
    """One event on one line, then the lines of its `error`, indented. Times are local unless `zone` says otherwise."""
    event = f"{escape(str(row.get('event', '?'))):<17}"
    tint = _COLORS.get(str(row.get("level")), "") if color else ""
    if tint:
        event = f"{tint}{event}{_RESET}"
    subject = _subject(row)
    head = f"{_time(row.get('at'), zone)}  {event} {escape(subject):<21}  {' · '.join(_details(row))}".rstrip()
    error = row.get("error")
    if not error:
        return head
    return "\n".join((head, *("    " + escape(line) for line in str(error).splitlines())))


def _subject(row: Mapping[str, object]) -> str:
    """What the event is about; a commit as people name it."""
    subject = str(row.get("subject") or row.get("slug") or "-")
    return subject[:SHORT_ID] if str(row.get("event")).startswith("commit.") and _COMMIT.match(subject) else subject


def _time(at: object, zone: tzinfo | None) -> str:
    try:
        return datetime.fromisoformat(str(at)).astimezone(zone).isoformat(timespec="milliseconds")[11:23]
    except ValueError:
        return f"{escape(str(at)):<12}"


def _details(row: Mapping[str, object]) -> list[str]:
    parts: list[str] = []
    last: list[str] = []
    if row.get("detail"):
        parts.append(escape(str(row["detail"])))
    for key, value in row.items():
        if key in _COMMON or value is None or value == [] or value == "":
            continue
        if key == "path" and str(value).endswith(f"/{str(row.get('subject')).rsplit('/', 1)[-1]}.json"):
            continue  # the subject says it already
        if key == "order_id" and value == row.get("subject"):
            continue
        phrase = _PHRASES.get(key)
        target = last if key == "warnings" else parts  # what happened comes first
        target.append(escape(phrase(value) if phrase else f"{key} {_plain(value)}"))
    ms = row.get("ms")
    if isinstance(ms, int | float):
        parts.append(f"{ms:.0f} ms" if ms >= 1 else f"{ms:.1f} ms")
    return [part for part in (*parts, *last) if part]


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_plain(item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    return str(value)


def _task_updates(value: object) -> str:
    """`TASK-003 done` for each task, given as text, as a pair or as {id|task_id, status|to}."""
    if not isinstance(value, list | tuple):
        return _plain(value)
    words = []
    for item in value:
        if isinstance(item, Mapping):
            name, status = item.get("id", item.get("task_id", "?")), item.get("status", item.get("to", ""))
            words.append(f"{name} {status}".strip())
        elif isinstance(item, list | tuple):
            words.append(" ".join(map(str, item)))
        else:
            words.append(str(item))
    return " · ".join(words)


def _count(one: str, many: str) -> Callable[[object], str]:
    def phrase(value: object) -> str:
        number = len(value) if isinstance(value, list | tuple) else value
        return "" if number == 0 else f"{number} {one if number == 1 else many}"

    return phrase


def _few(value: object) -> str:
    """The first names of a list; how many there are in all another key tells."""
    if not isinstance(value, list | tuple) or len(value) <= FEW:
        return _plain(value)
    return ", ".join(map(_plain, value[:FEW])) + ", …"


_PHRASES: dict[str, Callable[[object], str]] = {
    "tasks_updated": _task_updates,
    "acs_ticked": _count("AC ticked", "ACs ticked"),
    "unblocked": lambda value: f"unblocked {_plain(value)}",
    "discoveries_appended": _count("discovery recorded", "discoveries recorded"),
    "verdict_lines": _count("verdict row", "verdict rows"),
    "refuted_unticked": _count("AC unticked", "ACs unticked"),
    "misses": lambda value: f"not found: {_plain(value)}",
    "code": str,
    "errors": _count("error", "errors"),
    "warnings": lambda value: f"warning: {_plain(value)}",
    "path": str,
    "reason": str,
    "sentence": str,
    # commit, hook, writer
    "hook": str,
    "branch": lambda value: f"on {_plain(value)}",
    "order_id": lambda value: f"order {_plain(value)}",
    "verdict": lambda value: "overridden" if value == "overridden" else "",
    "rules": _plain,
    "paths": _few,
    "path_count": lambda value: f"{value} paths" if isinstance(value, int) and value > FEW else "",
    "undo": lambda value: f"undo: {_plain(value)}",
    # breaker: `reason` says what these count
    "breaker": str,
    "elapsed_s": lambda value: "",
    "budget_s": lambda value: "",
    "cause": lambda value: "",
    "action": str,
    "view": lambda value: f"see {_plain(value)}",
    "added_s": lambda value: f"{_plain(value)} s more",
}
