"""hill.jsonl and the ledger's unknowns as they are read. Source: ruling G4, W-34."""

from parsers.hill_shards import PHASES
from parsers.hill_trail import HillRow, parse_hill_trail, render_hill_row
from parsers.open_unknowns import parse_unknowns


def test_a_row_comes_back_as_it_was_written():
    rows = (
        HillRow("2026-03-01T09:00:00.000Z", "core", None, PHASES[1], "no T0 — yet"),
        HillRow("2026-03-02T09:00:00.000Z", "Core.2", PHASES[1], PHASES[2]),
    )
    data = "".join(map(render_hill_row, rows)).encode()
    assert parse_hill_trail(data) == rows
    assert data.startswith(b'{"at":"2026-03-01T09:00:00.000Z","scope_id":"core","from":null,"to":"UPHILL_SOLVED"')


def test_rows_that_name_no_scope_or_no_phase_are_skipped_and_so_is_a_torn_end():
    good = render_hill_row(HillRow(None, "core", None, PHASES[0]))
    bad = '{"scope_id": "../x", "to": "FINISHED"}\n{"scope_id": "core", "to": "DONE"}\n[]\n{"scope_id": 7, "to": "FINISHED"}\n'
    (row,) = parse_hill_trail((bad + good + good[:20]).encode())
    assert row == HillRow(None, "core", None, PHASES[0])


def test_unknowns_are_counted_by_block_and_only_at_the_start_of_a_line():
    text = (
        "# L\n~ before any block\n\n## Discovered — cart/a-r1-a1 (2026-03-01)\n~ one\n+ ~ two\n    repro: x\n~ [lens:x] three\n"
        "\n## Discovered — cart/b-r1-a1 (2026-03-01)\n+ none\n~~ no\n\n## Notes\n~ no\n\n## Discovered — cart/a-r1-a1 (2026-03-02)\n~ four\n"
    )
    assert parse_unknowns(text) == (("cart/a-r1-a1", 2), ("cart/a-r1-a1", 1))
    assert parse_unknowns(text.replace("\n", "\r\n")) == parse_unknowns(text)
    assert parse_unknowns("") == ()
