"""The four formats of `shapeupd check`: nothing that a path or a message holds can forge a line, a field or a result."""

from __future__ import annotations

import json
from urllib.parse import unquote_to_bytes

import pytest

from daemon.check.formats import FORMATS, Finding, json_document, render, sarif_document, workflow_command
from hooks.verdict import RULES, Violation

ODD = [
    b"src/a b.ts",
    b"src/100%.ts",
    b"src/line\nbreak",
    b"src/return\r",
    b"src/a,b:c",
    b"src/\xff\xfe",
    "src/é".encode(),
    b"src/\x1b[31m",
    b"src/::error::x",
    "src/\u2028x".encode(),
    b"c:/x",
    b"-x",
]


def finding(path: bytes = b"src/a", **more: str) -> Finding:
    fields = {"what": "no live order lets anybody write this path", "why": "because", "fix": "git restore"} | more
    return Finding(Violation("OUTSIDE", path, "cart/core-r1-a1", **fields), "1" * 40, "a subject")


def test_a_workflow_command_escapes_what_the_runner_reads() -> None:
    line = workflow_command(finding(b"src/a,b:c%\n", what="50% of\nit", why="a\r", fix="x"))
    assert line.startswith("::error file=src/a%2Cb%3Ac%25%0A,title=shapeupd OUTSIDE::")
    assert "50%25 of%0Ait" in line
    assert "\n" not in line
    assert "\r" not in line


@pytest.mark.parametrize("path", ODD)
def test_every_path_is_one_line_of_workflow_commands(path: bytes) -> None:
    line = workflow_command(finding(path))
    line.encode("utf-8")  # no half surrogate is left
    assert line.isprintable()
    assert line.startswith("::error ")
    name, _, message = line.removeprefix("::error ").partition("::")
    told = name.partition("file=")[2].partition(",title=")[0]
    undone = told.replace("%0A", "\n").replace("%0D", "\r").replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
    assert undone.encode() == path if told else "file=" not in name
    assert message


def test_a_path_that_no_log_can_show_stands_in_the_message_alone() -> None:
    line = workflow_command(finding(b"src/\xff"))
    assert "file=" not in line
    assert "\\xff" in line


def test_a_violation_of_the_whole_commit_names_no_file() -> None:
    assert workflow_command(finding(b"")).startswith("::error title=shapeupd OUTSIDE::commit: ")


@pytest.mark.parametrize("path", ODD)
def test_a_sarif_location_is_a_relative_reference_that_gives_the_path_back(path: bytes) -> None:
    document = json.loads(json.dumps(sarif_document([finding(path)])))
    location = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    uri = location["artifactLocation"]["uri"]
    assert unquote_to_bytes(uri) == path
    assert uri.isascii()
    assert not set(uri) & set(' "<>\\^`{|}:')
    assert location["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
    assert location["region"]["startLine"] == 1


def test_a_sarif_log_holds_what_the_schema_asks_for() -> None:
    document = sarif_document([finding(), finding(b"")])
    assert document["version"] == "2.1.0"
    assert str(document["$schema"]).endswith("sarif-2.1.0.json")
    (run,) = json.loads(json.dumps(document))["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "shapeupd"
    declared = [rule["id"] for rule in driver["rules"]]
    assert declared == list(RULES)
    assert len(set(declared)) == len(declared)
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    for result in run["results"]:
        assert declared[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        assert result["locations"]  # code scanning takes no result without one
        assert result["properties"]["commit"] == "1" * 40


def test_a_sarif_log_without_findings_is_a_whole_log() -> None:
    (run,) = json.loads(render([], "sarif"))["runs"]
    assert run["results"] == []
    assert run["tool"]["driver"]["rules"]


def test_a_rule_that_is_not_declared_has_no_index() -> None:
    odd = Finding(Violation("R-99", b"src/a", None, "what", "why", "fix"))
    (run,) = json.loads(render([odd], "sarif"))["runs"]
    assert run["results"][0]["ruleId"] == "R-99"
    assert "ruleIndex" not in run["results"][0]


def test_the_document_has_schema_first_and_every_violation_whole() -> None:
    document = json_document([finding(b"src/\xff")])
    assert next(iter(document)) == "schema"
    assert document["verdict"] == "deny"
    rows = document["violations"]
    assert isinstance(rows, list)
    assert {"rule", "path", "path_bytes", "order_id", "what", "why", "fix", "commit"} == set(rows[0])
    assert json_document([]) == {"schema": 1, "verdict": "allow", "violations": []}


def test_text_tells_a_commit_once() -> None:
    text = render([finding(b"a"), finding(b"b")], "text")
    assert text.count("commit 111111111111 a subject") == 1
    assert text.count("OUTSIDE") == 2


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_lets_a_subject_or_a_reason_speak_to_a_terminal(form: str) -> None:
    odd = finding(b"src/\x1b[2J\xff", what="\x1b[2J", why="\x07", fix="\x9b")
    shown = render([odd._replace(subject="\x1b[2J\udcff")], form)  # type: ignore[arg-type]
    shown.encode("utf-8")
    assert not set(shown) & set("\x1b\x07\x9b")


@pytest.mark.parametrize("form", ["text", "github"])
def test_no_findings_print_nothing(form: str) -> None:
    assert render([], form) == ""  # type: ignore[arg-type]
