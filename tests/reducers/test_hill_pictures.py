"""The pictures of the hill: the same bytes for the same facts, nothing overlapping, nothing that speaks to a reader's machine.

`SHAPEUP_WRITE_PICTURES=1` writes tests/data/hill anew. Source: cli §2 `hill`, rulings G4, E3.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsers.hill_shards import PHASES
from parsers.hill_signal import Area
from parsers.tier_direction import tier_breaks
from reducers.hill import HillFacts, ScopePhase, derive_hill
from reducers.hill_chart import render_hill_chart
from reducers.hill_curve import age_text, height_at, place, place_areas
from reducers.hill_svg import HILL_HEIGHT, WIDTH, place_labels, render_hill_svg
from reducers.hill_text import MARKS, MAX_WIDTH, MIN_WIDTH, render_curve, render_hill_text
from reducers.hill_trail import derive_stay, propose_splits
from reducers.svg_text import columns, shorten
from tests.reducers.hill_world import FINISHED, NOW, SOLVED, UNKNOWN, checkout

DATA = Path(__file__).resolve().parents[1] / "data" / "hill"
SVG = "{http://www.w3.org/2000/svg}"


def dots_of(facts):
    split = {scope.scope_id for scope in facts.scopes if scope.superseded_by}
    phases = derive_hill(facts)
    return place((one for one in phases if one.scope_id not in split), [derive_stay(facts, one, NOW) for one in phases])


def areas():
    told = (
        Area("Payments | <b>seam</b>", UNKNOWN, "uphill: the seam is unproven"),
        Area("see .shapeup/cart/x.md", SOLVED, "at the crest"),
        Area("TASK-7 and others", SOLVED, "no uphill unknown"),
        Area("Unclear", None, "nobody knows"),
    )
    return HillFacts("cart", areas=told)


PICTURES = {
    "checkout.svg": lambda: render_hill_svg("checkout", dots_of(checkout()), NOW),
    "checkout.txt": lambda: render_hill_text("checkout", dots_of(checkout()), 80),
    "hill-chart.md": lambda: render_hill_chart(
        checkout(), derive_hill(checkout()), propose_splits(checkout())
    ).decode(),
    "areas.svg": lambda: render_hill_svg("cart", place_areas(areas()), NOW),
    "areas-chart.md": lambda: render_hill_chart(areas(), ()).decode(),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_the_recorded_one_byte_for_byte(name):
    drawn = PICTURES[name]().encode()
    if os.environ.get("SHAPEUP_WRITE_PICTURES"):
        DATA.mkdir(parents=True, exist_ok=True)
        (DATA / name).write_bytes(drawn)
    assert drawn == (DATA / name).read_bytes()


def test_the_committed_page_keeps_the_direction_of_tiers():
    for page in (render_hill_chart(checkout(), derive_hill(checkout())), render_hill_chart(areas(), ())):
        assert not list(tier_breaks(page))
    assert b"area 2" in render_hill_chart(areas(), ())


def test_the_committed_page_needs_no_clock_and_no_trail():
    facts = checkout()
    assert render_hill_chart(facts, derive_hill(facts)) == render_hill_chart(
        facts._replace(trail=()), derive_hill(facts)
    )


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,50}", fullmatch=True)
AREA_NAMES = st.text(st.sampled_from("ab äß漢字🔼"), min_size=1, max_size=60)
HILLS = st.dictionaries(NAMES, st.sampled_from(PHASES), max_size=60)


def placed(hill):
    return place(ScopePhase(name, phase, "why") for name, phase in hill.items())


@settings(max_examples=40, deadline=None)
@given(HILLS | st.dictionaries(AREA_NAMES, st.sampled_from(PHASES)), st.sampled_from(("", "3d 4h", "107d 23h")))
def test_no_label_meets_another_label_or_its_pole_or_leaves_the_page(hill, age):
    dots = tuple(dot._replace(age="" if dot.phase == FINISHED else age) for dot in placed(hill))
    labels = place_labels(dots)
    assert sorted(label.dot.name for label in labels) == sorted(hill)
    for label in labels:
        left, _, right, bottom = label.box
        assert left >= 4
        assert right <= WIDTH - 4
        assert bottom < HILL_HEIGHT * (1 - label.dot.height)
    for one, other in combinations(labels, 2):
        assert not meets(one.box, other.box)
    for one in labels:
        for other in labels:
            pole = (other.x, other.y - 9, other.x, HILL_HEIGHT * (1 - other.dot.height))
            assert not meets(one.box, pole), (one, other)


def meets(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@settings(max_examples=40, deadline=None)
@given(HILLS, st.text(max_size=30))
def test_every_picture_is_well_formed_and_stands_alone(hill, title):
    text = render_hill_svg(title, tuple(dot._replace(why=title, age="1m") for dot in placed(hill)), NOW)
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "style", "rect", "text", "tspan", "path", "line", "circle"}
    names = {key for element in root.iter() for key in element.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name]
    assert not re.search(r"url\(|@import|@font-face|http://(?!www\.w3\.org/2000/svg)", text)


@settings(max_examples=40, deadline=None)
@given(HILLS, st.integers(0, 200))
def test_the_text_shows_every_scope_in_any_width(hill, width):
    dots = placed(hill)
    curve = render_curve(dots, width)
    assert max(map(len, curve.split("\n"))) <= max(MIN_WIDTH, min(width, MAX_WIDTH))
    assert curve.isascii()
    text = render_hill_text("t", dots, width)
    assert all(f"  {name} " in text for name in hill)
    if width >= MAX_WIDTH and len(hill) <= 8:
        assert sorted(curve.replace("making it happen", "").replace("figuring things out", "")).count("*") == 0
        assert all(mark in curve for mark in MARKS[: len(hill)])


def test_the_marks_stand_on_the_line():
    dots = placed({"a": UNKNOWN, "b": SOLVED, "c": "DOWNHILL_EXECUTION", "d": FINISHED})
    rows = render_curve(dots, 72).split("\n")[:-1]
    height = {mark: next(at for at, row in enumerate(rows) if mark in row) for mark in "1234"}
    assert height["2"] < height["1"]
    assert height["3"] < height["4"]
    empty = render_curve((), 72).split("\n")[:-1]
    assert [re.sub("[1-4]", "_", row) for row in rows] == [
        "".join(
            "_" if rows[at][column : column + 1] in ("1", "2", "3", "4") else char for column, char in enumerate(row)
        )
        for at, row in enumerate(empty)
    ]


def test_the_hill_is_highest_at_its_crest_and_flat_at_its_feet():
    assert (height_at(0), height_at(1)) == (0, 0)
    assert height_at(0.5) == 1
    assert all(height_at(at / 100) < height_at((at + 1) / 100) for at in range(50))


def test_a_name_too_long_for_its_place_keeps_both_ends():
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 10) == "abcde…hijk"
    assert columns(shorten("漢" * 30, 10)) <= 10


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (61, "1m 1s"),
        (3600, "1h"),
        (3660, "1h 1m"),
        (90061, "1d 1h"),
        (86400, "1d"),
    ],
)
def test_an_age_is_told_in_its_two_largest_units(seconds, told):
    assert age_text(seconds) == told


def test_a_stall_age_runs_from_the_last_change_and_finished_has_none():
    ages = {dot.name: dot.age for dot in dots_of(checkout())}
    assert ages["discount-codes"] == "4d"
    assert ages["Address.form_v2"] == "1d 21h"
    assert ages["payment-seam-and-everything-behind-it"] == ""  # nothing tells since when
    assert ages["cart-totals"] == ""
