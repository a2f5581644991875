"""The wiring map as a mermaid flowchart: entry point, engines, affordances; orphans dashed. Source: protocol §5.3."""

from __future__ import annotations

import re
from collections.abc import Collection

from parsers.contracts import Row
from parsers.frontmatter import scalar_text
from reducers.lint_trace.facts import Map
from reducers.lint_trace.reachability import Reach

_FOREIGN = re.compile(r"[^A-Za-z0-9_]")


def draw_wiring(wiring: Map, reach: Reach) -> str:
    """The text of `trace/wiring.mmd`; labels stand in it as the map has them (recorded, H2)."""
    dead = [orphan.row for orphan in reach.orphans]
    lines = ["flowchart LR", "  entry([entry point])"]
    for row in wiring.entries:
        lines += _lines(row, dead)
    return "\n".join([*lines, "  classDef dead stroke:#d33,stroke-width:2px,color:#d33;", ""])


def _lines(row: Row, dead: Collection[Row]) -> list[str]:
    engine, is_dead = scalar_text(row["engine"]), row in dead
    node = _id(engine)
    lines = [f'  {node}["{engine}"]{":::dead" if is_dead else ""}']
    lines.append(f"  entry {'-.->|orphan|' if is_dead else '-->'} {node}")
    if affordance := row.get("affordance"):
        lines.append(f'  {node} --> {_id(scalar_text(row.get("use_case") or ""))}_aff(["{scalar_text(affordance)}"])')
    return lines


def _id(text: str) -> str:
    return "n_" + _FOREIGN.sub("_", text)
