"""orient's hill signal as it is read: areas where it names some, else the feature; never a guess. Source: ruling K."""

import pytest

from parsers.hill_shards import PHASES
from parsers.hill_signal import MAX_AREAS, Area, parse_hill_signal, position_of

UNKNOWN, SOLVED, DOWNHILL, FINISHED = PHASES


def test_each_section_with_a_signal_line_is_an_area():
    text = "# Hill signal\n\n## Store `x`\n- Result: RESOLVED\n- Signal: **at the crest** — proven.\n\n## Commands\n- Signal: **uphill** — two open\n\n## Summary\nNo uphill risk.\n"
    assert parse_hill_signal(text, "cart") == (
        Area("Store x", SOLVED, "at the crest — proven"),
        Area("Commands", UNKNOWN, "uphill — two open"),
    )


@pytest.mark.parametrize(
    "line",
    [
        "**Uphill — not yet solved.** Nothing was built.",
        "## Phase: uphill (figuring out)",
        "Position: 🔼",
        "- **Signal:** uphill",
    ],
)
def test_a_file_about_the_whole_feature_is_one_area(line):
    (area,) = parse_hill_signal(f"# Hill signal\n\n- nothing here **bold**\n{line}\n", "cart")
    assert (area.name, area.phase) == ("cart", UNKNOWN)


def test_a_table_is_read_too():
    text = (
        "| Slice | Position | Derived from |\n|---|---|---|\n| S1-spine | 🔽 downhill | spike |\n| S2 | ✅ Done | x |\n"
    )
    assert [(area.name, area.phase) for area in parse_hill_signal(text, "cart")] == [
        ("S1-spine", DOWNHILL),
        ("S2", FINISHED),
    ]


@pytest.mark.parametrize(
    ("told", "phase"),
    [
        ("no uphill unknown", SOLVED),
        ("no unknowns", SOLVED),
        ("uphill: no answer to the unknown yet", UNKNOWN),
        ("downhill from here, no unknown", DOWNHILL),
        ("not yet solved", UNKNOWN),
        ("solved", SOLVED),
        ("⛰️ crest", SOLVED),
        ("somewhere", None),
        ("", None),
    ],
)
def test_the_words_that_come_first_name_the_position(told, phase):
    assert position_of(told) == phase


def test_hostile_text_stays_small_and_on_one_line():
    many = "".join(f"## a{n} {'x' * 500}\n- Signal: up\x1b[31mhill {'y' * 500}\n" for n in range(200))
    areas = parse_hill_signal(many, "cart")
    assert len(areas) == MAX_AREAS
    assert all(len(area.name) <= 120 and len(area.told) <= 120 and area.told.isprintable() for area in areas)
    assert parse_hill_signal("```\n## a\n- Signal: uphill\n```\n", "cart") == ()
    assert parse_hill_signal("", "cart") == ()
