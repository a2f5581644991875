"""Hill shards `shapeup/<slug>/hill/<scope-id>.yml`: two lines, a scope and its phase. Source: protocol §1.4, §5.4.

Light module: standard library only, hooks import it.
"""

from __future__ import annotations

from typing import NamedTuple

UNKNOWN = "UPHILL_UNKNOWN"
PHASES = (UNKNOWN, "UPHILL_SOLVED", "DOWNHILL_EXECUTION", "FINISHED")

_LONGEST = 1024


class HillShard(NamedTuple):
    """Where one scope stands on the hill; `phase` is one of PHASES."""

    scope_id: str
    phase: str


def parse_hill_shard(data: bytes) -> HillShard | None:
    """The shard; None for anything but exactly `scope_id: X` and `phase: P`, a line feed behind each."""
    lines = data[:_LONGEST].split(b"\n")
    if len(lines) != 3 or lines[2] or not (lines[0].startswith(b"scope_id: ") and lines[1].startswith(b"phase: ")):
        return None
    try:
        shard = HillShard(lines[0][10:].decode("utf-8"), lines[1][7:].decode("ascii"))
    except UnicodeDecodeError:
        return None
    is_exact = shard.phase in PHASES and render_hill_shard(shard) == data
    return shard if is_exact else None


def render_hill_shard(shard: HillShard) -> bytes:
    """The file's bytes."""
    return f"scope_id: {shard.scope_id}\nphase: {shard.phase}\n".encode()
