"""`shapeupd hill`: table, picture and JSON, from files alone. Source: cli §2, rulings J, K."""

import argparse
import json
import xml.etree.ElementTree as ET

import pytest

from daemon.commands import hill
from daemon.exits import NOTHING_THERE, USAGE, Exit
from tests.daemon.hill_tree import RunTree


def told(root, *words):
    parser = argparse.ArgumentParser()
    hill.arguments(parser)
    args = parser.parse_args(words)
    args.repo = (str(root),)
    return hill.run(args)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.delenv("CLICOLOR_FORCE", raising=False)
    tree = RunTree(tmp_path)
    tree.receipt()
    tree.scope("core")
    tree.scope("whole", more="superseded_by: [core]\n")
    tree.t0("core", "r1-a1-t1")
    row = {
        "at": "2026-03-01T12:00:00.000Z",
        "scope_id": "core",
        "from": None,
        "to": "DOWNHILL_EXECUTION",
        "why": "told",
    }
    tree.append(".shapeup/cart/hill.jsonl", row)
    return tree


def test_json_tells_phase_since_and_trail_of_each_scope(run, capsys):
    assert told(run.root, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (next(iter(document)), document["slug"], document["derived"]) == ("schema", "cart", True)
    core, whole = document["hill"]
    assert (core["scope_id"], core["phase"], core["since"]) == (
        "core",
        "DOWNHILL_EXECUTION",
        "2026-03-01T12:00:00.000Z",
    )
    assert [row["to"] for row in core["trail"]] == ["DOWNHILL_EXECUTION"]
    assert core["stalled_s"] > 0
    assert (whole["since"], whole["stalled_s"], whole["superseded_by"]) == (None, None, ["core"])


def test_a_pipe_gets_a_table_and_a_terminal_the_hill(run, capsys, monkeypatch):
    assert told(run.root, "cart") == 0
    out = capsys.readouterr().out
    assert out.startswith("cart\nscope  phase")
    assert "split: whole into core" in out
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    monkeypatch.setenv("COLUMNS", "60")
    assert told(run.root, "cart") == 0
    out = capsys.readouterr().out
    assert "figuring things out" in out
    assert " 1  core  in execution" in out


def test_the_picture_is_written_where_it_was_asked_for(run, capsys, tmp_path):
    assert told(run.root, "cart", "--svg", str(tmp_path / "a.svg")) == 0
    assert capsys.readouterr().out == ""
    assert told(run.root, "cart", "--svg", "-") == 0
    assert ET.fromstring(capsys.readouterr().out).tag.endswith("svg")
    assert ET.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")


def test_what_cannot_be_done_is_said(run, tmp_path):
    for words, status in (
        (("nowhere",), NOTHING_THERE),
        (("nowhere", "--svg", str(tmp_path / "a.svg")), NOTHING_THERE),
        (("../x",), USAGE),
        (("cart", "--svg", str(tmp_path / "no/such/folder.svg")), USAGE),
        (("cart", "--json", "--svg", "-"), USAGE),
    ):
        with pytest.raises(Exit) as stop:
            told(run.root, *words)
        assert stop.value.status == status
        assert stop.value.message
    assert not (tmp_path / "a.svg").exists()


def test_two_features_are_two_documents_and_no_single_picture(run, capsys):
    run.write("shapeup/other/hill/a.yml", "scope_id: a\nphase: FINISHED\n")
    assert told(run.root, "--json") == 0
    hills = json.loads(capsys.readouterr().out)["hills"]
    assert [(one["slug"], one["derived"]) for one in hills] == [("cart", True), ("other", False)]
    with pytest.raises(Exit, match="cart, other"):
        told(run.root, "--svg", "-")
    assert told(run.root, "other") == 0
    assert capsys.readouterr().out.startswith("other (as committed)\n")


def test_before_there_are_scopes_the_areas_of_orient_stand_on_the_hill(tmp_path, capsys):
    run = RunTree(tmp_path)
    run.write(".shapeup/cart/orient/hill-signal.md", "# Hill\n\n## Store\n- Signal: **uphill**\n")
    assert told(run.root, "--json") == 0
    (area,) = json.loads(capsys.readouterr().out)["areas"]
    assert area == {"name": "Store", "phase": "UPHILL_UNKNOWN", "told": "uphill"}
    assert told(run.root) == 0
    assert "Store" in capsys.readouterr().out
