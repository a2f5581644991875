"""harness-run.md as far as it says whether its run is open. Source: protocol §1.6, ruling B1."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from parsers.frontmatter import parse_frontmatter
from parsers.markdown import decode
from parsers.times import parse_time

RUNNING = frozenset({"orienting", "mapping", "building", "evaluating"})


class HarnessRun(NamedTuple):
    """`status` is empty where the file names none. `closed_at` is None while the run is open, or where it is no time."""

    status: str
    is_open: bool
    closed_at: datetime | None


def parse_harness_run(data: bytes, path: str) -> HarnessRun:
    """The run's state; a file that cannot be read says nothing, so the run counts as closed: it permits and freezes nothing."""
    frontmatter, _ = parse_frontmatter(decode(data), path)
    values = frontmatter.values if frontmatter else {}
    status, closed_at = values.get("status"), values.get("closed_at")
    is_open = status in RUNNING and closed_at is None
    named = status if isinstance(status, str) else ""
    return HarnessRun(named, is_open, parse_time(closed_at) if isinstance(closed_at, str) else None)
