"""hill-chart.md, the committed page that says where everything stands. Source: protocol §1.4, rulings E3, K, R-47.

A function of the facts without any clock or local path, so that two machines with the same evidence write the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parsers.tier_direction import tier_breaks
from reducers.hill import HillFacts, ScopePhase
from reducers.hill_curve import Dot, place, place_areas
from reducers.hill_text import marks, render_curve
from reducers.hill_trail import SplitProposal

WIDTH = 72


def render_hill_chart(facts: HillFacts, phases: Sequence[ScopePhase], splits: Sequence[SplitProposal] = ()) -> bytes:
    """The page's bytes; areas stand on it where there are no scopes yet."""
    replaced = {scope.scope_id: scope.superseded_by for scope in facts.scopes if scope.superseded_by}
    dots = place(one for one in phases if one.scope_id not in replaced)
    areas = () if phases else place_areas(facts)
    shown = dots or tuple(dot._replace(name=_committable(dot.name, at)) for at, dot in enumerate(areas, 1))
    lines = ["---", "type: hill-chart", f"feature: {facts.slug}", "---", f"# Hill: {facts.slug}", ""]
    lines += ["Derived by shapeupd from evidence; whoever edits it is overwritten.", ""]
    lines += ["```text", render_curve(shown, WIDTH), "```", ""]
    if areas:
        lines += _table(("", "Area", "Position"), _area_rows(shown))
    else:
        lines += _table(("", "Scope", "Phase", "Why"), _scope_rows(dots))
    lines += _section("Split into others", (f"{name}: {', '.join(parts)}" for name, parts in sorted(replaced.items())))
    lines += _section("To be split", (f"{one.scope_id}: {one.why}" for one in splits))
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _scope_rows(dots: Sequence[Dot]) -> Iterable[Sequence[str]]:
    return ((mark, dot.name, dot.phase, dot.why) for mark, dot in zip(marks(len(dots)), dots, strict=True))


def _area_rows(dots: Sequence[Dot]) -> Iterable[Sequence[str]]:
    return ((mark, dot.name, dot.phase) for mark, dot in zip(marks(len(dots)), dots, strict=True))


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _section(title: str, items: Iterable[str]) -> list[str]:
    found = [f"- {_cell(item)}" for item in items]
    return ["", f"## {title}", "", *found] if found else []


def _committable(name: str, number: int) -> str:
    """An area's name as it may stand in a committed file: orient's words may name a board id or a local path (§1.1)."""
    return f"area {number}" if any(tier_breaks(name.encode("utf-8", "replace"))) else name
