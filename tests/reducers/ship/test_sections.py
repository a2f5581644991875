"""Sections taken from workers' reports. Source: protocol §5.8, W-33."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parsers.markdown import parse_heading, scan_lines
from parsers.tier_direction import tier_breaks
from reducers.ship.facts import Documents, ship_facts
from reducers.ship.report import render_report
from reducers.ship.sections import committed, find_section
from tests.reducers.a_run import records

PIECES = st.sampled_from(
    ["TASK-", "1", ".shapeup/", "a", " ", "\n", "`", ")", "\x1b", "\udcff", "ü", "# ", "```", "~~~", "<!--", "_", "."]
)


def test_a_section_ends_at_the_next_heading_of_its_level_or_above() -> None:
    text = "# A\n## Criteria x\none\n### deeper\r\ntwo\n## Next\nthree\n"
    assert find_section(text, "criteria", level=2) == "one\n### deeper\ntwo"
    assert find_section(text, "nothing", "NEXT", level=2) == "three"
    assert find_section(text, "nothing", level=2) == ""


def test_the_first_name_counts_before_the_second_wherever_they_stand() -> None:
    text = "## spec-conformance\nA\n## all criteria\nB\n"
    assert find_section(text, "criteria", "spec-conformance", level=2) == "B"


def test_a_heading_in_a_fence_is_none() -> None:
    assert find_section("```\n## Bugs\nno\n```\n## Bugs\nyes\n", "bugs", level=3) == "yes"


def test_headings_of_a_section_stand_below_the_one_it_is_put_under() -> None:
    assert find_section("# Bugs\n## One\n### Two\n", "bugs", level=3) == "#### One\n##### Two"


@pytest.mark.parametrize("fence", ["```", "~~~~", "   `````py"])
def test_a_fence_that_nobody_closed_is_closed(fence: str) -> None:
    section = find_section(f"## Bugs\n{fence}\n# in it\n", "bugs", level=2)
    assert [line.fenced for line in scan_lines(f"{section}\n# after".split("\n"))][-1] is False


@pytest.mark.parametrize("mark", ["<!-- x", "<DETAILS>", "</table>", "<?php", "<![CDATA[", "<pre>"])
def test_markup_that_hides_the_rest_is_shown_as_text(mark: str) -> None:
    assert committed(mark) == "&lt;" + mark[1:]
    assert committed("Map<string> a < b <b>") == "Map<string> a < b <b>"


@example("TASK-.shapeup/TASK-")
@example(" # TASK-")
@given(st.lists(PIECES, max_size=24).map("".join))
def test_whatever_a_worker_wrote_can_be_committed_and_forges_no_heading(text: str) -> None:
    whole = find_section(f"## Bugs\n{text}", "bugs", level=3)
    assert not list(tier_breaks(whole.encode()))
    lines = list(scan_lines(f"{whole}\n## after".split("\n")))
    shown = (line.text.removeprefix(" ") for line in lines[:-1] if not line.fenced)
    found = [heading[0] for text in shown if (heading := parse_heading(text))]
    assert all(depth > 3 for depth in found)
    assert not lines[-1].fenced


@example("TASK-.shapeup/TASK-")
@example(" # TASK-")
@given(st.lists(PIECES, max_size=24).map("".join))
def test_no_block_of_the_ledger_forges_a_section(text: str) -> None:
    whole = render_report(
        ship_facts(records(), "2026-03-01", (), Documents(discoveries=f"## Discovered — a/b (d)\n{text}"))
    )
    assert not list(tier_breaks(whole.encode()))
    lines = [line for line in scan_lines(whole.split("\n")) if not line.fenced]
    titles = [heading[1] for line in lines if (heading := parse_heading(line.text))]
    assert titles[:2] == ["cart — ship report", "Outcome"]
    assert titles[2:] in ([], ["Discovered, not built"])
    assert lines[-2].text.startswith("ignores. This report")
