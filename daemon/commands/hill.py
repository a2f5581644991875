"""`shapeupd hill`: where each scope stands, since when and why; as a table, a text picture, JSON or SVG. Source: cli §2, rulings J, G4.

Reads files alone and changes nothing in the trees; with or without a daemon the answer is the same.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import NamedTuple

from daemon import clock
from daemon.disk import DiskTree
from daemon.exits import DONE, NOTHING_THERE, USAGE, Exit
from daemon.hill_facts import hill_slugs, read_hill_facts
from daemon.offline import place_of
from daemon.terminal import complain, escape, plain_table, print_json, terminal_width, wants_style
from parsers.addresses import SLUG
from parsers.hill_trail import hill_row
from parsers.layout import NOT_A_SLUG, folder_of, path_of
from reducers.hill import HillFacts, ScopePhase, standing_hill
from reducers.hill_curve import Dot, place, place_areas
from reducers.hill_text import MAX_WIDTH, render_hill_text
from reducers.hill_trail import SplitProposal, Stay, derive_stay, propose_splits

HELP = """Shows where each scope stands on the hill, since when, and which evidence put it there.
Before there are scopes: the areas that orient named. Without SLUG: every feature that has any.
--svg FILE draws the hill with each scope's dot and its history; FILE - is stdout."""
EXAMPLE = "shapeupd hill checkout --svg hill.svg"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("slug", nargs="?", metavar="SLUG", help="the feature (default: all)")
    parser.add_argument("--svg", metavar="FILE", help="write the picture there; - is stdout")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


class Told(NamedTuple):
    """The hill of one feature at one moment. `dots` leave out scopes that were split into others."""

    facts: HillFacts
    phases: tuple[ScopePhase, ...]
    stays: tuple[Stay, ...]
    splits: tuple[SplitProposal, ...]
    dots: tuple[Dot, ...]

    @property
    def title(self) -> str:
        """The feature, and where its phases come from when it is not from evidence on this machine."""
        return self.facts.slug if self.facts.has_trace or not self.phases else f"{self.facts.slug} (as committed)"


def run(args: argparse.Namespace) -> int:
    tree, now = DiskTree(place_of(args).root), clock.now()
    if args.slug is not None and (not SLUG.match(args.slug) or args.slug in NOT_A_SLUG):
        raise Exit(USAGE, f"{args.slug!r} is no feature's name")
    slugs = hill_slugs(tree) if args.slug is None else (args.slug,)
    told = [one for slug in slugs if (one := told_of(read_hill_facts(tree, slug), now)).dots or one.phases]
    if args.svg is not None:
        _draw(args, told, now)
    if args.json:
        documents = [document_of(one) for one in told]
        print_json({"schema": 1, **documents[0]} if len(told) == 1 else {"schema": 1, "hills": documents})
    if not told:
        slug = args.slug or "<slug>"
        where = f"{folder_of('scope-contract', slug)} and {path_of('orient', slug, 'hill-signal')}"
        raise Exit(NOTHING_THERE, f"no hill: there are no scopes and no areas ({where})")
    for one in told if args.svg is None and not args.json else ():
        _show(one)
    for finding in (finding for one in told for finding in one.facts.findings):
        complain(f"shapeupd: {finding}")
    return DONE


def told_of(facts: HillFacts, now: datetime) -> Told:
    """The hill of one feature, at rest."""
    phases = standing_hill(facts)
    stays = tuple(derive_stay(facts, one, now) for one in phases)
    replaced = {scope.scope_id for scope in facts.scopes if scope.superseded_by}
    dots = place((one for one in phases if one.scope_id not in replaced), stays) or place_areas(facts)
    return Told(facts, phases, stays, propose_splits(facts), dots)


def document_of(told: Told) -> dict[str, object]:
    """One feature's document, after `schema`. Source: rulings J."""
    parts = {scope.scope_id: list(scope.superseded_by) for scope in told.facts.scopes}
    return {
        "slug": told.facts.slug,
        "derived": told.facts.has_trace,
        "hill": [
            {
                "scope_id": phase.scope_id,
                "phase": phase.phase,
                "since": stay.since,
                "trail": [hill_row(row) for row in stay.trail],
                "stalled_s": stay.stalled_s,
                "why": phase.why,
                "superseded_by": parts.get(phase.scope_id, []),
            }
            for phase, stay in zip(told.phases, told.stays, strict=True)
        ],
        "areas": [{"name": area.name, "phase": area.phase, "told": area.told} for area in told.facts.areas],
        "to_split": [{**one._asdict(), "rounds": list(one.rounds), "why": one.why} for one in told.splits],
    }


def _show(told: Told) -> None:
    if wants_style():
        text = render_hill_text(told.title, told.dots, min(terminal_width(), MAX_WIDTH))
        print("\n".join(map(escape, text.split("\n"))))
    else:
        rows = [
            [escape(cell) for cell in (dot.name, dot.phase, dot.since or "-", dot.age or "-", dot.why)]
            for dot in told.dots
        ]
        print(plain_table(("scope", "phase", "since", "stalled", "why"), rows, escape(told.title)))
    for scope in told.facts.scopes:
        if scope.superseded_by:
            print(escape(f"split: {scope.scope_id} into {', '.join(scope.superseded_by)}"))
    for one in told.splits:
        print(escape(f"stuck: {one.scope_id}: {one.why}"))


def _draw(args: argparse.Namespace, told: list[Told], now: datetime) -> None:
    """Writes the picture of the one feature that was meant."""
    from reducers.hill_svg import render_hill_svg

    if not told:
        return
    if len(told) > 1:
        names = ", ".join(one.facts.slug for one in told)
        raise Exit(USAGE, f"one picture shows one feature; name it: {names}")
    if args.json and args.svg == "-":
        raise Exit(USAGE, "--json and --svg - both write to stdout; give --svg a file")
    text = render_hill_svg(told[0].title, told[0].dots, now)
    if args.svg == "-":
        sys.stdout.write(text)
        return
    try:
        with open(args.svg, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise Exit(USAGE, f"cannot write {args.svg}: {error.strerror}") from None
