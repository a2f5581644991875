"""The T0 artifact: its bytes, its name, and what it does not say. Source: protocol §6.2, W-40, W-48, ruling G5."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsers.aegis import AegisTriple
from parsers.t0_verdict import (
    CommandResult,
    FailingScope,
    Seesaw,
    T0Verdict,
    artifact_name,
    parse_artifact_name,
    parse_t0_verdict,
    render_t0_verdict,
)
from parsers.trials import Score

PATH = ".shapeup/cart/t0/verdicts/r2-a1-t3.json"
RED = T0Verdict(
    schema_version=2,
    round=2,
    attempt=1,
    trial=3,
    at="2026-03-01T10:00:00.000Z",
    run_id="cart-20260301T090000Z-0a1b2c3d",
    scope_id="core",
    fixtures=(CommandResult("npm test — ünit", 1, False),),
    db_probe=CommandResult("sqlite3 db", 0, True),
    seesaw=Seesaw(False, True),
    fixtures_green=False,
    db_probe_green=True,
    seesaw_green=True,
    overall="red",
    regression=False,
    score=Score(0, 0, 1, 1),
    discovered_tasks=(AegisTriple("a.js", 1, "boom", "stack-frame"), AegisTriple(None, None, "q", "error-message")),
)
BYTES = """\
{
  "schema_version": 2,
  "round": 2,
  "attempt": 1,
  "trial": 3,
  "at": "2026-03-01T10:00:00.000Z",
  "run_id": "cart-20260301T090000Z-0a1b2c3d",
  "scope_id": "core",
  "fixtures": [
    {
      "cmd": "npm test — ünit",
      "exit": 1,
      "pass": false
    }
  ],
  "db_probe": {
    "cmd": "sqlite3 db",
    "exit": 0,
    "pass": true
  },
  "seesaw": {
    "ran": false,
    "pass": true,
    "scopes_checked": [],
    "failing": []
  },
  "fixtures_green": false,
  "db_probe_green": true,
  "seesaw_green": true,
  "overall": "red",
  "regression": false,
  "score": {
    "regressions": 0,
    "fixtures_passed": 0,
    "fixtures_total": 1,
    "db_probe": 1
  },
  "discovered_tasks": [
    {
      "file": "a.js",
      "line": 1,
      "core_message": "boom",
      "kind": "stack-frame"
    },
    {
      "file": null,
      "line": null,
      "core_message": "q",
      "kind": "error-message"
    }
  ]
}""".encode()


def read(document: object, path: str = PATH) -> T0Verdict | None:
    return parse_t0_verdict(json.dumps(document).encode(), path)


def test_the_bytes_have_the_order_of_the_protocol_and_no_line_break_at_the_end() -> None:
    assert render_t0_verdict(RED) == BYTES
    assert parse_t0_verdict(BYTES, PATH) == RED


def test_run_id_and_reason_are_written_only_where_there_are_such() -> None:
    document = json.loads(render_t0_verdict(RED._replace(run_id=None, reason="grader-changed")))
    assert "run_id" not in document
    assert list(document)[-1] == "reason"


commands = st.builds(CommandResult, st.text(max_size=20), st.integers(0, 255), st.booleans())
probes = st.none() | commands
failing = st.builds(FailingScope, st.just("done-1"), st.lists(commands, max_size=2).map(tuple))
seesaws = st.builds(
    Seesaw,
    st.booleans(),
    st.booleans(),
    st.lists(st.just("done-1"), max_size=2).map(tuple),
    st.lists(failing, max_size=2).map(tuple),
    st.none() | st.text(max_size=9),
)


@given(st.lists(commands, max_size=3).map(tuple), probes, seesaws, st.sampled_from(["green", "red"]))
def test_what_is_written_is_read_back(
    fixtures: tuple[CommandResult, ...], probe: CommandResult | None, seesaw: Seesaw, overall: str
) -> None:
    verdict = RED._replace(fixtures=fixtures, db_probe=probe, seesaw=seesaw, overall=overall)
    data = render_t0_verdict(verdict)
    read_back = parse_t0_verdict(data, PATH)
    if b"\\u0000" in data:  # our readers refuse NUL; shell commands cannot hold one
        assert read_back in (None, verdict)
    else:
        assert read_back == verdict


@pytest.mark.parametrize(
    ("stem", "named"),
    [("r1-a2-t3", (1, 2, 3)), ("r10-a1-t1", (10, 1, 1)), ("r1-a1", (1, 1, None)), ("r1", None), ("r1-a1-t", None)],
)
def test_names_are_read_with_and_without_a_trial(stem: str, named: tuple[int, int, int | None] | None) -> None:
    assert parse_artifact_name(stem) == named


@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1))
def test_a_name_is_read_back(round_: int, attempt: int, trial: int) -> None:
    assert parse_artifact_name(artifact_name(round_, attempt, trial)) == (round_, attempt, trial)


def test_an_older_artifact_lies_where_its_name_says_and_says_the_rest_itself() -> None:
    verdict = read(
        {"schema_version": 1, "scope_id": "core", "overall": "green"}, ".shapeup/cart/t0/verdicts/r4-a2.json"
    )
    assert verdict is not None
    assert (verdict.address, verdict.trial, verdict.is_green) == ((4, 2, 0), None, True)
    assert (verdict.seesaw, verdict.score, verdict.fixtures_green) == (None, None, None)
    assert not verdict.has_seesaw_passed


def test_the_scope_inside_counts_whatever_the_name() -> None:
    verdict = read({"scope_id": "core", "round": 7}, "x/anything.json")
    assert verdict is not None
    assert verdict.address == (7, 0, 0)


@pytest.mark.parametrize("document", [[], None, 7, {}, {"scope_id": 3}, {"scope_id": "../x"}, {"scope_id": ""}])
def test_what_names_no_scope_is_no_artifact(document: object) -> None:
    assert read(document) is None


@pytest.mark.parametrize("data", [b"", b"{", b'{"scope_id":"core","scope_id":"b"}', b"\xff", b"[" * 9999])
def test_what_is_no_strict_json_is_no_artifact(data: bytes) -> None:
    assert parse_t0_verdict(data, PATH) is None


ANYTHING: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted({*T0Verdict._fields} - {"scope_id"})), ANYTHING))
def test_whatever_else_an_artifact_says_it_is_read_and_an_absence_is_no_pass(document: dict[str, object]) -> None:
    verdict = read({"scope_id": "core", **document})
    if verdict is not None:
        assert verdict.is_green == (document.get("overall") == "green")
        assert not verdict.has_seesaw_passed


@pytest.mark.parametrize("overall", ["GREEN", True, 1, None, ["green"]])
def test_only_the_word_green_is_green(overall: object) -> None:
    verdict = read({"scope_id": "core", "overall": overall})
    assert verdict is not None
    assert verdict.overall is None
    assert not verdict.is_green


def test_a_counted_seesaw_and_a_bare_failing_id_are_read() -> None:
    verdict = read(
        {"scope_id": "core", "seesaw": {"ran": True, "pass": True, "scopes_checked": 3, "failing": ["a", 7]}}
    )
    assert verdict is not None
    assert verdict.seesaw == Seesaw(True, True, (), (FailingScope("a"), FailingScope("")))
